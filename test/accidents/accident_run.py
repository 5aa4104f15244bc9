"""One accident: a supervised controller and an arm in MuJoCo, state by state, without ROS and
without a clock, so that each run is the same.

The controller answers states by the rules of the node (node/python_ticks.py), and a command acts a
period after the state that it answers. Brakes hold the arm before the start; they close again when
the controller has let go of it, as those of most arms do when their effort controller is
deactivated.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import numpy as np
from accidents import Accident, Fault, When
from broken_arm import PERIOD, BrokenArm, Kind, described
from default_safety import default_safety, default_supervision

from rnea_control.control import (
    ControlLaw,
    Controller,
    ControllerSettings,
    Gains,
    Mode,
    MotionRequest,
    Supervisor,
    Waypoint,
    Waypoints,
)
from rnea_control.control.controller_state import supporting_torque
from rnea_control.control.laws import Model
from rnea_control.control.mode import Event
from rnea_control.control.supervisor import EXPLAINED
from rnea_control.dynamics import Workspace, crba, rnea
from rnea_control.exceptions import ControllerError, TorqueError, TrajectoryError
from rnea_control.model import RobotModel
from rnea_control.plausibility.model_check import Witness, check_model

REACH, REACH_SLIDING = (0.2, 0.7), (0.01, 0.035)  # of the gentle and the fast motion [rad], [m]
PACE = (0.12, 0.65)  # their parts of the velocity limits
TORQUE_SHARE = 0.6  # of the effort limits that they need at most
WARMING, RESTING = 1.4, 0.7  # times at rest before the first and the second motion [s]
BRAKES_CLOSE = 0.06  # after the controller has let go [s]
STATE_GAP, LONGEST_JUMP = 0.02, 0.1  # as in the node [s]
FAST = 1.5  # part of the velocity limit that must not last
STILL = 0.05  # speed below which an arm rests [rad/s] or [m/s]
OFF = 0.1  # way off its start at which an arm that said nothing is lost [rad] or [m]
RESTS = 0.01  # speed below which the model is checked [rad/s] or [m/s]
MODEL_BOUND = 0.1  # part of the effort limits that the model may be off
USUAL = {"at rest", "the motion has ended", "following a trajectory", "at the measured position"}
USUAL |= {"for joint_states", "to rest, from where the arm was"}
AFTERMATH = 1.0  # time for which a run goes on after the controller has stopped the arm [s]
WRECKED = 60.0  # part of the velocity limit at which a run ends


@dataclass(frozen=True)
class Course:
    """A motion from the start to the goal and back, at rest at both.

    Attributes:
        goal: positions, [rad] or [m].
        duration: of one way, [s].
    """

    goal: np.ndarray
    duration: float

    @classmethod
    def of(cls, model: RobotModel, start: np.ndarray, reach: tuple[float, float], pace: float):
        """One that turns joints by at most `reach`, alternately up and down, slides them by at most
        its second value, and needs at most `pace` of the velocity limits."""
        slides = np.array([kind == "prismatic" for kind in model.joint_types])
        room = np.minimum(model.upper - start, start - model.lower)
        room = np.where(np.isfinite(room), room, math.pi) - np.where(slides, 0.02, 0.12)
        size = np.minimum(np.where(slides, reach[1], reach[0]), np.maximum(0.9 * room, 0.0))
        way = size * np.where(np.arange(model.nv) % 2 == 0, 1.0, -1.0)
        speed = np.where(np.isfinite(model.velocity_limit), model.velocity_limit, 3.0)
        # The fastest point of a quintic that begins and ends at rest.
        duration = max(float((1.875 * size / (pace * speed)).max()), 0.4)
        while cls._needs(model, start, way, duration) > TORQUE_SHARE and duration < 20.0:
            duration *= 1.15
        return cls(start + way, duration)

    @staticmethod
    def _needs(model: RobotModel, start: np.ndarray, way: np.ndarray, duration: float) -> float:
        ws, tau, most = Workspace(model), np.zeros(model.nv), 0.0
        for x in np.linspace(0.0, 1.0, 30):
            place = x**3 * (10.0 - 15.0 * x + 6.0 * x * x)
            speed = 30.0 * x**2 * (1.0 - x) ** 2 / duration
            rate = 60.0 * x * (1.0 - 3.0 * x + 2.0 * x * x) / duration**2
            rnea(model, ws, start + place * way, speed * way, rate * way, tau)
            most = max(most, float((np.abs(tau) / model.effort_limit).max()))
        return most


@dataclass(frozen=True)
class Outcome:
    """What came of an accident.

    Attributes:
        fastest: the highest speed, of all joints, as a part of the velocity limits.
        above: for how long, at a stretch, a joint was faster than `FAST`, [s].
        stopped_after: the time after which the controller stopped the arm, [s]; None if it did not.
        let_go_after: the time after which it has let go of it, [s]; None if it has not.
        mode: at the end.
        speed: at the end, the mean, [rad/s] or [m/s].
        off: how far the arm has ended from its start, [rad] or [m].
        touched: the largest force of a contact, [N].
        said: all messages since the fault began.
        cause: the last one.
        names: whether the messages name what is wrong.
    """

    fastest: float
    above: float
    stopped_after: float | None
    let_go_after: float | None
    mode: Mode
    speed: float
    off: float
    touched: float
    said: tuple[str, ...]
    cause: str
    names: bool

    @property
    def refused(self) -> bool:
        """Whether the check at activation has found it."""
        return "found at activation" in self.cause or self.mode is Mode.WAITING

    def broken(self) -> list[str]:
        """What of it is against the promises of docs/safety.md."""
        found = []
        if self.above > 0.1:
            found.append(f"above {FAST} of a velocity limit for {1e3 * self.above:.0f} ms")
        if self.mode is Mode.HOLDING and self.speed > STILL:
            found.append(f"holding, and moves at {self.speed:.2f}")
        if self.stopped_after is None and self.off > OFF and not self.said:
            found.append(f"{self.off:.2f} off, without a word")
        return found


class Run:
    """A run, as its fault sees it.

    Args:
        kind: of arm.
        accident: that happens.
        when: it begins.
        law, gains: of the controller; gains are accelerations per error, [1/s^2] and [1/s].
        check: of the wires at activation, as the parameter says it.

    Attributes:
        arm: what the controller moves.
        start: where it began, [rad] or [m].
        course: the motion that the fault begins in; of the last one where it begins before.
        t: the time, [s].
        tick: the same in periods.
        fault_at: the time at which the fault begins, [s].
        rng: for all that is random.
    """

    def __init__(
        self,
        kind: Kind,
        accident: Accident,
        when: When,
        law: ControlLaw = ControlLaw.computed_torque,
        gains: tuple[float, float] = (100.0, 20.0),
        check: str = "off",
    ) -> None:
        self._accident, self._fault = accident, accident.fault()
        self.arm, self.rng = BrokenArm(kind, **self._fault.arm), np.random.default_rng(0)
        real = self.arm.model
        self.start = np.array(kind.start)
        gentle, fast = (
            Course.of(real, self.start, reach, pace)
            for reach, pace in zip(zip(REACH, REACH_SLIDING, strict=True), PACE, strict=True)
        )
        self.course = gentle if when is When.GENTLE else fast
        self.fault_at, self._courses = self._plan(when, gentle, fast)
        model = self._fault.model or described(kind)
        settings = ControllerSettings(
            _gains(described(kind), law, self.start, *gains),
            law,
            safety=default_safety(model),
            **{"dead_time": PERIOD, **self._fault.settings},
        )
        self._controller = Controller(model, settings)
        supervision = replace(default_supervision(), activation_check=check)
        self._changes: list[tuple[float, Mode, str]] = []
        self._supervisor = Supervisor(self._controller, supervision, self._note)
        self.t, self.tick = 0.0, 0
        self._stamp: float | None = None
        self._now = self._state_at = 0.0
        self._refused: list[str] = []
        self._warned: list[str] = []

    def _plan(self, when: When, gentle: Course, fast: Course) -> tuple[float, list]:
        """When the fault begins, and the courses, by the time of their beginning."""
        if when is When.RESTING:
            self._end = 0.8 + 3.0
            return 0.8, []
        if when is When.ACTIVATED:
            second = WARMING + 2.0 * gentle.duration + RESTING
            self._end = second + 2.0 * fast.duration + 2.0 * RESTING
            return 0.0, [(WARMING, gentle), (second, fast)]
        course = gentle if when is When.GENTLE else fast
        self._end = 0.5 + 2.0 * course.duration + 2.0
        return 0.5 + 0.5 * course.duration, [(0.5, course)]

    def _note(self, old: Mode, new: Mode, reason: str) -> None:
        self._changes.append((self.t, new, reason))

    def outcome(self) -> Outcome:
        """Runs it to its end."""
        arm, fault, limit = self.arm, self._fault, _speed_limit(self.arm.model)
        tau = np.zeros(arm.model.nv)
        command, speeds, began = tau.copy(), [], False
        self._supervisor.activate()
        arm.brake(list(range(arm.model.nv)))
        braked, ends = True, self._end
        while self.t < ends:
            wrong = self.t >= self.fault_at - 0.5 * PERIOD
            if wrong and not began:
                began = True
                fault.begins(self)
            if wrong:
                fault.goes_on(self)
            self._send_courses()
            q, v = arm.q, arm.v
            if wrong:
                q, v = fault.states(q, v, self)
            if not wrong or fault.reaches(self):
                self._answer(fault.stamp(self.t) if wrong else self.t, q, v, tau)
            elif self.t - self._state_at > STATE_GAP:
                self._bridge(self._now + self.t - self._state_at, tau)
            self._explain()
            if braked and self._supervisor.mode is not Mode.WAITING:
                arm.brake([])
                braked = False
            let_go = self._first(Mode.POWERLESS)
            if let_go is not None and not braked and self.t > let_go + BRAKES_CLOSE:
                arm.brake(list(range(arm.model.nv)))
                braked = True
            arm.step(fault.commands(command.copy(), self) if wrong else command)
            command = tau.copy()
            speeds.append(np.abs(arm.v) / limit)
            if not speeds[-1].max() < WRECKED:
                break
            if wrong and self._supervisor.mode in (Mode.FAULT, Mode.POWERLESS):
                stopped = self._first(Mode.FAULT, Mode.POWERLESS)
                ends = min(ends, (self.t if stopped is None else stopped) + AFTERMATH)
            self.tick += 1
            self.t = self.tick * PERIOD
        return self._judged(np.array(speeds), limit)

    def _send_courses(self) -> None:
        if not self._courses or self.t < self._courses[0][0]:
            return
        _, course = self._courses.pop(0)
        rest, nv = np.zeros(len(self.start)), len(self.start)
        ways = ((course.duration, course.goal), (2.0 * course.duration, self.start))
        points = Waypoints.of([Waypoint(time, at, rest, rest) for time, at in ways], nv)
        try:
            situation = self._supervisor.situation(self._now)
            plan = self._controller.plan(MotionRequest(points), situation, 0.0)
        except (TrajectoryError, ControllerError) as refusal:
            self._refused.append(str(refusal))
        else:
            self._supervisor.adopt(plan)

    def _answer(self, stamp: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> None:
        """Answers a state."""
        supervisor, before = self._supervisor, self._stamp
        gap = 0.0 if before is None else stamp - before
        now, jumps = (stamp if before is None else self._now + gap), not 0.0 <= gap <= LONGEST_JUMP
        self._state_at = self.t
        if jumps:
            jump = f"the stamps of joint_states jumped by {gap:+.3f} s"
            if gap > 0.0:
                supervisor.happen(Event.LOST, jump)
            elif supervisor.mode is not Mode.BLIND:
                supervisor.refuse_state(jump)
                if supervisor.mode is not Mode.BLIND:
                    self._bridge(self._now, tau)
                    return
            now = max(self._now, self._controller.time)
        if before is not None and gap == 0.0 and self._controller.predicting:
            return
        self._stamp, self._now = stamp, now
        try:
            supervisor.answer(now, np.ascontiguousarray(q), np.ascontiguousarray(v), tau)
        except TorqueError:
            pass  # the torque is to be commanded, and the supervisor has made a fault of it
        except ControllerError as refusal:
            self._refused.append(str(refusal))
            self._bridge(now, tau)

    def _bridge(self, t: float, tau: np.ndarray) -> None:
        """Commands without a state."""
        supervisor = self._supervisor
        if self._controller.repeats(t):
            return
        supervisor.miss(self.t - self._state_at)
        try:
            supervisor.answer_gap(t, tau)
        except ControllerError as refusal:
            self._refused.append(str(refusal))

    def _explain(self) -> None:
        """Judges the observer, and looks for the cause of a fault, as the node does beside its
        ticks."""
        supervisor = self._supervisor
        supervisor.judge_robustness()
        if supervisor.unexplained:
            supervisor.unexplained = False
            words = supervisor.cause(self._controller.recorded(EXPLAINED))
            if words:
                supervisor.tell_cause(words)
            if supervisor.verdict is not None and supervisor.verdict.words:
                self._warned.append(supervisor.verdict.explanation(words))

    def _first(self, *modes: Mode) -> float | None:
        """When one of these modes has begun first, since the fault began, [s]."""
        times = (t for t, mode, _ in self._changes if mode in modes and t >= self.fault_at - 1e-9)
        return next(times, None)

    def _model_differs(self) -> list[str]:
        """What the node's check of the model says of an arm that rests (node/model_watch.py)."""
        settings, model = self._controller.settings, self._controller.model
        state = self._controller.snapshot()
        q, v = (np.ascontiguousarray(row) for row in state.measured)
        rests = self._supervisor.mode is Mode.HOLDING and np.abs(v).max() < RESTS
        if not rests or settings.control_law.model is Model.none:
            return []
        ws, bound = Workspace(model), MODEL_BOUND * model.effort_limit
        torque = supporting_torque(model, ws, settings, state)
        likely = check_model(model, ws, q, torque, bound, Witness.feedback).likely
        return [likely.sentence] if likely else []

    def _judged(self, speeds: np.ndarray, limit: np.ndarray) -> Outcome:
        since = speeds[round(self.fault_at / PERIOD) :]
        longest = length = 0
        for fast in (since > FAST).any(axis=1):
            length = length + 1 if fast else 0
            longest = max(longest, length)
        said = [
            reason
            for t, _, reason in self._changes
            if reason not in USUAL and t >= max(self.fault_at, PERIOD) - 1e-9
        ]
        if self._supervisor.mode is Mode.WAITING:
            said.append(self._supervisor.reason)
        said += [*dict.fromkeys(self._refused), *self._warned, *self._model_differs()]
        stopped = self._first(Mode.FAULT, Mode.POWERLESS, Mode.BRAKING, Mode.BLIND)
        let_go = self._first(Mode.POWERLESS)
        names = self._accident.names and re.search(self._accident.names, " | ".join(said))
        return Outcome(
            float(since.max()),
            longest * PERIOD,
            None if stopped is None else stopped - self.fault_at,
            None if let_go is None else let_go - self.fault_at,
            self._supervisor.mode,
            float((speeds[-300:] * limit).mean(axis=0).max()),
            float(np.abs(self.arm.q - self.start).max()),
            self.arm.touched,
            tuple(said),
            self._supervisor.reason,
            bool(names),
        )


def _gains(model: RobotModel, law: ControlLaw, q: np.ndarray, p: float, d: float) -> Gains:
    """Gains of the same closed loop in the units of the law."""
    inertia = np.ones(model.nv)
    if not law.feeds_back_acceleration:
        inertia = np.diag(crba(model, Workspace(model), q, np.zeros((model.nv, model.nv)))).copy()
    zero = np.zeros(model.nv)
    return Gains(p * inertia, d * inertia, zero, inertia, -inertia)


def _speed_limit(model: RobotModel) -> np.ndarray:
    return np.where(np.isfinite(model.velocity_limit), model.velocity_limit, 10.0)


def run(kind: Kind, accident: Accident, when: When, **options: object) -> Outcome:
    """Runs an accident."""
    return Run(kind, accident, when, **options).outcome()


__all__ = ["Course", "Fault", "Outcome", "Run", "run"]
