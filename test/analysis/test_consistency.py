"""Which inertias real bodies can have, and what the report says of the others."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import example_robots, joint, link, load_quietly, random_mechanism, robot
from states import NOT_LOADED

from rnea_control.analysis.consistency import BodyConsistency, physical_consistency
from rnea_control.model import Joint, RobotModel, pseudo_inertia
from rnea_control.model.inertia import pseudo_inertia_of, ten_parameters

AWAY = np.array([0.3, -0.2, 0.5])


def judged(matrix: np.ndarray) -> BodyConsistency:
    """A body with this pseudo-inertia, on a joint whose axis is oblique."""
    arm = Joint("joint", "revolute", "base", "body", axis=np.array([1.0, 2.0, 3.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RobotModel.from_joints("one", [arm], {"body": matrix})
    (body,) = physical_consistency(model).bodies
    assert body.link == "body"
    return body


def body(mass: float, *moments: float) -> np.ndarray:
    return pseudo_inertia(mass, AWAY, np.diag(moments))


def test_pseudo_inertia_of_is_the_inverse_of_ten_parameters() -> None:
    parameters = np.random.default_rng(0).standard_normal(10)
    matrix = pseudo_inertia_of(parameters)
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(ten_parameters(matrix), parameters)
    real = body(2.0, 0.1, 0.2, 0.25)
    np.testing.assert_allclose(pseudo_inertia_of(ten_parameters(real)), real)


def test_sphere() -> None:
    sphere = judged(body(2.0, 0.1, 0.1, 0.1))
    assert sphere.consistent and sphere.mass == 2.0
    assert sphere.relative == pytest.approx(1.0)
    # second moments 0.05 about the centre, which is away from the origin
    about_origin = np.zeros((4, 4))
    about_origin[:3, :3] = 0.05 * np.eye(3) + 2.0 * np.outer(AWAY, AWAY)
    about_origin[:3, 3] = about_origin[3, :3] = 2.0 * AWAY
    about_origin[3, 3] = 2.0
    smallest = np.linalg.eigvalsh(about_origin)[0]
    assert sphere.smallest_eigenvalue == pytest.approx(smallest, rel=1e-9)


@pytest.mark.parametrize("moments", [(0.0, 0.0, 0.0), (0.0, 0.1, 0.1), (0.1, 0.2, 0.3)])
def test_points_rods_and_plates_are_consistent(moments: tuple[float, ...]) -> None:
    found = judged(body(2.0, *moments))
    assert found.consistent and abs(found.relative) < 1e-6
    assert found.words == "a point, a rod or a plate"


def test_broken_triangle_inequality() -> None:
    found = judged(body(2.0, 0.1, 0.2, 0.35))
    assert not found.consistent and found.smallest_eigenvalue < 0.0
    assert "0.1, 0.2, 0.35 kg m^2 break the triangle inequality by 0.05" in found.words


def test_negative_principal_moment() -> None:
    found = judged(body(2.0, -0.1, 0.2, 0.2))
    assert not found.consistent
    assert found.words == "its smallest principal moment of inertia is -0.1 kg m^2"


def test_negative_mass() -> None:
    found = judged(body(-2.0, 0.1, 0.1, 0.1))
    assert not found.consistent and found.words == "the mass is -2 kg"


def test_inertia_without_mass() -> None:
    found = judged(body(0.0, 0.1, 0.1, 0.1))
    assert not found.consistent and found.words == "it has no mass, but other inertia"


def test_body_without_any_inertia_is_consistent() -> None:
    found = judged(np.zeros((4, 4)))
    assert found.consistent and found.words == "no inertia at all"


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_clouds_of_points_are_real_bodies(seed: int, count: int) -> None:
    model = RobotModel.from_joints("mechanism", *random_mechanism(seed, count, mimics=True))
    report = physical_consistency(model)
    assert report.consistent
    roots = [body for body in report.bodies if body.link == model.root_link]
    moved = len(model.joint_names) + len(model.mimic_joints)
    assert len(roots) <= 1 and len(report.bodies) == len(roots) + moved
    assert all(body.relative > 0.0 and body.smallest_eigenvalue > 0.0 for body in report.bodies)


def test_payload_counts() -> None:
    """A heavy load beside a body that is none makes one that could be."""
    flat = robot(
        link("base"), link("arm", 1.0, inertia=(0.1, 0, 0, 0.1, 0, 0.3)), joint("j", "base", "arm")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RobotModel.from_urdf_string(flat)
    assert not physical_consistency(model).consistent
    model.set_payload("arm", 5.0, inertia=np.diag([0.3, 0.3, 0.3]))
    root, body = physical_consistency(model).bodies
    assert root.link == "base" and root.consistent
    assert body.consistent and body.mass == 6.0


def test_report_is_a_table_that_names_what_is_wrong() -> None:
    joints = [Joint("j1", "revolute", "base", "upper"), Joint("j2", "revolute", "upper", "lower")]
    inertias = {"upper": body(2.0, 0.1, 0.2, 0.25), "lower": body(1.0, 0.1, 0.2, 0.35)}
    report = physical_consistency(RobotModel.from_joints("two", joints, inertias))
    assert not report.consistent
    upper, lower = str(report).splitlines()
    assert upper.startswith("upper") and upper.endswith("a real body")
    assert lower.startswith("lower") and "INCONSISTENT: its principal moments" in lower


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
