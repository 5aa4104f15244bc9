"""`AppliedTorque`: the age of the torque that the robot applies, where its states tell it."""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.kernels.inlining import inlined
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

    Attributes:
        torques, times, place: for machine code that notes, as the function does.
    """

    def __init__(self, joints: int) -> None:
        self.torques = np.full((REMEMBERED, joints), math.nan)
        self.times = np.full(REMEMBERED, math.nan)
        self.place = np.zeros(1, dtype=np.int64)

    def note(self, torque: FloatArray, now: float) -> None:
        """A torque is commanded; `now` by the steady clock, [s]. Allocates nothing."""
        _note(self.torques, self.times, self.place, torque, now)

    def age(self, efforts: FloatArray, seen_at: float) -> float:
        """How long before `seen_at` these efforts were commanded last, [s]; NaN if they were not.

        Args:
            efforts: as measured, shape (nv,), [Nm] or [N].
            seen_at: when the state with them came, by the steady clock, [s].
        """
        torques, times = self.torques.copy(), self.times.copy()
        same = np.isclose(torques, efforts, rtol=SAME, atol=0.0).all(axis=1) & (times < seen_at)
        return seen_at - float(times[same].max()) if same.any() else math.nan


@inlined
def note(
    torques: FloatArray, times: FloatArray, place: IntArray, torque: FloatArray, now: float
) -> None:
    """Keeps a torque that is commanded."""
    row = place[0]
    for j in range(torque.shape[0]):
        torques[row, j] = torque[j]
    times[row] = now
    place[0] = (row + 1) % times.shape[0]


@kernel("void(f8[:,::1], f8[::1], i8[::1], f8[::1], f8)")
def _note(
    torques: FloatArray, times: FloatArray, place: IntArray, torque: FloatArray, now: float
) -> None:
    """`note` by itself."""
    note(torques, times, place, torque, now)
