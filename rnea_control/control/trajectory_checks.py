"""Refuses trajectories: waypoints that no arm can follow or that the settings do not allow, and
what leaves the robot's position and velocity limits, at the points and between them. All functions
named `check` raise TrajectoryError.

Between the points the extremes of a polynomial on an interval tell, exact to rounding.
Between two neighboring roots of its derivative a polynomial is monotonic, so that it has at most
one root there, which bisection finds. So the roots of each derivative, from the highest down, part
the interval for the next one. The roots of the first derivative, and the ends, are where the
polynomial can be extreme.

In Bernstein form a polynomial lies between its smallest and its largest coefficient [Farouki 2012]:
that tells at once of most polynomials that they stay within some bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.control.settings import TrajectorySettings
from rnea_control.control.trajectory import EFFORT, POSITION_COEFFICIENTS, Trajectory
from rnea_control.control.waypoints import (
    ACCELERATION,
    AT_REST,
    FIELDS,
    POSITION,
    VELOCITY,
    Waypoints,
)
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
# How far the arm may be from a first point at time 0, [rad] or [m].
START_DISTANCE = 0.1

# What is violated first; as orders of the derivative, the position's limits or the velocity's.
_POSITION, _VELOCITY, _NOT_FINITE, _NOTHING = range(4)


def check_waypoints(
    points: Waypoints, rules: TrajectorySettings, joint_names: Sequence[str]
) -> None:
    """Refuses waypoints that no arm can follow: none at all, one without any field, numbers that
    are not finite, times that do not rise, accelerations without velocities; and positions left out
    that are not to be integrated. The message names the waypoint and the joint."""
    if len(points) == 0:
        raise TrajectoryError(
            "the trajectory has no points; it needs one at least. To stop the arm, cancel the "
            "goal or send the point where it is"
        )
    for name, values in zip(FIELDS, points.fields, strict=True):
        if not np.isfinite(values).all():
            i, j = np.argwhere(~np.isfinite(values))[0]
            raise TrajectoryError(
                f"point {i}: the {name} of joint {joint_names[j]!r} is {values[i, j]}; it "
                "must be finite"
            )
    times, has = points.times, points.has
    for wrong, text in (
        (
            ~has[: ACCELERATION + 1].any(axis=0),
            "no positions, velocities or accelerations; give positions",
        ),
        (
            has[ACCELERATION] & ~has[VELOCITY] & has[POSITION],
            "positions and accelerations but no velocities; give all three",
        ),
    ):
        if wrong.any():
            raise TrajectoryError(f"point {np.argmax(wrong)}: has {text}")
    if not np.isfinite(times).all():
        i = int(np.argmin(np.isfinite(times)))
        raise TrajectoryError(f"point {i}: its time is {times[i]}; it must be finite")
    if times[0] < 0.0:
        raise TrajectoryError(
            f"point 0: its time is {times[0]:g} s; times are counted from the start and must not "
            "be negative"
        )
    falls = np.diff(times, prepend=-1.0) <= 0.0
    if falls.any():
        i = int(np.argmax(falls))
        raise TrajectoryError(
            f"point {i}: its time {times[i]:g} s is not after that of point {i - 1}, "
            f"{times[i - 1]:g} s; times must rise from point to point"
        )
    if not (has[POSITION].all() or rules.allow_integration):
        raise TrajectoryError(
            f"point {np.argmin(has[POSITION])}: has no positions; give them, or set the parameter "
            "allow_integration_in_goal_trajectories to have them integrated from velocities"
        )


def check_first_point(points: Waypoints, position: FloatArray, model: RobotModel) -> None:
    """Refuses a first point at time 0, the start, that is not where the arm is then: at `position`,
    the desired one, shape (nv,), [rad] or [m]."""
    if points.times[0] > 0.0:
        return
    away = (points.positions[0] - position) * points.joints
    turns = np.round(away / (2.0 * math.pi)) * model.continuous
    away = np.abs(away - 2.0 * math.pi * turns)
    if away.max() > START_DISTANCE:
        j = int(np.argmax(away))
        raise TrajectoryError(
            f"point 0 is at time 0, but joint {model.joint_names[j]!r} is {away[j]:.3g} "
            f"{units(model, j).position} away from it at the start, {START_DISTANCE:g} allowed. "
            "Start where the arm is, or give the point the time to get there"
        )


def check_positions_and_end(
    points: Waypoints, start: float, rules: TrajectorySettings, model: RobotModel
) -> None:
    """Refuses waypoints outside the position limits, and a velocity at the end that is not allowed;
    `start`: the zero of the time in the error, [s]."""
    positions = points.positions
    outside = ((positions < model.lower) | (positions > model.upper)) & points.joints
    if outside.any():
        i, j = np.argwhere(outside)[0]
        raise TrajectoryError(
            f"the point at {points.times[i] - start:g} s: joint {model.joint_names[j]!r} at "
            f"{positions[i, j]:g} is outside its limits {model.lower[j]:g} to {model.upper[j]:g}"
        )
    speed = np.abs(points.velocities[-1])
    if speed.max() > AT_REST and not rules.allow_moving_end:
        j = int(np.argmax(speed))
        raise TrajectoryError(
            f"the last point: joint {model.joint_names[j]!r} has velocity "
            f"{points.velocities[-1, j]:g} at the end; the last point must be at rest, unless the "
            "parameter allow_nonzero_velocity_at_trajectory_end is set"
        )


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
    """Refuses splines that themselves leave the limits from `begin` on, [s]. From a position beyond
    its limits a joint may come back, or stay there. `start`: the zero of the times in the error,
    [s]."""
    starts, coefficients = trajectory.starts, trajectory.coefficients
    if not np.isfinite(coefficients[:, :, EFFORT:]).all():
        raise TrajectoryError("its efforts are too large; are they in Nm or N?")
    first = int(np.searchsorted(starts, begin, side="left"))
    place, found = np.zeros(2, dtype=np.int64), np.zeros(2)
    speed, anywhere = model.velocity_limit * (1.0 + VELOCITY_ROUNDING), np.full(model.nv, math.inf)
    lower, upper = model.lower - POSITION_ROUNDING, model.upper + POSITION_ROUNDING
    limits = np.array([-anywhere, anywhere, -speed, speed, lower, upper])
    scratch = np.zeros((SCRATCH[0] + 1, SCRATCH[1]))
    kind = _first_violation(starts[first:], coefficients[first:], limits, place, found, scratch)
    if kind == _NOTHING:
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
    if kind == _VELOCITY:
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
    is within them; of the velocity; lower and upper of the robot.
    """
    c = scratch[0]
    for i in range(starts.shape[0] - 1):
        duration = starts[i + 1] - starts[i]
        for j in range(coefficients.shape[1]):
            low = min(coefficients[i, j, 0] - POSITION_ROUNDING, limits[4, j])
            high = max(coefficients[i, j, 0] + POSITION_ROUNDING, limits[5, j])
            limits[0, j] = max(limits[0, j], low)
            limits[1, j] = min(limits[1, j], high)
            place[0], place[1] = i, j
            power = 1.0
            # As a polynomial of the part of the segment, 0 to 1.
            for k in range(POSITION_COEFFICIENTS):
                c[k] = coefficients[i, j, k] * power
                power *= duration
            for order in (_POSITION, _VELOCITY):
                if order == _VELOCITY:
                    for k in range(POSITION_COEFFICIENTS - 1):
                        c[k] = (k + 1) * c[k + 1] / duration
                    c[POSITION_COEFFICIENTS - 1] = 0.0
                lower, upper = limits[2 * order, j], limits[2 * order + 1, j]
                low, high = bernstein_bounds(c)
                if not (math.isfinite(low) and math.isfinite(high)):
                    return _NOT_FINITE
                if lower <= low and high <= upper:
                    continue
                low, low_at, high, high_at = extremes(c, scratch[1:])
                if lower <= low and high <= upper:
                    continue
                below = low < lower and (order == _POSITION or -low >= high)
                found[0] = starts[i] + (low_at if below else high_at) * duration
                found[1] = low if below else high
                return order
    return _NOTHING
