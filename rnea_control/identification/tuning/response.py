"""`Response`: what the joints did during a small motion, and the commands that they got."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import FloatArray, IntArray

SHIFTS = 0, -1, 1, -2, 2  # states by which all commands may be assigned wrongly
EXPLAINED = 0.3  # part of the residual that another shift must leave at most
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

    def aligned(self, rest: float) -> Response:
        """The same with each command at the state that it answers, by the content of both.

        The process that publishes the states may be preempted by the controller, and all commands
        arrive before the states that they answer. While the arm is held, a command is a linear
        function of its state, and shows the noise of that state and of no other.

        Args:
            rest: time from which the arm is held, [s].
        """
        held = self.time >= rest
        states = np.column_stack([self.q, self.v])[held]
        states, command = states - states.mean(axis=0), self.command[held]
        inner = slice(max(SHIFTS), len(states) - max(SHIFTS))
        X = states[inner] / np.maximum(states.std(axis=0), 1e-12)
        if len(X) < 4 * X.shape[1]:
            return self
        residuals = {}
        for shift in SHIFTS:
            y = np.roll(command, -shift, axis=0)[inner]
            y = (y - y.mean(axis=0)) / np.maximum(command.std(axis=0), 1e-12)
            residuals[shift] = float(((y - X @ np.linalg.lstsq(X, y, rcond=None)[0]) ** 2).sum())
        best = min(residuals, key=lambda shift: residuals[shift])
        if not residuals[best] < EXPLAINED * residuals[0]:
            return self
        places = np.clip(np.arange(len(self.time)) + best, 0, len(self.time) - 1)
        return replace(self, command=self.command[places])


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
