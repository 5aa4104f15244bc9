"""How far the arm may be from its trajectory, on the way and at the end.

The rules are those of joint_trajectory_controller: on the way every joint must stay within its path
tolerances; from the end on it has `goal_time` to come within its goal tolerances. In a goal, 0
stands for the default and -1 for no tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.control import layout
from rnea_control.exceptions import TrajectoryError, TrajectoryJointsError, listed
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
    """Tolerances of all joints; infinity is none.

    Attributes:
        path_position, goal_position: shape (nv,), [rad] or [m].
        path_velocity, goal_velocity: shape (nv,), [rad/s] or [m/s].
        goal_time: how long after the end the goal may be reached, [s].
    """

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
        """The array that `check` takes.

        Args:
            joints: those that must reach the goal, shape (nv,).
            waiting: whose path tolerances are in force until the trajectory starts.
        """
        rows = np.full((ROWS, len(joints)), math.inf)
        rows[PATH_POSITION], rows[PATH_VELOCITY] = self.path_position, self.path_velocity
        rows[GOAL_POSITION, joints] = self.goal_position[joints]
        rows[GOAL_VELOCITY, joints] = self.goal_velocity[joints]
        rows[WAITING_POSITION] = waiting.path_position
        rows[WAITING_VELOCITY] = waiting.path_velocity
        rows[GOAL_TIME] = self.goal_time
        return rows

    def overridden(self, goal: GoalTolerances, joint_names: Sequence[str]) -> Tolerances:
        """These tolerances, with those of a goal in their place.

        Raises:
            TrajectoryJointsError: a joint that the controller does not control.
            TrajectoryError: a tolerance that is not a number, or negative and not -1.
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
                    column = columns[f"{part}_{quantity}"]
                    value = getattr(tolerance, quantity)
                    column[j] = _resolved(f"{where}, {quantity}", value, column[j])
        time = _resolved("goal_time_tolerance", goal.time, self.goal_time)
        return replace(self, **columns, goal_time=time)


@dataclass(frozen=True)
class JointTolerance:
    """The tolerances of a goal for one joint, [rad] or [m], and [rad/s] or [m/s]; 0: the default,
    -1: all."""

    joint: str
    position: float = DEFAULT
    velocity: float = DEFAULT


@dataclass(frozen=True)
class GoalTolerances:
    """The tolerances of a goal, in place of the default ones.

    Attributes:
        path, goal: of joints, on the way and at the end.
        time: after the end, [s]; 0: the default, -1: for ever.
    """

    path: tuple[JointTolerance, ...] = ()
    goal: tuple[JointTolerance, ...] = ()
    time: float = DEFAULT


def _resolved(what: str, value: float, default: float) -> float:
    if value == DEFAULT:
        return default
    if value == NO_TOLERANCE:
        return math.inf
    if not value > 0.0:
        raise TrajectoryError(
            f"{what} is {value}; it must be above 0, or 0 for the default, or -1 for none"
        )
    return value


@inlined
def check(tolerances: FloatArray, state: FloatArray, s: float) -> int:
    """Checks the errors in `state`, and writes there which joint violates its tolerance most.

    Args:
        tolerances: see `Tolerances.rows`.
        state: of the controller.
        s: the trajectory time, [s].
    """
    late = s - state[layout.END_TIME, 0]
    if late < 0.0:
        started = s >= state[layout.START_TIME, 0]
        if _violated(tolerances, state, PATH_POSITION if started else WAITING_POSITION):
            return PATH_VIOLATED
        return UNDER_WAY
    if not _violated(tolerances, state, GOAL_POSITION):
        return REACHED
    if late > tolerances[GOAL_TIME, 0]:
        return GOAL_VIOLATED
    return UNDER_WAY


@inlined
def _violated(tolerances: FloatArray, state: FloatArray, first: int) -> bool:
    """Whether a joint exceeds the tolerance of position, row `first`, or velocity, the next one."""
    violated, worst = False, 1.0
    for quantity in range(2):
        for j in range(tolerances.shape[1]):
            tolerance = tolerances[first + quantity, j]
            error = abs(state[layout.POSITION_ERROR + quantity, j])
            if not error <= worst * tolerance:  # NaN is not within
                violated, worst = True, error / tolerance
                state[layout.VIOLATING_JOINT, 0] = j
                state[layout.VIOLATING_QUANTITY, 0] = quantity
                state[layout.VIOLATION, 0] = error
                state[layout.VIOLATED_TOLERANCE, 0] = tolerance
    return violated
