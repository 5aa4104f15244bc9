"""The motion of an arm in answer to torques, and how well a model explains it.

By the model the momentum changes as p(t) - p(0) = integral of (C^T v - g + tau). The remainder of
this equation, joint by joint, is scored against the deviations that a correct arm may have:

- friction takes a part of the commanded torque, or is a torque against the motion,
- a rotor that the model lacks adds inertia,
- a constant torque, as gravity or friction are a little off.

The score is a sum of squares, each relative to a standard deviation; a correct arm has a small one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray, Matrix, Vector
from rnea_control.dynamics import Workspace, generalized_momentum, gravity
from rnea_control.dynamics.workspace import require
from rnea_control.jit.kernel import kernel
from rnea_control.model import RobotModel

BLOCKS = 10  # parts of an answer whose means are compared: they have less noise
RESOLUTION = 2e-4  # part of the effort limit below which a torque says nothing
TOLERANCE = 0.2  # part of what was sent by which a right answer may differ
DISTURBANCE = 0.06  # standard deviation of gravity and friction, as a part of the effort limit
MOST_LOSS = 0.9  # part of the commanded torque that friction may take
MOST_LOSS_OF_MANY = 0.5  # the same part for torques that arrive many times as large
SMOOTHED = 5  # velocities whose mean gives the direction in which a joint slips
SLIPPING = 0.01  # velocity at which friction is at work [rad/s] or [m/s]
ROTOR = 30.0  # standard deviation of the inertia that the model lacks, as a part of the model's
SWEEPS = 3000  # largest number of sweeps over the unknowns in the descent to the least squares
CONVERGED = 1e-3  # change of an unknown, times the root of its curvature, that ends the descent
FEWEST_MOVING = 50  # fewest states for a measurement of the delay
SLIDING = 0.05  # velocity above which a joint slides, so that its friction is constant
REFINEMENTS = 3  # repetitions of the measurement of a delay
FEWEST_MEANS = 8  # fewest means for a measurement of the delay
SMOOTH_TIME = 0.02  # time over which means are taken to find a delay [s]
SURE_DELAY = 2e-3  # largest standard deviation of a valid delay [s]
STANDIN_LIMIT = 100.0  # effort limit where there is none [Nm] or [N]


class Fit(NamedTuple):
    """Quality of the explanation of one joint.

    Attributes:
        score: sum of squares, see above.
        loss: part of the commanded torque that has no effect.
        constant: additional constant torque, [Nm] or [N].
    """

    score: float
    loss: float
    constant: float


@dataclass
class Answer:
    """An answer of an arm.

    Attributes:
        t: times of the states, shape (n,), [s].
        q, v: measured states, shape (n, nv), [rad] or [m], [rad/s] or [m/s].
        tau: torques that act from each state to the next, shape (n - 1, nv), [Nm] or [N].
        hardware_adds_gravity: True if the hardware adds the gravity torque.
    """

    t: FloatArray
    q: FloatArray
    v: FloatArray
    tau: FloatArray
    hardware_adds_gravity: bool = False

    @classmethod
    def of(
        cls,
        t: FloatArray,
        q: FloatArray,
        v: FloatArray,
        commands: FloatArray,
        delay: float,
        hardware_adds_gravity: bool,
    ) -> Answer:
        """The answer to commands, shape (n, nv), from the time when the first command acts. Each
        command was published for the state of the same row, and acts from `delay` [s] later until
        the next command does."""
        begin = np.searchsorted(t, t[:-1] - delay + 1e-9, side="right") - 1
        end = np.searchsorted(t, t[1:] - delay - 1e-9, side="right") - 1
        first, last = np.maximum(begin, 0), np.maximum(end, 0)
        # Part of the step in which the later of two commands acts already.
        part = np.clip((t[1:] - delay - t[last]) / np.diff(t), 0.0, 1.0)[:, None]
        part = np.where((first == last)[:, None], 1.0, part)
        tau = (1.0 - part) * commands[first] + part * commands[last]
        # Before, other commands acted.
        start = int(np.searchsorted(t, t[0] + delay - 1e-9))
        return cls(t[start:], q[start:], v[start:], tau[start:], hardware_adds_gravity)

    def __len__(self) -> int:
        return len(self.t)


def limits(model: RobotModel) -> FloatArray:
    """Effort limits, with a default for missing ones, shape (nv,), [Nm] or [N]."""
    limit = model.effort_limit
    return np.where(np.isfinite(limit) & (limit > 0.0), limit, STANDIN_LIMIT)


def momenta(model: RobotModel, answer: Answer) -> tuple[FloatArray, FloatArray]:
    """Momentum at each state, and its rate without actuator torque, shape (n, nv)."""
    ws, q, v = Workspace(model), np.ascontiguousarray(answer.q), np.ascontiguousarray(answer.v)
    p, rate, g = np.zeros_like(q), np.zeros_like(q), np.zeros(model.nv)
    for k in range(len(q)):
        generalized_momentum(model, ws, q[k], v[k], p[k], rate[k])
        if answer.hardware_adds_gravity:
            rate[k] += gravity(model, ws, q[k], g)
    return p, rate


class Judge:
    """Scores one answer by one model.

    Args:
        model: the robot.
        answer: at least two states.

    Attributes:
        limit: effort limits, with a default for missing ones, shape (nv,), [Nm] or [N].
    """

    def __init__(self, model: RobotModel, answer: Answer) -> None:
        self.limit = limits(model)
        t, v, n = answer.t, answer.v, len(answer)
        self._times, self._h, elapsed = t, np.diff(t), t - t[0]
        p, rate = momenta(model, answer)
        # The momentum that the torques must account for.
        self._gained = p - p[0]
        own = self._h[:, None] * 0.5 * (rate[1:] + rate[:-1])
        self._gained[1:] -= np.cumsum(own, axis=0)
        # Second differences have six times the variance of the noise.
        noise = np.diff(p, 2, axis=0).std(axis=0) if n > 3 else np.zeros(model.nv)
        noise /= math.sqrt(6.0 * max(n / BLOCKS, 1.0))
        self._least = np.hypot(RESOLUTION * self.limit * elapsed[-1], noise)
        window = np.full(SMOOTHED, 1.0 / SMOOTHED)
        smooth = np.apply_along_axis(np.convolve, 0, v, window, mode="same")
        slips = np.tanh(smooth / SLIPPING)[1:] * self._h[:, None]
        inertia = np.abs(p).max(axis=0) / np.maximum(np.abs(v).max(axis=0), 1e-6)
        self._parts = np.array_split(np.arange(n), BLOCKS)
        self._friction = -DISTURBANCE * self.limit * self._cumulated(slips)
        self._rotor = self._means(-ROTOR * inertia * (v - v[0]))
        self._elapsed = self._means(elapsed)
        self._blocks = self._means(self._gained)

    def _means(self, values: FloatArray) -> FloatArray:
        """Means of values, shape (n, ...), over the blocks."""
        return np.array([values[part].mean(axis=0) for part in self._parts if len(part)])

    def _cumulated(self, impulses: FloatArray) -> FloatArray:
        """Means of the running sums of impulses, shape (n - 1, ...)."""
        sums = np.cumsum(impulses, axis=0)
        return self._means(np.concatenate([np.zeros_like(sums[:1]), sums]))

    def fit(
        self,
        j: int,
        tau: FloatArray,
        freely: bool = False,
        most_loss: float = MOST_LOSS,
        pushes: FloatArray | None = None,
    ) -> Fit:
        """How well joint j is explained by torques that act on it.

        Args:
            j: the joint.
            tau: torques that act on it, shape (n - 1,), [Nm] or [N].
            freely: True to allow any additional constant torque.
            most_loss: part of the torques that friction may take.
            pushes: columns from `push`, multiples of which may act from outside.
        """
        limit = float(self.limit[j])
        tau = np.minimum(np.maximum(tau, -limit), limit)
        sent = self._cumulated(self._h * (tau - tau.mean()))
        rest = self._blocks[:, j] - sent - tau.mean() * self._elapsed
        resolution = math.hypot(self._least[j], TOLERANCE * float(sent.std())) or 1e-12
        constant = limit if freely else DISTURBANCE * limit
        columns = [-sent, self._friction[:, j], self._rotor[:, j], constant * self._elapsed]
        columns.append(np.full_like(rest, 10.0 * resolution))
        if pushes is not None:
            columns += [limit * column for column in pushes.T]
        score, x = _least_rest(np.column_stack([*columns, rest]) / resolution, most_loss)
        return Fit(score, float(x[0]), float(x[3] * constant))

    def push(self, onset: float) -> FloatArray:
        """Momenta by two torques that begin at time `onset`, [s]: a constant torque of 1, and one
        that grows to 1 at the end; shape (blocks, 2)."""
        elapsed = np.maximum(self._times - onset, 0.0)
        growing = 0.5 * elapsed**2 / max(float(elapsed[-1]), 1e-6)
        return self._means(np.column_stack([elapsed, growing]))


def _least_rest(blocks: FloatArray, most_loss: float) -> tuple[float, FloatArray]:
    """The least sum of squares, with the squares of the factors, that multiples of the first
    columns leave of the last column; and the factors.

    The first three factors are not negative: friction brakes, and a rotor adds inertia. The first
    factor is at most `most_loss`, and costs nothing.
    """
    columns, rest = blocks[:, :-1], blocks[:, -1]
    prior, x = np.ones(columns.shape[1]), np.zeros(columns.shape[1])
    lower, upper = np.full_like(x, -np.inf), np.full_like(x, np.inf)
    prior[0], lower[:3], upper[0] = 1e-6, 0.0, most_loss
    descend(columns.T @ columns + np.diag(prior), columns.T @ rest, lower, upper, x)
    return float(((rest - columns @ x) ** 2).sum() + prior @ (x * x)), x


@kernel()
def descend(A: Matrix, b: Vector, lower: Vector, upper: Vector, x: Vector) -> None:
    """Minimizes x A x / 2 - b x within bounds, by coordinate descent from `x`; A is symmetric and
    positive definite. Performs no allocation."""
    require(A.shape[0] == A.shape[1] == b.shape[0] == x.shape[0])
    require(lower.shape[0] == upper.shape[0] == x.shape[0])
    for _ in range(SWEEPS):
        largest = 0.0
        for i in range(x.shape[0]):
            slope = -b[i]
            for k in range(x.shape[0]):
                slope += A[i, k] * x[k]
            value = min(max(x[i] - slope / A[i, i], lower[i]), upper[i])
            largest = max(largest, abs(value - x[i]) * math.sqrt(A[i, i]))
            x[i] = value
        if largest < CONVERGED:
            return


def measured_delay(
    model: RobotModel,
    t: FloatArray,
    q: FloatArray,
    v: FloatArray,
    commands: FloatArray,
    hardware_adds_gravity: bool,
) -> float:
    """The delay after which commands act, [s]; NaN where the motion does not show it.

    A delay d takes d (tau(t) - tau(0)) from the momentum that commands give a joint. Least squares,
    joint by joint, separate this effect from friction, a missing rotor and a constant torque. As
    the formula holds for short delays only, the fit is repeated with commands delayed so far.

    Args:
        model: the robot.
        t: times of the states, shape (n,), [s].
        q, v: measured states, shape (n, nv), [rad] or [m], [rad/s] or [m/s].
        commands: torques published for the states, shape (n, nv), [Nm] or [N].
        hardware_adds_gravity: True if the hardware adds the gravity torque.
    """
    if len(t) < FEWEST_MOVING:
        return math.nan
    delay = 0.0
    for _ in range(REFINEMENTS):
        answer = Answer.of(t, q, v, commands, max(delay, 0.0), hardware_adds_gravity)
        more = _further_delay(model, answer) if len(answer) >= FEWEST_MOVING else math.nan
        if math.isnan(more):
            return math.nan
        delay = max(delay, 0.0) + more
    return delay


def _further_delay(model: RobotModel, answer: Answer) -> float:
    """The delay of the torques of an answer, [s], if it is short; NaN if it is not known."""
    t, q, v = answer.t, answer.q, answer.v
    p, rate = momenta(model, answer)
    h = np.diff(t)[:, None]
    lacking = p - p[0]
    lacking[1:] -= np.cumsum(h * (0.5 * (rate[1:] + rate[:-1]) + answer.tau), axis=0)
    commands = np.vstack([answer.tau, answer.tau[-1:]])
    # Noise of a velocity is in its momentum and in the command for its state: means have less.
    parts = np.array_split(np.arange(len(t)), max(round((t[-1] - t[0]) / SMOOTH_TIME), 1))

    def means(values: FloatArray) -> FloatArray:
        return np.array([values[part].mean(axis=0) for part in parts])

    time, place, speed = means(t), means(q), means(v)
    command, lack = means(commands), means(lacking)
    total = weight = 0.0
    for j in range(model.nv):
        span = _longest(np.sign(speed[:, j]) * (np.abs(speed[:, j]) > SLIDING))
        if span.stop - span.start < FEWEST_MEANS:
            continue
        known = np.column_stack([place[span, j], time[span]])
        known = np.column_stack([known - known[0], np.ones(len(known))])
        noisy = np.column_stack([-command[span, j], speed[span, j]])
        # The preceding means have independent noise: they serve as instrumental variables.
        columns, lagged = np.hstack([noisy[1:], known[1:]]), np.hstack([noisy[:-1], known[1:]])
        values, inverse = lack[span, j][1:], np.linalg.pinv(lagged.T @ columns)
        x = inverse @ (lagged.T @ values)
        rest = values - columns @ x
        covariance = (inverse @ (lagged.T @ lagged) @ inverse.T)[0, 0]
        variance = float(rest @ rest) / (len(values) - columns.shape[1]) * covariance
        if variance > 0.0:
            total, weight = total + x[0] / variance, weight + 1.0 / variance
    if not weight > SURE_DELAY**-2:
        return math.nan
    return float(total / weight)


def _longest(marks: FloatArray) -> slice:
    """The longest run of equal marks that are not 0."""
    best, begin = slice(0, 0), 0
    for k in range(1, len(marks) + 1):
        if k == len(marks) or marks[k] != marks[begin]:
            if marks[begin] != 0.0 and k - begin > best.stop - best.start:
                best = slice(begin, k)
            begin = k
    return best
