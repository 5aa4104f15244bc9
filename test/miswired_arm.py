"""A Panda in MuJoCo between which and its controller something is wrong: with wires, units,
sensors, brakes, friction, or the model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import mujoco
import numpy as np
from default_safety import default_safety, default_supervision
from robots import example_robot, panda

from rnea_control.control import (
    Controller,
    ControllerSettings,
    Gains,
    Mode,
    MotionRequest,
    Supervisor,
    Waypoint,
    Waypoints,
)
from rnea_control.control.arm_answer import Answer
from rnea_control.control.controller import Recorded
from rnea_control.dynamics import Workspace
from rnea_control.dynamics import gravity as gravity_torque
from rnea_control.simulation.mujoco_arm import MujocoArm
from rnea_control.simulation.urdf_for_mujoco import ModelErrors

PERIOD = 0.001
START = np.array([0.0, -0.8, 0.3, -2.3, 0.2, 1.6, 0.8])
GOAL = START + np.array([0.4, 0.3, -0.4, 0.3, 0.5, -0.4, 0.6])
ROTORS = 0.1  # inertia of all rotors, which the model knows [kg m^2]
FRICTION = np.array([0.3, 0.3, 0.3, 0.3, 0.2, 0.2, 0.2])  # of a right arm [Nm]
ORDINARY = ModelErrors(joint_armature=ROTORS)
STANDS = 2e-3  # velocity below which a joint may stick [rad/s]
JOINTS = panda().joint_names

Rows = Callable[[np.ndarray], np.ndarray]


@cache
def _xml() -> str:
    return example_robot("panda").read_text(encoding="utf-8")


def reversed_at(*joints: int) -> Rows:
    """Values of some joints with the other sign."""
    return scaled(-1.0, *joints)


def scaled(factor: float, *joints: int) -> Rows:
    """Values of some joints, or without any of all, times a factor."""
    factors = np.ones(len(START))
    factors[list(joints) if joints else slice(None)] = factor
    return lambda values: factors * values


def exchanged(i: int, j: int) -> Rows:
    """Values of two joints, each in the other one's place."""
    order = np.arange(len(START))
    order[[i, j]] = j, i
    return lambda values: values[order]


class MiswiredArm:
    """The arm and its supervised controller, which believes what the URDF says; every period the
    arm gets the answer to its last state.

    Args:
        torques: what becomes of commands, shape (7,).
        positions, velocities: what becomes of the states.
        late: periods by which torques are late.
        adds_gravity: whether the hardware adds the gravity torque.
        gravity: where the arm really hangs [m/s^2].
        friction: Coulomb friction of the joints [Nm].
        errors: of the model.
        noise: standard deviation of that of the velocities [rad/s].
        check: `activation.check`.
        dead_time: what the controller is told of late torques [s].

    Attributes:
        sticks: torque that a joint at rest needs to move; infinity where its brake is closed [Nm].
        force: on the tool, in the world frame [N].
        changes: of the mode: old, new, reason.
    """

    def __init__(
        self,
        torques: Rows | None = None,
        positions: Rows | None = None,
        velocities: Rows | None = None,
        late: int = 0,
        adds_gravity: bool = False,
        gravity: tuple[float, float, float] | None = None,
        friction: np.ndarray = FRICTION,
        errors: ModelErrors = ORDINARY,
        noise: float = 0.0,
        check: str = "off",
        power_down: str = "zero",
        dead_time: float = 0.0,
    ) -> None:
        self.model = panda()
        self.model.armature = np.full(7, ROTORS)
        self._torques, self._positions, self._velocities = torques, positions, velocities
        start = dict(zip(JOINTS, START, strict=True))
        self._arm = MujocoArm(_xml(), self.model, PERIOD, start, errors)
        self._physics, self._data = self._arm._physics, self._arm._data
        self._at = self._arm._velocity_index
        self._physics.dof_frictionloss[self._at] = friction
        if gravity is not None:
            self._physics.opt.gravity[:] = gravity
        self._still = mujoco.MjData(self._physics) if adds_gravity else None
        self._tool = self._physics.body(self.model.child_links[-1]).id
        held = gravity_torque(self.model, Workspace(self.model), START, np.zeros(7))
        self._coming = deque([held] * late)  # somebody has held it until now
        self._noise, self._rng = noise, np.random.default_rng(3)
        self.sticks, self.force = np.zeros(7), np.zeros(3)
        self.changes: list[tuple[Mode, Mode, str]] = []
        gains = Gains.uniform(7, 100.0, 20.0)
        settings = ControllerSettings(gains, safety=default_safety(self.model), dead_time=dead_time)
        self.controller = Controller(self.model, settings)
        asked = replace(default_supervision(), activation_check=check, power_down=power_down)
        self.supervisor = Supervisor(
            self.controller, asked, lambda *change: self.changes.append(change)
        )
        self.t, self.tau = 10.0, np.zeros(7)
        self.supervisor.activate()

    @property
    def mode(self) -> Mode:
        return self.supervisor.mode

    @property
    def q(self) -> np.ndarray:
        return self._arm.q

    @property
    def v(self) -> np.ndarray:
        return self._arm.v

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """What is measured."""
        q, v = self.q, self.v + self._noise * self._rng.standard_normal(7)
        q = self._positions(q) if self._positions else q
        return q, self._velocities(v) if self._velocities else v

    def tick(self) -> None:
        """Answers a state, and lets a period pass."""
        self.supervisor.answer(self.t, *self.state(), self.tau)
        self.wait()

    def wait(self, seconds: float = PERIOD) -> None:
        """Lets the last command act on; without a state."""
        for _ in range(round(seconds / PERIOD)):
            self._coming.append(self.tau.copy())
            torque = self._coming.popleft()
            torque = self._torques(torque) if self._torques else torque
            torque = np.clip(torque, -self.model.effort_limit, self.model.effort_limit)
            if self._still is not None:
                self._still.qpos[:] = self._data.qpos
                mujoco.mj_forward(self._physics, self._still)
                torque = torque + self._still.qfrc_bias[self._at]
            self._data.xfrc_applied[self._tool, :3] = self.force
            sticks = self._sticking(torque)
            place = self._data.qpos[sticks].copy()
            self._arm.step(torque)
            if len(sticks):
                self._hold(sticks, place)
            self.t += PERIOD

    def _sticking(self, torque: np.ndarray) -> np.ndarray:
        """The joints that stay where they are."""
        if not self.sticks.any():
            return self._at[:0]
        mujoco.mj_forward(self._physics, self._data)
        driving = np.abs(torque - self._data.qfrc_bias[self._at])
        return self._at[(driving < self.sticks) & (np.abs(self.v) < STANDS)]

    def _hold(self, joints: np.ndarray, place: np.ndarray) -> None:
        """Stops joints by torques at these, which act on all others through the arm."""
        matrix, v = np.zeros((7, 7)), self._data.qvel
        for row, column in zip(matrix, np.eye(7), strict=True):
            mujoco.mj_mulM(self._physics, self._data, row, column)
        answers = np.linalg.inv(matrix)[:, joints]
        v -= answers @ np.linalg.solve(answers[joints], v[joints])
        self._data.qpos[joints] = place

    def run(self, seconds: float) -> MiswiredArm:
        """Answers all states of a while."""
        for _ in range(round(seconds / PERIOD)):
            self.tick()
        return self

    def follow(self, seconds: float, goal: np.ndarray = GOAL) -> None:
        """Has the arm move to a goal."""
        zero = np.zeros(7)
        request = MotionRequest(Waypoints.of([Waypoint(seconds, goal, zero, zero)], 7))
        plan = self.controller.plan(request, self.supervisor.situation(self.t), 0.0)
        assert self.supervisor.adopt(plan)

    def rows(self, seconds: float = 0.4) -> Recorded:
        return self.controller.recorded(seconds)

    def answer(self, seconds: float = 0.4, delay: float = 0.0) -> Answer:
        """How it has moved of late."""
        return Answer.of(*self.rows(seconds), delay, False)
