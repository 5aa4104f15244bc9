"""Refuses trajectories beyond a robot's position and velocity limits, also between the points, by
the extremes of a polynomial on an interval, exact to rounding.

Between two neighboring roots of its derivative a polynomial is monotonic, so that it has at most
one root there, which bisection finds. So the roots of each derivative, from the highest down, part
the interval for the next one. The roots of the first derivative, and the ends, are where the
polynomial can be extreme.

In Bernstein form a polynomial lies between its smallest and its largest coefficient [Farouki 2012]:
that tells at once of most polynomials that they stay within some bounds.
"""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.control.trajectory import EFFORT, POSITION_COEFFICIENTS, Trajectory
from rnea_control.exceptions import TrajectoryError
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# The highest degree.
DEGREE = 5
# Rows of the scratch array: the polynomial, its derivatives, and the roots of two of these.
SCRATCH = (DEGREE + 3, DEGREE + 3)

# Bisections that part an interval into pieces of the size of rounding.
_BISECTIONS = 53
# Row j has the weights of the coefficients of powers in Bernstein coefficient j, degree 5.
_BERNSTEIN = np.array(
    [[math.comb(j, k) / math.comb(DEGREE, k) for k in range(DEGREE + 1)] for j in range(DEGREE + 1)]
)
# Rounding that no limit minds: in [rad] or [m], and of a velocity limit.
POSITION_ROUNDING = 1e-9
VELOCITY_ROUNDING = 1e-6

_WITHIN, _BELOW, _ABOVE, _TOO_FAST, _NOT_FINITE = range(5)


@inlined
def bernstein_bounds(c: FloatArray) -> tuple[float, float]:
    """Bounds of the polynomial on [0, 1]; `c`: its coefficients, lowest power first, shape (6,)."""
    low, high = c[0], c[0]
    for j in range(1, DEGREE + 1):
        b = 0.0
        for k in range(j + 1):
            b += _BERNSTEIN[j, k] * c[k]
        low, high = min(low, b), max(high, b)
    return low, high


@inlined
def evaluate(c: FloatArray, degree: int, u: float) -> float:
    """The polynomial at `u`."""
    value = c[degree]
    for k in range(degree - 1, -1, -1):
        value = value * u + c[k]
    return value


@inlined
def extremes(c: FloatArray, scratch: FloatArray) -> tuple[float, float, float, float]:
    """Smallest and largest value on [0, 1], and where they are.

    Args:
        c: coefficients, lowest power first, shape (6,).
        scratch: overwritten, shape `SCRATCH`.
    """
    for k in range(DEGREE + 1):
        scratch[0, k] = c[k]
    for order in range(1, DEGREE):
        for k in range(DEGREE - order + 1):
            scratch[order, k] = (k + 1) * scratch[order - 1, k + 1]
    old, new = DEGREE + 1, DEGREE + 2  # rows of the roots of the derivative above and of this one
    count = 0
    for order in range(DEGREE - 1, 0, -1):
        degree = DEGREE - order
        found = 0
        left = 0.0
        for i in range(count + 1):
            right = scratch[old, i] if i < count else 1.0
            root = _root_between(scratch[order], degree, left, right)
            if root >= 0.0:
                scratch[new, found] = root
                found += 1
            left = right
        count = found
        old, new = new, old
    low_at = high_at = 0.0
    low = high = evaluate(c, DEGREE, 0.0)
    for i in range(count + 1):
        u = scratch[old, i] if i < count else 1.0
        value = evaluate(c, DEGREE, u)
        if value < low:
            low, low_at = value, u
        if value > high:
            high, high_at = value, u
    return low, low_at, high, high_at


@inlined
def _root_between(c: FloatArray, degree: int, left: float, right: float) -> float:
    """The root of a polynomial that is monotonic between two places; -1 if it has none there."""
    at_left, at_right = evaluate(c, degree, left), evaluate(c, degree, right)
    if at_left == 0.0:
        return left
    if (at_left < 0.0) == (at_right < 0.0):
        return -1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (left + right)
        if (evaluate(c, degree, middle) < 0.0) == (at_left < 0.0):
            left = middle
        else:
            right = middle
    return 0.5 * (left + right)


def check_limits(trajectory: Trajectory, begin: float, start: float, model: RobotModel) -> None:
    """Raises TrajectoryError where the splines themselves leave the limits.

    From a position beyond its limits a joint may come back, or stay there.

    Args:
        trajectory: to be checked.
        begin: from when on it is checked, [s].
        start: the zero of the times in the error, [s].
        model: the robot.
    """
    starts, coefficients = trajectory.starts, trajectory.coefficients
    if not np.isfinite(coefficients[:, :, EFFORT:]).all():
        raise TrajectoryError("its efforts are too large; are they in Nm or N?")
    first = int(np.searchsorted(starts, begin, side="left"))
    place, found = np.zeros(2, dtype=np.int64), np.zeros(2)
    limits = np.array(
        [
            np.full(model.nv, -math.inf),
            np.full(model.nv, math.inf),
            model.lower - POSITION_ROUNDING,
            model.upper + POSITION_ROUNDING,
            model.velocity_limit * (1.0 + VELOCITY_ROUNDING),
        ]
    )
    scratch = np.zeros((SCRATCH[0] + 1, SCRATCH[1]))
    kind = _first_violation(starts[first:], coefficients[first:], limits, place, found, scratch)
    if kind == _WITHIN:
        return
    if kind == _NOT_FINITE:
        raise TrajectoryError("its numbers are too large; are they in rad and s?")
    segment, j = int(place[0]), int(place[1])
    time, value = found[0] - start, found[1]
    joint, unit = model.joint_names[j], units(model, j)
    where = (
        f"at {time:.3g} s, between the points at {max(starts[first + segment] - start, 0.0):g} s "
        f"and {starts[first + segment + 1] - start:g} s,"
    )
    if kind == _TOO_FAST:
        limit = model.velocity_limit[j]
        raise TrajectoryError(
            f"{where} joint {joint!r} would move at {abs(value):.3g} {unit.velocity}; its limit is "
            f"{limit:g}. Make the trajectory {abs(value) / limit:.3g} times slower"
        )
    raise TrajectoryError(
        f"{where} joint {joint!r} would be at {value:.4g} {unit.position}, outside its limits "
        f"{model.lower[j]:g} to {model.upper[j]:g}. Add a point there, or lower the "
        "velocities at its neighbors"
    )


@kernel("i8(f8[::1], f8[:,:,::1], f8[:,::1], i8[::1], f8[::1], f8[:,::1])", nogil=True)
def _first_violation(
    starts: FloatArray,
    coefficients: FloatArray,
    limits: FloatArray,
    place: IntArray,
    found: FloatArray,
    scratch: FloatArray,
) -> int:
    """The first violation, with its segment and joint in `place`, time and value in `found`.

    Rows of `limits`: lower and upper so far, overwritten: those of the robot from where on a joint
    is within them; lower and upper of the robot; speed.
    """
    c = scratch[0]
    for i in range(starts.shape[0] - 1):
        duration = starts[i + 1] - starts[i]
        lower, upper, speed = 0, 1, 4
        for j in range(coefficients.shape[1]):
            low = min(coefficients[i, j, 0] - POSITION_ROUNDING, limits[2, j])
            high = max(coefficients[i, j, 0] + POSITION_ROUNDING, limits[3, j])
            limits[lower, j] = max(limits[lower, j], low)
            limits[upper, j] = min(limits[upper, j], high)
            place[0], place[1] = i, j
            power = 1.0
            # As a polynomial of the part of the segment, 0 to 1.
            for k in range(POSITION_COEFFICIENTS):
                c[k] = coefficients[i, j, k] * power
                power *= duration
            low, high = bernstein_bounds(c)
            if not (math.isfinite(low) and math.isfinite(high)):
                return _NOT_FINITE
            if low < limits[lower, j] or high > limits[upper, j]:
                low, low_at, high, high_at = extremes(c, scratch[1:])
                if low < limits[lower, j]:
                    found[0], found[1] = starts[i] + low_at * duration, low
                    return _BELOW
                if high > limits[upper, j]:
                    found[0], found[1] = starts[i] + high_at * duration, high
                    return _ABOVE
            for k in range(POSITION_COEFFICIENTS - 1):
                c[k] = (k + 1) * c[k + 1] / duration
            c[POSITION_COEFFICIENTS - 1] = 0.0
            low, high = bernstein_bounds(c)
            if not (math.isfinite(low) and math.isfinite(high)):
                return _NOT_FINITE
            if max(high, -low) > limits[speed, j]:
                low, low_at, high, high_at = extremes(c, scratch[1:])
                if max(high, -low) > limits[speed, j]:
                    fast, at = (high, high_at) if high > -low else (low, low_at)
                    found[0], found[1] = starts[i] + at * duration, fast
                    return _TOO_FAST
    return _WITHIN
