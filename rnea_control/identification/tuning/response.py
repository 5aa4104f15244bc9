"""`Response`: what the joints did during a small motion, and the commands that they got."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray, IntArray

NEIGHBORS = 50  # commands on either side whose places decide about one of them


@dataclass(frozen=True)
class Response:
    """States in the order of their stamps, each with the command that answered it.

    Attributes:
        time: stamps, in seconds from the start of the motion, shape (n,).
        q, v: measured positions and velocities, shape (n, nv).
        command: torques of the commands, with all that the controller adds, shape (n, nv).
    """

    time: FloatArray
    q: FloatArray
    v: FloatArray
    command: FloatArray

    @property
    def period(self) -> float:
        """Period of the states, [s]."""
        return float(np.median(np.diff(self.time)))

    def between(self, begin: float, end: float) -> Response:
        """The part from `begin` to before `end`, [s]."""
        kept = (self.time >= begin - 1e-9) & (self.time < end - 1e-9)
        return Response(self.time[kept], self.q[kept], self.v[kept], self.command[kept])


def answered_states(states: FloatArray, commands: FloatArray) -> IntArray:
    """Index of the state that each command answers, shape (commands,); -1 where it is not known.

    A command is received after the state that it answers, and before the next one; but a process
    that was not awake receives several at once. So the number of states before a command is
    compared with that of its neighbors, whose median is right.

    Args:
        states: times of receipt, ascending, shape (n,), [s].
        commands: times of receipt, ascending, shape (m,), [s].
    """
    place = np.searchsorted(states, commands, side="right") - 1
    ahead = place - np.arange(len(commands))
    pad = np.pad(ahead, NEIGHBORS, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(pad, 2 * NEIGHBORS + 1)
    found = np.median(windows, axis=1).astype(np.int64) + np.arange(len(commands))
    return np.where((found >= 0) & (found < len(states)), found, -1)
