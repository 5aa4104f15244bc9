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
    (body,) = physical_consistency(model)
    assert body.link == "body"
    return body


def test_body_is_judged() -> None:
    broken = "0.1, 0.2, 0.35 kg m^2 break the triangle inequality by 0.05"
    for matrix, fault in (
        (body(2.0, 0.1, 0.2, 0.25), ""),
        (body(2.0, 0.0, 0.0, 0.0), ""),  # a point
        (body(2.0, 0.0, 0.1, 0.1), ""),  # a rod
        (body(2.0, 0.1, 0.2, 0.3), ""),  # a plate
        (np.zeros((4, 4)), ""),
        (body(2.0, 0.1, 0.2, 0.35), broken),
        (body(2.0, -0.1, 0.2, 0.2), "its smallest principal moment is -0.1 kg m^2"),
        (body(-2.0, 0.1, 0.1, 0.1), "the mass is -2 kg"),
        (body(0.0, 0.1, 0.1, 0.1), "an inertia but no mass"),
    ):
        found = judged(matrix)
        assert found.consistent is not bool(fault)
        assert fault in found.fault


def test_relative_second_moment() -> None:
    for moments, relative in (
        ((0.1, 0.1, 0.1), 1.0),
        ((0.1, 0.2, 0.3), 0.0),
        ((0.1, 0.2, 0.35), -1.0 / 9.0),
    ):
        found = judged(body(2.0, *moments))
        assert found.mass == 2.0
        assert found.relative == pytest.approx(relative, abs=1e-9)


def test_payload_counts_and_the_report_names_what_is_wrong() -> None:
    """A heavy load beside a body that is none makes one that could be."""
    arm = link("arm", 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        urdf = robot(link("base"), arm, joint("j", "base", "arm"))
        model = RobotModel.from_urdf_string(urdf)
    base, body = map(str, physical_consistency(model))
    assert base.startswith("base: 1 kg") and base.endswith(", consistent")
    assert body.startswith("arm") and "INCONSISTENT: link 'arm': the principal moments" in body
    model.set_payload("arm", 5.0, inertia=np.diag([0.3, 0.3, 0.3]))
    root, body = physical_consistency(model)
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
        bodies = physical_consistency(load_quietly(path))
        count += len(bodies)
        unreal |= {(path.stem, body.link): body.fault for body in bodies if not body.consistent}
    report(f"{count - len(unreal)} of {count} bodies of the example robots are physical")
    for (name, link_name), words in unreal.items():
        report(f"  not: {name}: {link_name}: {words}")
    assert set(unreal) == UNREAL
    assert count >= 1300
