"""In what a model differs from the robot, by the torques that it lacks or has too much: friction,
offsets, rotors, a load, masses.

Causes are added one by one, the one first that explains most for the numbers it needs, until
nothing above the noise has a cause.
"""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.identification.causes import Cause, Contribution, told
from rnea_control.identification.torque_evidence import Fit, TorqueEvidence
from rnea_control.model.rigid_body import link_inertia_of, pseudo_inertia_of
from rnea_control.model.robot_model import units

# A cause counts if it explains this part of what is above the noise.
LEAST_PART = 0.03


def differences(
    evidence: TorqueEvidence, best: Fit, least_told: FloatArray
) -> tuple[list[Contribution], float]:
    """The causes, and how much is above the noise, in squares of it.

    Args:
        evidence: of the recording.
        best: the reading to take, with all parameters of the robot fitted.
        least_told: a torque of a joint that is worth to be told, shape (nv,), [Nm] or [N].
    """
    groups = {
        Cause.friction: evidence.friction,
        Cause.offset: evidence.offsets,
        Cause.rotor: evidence.rotors,
        Cause.payload: evidence.load,
        Cause.masses: evidence.masses,
    }
    least = evidence.independent / best.variance
    fits: dict[tuple[Cause, ...], Fit] = {}

    def fit(causes: tuple[Cause, ...]) -> Fit:
        key = tuple(sorted(causes, key=lambda cause: cause.name))
        if key not in fits:
            opened = np.concatenate([np.zeros(0, int), *(groups[cause] for cause in key)])
            fits[key] = evidence.fit(best.reading, opened)
        return fits[key]

    def power(causes: tuple[Cause, ...]) -> float:
        return float(least @ fit(causes).variance)

    total = float(evidence.independent.sum())
    excess = max(power(()) - total, 1e-9)
    chosen: tuple[Cause, ...] = ()
    while True:
        others = [cause for cause in groups if cause not in chosen]
        more = min(((*chosen, c) for c in others), key=lambda t: fit(t).cost, default=chosen)
        gain = power(chosen) - power(more)
        if fit(more).cost >= fit(chosen).cost or gain < LEAST_PART * excess:
            break
        # One that came first may have stood for another.
        trials = [more]
        for k in range(len(more)):
            rest = (*more[:k], *more[k + 1 :])
            trials += [rest, *((*rest, c) for c in groups if c not in more)]
        chosen = min(trials, key=lambda t: fit(t).cost)
    found, left = [], power(())
    change = fit(chosen).theta - evidence.declared
    for k, cause in enumerate(chosen):
        after = power(chosen[: k + 1])
        part = max(min((left - after) / excess, 1.0), 0.0)
        left = after
        own = np.zeros_like(change)
        own[groups[cause]] = change[groups[cause]]
        sizes = evidence.torque_of(own, best.reading)
        joints = np.flatnonzero(sizes > least_told).tolist() or [int(np.argmax(sizes))]
        found.append(_told(evidence, cause, part, own[groups[cause]], sizes, joints))
    return found, excess


def _told(
    evidence: TorqueEvidence,
    cause: Cause,
    part: float,
    values: FloatArray,
    sizes: FloatArray,
    joints: list[int],
) -> Contribution:
    """What a difference of the model means: `values` of theta, the root mean square of its
    torque at each joint, and the joints that are to be named."""
    model = evidence.model
    names, link = model.joint_names, model.child_links[-1]
    if cause is Cause.friction:
        damping, coulomb = values[: model.nv], values[model.nv :]
        rows = ", ".join(
            f"{names[j]} {coulomb[j]:+.3g} {units(model, j).effort} {damping[j]:+.3g} "
            f"{units(model, j).effort} s/{units(model, j).position}"
            for j in joints
        )
        words = f"friction that the model lacks, or has too much: {rows}"
    elif cause is Cause.payload:
        values = evidence.space.to_load @ values
        load = link_inertia_of(link, pseudo_inertia_of(values))
        center = ", ".join(f"{value:.3f}" for value in load.center_of_mass)
        words = f"a load of {load.mass:+.3g} kg on {link}, center of mass [{center}] m in its frame"
    elif cause is Cause.masses:
        felt = ", ".join(f"{names[j]} {sizes[j]:.3g} {units(model, j).effort}" for j in joints)
        words, values = f"{cause.value.name} are off, felt by {felt}", values[:0]
    else:
        unit = "kg m^2" if cause is Cause.rotor else units(model, joints[0]).effort
        rows = ", ".join(f"{names[j]} {values[j]:+.3g} {unit}" for j in joints)
        words = f"{cause.value.name} that the model lacks: {rows}"
    return told(cause, words, (names[j] for j in joints), values, part, link=link)
