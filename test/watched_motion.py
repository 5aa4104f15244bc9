"""An arm that moves as it is told, and the bounds of its motion state by state, without a control
law: what a joint does, what acts on it and what is measured are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from controllers import ARM
from default_safety import default_safety

from rnea_control.control import ControlLaw, Controller, ControllerSettings, Gains, layout
from rnea_control.control import motion_watch as bounds
from rnea_control.dynamics import Workspace, rnea
from rnea_control.model import RobotModel

SHOULDER, ELBOW = range(2)
START = np.array([0.3, -0.5])
SPEED, EFFORT = 10.0, 100.0  # velocity and effort limits of both joints [rad/s], [Nm]

Values = "float | np.ndarray | tuple[float, float] | Callable[[float], object]"


class Found(NamedTuple):
    """What a run has found: the kind of layout.py, how long after its begin [s], and what the rows
    of the finding say."""

    kind: int
    after: float
    joint: int
    value: float
    bound: float


def at_elbow(value: float) -> np.ndarray:
    """A value of the elbow, and 0 of the shoulder."""
    return np.array([0.0, value])


class WatchedMotion:
    """See the file; bounds are the defaults of the node.

    Args:
        law: of the controller.
        h: period of the states [s].
        model: the robot.
        safety: other bounds; by default no payload is allowed for that the model lacks.

    Attributes:
        q, v: the state of the arm, shape (nv,).
        arm, rows: see layout.py.
        rng: of the noise.
    """

    def __init__(
        self,
        law: ControlLaw = ControlLaw.computed_torque,
        h: float = 0.001,
        model: RobotModel = ARM,
        **safety: object,
    ) -> None:
        limits = replace(default_safety(model), **({"unmodeled_payload": 0.0} | safety))
        settings = ControllerSettings(Gains.uniform(model.nv, 0.0, 0.0), law, safety=limits)
        self.controller = Controller(model, settings)
        self.arm, self.rows = self.controller.arm, self.controller.rows
        self.settings = self.controller.arrays.settings
        self.arm.watch = bounds.FREE
        self.h, self.t, self.rng = h, 5.0, np.random.default_rng(0)
        self.q, self.v = START.copy(), np.zeros(model.nv)
        self._model, self._workspace = model, Workspace(model)
        self.expect_noise(0.0)
        self._watch(self.q, self.v, self.v)

    def run(
        self,
        seconds: float,
        velocity: Values = 0.0,
        external: Values = 0.0,
        desired: Values | None = None,
        measured: Callable[[int, np.ndarray, np.ndarray], object] = lambda k, q, v: (q, v),
        noise: float = 0.0,
    ) -> Found:
        """Lets the arm move until something is found.

        Args:
            seconds: at most.
            velocity: of the joints [rad/s], which may be a function of the time since the begin.
            external: torques on the joints [Nm].
            desired: desired velocities; by default those of the joints.
            measured: what becomes of each state.
            noise: standard deviation of that of the velocities [rad/s].
        """
        zero = np.zeros(self._model.nv)
        for k in range(round(seconds / self.h)):
            now = (k + 1) * self.h
            v, push, wanted = (
                zero + (each(now) if callable(each) else each)
                for each in (velocity, external, velocity if desired is None else desired)
            )
            middle = 0.5 * (v + self.v)
            q, a = self.q + 0.5 * self.h * middle, (v - self.v) / self.h
            torque = rnea(self._model, self._workspace, q, middle, a, np.zeros(len(q))) - push
            self.rows.last_command = self.rows.command = torque
            self.q, self.v, self.t = self.q + self.h * middle, v, self.t + self.h
            seen = measured(k, self.q.copy(), self.v + noise * self.rng.standard_normal(len(v)))
            kind = self._watch(*seen, wanted)
            if kind != layout.UNDER_WAY:
                rows = self.rows
                joint = int(rows.violating_joint)
                return Found(kind, now, joint, rows.violation, rows.violated_tolerance)
        return Found(layout.UNDER_WAY, seconds, -1, 0.0, 0.0)

    def expect_noise(self, velocity: float, residual: float = 0.0) -> None:
        """Tells the bounds of noise, [rad/s] and [Nm]."""
        self.rows.velocity_noise = velocity
        self.rows.residual_noise = residual

    @property
    def arresting(self) -> bool:
        return self.controller.arresting

    def _watch(self, q: np.ndarray, v: np.ndarray, desired: np.ndarray) -> int:
        self.rows.desired_velocity = desired
        self.rows.velocity_error = desired - v
        return bounds.watch(self.arm.array[0], self.settings[0], self.rows, self.t, q, v)
