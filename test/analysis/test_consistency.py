"""Which inertias real bodies can have, and what the report says of the others."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from robots import example_robots, joint, link, load_quietly, robot
from states import NOT_LOADED

from rnea_control.analysis.consistency import BodyConsistency, physical_consistency
from rnea_control.model import Joint, RobotModel, pseudo_inertia

AWAY = np.array([0.3, -0.2, 0.5])


def body(mass: float, *moments: float) -> np.ndarray:
    return pseudo_inertia(mass, AWAY, np.diag(moments))


def judged(matrix: np.ndarray) -> BodyConsistency:
    """A body with this pseudo-inertia, on a joint whose axis is oblique."""
    arm = Joint("joint", "revolute", "base", "body", axis=np.array([1.0, 2.0, 3.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RobotModel.from_joints("one", [arm], {"body": matrix})
    (body,) = physical_consistency(model).bodies
    assert body.link == "body"
    return body


def test_body_is_judged() -> None:
    broken = "0.1, 0.2, 0.35 kg m^2 break the triangle inequality by 0.05"
    for matrix, consistent, words in (
        (body(2.0, 0.1, 0.2, 0.25), True, "a real body"),
        (body(2.0, 0.0, 0.0, 0.0), True, "a point, a rod or a plate"),
        (body(2.0, 0.0, 0.1, 0.1), True, "a point, a rod or a plate"),
        (body(2.0, 0.1, 0.2, 0.3), True, "a point, a rod or a plate"),
        (np.zeros((4, 4)), True, "no inertia at all"),
        (body(2.0, 0.1, 0.2, 0.35), False, broken),
        (body(2.0, -0.1, 0.2, 0.2), False, "its smallest principal moment of inertia is -0.1 kg"),
        (body(-2.0, 0.1, 0.1, 0.1), False, "the mass is -2 kg"),
        (body(0.0, 0.1, 0.1, 0.1), False, "it has no mass, but other inertia"),
    ):
        found = judged(matrix)
        assert found.consistent is consistent
        assert words in found.words
        assert abs(found.relative) < 1e-6 or not words.startswith("a point")
        assert found.smallest_eigenvalue < 0.0 or words is not broken


def test_sphere() -> None:
    sphere = judged(body(2.0, 0.1, 0.1, 0.1))
    assert sphere.consistent and sphere.mass == 2.0
    assert sphere.relative == pytest.approx(1.0)
    # second moments 0.05 about the center, which is away from the origin
    about_origin = np.zeros((4, 4))
    about_origin[:3, :3] = 0.05 * np.eye(3) + 2.0 * np.outer(AWAY, AWAY)
    about_origin[:3, 3] = about_origin[3, :3] = 2.0 * AWAY
    about_origin[3, 3] = 2.0
    smallest = np.linalg.eigvalsh(about_origin)[0]
    assert sphere.smallest_eigenvalue == pytest.approx(smallest, rel=1e-9)


def test_payload_counts_and_the_report_names_what_is_wrong() -> None:
    """A heavy load beside a body that is none makes one that could be."""
    arm = link("arm", 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        urdf = robot(link("base"), arm, joint("j", "base", "arm"))
        model = RobotModel.from_urdf_string(urdf)
    report = physical_consistency(model)
    assert not report.consistent
    base, body = str(report).splitlines()
    assert base.startswith("base") and base.endswith("a real body")
    assert body.startswith("arm") and "INCONSISTENT: its principal moments" in body
    model.set_payload("arm", 5.0, inertia=np.diag([0.3, 0.3, 0.3]))
    root, body = physical_consistency(model).bodies
    assert root.link == "base" and root.consistent
    assert body.consistent and body.mass == 6.0


# Links of example-robot-data that no real body could be.
UNREAL = {
    ("romeo_laas_small", "base_link"),
    ("romeo_laas_small", "LShoulderYaw_link"),
    ("romeo_laas_small", "LElbowYaw_link"),
    ("romeo_laas_small", "LHipPitch_link"),
    ("romeo_laas_small", "RHipPitch_link"),
    ("romeo_small", "RShoulderYawLink"),
    ("romeo_small", "RElbowYawLink"),
}


def test_example_robots(report) -> None:
    unreal, count = {}, 0
    for path in example_robots():
        if path.stem in NOT_LOADED:
            continue
        bodies = physical_consistency(load_quietly(path)).bodies
        count += len(bodies)
        unreal |= {(path.stem, body.link): body.words for body in bodies if not body.consistent}
    report(f"{count - len(unreal)} of {count} bodies of the example robots are physical")
    for (name, link_name), words in unreal.items():
        report(f"  not: {name}: {link_name}: {words}")
    assert set(unreal) == UNREAL
    assert count >= 1300
