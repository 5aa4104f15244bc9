"""`AppliedTorque`: how old the torque is that the robot applies, where its states tell."""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.kernels.kernel import kernel

# How many commands are remembered: a second at 1 kHz.
REMEMBERED = 1024
# Relative difference up to which a measured effort is a command that came through unchanged.
SAME = 1e-9


class AppliedTorque:
    """The last commands, to find the one that the robot has applied.

    Hardware in simulation, and some drives, report the commanded torque as measured effort. One
    thread calls `note`, another one `age`.

    Args:
        joints: how many there are.
    """

    def __init__(self, joints: int) -> None:
        self._torques = np.full((REMEMBERED, joints), math.nan)
        self._times = np.full(REMEMBERED, math.nan)
        self._next = np.zeros(1, dtype=np.int64)

    def note(self, torque: FloatArray, now: float) -> None:
        """A torque is commanded; `now` by the steady clock, [s]. Allocates nothing."""
        _note(self._torques, self._times, self._next, torque, now)

    def age(self, efforts: FloatArray, seen_at: float) -> float:
        """How long before `seen_at` these efforts were commanded last, [s]; NaN if they were not.

        Args:
            efforts: as measured, shape (nv,), [Nm] or [N].
            seen_at: when the state with them came, by the steady clock, [s].
        """
        torques, times = self._torques.copy(), self._times.copy()
        same = np.isclose(torques, efforts, rtol=SAME, atol=0.0).all(axis=1) & (times < seen_at)
        return seen_at - float(times[same].max()) if same.any() else math.nan


@kernel("void(f8[:,::1], f8[::1], i8[::1], f8[::1], f8)")
def _note(
    torques: FloatArray, times: FloatArray, place: FloatArray, torque: FloatArray, now: float
) -> None:
    row = place[0]
    for j in range(torque.shape[0]):
        torques[row, j] = torque[j]
    times[row] = now
    place[0] = (row + 1) % times.shape[0]
