"""Messages about goals between the controller's process and that of its action.

This file and the action's process import nothing that computes: it starts sooner, and stays small.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from rnea_control.array_types import FloatArray


class Outcome(Enum):
    """How a goal ends, in the words of actions."""

    SUCCEEDED = auto()
    CANCELED = auto()
    ABORTED = auto()


@dataclass(frozen=True)
class GoalMessage:
    """A goal as it came.

    Attributes:
        trajectory: a serialized JointTrajectory.
        path_tolerance, goal_tolerance: name, position and velocity of each.
        goal_time_tolerance: [s].
        multi_dof_points: how many points multi_dof_trajectory has.
    """

    trajectory: bytes
    path_tolerance: tuple[tuple[str, float, float], ...]
    goal_tolerance: tuple[tuple[str, float, float], ...]
    goal_time_tolerance: float
    multi_dof_points: int


@dataclass(frozen=True)
class GoalResult:
    """The result of a goal: `code` and `text` are its error_code and error_string."""

    outcome: Outcome
    code: int
    text: str


@dataclass(frozen=True)
class GoalFeedback:
    """The feedback of a goal.

    Attributes:
        stamp: of the joint states, [ns].
        elapsed: since the trajectory's start, [s].
        index: of the waypoint that is due next.
        joint_names: of the columns.
        desired: position, velocity, acceleration and effort, shape (4, nv).
        actual, error: position and velocity, shape (2, nv).
    """

    stamp: int
    elapsed: float
    index: int
    joint_names: tuple[str, ...]
    desired: FloatArray
    actual: FloatArray
    error: FloatArray
