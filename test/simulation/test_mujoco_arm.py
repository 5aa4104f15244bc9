"""The physics: it is the robot of the URDF, <mimic> and all, with the errors asked for only."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import mujoco
import numpy as np
import pytest
from robots import example_robots, joint, link, load_quietly, random_tree, robot, two_link_arm

from rnea_control.dynamics import Workspace, crba, forward_dynamics, gravity, nonlinear_effects
from rnea_control.exceptions import SimulationError
from rnea_control.model import RobotModel
from rnea_control.simulation.mujoco_arm import CoupledJoints, MujocoArm
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, mend_inertias, urdf_for_mujoco


def holding_torque(model: RobotModel, q: np.ndarray) -> np.ndarray:
    return gravity(model, Workspace(model), q, np.zeros(model.nv))


@dataclass(frozen=True)
class SmallArm:
    """A URDF, and where the arm begins."""

    urdf: str
    start: dict[str, float]

    @cached_property
    def model(self) -> RobotModel:
        return RobotModel.from_urdf_string(self.urdf)

    @property
    def q(self) -> np.ndarray:
        return np.array(list(self.start.values()))

    @property
    def hold(self) -> np.ndarray:
        return holding_torque(self.model, self.q)

    def made(self, period: float = 0.001, **errors: object) -> MujocoArm:
        """In MuJoCo, with these `ModelErrors`."""
        errors = ModelErrors(**errors)
        return MujocoArm(self.urdf, self.model, period, self.start, errors=errors)

    def moved(self, torque: np.ndarray, steps: int, **errors: object) -> MujocoArm:
        """After so many milliseconds with a torque."""
        arm = self.made(**errors)
        for _ in range(steps):
            arm.step(torque)
        return arm


def _mimic(joint: str, multiplier: float, offset: float) -> str:
    return f'<mimic joint="{joint}" multiplier="{multiplier}" offset="{offset}"/>'


_SLIDE = '<limit lower="-0.2" upper="0.2" effort="100" velocity="1"/>'
_LEFT, _RIGHT = _mimic("slide", 3.0, 0.2), _mimic("left_jaw", -0.5, 0.1)

TWO_LINKS = SmallArm(two_link_arm(), {"shoulder": 0.3, "elbow": -0.4})
# The jaws have ratios of their own; one follows by way of the other.
GRIPPER = SmallArm(
    robot(
        link("base"),
        link("upper", 2.0, (0.2, 0.0, 0.0), (0.02, 0, 0, 0.03, 0, 0.03)),
        link("rack", 0.7, (0.0, 0.01, 0.05), (0.002, 0, 0, 0.002, 0, 0.001)),
        link("left", 0.4, (0.06, 0.02, 0.0), (0.001, 0, 0, 0.001, 0, 0.001)),
        link("right", 0.5, (0.05, -0.02, 0.0), (0.001, 0, 0, 0.002, 0, 0.001)),
        joint("shoulder", "base", "upper", axis=(0, 1, 0)),
        joint("slide", "upper", "rack", "prismatic", xyz=(0.4, 0, 0), limit=_SLIDE),
        joint("left_jaw", "rack", "left", axis=(0, 1, 1), xyz=(0.02, 0, 0), extra=_LEFT),
        joint("right_jaw", "left", "right", axis=(1, 0, 0), xyz=(0.03, 0, 0), extra=_RIGHT),
        name="gripper",
    ),
    {"shoulder": 0.3, "slide": 0.05},
)


pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")

URDF, MODEL, START, Q = TWO_LINKS.urdf, TWO_LINKS.model, TWO_LINKS.start, TWO_LINKS.q

each_arm = pytest.mark.parametrize("small", [TWO_LINKS, GRIPPER], ids=["two links", "gripper"])


@pytest.mark.parametrize("seed", range(4))
def test_joints_locked_anywhere_are_the_same_robot(seed: int) -> None:
    """Locked joints become fixed ones in MuJoCo's URDF and vanish in ours: still the same robot."""
    urdf = random_tree(seed, 8, fixed=True)
    free = RobotModel.from_urdf_string(urdf)
    names = free.joint_names[::2]
    rng = np.random.default_rng(seed)
    locked = {name: float(rng.uniform(-2, 2)) for name in free.joint_names[1::2]}
    model = RobotModel.from_urdf_string(urdf, names, locked)
    start = dict(zip(names, rng.uniform(-2, 2, len(names)), strict=True))
    arm = MujocoArm(urdf, model, 0.001, start)
    q = arm.q
    for _ in range(20):
        arm.step(holding_torque(model, q))
    np.testing.assert_allclose(arm.q, q, atol=1e-9)


def test_payload_hangs_on_its_link_and_masses_are_scaled() -> None:
    payload = {"payload_link": "upper", "payload_position": (0.4, 0.0, 0.0)}
    load = np.array([-2.0 * 9.81 * 0.4 * np.cos(0.3), 0.0])
    hold = 1.1 * TWO_LINKS.hold + load
    arm = TWO_LINKS.moved(hold, 100, mass_scale=1.1, payload_mass=2.0, **payload)
    np.testing.assert_allclose(arm.q, Q, atol=1e-11)
    assert arm.time == pytest.approx(0.1)
    with pytest.raises(SimulationError, match=r"payload_link is 'hook'.*it has base, upper, lower"):
        TWO_LINKS.made(payload_mass=1.0, payload_link="hook")


def test_friction_holds_and_damping_brakes() -> None:
    """And a heavy rotor does not make friction weaker."""

    def fallen(**errors: float) -> float:
        return float(np.abs(TWO_LINKS.moved(np.zeros(2), 100, **errors).q - Q).max())

    assert fallen(joint_friction=50.0) < 0.1 * fallen()
    assert fallen(joint_damping=10.0) < 0.5 * fallen()
    rotor = {"joint_armature": 1.0}
    assert fallen(joint_friction=50.0, **rotor) < 0.1 * fallen(**rotor)


@pytest.mark.parametrize("rotor", [0.0, 0.3])
@each_arm
def test_torque_accelerates_as_the_model_says(small: SmallArm, rotor: float) -> None:
    """The rotors are those of the model; followers have none."""
    model = RobotModel.from_urdf_string(small.urdf)
    model.armature = np.full(2, rotor)
    torque, a = small.hold + np.array([8.0, -3.0]), np.zeros(2)
    forward_dynamics(model, Workspace(model), small.q, np.zeros(2), torque, a)
    arm = small.made(1e-6, joint_armature=rotor)
    arm.step(torque)
    np.testing.assert_allclose(arm.v, 1e-6 * a, rtol=1e-4)


def test_friction_of_the_urdf_does_not_act() -> None:
    """The arm has the friction that its parameters give it, whatever the controller's model has."""
    tags = '<dynamics damping="50" friction="50"/></joint>'
    rubbing = SmallArm(URDF.replace("</joint>", tags), START)
    free = TWO_LINKS.moved(np.zeros(2), 50)
    np.testing.assert_array_equal(rubbing.moved(np.zeros(2), 50).q, free.q)


@each_arm
def test_strong_damping_is_stable_and_the_unstable_an_error(small, tmp_path, monkeypatch) -> None:
    assert np.abs(small.moved(np.zeros(2), 200, joint_damping=500.0).v).max() < 0.1
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log file where it runs
    with pytest.raises(SimulationError, match="unstable"), np.errstate(all="ignore"):
        small.moved(np.full(2, 1e30), 10)


def test_initial_positions_are_checked() -> None:
    with pytest.raises(SimulationError, match=r"'wrist'.*those are shoulder, elbow"):
        MujocoArm(URDF, MODEL, 0.001, {"wrist": 0.0})
    with pytest.raises(SimulationError, match=r"initial_positions\.elbow is 4.*-3 to 3"):
        MujocoArm(URDF, MODEL, 0.001, {"elbow": 4.0})


@pytest.mark.parametrize("kind", ["floating", "planar"])
def test_joint_of_several_degrees_of_freedom_is_named(kind: str) -> None:
    joints = joint("j", "base", "a", kind), joint("k", "a", "b")
    urdf = robot(link("base"), link("a"), link("b"), *joints)
    with pytest.raises(SimulationError, match="j has more than one degree of freedom"):
        MujocoArm(urdf, RobotModel.from_urdf_string(urdf), 0.001)
    MujocoArm(urdf, RobotModel.from_urdf_string(urdf, ["k"]), 0.001).step(np.zeros(1))


def test_every_robot_of_example_robot_data_loads_and_starts_within_its_limits() -> None:
    for path in example_robots():
        if path.stem == "ur3":
            continue  # its <robot> has no name, which urdf_parser_py requires
        model = load_quietly(path)
        if model.nv:
            arm = MujocoArm(path.read_bytes(), model, 0.001)
            assert ((model.lower <= arm.q) & (arm.q <= model.upper)).all(), path
            arm.step(np.zeros(model.nv))
            assert np.isfinite(arm.q).all(), path


WITH_TAG = [path for path in example_robots() if b"<mimic" in path.read_bytes()]
ROBOTS = [path for path in WITH_TAG if load_quietly(path).mimic_joints]


def coupled(xml: str | bytes, model: RobotModel, q: np.ndarray) -> CoupledJoints:
    physics = mujoco.MjModel.from_xml_string(urdf_for_mujoco(xml, model, ModelErrors()))
    physics.opt.gravity[:] = model.gravity
    physics.opt.timestep, physics.opt.integrator = 0.001, mujoco.mjtIntegrator.mjINT_RK4
    return CoupledJoints(physics, model, q)


def compare(xml: str | bytes, model: RobotModel, tolerance: float) -> None:
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


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_every_example_robot_with_mimic_joints_agrees(path: Path) -> None:
    assert {"panda", "pr2", "romeo"} <= {path.stem for path in ROBOTS}
    raw = load_quietly(path)
    # MuJoCo refuses inertias that no body has: both get the nearest possible ones.
    root = ET.fromstring(path.read_bytes())
    mend_inertias(root)
    xml = ET.tostring(root)
    compare(xml, RobotModel.from_urdf_string(xml), 1e-9)
    q, ws, zero = raw.random(np.random.default_rng(4)), Workspace(raw), np.zeros(raw.nv)
    _, bias = coupled(path.read_bytes(), raw, q).equations(q, zero)
    np.testing.assert_allclose(gravity(raw, ws, q, zero.copy()), bias, atol=1e-9 * raw.total_mass)


@pytest.mark.parametrize("seed", range(4))
def test_random_trees_with_followers_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = ET.fromstring(random_tree(seed, 9))
    moving = [element for element in tree.iter("joint") if element.get("type") != "fixed"]
    for leader, follower in zip(moving[:-1:2], moving[1::2], strict=False):
        ratio, offset = rng.uniform(-2.0, 2.0, 2)
        how = {"multiplier": f"{ratio}", "offset": f"{offset}"}
        ET.SubElement(follower, "mimic", joint=leader.get("name"), **how)
    xml = ET.tostring(tree, encoding="unicode")
    model = RobotModel.from_urdf_string(xml)
    assert model.mimic_joints
    compare(xml, model, 1e-12)


@pytest.mark.parametrize("steps", [60, 300])
def test_without_followers_it_moves_as_mujoco_moves_it(steps: int) -> None:
    """Exactly; nearly so once it is at a stop, as MuJoCo estimates the inertia felt there."""
    start = {**GRIPPER.start, "left_jaw": 0.4, "right_jaw": -0.1}
    model = RobotModel.from_urdf_string(GRIPPER.urdf, list(start))
    theirs = MujocoArm(GRIPPER.urdf, model, 0.001, start)
    ours = coupled(GRIPPER.urdf, model, theirs.q)
    torque = np.array([3.0, 9.0, 0.2, -0.1])
    slid = 0.0
    for _ in range(steps):
        theirs.step(torque)
        ours.step(torque)
        slid = max(slid, theirs.q[1])
    assert np.abs(theirs.v).max() > 0.5
    assert ours.data.time == pytest.approx(theirs.time)
    assert (slid > model.upper[1]) == (steps == 300)
    np.testing.assert_allclose(ours.q, theirs.q, rtol=0.0, atol=1e-12 if steps == 60 else 0.01)


@pytest.mark.parametrize("damping", [0.0, 5.0])
def test_stops_are_those_of_the_leader(damping: float) -> None:
    arm = GRIPPER.moved(GRIPPER.hold + np.array([0.0, 50.0]), 1500, joint_damping=damping)
    assert 0.2 < arm.q[1] < 0.25
    assert abs(arm.v[1]) < 0.05


def test_friction_of_followers_is_borne_by_the_leader() -> None:
    """5 N at the leader, and 5 Nm at each jaw by its ratio of 3 and 1.5: 27.5 N hold still."""

    def slid(force: float, friction: float) -> float:
        arm = GRIPPER.moved(GRIPPER.hold + np.array([0.0, force]), 100, joint_friction=friction)
        return float(arm.q[1] - 0.05)

    # Friction creeps, as MuJoCo's does.
    assert 0.0 < slid(26.0, 5.0) < 0.1 * slid(26.0, 0.0)
    assert slid(26.0, 4.0) > 3.0 * slid(26.0, 5.0)  # 22 N do not hold it


def test_follower_of_a_locked_leader_stays_where_that_puts_it() -> None:
    locked = {"slide": 0.1}
    model = RobotModel.from_urdf_string(GRIPPER.urdf, ["shoulder"], locked)
    arm = MujocoArm(GRIPPER.urdf, model, 0.001, {"shoulder": 0.3})
    torque = holding_torque(model, arm.q)
    for _ in range(50):
        arm.step(torque)
    np.testing.assert_allclose(arm.q, [0.3], atol=1e-12)
