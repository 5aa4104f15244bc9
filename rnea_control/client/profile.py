r"""Time parametrization of motions: positions, velocities and accelerations at knots. The quintics
by which the controller interpolates between the knots reproduce the motion exactly.

A motion from rest to rest is a straight line in joint space, :math:`q(t) = q_0 + s(t) (q_1 - q_0)`.
With `ruckig`, :math:`s` is the fastest profile of bounded velocity, acceleration and jerk: cubics
in time, with a knot wherever the jerk changes. Without it, :math:`s = 10 x^3 - 15 x^4 + 6 x^5` of
:math:`x = t / T`, with largest velocity 15/8 / T and largest acceleration 10 / sqrt(3) / T^2.

A motion through points at given times is their smooth spline (control/waypoints.py), slowed down as
a whole where it would exceed a limit. No ROS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.trajectory import segments
from rnea_control.control.waypoints import ACCELERATION, POSITION, VELOCITY, Waypoints

try:
    import ruckig
except ImportError:
    ruckig = None

SHORTEST_WAY = 1e-6  # least displacement of the joint that moves most [rad] or [m]
TIME_TO_SPEED = 0.5  # time to the velocity limit with the default acceleration [s]
TIME_TO_ACCELERATION = 0.1  # time to the acceleration limit with the largest jerk [s]
SHORTEST_PHASE = 1e-5  # duration below which a phase of a profile is omitted [s]
MARGIN = 1e-3  # share of the limits that is reserved for the rounding of times to nanoseconds
ROUNDING = 1e-6  # share of the displacement by which the end of a profile may differ
QUINTIC_VELOCITY = 15.0 / 8.0  # largest velocity of the quintic [displacement / T]
QUINTIC_ACCELERATION = 10.0 / math.sqrt(3.0)  # largest acceleration [displacement / T^2]
NANOSECONDS = 1e9  # in a second
PIECES = 8  # pieces of a segment, each with its own bound


@dataclass(frozen=True)
class MotionLimits:
    """Bounds of a motion, shape (nv,) each."""

    velocity: FloatArray  # [rad/s] or [m/s]
    acceleration: FloatArray  # [rad/s^2] or [m/s^2]

    @classmethod
    def of(
        cls, velocity_limit: FloatArray, speed: float, acceleration: FloatArray | None = None
    ) -> MotionLimits:
        """A share `speed` of the velocity limits. By default the acceleration reaches this velocity
        in TIME_TO_SPEED, because a URDF has no limits of acceleration."""
        velocity = speed * velocity_limit
        return cls(velocity, velocity / TIME_TO_SPEED if acceleration is None else acceleration)


@dataclass(frozen=True)
class Profile:
    """A motion from rest to rest at n knots.

    Attributes:
        times: times of the knots, the first is 0, shape (n,), [s].
        positions: shape (n, nv), [rad] or [m].
        velocities: shape (n, nv), [rad/s] or [m/s].
        accelerations: shape (n, nv), [rad/s^2] or [m/s^2].
        slowed: duration relative to the requested one, at least 1.
        efforts: efforts in addition to the controller's, shape (n, nv), [Nm] or [N]; None for none.
    """

    times: FloatArray
    positions: FloatArray
    velocities: FloatArray
    accelerations: FloatArray
    slowed: float = 1.0
    efforts: FloatArray | None = None

    @property
    def duration(self) -> float:
        return float(self.times[-1])

    @property
    def waypoints(self) -> Waypoints:
        """The knots as the controller's waypoints."""
        efforts = np.zeros_like(self.positions)
        fields = np.array([self.positions, self.velocities, self.accelerations, efforts])
        has = np.ones((4, len(self.times)), dtype=bool)
        has[3] = False
        return Waypoints(self.times, fields, has, np.ones(fields.shape[2], dtype=bool))


def chained(profiles: Sequence[Profile]) -> Profile:
    """Concatenated motions; each starts at the end of the previous one."""
    first, *others = profiles
    ends = np.cumsum([each.duration for each in profiles])
    later = (end + each.times[1:] for end, each in zip(ends, others, strict=False))
    return Profile(
        np.concatenate([first.times, *later]),
        np.concatenate([first.positions, *(each.positions[1:] for each in others)]),
        np.concatenate([first.velocities, *(each.velocities[1:] for each in others)]),
        np.concatenate([first.accelerations, *(each.accelerations[1:] for each in others)]),
        max(each.slowed for each in profiles),
    )


def straight(start: FloatArray, target: FloatArray, limits: MotionLimits) -> Profile:
    """The motion from rest at `start` to rest at `target`, shape (nv,) each, [rad] or [m]. All
    joints start and stop at the same time."""
    way = target - start
    longest = float(np.abs(way).max())
    if longest <= SHORTEST_WAY:
        return _resting(start)
    share = np.abs(way) / longest
    with np.errstate(divide="ignore", over="ignore"):  # joints at rest impose no limit
        velocity = (1.0 - MARGIN) * float((limits.velocity / share).min())
        acceleration = (1.0 - MARGIN) * float((limits.acceleration / share).min())
    if (knots := _fastest(longest, velocity, acceleration)) is not None:
        profile = _along(start, target, knots, longest)
        rates = largest_rates(profile.waypoints)
        if (rates[0] <= limits.velocity).all() and (rates[1] <= limits.acceleration).all():
            return profile
    return _along(start, target, _quintic(longest, velocity, acceleration), longest)


def _along(start: FloatArray, target: FloatArray, knots: FloatArray, longest: float) -> Profile:
    """The line from `start` to `target`.

    Args:
        start: shape (nv,).
        target: shape (nv,).
        knots: time, position, velocity and acceleration of the joint that moves most, shape (4, n).
        longest: displacement of the joint that moves most.
    """
    rows = knots[1:, :, None] / longest * (target - start)
    rows[0] += start
    rows[0, -1], rows[1:, -1] = target, 0.0
    return Profile(_rounded(knots[0]), *rows)


def through(times: FloatArray, positions: FloatArray, limits: MotionLimits) -> Profile:
    """The smooth motion through `positions`, shape (n, nv), at `times`, shape (n,), [s], from rest
    to rest. The whole motion is slowed down if a limit requires it."""
    n, nv = positions.shape
    if n == 1:
        return _resting(positions[0])
    fields, has = np.zeros((4, n, nv)), np.zeros((4, n), dtype=bool)
    fields[POSITION], has[POSITION] = positions, True
    has[: ACCELERATION + 1, 0] = True
    given = Waypoints(times - times[0], fields, has, np.ones(nv, dtype=bool))
    points = given.upsampled(at_rest=True)
    velocity, acceleration = largest_rates(points)
    slower = np.maximum(velocity / limits.velocity, np.sqrt(acceleration / limits.acceleration))
    factor = max(1.0, float(slower.max()))
    if factor > 1.0:
        points = points.stretched(factor, 0.0)
    p, v, a = points.fields[: ACCELERATION + 1]
    return Profile(_rounded(points.times), p, v, a, factor)


def largest_rates(points: Waypoints) -> tuple[FloatArray, FloatArray]:
    """Upper bounds of each joint's velocity and acceleration between waypoints with positions,
    velocities and accelerations, shape (nv,) each."""
    c, T = segments(points)[:-1, :, :6], np.diff(points.times)
    bounds = []
    for order in (VELOCITY, ACCELERATION):
        c = c[:, :, 1:] * np.arange(1, c.shape[2])
        degree = c.shape[2] - 1
        u = np.linspace(0.0, 1.0, degree + 1)
        # Values at degree + 1 places of a piece give its Bernstein coefficients, which are bounds.
        k = np.arange(degree + 1)
        binomials = np.array([math.comb(degree, i) for i in k])
        bernstein = binomials * u[:, None] ** k * (1.0 - u[:, None]) ** (degree - k)
        places = (np.arange(PIECES)[:, None] + u) / PIECES  # shape (pieces, degree + 1)
        powers = (places[None] * T[:, None, None])[..., None] ** k
        values = np.einsum("ijk,ipdk->ijpd", c, powers)
        coefficients = values @ np.linalg.inv(bernstein).T
        ends = points.fields[order]
        largest = np.abs(coefficients).max(axis=(0, 2, 3))
        bounds.append(np.maximum(largest, np.abs(ends).max(axis=0)))
    return bounds[0], bounds[1]


def _resting(position: FloatArray) -> Profile:
    still = np.zeros((1, len(position)))
    return Profile(np.zeros(1), position[None].copy(), still, still.copy())


def _rounded(times: FloatArray) -> FloatArray:
    """Times rounded to nanoseconds, as in a message."""
    return np.round(times * NANOSECONDS) / NANOSECONDS


def _quintic(way: float, velocity: float, acceleration: float) -> FloatArray:
    """Time, position, velocity and acceleration at both ends of the quintic, shape (4, 2)."""
    T = max(QUINTIC_VELOCITY * way / velocity, math.sqrt(QUINTIC_ACCELERATION * way / acceleration))
    return np.array([[0.0, T], [0.0, way], [0.0, 0.0], [0.0, 0.0]])


def _fastest(way: float, velocity: float, acceleration: float) -> FloatArray | None:
    """Time, position, velocity and acceleration at the changes of jerk of the fastest profile,
    shape (4, n); None without Ruckig, or if its profile is not valid."""
    if ruckig is None:
        return None
    motion = ruckig.InputParameter(1)
    motion.current_position, motion.target_position = [0.0], [way]
    motion.max_velocity, motion.max_acceleration = [velocity], [acceleration]
    motion.max_jerk = [acceleration / TIME_TO_ACCELERATION]
    found = ruckig.Trajectory(1)
    try:
        result = ruckig.Ruckig(1).calculate(motion, found)
    except RuntimeError:
        return None
    if result not in (ruckig.Result.Working, ruckig.Result.Finished):
        return None
    (profile,) = found.profiles[0]
    ends = np.concatenate([[0.0], np.cumsum(profile.t)])
    knots = np.array([ends, profile.p, profile.v, profile.a])
    keep = np.diff(ends, prepend=-1.0) > SHORTEST_PHASE
    keep[-1] = False
    knots = np.concatenate([knots[:, keep], [[ends[-1]], [way], [0.0], [0.0]]], axis=1)
    if knots.shape[1] > 2 and knots[0, -1] - knots[0, -2] <= SHORTEST_PHASE:
        knots = np.delete(knots, -2, axis=1)
    right = np.isfinite(knots).all() and abs(profile.p[-1] - way) <= ROUNDING * way
    return knots if right else None
