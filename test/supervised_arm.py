"""A supervised controller and the arm that it moves, tick by tick, without ROS."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from controllers import ARM, to
from default_safety import default_safety, default_supervision
from plant import Plant

from rnea_control.control import (
    ControlLaw,
    Controller,
    ControllerSettings,
    Gains,
    Mode,
    Motion,
    MotionRequest,
    SupervisionSettings,
    Supervisor,
    Waypoints,
)
from rnea_control.dynamics import Workspace, crba
from rnea_control.model import RobotModel

PERIOD = 0.001
START = np.array([0.3, -0.5])


def stiff_gains(model: RobotModel, law: ControlLaw, q: np.ndarray) -> Gains:
    """Gains of the same closed loop, 400 1/s^2 and 40 1/s, in the units of the law."""
    inertia = np.ones(model.nv)
    if not law.feeds_back_acceleration:
        inertia = np.diag(crba(model, Workspace(model), q, np.zeros((model.nv, model.nv)))).copy()
    zero = np.zeros(model.nv)
    return Gains(400.0 * inertia, 40.0 * inertia, zero, inertia, -inertia)


class SupervisedArm:
    """An arm whose states are answered every millisecond; the settings are those of a node that was
    told nothing.

    Attributes:
        changes: of the mode: old, new, reason.
    """

    def __init__(
        self,
        law: ControlLaw = ControlLaw.computed_torque,
        observer: float = math.inf,
        model: RobotModel = ARM,
        q: np.ndarray = START,
        real: RobotModel | None = None,
        supervision: dict | None = None,
        **safety,
    ) -> None:
        self.changes: list[tuple[Mode, Mode, str]] = []
        if observer < math.inf:
            threshold = np.full(model.nv, observer)
            safety |= {"detects_collisions": True, "collision_threshold": threshold}
        limits = replace(default_safety(model), **safety)
        settings = ControllerSettings(stiff_gains(model, law, q), law, safety=limits)
        self.controller = Controller(model, settings)
        # Its wires are right; what checks them is told so.
        asked = {"activation_check": "off", **(supervision or {})}
        supervision_settings: SupervisionSettings = replace(default_supervision(), **asked)
        self.supervisor = Supervisor(
            self.controller,
            supervision_settings,
            lambda *change: self.changes.append(change),
        )
        self.plant = Plant(real or model, q)
        self.t, self.tau = 10.0, np.zeros(model.nv)
        self._last: tuple[float, np.ndarray] | None = None
        self._state_time = self.t

    @property
    def mode(self) -> Mode:
        return self.supervisor.mode

    def activate(self) -> SupervisedArm:
        """Activates, and lets the blend pass."""
        self.supervisor.activate()
        return self.run(0.6)

    def run(self, duration: float) -> SupervisedArm:
        """Answers all states of a while."""
        for _ in range(round(duration / PERIOD)):
            self.tick()
        return self

    def tick(self) -> bool:
        """Answers the present state, and lets a period pass; whether that was commanded."""
        commanded = self.supervisor.answer(
            self.t, self.plant.q.copy(), self.plant.v.copy(), self.tau
        )
        self._state_time = self.t
        self._note(commanded)
        self._pass()
        return commanded

    def lack(self, duration: float) -> SupervisedArm:
        """Lets a while pass without any state, as the node's watch does."""
        for _ in range(round(duration / PERIOD)):
            missing = self.t - self._state_time
            gap = missing > self.supervisor.settings.state_gap
            if gap and round(missing / PERIOD) % 2 == 0:
                self.supervisor.miss(missing)
                self._note(self.supervisor.answer_gap(self.t, self.tau))
            self._pass()
        return self

    def bad(self, q: np.ndarray, v: np.ndarray | None = None) -> None:
        """A state that is not that of the arm, and a period."""
        zero = np.zeros(len(q))
        try:
            self._note(self.supervisor.answer(self.t, q, zero if v is None else v, self.tau))
        finally:
            self._pass()

    def follow(self, *points: tuple[float, ...]) -> Motion:
        """Has a trajectory through (time, position...) followed from now on."""
        waypoints = Waypoints.of([to(*point) for point in points], self.controller.model.nv)
        situation = self.supervisor.situation(self.t)
        plan = self.controller.plan(MotionRequest(waypoints), situation, 0.0)
        assert self.supervisor.adopt(plan)
        return plan.motion

    @property
    def error(self) -> float:
        """How far the arm is from where it should be, [rad]."""
        return float(np.abs(self.controller.desired[0] - self.plant.q).max())

    @property
    def speed(self) -> float:
        return float(np.abs(self.plant.v).max())

    def _note(self, commanded: bool) -> None:
        if not commanded:
            return
        assert np.isfinite(self.tau).all()
        assert (np.abs(self.tau) <= self.controller.effort_limit).all()
        if self._last is not None:
            rate = self.controller.arrays.settings[0].torque_rate_limit
            least = float((np.abs(self.tau - self._last[1]) / rate).max())  # time that it takes
            assert least <= (self.t - self._last[0]) * (1.0 + 1e-6) + 1e-12
        self._last = self.t, self.tau.copy()

    def _pass(self) -> None:
        self.plant.step(self.tau, PERIOD)
        self.t += PERIOD
