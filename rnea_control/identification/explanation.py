"""The causes by which the torques of a robot differ from those of its model, and what each means.

Each cause has a torque of its own kind: a load, friction, a constant offset, masses, rotors, an
effort of another unit, a delay. Causes are added one by one, the one first that takes away most
for the numbers it needs (Schwarz's criterion), until what is left is noise or has no such cause.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch, parameter_count, parameter_names
from rnea_control.array_types import FloatArray, IntArray
from rnea_control.exceptions import listed
from rnea_control.identification.consistent_parameters import parameters_in_body
from rnea_control.identification.effort_doubts import frictionless
from rnea_control.identification.identify import check_joints
from rnea_control.identification.least_squares import BLOCK_SECONDS, late, slope_of, solve
from rnea_control.identification.motion import Motion, measurement_noise
from rnea_control.identification.torque_equations import NormalEquations, TorqueEquations
from rnea_control.model import RobotModel
from rnea_control.model.rigid_body import link_inertia_of, pseudo_inertia_of
from rnea_control.model.robot_model import units

# A joint whose residual is below this many times its noise has nothing to explain.
AT_NOISE = 1.2
# A cause counts if it takes away this part of what is above the noise.
LEAST_PART = 0.03
# Columns that depend on each other are told apart no further than this.
RANK = 1e-9
# Values of a joint that would make less than this part of its residual are not told.
SMALL = 0.1
# A factor on gravity within this of -1 is gravity that is not in the efforts.
NEAR = 0.15
# Factors on the efforts that differ by less, and are as near to 1, may be those of the masses.
ALIKE, HEAVIER = 0.1, 0.5


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
    weight = inverse_dynamics_batch(frictionless(model), motion.q, still, still)
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
    groups = _groups(model)
    variance = np.maximum(unexplained, noise**2)
    found = _Choice(normal, variance, round(BLOCK_SECONDS / motion.period), groups).explain()
    body, to_body = parameters_in_body(model, model.child_links[-1])
    samples = np.maximum(normal.samples, 1.0)
    contributions = []
    for cause, part, theta in found:
        torque = np.sqrt(np.maximum((normal.G @ theta) @ theta, 0.0) / samples)
        values = theta[groups[cause]]
        if cause is Cause.payload:
            load = np.linalg.solve(to_body, theta[10 * body : 10 * body + 10])
            values = load.astype(np.float64)
        elif cause in (Cause.masses, Cause.inertias):
            values = values[:0]
        contributions.append(Contribution(cause, part, torque, values))
    total = sum((theta for _, _, theta in found), np.zeros(len(normal.b[0])))
    return Explanation(
        model.child_links[-1],
        np.sqrt(normal.power / samples),
        np.sqrt(normal.mean_square(total)),
        noise,
        np.sqrt(np.mean(motion.effort**2, axis=0)),
        tuple(contributions),
    )


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
    """Which causes explain the residual, by its normal equations.

    Args:
        variance: of the noise, shape (nv,).
        block: samples whose residuals are not independent.
        groups: the columns of each cause.
    """

    def __init__(
        self,
        normal: NormalEquations,
        variance: FloatArray,
        block: int,
        groups: dict[Cause, IntArray],
    ) -> None:
        self._matrix, self._vector = normal.weighted(variance)
        self._groups = groups
        self._block = max(block, 1)
        self._power = float((normal.power / variance).sum())
        noise = float(normal.samples.sum())
        self._blocks = max(noise / self._block, 2.0)
        self._excess = max(self._power - noise, 1e-12)

    def explain(self) -> list[tuple[Cause, float, FloatArray]]:
        """The causes in the order found, each with its part and its share of the unknowns."""
        chosen: list[Cause] = []
        while (better := self._one_more(chosen)) is not None:
            chosen = self._exchanged(better)
        solution, _, _ = self._fit(chosen)
        found, claimed, left = [], set[int](), self._power
        for k, cause in enumerate(chosen):
            own = [column for column in self._groups[cause].tolist() if column not in claimed]
            claimed.update(own)
            theta = np.zeros(len(self._vector))
            theta[own] = solution[own]
            _, power, _ = self._fit(chosen[: k + 1])
            found.append((cause, min((left - power) / self._excess, 1.0), theta))
            left = power
        return found

    def _one_more(self, chosen: list[Cause]) -> list[Cause] | None:
        """The causes with the best one added; None if no one is worth it."""
        trials = [[*chosen, cause] for cause in self._groups if cause not in chosen]
        best = min(trials, key=self._cost, default=chosen)
        if self._cost(best) >= self._cost(chosen):
            return None
        (_, before, _), (_, after, _) = self._fit(chosen), self._fit(best)
        return best if before - after >= LEAST_PART * self._excess else None

    def _exchanged(self, chosen: list[Cause]) -> list[Cause]:
        """The causes, one of them exchanged for another or left out if that explains as well: one
        that came first may have stood for another."""
        trials = [chosen]
        for k in range(len(chosen)):
            others = [*chosen[:k], *chosen[k + 1 :]]
            trials.append(others)
            trials += [[*others, cause] for cause in self._groups if cause not in chosen]
        return min(trials, key=self._cost)

    def _cost(self, chosen: list[Cause]) -> float:
        _, power, unknowns = self._fit(chosen)
        return power / self._block + unknowns * math.log(self._blocks)

    def _fit(self, chosen: list[Cause]) -> tuple[FloatArray, float, int]:
        """Unknowns, what is left of the weighted squares, and the rank of the columns."""
        theta = np.zeros(len(self._vector))
        if not chosen:
            return theta, self._power, 0
        columns = np.unique(np.concatenate([self._groups[cause] for cause in chosen]))
        A, b = self._matrix[np.ix_(columns, columns)], self._vector[columns]
        scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
        values, vectors = np.linalg.eigh(A / np.outer(scale, scale))
        good = values > RANK * values[-1]
        projected = vectors[:, good].T @ (b / scale)
        theta[columns] = vectors[:, good] @ (projected / values[good]) / scale
        return theta, self._power - float((projected**2 / values[good]).sum()), int(good.sum())


def sentence(model: RobotModel, explanation: Explanation, contribution: Contribution) -> str:
    """What was found, with numbers, and what to do."""
    values, cause = contribution.values, contribution.cause
    told = [
        j
        for j in range(model.nv)
        if contribution.torque[j] > SMALL * max(explanation.rms[j], explanation.noise[j])
    ] or [int(np.argmax(contribution.torque))]
    names = model.joint_names

    def values_of(numbers: np.ndarray, unit: str) -> str:
        return ", ".join(f"{names[j]} {numbers[j]:+.3g} {unit}".rstrip() for j in told)

    if cause is Cause.delay:
        return (
            f"the efforts are {late(values[0])} than the positions: a filter of the drives? fit "
            "makes up for it"
        )
    if cause is Cause.gravity:
        if abs(values[0] + 1.0) < NEAR:
            return (
                "gravity is not in the efforts: does the hardware compensate it? Set "
                "hardware_compensates_gravity: true, or record the whole torque"
            )
        return (
            f"gravity is {1.0 + values[0]:.2f} times the model's: are its direction and strength "
            "right (parameter gravity), are the masses, and does the hardware compensate a part?"
        )
    if cause is Cause.scale:
        factors = ", ".join(f"{names[j]} {1.0 + values[j]:.3g}" for j in told)
        reversed_ = [names[j] for j in told if values[j] < -1.0 - NEAR]
        signs = f" The sign is reversed at {listed(reversed_)}." if reversed_ else ""
        scales = 1.0 + values[told]
        heavier = ""
        if np.ptp(scales) < ALIKE and abs(scales.mean() - 1.0) < HEAVIER:
            heavier = f" Or are all masses and inertias {scales.mean():.2g} times the URDF's?"
        return (
            f"the efforts are the model's torques times {factors}.{signs} Are they in Nm? Motor "
            f"currents need torque constant and gear ratio.{heavier}"
        )
    if cause is Cause.offset:
        unit = units(model, told[0]).effort
        return (
            f"constant offsets: {values_of(values, unit)}. Set friction.<joint>.offset, or zero "
            "the torque sensors"
        )
    if cause is Cause.friction:
        damping, coulomb = values[: model.nv], values[model.nv :]
        rows = ", ".join(
            f"{names[j]} {coulomb[j]:+.3g} {units(model, j).effort} {damping[j]:+.3g} "
            f"{units(model, j).effort} s/{units(model, j).position}"
            for j in told
        )
        driving = [
            names[j]
            for j in told
            if model.friction[j] + coulomb[j] < 0.0 and model.damping[j] + damping[j] < 0.0
        ]
        if driving:
            return (
                f"friction that drives {listed(driving)}, which none does: is the sign of the "
                f"efforts reversed? In all: {rows}"
            )
        return f"friction that the model lacks: {rows}. rnea_identify fit writes friction.<joint>"
    if cause is Cause.rotor:
        return (
            f"rotor inertia that the model lacks: {values_of(values, 'kg m^2')}. rnea_identify fit "
            "writes armature.<joint>"
        )
    if cause is Cause.payload:
        load = link_inertia_of(explanation.link, pseudo_inertia_of(values))
        center = ", ".join(f"{value:.3f}" for value in load.center_of_mass)
        return (
            f"a load of {load.mass:+.3g} kg on {explanation.link}, centre of mass [{center}] m in "
            f"its frame. rnea_identify fit --payload {explanation.link} writes payload"
        )
    what = "masses and centres of mass" if cause is Cause.masses else "moments of inertia"
    felt = ", ".join(
        f"{names[j]} {contribution.torque[j]:.3g} {units(model, j).effort}" for j in told
    )
    return f"{what} of the URDF are off, felt by {felt}. rnea_identify fit writes a new URDF"
