"""One run of the demo: desired and measured positions, torques, and figures of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray

# What comes this late counts as a stall, [s].
STALL = 0.01


class Stalls(NamedTuple):
    """How often, and for how long at most [s], a state was sent late or no new command came."""

    count: int
    longest: float


@dataclass(frozen=True)
class Recording:
    """One trajectory under one control law.

    Attributes:
        law: name of the control law.
        time: since the start of the trajectory, shape (n,), [s].
        desired, measured: positions, shape (n, nv), [rad] or [m].
        torque: what reached the joints, shape (n, nv), [Nm] or [N].
        latency: state-to-command latency as the controller reports it.
        sent: how the trajectory was sent.
        lateness: how late each state was sent, shape (n,), [s].
        commands: how many commands had come when each state was sent, shape (n,).
        incidents: what the controller or its action reported, a sentence each.
    """

    law: str
    time: FloatArray
    desired: FloatArray
    measured: FloatArray
    torque: FloatArray
    latency: str
    sent: str = ""
    lateness: FloatArray = field(default_factory=lambda: np.zeros(0))
    commands: FloatArray = field(default_factory=lambda: np.zeros(0))
    incidents: tuple[str, ...] = ()

    @property
    def error(self) -> FloatArray:
        """Desired minus measured positions, shape (n, nv)."""
        return self.desired - self.measured

    @property
    def rms(self) -> FloatArray:
        """Root mean square of each joint's error, shape (nv,)."""
        return np.sqrt(np.mean(self.error**2, axis=0))

    def total_rms(self, joints: list[int]) -> float:
        """Root mean square of the error over joints of one unit."""
        return float(np.sqrt(np.mean(self.error[:, joints] ** 2)))

    @property
    def largest(self) -> FloatArray:
        """Each joint's largest error, shape (nv,)."""
        return np.abs(self.error).max(axis=0)

    @property
    def peak_torque(self) -> FloatArray:
        """Each joint's largest torque, shape (nv,)."""
        return np.abs(self.torque).max(axis=0)

    @property
    def period(self) -> float:
        """From one state to the next, [s]."""
        return float(np.median(np.diff(self.time))) if len(self.time) > 1 else 0.0

    def waits(self) -> FloatArray:
        """For how long each command that came had been waited for, beyond a period, [s]; the last
        one is the wait that goes on at the end."""
        if len(self.commands) < 2:
            return np.zeros(0)
        came = np.flatnonzero(np.diff(self.commands) > 0) + 1
        edges = np.concatenate([[0], came, [len(self.commands) - 1]])
        return np.maximum(np.diff(self.time[edges]) - self.period, 0.0)

    def stalls(self) -> Stalls:
        """Waits and late states of more than `STALL`; late states in a row are one stall."""
        waits = self.waits()
        late = self.lateness > STALL
        begins = np.count_nonzero(late[1:] & ~late[:-1]) + int(late[:1].any())
        count = begins + np.count_nonzero(waits > STALL)
        longest = max(waits.max(initial=0.0), self.lateness.max(initial=0.0))
        return Stalls(int(count), float(longest) if count else 0.0)
