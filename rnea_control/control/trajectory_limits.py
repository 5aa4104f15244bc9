r"""Compares the positions, velocities and torques of a trajectory with the robot's limits, before
the arm moves.

**Polynomials.** The extremes on an interval are exact to rounding. Between two neighboring roots of
its derivative a polynomial is monotonic, so that it has at most one root there, which bisection
finds. So the roots of each derivative, from the highest down, part the interval for the next one.
The polynomial can be extreme at the roots of the first derivative, and at the ends. In Bernstein
form a polynomial lies between its smallest and its largest coefficient [Farouki 2012]: this shows
at once that most polynomials stay within their bounds.

**Torques.** Run k times slower, a trajectory has velocities v / k and accelerations a / k^2: with
x = 1 / k its torque is

.. math:: \tau(x) = g + e + (\tau_{rigid} - g) \, x^2 + \tau_f(v x)

with the gravity torque g, the trajectory's own effort e, and the friction of dynamics/friction.py
[Hollerbach 1984].
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import Matrices, Matrix, RecordArray, Vector
from rnea_control.control.layout import Desired
from rnea_control.control.settings import ControllerSettings
from rnea_control.control.trajectory import EFFORT, ROUNDING, Trajectory, evaluate_segment
from rnea_control.dynamics import Workspace
from rnea_control.dynamics.friction import friction_torque
from rnea_control.dynamics.rnea import add_armature, gravity_outward_pass, inward_pass, outward_pass
from rnea_control.exceptions import TrajectoryLimitsError, distinct
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.record import Record
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

DEGREE = 5  # degree of positions, the highest
# Shape of the scratch array: rows of the polynomial, its derivatives, and roots of two of these.
SCRATCH = (DEGREE + 3, DEGREE + 3)
# Row j has the weights of the coefficients of powers in Bernstein coefficient j, degree 5.
_BERNSTEIN = np.array(
    [[math.comb(j, k) / math.comb(DEGREE, k) for k in range(DEGREE + 1)] for j in range(DEGREE + 1)]
)
_BISECTIONS = 53  # bisections that find a number from 0 to 1 to rounding
POSITION_ROUNDING = 1e-9  # violation of a position limit that is rounding [rad] or [m]
VELOCITY_ROUNDING = 1e-6  # violation of a velocity limit that is rounding, as a part of the limit
# Kinds of the first violation; the first two are also orders of the derivative.
_BEYOND_POSITION = 0  # a position limit is violated
_BEYOND_VELOCITY = 1  # a velocity limit is violated
_NOT_FINITE = 2  # a number is too large
_NOTHING = 3  # there is no violation

SAMPLE_TIME = 0.004  # time between samples of the torques [s]
MOST_SAMPLES = 20_000  # number of samples above which the time between them is longer
# Passes over the samples, at most; each slows down to the sample that needs it most, and three or
# four are usual.
_PASSES = 21


class Sample(Desired):
    """Sample of a trajectory at a time, and the torques for it."""

    torque: Vector
    gravity: Vector
    slower_velocity: Vector  # velocity when the trajectory runs slower


class Worst(Record):
    """Sample with the largest part of an effort limit so far."""

    ratio: float = 0.0  # part of the limit
    joint: int = 0
    time: float = 0.0
    torque: float = 0.0


@inlined
def bernstein_bounds(c: Vector) -> tuple[float, float]:
    """Bounds of a polynomial on [0, 1]; `c`: coefficients, lowest power first, shape (6,)."""
    low, high = c[0], c[0]
    for j in range(1, DEGREE + 1):
        b = 0.0
        for k in range(j + 1):
            b += _BERNSTEIN[j, k] * c[k]
        low, high = min(low, b), max(high, b)
    return low, high


@inlined
def evaluate(c: Vector, degree: int, u: float) -> float:
    """The polynomial at `u`."""
    value = c[degree]
    for k in range(degree - 1, -1, -1):
        value = value * u + c[k]
    return value


@inlined
def extremes(c: Vector, scratch: Matrix) -> tuple[float, float, float, float]:
    """Smallest and largest value of a polynomial on [0, 1], each followed by its place; `c`:
    coefficients, lowest power first, shape (6,); `scratch`: overwritten, shape `SCRATCH`."""
    for k in range(DEGREE + 1):
        scratch[0, k] = c[k]
    for order in range(1, DEGREE):
        for k in range(DEGREE - order + 1):
            scratch[order, k] = (k + 1) * scratch[order - 1, k + 1]
    old, new = DEGREE + 1, DEGREE + 2  # rows of the roots before, and of the new roots
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
def _root_between(c: Vector, degree: int, left: float, right: float) -> float:
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
    """Refuses a trajectory that leaves the robot's limits of position and velocity.

    From a position beyond its limits a joint may come back, or stay there.

    Args:
        trajectory: the trajectory.
        begin: time from which it is checked, [s].
        start: zero of the times in the message, [s].
        model: the robot.

    Raises:
        TrajectoryLimitsError: a limit is violated, or numbers are too large.
    """
    if not np.isfinite(trajectory.coefficients[:, :, EFFORT:]).all():
        raise TrajectoryLimitsError("its efforts are too large; are they in Nm or N?")
    first = int(np.searchsorted(trajectory.starts, begin, side="left"))
    starts, coefficients = trajectory.starts[first:], trajectory.coefficients[first:]
    speed, anywhere = model.velocity_limit * (1.0 + VELOCITY_ROUNDING), np.full(model.nv, math.inf)
    lower, upper = model.lower - POSITION_ROUNDING, model.upper + POSITION_ROUNDING
    limits = np.array([-anywhere, anywhere, -speed, speed, lower, upper])
    found, scratch = np.zeros(4), np.zeros((SCRATCH[0] + 1, SCRATCH[1]))
    what = _first_violation(starts, coefficients, limits, found, scratch)
    if what == _NOTHING:
        return
    if what == _NOT_FINITE:
        raise TrajectoryLimitsError("its numbers are too large; are they in rad and s?")
    segment, j = found[:2].astype(int)
    time, value = found[2:].tolist()
    unit, limit = units(model, j), model.velocity_limit[j]
    left, right = starts[segment : segment + 2] - start
    at, least, most = distinct(value, model.lower[j], model.upper[j], digits=5)
    does = (
        f"be at {at} {unit.position}, outside its limits {least} to {most}. Add a point there, or "
        "lower the velocities at its neighbors"
    )
    if what == _BEYOND_VELOCITY:
        at, most, slower = *distinct(abs(value), limit, digits=3), abs(value) / limit
        does = (
            f"move at {at} {unit.velocity}; its limit is {most}. Make the trajectory "
            f"{distinct(slower, 1.0, digits=3)[0]} times slower"
        )
    raise TrajectoryLimitsError(
        f"at {time - start:.3g} s, between the points at {max(left, 0.0):g} s and {right:g} s, "
        f"joint {model.joint_names[j]!r} would {does}"
    )


@kernel(nogil=True)
def _first_violation(
    starts: Vector, coefficients: Matrices, limits: Matrix, found: Vector, scratch: Matrix
) -> int:
    """Kind of the first violation; its segment, joint, time and value in `found`, shape (4,).

    Rows of `limits`: lower and upper position limits so far, overwritten, which are the robot's
    once a joint is within them; lower and upper velocity limits; lower and upper position limits of
    the robot.
    """
    c = scratch[0]
    for i in range(starts.shape[0] - 1):
        duration = starts[i + 1] - starts[i]
        for j in range(coefficients.shape[1]):
            low = min(coefficients[i, j, 0] - POSITION_ROUNDING, limits[4, j])
            high = max(coefficients[i, j, 0] + POSITION_ROUNDING, limits[5, j])
            limits[0, j] = max(limits[0, j], low)
            limits[1, j] = min(limits[1, j], high)
            found[0], found[1] = i, j
            power = 1.0
            # As a polynomial of the part of the segment, 0 to 1.
            for k in range(DEGREE + 1):
                c[k] = coefficients[i, j, k] * power
                power *= duration
            for order in (_BEYOND_POSITION, _BEYOND_VELOCITY):
                if order == _BEYOND_VELOCITY:
                    for k in range(DEGREE):
                        c[k] = (k + 1) * c[k + 1] / duration
                    c[DEGREE] = 0.0
                lower, upper = limits[2 * order, j], limits[2 * order + 1, j]
                low, high = bernstein_bounds(c)
                if not (math.isfinite(low) and math.isfinite(high)):
                    return _NOT_FINITE
                if lower <= low and high <= upper:
                    continue
                low, low_at, high, high_at = extremes(c, scratch[1:])
                if lower <= low and high <= upper:
                    continue
                below = low < lower and (order == _BEYOND_POSITION or -low >= high)
                found[2] = starts[i] + (low_at if below else high_at) * duration
                found[3] = low if below else high
                return order
    return _NOTHING


class EffortPeak(NamedTuple):
    """The largest part of an effort limit that a trajectory needs."""

    joint: int  # its index
    time: float  # trajectory time of the peak, [s]
    torque: float  # torque that the joint needs there, [Nm] or [N]
    limit: float  # effort limit of the joint, [Nm] or [N]; infinite if no joint has a limit
    ratio: float  # needed part of the limit; infinite for a torque that is not finite
    # Factor by which the trajectory must be slower for all joints to be within their limits: 1 if
    # they are, infinite if even gravity and effort at rest are beyond them.
    stretch: float

    def complaint(self, start: float, model: RobotModel) -> str:
        """Reports a peak beyond the limit, and the remedy; `start`: the zero of the time in the
        report, [s]."""
        joint, unit = model.joint_names[self.joint], units(model, self.joint).effort
        remedy = f"Make the trajectory {self.stretch:.3g} times slower"
        if not self.stretch < math.inf:
            remedy = (
                "Going slower does not help, as gravity and the efforts of its points need that "
                "much at rest"
            )
        return (
            f"{self.time - start:.3g} s into it, joint {joint!r} needs {self.torque:.4g} {unit}; "
            f"its effort limit is {self.limit:.4g}. {remedy}"
        )


def peak_efforts(
    model: RobotModel,
    ws: Workspace,
    trajectory: Trajectory,
    begin: float,
    settings: ControllerSettings,
) -> EffortPeak:
    """The peak of the torques that a controller of these settings commands on a trajectory, the
    ends of segments included. Other Python threads may run meanwhile.

    Args:
        model, ws: the robot, and a workspace made for it.
        trajectory: the trajectory.
        begin: time from which the trajectory is sampled, until its end, [s].
        settings: settings of the controller.
    """
    first = max(int(np.searchsorted(trajectory.starts, begin, side="right")) - 1, 0)
    starts, coefficients = trajectory.starts[first:], trajectory.coefficients[first:]
    end, effort_limit = trajectory.end_time, settings.effort_limit(model)
    interval = max(SAMPLE_TIME, (end - begin) / MOST_SAMPLES)
    friction = model.friction_parameters * settings.friction_compensation
    sample, worst = Sample.zeros(model.nv), Worst()
    worst.time = begin
    # Friction may be holding a joint back: run slower, a sample that was within its limits may
    # leave them. So all samples are checked again, until the speed suits all of them.
    speed = 1.0
    for _ in range(_PASSES):
        before = speed
        speed = _find_peak(
            model.bodies,
            ws.memory,
            friction,
            effort_limit,
            starts,
            coefficients,
            float(begin),
            end,
            interval,
            settings.hardware_compensates_gravity,
            speed,
            sample,
            worst.array,
        )
        if speed == 0.0 or speed >= before * (1.0 - ROUNDING):
            break
    allowed = float(effort_limit[worst.joint]) if worst.ratio > 0.0 else math.inf
    stretch = 1.0 / speed if speed > 0.0 else math.inf
    return EffortPeak(worst.joint, worst.time, worst.torque, allowed, worst.ratio, stretch)


@inlined
def _torque(friction: Matrix, sample: Sample, static: float, j: int, speed: float) -> float:
    """tau(x) of joint j, which at rest is `static` without friction, at x = `speed`."""
    sample.slower_velocity[j] = speed * sample.desired_velocity[j]
    dynamic = (sample.torque[j] - sample.gravity[j]) * speed**2
    return static + dynamic + friction_torque(friction, sample.slower_velocity, j)


@inlined
def _slowed(
    friction: Matrix, sample: Sample, static: float, j: int, limit: float, speed: float
) -> float:
    """The speed below `speed` at which joint j just keeps the limit that it exceeds at `speed`; 0
    if there is no such speed."""
    within = 0.0
    if not abs(_torque(friction, sample, static, j, within)) <= limit:
        return 0.0
    beyond = speed
    for _ in range(_BISECTIONS):
        middle = 0.5 * (within + beyond)
        if abs(_torque(friction, sample, static, j, middle)) <= limit:
            within = middle
        else:
            beyond = middle
    return within


@kernel(
    "f8(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[:,:,::1], f8, f8, f8, b1, f8, "
    "Sample, Worst[::1])",
    nogil=True,
)
def _find_peak(
    bodies: Matrix,
    memory: Matrix,
    friction: Matrix,
    limit: Vector,
    starts: Vector,
    coefficients: Matrices,
    begin: float,
    end: float,
    interval: float,
    without_gravity: bool,
    speed: float,
    sample: Sample,
    peaks: RecordArray,
) -> float:
    """Finds the peak; returns the speed, at most `speed`, that brings the samples beyond their
    limits within them."""
    last, worst = starts.shape[0] - 1, peaks[0]
    q, v, a = sample.desired_position, sample.desired_velocity, sample.desired_acceleration
    for i in range(last + 1):
        left = begin if i == 0 else starts[i]
        right = end if i == last else min(starts[i + 1], end)
        if not (left < right or i == 0):
            break
        samples = max(math.ceil((right - left) / interval - 1e-6), 1)
        for k in range(samples + 1):
            time = left + (right - left) * k / samples
            evaluate_segment(coefficients, i, time - starts[i], sample)
            outward_pass(bodies, memory, q, v, a)
            inward_pass(bodies, memory, sample.torque)
            add_armature(bodies, a, sample.torque)
            gravity_outward_pass(bodies, memory, q)
            inward_pass(bodies, memory, sample.gravity)
            for j in range(limit.shape[0]):
                static = sample.desired_effort[j]
                if not without_gravity:
                    static += sample.gravity[j]
                torque = _torque(friction, sample, static, j, 1.0)
                ratio = abs(torque) / limit[j] if math.isfinite(torque) else math.inf
                if ratio > worst.ratio:
                    worst.ratio, worst.joint, worst.time, worst.torque = ratio, j, time, torque
                if not abs(_torque(friction, sample, static, j, speed)) <= limit[j]:
                    speed = _slowed(friction, sample, static, j, limit[j], speed)
    return speed
