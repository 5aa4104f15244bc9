"""`diagnose`: from a recording and a model to a ranked list of causes, with what speaks for each.

First come the causes that no fit makes up for: what the efforts show by themselves, such as
clipping, then what else they are than the torques of the robot (`Readings`). Then, beside those, in
what the model differs from the robot: friction, offsets, rotors, a load, masses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.compiled import CompiledRobot
from rnea_control.identification.delay import Delay, late
from rnea_control.identification.motion import COARSE_ROUNDING, Motion, measurement_noise
from rnea_control.identification.readings import Readings
from rnea_control.identification.torque_equations import identified_robot
from rnea_control.identification.torque_evidence import Fit, TorqueEvidence
from rnea_control.model import RobotModel
from rnea_control.model.causes import Cause, Contribution, told
from rnea_control.model.rigid_body import link_inertia_of, ten_parameters
from rnea_control.model.robot_model import units

# A joint whose residual is below this many times its noise has nothing to explain.
AT_NOISE = 1.2
# Values that make less than this part of a joint's residual are not told.
SMALL = 0.1
# Nothing explains efforts if more than this is left: of them, and of the effort limit.
LEFT, LEFT_OF_LIMIT = 0.5, 0.05
# Efforts are beyond the limits if so many are, by this factor.
BEYOND, OFTEN = 1.1, 0.01
# A difference counts if it explains this part of what is above the noise.
LEAST_PART = 0.03


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """How a model compares with a recording, and why.

    Attributes:
        rms: of measured minus model's torque, shape (nv,), [Nm] or [N]; 0 where a joint stands.
        rms_left: once all causes are accounted for.
        noise: of the measured torque.
        torque: root mean square of the measured torque.
        delay: by which the efforts are later than the motion; None if it was not looked for.
        contributions: the causes, those first that no fit makes up for. Their values are, one for
            each joint, scales, offsets, damping and then Coulomb friction, or rotor inertias that
            the model lacks; gravity; the delay; or ten parameters of the load in its link's frame.
        question: what else could explain the efforts as well, and the recording that decides.
    """

    rms: FloatArray
    rms_left: FloatArray
    noise: FloatArray
    torque: FloatArray
    delay: Delay | None
    contributions: tuple[Contribution, ...]
    question: str

    @property
    def at_noise(self) -> bool:
        """Whether there is nothing to explain."""
        return bool((self.rms <= AT_NOISE * self.noise).all())

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why parameters fitted to these efforts would be wrong, a sentence each."""
        return tuple(each.sentence for each in self.contributions if not each.cause.fitted)


def diagnose(
    model: RobotModel,
    motion: Motion,
    delay: float | None = None,
    robot: CompiledRobot | None = None,
) -> Diagnosis:
    """Compares a model with a motion that was measured.

    Args:
        model: the robot, with its payloads, friction, armature and offsets; joints of one degree of
            freedom.
        motion: of its joints.
        delay: by which the efforts are later, [s]; from the data by default.
        robot: `identified_robot(model)`, where the caller has it.
    """
    if delay:
        motion = motion.delayed(delay)
    noise = measurement_noise(motion)
    torque = np.sqrt(np.mean(motion.effort**2, axis=0))
    rms = motion.rms(motion.effort - inverse_dynamics_batch(model, motion.q, motion.v, motion.a))
    recorded = _of_signals(model, motion)
    if (rms <= AT_NOISE * noise).all() or not motion.counts.any():
        return Diagnosis(rms, rms, noise, torque, None, tuple(recorded), "")
    search = Readings(model, motion, robot or identified_robot(model), delay is None)
    evidence, best, lies = search.evidence, search.best, search.found
    named = {name for each in lies for name in each.joints}
    lies += [each for each in _beyond(model, motion, noise) if not named & {*each.joints}]
    if not lies and not recorded:
        lies += _unexplained(search, noise)
    parts, excess = _differences(evidence, best, SMALL * np.maximum(rms, noise))
    if search.delay and search.delay.is_significant and not lies and not recorded:
        own = float(evidence.independent @ (search.undelayed / best.variance - 1.0))
        later = search.delay.seconds
        part = max(own / (own + excess), 0.0)
        parts.append(told(Cause.delay, {}, (later,), part, what=late(later)))
    parts.sort(key=lambda each: -each.part)
    left = np.sqrt(best.variance + evidence.rough)
    causes = (*recorded, *lies, *parts)
    return Diagnosis(rms, left, noise, torque, search.delay, causes, search.question)


def _of_signals(model: RobotModel, motion: Motion) -> list[Contribution]:
    """What the efforts show without any model."""
    clipped, steps, names = motion.clipped.mean(axis=0), motion.rounding, model.joint_names
    coarse = np.flatnonzero(steps > COARSE_ROUNDING * np.std(motion.effort, axis=0)).tolist()
    at_ends = {names[j]: f"({100.0 * clipped[j]:.0f} %)" for j in np.flatnonzero(clipped)}
    in_steps = {names[j]: f"{steps[j]:.3g} {units(model, j).effort}" for j in coarse}
    found = (Cause.clipping, at_ends, clipped), (Cause.rounding, in_steps, steps)
    return [told(*each) for each in found if each[1]]


def _beyond(model: RobotModel, motion: Motion, noise: FloatArray) -> list[Contribution]:
    """Efforts that are beyond the limits of the URDF."""
    limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
    sizes = np.abs(motion.effort)
    often = (sizes > BEYOND * limit + 4.0 * noise).mean(axis=0) > OFTEN
    rows = {}
    for j in np.flatnonzero(often).tolist():
        largest, unit = np.quantile(sizes[:, j], 1.0 - OFTEN), units(model, j).effort
        rows[model.joint_names[j]] = f"up to {largest:.3g} {unit}, limit {limit[j]:.3g}"
    return [told(Cause.limit, rows)] if rows else []


def _unexplained(search: Readings, noise: FloatArray) -> list[Contribution]:
    """The joints whose efforts nothing explains."""
    model, left = search.model, np.sqrt(search.best.variance)
    strength = search.evidence.strength(search.best.reading)
    large = (left > 3.0 * noise) & (left > LEFT * strength)
    harmless = (left < LEFT_OF_LIMIT * model.effort_limit) & np.isfinite(model.effort_limit)
    rows = {
        model.joint_names[j]: f"({left[j]:.3g} {units(model, j).effort})"
        for j in np.flatnonzero(large & ~harmless).tolist()
    }
    return [told(Cause.unknown, rows)] if rows else []


def _differences(
    evidence: TorqueEvidence, best: Fit, least_told: FloatArray
) -> tuple[list[Contribution], float]:
    """In what the model differs from the robot, by the torques that it lacks or has too much.

    Causes are added one by one, the one first that explains most for the numbers it needs, until
    nothing above the noise has a cause.

    Args:
        evidence: of the recording.
        best: the reading to take, with all parameters of the robot fitted.
        least_told: a torque of a joint that is worth to be told, shape (nv,), [Nm] or [N].

    Returns:
        The causes, and how much is above the noise, in squares of it.
    """

    @cache
    def fit(causes: frozenset[Cause]) -> Fit:
        opened = [evidence.columns[cause] for cause in causes]
        return evidence.fit(best.reading, np.concatenate([np.zeros(0, int), *opened]))

    def cost(causes: tuple[Cause, ...]) -> float:
        return fit(frozenset(causes)).cost

    def above_noise(causes: tuple[Cause, ...]) -> float:
        return float(evidence.independent @ (fit(frozenset(causes)).variance / best.variance - 1.0))

    chosen: tuple[Cause, ...] = ()
    excess = max(above_noise(chosen), 1e-9)
    while others := [cause for cause in evidence.columns if cause not in chosen]:
        more = min(((*chosen, cause) for cause in others), key=cost)
        gain = above_noise(chosen) - above_noise(more)
        if cost(more) >= cost(chosen) or gain < LEAST_PART * excess:
            break
        # One that came first may have stood for another.
        trials = [more]
        for k in range(len(more)):
            rest = (*more[:k], *more[k + 1 :])
            trials += [rest, *((*rest, cause) for cause in evidence.columns if cause not in more)]
        chosen = min(trials, key=cost)
    change = fit(frozenset(chosen)).theta - evidence.declared
    found = []
    for k, cause in enumerate(chosen):
        part = (above_noise(chosen[:k]) - above_noise(chosen[: k + 1])) / excess
        columns, own = evidence.columns[cause], np.zeros_like(change)
        own[columns] = change[columns]
        sizes = evidence.torque_of(own, best.reading)
        joints = np.flatnonzero(sizes > least_told).tolist() or [int(np.argmax(sizes))]
        names = {evidence.model.joint_names[j]: float(sizes[j]) for j in joints}
        found.append(_difference(evidence, cause, min(max(part, 0.0), 1.0), own, names))
    return found, excess


def _difference(
    evidence: TorqueEvidence, cause: Cause, part: float, change: FloatArray, sizes: dict[str, float]
) -> Contribution:
    """What a change of theta means, with the root mean square of its torque at each joint that is
    to be named."""
    model, values = evidence.model, change[evidence.columns[cause]]
    if cause is Cause.payload:
        link = model.child_links[-1]
        inertia = evidence.space.load_inertia(change)
        load = link_inertia_of(link, inertia)
        center = ", ".join(f"{value:.3f}" for value in load.center_of_mass)
        words = {"link": link, "mass": load.mass, "center": center}
        return told(cause, dict.fromkeys(sizes, ""), ten_parameters(inertia), part, **words)
    rows = {}
    for name, size in sizes.items():
        j = model.joint_names.index(name)
        unit = units(model, j)
        if cause is Cause.friction:
            damping, coulomb = values[j], values[model.nv + j]
            text = f"{coulomb:+.3g} {unit.effort} {damping:+.3g} {unit.effort} s/{unit.position}"
        elif cause is Cause.masses:
            text = f"{size:.3g} {unit.effort}"
        else:
            text = f"{values[j]:+.3g} {'kg m^2' if cause is Cause.rotor else unit.effort}"
        rows[name] = text
    return told(cause, rows, () if cause is Cause.masses else values, part)
