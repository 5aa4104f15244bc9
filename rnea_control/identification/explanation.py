"""The causes by which the torques of a robot differ from those of its model.

Each cause has a torque of its own kind: a load, friction, a constant offset, masses, rotors, an
effort of another unit, a delay. Causes are added one by one, the one first that takes away most
for the numbers it needs (Schwarz's criterion), until what is left is noise or has no such cause.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch, parameter_count, parameter_names
from rnea_control.array_types import FloatArray, IntArray
from rnea_control.identification.identify import check_joints
from rnea_control.identification.least_squares import BLOCK_SECONDS, slope_of, solve
from rnea_control.identification.motion import Motion
from rnea_control.identification.moving_links import parameters_in_body
from rnea_control.identification.residuals import measurement_noise
from rnea_control.identification.torque_equations import NormalEquations, TorqueEquations
from rnea_control.model import RobotModel

# A joint whose residual is below this many times its noise has nothing to explain.
AT_NOISE = 1.2
# A cause counts if it takes away this part of what is above the noise.
LEAST_PART = 0.03
# Columns that depend on each other are told apart no further than this.
RANK = 1e-9


class Cause(Enum):
    """A kind of torque."""

    delay = "delay"
    gravity = "gravity"
    scale = "scale of the effort"
    offset = "constant offset"
    friction = "friction"
    rotor = "rotor inertia"
    payload = "load of the last link"
    masses = "masses and centers of mass"
    inertias = "moments of inertia"


@dataclass(frozen=True, eq=False)
class Contribution:
    """A cause that was found.

    Attributes:
        cause: which.
        part: of the squared residual above the noise that it takes away, weighted, 0 to 1.
        torque: root mean square of its torque, shape (nv,), [Nm] or [N].
        values: of its unknowns: s for `delay`; the factor on gravity, less 1; factors on the effort
            of each joint, less 1; offsets; damping, then Coulomb friction; rotor inertias; ten
            parameters of the load in the last link's frame. Empty for the others.
    """

    cause: Cause
    part: float
    torque: FloatArray
    values: FloatArray


@dataclass(frozen=True, eq=False)
class Explanation:
    """How a model compares with a recording.

    Attributes:
        link: the last one, which a load would be fixed to.
        rms: of measured minus model's torque, shape (nv,), [Nm] or [N].
        rms_left: after the contributions are taken away.
        noise: of the measured torque.
        torque: root mean square of the measured torque.
        contributions: in the order in which they were found.
    """

    link: str
    rms: FloatArray
    rms_left: FloatArray
    noise: FloatArray
    torque: FloatArray
    contributions: tuple[Contribution, ...]

    @property
    def at_noise(self) -> bool:
        """Whether there is nothing to explain."""
        return bool((self.rms <= AT_NOISE * self.noise).all())


def explain(model: RobotModel, motion: Motion) -> Explanation:
    """Compares a model with a motion that was measured.

    Args:
        model: the robot, with its payloads, friction, armature and offsets.
        motion: of its joints.

    Raises:
        IdentificationError: joints of several degrees of freedom, or nothing moves.
    """
    check_joints(model)
    tau = inverse_dynamics_batch(model, motion.q, motion.v, motion.a)
    still = np.zeros_like(motion.v)
    weight = inverse_dynamics_batch(_frictionless(model), motion.q, still, still)
    columns = np.arange(parameter_count(model))
    equations = TorqueEquations(model, columns)
    slope = slope_of(tau, motion)

    def more(rows: slice, Y: FloatArray) -> FloatArray:
        scales = tau[rows, :, None] * np.eye(model.nv)
        return np.concatenate([-slope[rows, :, None], weight[rows, :, None], scales], axis=2)

    rest = replace(motion, effort=motion.effort - tau)
    noise = measurement_noise(motion)
    # What no cause explains is noise too; all of them together leave only that.
    width = len(columns) + 2 + model.nv
    unexplained = solve(equations, rest, np.zeros(width), more=more).variance
    normal = equations.normal(rest, more=more)
    choice = _Choice(
        normal, np.maximum(unexplained, noise**2), round(BLOCK_SECONDS / motion.period)
    )
    groups = _groups(model)
    body, to_body = parameters_in_body(model, model.child_links[-1])
    found = choice.explain(groups)
    contributions = []
    for cause, part, theta in found:
        torque = np.sqrt(np.maximum((normal.G @ theta) @ theta, 0.0) / _at_least_one(normal))
        values = theta[groups[cause]]
        if cause is Cause.payload:
            load = np.linalg.solve(to_body, theta[10 * body : 10 * body + 10])
            values = load.astype(np.float64)
        elif cause in (Cause.masses, Cause.inertias):
            values = values[:0]
        contributions.append(Contribution(cause, part, torque, values))
    total = (
        np.sum([theta for _, _, theta in found], axis=0) if found else np.zeros(len(normal.b[0]))
    )
    return Explanation(
        model.child_links[-1],
        np.sqrt(normal.power / _at_least_one(normal)),
        np.sqrt(normal.mean_square(total)),
        noise,
        np.sqrt(np.mean(motion.effort**2, axis=0)),
        tuple(contributions),
    )


def _at_least_one(normal: NormalEquations) -> FloatArray:
    return np.maximum(normal.samples, 1.0)


def _frictionless(model: RobotModel) -> RobotModel:
    bare = copy.deepcopy(model)
    bare.damping = bare.friction = bare.torque_offset = np.zeros(model.nv)
    return bare


def _groups(model: RobotModel) -> dict[Cause, IntArray]:
    """The columns of each cause: the regressor's, then delay, gravity and the scales."""
    names = parameter_names(model)
    kinds = [name.rpartition(".")[2] for name in names]
    count = len(names)
    body, _ = parameters_in_body(model, model.child_links[-1])

    def of(*wanted: str) -> IntArray:
        return np.array([k for k in range(count) if kinds[k] in wanted])

    return {
        Cause.delay: np.array([count]),
        Cause.gravity: np.array([count + 1]),
        Cause.scale: np.arange(count + 2, count + 2 + model.nv),
        Cause.offset: of("torque_offset"),
        Cause.friction: of("damping", "friction"),
        Cause.rotor: of("armature"),
        Cause.payload: np.arange(10 * body, 10 * body + 10),
        Cause.masses: of("m", "mcx", "mcy", "mcz"),
        Cause.inertias: of("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz"),
    }


class _Choice:
    """Which causes explain the residual, by its normal equations."""

    def __init__(self, normal: NormalEquations, variance: FloatArray, block: int) -> None:
        self._matrix, self._vector = normal.weighted(variance)
        # Residuals within a block of time are not independent.
        self._block = max(block, 1)
        self._power = float((normal.power / variance).sum())
        self._noise = float(normal.samples.sum())
        self._blocks = max(self._noise / self._block, 2.0)

    def explain(self, groups: dict[Cause, IntArray]) -> list[tuple[Cause, float, FloatArray]]:
        """The causes in the order found, each with its part and its share of the unknowns."""
        chosen: list[Cause] = []
        while True:
            better = self._one_more(groups, chosen)
            if better is None:
                break
            chosen = self._exchanged(groups, better)
        if not chosen:
            return []
        solution, _, _ = self._fit_all(groups, chosen)
        excess = max(self._power - self._noise, 1e-12)
        found, claimed, left = [], set[int](), self._power
        for k, cause in enumerate(chosen):
            own = [column for column in groups[cause].tolist() if column not in claimed]
            claimed.update(own)
            theta = np.zeros(len(self._vector))
            theta[own] = solution[own]
            _, power, _ = self._fit_all(groups, chosen[: k + 1])
            found.append((cause, min((left - power) / excess, 1.0), theta))
            left = power
        return found

    def _one_more(self, groups: dict[Cause, IntArray], chosen: list[Cause]) -> list[Cause] | None:
        """The causes with the best one added; None if no one is worth it."""
        _, left, rank = self._fit_all(groups, chosen)
        trials = [[*chosen, cause] for cause in groups if cause not in chosen]
        best = min(trials, key=lambda trial: self._cost_of(groups, trial), default=None)
        if best is None or self._cost_of(groups, best) >= self._cost(left, rank):
            return None
        _, power, _ = self._fit_all(groups, best)
        excess = max(self._power - self._noise, 1e-12)
        return best if left - power >= LEAST_PART * excess else None

    def _exchanged(self, groups: dict[Cause, IntArray], chosen: list[Cause]) -> list[Cause]:
        """The causes, one of them exchanged for another or left out if that explains as well: one
        that came first may have stood for another."""
        trials = [chosen]
        for k in range(len(chosen)):
            others = [*chosen[:k], *chosen[k + 1 :]]
            trials.append(others)
            trials += [[*others, cause] for cause in groups if cause not in chosen]
        return min(trials, key=lambda trial: self._cost_of(groups, trial))

    def _cost_of(self, groups: dict[Cause, IntArray], chosen: list[Cause]) -> float:
        _, power, rank = self._fit_all(groups, chosen)
        return self._cost(power, rank)

    def _fit_all(
        self, groups: dict[Cause, IntArray], chosen: list[Cause]
    ) -> tuple[FloatArray, float, int]:
        if not chosen:
            return np.zeros(len(self._vector)), self._power, 0
        return self._fit(np.unique(np.concatenate([groups[cause] for cause in chosen])))

    def _cost(self, power: float, unknowns: int) -> float:
        return power / self._block + unknowns * math.log(self._blocks)

    def _fit(self, columns: IntArray) -> tuple[FloatArray, float, int]:
        """Unknowns, what is left of the weighted squares, and the rank of the columns."""
        A, b = self._matrix[np.ix_(columns, columns)], self._vector[columns]
        scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
        values, vectors = np.linalg.eigh(A / np.outer(scale, scale))
        good = values > RANK * values[-1]
        projected = vectors[:, good].T @ (b / scale)
        theta = np.zeros(len(self._vector))
        theta[columns] = vectors[:, good] @ (projected / values[good]) / scale
        return theta, self._power - float((projected**2 / values[good]).sum()), int(good.sum())
