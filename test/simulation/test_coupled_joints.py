"""Joints with <mimic>: the simulated arm and the controller's model are the same robot."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import mujoco
import numpy as np
import pytest
from robots import example_robots, joint, link, load_quietly, random_tree, robot

from rnea_control.dynamics import (
    Workspace,
    crba,
    forward_dynamics,
    gravity,
    nonlinear_effects,
    rnea,
)
from rnea_control.exceptions import SimulationError
from rnea_control.model import RobotModel
from rnea_control.simulation.coupled_joints import CoupledJoints
from rnea_control.simulation.mujoco_arm import MujocoArm
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, mend_inertias, urdf_for_mujoco

pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")

ROBOTS = [
    path
    for path in example_robots()
    if b"<mimic" in path.read_bytes() and load_quietly(path).mimic_joints
]

# An arm that carries a gripper: a rack, and two jaws that follow it by ratios of their own, one of
# them by way of the other.
GRIPPER = robot(
    link("base"),
    link("upper", 2.0, (0.2, 0.0, 0.0), (0.02, 0, 0, 0.03, 0, 0.03)),
    link("rack", 0.7, (0.0, 0.01, 0.05), (0.002, 0, 0, 0.002, 0, 0.001)),
    link("left", 0.4, (0.06, 0.02, 0.0), (0.001, 0, 0, 0.001, 0, 0.001)),
    link("right", 0.5, (0.05, -0.02, 0.0), (0.001, 0, 0, 0.002, 0, 0.001)),
    joint("shoulder", "base", "upper", axis=(0, 1, 0)),
    joint(
        "slide",
        "upper",
        "rack",
        "prismatic",
        xyz=(0.4, 0, 0),
        limit='<limit lower="-0.2" upper="0.2" effort="100" velocity="1"/>',
    ),
    joint(
        "left_jaw",
        "rack",
        "left",
        axis=(0, 1, 1),
        xyz=(0.02, 0, 0),
        extra='<mimic joint="slide" multiplier="3" offset="0.2"/>',
    ),
    joint(
        "right_jaw",
        "left",
        "right",
        axis=(1, 0, 0),
        xyz=(0.03, 0, 0),
        extra='<mimic joint="left_jaw" multiplier="-0.5" offset="0.1"/>',
    ),
    name="gripper",
)
MODEL = RobotModel.from_urdf_string(GRIPPER)
START = {"shoulder": 0.3, "slide": 0.05}


def coupled(xml: str | bytes, model: RobotModel, q: np.ndarray) -> CoupledJoints:
    physics = mujoco.MjModel.from_xml_string(urdf_for_mujoco(xml, model, {}, ModelErrors()))
    physics.opt.gravity[:] = model.gravity
    physics.opt.timestep, physics.opt.integrator = 0.001, mujoco.mjtIntegrator.mjINT_RK4
    return CoupledJoints(physics, model, q)


def compare(xml: str | bytes, model: RobotModel, tolerance: float) -> None:
    """Mass matrix, gravity torque and all torques of motion, in random states."""
    rng, ws = np.random.default_rng(3), Workspace(model)
    arm = coupled(xml, model, model.neutral())
    M, zero = np.zeros((model.nv, model.nv)), np.zeros(model.nv)
    for _ in range(5):
        q, v = model.random(rng), rng.uniform(-2.0, 2.0, model.nv)
        theirs, bias = arm.equations(q, v)
        ours = nonlinear_effects(model, ws, q, v, np.zeros(model.nv))
        np.testing.assert_allclose(crba(model, ws, q, M), theirs, atol=tolerance * theirs.max())
        np.testing.assert_allclose(ours, bias, atol=tolerance * (1.0 + np.abs(bias).max()))
        _, bias = arm.equations(q, zero)
        ours = gravity(model, ws, q, np.zeros(model.nv))
        np.testing.assert_allclose(ours, bias, atol=tolerance * (1.0 + np.abs(bias).max()))


def test_there_are_robots_with_mimic_joints() -> None:
    assert {"panda", "pr2", "romeo"} <= {path.stem for path in ROBOTS}


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_every_example_robot_with_mimic_joints_agrees(path: Path) -> None:
    raw = load_quietly(path)
    # MuJoCo refuses inertias that no body has: both get the nearest possible ones.
    root = ET.fromstring(path.read_bytes())
    mend_inertias(root)
    xml = ET.tostring(root)
    model = RobotModel.from_urdf_string(xml)
    compare(xml, model, 1e-9)
    q, ws, zero = raw.random(np.random.default_rng(4)), Workspace(raw), np.zeros(raw.nv)
    _, bias = coupled(path.read_bytes(), raw, q).equations(q, zero)
    np.testing.assert_allclose(gravity(raw, ws, q, zero.copy()), bias, atol=1e-9 * raw.total_mass)


def test_chain_of_followers_agrees() -> None:
    assert MODEL.mimic_joints == ("left_jaw", "right_jaw")
    compare(GRIPPER, MODEL, 1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_with_followers_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = ET.fromstring(random_tree(seed, 9))
    moving = [element for element in tree.iter("joint") if element.get("type") != "fixed"]
    for leader, follower in zip(moving[:-1:2], moving[1::2], strict=False):
        ratio, offset = rng.uniform(-2.0, 2.0, 2)
        ET.SubElement(
            follower, "mimic", joint=leader.get("name"), multiplier=f"{ratio}", offset=f"{offset}"
        )
    xml = ET.tostring(tree, encoding="unicode")
    model = RobotModel.from_urdf_string(xml)
    assert model.mimic_joints
    compare(xml, model, 1e-12)


def test_gravity_torque_holds_the_followers_too() -> None:
    arm = MujocoArm(GRIPPER, MODEL, 0.001, START)
    q = np.array([0.3, 0.05])
    torque = gravity(MODEL, Workspace(MODEL), q, np.zeros(2))
    for _ in range(100):
        arm.step(torque)
    np.testing.assert_allclose(arm.q, q, atol=1e-12)
    assert arm.time == pytest.approx(0.1)


def test_torque_accelerates_as_the_model_says() -> None:
    arm = MujocoArm(GRIPPER, MODEL, 1e-6, START)
    torque = np.array([20.0, 15.0])
    expected = forward_dynamics(MODEL, Workspace(MODEL), arm.q, np.zeros(2), torque, np.zeros(2))
    arm.step(torque)
    np.testing.assert_allclose(arm.v / 1e-6, expected, rtol=1e-4)


def test_computed_torque_follows_closely() -> None:
    """Which it did not while the followers stood still."""
    arm, ws, tau = MujocoArm(GRIPPER, MODEL, 0.001, START), Workspace(MODEL), np.zeros(2)
    start, swing, w = arm.q, np.array([0.4, 0.1]), 2.0 * np.pi
    worst = 0.0
    for t in 0.001 * np.arange(1000):
        q = start + swing * (1.0 - np.cos(w * t)) / 2.0
        v, a = swing * w * np.sin(w * t) / 2.0, swing * w**2 * np.cos(w * t) / 2.0
        worst = max(worst, np.abs(q - arm.q).max())
        wanted = a + 400.0 * (q - arm.q) + 40.0 * (v - arm.v)
        arm.step(rnea(MODEL, ws, arm.q, arm.v, wanted, tau))
    assert worst < 5e-4


@pytest.mark.parametrize("steps", [60, 300])
def test_without_followers_it_moves_as_mujoco_moves_it(steps: int) -> None:
    """Exactly; nearly so once it is at a stop, as MuJoCo estimates the inertia felt there."""
    model = RobotModel.from_urdf_string(GRIPPER, ["shoulder", "slide", "left_jaw", "right_jaw"])
    start = {"shoulder": 0.3, "slide": 0.05, "left_jaw": 0.4, "right_jaw": -0.1}
    theirs = MujocoArm(GRIPPER, model, 0.001, start)
    ours = coupled(GRIPPER, model, theirs.q)
    torque = np.array([3.0, 9.0, 0.2, -0.1])
    slid = 0.0
    for _ in range(steps):
        theirs.step(torque)
        ours.step(torque)
        slid = max(slid, theirs.q[1])
    assert np.abs(theirs.v).max() > 0.5
    assert (slid > model.upper[1]) == (steps == 300)
    np.testing.assert_allclose(ours.q, theirs.q, rtol=0.0, atol=1e-12 if steps == 60 else 0.01)


@pytest.mark.parametrize("damping", [0.0, 5.0])
def test_stops_are_those_of_the_leader(damping: float) -> None:
    errors = ModelErrors(joint_damping=damping)
    arm = MujocoArm(GRIPPER, MODEL, 0.001, START, errors=errors)
    torque = gravity(MODEL, Workspace(MODEL), arm.q, np.zeros(2))
    for _ in range(1500):
        arm.step(torque + np.array([0.0, 50.0]))
    assert 0.2 < arm.q[1] < 0.25
    assert abs(arm.v[1]) < 0.05


def test_friction_of_followers_is_borne_by_the_leader() -> None:
    """5 N at the leader, and 5 Nm at each jaw by its ratio of 3 and 1.5: 27.5 N hold still."""

    def slid(force: float, friction: float) -> float:
        arm = MujocoArm(GRIPPER, MODEL, 0.001, START, errors=ModelErrors(joint_friction=friction))
        hold = gravity(MODEL, Workspace(MODEL), arm.q, np.zeros(2))
        for _ in range(100):
            arm.step(hold + np.array([0.0, force]))
        return float(arm.q[1] - 0.05)

    # Friction creeps, as MuJoCo's does.
    assert 0.0 < slid(26.0, 5.0) < 0.1 * slid(26.0, 0.0)
    assert slid(26.0, 4.0) > 3.0 * slid(26.0, 5.0)  # 22 N do not hold it


def test_followers_have_no_rotor() -> None:
    model = RobotModel.from_urdf_string(GRIPPER)
    model.armature = np.full(2, 0.3)
    arm = MujocoArm(GRIPPER, MODEL, 1e-6, START, errors=ModelErrors(joint_armature=0.3))
    torque, a = np.array([8.0, -30.0]), np.zeros(2)
    forward_dynamics(model, Workspace(model), arm.q, np.zeros(2), torque, a)
    arm.step(torque)
    np.testing.assert_allclose(arm.v, 1e-6 * a, rtol=1e-6)


def test_strong_damping_is_stable() -> None:
    arm = MujocoArm(GRIPPER, MODEL, 0.001, START, errors=ModelErrors(joint_damping=500.0))
    for _ in range(200):
        arm.step(np.zeros(2))
    assert np.abs(arm.v).max() < 0.1


def test_instability_is_an_error() -> None:
    arm = MujocoArm(GRIPPER, MODEL, 0.001, START)
    with pytest.raises(SimulationError, match="unstable"), np.errstate(all="ignore"):
        for _ in range(10):
            arm.step(np.full(2, 1e30))


def test_follower_of_a_locked_leader_stays_where_that_puts_it() -> None:
    locked = {"slide": 0.1}
    model = RobotModel.from_urdf_string(GRIPPER, ["shoulder"], locked)
    arm = MujocoArm(GRIPPER, model, 0.001, {"shoulder": 0.3}, locked)
    torque = gravity(model, Workspace(model), arm.q, np.zeros(1))
    for _ in range(50):
        arm.step(torque)
    np.testing.assert_allclose(arm.q, [0.3], atol=1e-12)
