r"""Joint trajectories as piecewise polynomials of trajectory time.

Each segment is one polynomial of the time since its start, for each joint,

.. math:: q(s) = \sum_{k=0}^{5} c_k s^k

and the effort that is added to the controller's torque is a line, :math:`c_6 + c_7 s`. The hold
after the end is a last segment that never ends, so that sampling knows no special case.

Trajectory time runs as the controller's time does, but slower while the speed is scaled
(path.py). In code it is `s`, and the controller's time is `t`.
"""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel

# Of the position's polynomial, and of the effort's line, which comes after it.
POSITION_COEFFICIENTS = 6
EFFORT = POSITION_COEFFICIENTS
COEFFICIENTS = POSITION_COEFFICIENTS + 2
# Rows that `sample` fills: position, velocity, acceleration, effort.
SAMPLED = 4


class Trajectory:
    """The positions of all joints over trajectory time. Never changed once made, but for those of a
    controller's stops.

    Attributes:
        starts: when each segment starts, ascending, shape (m,), [s]; the last one never ends.
        coefficients: of each segment and joint, lowest power first, six of the position and two of
            the effort, shape (m, nv, 8).
        end_time: from when on all joints are at rest, [s].
    """

    def __init__(
        self, starts: FloatArray, coefficients: FloatArray, end_time: float | None = None
    ) -> None:
        """Takes finished segments: see `hold`, and splicing.py.

        Args:
            starts, coefficients: as the attributes.
            end_time: as the attribute; without it, when the last segment starts.
        """
        self.starts = np.ascontiguousarray(starts, dtype=np.float64)
        self.coefficients = np.ascontiguousarray(coefficients, dtype=np.float64)
        self.end_time = float(self.starts[-1]) if end_time is None else end_time

    @classmethod
    def hold(cls, time: float, position: FloatArray) -> Trajectory:
        """Rest at `position`, shape (nv,), at all times; `end_time` is `time`."""
        return cls(np.array([time]), rest(position)[None])

    def copy(self) -> Trajectory:
        """The same in arrays of its own, without segments that never start."""
        used = np.isfinite(self.starts)
        return Trajectory(self.starts[used], self.coefficients[used], self.end_time)

    @property
    def nv(self) -> int:
        return self.coefficients.shape[1]

    def sampled(self, time: float) -> FloatArray:
        """Rows of position, velocity, acceleration and effort at a time, shape (4, nv);
        allocates."""
        desired = np.zeros((SAMPLED, self.nv))
        _sample(self.starts, self.coefficients, time, desired)
        return desired

    def at(self, time: float) -> FloatArray:
        """Rows of position, velocity and acceleration at a time, shape (3, nv); allocates."""
        return self.sampled(time)[:3]


def rest(position: FloatArray) -> FloatArray:
    """Coefficients of a segment at rest, shape (nv, 8)."""
    coefficients = np.zeros((len(position), COEFFICIENTS))
    coefficients[:, 0] = position
    return coefficients


@inlined
def segment_at(starts: FloatArray, time: float) -> int:
    """The segment at a time, by bisection: there may be thousands."""
    low, high = 0, starts.shape[0]
    while high - low > 1:
        middle = (low + high) // 2
        if starts[middle] <= time:
            low = middle
        else:
            high = middle
    return low


@inlined
def evaluate_segment(coefficients: FloatArray, segment: int, s: float, rows: FloatArray) -> None:
    """Fills rows 0 to 3 with position, its derivatives by trajectory time, and effort at a time
    since a segment's start, [s]; before the start it is at rest."""
    before_start = s < 0.0
    if before_start:
        s = 0.0
    for j in range(coefficients.shape[1]):
        c = coefficients[segment, j]
        rows[0, j] = c[0] + s * (c[1] + s * (c[2] + s * (c[3] + s * (c[4] + s * c[5]))))
        rows[1, j] = c[1] + s * (2.0 * c[2] + s * (3.0 * c[3] + s * (4.0 * c[4] + s * 5.0 * c[5])))
        rows[2, j] = 2.0 * c[2] + s * (6.0 * c[3] + s * (12.0 * c[4] + s * 20.0 * c[5]))
        rows[3, j] = c[EFFORT] + s * c[EFFORT + 1]
        if before_start:
            rows[1, j] = 0.0
            rows[2, j] = 0.0


@inlined
def sample(
    starts: FloatArray, coefficients: FloatArray, segment: int, time: float, desired: FloatArray
) -> int:
    """Fills rows 0 to 3 of `desired` at `time`, as `evaluate_segment`; returns the segment used.

    `segment` is the one used last: the search starts there, so it is short while time runs on.
    """
    last = starts.shape[0] - 1
    segment = min(max(segment, 0), last)
    while segment < last and time >= starts[segment + 1]:
        segment += 1
    while segment > 0 and time < starts[segment]:
        segment -= 1
    evaluate_segment(coefficients, segment, time - starts[segment], desired)
    return segment


@kernel("void(f8[::1], f8[:,:,::1], f8, f8[:,::1])")
def _sample(starts: FloatArray, coefficients: FloatArray, time: float, desired: FloatArray) -> None:
    sample(starts, coefficients, 0, time, desired)
