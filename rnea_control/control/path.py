r"""`Path`: the trajectory that a controller follows, how fast, and the stops that a tick may put in
its place. The functions perform no allocation.

A trajectory is followed by its address, so that machine code can change to another one between two
ticks. Stops are planned in memory that is allocated once.

Trajectory time `s` may run slower than the controller's time `t`. The scaling
:math:`\sigma = ds/dt` follows its target through two equal first-order lags, so that it and its
rate are continuous, and it never leaves the range of its targets, 0 to 1. With
:math:`\dot q = q' \sigma` and :math:`\ddot q = q'' \sigma^2 + q' \dot\sigma` the desired velocity
and acceleration are continuous too. Each step solves the lags exactly.
"""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray, IntArray, IntVector, Matrices, Matrix, Vector
from rnea_control.control import layout, stopping
from rnea_control.control.laws import Robot
from rnea_control.control.stopping import SCRATCH_ROWS, STANDSTILL, STOP_SEGMENTS
from rnea_control.control.trajectory import COEFFICIENTS, EFFORT, Trajectory
from rnea_control.dynamics import Workspace
from rnea_control.kernels.compilation import address
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.linking import array_at, linked

# No arm is faster: a velocity beyond it makes no sense, and makes no stop, [rad/s] or [m/s].
FASTEST = 1e3
_FLOAT = 8
# Of each lag, [s]: after 0.5 s, 96 % of a change are done.
LAG_TIME = 0.1


_stop = linked(stopping.stop_along_path, stopping.SIGNATURE)


@inlined
def advance_scaling(state: Matrix, dt: float, slows: bool) -> None:
    """Brings the scaling `dt` further, and `BEHIND`, by which trajectory time is behind.

    `slows`: whether its target is 0 for now.
    """
    target = 0.0 if slows else state[layout.TARGET_SCALING, 0]
    if state[layout.LAST_TRAJECTORY_TIME, 0] < state[layout.UNSCALED_UNTIL, 0]:
        target = 1.0
    first = state[layout.LEADING_SCALING, 0] - target
    second = state[layout.SCALING, 0] - target
    if abs(first) < STANDSTILL and abs(second) < STANDSTILL:
        state[layout.LEADING_SCALING, 0] = target
        state[layout.SCALING, 0] = target
        state[layout.SCALING_RATE, 0] = 0.0
        state[layout.BEHIND, 0] += (1.0 - target) * dt
        return
    x = dt / LAG_TIME
    decay = math.exp(-x)
    passed = LAG_TIME * ((first + second) * (1.0 - decay) - first * x * decay)
    state[layout.BEHIND, 0] += (1.0 - target) * dt - passed
    second = (second + first * x) * decay
    first *= decay
    state[layout.LEADING_SCALING, 0] = target + first
    state[layout.SCALING, 0] = target + second
    state[layout.SCALING_RATE, 0] = (first - second) / LAG_TIME


@inlined
def settle(state: Matrix) -> None:
    """Brings the scaling to its target at once, while the arm stands."""
    target = state[layout.TARGET_SCALING, 0]
    state[layout.LEADING_SCALING, 0] = state[layout.SCALING, 0] = target
    state[layout.SCALING_RATE, 0] = 0.0


@inlined
def scale(state: Matrix) -> None:
    """Turns the desired derivatives by trajectory time into those by time."""
    scaling, rate = state[layout.SCALING, 0], state[layout.SCALING_RATE, 0]
    for j in range(state.shape[1]):
        derivative = state[layout.DESIRED_VELOCITY, j]
        state[layout.DESIRED_VELOCITY, j] = derivative * scaling
        state[layout.DESIRED_ACCELERATION, j] = (
            state[layout.DESIRED_ACCELERATION, j] * scaling * scaling + derivative * rate
        )


@inlined
def follow(
    n: IntVector, state: Matrix, starts_at: int, coefficients_at: int, segments: int, end: float
) -> None:
    """Changes to the trajectory that stands at these addresses, and is at rest from `end` on."""
    n[layout.STARTS_AT], n[layout.COEFFICIENTS_AT] = starts_at, coefficients_at
    n[layout.SEGMENTS] = segments
    n[layout.REVISION] += 1
    state[layout.PATH_END, 0] = end
    state[layout.SEGMENT, 0] = 0.0
    state[layout.UNSCALED_UNTIL, 0] = -math.inf


@inlined
def robot_of(n: IntVector, nv: int) -> Robot:
    """The model's bodies; memory and matrix of the workspace."""
    bodies = array_at(n[layout.BODIES_AT], (n[layout.BODY_COUNT], n[layout.BODY_SIZE]))
    memory_shape = n[layout.MEMORY_ROWS], n[layout.MEMORY_COLUMNS]
    memory = array_at(n[layout.MEMORY_AT], memory_shape)
    return bodies, memory, array_at(n[layout.MATRIX_AT], (nv, nv))


@inlined
def path_of(n: IntVector, nv: int) -> tuple[Vector, Matrices]:
    """Starts and coefficients of the trajectory that is followed."""
    segments = n[layout.SEGMENTS]
    starts = array_at(n[layout.STARTS_AT], (segments,))
    return starts, array_at(n[layout.COEFFICIENTS_AT], (segments, nv, COEFFICIENTS))


@inlined
def _brake(
    n: IntVector,
    settings: Matrix,
    state: Matrix,
    shift: Vector,
    starts: Vector,
    coefficients: Matrices,
) -> int:
    """Changes to a stop along a path that is followed with the scaling in `state`; returns where
    the coefficients of the stop are, which runs at full speed. `shift` is added to its positions.
    """
    nv, offset = state.shape[1], n[layout.SPARE] * _FLOAT * STOP_SEGMENTS
    n[layout.SPARE] = 1 - n[layout.SPARE]
    starts_at = n[layout.STOP_STARTS_AT] + offset
    stop_at = n[layout.STOP_COEFFICIENTS_AT] + offset * nv * COEFFICIENTS
    stop = array_at(stop_at, (STOP_SEGMENTS, nv, COEFFICIENTS))
    bodies, memory, _ = robot_of(n, nv)
    now, segment = state[layout.LAST_TRAJECTORY_TIME, 0], int(state[layout.SEGMENT, 0])
    scaling, rate = state[layout.SCALING, 0], state[layout.SCALING_RATE, 0]
    path = shift, starts, coefficients, segment, now, scaling, rate
    scratch = array_at(n[layout.SCRATCH_AT], (SCRATCH_ROWS, nv))
    stop_starts = array_at(starts_at, (STOP_SEGMENTS,))
    end = _stop(n[layout.STOP_CODE], (bodies, memory, settings, *path, scratch, stop_starts, stop))
    follow(n, state, starts_at, stop_at, STOP_SEGMENTS, end)
    state[layout.UNSCALED_UNTIL, 0] = end
    state[layout.LEADING_SCALING, 0] = state[layout.SCALING, 0] = 1.0
    state[layout.SCALING_RATE, 0] = 0.0
    return stop_at


@inlined
def brake_along(n: IntVector, settings: Matrix, state: Matrix, from_measured: bool) -> None:
    """Brakes along the path; `from_measured`: shifted to where the arm is."""
    nv = state.shape[1]
    shift = array_at(n[layout.SHIFT_AT], (nv,))
    for j in range(nv):
        shift[j] = -state[layout.POSITION_ERROR, j] if from_measured else 0.0
    starts, coefficients = path_of(n, nv)
    _brake(n, settings, state, shift, starts, coefficients)


@inlined
def brake_straight(n: IntVector, settings: Matrix, state: Matrix, q: Vector, v: Vector) -> None:
    """Brakes straight on from position `q` and velocity `v`, shape (nv,), within the position
    limits."""
    nv = state.shape[1]
    shift = array_at(n[layout.SHIFT_AT], (nv,))
    starts = array_at(n[layout.LINE_STARTS_AT], (1,))
    line = array_at(n[layout.LINE_AT], (1, nv, COEFFICIENTS))
    starts[0] = state[layout.LAST_TRAJECTORY_TIME, 0]
    shift[:] = 0.0
    for j in range(nv):
        line[0, j, 0] = q[j]
        line[0, j, 1] = min(max(v[j], -FASTEST), FASTEST)
    state[layout.SCALING, 0], state[layout.SCALING_RATE, 0] = 1.0, 0.0
    stop_at = _brake(n, settings, state, shift, starts, line)
    stop = array_at(stop_at, (STOP_SEGMENTS, nv, COEFFICIENTS))
    for j in range(nv):  # joints that would leave their limits brake harder
        start, end = line[0, j, 0], stop[STOP_SEGMENTS - 1, j, 0]
        lower, upper = settings[layout.LOWER_LIMIT, j], settings[layout.UPPER_LIMIT, j]
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
    """The trajectory that is followed by a controller with this workspace and state.

    Attributes:
        numbers: see layout.py.
        given: the last trajectory that was no stop; its memory must stay while it is followed.
    """

    def __init__(self, workspace: Workspace, state: FloatArray) -> None:
        self._state, nv = state, state.shape[1]
        starts = np.zeros((2, STOP_SEGMENTS))
        coefficients = np.zeros((2, STOP_SEGMENTS, nv, COEFFICIENTS))
        # Two take turns, as a stop may continue another.
        self._stops = [Trajectory(starts[k], coefficients[k]) for k in range(2)]
        self._memory = {  # which must live as long as its addresses are in the numbers
            layout.STOP_STARTS_AT: starts,
            layout.STOP_COEFFICIENTS_AT: coefficients,
            layout.LINE_STARTS_AT: np.zeros(1),
            layout.LINE_AT: np.zeros((1, nv, COEFFICIENTS)),
            layout.SHIFT_AT: np.zeros(nv),
            layout.SCRATCH_AT: np.zeros((SCRATCH_ROWS, nv)),
            layout.MEMORY_AT: workspace.memory,
            layout.MATRIX_AT: workspace.matrix,
        }
        self.numbers: IntArray = np.zeros(layout.NUMBERS, dtype=np.int64)
        for row, array in self._memory.items():
            self.numbers[row] = array.ctypes.data
        self.numbers[[layout.MEMORY_ROWS, layout.MEMORY_COLUMNS]] = workspace.memory.shape
        self.numbers[[layout.BODY_COUNT, layout.BODY_SIZE]] = workspace.model.bodies.shape
        self.numbers[layout.STOP_CODE] = address(stopping.stop_along_path) or 0
        self.given: Trajectory | None = None

    @property
    def trajectory(self) -> Trajectory | None:
        """The trajectory that is followed; None before the first one. Later stops take the memory
        of a stop, one that is not `given`: copy it to keep it."""
        for stop in self._stops:
            if stop.addresses[0] == self.numbers[layout.STARTS_AT]:
                stop.end_time = float(self._state[layout.PATH_END, 0])
                return stop
        return self.given

    def rest(self, t: float, q: FloatArray, guided: bool) -> None:
        """Rests at position `q`, shape (nv,), from time `t` on, as if nothing had been before but
        the target of the scaling; `guided`: whether a hand guides the arm."""
        state = self._state
        state[: layout.TARGET_SCALING] = 0.0  # which another thread may be setting
        state[layout.TARGET_SCALING + 1 : layout.GUIDED] = 0.0
        state[layout.GUIDED], state[layout.DESIRED_POSITION] = guided, q
        state[layout.LAST_TIME] = state[layout.LAST_TRAJECTORY_TIME] = t
        state[layout.STANDSTILL] = 0.0
        settle(state)
        self.given = Trajectory.hold(t, q)
        follow(self.numbers, state, *self.given.addresses, t)
