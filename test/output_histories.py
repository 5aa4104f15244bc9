"""Random histories of a controller whose torques the output stage limits, and what must hold.

The bounds are written down here once more, from what SafetySettings says, not from the code of the
stages. `output_stage_mutants.py` breaks that code, stage by stage, to see that this notices.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from dataclasses import replace

import numpy as np
from random_requests import RandomRequests, three_joints

from rnea_control.control import (
    Act,
    ControlLaw,
    Controller,
    ControllerSettings,
    EndKind,
    Gains,
    SafetySettings,
    TrajectorySettings,
)
from rnea_control.control.belief import MOVING
from rnea_control.control.output_stage import LONGEST_RATE_STEP
from rnea_control.control.step import step
from rnea_control.dynamics import Workspace, gravity
from rnea_control.exceptions import ControllerError, TorqueError, TrajectoryError

MODEL = three_joints(((30, 4), (20, 5), (9, 3)), "prismatic", (0, 1, 1))
NV = MODEL.nv
UNTOUCHED = 12345.0
# What may happen between two steps, and how likely.
EVENTS = {"settings": 0.25, "model": 0.1, "follow": 0.25, "stop": 0.05, "catch": 0.1, "guide": 0.1}
EVENTS |= {"hold": 0.05, "start": 0.05, "scaling": 0.05}


class Broken(AssertionError):
    """A torque, or what a step left behind, is not as promised."""


class History:
    """One random run.

    Attributes:
        seen: what happened how often.
    """

    def __init__(self, seed: int, steps: int = 100) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.model = copy.deepcopy(MODEL)
        self.seen: Counter[str] = Counter()
        self._workspace, self._steps = Workspace(self.model), steps
        self._requests = RandomRequests(rng, NV)
        self.c = Controller(self.model, self._settings())
        self.t = float(rng.choice([0.0, 1.0e3, 1.7e9]))
        self.q, self.v = rng.uniform(-2.9, 2.9, NV), np.zeros(NV)
        # The torque in force, of `last_time`; where it was not known, the gravity torque is taken.
        self.last_time = self.t
        self.at_once = True  # the next torque belongs to the state that the controller started from
        self.astray = False  # a bad state was taken for a good one
        self.c.start(self.t, self.q)
        self.last = self.c.in_force.copy()

    # What is random.

    def _settings(self) -> ControllerSettings:
        rng = self.rng
        huge = rng.random() < 0.02

        def one_of(*values: float) -> float:
            return float(rng.choice(values))

        p = 1e307 if huge else one_of(0.0, 30.0, 3.0e3)
        gains = Gains.uniform(NV, p, one_of(0.0, 20.0), one_of(0.0, 50.0), one_of(1.0, math.inf))
        safety = SafetySettings(
            effort_limit=rng.choice([math.nan, 2.0, 15.0], NV),
            torque_rate_limit=rng.choice([50.0, 500.0, math.inf], NV),
            position_margin=rng.choice([0.0, 0.05, 0.5], NV),
            max_position_error=rng.choice([math.inf, rng.uniform(0.05, 1.0)], NV),
            limit_stiffness=one_of(100.0, 900.0),
            velocity_limit_scale=one_of(math.inf, 0.5, 1.0),
            saturation_timeout=one_of(math.inf, 0.03, 0.2),
            blend_time=one_of(0.0, 0.05),
            guiding_damping=one_of(0.0, 0.05, 1.0),
            check_jumps=bool(rng.random() < 0.5),
        )
        return ControllerSettings(
            gains,
            ControlLaw(rng.choice(5, p=[0.4, 0.2, 0.1, 0.1, 0.2])),
            one_of(1.0, 0.5, 0.05),
            bool(rng.random() < 0.2),
            bool(rng.random() < 0.3),
            replace(TrajectorySettings.default(NV), allow_integration=True, allow_moving_end=True),
            safety,
        )

    def run(self) -> None:
        """All its steps.

        Raises:
            Broken: a promise was not kept.
        """
        for _ in range(self._steps):
            self._event()
            self._advance()
            if self.rng.random() < 0.1:
                self._predict()
            else:
                self._measure()
        self.c.finish("the history is over")

    def _advance(self) -> None:
        """Time goes on, and the arm somewhere: after its desired state, driven, or pushed."""
        rng = self.rng
        if self.at_once:
            self.at_once = False
            return
        kind = rng.random()
        dt = float(rng.uniform(0.0005, 0.008))
        if kind < 0.03:
            dt = 0.0
        elif kind < 0.06:
            dt = float(rng.choice([0.03, 0.5]))
        self.t += dt
        desired, rate = self.c.desired[:2]
        if rng.random() < 0.03:
            self.v = rng.uniform(-5.0, 5.0, NV)
        elif rng.random() < 0.8 and np.isfinite(desired).all() and np.abs(desired).max() < 10.0:
            self.v = 0.9 * self.v + 0.1 * (rate + 10.0 * (desired - self.q))
        self.v = np.clip(self.v, -8.0, 8.0)
        self.q = np.clip(self.q + min(dt, 0.05) * self.v, -3.05, 3.05)

    def _event(self) -> None:
        rng, c = self.rng, self.c
        if rng.random() > 0.15:
            return
        kind = str(rng.choice(list(EVENTS), p=list(EVENTS.values())))
        self.seen[kind] += 1
        if kind == "settings":
            c.settings = self._settings()
        elif kind == "model":
            self.model.set_payload("three", float(rng.choice([0.0, 3.0])), (0.0, 0.1, 0.2))
            self.model.gravity = rng.uniform(-10.0, 10.0, 3)
            self.model.friction = rng.uniform(0.0, 2.0, NV)
            c.settings = c.settings
        elif kind == "follow":
            self._follow()
        elif kind == "stop":
            c.finish("stopped", Act.BRAKES, EndKind.CANCELLED)
        elif kind == "catch":
            c.finish("caught", Act.IS_CAUGHT, state=(self.t, self.q, self.v))
        elif kind == "guide":
            c.finish("guided", Act.IS_GUIDED)
        elif kind == "hold":
            c.hold(self.t, self.q)
        elif kind == "start":
            self.at_once = True
            c.in_force = rng.uniform(-10.0, 10.0, NV) if rng.random() < 0.5 else math.nan
            c.start(self.t, self.q)
            self.last, self.last_time = c.in_force.copy(), self.t
        else:
            c.speed_scaling = float(rng.choice([0.0, 0.3, 1.0]))

    def _follow(self) -> None:
        c = self.c
        request = self._requests.draw(self.t, np.nan_to_num(c.desired[0], posinf=0.0, neginf=0.0))
        try:
            situation = c.situation(self.t)
            c.adopt(c.plan(request, situation, 0.0))
        except TrajectoryError:
            self.seen["refused trajectory"] += 1

    # What must hold.

    def _measure(self) -> None:
        rng, c = self.rng, self.c
        q, v = self.q.copy(), self.v.copy()
        bad = rng.random() < 0.06
        if bad:
            row, value = (q, v)[rng.integers(2)], rng.choice([math.nan, math.inf, 1e308, 40.0])
            row[rng.integers(NV)] = value
        jump = bool(np.abs(q[[0, 2]]).max() == 40.0)
        safety, rows = c.settings.safety, c.snapshot().rows
        checked = safety.check_jumps and self.t >= rows.last_measured
        twin = self._without_limits(rows, q, v)
        tau = np.full(NV, UNTOUCHED)
        gave_way, told, motion = c.gave_way, c.time, c.motion
        starts = math.isnan(rows.blend_start)
        try:
            c.step(self.t, q, v, tau)
        except TorqueError:
            self.seen["no finite torque"] += 1
            self.astray = self.astray or bad
            self._check(tau, told, q, v)
            return
        except ControllerError:
            self.seen["refused state"] += 1
            self._require((tau == UNTOUCHED).all(), "a refused state has changed the torques")
            frozen = (q == rows.last_position).all() and np.abs(v).max() > MOVING
            self._require(bad or self.astray or frozen, "a good state was refused")
            self.astray = self.astray or bad  # one refused as frozen is remembered
            return
        was_astray, self.astray = self.astray, bad or (self.astray and checked)
        self._require(np.isfinite(q).all() and np.isfinite(v).all(), "a bad state was taken")
        noticeable = jump and checked and not was_astray
        seldom = self.t - rows.last_measured > 1.0
        self._require(seldom or not noticeable, "a jump was taken")
        self._check(tau, told, q, v)
        now = c.snapshot().rows
        blends = starts and safety.blend_time > 0.0 and np.isfinite(rows.command).all()
        if blends and np.abs(now.blend_offset).max() < 1e6:
            slow = np.abs(v) <= self.model.velocity_limit * safety.velocity_limit_scale
            same = np.allclose(now.torque[slow], rows.command[slow])
            self._require(same, "a step at the start")
            self.seen["blend"] += 1
        if not starts:  # then the torque in force is kept, whatever the limits ask for
            self._check_push(twin)
        ending = motion.ending if motion is not None else None
        if c.gave_way > gave_way or ending is None or ending.kind == EndKind.REACHED:
            self._check_giving_way(c.gave_way > gave_way, q)
        else:  # a tolerance of its goal has come first, and the arm brakes
            self.seen["tolerance violated"] += 1

    def _predict(self) -> None:
        tau, told = np.full(NV, UNTOUCHED), self.c.time
        try:
            self.c.predict(self.t, tau)
        except TorqueError:
            self.seen["no finite prediction"] += 1
        self.seen["prediction"] += 1
        self._check(tau, told)

    def _check(
        self, tau: np.ndarray, told: float, q: np.ndarray | None = None, v: np.ndarray | None = None
    ) -> None:
        """The bounds of each torque that leaves."""
        c, safety = self.c, self.c.settings.safety
        self._require(np.isfinite(tau).all(), "a torque is not finite")
        last, rate = self.last, safety.torque_rate_limit
        dt = min(self.t - self.last_time, LONGEST_RATE_STEP)
        change = np.where(np.isinf(rate), math.inf, np.nan_to_num(rate, posinf=0.0) * dt)
        rounding = 1e-9 + 1e-12 * np.abs(last)
        away = np.abs(tau - last)
        self._require((away <= change + rounding).all(), "faster than the rate limit")
        self.seen["rate limit"] += int((away > 0.999 * change).any())
        # A limit that was lowered is reached as fast as the rate allows; a controller that was told
        # the time since then, without a torque, allows for less.
        limit = self._effort_limit(safety)
        change = change if told == self.last_time else np.zeros(NV)
        delayed = np.abs(last) - change
        bound = np.maximum(limit, delayed)
        self._require((np.abs(tau) <= bound + 1e-9).all(), "beyond the effort limit")
        self.seen["effort limit"] += int((np.abs(tau) >= limit).any())
        if v is not None:
            fast = np.abs(v) > 1.1 * self.model.velocity_limit * safety.velocity_limit_scale
            self.seen["too fast"] += int(fast.any())
            held = self._holding(q)
            driven, late = np.sign(v) * (tau - held), np.sign(v) * (last - held) - change
            # The gravity torque itself may be beyond the effort limit.
            excessive = (driven > np.maximum(late, 0.0) + 1e-9) & fast & (np.abs(held) <= limit)
            self._require(not excessive.any(), "driven beyond the velocity")
        self.last, self.last_time = tau.copy(), self.t
        self._require(c.time == self.t, "time has not gone on")

    def _check_push(self, twin: tuple[np.ndarray, np.ndarray] | None) -> None:
        """A joint beyond a soft limit, or too fast, is pushed back or braked."""
        if twin is None:
            return
        rows = self.c.snapshot().rows
        pushed = rows.torque - twin[0]
        for j in np.nonzero(twin[1])[0]:
            self.seen["push"] += 1
            self._require(pushed[j] * twin[1][j] > 0.0, "not pushed back")

    def _without_limits(
        self, rows: np.ndarray, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """If just one joint must be pushed: the torques of a step without limits, and which joint
        is to be pushed where."""
        if not (np.abs([q, v]) <= 9.0).all():
            return None
        c, safety, model = self.c, self.c.settings.safety, self.model
        settings = c._settings_in_force.copy()
        settings.margin, settings.velocity_limit = 0.0, math.inf
        state, tau = rows.copy(), np.zeros(NV)
        arm = c.arm.array.copy()[0]
        step(arm, settings, c.arrays.tolerances, state, self.t, q, v, tau, False)
        margin = np.minimum(safety.position_margin, 0.1 * (model.upper - model.lower))
        where = np.zeros(NV)
        desired, rate = state.desired_position, state.desired_velocity
        if c.guided:
            desired, rate = np.zeros(NV), np.zeros(NV)
        for j in range(NV):
            if margin[j] > 0.0 and math.isfinite(model.upper[j]):
                lower, upper = model.lower[j] + margin[j], model.upper[j] - margin[j]
                outward = v[j] - (max(rate[j], 0.0) if desired[j] > upper else 0.0)
                inward = v[j] - (min(rate[j], 0.0) if desired[j] < lower else 0.0)
                if q[j] > max(upper, desired[j]) + 1e-6 and outward >= 0.0:
                    where[j] -= 1.0
                elif q[j] < min(lower, desired[j]) - 1e-6 and inward <= 0.0:
                    where[j] += 1.0
                elif not lower <= q[j] <= upper:
                    return None  # it may be pushed or not
            if abs(v[j]) > model.velocity_limit[j] * safety.velocity_limit_scale:
                where[j] -= np.sign(v[j])
        if np.count_nonzero(where) != 1 or not np.isfinite(state.torque).all():
            return None
        if np.abs(state.torque).max() > 1e6:
            return None  # where rounding hides the push
        return state.torque, where

    def _check_giving_way(self, gave_way: bool, q: np.ndarray) -> None:
        """The desired position is taken from the arm when it is too far off, or torque has been at
        its limit for too long."""
        c, safety = self.c, self.c.settings.safety
        rows = c.snapshot().rows
        off = (np.abs(rows.position_error) > safety.max_position_error).any()
        since = rows.saturated_since.max()
        if gave_way:
            self.seen["gave way"] += 1
            self._require(c.motion is None, "gave way, but goes on moving")
            desired = c.trajectory.at(c.trajectory_time)[0]
            self._require(np.allclose(desired, q), "gave way, but not to where the arm is")
        else:
            self._require(not off, "too far off, and does not give way")
            self._require(since <= safety.saturation_timeout, "presses on and on")

    def _effort_limit(self, safety: SafetySettings) -> np.ndarray:
        own = np.isnan(safety.effort_limit)
        limit = np.where(own, self.model.effort_limit, safety.effort_limit)
        return limit * self.c.settings.effort_limit_scale

    def _holding(self, q: np.ndarray) -> np.ndarray:
        settings = self.c.settings
        if settings.hardware_compensates_gravity or settings.control_law == ControlLaw.pd:
            return np.zeros(NV)
        tau = np.zeros(NV)
        try:
            return gravity(self.model, self._workspace, q, tau)
        except ControllerError:
            return tau

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise Broken(f"{what} (t = {self.t}, last torques {self.last})")


def run(seed: int) -> Counter[str]:
    """One history; what it met.

    Raises:
        Broken: a promise was not kept; it names the history.
    """
    history = History(seed)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            history.run()
    except Exception as error:
        raise Broken(f"history {seed}: {error!r}") from error
    return history.seen
