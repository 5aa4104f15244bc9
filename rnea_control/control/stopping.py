r"""A stop along the path, planned within a tick: the trajectory runs slower and slower until it is
at rest. The stop replaces the path. `Path` owns the trajectory that a controller follows, and the
memory of its stops.

The path is the running trajectory p(s). With the scaling :math:`\sigma = ds/dt` and its
deceleration :math:`\kappa = -d\sigma/dt`, the joints have

.. math::

    q = p(s), \quad v = p' \sigma, \quad a = p'' \sigma^2 - p' \kappa

[Bobrow, Dubowsky, Gibson 1985]. The torque is linear in kappa, so that two inverse dynamics give
the hardest braking that the joints can bear. kappa is linear between knots, whose states are exact;
quintics join them.

kappa rises from its value in the running motion within `RAMP`, follows the hardest braking that the
joints can bear, and falls to zero in the last `RAMP` or less. In that fall, with the time
T = 2 sigma / kappa to go,

.. math:: \sigma(t) = \kappa T / 2 \, (1 - t / T)^2
"""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray, Matrices, Matrix, Vector
from rnea_control.control.layout import Arm, Desired, Settings, State
from rnea_control.control.robot import robot_of
from rnea_control.control.trajectory import (
    COEFFICIENTS,
    EFFORT,
    STANDSTILL,
    Trajectory,
    follow,
    path_of,
    quintic,
    sample,
    settle,
)
from rnea_control.dynamics import Workspace
from rnea_control.dynamics.friction import friction_torque
from rnea_control.dynamics.rnea import add_armature, inward_pass, outward_pass
from rnea_control.jit.compilation import address
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import array_at, linked
from rnea_control.jit.rows import rows_at

KNOT = 0.005  # time between the exact states [s]
RAMP = 0.03  # time in which the deceleration rises, and falls [s]
# The ramps come on top of these two times, and make the longest stop a little longer.
SHORTEST_STOP = 0.05  # time from the start to rest with the hardest braking [s]
LONGEST_STOP = 1.0  # time from the start to rest with the gentlest braking [s]
LONGEST_HALT = LONGEST_STOP + 2.0 * RAMP  # time from the start to rest, at most [s]
BRAKING_SHARE = 0.9  # part of the effort limits for braking; the rest is left to the feedback
FADE = 0.2  # time in which the effort of the path fades at rest [s]
# Shortest last fall of the deceleration, as shorter ones drown in rounding. A shorter fall takes
# this time, and the quintic compensates the difference [s].
SHORTEST_RAMP = 0.001
FASTEST = 1e3  # velocity beyond which no stop is planned, as no arm is faster [rad/s] or [m/s]
_FLOAT = 8  # size of a number [bytes]

_RAMP_KNOTS = math.ceil(RAMP / KNOT - 1e-6)
_BRAKING_KNOTS = math.ceil(LONGEST_HALT / KNOT) + 2
# Segments that the longest stop may have, with those of the fading effort and of rest.
STOP_SEGMENTS = _BRAKING_KNOTS + _RAMP_KNOTS + 2


class Scratch(Desired):
    """Memory for planning: a point of the path; the motion of the joints there, and its torques
    without and with a unit of braking."""

    position: Vector
    velocity: Vector
    acceleration: Vector
    torque: Vector
    braking_torque: Vector


_scratch_at = rows_at(Scratch)


@inlined
def _hardest_braking(
    bodies: Matrix,
    memory: Matrix,
    settings: Settings,
    shift: Vector,
    sigma: float,
    scratch: Scratch,
) -> float:
    """The largest kappa that all joints can bear at the point in `scratch`."""
    position, velocity, acceleration = scratch.position, scratch.velocity, scratch.acceleration
    nv = position.shape[0]
    kappa = math.inf
    for j in range(nv):
        position[j] = scratch.desired_position[j] + shift[j]
        velocity[j] = scratch.desired_velocity[j] * sigma
        acceleration[j] = scratch.desired_acceleration[j] * sigma**2
        slope = -scratch.desired_velocity[j]
        limit = settings.max_deceleration[j]
        kappa = min(kappa, _furthest(acceleration[j], slope, limit))
    for torque in (scratch.torque, scratch.braking_torque):
        outward_pass(bodies, memory, position, velocity, acceleration)
        inward_pass(bodies, memory, torque)
        add_armature(bodies, acceleration, torque)
        for j in range(nv):
            acceleration[j] -= scratch.desired_velocity[j]
    friction = settings.friction
    for j in range(nv):
        slope = scratch.braking_torque[j] - scratch.torque[j]
        needed = scratch.torque[j] + friction_torque(friction, velocity, j)
        needed += scratch.desired_effort[j]
        limit = BRAKING_SHARE * settings.effort_limit[j]
        kappa = min(kappa, _furthest(needed, slope, limit))
    return kappa


@inlined
def _furthest(value: float, slope: float, limit: float) -> float:
    """The largest kappa >= 0 for which `value` + `slope` kappa is within +-`limit`, or within
    +-`value` if that is more."""
    limit = max(limit, abs(value))
    if slope > 0.0:
        return (limit - value) / slope
    if slope < 0.0:
        return (limit + value) / -slope
    return math.inf


@inlined
def _after(
    h: float, s: float, sigma: float, kappa: float, next_kappa: float
) -> tuple[float, float]:
    """s and sigma after a time `h`, in which kappa becomes `next_kappa`."""
    s += h * (sigma - h * (2.0 * kappa + next_kappa) / 6.0)
    return s, max(sigma - 0.5 * h * (kappa + next_kappa), 0.0)


@inlined
def _put_knot(
    starts: Vector, c: Matrices, i: int, shift: Vector, sigma: float, kappa: float, scratch: Scratch
) -> None:
    """Begins segment i at the point of the path in `scratch`, and completes segment i - 1 with the
    quintics, and the line of the effort, that lead there."""
    for j in range(c.shape[1]):
        slope = scratch.desired_velocity[j]
        acceleration = scratch.desired_acceleration[j] * sigma**2 - slope * kappa
        c[i, j, 0] = scratch.desired_position[j] + shift[j]
        c[i, j, 1] = slope * sigma
        c[i, j, 2] = 0.5 * acceleration
        c[i, j, 3:EFFORT] = 0.0
        c[i, j, EFFORT] = scratch.desired_effort[j]
        c[i, j, EFFORT + 1] = 0.0
    if i == 0:
        return
    h = starts[i] - starts[i - 1]
    for j in range(c.shape[1]):
        before, here = c[i - 1, j], c[i, j]
        mean = (here[0] - before[0]) / h
        a0, a1 = 2.0 * before[2], 2.0 * here[2]
        before[3], before[4], before[5] = quintic(mean, before[1], here[1], a0, a1, h)
        before[EFFORT + 1] = (here[EFFORT] - before[EFFORT]) / h


@inlined
def _put_rest(starts: Vector, c: Matrices, i: int) -> None:
    """Adds the rest from knot i on: while its effort fades, then for ever."""
    for k in range(i + 1, starts.shape[0]):
        starts[k] = starts[i] + FADE if k == i + 1 else math.inf
        for j in range(c.shape[1]):
            c[k, j, 0] = c[i, j, 0]
            c[k, j, 1:] = 0.0
    for j in range(c.shape[1]):
        c[i, j, EFFORT + 1] = -c[i, j, EFFORT] / (starts[i + 1] - starts[i])


@kernel()
def stop_along_path(
    bodies: Matrix,
    memory: Matrix,
    settings: Settings,
    shift: Vector,
    starts: Vector,
    coefficients: Matrices,
    segment: int,
    s0: float,
    sigma0: float,
    sigma_dot0: float,
    scratch: Scratch,
    out_starts: Vector,
    out_coefficients: Matrices,
) -> float:
    """Fills `out_starts` and `out_coefficients` with the stop; returns when it is at rest, [s].

    The stop continues the running motion in position, velocity, acceleration and effort, and takes
    at most `LONGEST_STOP` and two ramps. At each knot it brakes as hard as two bounds of each joint
    allow; if the motion exceeds a bound even without braking, it sets that bound:

    - the acceleration is within MAX_DECELERATION,
    - the torque with friction and the path's effort is within `BRAKING_SHARE` of EFFORT_LIMIT.

    It brakes harder only to end in time. Performs no allocation.

    Args:
        bodies, memory: bodies of the model, and memory of a workspace made for it.
        settings: see layout.py.
        shift: added to the positions of the path, shape (nv,), [rad] or [m].
        starts, coefficients: the running trajectory; other arrays than the output.
        segment: the segment used last, where the search for the segment of `s0` begins.
        s0: the trajectory time now, and the time at which the stop begins, [s].
        sigma0: the scaling, trajectory time per time.
        sigma_dot0: its rate, [1/s].
        scratch: overwritten.
        out_starts: output, shape (STOP_SEGMENTS,); segments that are not needed start at infinity.
        out_coefficients: output, shape (STOP_SEGMENTS, nv, 8).
    """
    if sigma0 <= STANDSTILL and abs(sigma_dot0) <= STANDSTILL:
        sigma0 = sigma_dot0 = 0.0
    s, sigma, kappa = 0.0, max(sigma0, 0.0), -sigma_dot0  # s is counted from s0
    speeding_up = max(sigma_dot0, 0.0)
    fastest = sigma + speeding_up * RAMP
    gentlest, hardest = fastest / LONGEST_STOP, fastest / SHORTEST_STOP
    reached, change = 0.0, 0.0
    i = 0
    out_starts[0] = s0
    segment = sample(starts, coefficients, segment, s0, s, scratch)
    _put_knot(out_starts, out_coefficients, 0, shift, sigma, kappa, scratch)
    # The knots until the last fall of kappa.
    while i < _BRAKING_KNOTS and 2.0 * sigma > kappa * RAMP * (1.0 + 1e-9):
        out_starts[i + 1] = s0 + (i + 1) * KNOT
        h = out_starts[i + 1] - out_starts[i]
        # The braking that the joints can bear at the next knot, if kappa keeps its rate of
        # change.
        expected_s, expected_sigma = _after(h, s, sigma, kappa, kappa + change)
        segment = sample(starts, coefficients, segment, s0, expected_s, scratch)
        bearable = _hardest_braking(bodies, memory, settings, shift, expected_sigma, scratch)
        bearable = max(min(bearable, hardest), gentlest)
        reached = max(reached, bearable)
        # Two more bounds: kappa rises within a ramp, and has a ramp left for its last fall.
        rise = (reached + speeding_up) * h / RAMP
        following = min(bearable, kappa + rise, (2.0 * sigma - kappa * h) / (RAMP + h))
        s, sigma = _after(h, s, sigma, kappa, following)
        change, kappa = following - kappa, following
        i += 1
        segment = sample(starts, coefficients, segment, s0, s, scratch)
        _put_knot(out_starts, out_coefficients, i, shift, sigma, kappa, scratch)
    if kappa > 0.0:  # the last fall
        T = min(2.0 * sigma / kappa, RAMP)
        begin, duration = out_starts[i], max(T, SHORTEST_RAMP)
        knots = max(math.ceil(T / KNOT - 1e-6), 1)
        for k in range(1, knots + 1):
            i += 1
            out_starts[i] = begin + duration * k / knots
            left = 1.0 - (out_starts[i] - begin) / duration if k < knots else 0.0
            there = s + sigma * T / 3.0 * (1.0 - left**3)
            segment = sample(starts, coefficients, segment, s0, there, scratch)
            _put_knot(
                out_starts, out_coefficients, i, shift, sigma * left**2, kappa * left, scratch
            )
    _put_rest(out_starts, out_coefficients, i)
    return out_starts[i]


_stop = linked(stop_along_path)


@inlined
def _brake(
    arm: Arm,
    settings: Settings,
    state: State,
    shift: Vector,
    starts: Vector,
    coefficients: Matrices,
) -> int:
    """Changes to a stop along a path that is followed with the scaling in `state`; returns the
    address of the stop's coefficients. The stop runs at full speed, with `shift` added to its
    positions."""
    nv, offset = state.shape[1], arm.spare * _FLOAT * STOP_SEGMENTS
    arm.spare = 1 - arm.spare
    starts_at = arm.stop_starts_at + offset
    stop_at = arm.stop_coefficients_at + offset * nv * COEFFICIENTS
    stop = array_at(stop_at, (STOP_SEGMENTS, nv, COEFFICIENTS))
    robot = robot_of(arm, nv)
    bodies, memory = robot.bodies, robot.memory
    now, segment = state.last_trajectory_time, int(state.segment)
    scaling, rate = state.scaling, state.scaling_rate
    path = shift, starts, coefficients, segment, now, scaling, rate
    scratch = _scratch_at(arm.scratch_at, nv)
    stop_starts = array_at(starts_at, (STOP_SEGMENTS,))
    end = _stop(arm.stop_code, (bodies, memory, settings, *path, scratch, stop_starts, stop))
    follow(arm, state, starts_at, stop_at, STOP_SEGMENTS, end)
    state.unscaled_until = end
    state.leading_scaling = state.scaling = 1.0
    state.scaling_rate = 0.0
    return stop_at


@inlined
def brake_along(arm: Arm, settings: Settings, state: State, from_measured: bool) -> None:
    """Brakes along the path; `from_measured`: True to shift the path to the measured position."""
    nv = state.shape[1]
    shift = array_at(arm.shift_at, (nv,))
    for j in range(nv):
        shift[j] = -state.position_error[j] if from_measured else 0.0
    starts, coefficients = path_of(arm, nv)
    _brake(arm, settings, state, shift, starts, coefficients)


@inlined
def brake_straight(arm: Arm, settings: Settings, state: State, q: Vector, v: Vector) -> None:
    """Brakes straight on from position `q` and velocity `v`, shape (nv,), within the position
    limits."""
    nv = state.shape[1]
    shift = array_at(arm.shift_at, (nv,))
    starts = array_at(arm.line_starts_at, (1,))
    line = array_at(arm.line_at, (1, nv, COEFFICIENTS))
    starts[0] = state.last_trajectory_time
    shift[:] = 0.0
    for j in range(nv):
        line[0, j, 0] = q[j]
        line[0, j, 1] = min(max(v[j], -FASTEST), FASTEST)
    state.scaling, state.scaling_rate = 1.0, 0.0
    stop_at = _brake(arm, settings, state, shift, starts, line)
    stop = array_at(stop_at, (STOP_SEGMENTS, nv, COEFFICIENTS))
    for j in range(nv):  # joints that would leave their limits brake harder
        start, end = line[0, j, 0], stop[STOP_SEGMENTS - 1, j, 0]
        lower, upper = settings.lower_limit[j], settings.upper_limit[j]
        bound = min(max(end, lower), upper)
        if end not in (bound, start):
            part = max((bound - start) / (end - start), 0.0)
            for i in range(STOP_SEGMENTS):
                stop[i, j, 0] -= start
                for k in range(EFFORT):
                    stop[i, j, k] *= part
            for i in range(STOP_SEGMENTS):
                stop[i, j, 0] += start


class Path:
    """The trajectory or stop that a controller with this workspace and state follows. Stops are
    planned in memory that is allocated once.

    Attributes:
        arm: see layout.py.
        given: the last trajectory that was not a stop, whose memory must stay while it is followed;
            None before the first trajectory.
        stops: stops that may be followed in its place.
    """

    def __init__(self, workspace: Workspace, state: State) -> None:
        self._state, nv = state, state.shape[1]
        starts = np.zeros((2, STOP_SEGMENTS))
        coefficients = np.zeros((2, STOP_SEGMENTS, nv, COEFFICIENTS))
        # Two stops take turns, as a stop may continue a stop.
        self.stops = [Trajectory(starts[k], coefficients[k]) for k in range(2)]
        self._memory = {  # must live as long as its addresses are used
            "stop_starts_at": starts,
            "stop_coefficients_at": coefficients,
            "line_starts_at": np.zeros(1),
            "line_at": np.zeros((1, nv, COEFFICIENTS)),
            "shift_at": np.zeros(nv),
            "scratch_at": Scratch.zeros(nv),
            "memory_at": workspace.memory,
            "matrix_at": workspace.matrix,
            "links_at": workspace.model.links,
        }
        self.arm = Arm()
        for name, array in self._memory.items():
            setattr(self.arm, name, array.ctypes.data)
        self.arm.memory_rows, self.arm.memory_columns = workspace.memory.shape
        self.arm.body_count, self.arm.body_size = workspace.model.bodies.shape
        self.arm.link_count = len(workspace.model.links)
        self.arm.stop_code = address(stop_along_path) or 0
        self.given: Trajectory | None = None

    def rest(self, t: float, q: FloatArray, reference: float) -> None:
        """Rests at position `q`, shape (nv,), from time `t` on. Resets the state, except for the
        target of the scaling. `reference`: the reference at rest, see references.py."""
        state = self._state
        state.begin_anew()
        state.reference, state.desired_position = reference, q
        state.last_time = state.last_trajectory_time = t
        state.standstill = 0.0
        settle(state)
        self.given = Trajectory.hold(t, q)
        follow(self.arm, state, *self.given.addresses, t)
