"""Refuses trajectories beyond a robot's position and velocity limits, also between the points."""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.control.extremes import SCRATCH, bernstein_bounds, extremes
from rnea_control.control.trajectory import EFFORT, POSITION_COEFFICIENTS, Trajectory
from rnea_control.exceptions import TrajectoryError
from rnea_control.kernels.kernel import kernel
from rnea_control.model import RobotModel
from rnea_control.model.units import units

# Rounding that no limit minds: in [rad] or [m], and of a velocity limit.
POSITION_ROUNDING = 1e-9
VELOCITY_ROUNDING = 1e-6

_WITHIN, _BELOW, _ABOVE, _TOO_FAST, _NOT_FINITE = range(5)


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
