"""A motion: one trajectory from its acceptance to its end, which comes once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.control.tolerances import GoalTolerances
from rnea_control.control.waypoints import Waypoints


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
    text: str


@dataclass(frozen=True)
class MotionRequest:
    """A request to follow waypoints.

    Attributes:
        waypoints: their times are counted from the start.
        start: when that is, by the controller's time, [s]; None for as soon as possible. If it is
            past, the waypoints that have passed are left out.
        tolerances: in place of the controller's own ones.
        is_stream: whether more is likely to follow: then positions that are upsampled do not come
            to rest at their end.
        on_end: called once when the motion ends, maybe in a tick: it must be quick.
    """

    waypoints: Waypoints
    start: float | None = None
    tolerances: GoalTolerances = field(default_factory=GoalTolerances)
    is_stream: bool = False
    on_end: Callable[[Ending], None] = lambda ending: None


class Motion:
    """A trajectory that is being followed.

    Attributes:
        start: the zero of its waypoints' times, by trajectory time, [s].
        times: when its waypoints are due, by trajectory time, shape (n,), [s].
        joints: which joints it moves, shape (nv,).
        tolerances: that it brought.
        note: what was changed or is doubtful, for those who sent it; empty if nothing is.
        ending: why it ended; None until then.
    """

    def __init__(
        self, request: MotionRequest, start: float, times: FloatArray, joints: BoolArray, note: str
    ) -> None:
        self.start = start
        self.times = times
        self.joints = joints
        self.tolerances = request.tolerances
        self.note = note
        self.ending: Ending | None = None
        self._on_end = request.on_end

    @property
    def end(self) -> float:
        """When the last waypoint is due, by trajectory time, [s]."""
        return float(self.times[-1])

    def index(self, s: float) -> int:
        """The waypoint that is due next at trajectory time `s`."""
        return int(np.searchsorted(self.times, s, side="right"))

    def finish(self, kind: EndKind, text: str) -> None:
        """Ends the motion; does nothing if it has ended."""
        if self.ending is None:
            self.ending = Ending(kind, f"{text}; {self.note}" if self.note else text)
            self._on_end(self.ending)
