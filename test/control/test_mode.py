"""The modes: the table of events is the only way, and every row of it is taken."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from controllers import ARM, JOINT_SPACE, to
from streamed_arm import StreamedArm
from supervised_arm import SupervisedArm, stiff_gains

from rnea_control.control import ControlLaw, Event, Mode, MotionRequest, Waypoints
from rnea_control.control.mode import FREE, SILENT, STOPPED, STREAMS, TAKES_TRAJECTORIES
from rnea_control.exceptions import ControllerError, TorqueError, TrajectoryError

WALKS = int(os.environ.get("PROPERTY_CASES", "300")) // 10
STEPS = 1200

# What an emergency stop that was not resumed, or a fault that was not reset, may be in.
LATCHED = {Mode.BLIND, Mode.WAITING, Mode.POWERLESS, *SILENT}
ALL = {(old, event.value.to) for event in Event for old in event.value.modes}
# By a law that holds no position, which follows no trajectory either.
AT_REST = {old for old, new in ALL if new is Mode.HOLDING} - {Mode.MOVING}
ALL |= {(old, Mode.GRAVITY_COMPENSATION) for old in AT_REST}
ALL |= {(old, new) for old, free in ALL if free in FREE and old not in FREE for new in STOPPED}
ALL = {(old, new) for old, new in ALL if old is not new}


def test_a_change_is_told_once() -> None:
    arm = SupervisedArm()
    arm.supervisor.activate()
    for _ in range(3):
        assert not arm.supervisor.answer(arm.t, np.full(2, math.nan), np.zeros(2), arm.tau)
    assert [change[2] for change in arm.changes] == [
        "for joint_states",
        "for joint_states that are finite",
    ]


class Walk:
    """Calls a supervisor with whatever comes, in whatever order."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        checks = {"activation_check": ("off", "warn", "refuse")[seed % 3]}
        self.arm = StreamedArm(observer=30.0, blend_time=0.0, supervision=checks)
        self.supervisor, self.controller = self.arm.supervisor, self.arm.controller
        self.plans: list = []
        self.motions: list = []
        self.stopped = self.failed = self.pressed = False
        self.calls = {name[3:]: getattr(self, name) for name in dir(self) if name[:3] == "do_"}
        self.calls |= {
            "refuse_state": lambda: self.supervisor.refuse_state("joint_states lack a joint"),
            "lose": lambda: self.supervisor.happen(Event.LOST, "the stamps jumped"),
            "hold": self.supervisor.hold,
            "guide": self.supervisor.guide,
            "deactivate": lambda: self.supervisor.happen(Event.DEACTIVATED, "told so"),
            "unheard": lambda: self.supervisor.hear_listeners(False, "nobody listens"),
            "guarded": lambda: self.supervisor.happen(Event.TAKEN_OVER, "the sentinel commands"),
            "take over": lambda: self.supervisor.take_over(*self.state, "it has gone"),
        }
        self.often = ["answer"] * 12 + ["gap", "run", "bad", "plan", "adopt", "law"] * 2
        self.often += ["follow", "activate", "heard", "targets"] * 4
        self.seen: set[tuple[Mode, Mode]] = set()

    @property
    def state(self) -> tuple[float, np.ndarray, np.ndarray]:
        return self.arm.t, self.arm.plant.q.copy(), self.arm.plant.v.copy()

    def run(self) -> None:
        names = [*self.often, *self.calls]
        for _ in range(STEPS):
            name = str(self.rng.choice(names))
            told = len(self.arm.changes)
            before = self.supervisor.mode
            with suppress(TrajectoryError, ControllerError):
                self.calls[name]()
            for old, new, _reason in self.arm.changes[told:]:
                assert old is before
                if old is not new:
                    assert (old, new) in ALL
                    self.seen.add((old, new))
                before = new
            assert self.supervisor.mode is before  # no change is kept back
            self.check(name)

    def check(self, name: str) -> None:
        mode = self.supervisor.mode
        if self.controller.has_trajectory and self.controller.motion is not None:
            assert mode is Mode.MOVING, name
        if mode is Mode.INACTIVE:
            self.failed = False
            self.stopped = self.pressed
        self.failed = self.failed or mode is Mode.FAULT
        if self.stopped:
            assert mode in LATCHED | {Mode.EMERGENCY_STOP}, name
        elif self.failed:
            assert mode in LATCHED | {Mode.FAULT}, name
        may = mode in STREAMS and not self.supervisor._ending
        try:
            self.supervisor.situation(self.arm.t, ends_stream=False)
        except TrajectoryError:
            assert not may
        else:
            assert may

    # States.

    def do_answer(self) -> None:
        self.feed(*self.state[1:])

    def do_run(self) -> None:
        for _ in range(int(self.rng.integers(1, 300))):
            self.do_answer()

    def do_slow(self) -> None:
        """States that come too seldom for a check of the wires."""
        for _ in range(20):
            self.arm.t += 0.009
            self.do_answer()

    def do_let_go(self) -> None:
        """While the arm moves or is checked, or now and then elsewhere."""
        moves = self.supervisor.mode in (
            Mode.CHECKING,
            Mode.MOVING,
            Mode.STREAMING,
            Mode.GRAVITY_COMPENSATION,
        )
        if moves or self.rng.random() < 0.1:
            self.supervisor.let_go("the sentinel has let go")

    def feed(self, q: np.ndarray, v: np.ndarray) -> None:
        mode, tau = self.supervisor.mode, np.full(2, 7.0)
        self.arm.tau = tau
        torque = False
        try:
            torque = self.supervisor.answer(self.arm.t, q, v, tau)
        except TorqueError:
            torque = True
            raise
        finally:
            self.arm.t += 0.001
            if torque:
                assert np.isfinite(tau).all()
                assert mode not in SILENT
                started = self.supervisor.mode is not Mode.WAITING
                assert mode is not Mode.WAITING or started or not self.supervisor.listening
                self.arm.plant.step(tau)
                self.bring_back()
            else:
                assert (tau == 7.0).all()

    def bring_back(self) -> None:
        """Somebody puts an arm that has fallen where it may start from."""
        plant = self.arm.plant
        if np.abs(plant.q).max() > 2.5 or np.abs(plant.v).max() > 3.0:
            plant.q, plant.v = self.rng.uniform(-1.0, 1.0, 2), np.zeros(2)

    def do_bad(self) -> None:
        _, q, v = self.state
        whole = slice(None)
        bad = [(q, 0, math.nan), (v, 1, math.inf), (q, whole, q + 1.0), (v, whole, v + 1.0)]
        array, joint, value = [*bad, (v, 0, 1e200)][self.rng.integers(5)]
        array[joint] = value
        for _ in range(int(self.rng.choice([1, 5, 12]))):
            with suppress(ControllerError):
                self.feed(q, v)

    def do_gap(self) -> None:
        missing = float(self.rng.choice([0.03, 0.09, 0.2]))
        mode, tau = self.supervisor.mode, np.full(2, 7.0)
        self.arm.t += missing
        self.supervisor.miss(missing)
        if self.supervisor.answer_gap(self.arm.t, tau):
            assert mode not in SILENT and mode is not Mode.WAITING
            assert np.isfinite(tau).all()
        else:
            assert (tau == 7.0).all()

    def do_push(self) -> None:
        self.arm.plant.push = self.rng.choice([0.0, 0.0, 100.0], 2)

    # Trajectories.

    def do_plan(self) -> None:
        situation, rng = self.supervisor.situation(self.arm.t), self.rng
        point = to(float(rng.uniform(0.5, 2.0)), *rng.uniform(-1.0, 1.0, 2))
        request = MotionRequest(Waypoints.of([point], 2))
        lead = float(rng.choice([0.0, 0.1]))
        self.plans.append(self.controller.plan(request, situation, lead))

    def do_adopt(self) -> None:
        if not self.plans:
            return
        plan = self.plans.pop()
        mode = self.supervisor.mode
        if self.supervisor.adopt(plan):
            assert mode in TAKES_TRAJECTORIES and self.supervisor.mode is Mode.MOVING
            self.motions.append(plan.motion)

    def do_targets(self) -> None:
        """Targets of a stream near the arm, which may end at once or go on."""
        for _ in range(int(self.rng.integers(1, 4))):
            here = self.controller.desired[0] + self.rng.normal(0.0, 0.05, 2)
            self.arm.send(here, velocity=self.rng.normal(0.0, 0.3, 2))
            self.do_answer()

    def do_follow(self) -> None:
        """A trajectory and the most that it takes to follow it, or less."""
        self.do_plan()
        self.do_adopt()
        self.arm.plant.push[:] = 0.0
        if self.rng.random() < 0.5:
            for _ in range(2200):
                self.do_answer()

    def do_cancel(self) -> None:
        if self.motions:
            self.supervisor.cancel(self.motions[-1])

    # Operator, operation and the other process.

    def do_resume(self) -> None:
        blind = self.supervisor.mode is Mode.BLIND  # then it believes a position, and ends no stop
        self.supervisor.resume()
        self.stopped = self.stopped and blind

    def do_reset_fault(self) -> None:
        self.supervisor.reset_fault()
        self.failed = False

    def do_press(self) -> None:
        self.supervisor.emergency_stop(True)
        self.stopped = self.pressed = True

    def do_release(self) -> None:
        self.supervisor.emergency_stop(False)
        self.pressed = False

    def do_fail(self) -> None:
        self.supervisor.fail("collision?", *self.state)
        self.failed = self.failed or self.supervisor.mode is not Mode.INACTIVE

    def do_activate(self) -> None:
        if self.supervisor.mode is Mode.POWERLESS:
            self.supervisor.happen(Event.DEACTIVATED, "told so")
            return
        if self.supervisor.mode is not Mode.INACTIVE:
            return
        if self.rng.random() < 0.3:
            law, old = ControlLaw(self.rng.integers(len(JOINT_SPACE))), self.controller.settings
            gains = stiff_gains(ARM, law, np.zeros(2))
            self.controller.settings = replace(old, gains=gains, control_law=law)
        self.supervisor.activate()

    def do_law(self) -> None:
        """Also in motion, where it is refused: the motion may begin after the question."""
        law, old = ControlLaw(self.rng.integers(len(JOINT_SPACE))), self.controller.settings
        other = replace(old, gains=stiff_gains(ARM, law, np.zeros(2)), control_law=law)
        moves = self.supervisor.mode in (Mode.MOVING, Mode.STREAMING)
        if moves or not self.supervisor.law_objection(law):
            self.supervisor.change(ARM, other)

    def do_end(self) -> None:
        if self.rng.random() < 0.1:
            self.supervisor.end("SIGINT")

    def do_heard(self) -> None:
        if not self.supervisor.listening or self.rng.random() < 0.1:
            self.supervisor.hear_listeners(True, "somebody listens")


@pytest.mark.parametrize("walks", [5, pytest.param(max(WALKS, 40), marks=pytest.mark.explores)])
def test_random_walks_take_transitions_of_the_table_only(walks: int) -> None:
    """And all of them, if there are many."""
    seen: set[tuple[Mode, Mode]] = set()
    for seed in range(walks):
        walk = Walk(seed)
        try:
            walk.run()
        except Exception as error:
            raise AssertionError(f"walk {seed}, in {walk.arm.mode}: {error!r}") from error
        seen |= walk.seen
    missing = sorted(f"{old.value} -> {new.value}" for old, new in ALL - seen)
    assert not missing or walks < 40, missing
