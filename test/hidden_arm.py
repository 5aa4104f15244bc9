"""An arm in lockstep whose rotors, friction, masses, noise and dead time are not those of its
controller's model."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numba import njit

from rnea_control.control import (
    Controller,
    ControllerSettings,
    Gains,
    MotionRequest,
    Waypoints,
)
from rnea_control.control.observer_margin import Delays, judge
from rnea_control.dynamics import Workspace, crba, nonlinear_effects
from rnea_control.identification.tuning.joint_experiment import BRACED
from rnea_control.identification.tuning.proposal import Proposal
from rnea_control.identification.tuning.response import Response
from rnea_control.identification.tuning.small_motion import FURTHEST, SmallMotion
from rnea_control.model import RobotModel
from rnea_control.parameters.table import DEFAULT, OBSERVER

SUBSTEP = 0.00025  # [s]
SETTLING = 3.0  # [s]
CENTERING = 1.0  # [s]
SWEEPS = 8  # over the friction of all joints


@njit(cache=False)
def _advance(inverse, bias, torque, damping, friction, v, h):
    """One step with Coulomb friction, which stops a joint but never drives it."""
    n = len(v)
    new = v + h * (inverse @ (torque - bias - damping * v))
    impulse = np.zeros(n)
    for _ in range(SWEEPS):
        for j in range(n):
            wanted = impulse[j] - new[j] / inverse[j, j]
            bounded = min(max(wanted, -h * friction[j]), h * friction[j])
            new += inverse[:, j] * (bounded - impulse[j])
            impulse[j] = bounded
    return new


def _in_force(value: float) -> float:
    """The same value, NaN for the default."""
    return math.nan if value == DEFAULT else value


class HiddenArm:
    """Args:
    model: the arm as its controller takes it.
    hidden: the arm as it is.
    q: where it begins, at rest.
    latency: time from a measurement until its torque is applied, which is held for a period, [s].
    noise: standard deviation of the velocities, [rad/s]; that of positions is 1e-5.
    settings: of the controller.
    period: of the states, [s].

    Attributes:
        dead_time: latency and half of the hold.
        furthest: largest distance of any joint from its start.
    """

    def __init__(
        self,
        model: RobotModel,
        hidden: RobotModel,
        q: np.ndarray,
        latency: float = 0.001,
        noise: float = 0.001,
        settings: ControllerSettings | None = None,
        period: float = 0.001,
        seed: int = 0,
    ) -> None:
        self.model, self.hidden, self.period = model, hidden, period
        self.latency, self.dead_time = latency, latency + 0.5 * period
        # Each is a copy.
        self._friction, self._damping = hidden.friction, hidden.damping
        self._offset = hidden.torque_offset
        self._noise, self._rng = noise, np.random.default_rng(seed)
        self.settings = settings or ControllerSettings(
            Gains.uniform(model.nv, 100.0, 20.0), dead_time=0.001
        )
        self.controller = Controller(model, self.settings)
        self.q, self.v, self.t = np.array(q, dtype=float), np.zeros(model.nv), 0.0
        self._workspace, self._M = Workspace(hidden), np.zeros((model.nv, model.nv))
        holding = nonlinear_effects(
            hidden, self._workspace, self.q, self.v, np.zeros(model.nv)
        ).copy()
        self._old = [holding] * (math.ceil(latency / period) + 1)
        self._held, self._is_centered = self.q.copy(), False
        self.controller.hold(0.0, self.q)
        self.controller.watch = 1  # the disturbance observer runs
        self.settle()

    def settle(self) -> None:
        """Waits until it has sagged, and begins there."""
        self._start = None
        self.wait(SETTLING)
        self._start, self.furthest = self.q.copy(), 0.0

    def step(self) -> tuple:
        """A state, the command that answers it, and the period after it."""
        nv = self.model.nv
        q = self.q + 1e-5 * self._rng.standard_normal(nv)
        v = self.v + self._noise * self._rng.standard_normal(nv)
        tau = np.zeros(nv)
        self.controller.step(self.t, q, v, tau)
        self._old = [*self._old[1:], tau]
        crba(self.hidden, self._workspace, self.q, self._M)
        inverse = np.linalg.inv(self._M)
        bias = nonlinear_effects(self.hidden, self._workspace, self.q, self.v, np.zeros(nv))
        bias = bias + self._offset
        count = round(self.period / SUBSTEP)
        whole, part = divmod(round(self.latency / SUBSTEP), count)
        for k in range(count):
            torque = self._old[-1 - whole - (1 if k < part else 0)]
            self.v = _advance(inverse, bias, torque, self._damping, self._friction, self.v, SUBSTEP)
            self.q = self.q + SUBSTEP * self.v
        if self._start is not None:
            self.furthest = max(self.furthest, float(np.abs(self.q - self._start).max()))
            assert self.furthest <= FURTHEST, f"it moved by {self.q - self._start}"
        row = (self.t, q, v, tau)
        self.t += self.period
        return row

    def wait(self, seconds: float) -> Response:
        begin = self.t
        rows = [self.step() for _ in range(round(seconds / self.period))]
        t, q, v, tau = map(np.array, zip(*rows, strict=True))
        return Response(t - begin, q, v, tau)

    # What `measure_joint` needs.

    def perform(self, motion: SmallMotion) -> Response:
        if not self._is_centered:
            self._follow(np.array([0.0, CENTERING]), np.stack([self._held, self._start]))
            self.wait(CENTERING)
            self._is_centered = True
        fields = np.zeros((4, len(motion.times), self.model.nv))
        fields[0] = self._start
        fields[0, :, motion.joint] += motion.position
        fields[1, :, motion.joint] = motion.velocity
        fields[2, :, motion.joint] = motion.acceleration
        fields[3] = motion.efforts(self.model.nv)
        self._follow(motion.times, *fields)
        return self.wait(motion.duration)

    def _follow(self, times: np.ndarray, *fields: np.ndarray) -> None:
        rows = np.zeros((4, len(times), self.model.nv))
        rows[: len(fields)] = fields
        points = Waypoints(
            times, rows, np.ones((4, len(times)), bool), np.ones(self.model.nv, bool)
        )
        plan = self.controller.plan(
            MotionRequest(points, self.t), self.controller.situation(self.t), 0.0
        )
        assert self.controller.adopt(plan)

    def brace(self, joint: int, armature: float) -> None:
        model = self.model.copy()
        rotors = model.armature.copy()
        rotors[joint] = armature
        model.armature = rotors
        self.model = model
        gains = self.settings.gains
        p, d = gains.p.copy(), gains.d.copy()
        p[joint], d[joint] = max(p[joint], BRACED**2), max(d[joint], 2.0 * BRACED)
        self.settings = replace(self.settings, gains=replace(gains, p=p, d=d))
        self.controller.change(model, self.settings)

    def apply(self, proposal: Proposal) -> None:
        """Sets a proposal, as rnea_tune does."""
        model, gains = self.model.copy(), self.settings.gains
        rows = {
            name: np.array(getattr(model, name)) for name in ("armature", "friction", "damping")
        }
        p, d = gains.p.copy(), gains.d.copy()
        told = np.zeros(model.nv)
        for name, each in proposal.joints.items():
            j = model.joint_names.index(name)
            p[j], d[j] = each.p, each.d
            told[j] = _in_force(each.feedback_inertia)
            found = each.armature, each.coulomb, each.damping
            for row, value in zip(rows.values(), found, strict=True):
                row[j] = value
        for name, row in rows.items():
            setattr(model, name, row)
        self.model = model
        self.settings = replace(
            self.settings,
            gains=replace(gains, p=p, d=d),
            dead_time=proposal.dead_time,
            friction_compensation=True,
            feedback_inertia=told,
            more={**self.settings.more, OBSERVER: _in_force(proposal.observer_bandwidth)},
        )
        delays = Delays(self.period, proposal.dead_time, proposal.dead_time)
        self.controller.change(model, self.settings)
        found = judge(model, self.settings, delays)
        self.controller.rows.bandwidth = found.bandwidth
        self.controller.rows.added_inertia = found.added_inertia
