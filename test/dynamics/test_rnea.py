"""Inverse dynamics: against Pinocchio and MuJoCo, by hand, and what holds for every robot."""

from __future__ import annotations

import math

import numpy as np
import planar_arm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mujoco_peer import ROBOTS
from mujoco_peer import states as mujoco_states
from robots import example_robot, example_robots, joint, link, load_quietly, random_tree, robot
from states import (
    NO_JOINT_MOVES,
    NOT_LOADED,
    SINGULAR,
    Case,
    Mechanism,
    assert_agree,
    compared_robots,
    every_robot,
    mechanisms,
)

from rnea_control.dynamics import Workspace, rnea
from rnea_control.model import RobotModel, RobotModelError
from rnea_control.model import bodies as layout

G = 9.81


def torque(case: Case) -> np.ndarray:
    s = case.state
    return rnea(case.model, case.ws, s.q, s.v, s.a, case.zeros())


@every_robot(60, states=2)
def test_agrees_with_pinocchio(case: Case) -> None:
    for s in case.states:
        tau = rnea(case.model, case.ws, s.q, s.v, s.a, case.zeros())
        assert_agree(tau, case.peer.rnea(s.q, s.v, s.a))


@pytest.mark.parametrize("name", ROBOTS)
def test_robot_agrees_with_mujoco(name: str) -> None:
    for model, ws, peer, q, v, a in mujoco_states(name):
        expected = peer.inverse(a)
        tau = rnea(model, ws, q, v, a, np.zeros(model.nv))
        np.testing.assert_allclose(tau, expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("state", planar_arm.STATES)
def test_planar_arm(state) -> None:
    model = planar_arm.planar_arm()
    tau = rnea(model, Workspace(model), *(row.copy() for row in state), np.zeros(2))
    np.testing.assert_allclose(tau, planar_arm.torque(*state), rtol=1e-12)


def test_pendulum() -> None:
    """m l^2 a + m g l sin(angle from hanging): a point mass that hangs along -z at zero."""
    m, length = 2.0, 0.7
    urdf = robot(
        link("base"),
        link("bob", m, (0, 0, -length), (0, 0, 0, 0, 0, 0)),
        joint("hinge", "base", "bob", "continuous", (0, 1, 0)),
    )
    model = RobotModel.from_urdf_string(urdf)
    for angle, a in ((0.0, 1.0), (0.4, -2.0), (math.pi / 2, 0.0), (3.0, 5.0)):
        vectors = np.array([angle]), np.array([3.0]), np.array([a])
        tau = rnea(model, Workspace(model), *vectors, np.zeros(1))
        assert tau[0] == pytest.approx(m * length**2 * a + m * G * length * math.sin(angle))


def test_slider_on_a_turntable() -> None:
    """A mass m that slides along a radius: m (a - r w^2) along it, m r^2 dw + 2 m r v w about z."""
    m = 1.5
    urdf = robot(
        link("base"),
        link("table", 1.0, (0, 0, 0), (0, 0, 0, 0, 0, 0)),
        link("mass", m, (0, 0, 0), (0, 0, 0, 0, 0, 0)),
        joint("turn", "base", "table"),
        joint("slide", "table", "mass", "prismatic", (1, 0, 0)),
    )
    model = RobotModel.from_urdf_string(urdf)
    r, w, dw, v, a = 0.6, 1.2, 0.7, -0.4, 2.0
    vectors = np.array([0.3, r]), np.array([w, v]), np.array([dw, a])
    tau = rnea(model, Workspace(model), *vectors, np.zeros(2))
    np.testing.assert_allclose(tau, [m * r * r * dw + 2 * m * r * v * w, m * (a - r * w * w)])


def trees(test):
    """Runs a test with random trees of revolute, continuous, prismatic and fixed joints."""
    urdfs = st.builds(random_tree, st.integers(0, 2**32), st.integers(1, 12))
    return settings(max_examples=40, deadline=None, derandomize=True)(given(urdfs)(test))


@trees
def test_torque_is_linear_in_the_inertial_parameters(urdf: str) -> None:
    case = Case(RobotModel.from_urdf_string(urdf))
    columns = slice(layout.INERTIA, layout.INERTIA + 10)
    rng = np.random.default_rng(1)
    first, second = rng.standard_normal((2, case.n, 10))
    torques = []
    for parameters in (first, second, 2.0 * first - 3.0 * second):
        case.model.bodies[1:, columns] = parameters
        torques.append(torque(case))
    expected = 2.0 * torques[0] - 3.0 * torques[1]
    scale = np.abs(torques).max(initial=0.0)
    np.testing.assert_allclose(torques[2], expected, rtol=0.0, atol=1e-11 * scale)


@trees
def test_merging_fixed_joints_changes_nothing(urdf: str) -> None:
    """The same tree with its fixed joints as joints that keep still."""
    case = Case(RobotModel.from_urdf_string(urdf))
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    head, *joints = urdf.split("<joint ")
    loose = [
        text.replace('type="fixed"', 'type="revolute"').replace("</joint>", limit)
        if 'type="fixed"' in text
        else text
        for text in joints
    ]
    free = RobotModel.from_urdf_string("<joint ".join([head, *loose]))
    place = [free.joint_names.index(name) for name in case.model.joint_names]
    q, v, a = np.zeros((3, free.nv))
    q[place], v[place], a[place] = case.state.q, case.state.v, case.state.a
    tau = rnea(free, Workspace(free), q, v, a, np.zeros(free.nv))[place]
    expected = torque(case)
    scale = 1.0 + np.abs(tau).max(initial=0.0)
    np.testing.assert_allclose(tau, expected, rtol=1e-9, atol=1e-9 * scale)


@mechanisms(20, joints=9)
def test_payload_is_the_same_as_a_heavier_link(case: Mechanism) -> None:
    name = case.model.link_names[-1]
    load = 2.0 * np.outer([0.1, -0.2, 0.3, 1.0], [0.1, -0.2, 0.3, 1.0])  # a point
    inertias = {**case.inertias, name: case.inertias[name] + load}
    heavier = RobotModel.from_joints("heavier", case.joints, inertias)
    s = case.state
    expected = rnea(heavier, Workspace(heavier), s.q, s.v, s.a, case.zeros())
    plain = torque(case)
    case.model.set_payload(name, 2.0, [0.1, -0.2, 0.3])
    np.testing.assert_allclose(torque(case), expected, atol=1e-12 * (1 + np.abs(expected).max()))
    case.model.set_payload(name, 0.0)
    np.testing.assert_array_equal(torque(case), plain)


def test_no_example_robot_goes_missing(report) -> None:
    """What is compared and what is left out, and why."""
    paths = example_robots()
    assert all(load_quietly(example_robot(name)).nv == 0 for name in NO_JOINT_MOVES)
    compared = sum(
        not floating_base for _, floating_base in (each.values[0] for each in compared_robots())
    )
    assert compared == len(paths) - len(NOT_LOADED) - len(NO_JOINT_MOVES)
    assert compared >= 66
    report(f"rnea agrees with Pinocchio on {compared} of the {len(paths)} example robots")
    for name, reason in NOT_LOADED.items():
        report(f"  left out: {name}: {reason}")
    report(f"  left out: {', '.join(NO_JOINT_MOVES)}: no joint moves")
    for name, reason in SINGULAR.items():
        report(f"  forward dynamics left out: {name}: {reason}")


@pytest.mark.parametrize("name", NOT_LOADED)
def test_example_robot_that_is_left_out_is_refused(name: str) -> None:
    with pytest.raises(RobotModelError, match="<robot> has no attribute 'name'"):
        load_quietly(example_robot(name))
