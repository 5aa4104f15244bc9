"""A motion: one trajectory from its acceptance to its end, which comes once, and how far the arm
may be from it meanwhile.

The rules are those of joint_trajectory_controller: on the way every joint must stay within its path
tolerances; from the end on it has `goal_time` to come within its goal tolerances. In a goal, 0
stands for the default and -1 for no tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, IntEnum, auto

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray, Matrix
from rnea_control.control import layout
from rnea_control.control.waypoints import Waypoints
from rnea_control.kernels.inlining import inlined
from rnea_control.parameters.settings import Settings, row

# The results of a check: the trajectory goes on, has ended well, or has violated a tolerance.
UNDER_WAY, REACHED, PATH_VIOLATED, GOAL_VIOLATED = range(4)

# Rows of a tolerance array; of the last one, entry 0 is that of the arm.
PATH_POSITION, PATH_VELOCITY, GOAL_POSITION, GOAL_VELOCITY = range(4)
WAITING_POSITION, WAITING_VELOCITY, GOAL_TIME = range(4, 7)
ROWS = 7

# Values of a JointTolerance that stand for something else.
DEFAULT, NO_TOLERANCE = 0.0, -1.0


@dataclass(frozen=True)
class Tolerances(Settings):
    """Tolerances of all joints, shape (nv,), [rad] or [m], and [rad/s] or [m/s]; infinity is none.
    `goal_time` is how long after the end the goal may be reached, [s]."""

    path_position: FloatArray = row("constraints.<joint>.trajectory")
    path_velocity: FloatArray = row()
    goal_position: FloatArray = row("constraints.<joint>.goal")
    goal_velocity: FloatArray = row("constraints.stopped_velocity_tolerance")
    goal_time: float = row("constraints.goal_time", math.inf)

    @classmethod
    def none(cls, nv: int) -> Tolerances:
        """No tolerance for any of `nv` joints."""
        return cls(*np.full((4, nv), math.inf))

    def rows(self, joints: BoolArray, waiting: Tolerances) -> FloatArray:
        """The array that `check` takes; `joints`: those that must reach the goal, shape (nv,);
        `waiting`: whose path tolerances are in force until the trajectory starts."""
        rows = np.full((ROWS, len(joints)), math.inf)
        rows[PATH_POSITION], rows[PATH_VELOCITY] = self.path_position, self.path_velocity
        goal = self.goal_position, self.goal_velocity
        rows[GOAL_POSITION : GOAL_VELOCITY + 1] = np.where(joints, goal, math.inf)
        rows[WAITING_POSITION : WAITING_VELOCITY + 1] = waiting.path_position, waiting.path_velocity
        rows[GOAL_TIME] = self.goal_time
        return rows


@dataclass(frozen=True)
class JointTolerance:
    """Tolerances of a goal for one joint, [rad] or [m], [rad/s] or [m/s]; 0: default, -1: none."""

    joint: str
    position: float = DEFAULT
    velocity: float = DEFAULT


@dataclass(frozen=True)
class GoalTolerances:
    """The tolerances of a goal, in place of the default ones."""

    path: tuple[JointTolerance, ...] = ()  # of joints on the way
    goal: tuple[JointTolerance, ...] = ()  # of joints at the end
    time: float = DEFAULT  # after the end, [s]; 0: the default, -1: for ever


@inlined
def violated(state: Matrix, bounds: Matrix, first: int, quantities: int) -> bool:
    """Whether a joint is further from the desired position than row `first` of the bounds allows,
    or, of two quantities, its velocity than the next row; writes which most into `state`."""
    found, worst = False, 1.0
    for quantity in range(quantities):
        for j in range(bounds.shape[1]):
            bound = bounds[first + quantity, j]
            error = abs(state[layout.POSITION_ERROR + quantity, j])
            if not error <= worst * bound:  # NaN is not within
                found, worst = True, error / bound
                state[layout.VIOLATING_JOINT, 0] = j
                state[layout.VIOLATING_QUANTITY, 0] = quantity
                state[layout.VIOLATION, 0] = error
                state[layout.VIOLATED_TOLERANCE, 0] = bound
    return found


@inlined
def check(tolerances: Matrix, state: Matrix, s: float) -> int:
    """Checks the errors in `state` at trajectory time `s`, [s]; `tolerances`: see
    `Tolerances.rows`."""
    late = s - state[layout.END_TIME, 0]
    if late < 0.0:
        started = s >= state[layout.START_TIME, 0]
        astray = violated(state, tolerances, PATH_POSITION if started else WAITING_POSITION, 2)
        return PATH_VIOLATED if astray else UNDER_WAY
    if not violated(state, tolerances, GOAL_POSITION, 2):
        return REACHED
    return GOAL_VIOLATED if late > tolerances[GOAL_TIME, 0] else UNDER_WAY


class Act(IntEnum):
    """What the arm does when its motion ends."""

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
    """Why a motion ended, and what to tell those who asked for it."""

    kind: EndKind
    text: str  # the same in words
    # Whether the desired position was taken from the arm, as that was too far off, torque was at
    # its limit for too long, or a joint shook.
    gave_way: bool = False
    shaken: bool = False  # whether a joint shook


@dataclass(frozen=True)
class MotionRequest:
    """A request to follow waypoints."""

    waypoints: Waypoints  # their times are counted from the start
    # When that is, by the controller's time, [s]; None for as soon as possible. If it is past, the
    # waypoints that have passed are left out.
    start: float | None = None
    tolerances: GoalTolerances = GoalTolerances()  # in place of the controller's own ones
    # Whether more is likely to follow: then positions that are upsampled do not come to rest at
    # their end.
    is_stream: bool = False
    # Called once when the motion ends, maybe in a tick: it must be quick.
    on_end: Callable[[Ending], None] = lambda ending: None


class Motion:
    """A trajectory that is being followed.

    Attributes:
        start: the zero of its waypoints' times, by trajectory time, [s].
        times, end: when its waypoints are due, shape (n,), and the last one, by trajectory time,
            [s].
        joints: which joints it moves, shape (nv,).
        tolerances: that it brought.
        note: what was changed or is doubtful, for those who sent it; empty if nothing is.
        ending: why it ended; None until then.
    """

    def __init__(
        self, request: MotionRequest, start: float, times: FloatArray, joints: BoolArray, note: str
    ) -> None:
        self.start, self.times, self.joints, self.note = start, times, joints, note
        self.end = float(times[-1])
        self.tolerances, self._on_end = request.tolerances, request.on_end
        self.ending: Ending | None = None

    def index(self, s: float) -> int:
        """The waypoint that is due next at trajectory time `s`."""
        return int(np.searchsorted(self.times, s, side="right"))

    def finish(self, kind: EndKind, text: str) -> None:
        """Ends the motion; does nothing if it has ended."""
        if self.ending is None:
            self.ending = Ending(kind, f"{text}; {self.note}" if self.note else text)
            self._on_end(self.ending)
