"""A configuration of config/robots with a description of its robot, in MuJoCo, without ROS."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from ament_index_python.packages import get_package_share_directory
from robots import example_robot

from rnea_control.control import (
    Controller,
    Motion,
    MotionRequest,
    Supervisor,
    Waypoint,
    Waypoints,
)
from rnea_control.model import RobotModel
from rnea_control.node.parameters import PARAMETERS
from rnea_control.node.settings import in_force, supervision_settings
from rnea_control.ros.parameter_files import section_of
from rnea_control.ros.parameter_table import GivenParameters, expand
from rnea_control.ros.robot_parameters import LOCKED_POSITION
from rnea_control.ros.robot_settings import load_model, update_model
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
SETTLING = 3.0  # MuJoCo's friction lets joints creep, [s]


def written(configuration: str) -> dict[str, Any]:
    """The parameters of a file by full name, as they stand there."""
    path = FOLDER / f"{configuration}.yaml"
    return section_of("/rnea_controller", ["--params-file", str(path)])


def given(configuration: str) -> GivenParameters:
    """The parameters of a file, as the node has them."""
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
    """A configuration and a description that it is for.

    Attributes:
        configuration: its name in config/robots.
        name: of the description.
        start: where the arm begins, [rad].
        rate: states per second by the driver, [Hz].
        compensates: whether the robot adds the gravity torque, whatever the file says.
    """

    configuration: str
    name: str
    start: tuple[float, ...]
    rate: float
    compensates: bool

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
        """The model as the node makes it."""
        parameters = self.parameters
        model = load_model(parameters, parameters["joints"], list(self.locked), self.xml)
        update_model(parameters, model)
        return model


class Hardware(MujocoArm):
    """An arm in MuJoCo with what firmware and drives add: gravity compensation by the robot's own
    model, rotors, friction, and a torque that acts a period late.

    Attributes:
        compensates: whether the firmware adds the gravity torque.
    """

    def __init__(self, *args, compensates: bool, rotors, friction, **kwargs) -> None:
        super().__init__(*args, **kwargs)
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

    Args:
        robot: what is tried.
        errors: how the arm differs from the description.
        rotors: factor on the inertia of the rotors, unknown to the controller.
        friction: whether the joints have any, unknown to the controller too.

    Attributes:
        arm: the robot.
        start: where it began, [rad].
        furthest: how far it has been from where it should be, [rad].
    """

    def __init__(
        self,
        robot: Robot,
        errors: ModelErrors | None = None,
        rotors: float = 1.0,
        friction: bool = False,
    ) -> None:
        self.model, parameters = robot.model(), robot.parameters
        model = self.model
        given = in_force(parameters, model)
        self.controller = Controller(given.model, given.controller)
        self.supervisor = Supervisor(
            self.controller,
            supervision_settings(parameters),
            given.observer,
        )
        rotor = np.where(model.armature > 0.0, model.armature, UNKNOWN_ROTOR)
        limit = self.controller.effort_limit / parameters["effort_limit_scale"]
        rubs = np.maximum(model.friction, LEAST_FRICTION * limit)
        simulated = robot.configuration == "simulated_panda"  # has neither
        self.period = 1.0 / robot.rate
        self.arm = Hardware(
            robot.xml,
            model,
            self.period,
            dict(zip(model.joint_names, robot.start, strict=True)),
            robot.locked,
            errors,
            compensates=robot.compensates,
            rotors=0.0 if simulated else rotors * rotor,
            friction=rubs if friction else 0.0,
        )
        self.start = np.array(robot.start)
        self.furthest = 0.0
        self._t, self._tau = 10.0, np.zeros(model.nv)
        self.supervisor.activate()

    def run(self, duration: float) -> None:
        """Answers the states of a while."""
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

    def move(self) -> Motion:
        """Every joint there and back, by turns in either direction."""
        way = SWING * (-1.0) ** np.arange(self.model.nv)
        room = np.minimum(self.model.upper - self.start, self.start - self.model.lower)
        way = np.clip(way, -0.8 * room, 0.8 * room)
        zero = np.zeros(self.model.nv)
        points = [
            Waypoint(LEG, self.start + way, zero, zero),
            Waypoint(2.0 * LEG, self.start, zero, zero),
        ]
        request = MotionRequest(Waypoints.of(points, self.model.nv))
        plan = self.controller.plan(request, self.supervisor.situation(self._t), 0.0)
        assert self.supervisor.adopt(plan)
        self.run(2.0 * LEG + SETTLING)
        return plan.motion
