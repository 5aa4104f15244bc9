"""Whatever is asked of a controller, in whatever order: the desired motion never steps, and every
motion ends once.

Each case is a second or two of ticks with random trajectories, replacements, cancels, scalings and
disturbances. `PROPERTY_CASES=10000 pytest test/control/test_trajectory_property.py` runs that many.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from continuity import MotionCheck
from random_requests import RandomRequests, three_joints

from rnea_control.control import (
    Act,
    ControlLaw,
    Controller,
    ControllerSettings,
    EndKind,
    ExcessiveEffort,
    Gains,
    Tolerances,
    TrajectorySettings,
)
from rnea_control.exceptions import TrajectoryError

CASES = int(os.environ.get("PROPERTY_CASES", "200"))
BLOCKS = 50

MODEL = three_joints(((60, 10), (100, 10), (30, 10)))
NV = MODEL.nv


class Case:
    """One random run.

    Attributes:
        planned, refused: how many trajectories were.
    """

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.controller = Controller(MODEL, self._settings())
        self.requests = RandomRequests(rng, NV)
        self.t = float(rng.choice([0.0, 1.0e3, 1.7e9]))
        self.rate = float(rng.choice([0.7, 2.0, 100.0]))
        self.planned = self.refused = 0
        self.pending: list[tuple] = []
        self.pushed = 0
        self.push = np.zeros(NV)
        q = rng.uniform(-1.5, 1.5, NV)
        q[1] *= 10.0
        self.controller.hold(self.t, q)
        self.check = MotionCheck(self.controller, MODEL.continuous, self.t)

    def _settings(self) -> ControllerSettings:
        rng = self.rng
        path = np.where(rng.random(NV) < 0.5, 0.05, math.inf)
        goal = np.where(rng.random(NV) < 0.5, 0.01, math.inf)
        none = np.full(NV, math.inf)
        rules = TrajectorySettings(
            Tolerances(path, none, goal, none, float(rng.choice([0.02, math.inf]))),
            rng.choice([math.inf, 2.0, 20.0], NV),
            allow_moving_end=True,
            allow_integration=True,
            start_from_desired_state=bool(rng.random() < 0.9),
            upsample_positions=bool(rng.random() < 0.5),
            excessive_effort=rng.choice(list(ExcessiveEffort)),
        )
        law = ControlLaw.computed_torque if rng.random() < 0.5 else ControlLaw.feedforward_pd
        return ControllerSettings(Gains.uniform(NV, 100.0, 20.0), law, trajectories=rules)

    def run(self, step: Callable[[Case, np.ndarray, np.ndarray], None]) -> None:
        for dt in self._tick_lengths():
            self._events(dt)
            self.t += dt
            q, v = self._measured(dt)
            step(self, q, v)
        self.controller.finish("the case is over")
        # Each motion that was ever followed has ended once, and all others never.
        self.check.assert_ended()

    def _tick_lengths(self) -> Iterator[float]:
        left = self.rng.uniform(1.0, 3.0)
        while left > 0.0:
            dt = self.rng.uniform(0.0005, 0.015)
            if self.rng.random() < 0.02:
                dt = float(self.rng.choice([0.0, 0.1]))
            left -= dt
            yield dt

    def _measured(self, dt: float) -> tuple[np.ndarray, np.ndarray]:
        rng, (q, v) = self.rng, self.controller.desired[:2]
        self.pushed -= 1
        motion, s = self.controller.motion, self.controller.trajectory_time
        near_end = motion is not None and abs(s - motion.end) < 0.05
        if rng.random() < (0.1 if near_end else 0.002):
            self.pushed = int(rng.integers(1, 30))
            self.push = (0.04 if near_end else 0.3) * rng.uniform(-1.0, 1.0, NV)
        away = self.push if self.pushed > 0 else 0.0
        turn = 2.0 * math.pi * rng.integers(-1, 2) * MODEL.continuous
        noise = 1e-4 * rng.standard_normal((2, NV))
        return q + v * dt + noise[0] + away + turn, v + noise[1]

    def _events(self, dt: float) -> None:
        rng, c = self.rng, self.controller
        if rng.random() < self.rate * dt:
            self._plan()
        self.pending = [(*plan, wait - 1) for *plan, wait in self.pending]
        for *plan, wait in self.pending:
            if wait < 0:
                self.check.adopt(*plan)
        self.pending = [plan for plan in self.pending if plan[-1] >= 0]
        if rng.random() < 0.005:
            self.check.changing(lambda: c.finish("cancelled", Act.BRAKES, EndKind.CANCELLED))
        if rng.random() < 0.01:
            c.speed_scaling = float(rng.choice([0.0, 1.0, rng.uniform()]))
        if rng.random() < 0.005:
            c.settings = self._settings()
        if rng.random() < 0.001:
            c.finish("dropped")

    def _plan(self) -> None:
        c, rng = self.controller, self.rng
        request = self.check.counted(self.requests.draw(self.t, c.desired[0]))
        situation, settings = c.situation(self.t), c.settings
        lead = float(rng.choice([0.0, 0.005, 0.03]))
        self.planned += 1
        try:
            plan = c.plan(request, situation, lead)
        except TrajectoryError:
            self.refused += 1
            return
        wait = int(rng.integers(3)) if lead > 0.0 else 0
        self.pending.append((plan, request, situation, settings.trajectories, lead, wait))


def checked_step(case: Case, q: np.ndarray, v: np.ndarray) -> None:
    tau = np.full(NV, math.nan)
    case.check.step(case.t, q, v, tau)
    assert (np.abs(tau) <= case.controller.effort_limit).all()


@pytest.fixture(scope="module")
def seen() -> Iterator[Counter[str]]:
    """What all cases together have met, which must be all that there is."""
    counter: Counter[str] = Counter()
    yield counter
    assert 0 < counter.pop("refused") < 0.5 * counter.pop("planned")
    assert set(counter) == {kind.name for kind in EndKind}


@pytest.mark.parametrize("block", range(BLOCKS))
def test_desired_motion_never_steps_and_every_motion_ends_once(
    block: int, seen: Counter[str]
) -> None:
    for seed in range(block * CASES // BLOCKS, (block + 1) * CASES // BLOCKS):
        case = Case(seed)
        try:
            case.run(checked_step)
        except Exception as error:
            raise AssertionError(f"case {seed}, at {case.t}: {error}") from error
        seen.update(kind.name for kind in case.check.kinds)
        seen.update(planned=case.planned, refused=case.refused)
