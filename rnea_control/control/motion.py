"""A motion: one trajectory from its acceptance to its single end, the text about the end, and the
tolerances meanwhile.

The rules are those of joint_trajectory_controller: on the way every joint must stay within its path
tolerances; from the end on it has `goal_time` to come within its goal tolerances. In a goal, 0
means the default and -1 no tolerance.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum, auto

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray, Vector
from rnea_control.control import layout, violations
from rnea_control.control.layout import Arm, Finding, State
from rnea_control.control.waypoints import Waypoints
from rnea_control.exceptions import (
    TrajectoryJointsError,
    TrajectoryTolerancesError,
    distinct,
    listed,
)
from rnea_control.jit.inlining import inlined
from rnea_control.jit.rows import Rows
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units
from rnea_control.parameters.settings import Settings, row

# First words of the ending of a motion without a tolerance that ends away from its goal.
OFF_GOAL = "the motion has ended, but"

END_SLACK = 0.05  # distance of a revolute joint from its goal that is not reported [rad]
END_SLIDING_SLACK = 0.005  # distance of a prismatic joint from its goal that is not reported [m]
NOTABLE_DELAY = 0.002  # delay of a motion by pauses of the states that is reported [s]
DEFAULT = 0.0  # value of a JointTolerance that means the default
NO_TOLERANCE = -1.0  # value of a JointTolerance that means no tolerance


def end_slack(model: RobotModel) -> FloatArray:
    """Distance of each joint from its goal that is not reported, shape (nv,), [rad] or [m]."""
    slides = np.array([kind == "prismatic" for kind in model.joint_types])
    return np.where(slides, END_SLIDING_SLACK, END_SLACK)


class ToleranceRows(Rows):
    """Tolerances of a motion for the control step; infinity is no tolerance."""

    path_position: Vector
    path_velocity: Vector
    goal_position: Vector
    goal_velocity: Vector
    waiting_position: Vector  # before the motion starts
    waiting_velocity: Vector
    goal_time: float  # time after the end in which the goal may be reached [s]

    @classmethod
    def none(cls, nv: int) -> ToleranceRows:
        """No tolerance for any of `nv` joints."""
        tolerances = cls.zeros(nv)
        tolerances[:] = math.inf
        return tolerances


@dataclass(frozen=True)
class Tolerances(Settings):
    """Tolerances of all joints, shape (nv,), [rad] or [m], and [rad/s] or [m/s]; infinity is no
    tolerance. `goal_time` is the time after the end in which the goal may be reached, [s]."""

    path_position: FloatArray = row("constraints.<joint>.trajectory")
    path_velocity: FloatArray = row()
    goal_position: FloatArray = row("constraints.<joint>.goal")
    goal_velocity: FloatArray = row("constraints.stopped_velocity_tolerance")
    goal_time: float = row("constraints.goal_time", math.inf)

    @classmethod
    def none(cls, nv: int) -> Tolerances:
        """No tolerance for any of `nv` joints."""
        return cls(*np.full((4, nv), math.inf))

    def overridden(self, goal: GoalTolerances, joint_names: Sequence[str]) -> Tolerances:
        """A copy in which the tolerances of a goal replace the default ones.

        Raises:
            TrajectoryJointsError: a joint that the controller does not control.
            TrajectoryTolerancesError: a tolerance that is not a number, or negative and not -1.
        """
        names = "path_position", "path_velocity", "goal_position", "goal_velocity"
        columns = {name: getattr(self, name).copy() for name in names}
        for part, wanted in (("path", goal.path), ("goal", goal.goal)):
            for tolerance in wanted:
                where = f"{part}_tolerance of joint {tolerance.joint!r}"
                if tolerance.joint not in joint_names:
                    raise TrajectoryJointsError(
                        f"{where}: this controller does not control it; its joints are "
                        f"{listed(joint_names)}"
                    )
                j = list(joint_names).index(tolerance.joint)
                for quantity in ("position", "velocity"):
                    column, value = columns[f"{part}_{quantity}"], getattr(tolerance, quantity)
                    column[j] = _resolved(f"{where}, {quantity}", value, column[j])
        time = _resolved("goal_time_tolerance", goal.time, self.goal_time)
        return replace(self, **columns, goal_time=time)

    def rows(self, motion: Motion | None, joint_names: Sequence[str]) -> ToleranceRows:
        """Tolerances of a motion for `check`.

        The motion has its own tolerances from its start on. Joints that it does not move need not
        reach the goal. None is a motion of all joints without tolerances of its own.
        """
        joints, own = np.ones(len(joint_names), dtype=bool), self
        if motion is not None:
            joints, own = motion.joints, self.overridden(motion.request.tolerances, joint_names)
        rows = ToleranceRows.none(len(joints))
        rows.path_position, rows.path_velocity = own.path_position, own.path_velocity
        rows.goal_position = np.where(joints, own.goal_position, math.inf)
        rows.goal_velocity = np.where(joints, own.goal_velocity, math.inf)
        rows.waiting_position, rows.waiting_velocity = self.path_position, self.path_velocity
        rows.goal_time = own.goal_time
        return rows


def _resolved(what: str, value: float, default: float) -> float:
    """A number of a JointTolerance or GoalTolerances, with its special values replaced."""
    if value == DEFAULT:
        return default
    if value == NO_TOLERANCE:
        return math.inf
    if not value > 0.0:
        raise TrajectoryTolerancesError(
            f"{what} is {value}; it must be above 0, or 0 for the default, or -1 for none"
        )
    return value


@dataclass(frozen=True)
class JointTolerance:
    """Tolerances of a goal for one joint, [rad] or [m], [rad/s] or [m/s]; 0: default, -1: none."""

    joint: str
    position: float = DEFAULT
    velocity: float = DEFAULT


@dataclass(frozen=True)
class GoalTolerances:
    """The tolerances of a goal, in place of the default ones."""

    path: tuple[JointTolerance, ...] = ()  # tolerances of joints on the way
    goal: tuple[JointTolerance, ...] = ()  # tolerances of joints at the end
    time: float = DEFAULT  # time after the end, [s]; 0: the default, -1: for ever


@inlined
def _exceeded(
    state: State, errors: Vector, bounds: Vector, quantity: int, worst: float
) -> tuple[bool, float]:
    """Compares errors with bounds.

    Returns True if an error is larger than `worst` times its bound, and the largest ratio of error
    and bound. Writes the joint of that ratio, its error and its bound into `state`.
    """
    found = False
    for j in range(bounds.shape[0]):
        error = abs(errors[j])
        if not error <= worst * bounds[j]:  # NaN is not within
            found, worst = True, error / bounds[j]
            state.violating_joint = j
            state.violating_quantity = quantity
            state.violation = error
            state.violated_tolerance = bounds[j]
    return found, worst


@inlined
def violated_position(state: State, bounds: Vector) -> bool:
    """True if a joint is further from its desired position than its bound. Writes the joint with
    the largest violation into `state`."""
    return _exceeded(state, state.position_error, bounds, 0, 1.0)[0]


@inlined
def violated(state: State, position_bounds: Vector, velocity_bounds: Vector) -> bool:
    """True if the position or velocity error of a joint is beyond its bound. Writes the joint with
    the largest violation into `state`."""
    by_position, worst = _exceeded(state, state.position_error, position_bounds, 0, 1.0)
    by_velocity, _ = _exceeded(state, state.velocity_error, velocity_bounds, 1, worst)
    return by_position or by_velocity


@inlined
def check(tolerances: ToleranceRows, state: State, s: float) -> int:
    """Compares the tracking errors in `state` with the tolerances at trajectory time `s` [s].
    Returns a kind of finding; see layout.py. `tolerances`: see `Tolerances.rows`."""
    late = s - state.end_time
    if late < 0.0:
        if s >= state.start_time:
            astray = violated(state, tolerances.path_position, tolerances.path_velocity)
        else:
            astray = violated(state, tolerances.waiting_position, tolerances.waiting_velocity)
        return layout.PATH_VIOLATED if astray else layout.UNDER_WAY
    if not violated(state, tolerances.goal_position, tolerances.goal_velocity):
        return layout.REACHED
    return layout.GOAL_VIOLATED if late > tolerances.goal_time else layout.UNDER_WAY


class Act(IntEnum):
    """Act of the arm when its motion ends."""

    GOES_ON = 1
    """Along its trajectory, if it is commanded."""
    BRAKES = 2
    """Along its path, as hard as the settings and the effort limits allow; where a hand guides the
    arm, straight on from its last state."""
    IS_CAUGHT = 3
    """The desired position and velocity are taken from the measured state; brakes from there."""
    IS_GUIDED = 4
    """By a hand: the desired position follows the measured one."""


class EndKind(Enum):
    """Why a motion ended."""

    REACHED = auto()
    PATH_TOLERANCE_VIOLATED = auto()
    GOAL_TOLERANCE_VIOLATED = auto()
    REPLACED = auto()
    CANCELLED = auto()
    DROPPED = auto()


@dataclass(frozen=True)
class Ending:
    """Why a motion ended, and the text for its sender."""

    kind: EndKind
    text: str  # the end in words
    # True if the desired position was taken from the arm, as it was too far off, torque was at its
    # limit for too long, something was in the arm's way, or a joint shook.
    gave_way: bool = False
    shaken: bool = False  # True if a joint shook
    off_goal: bool = False  # True if the arm came to rest away from a goal without tolerances
    faulty: bool = False  # True if a bound of the motion was violated
    restless: bool = False  # True if a joint moves although it is held
    let_go: bool = False  # True if braking did not help, and the controller has let go of the arm
    stream_ended: bool = False  # True if the arm rests as targets of a stream are missing


@dataclass(frozen=True)
class MotionRequest:
    """A request to follow waypoints."""

    waypoints: Waypoints  # their times are counted from the start
    # Start by the controller's time, [s]; None for as soon as possible. If the start is past, the
    # waypoints that have passed are left out.
    start: float | None = None
    tolerances: GoalTolerances = GoalTolerances()  # in place of the controller's own tolerances
    # True if more waypoints are likely to follow: then the last waypoint may move, and upsampled
    # positions do not come to rest there.
    is_stream: bool = False
    # Called once when the motion ends, maybe in a tick: it must be quick.
    on_end: Callable[[Ending], None] = lambda ending: None


@dataclass(eq=False)
class Motion:
    """A trajectory that is being followed. Times are trajectory times, [s]."""

    request: MotionRequest
    start: float  # the zero of its waypoints' times
    times: FloatArray  # when its waypoints are due, shape (arm,)
    joints: BoolArray  # which joints it moves, shape (nv,)
    note: str  # changes and doubts, for the sender; empty if there are none
    ending: Ending | None = None  # why it ended; None until then

    @property
    def end(self) -> float:
        """Trajectory time at which the last waypoint is due."""
        return float(self.times[-1])

    def index(self, s: float) -> int:
        """The waypoint that is due next at trajectory time `s`."""
        return int(np.searchsorted(self.times, s, side="right"))

    def finish(self, kind: EndKind, text: str) -> None:
        """Ends the motion; does nothing if it has ended."""
        if self.ending is None:
            self.ending = Ending(kind, f"{text}; {self.note}" if self.note else text)
            self.request.on_end(self.ending)


_WITHOUT_JOINT = {
    layout.STOPPED: Ending(EndKind.DROPPED, "emergency stop"),
    layout.HUNG: Ending(EndKind.DROPPED, "the process's interpreter stood still"),
    layout.STREAM_BEGAN: Ending(EndKind.REPLACED, "a stream of targets has replaced it"),
    layout.STREAM_ENDED: Ending(
        EndKind.DROPPED, "no target has come for stream.target_timeout", stream_ended=True
    ),
    layout.GAINS_ENDED: Ending(
        EndKind.DROPPED, "no message has come for control_timeout", stream_ended=True
    ),
}


def lateness(delay: float) -> str:
    """Reports the delay of a motion by pauses of the states, [s]; empty if it is small."""
    if not delay > NOTABLE_DELAY:
        return ""
    return f"{1e3 * delay:.0f} ms late, as joint_states paused"


def _reached(model: RobotModel, joint: int, error: float, delay: float) -> Ending:
    """The end of a motion within its tolerances.

    Args:
        error: error of the joint that is furthest off its goal, or 0 if it is not reported [rad] or
            [m].
        delay: delay of the motion by pauses of the states [s].
    """
    late = lateness(delay)
    if error == 0.0:
        return Ending(EndKind.REACHED, f"the goal is reached{late and f', {late}'}")
    name, unit = model.joint_names[joint], units(model, joint).position
    text = f"{OFF_GOAL} {name} is {abs(error):.3g} {unit} from its goal, without a "
    return Ending(EndKind.REACHED, f"{text}tolerance there{late and f'; {late}'}", off_goal=True)


def ending(model: RobotModel, finding: Finding, motion: Motion | None) -> Ending:
    """Ending of a motion by the finding of a step."""
    found, joint, quantity = int(finding.kind), int(finding.joint), int(finding.quantity)
    if found in _WITHOUT_JOINT:
        return _WITHOUT_JOINT[found]
    if found == layout.CALM:
        return Ending(EndKind.DROPPED, "at rest")
    name, kind = model.joint_names[joint], EndKind.PATH_TOLERANCE_VIOLATED
    excess, allowed = finding.excess, finding.allowed
    if found == layout.REACHED:
        return _reached(model, joint, float(excess), float(finding.late_by))
    if found == layout.PRESSED:
        text = f"the torque of {name} was at its limit for {excess:.3g} s"
        why = violations.evidence(model, finding) or ": does something hold the arm?"
        return Ending(kind, text + why, gave_way=True)
    if found == layout.SHAKEN:
        text = f"{name} shakes: are its gains too high, or does its torque act late?"
        return Ending(kind, text, gave_way=True, shaken=True)
    if found == layout.RESTLESS:
        speed = f"{excess:.2g} {units(model, joint).velocity}"
        text = f"{name} moves at {speed} although it is held: it does not come to rest"
        return Ending(EndKind.DROPPED, text, restless=True)
    if found in (*layout.VIOLATIONS, layout.BLOCKED, layout.LET_GO):
        text, blocked = violations.violation(model, finding), found == layout.BLOCKED
        let_go = found == layout.LET_GO
        return Ending(
            kind, text, gave_way=blocked, faulty=not blocked and not let_go, let_go=let_go
        )
    error, bound = distinct(float(excess), float(allowed), digits=3)
    off = f"{name} was {error} {units(model, joint)[quantity]} off its"
    if found == layout.TORN_AWAY:
        text = f"{off} desired position, more than max_position_error, {bound}"
        return Ending(kind, text + violations.evidence(model, finding), gave_way=True)
    time = finding.found_at - (motion.start if motion else 0.0)
    when = f"{time:.3f} s into the trajectory" if time >= 0.0 else f"{-time:.3f} s before it"
    where = "path"
    if found == layout.GOAL_VIOLATED:
        where, kind = "goal", EndKind.GOAL_TOLERANCE_VIOLATED
    return Ending(kind, f"{off} {where}, {bound} allowed, {when}")


class Motions:
    """The motions that have not ended, and the findings of steps; `arm`: see layout.py.

    Attributes:
        under_way: motions that have not ended, by their numbers.
        findings: records that steps write; see layout.py.
        found: endings that were not reported yet, oldest first.
        gave_way_reason: why the desired position was taken from the arm the last time.
    """

    def __init__(self, arm: Arm) -> None:
        self.findings = Finding.several(layout.MOST_FINDINGS)
        self.found: deque[Ending] = deque(maxlen=layout.MOST_FINDINGS)
        self.gave_way_reason = ""
        self.under_way: dict[int, Motion] = {}
        self._last = self._read = 0  # number of a motion; findings
        self._arm = arm

    def add(self, motion: Motion) -> int:
        """Takes a motion; returns its number."""
        self._last += 1
        self.under_way[self._last] = motion
        return self._last

    def read(self, model: RobotModel) -> None:
        """Puts new findings into words, and ends the motions that have ended."""
        count, most = int(self._arm.findings), layout.MOST_FINDINGS
        begin = self._read
        for k in range(max(begin, count - most), count):
            finding, self._read = self.findings[k % most], k + 1
            motion = self.under_way.pop(int(finding.ended), None)
            end = ending(model, finding, motion)
            self.found.append(end)
            if end.gave_way:
                self.gave_way_reason = end.text
            if motion is not None:
                motion.finish(end.kind, end.text)
        if count - most > begin:  # some are forgotten
            for number in self.under_way.keys() - {int(self._arm.motion)}:
                self.under_way.pop(number).finish(EndKind.DROPPED, "too many events at once")
