r"""Joint trajectories as piecewise polynomials of trajectory time: through waypoints, and joined to
the present trajectory without a jump.

Each segment is one polynomial of the time since its start, for each joint,

.. math:: q(s) = \sum_{k=0}^{5} c_k s^k

and the effort that is added to the controller's torque is a line, :math:`c_6 + c_7 s`. The hold
after the end is a last segment that never ends, so that sampling knows no special case.

Between two waypoints the position is the lowest polynomial that meets the fields that both have:
a line for positions, a cubic with velocities, a quintic with accelerations too. The effort is a
line, and 0 at waypoints without one.

The old trajectory is followed until the new one takes over; joints that the new trajectory does not
move follow the old one to its end.

**Scaling.** Trajectory time `s` may run slower than the controller's time `t`. The scaling
:math:`\sigma = ds/dt` follows its target through two equal first-order lags, so that it and its
rate are continuous, and it never leaves the range of its targets, 0 to 1. With
:math:`\dot q = q' \sigma` and :math:`\ddot q = q'' \sigma^2 + q' \dot\sigma` the desired velocity
and acceleration are continuous too. Each step solves the lags exactly.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray, Matrices, Vector
from rnea_control.control.layout import Arm, Desired, State
from rnea_control.control.waypoints import ACCELERATION, VELOCITY, Waypoints
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import array_at

POSITION_COEFFICIENTS = 6  # number of coefficients of the position's polynomial
EFFORT = POSITION_COEFFICIENTS  # index of the first coefficient of the effort's line
COEFFICIENTS = POSITION_COEFFICIENTS + 2  # number of coefficients of position and effort
ROUNDING = 1e-12  # relative difference below which polynomials are the same
LAG_TIME = 0.1  # time constant of each lag of the scaling; 96 % of a change take 0.5 s [s]
STANDSTILL = 1e-9  # scaling, [1], and rate of it, [1/s], below which a motion is at rest


class Trajectory:
    """The positions of all joints over trajectory time. Never changed once made, except for the
    trajectories of a controller's stops.

    Attributes:
        starts: times when the segments start, ascending, shape (m,), [s]; the last segment never
            ends.
        coefficients: coefficients of each segment and joint, lowest power first, six of the
            position and two of the effort, shape (m, nv, 8).
        end_time: time from which all joints are at rest, [s].
    """

    def __init__(
        self, starts: FloatArray, coefficients: FloatArray, end_time: float | None = None
    ) -> None:
        """Takes the attributes; the default end time is the start of the last segment."""
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

    @property
    def addresses(self) -> tuple[int, int, int]:
        """Addresses of starts and coefficients, and number of segments."""
        return self.starts.ctypes.data, self.coefficients.ctypes.data, len(self.starts)

    def sampled(self, time: float) -> FloatArray:
        """Rows of position, velocity, acceleration and effort at a time, shape (4, nv);
        allocates."""
        desired = Desired.zeros(self.nv)
        _sample(self.starts, self.coefficients, 0, time, 0.0, desired)
        return desired.view(np.ndarray)

    def at(self, time: float) -> FloatArray:
        """Rows of position, velocity and acceleration at a time, shape (3, nv); allocates."""
        return self.sampled(time)[:3]


def rest(position: FloatArray) -> FloatArray:
    """Coefficients of a segment at rest, shape (nv, 8)."""
    coefficients = np.zeros((len(position), COEFFICIENTS))
    coefficients[:, 0] = position
    return coefficients


@inlined
def quintic(mean: Any, v0: Any, v1: Any, a0: Any, a1: Any, T: Any) -> tuple[Any, Any, Any]:
    """The three highest coefficients of a segment of duration T between two states, from its mean
    velocity, and velocities and accelerations at its ends."""
    c3 = (20.0 * mean - (8.0 * v1 + 12.0 * v0) - (3.0 * a0 - a1) * T) / (2.0 * T**2)
    c4 = (-30.0 * mean + (14.0 * v1 + 16.0 * v0) + (3.0 * a0 - 2.0 * a1) * T) / (2.0 * T**3)
    return c3, c4, (12.0 * mean - 6.0 * (v1 + v0) - (a0 - a1) * T) / (2.0 * T**4)


def segments(points: Waypoints) -> FloatArray:
    """Coefficients of the segments between n waypoints with positions, and of the rest after the
    last waypoint, shape (n, nv, 8)."""
    coefficients = np.zeros((len(points), points.nv, COEFFICIENTS))
    c, coefficients[-1] = coefficients[:-1], rest(points.positions[-1])
    T = np.diff(points.times)[:, None]
    x0, v0, a0, f0 = points.fields[:, :-1]
    x1, v1, a1, f1 = points.fields[:, 1:]
    mean = (x1 - x0) / T
    both = (points.has[:, :-1] & points.has[:, 1:])[:, :, None]
    cubic, is_quintic = both[VELOCITY], both[VELOCITY] & both[ACCELERATION]
    c[:, :, 0] = x0
    c[:, :, 1] = np.where(cubic, v0, mean)
    c[:, :, 2] = np.where(cubic, (3.0 * mean - 2.0 * v0 - v1) / T, 0.0)
    c[:, :, 3] = np.where(cubic, (-2.0 * mean + v0 + v1) / T**2, 0.0)
    if is_quintic.any():  # these take as long as all other coefficients
        for k, higher in enumerate((0.5 * a0, *quintic(mean, v0, v1, a0, a1, T)), start=2):
            c[:, :, k] = np.where(is_quintic, higher, c[:, :, k])
    coefficients[:, :, EFFORT] = points.efforts
    c[:, :, EFFORT + 1] = (f1 - f0) / T
    return coefficients


def shifted(coefficients: FloatArray, time: FloatArray) -> FloatArray:
    """The same polynomials, shape (m, nv, 8), with starts `time` later, shape (m,), [s]."""
    n = POSITION_COEFFICIENTS
    power = time[:, None] ** np.arange(n)
    move = np.zeros((len(time), n, n))
    for k in range(n):
        for i in range(k, n):
            move[:, i, k] = math.comb(i, k) * power[:, i - k]
    new = coefficients.copy()
    new[:, :, :n] = np.einsum("mji,mik->mjk", coefficients[:, :, :n], move)
    new[:, :, EFFORT] += time[:, None] * coefficients[:, :, EFFORT + 1]
    return new


def spliced(old: Trajectory, now: float, turns: FloatArray, points: Waypoints) -> Trajectory:
    """The old trajectory, shifted by `turns`, until the trajectory through the points takes over.

    Args:
        old: the trajectory followed so far; its segments before `now` are left out.
        now: time from which the result will be sampled, not after the first point, [s].
        turns: whole turns by which the old trajectory is shifted, shape (nv,), [rad].
        points: the waypoints ahead with all positions, led by the state of the old trajectory.
    """
    new = merged(old, Trajectory(points.times, segments(points)), points.joints)
    first = max(int(np.searchsorted(old.starts, now, side="right")) - 1, 0)
    after = int(np.searchsorted(old.starts, new.starts[0], side="left"))
    kept = old.coefficients[first:after].copy()
    kept[:, :, 0] += turns
    starts = np.concatenate([old.starts[first:after], new.starts])
    return Trajectory(starts, np.concatenate([kept, new.coefficients]), new.end_time)


def merged(old: Trajectory, new: Trajectory, joints: BoolArray) -> Trajectory:
    """A trajectory from the start of the new one on, in which `joints`, shape (nv,), follow the new
    trajectory, and the others the old trajectory."""
    if joints.all():
        return new
    later = _breaks(old, ~joints)
    starts = np.unique(np.concatenate([new.starts, later[later > new.starts[0]]]))
    coefficients = np.empty((len(starts), old.nv, COEFFICIENTS))
    for which, path in ((joints, new), (~joints, old)):
        segment = np.maximum(np.searchsorted(path.starts, starts, side="right") - 1, 0)
        passed = np.maximum(starts - path.starts[segment], 0.0)
        coefficients[:, which] = shifted(path.coefficients[segment][:, which], passed)
    return Trajectory(starts, coefficients, max(new.end_time, old.end_time))


def _breaks(trajectory: Trajectory, joints: BoolArray) -> FloatArray:
    """The starts of the segments that some of these joints need. Unneeded segments are dropped, as
    they would add up with every replacement of the other joints."""
    used = trajectory.copy()
    starts, c, passed = used.starts, used.coefficients[:, joints], np.diff(used.starts)
    change = np.abs(c[1:] - shifted(c[:-1], passed))
    return starts[1:][(change > ROUNDING * shifted(np.abs(c[:-1]), passed)).any(axis=(1, 2))]


@inlined
def evaluate_segment(coefficients: Matrices, segment: int, s: float, into: Desired) -> None:
    """Fills in the sample of the trajectory at a time since a segment's start, [s]; before the
    start the trajectory is at rest."""
    before_start = s < 0.0
    if before_start:
        s = 0.0
    for j in range(coefficients.shape[1]):
        c = coefficients[segment, j]
        into.desired_position[j] = c[0] + s * (
            c[1] + s * (c[2] + s * (c[3] + s * (c[4] + s * c[5])))
        )
        into.desired_velocity[j] = c[1] + s * (
            2.0 * c[2] + s * (3.0 * c[3] + s * (4.0 * c[4] + s * 5.0 * c[5]))
        )
        into.desired_acceleration[j] = 2.0 * c[2] + s * (
            6.0 * c[3] + s * (12.0 * c[4] + s * 20.0 * c[5])
        )
        into.desired_effort[j] = c[EFFORT] + s * c[EFFORT + 1]
        if before_start:
            into.desired_velocity[j] = into.desired_acceleration[j] = 0.0


@inlined
def sample(
    starts: Vector, coefficients: Matrices, segment: int, time: float, after: float, into: Desired
) -> int:
    """Fills in the sample of the trajectory at `time` + `after`; returns the segment used. See
    `evaluate_segment`.

    `segment` is the segment used last: the search starts there, so it is short while time runs on.
    `after` is for steps that are short for the clock: 0.2 us with seconds since 1970.
    """
    last = starts.shape[0] - 1
    segment = min(max(segment, 0), last)
    while segment < last and after >= starts[segment + 1] - time:
        segment += 1
    while segment > 0 and after < starts[segment] - time:
        segment -= 1
    evaluate_segment(coefficients, segment, (time - starts[segment]) + after, into)
    return segment


# Kernel of `sample`, for Python.
_sample = kernel()(sample)


# A controller follows a trajectory by its address, so that machine code can change to another
# trajectory between two ticks. `arm` and `state`: see layout.py.


@inlined
def follow(
    arm: Arm, state: State, starts_at: int, coefficients_at: int, segments: int, end: float
) -> None:
    """Changes to the trajectory at these addresses, which is at rest from `end` on."""
    arm.starts_at, arm.coefficients_at = starts_at, coefficients_at
    arm.segments = segments
    arm.revision += 1
    state.path_end = end
    state.segment = 0.0
    state.unscaled_until = -math.inf


@inlined
def path_of(arm: Arm, nv: int) -> tuple[Vector, Matrices]:
    """Starts and coefficients of the trajectory that is followed."""
    segments = arm.segments
    starts = array_at(arm.starts_at, (segments,))
    return starts, array_at(arm.coefficients_at, (segments, nv, COEFFICIENTS))


@inlined
def advance_scaling(state: State, dt: float, slows: bool) -> None:
    """Advances the scaling, and the delay `behind` of trajectory time, by `dt` [s].

    `slows`: True if the target of the scaling is 0 for now.
    """
    wanted = state.target_scaling
    target = 0.0 if slows else wanted
    if state.last_trajectory_time < state.unscaled_until:
        target = wanted = 1.0
    if slows:
        state.pause_lasts = 1.0
    first = state.leading_scaling - target
    second = state.scaling - target
    if abs(first) < STANDSTILL and abs(second) < STANDSTILL:
        state.leading_scaling = target
        state.scaling = target
        state.scaling_rate = 0.0
        state.behind += (1.0 - target) * dt
        if target == wanted:
            state.pause_lasts = 0.0
        elif state.pause_lasts != 0.0:
            state.pause_delay += (wanted - target) * dt
        return
    x = dt / LAG_TIME
    decay = math.exp(-x)
    passed = LAG_TIME * ((first + second) * (1.0 - decay) - first * x * decay)
    state.behind += (1.0 - target) * dt - passed
    if state.pause_lasts != 0.0:
        state.pause_delay += (wanted - target) * dt - passed
    second = (second + first * x) * decay
    first *= decay
    state.leading_scaling = target + first
    state.scaling = target + second
    state.scaling_rate = (first - second) / LAG_TIME


@inlined
def settle(state: State) -> None:
    """Sets the scaling to its target at once, while the arm is at rest."""
    target = state.target_scaling
    state.leading_scaling = state.scaling = target
    state.scaling_rate = 0.0


@inlined
def scale(state: State) -> None:
    """Turns the desired derivatives by trajectory time into those by time."""
    scaling, rate = state.scaling, state.scaling_rate
    for j in range(state.shape[1]):
        derivative = state.desired_velocity[j]
        state.desired_velocity[j] = derivative * scaling
        state.desired_acceleration[j] = (
            state.desired_acceleration[j] * scaling * scaling + derivative * rate
        )
