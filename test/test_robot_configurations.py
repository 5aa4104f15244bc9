"""The files of config/robots: only known parameters, and a robot in MuJoCo that holds and moves.

ROBOT_DESCRIPTIONS=FOLDER names a folder with descriptions that example-robot-data lacks, by the
names in `ROBOTS`, expanded from the makers' xacro (docs/robots.md says which).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from ament_index_python.packages import get_package_share_directory
from robots import example_robot

from rnea_control import control
from rnea_control.model import RobotModel
from rnea_control.node.parameters import PARAMETERS, in_force
from rnea_control.parameters.parameter import GivenParameters, expand
from rnea_control.parameters.settings import load_model, update_model
from rnea_control.parameters.table import LOCKED_POSITION
from rnea_control.ros.parameter_files import section_of
from rnea_control.simulation.mujoco_arm import MujocoArm
from rnea_control.simulation.urdf_for_mujoco import ModelErrors

FOLDER = Path(get_package_share_directory("rnea_control")) / "config" / "robots"
LOCKED = LOCKED_POSITION.name.partition("<")[0]

# What the simulation takes for a rotor's inertia that a configuration does not have, [kg m^2].
UNKNOWN_ROTOR = 0.1
# A part of the effort limits; more where a configuration or a description says so.
LEAST_FRICTION = 0.01

SWING = 0.3  # of every joint, [rad]
LEG = 2.0  # there, and back, [s]
CHECKED = 4.0  # longest time that the check of the wires takes, [s]
SETTLING = 3.0  # MuJoCo's friction lets joints creep, [s]


def written(configuration: str) -> dict[str, Any]:
    path = FOLDER / f"{configuration}.yaml"
    return section_of("/rnea_controller", ["--params-file", str(path)])


def given(configuration: str) -> GivenParameters:
    values = written(configuration)
    known = expand(PARAMETERS, values["joints"])
    known.update((name, LOCKED_POSITION) for name in values if name.startswith(LOCKED))
    return GivenParameters(values, known)


def description(name: str) -> str:
    """The text of a URDF: from the folder ROBOT_DESCRIPTIONS, or of example-robot-data."""
    folder = os.environ.get("ROBOT_DESCRIPTIONS")
    if folder and (path := Path(folder) / f"{name}.urdf").is_file():
        return path.read_text(encoding="utf-8")
    try:
        return example_robot(name).read_text(encoding="utf-8")
    except ValueError:
        pytest.skip(f"example-robot-data has no {name}; ROBOT_DESCRIPTIONS may name a folder")


@dataclass(frozen=True)
class Robot:
    """A configuration of config/robots and a description that it is for."""

    configuration: str
    name: str
    start: tuple[float, ...]  # [rad]
    rate: float  # states per second by the driver, [Hz]
    compensates: bool  # whether the robot adds the gravity torque, whatever the file says

    @cached_property
    def parameters(self) -> GivenParameters:
        return given(self.configuration)

    @cached_property
    def xml(self) -> str:
        return description(self.name)

    @cached_property
    def locked(self) -> dict[str, float]:
        values = written(self.configuration).items()
        return {name.removeprefix(LOCKED): v for name, v in values if name.startswith(LOCKED)}

    def model(self) -> RobotModel:
        parameters = self.parameters
        model = load_model(parameters, parameters["joints"], list(self.locked), self.xml)
        update_model(parameters, model)
        return model


class Hardware(MujocoArm):
    """An arm in MuJoCo with what firmware and drives add: gravity compensation by the robot's own
    model, rotors, friction, and a torque that acts a period late."""

    def __init__(self, xml, model, period, start, errors, compensates, rotors, friction):
        super().__init__(xml, model, period, start, errors)
        self.compensates = compensates
        self._physics.dof_armature[self._velocity_index] = rotors
        self._physics.dof_frictionloss[self._velocity_index] = friction
        self._at_rest = mujoco.MjData(self._physics)
        self._coming = np.zeros(len(self._velocity_index))

    def step(self, torque: np.ndarray) -> None:
        acting, self._coming = self._coming, torque.copy()
        if self.compensates:
            self._at_rest.qpos[:] = self._data.qpos
            mujoco.mj_forward(self._physics, self._at_rest)
            acting = acting + self._at_rest.qfrc_bias[self._velocity_index]
        super().step(acting)


class Bench:
    """A robot and its controller, state by state.

    The arm differs from the description by `errors`, a factor on the inertia of its `rotors` and
    friction, all unknown to the controller. It has been `furthest` from where it should be, [rad].
    """

    def __init__(self, robot: Robot, errors=None, rotors: float = 1.0, friction=False) -> None:
        self.model, parameters = robot.model(), robot.parameters
        model = self.model
        given = in_force(parameters, model)
        supervision = control.SupervisionSettings.of(given.values)
        self.controller = control.Controller(given.model, given.controller)
        self.supervisor = control.Supervisor(self.controller, supervision)
        rotor = np.where(model.armature > 0.0, model.armature, UNKNOWN_ROTOR)
        limit = self.controller.effort_limit / parameters["effort_limit_scale"]
        rubs = np.maximum(model.friction, LEAST_FRICTION * limit)
        simulated = robot.configuration == "simulated_panda"  # has neither
        start, self.period = dict(zip(model.joint_names, robot.start, strict=True)), 1 / robot.rate
        of_arm = robot.xml, model, self.period, start, errors, robot.compensates
        rotors = 0.0 if simulated else rotors * rotor
        self.arm = Hardware(*of_arm, rotors, rubs if friction else 0.0)
        self.start, self.furthest = np.array(robot.start), 0.0
        self._t, self._tau = 10.0, np.zeros(model.nv)
        self.supervisor.activate()

    def run(self, duration: float) -> None:
        limit, turns = self.controller.effort_limit * (1.0 + 1e-9), self.model.continuous
        for _ in range(round(duration / self.period)):
            # As drivers tell continuous joints.
            q = np.where(turns, (self.arm.q + np.pi) % (2.0 * np.pi) - np.pi, self.arm.q)
            self.supervisor.answer(self._t, q, self.arm.v, self._tau)
            assert np.isfinite(self._tau).all()
            assert (np.abs(self._tau) <= limit).all()
            error = np.abs(self.controller.position_error)
            self.furthest = max(self.furthest, float(error.max()))
            self.arm.step(self._tau)
            self._t += self.period

    def move(self) -> None:
        """Every joint there and back, by turns in either direction; it must arrive."""
        way = SWING * (-1.0) ** np.arange(self.model.nv)
        room = np.minimum(self.model.upper - self.start, self.start - self.model.lower)
        way = np.clip(way, -0.8 * room, 0.8 * room)
        zero = np.zeros(self.model.nv)
        ends = (LEG, self.start + way), (2.0 * LEG, self.start)
        points = [control.Waypoint(time, q, zero, zero) for time, q in ends]
        request = control.MotionRequest(control.Waypoints.of(points, self.model.nv))
        plan = self.controller.plan(request, self.supervisor.situation(self._t), 0.0)
        assert self.supervisor.adopt(plan)
        self.run(2.0 * LEG + SETTLING)
        ending = plan.motion.ending
        assert ending is not None and ending.kind is control.EndKind.REACHED, ending


FRANKA = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)
UR = (0.0, -1.2, 1.5, -1.8, -1.57, 0.0)
KUKA = (0.0, 0.6, 0.0, -1.2, 0.0, 0.9, 0.0)
KINOVA = (0.0, 0.26, 3.14, -2.27, 0.0, 0.96, 1.57)
OPENARM = (0.3, 0.3, 0.2, 1.0, 0.2, 0.2, 0.2)

ROBOTS = [
    Robot("simulated_panda", "panda", FRANKA, 1000.0, False),
    Robot("franka_fer", "panda", FRANKA, 1000.0, True),
    *(Robot("franka_fr3", name, FRANKA, 1000.0, True) for name in ("fr3", "fr3_hand")),
    *(
        Robot("ur_e_series", name, UR, 500.0, True)
        for name in ("ur5_robot", "ur3e", "ur5e", "ur10e", "ur16e")
    ),
    *(Robot("kuka_lbr", name, KUKA, 500.0, True) for name in ("iiwa7", "iiwa14", "med7", "med14")),
    *(Robot("kinova_gen3", name, KINOVA, 1000.0, False) for name in ("gen3", "gen3_2f85")),
    *(
        Robot("openarm", name, OPENARM, 500.0, False)
        for name in ("openarm", "openarm_without_hand")
    ),
]
CONFIGURATIONS = sorted(path.stem for path in FOLDER.glob("*.yaml"))
NEVER_RAN = "never ran on this hardware; loaded, holds gravity and tracks a motion in simulation"

each_robot = pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: f"{r.configuration}-{r.name}")


def test_every_configuration_has_a_robot() -> None:
    assert sorted({robot.configuration for robot in ROBOTS}) == CONFIGURATIONS


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_file_says_whether_it_ran_and_what_is_known_of_all_joints(configuration: str) -> None:
    first = (FOLDER / f"{configuration}.yaml").read_text(encoding="utf-8").splitlines()[0]
    expected = "never for a real Panda" if configuration == "simulated_panda" else NEVER_RAN
    assert first.startswith("# ") and expected in first
    parameters = given(configuration)
    assert parameters.unknown() == [] and parameters.faults() == []
    values = written(configuration)
    joints = set(values["joints"])
    said: dict[str, set[str]] = {}
    for name in values:
        for joint in joints & set(name.split(".")):
            said.setdefault(name.replace(joint, "<joint>"), set()).add(joint)
    assert said.keys() >= {"gains.<joint>.p", "gains.<joint>.d"}
    assert all(of == joints for of in said.values()), said


@each_robot
def test_holds_and_tracks(robot: Robot, report: Callable[[str], None]) -> None:
    """As described, but that torques act a period late, and that rotors of which nobody has
    published anything are there all the same."""
    bench = Bench(robot)
    bench.run(CHECKED)
    begin, bench.furthest = bench.arm.q.copy(), 0.0
    bench.run(2.0)
    held = float(np.abs(bench.arm.q - begin).max())
    assert not bench.supervisor.verdict.words
    assert bench.supervisor.mode is control.Mode.HOLDING, bench.supervisor.reason
    bench.move()
    report(
        f"{robot.configuration}, {robot.name}: holds within {1e3 * held:.2f} mrad, "
        f"tracks within {1e3 * bench.furthest:.2f} mrad"
    )
    assert held < 1e-3
    assert bench.furthest < 5e-3


@pytest.mark.parametrize("rotors", [0.2, 3.0])
@each_robot
def test_first_motion_of_an_arm_that_is_not_as_described(robot, rotors, report) -> None:
    """Masses a tenth off, other rotors, friction that nobody compensates: with soft gains the arm
    is off, but it arrives, nothing gives up, and it comes to rest."""
    if robot.configuration == "simulated_panda":
        pytest.skip("its arm is as described")
    bench = Bench(robot, ModelErrors(mass_scale=1.1), rotors=rotors, friction=True)
    bench.run(CHECKED + 2.0)
    assert not bench.supervisor.verdict.wrong
    bench.move()
    assert bench.controller.gave_way == 0, bench.controller.gave_way_reason
    speed = float(np.abs(bench.arm.v).max())
    report(
        f"{robot.configuration}, {robot.name}, rotors times {rotors}, masses and "
        f"friction off: tracks within {1e3 * bench.furthest:.0f} mrad"
    )
    assert bench.furthest < 0.15
    assert speed < 0.01
