"""The physics: it is the robot of the URDF, with the errors asked for and no others."""

from __future__ import annotations

import numpy as np
import pytest
from robots import (
    PANDA_JOINTS,
    example_robots,
    joint,
    link,
    load_quietly,
    random_tree,
    robot,
    two_link_arm,
)

from rnea_control.dynamics import Workspace, forward_dynamics, gravity, rnea
from rnea_control.exceptions import SimulationError
from rnea_control.model import RobotModel
from rnea_control.simulation.mujoco_arm import MujocoArm
from rnea_control.simulation.urdf_for_mujoco import ModelErrors

pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")

URDF = two_link_arm()
MODEL = RobotModel.from_urdf_string(URDF)
START = {"shoulder": 0.3, "elbow": -0.4}
Q = np.array([0.3, -0.4])


def holding_torque(model: RobotModel, q: np.ndarray) -> np.ndarray:
    return gravity(model, Workspace(model), q, np.zeros(model.nv))


def test_gravity_torque_holds_the_arm_still() -> None:
    arm = MujocoArm(URDF, MODEL, 0.001, START)
    torque = holding_torque(MODEL, Q)
    for _ in range(100):
        arm.step(torque)
    np.testing.assert_allclose(arm.q, Q, atol=1e-12)
    assert arm.time == pytest.approx(0.1)


@pytest.mark.parametrize("period", [0.0005, 0.001, 0.01])
def test_free_fall_keeps_its_energy(period: float) -> None:
    arm = MujocoArm(URDF, MODEL, period, START)
    ws, zero = Workspace(MODEL), np.zeros(2)

    def energy() -> float:
        q, v = arm.q, arm.v
        rest = rnea(MODEL, ws, q, zero, zero, np.zeros(2))
        mass = [rnea(MODEL, ws, q, zero, e, np.zeros(2)) - rest for e in np.eye(2)]
        nodes, weights = np.polynomial.legendre.leggauss(20)
        path = [Q + 0.5 * (x + 1.0) * (q - Q) for x in nodes]
        work = 0.5 * weights @ [holding_torque(MODEL, p) @ (q - Q) for p in path]
        return 0.5 * v @ np.array(mass) @ v + work

    for _ in range(round(0.5 / period)):
        arm.step(zero)
    assert np.abs(arm.v).max() > 1.0
    assert energy() == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("seed", range(8))
def test_joints_locked_anywhere_are_the_same_robot(seed: int) -> None:
    """Locked joints become fixed ones in MuJoCo's URDF and vanish in ours: still the same robot."""
    urdf = random_tree(seed, 8, fixed=True)
    free = RobotModel.from_urdf_string(urdf)
    names = free.joint_names[::2]
    rng = np.random.default_rng(seed)
    locked = {name: float(rng.uniform(-2, 2)) for name in free.joint_names[1::2]}
    model = RobotModel.from_urdf_string(urdf, names, locked)
    start = dict(zip(names, rng.uniform(-2, 2, len(names)), strict=True))
    arm = MujocoArm(urdf, model, 0.001, start, locked)
    q = arm.q
    for _ in range(20):
        arm.step(holding_torque(model, q))
    np.testing.assert_allclose(arm.q, q, atol=1e-9)


def test_mass_scale_scales_the_torque() -> None:
    arm = MujocoArm(URDF, MODEL, 0.001, START, errors=ModelErrors(mass_scale=1.1))
    for _ in range(100):
        arm.step(1.1 * holding_torque(MODEL, Q))
    np.testing.assert_allclose(arm.q, Q, atol=1e-12)


def test_payload_hangs_on_its_link() -> None:
    errors = ModelErrors(payload_mass=2.0, payload_link="upper", payload_position=(0.4, 0.0, 0.0))
    arm = MujocoArm(URDF, MODEL, 0.001, START, errors=errors)
    load = np.array([-2.0 * 9.81 * 0.4 * np.cos(0.3), 0.0])
    for _ in range(100):
        arm.step(holding_torque(MODEL, Q) + load)
    np.testing.assert_allclose(arm.q, Q, atol=1e-11)
    with pytest.raises(SimulationError, match=r"payload_link is 'hook'.*it has base, upper, lower"):
        MujocoArm(URDF, MODEL, 0.001, errors=ModelErrors(payload_mass=1.0, payload_link="hook"))


def test_friction_holds_and_damping_brakes() -> None:
    stuck = MujocoArm(URDF, MODEL, 0.001, START, errors=ModelErrors(joint_friction=50.0))
    damped = MujocoArm(URDF, MODEL, 0.001, START, errors=ModelErrors(joint_damping=10.0))
    free = MujocoArm(URDF, MODEL, 0.001, START)
    for arm in (stuck, damped, free):
        for _ in range(100):
            arm.step(np.zeros(2))
    assert np.abs(stuck.q - Q).max() < 0.1 * np.abs(free.q - Q).max()
    assert np.abs(damped.q - Q).max() < 0.5 * np.abs(free.q - Q).max()


def test_rotors_are_those_of_the_model() -> None:
    model = RobotModel.from_urdf_string(URDF)
    model.armature = np.full(2, 0.3)
    torque, a = np.array([8.0, -3.0]), np.zeros(2)
    forward_dynamics(model, Workspace(model), Q, np.zeros(2), torque, a)
    arm = MujocoArm(URDF, MODEL, 1e-6, START, errors=ModelErrors(joint_armature=0.3))
    arm.step(torque)
    np.testing.assert_allclose(arm.v, 1e-6 * a, rtol=1e-6)


def test_friction_stops_a_joint_with_a_rotor() -> None:
    """As much as without one: a heavy rotor does not make friction weaker."""
    errors = ModelErrors(joint_friction=50.0, joint_armature=1.0)
    arm = MujocoArm(URDF, MODEL, 0.001, START, errors=errors)
    free = MujocoArm(URDF, MODEL, 0.001, START, errors=ModelErrors(joint_armature=1.0))
    for _ in range(100):
        arm.step(np.zeros(2))
        free.step(np.zeros(2))
    assert np.abs(arm.q - Q).max() < 0.1 * np.abs(free.q - Q).max()


def test_friction_of_the_urdf_does_not_act() -> None:
    """The arm has the friction that its parameters give it, whatever the controller's model has."""
    tags = '<dynamics damping="50" friction="50"/></joint>'
    rubbing = URDF.replace("</joint>", tags)
    arm = MujocoArm(rubbing, RobotModel.from_urdf_string(rubbing), 0.001, START)
    free = MujocoArm(URDF, MODEL, 0.001, START)
    for _ in range(50):
        arm.step(np.zeros(2))
        free.step(np.zeros(2))
    np.testing.assert_array_equal(arm.q, free.q)


def test_strong_damping_is_stable() -> None:
    arm = MujocoArm(URDF, MODEL, 0.001, START, errors=ModelErrors(joint_damping=500.0))
    for _ in range(200):
        arm.step(np.zeros(2))
    assert np.abs(arm.v).max() < 0.1


def test_instability_is_an_error(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log file where it runs
    arm = MujocoArm(URDF, MODEL, 0.001, START)
    with pytest.raises(SimulationError, match="unstable"):
        for _ in range(10):
            arm.step(np.full(2, 1e30))


def test_initial_positions_are_checked() -> None:
    with pytest.raises(SimulationError, match=r"'wrist'.*those are shoulder, elbow"):
        MujocoArm(URDF, MODEL, 0.001, {"wrist": 0.0})
    with pytest.raises(SimulationError, match=r"initial_positions\.elbow is 4.*-3 to 3"):
        MujocoArm(URDF, MODEL, 0.001, {"elbow": 4.0})


@pytest.mark.parametrize("kind", ["floating", "planar"])
def test_joint_of_several_degrees_of_freedom_is_named(kind: str) -> None:
    urdf = robot(
        link("base"), link("a"), link("b"), joint("j", "base", "a", kind), joint("k", "a", "b")
    )
    with pytest.raises(SimulationError, match="j has more than one degree of freedom"):
        MujocoArm(urdf, RobotModel.from_urdf_string(urdf), 0.001)
    MujocoArm(urdf, RobotModel.from_urdf_string(urdf, ["k"]), 0.001).step(np.zeros(1))


def test_start_lies_within_the_limits(panda_urdf) -> None:
    model = load_quietly(panda_urdf, PANDA_JOINTS)
    arm = MujocoArm(panda_urdf.read_text(), model, 0.001)
    assert ((model.lower <= arm.q) & (arm.q <= model.upper)).all()


@pytest.mark.parametrize("path", example_robots(), ids=lambda path: path.stem)
def test_every_robot_of_example_robot_data_loads(path) -> None:
    if path.name == "ur3.urdf":
        pytest.skip("the <robot> has no name, which urdf_parser_py requires")
    model = load_quietly(path)
    if model.nv == 0:
        pytest.skip("no joint of the robot moves")
    arm = MujocoArm(path.read_bytes(), model, 0.001)
    arm.step(np.zeros(model.nv))
    assert np.isfinite(arm.q).all()
