"""What each cause of a torque residual means, in words, and what to do."""

from __future__ import annotations

import numpy as np

from rnea_control.exceptions import listed
from rnea_control.identification.explanation import Cause, Contribution, Explanation
from rnea_control.identification.least_squares import late
from rnea_control.model import RobotModel
from rnea_control.model.rigid_body import link_inertia_of, pseudo_inertia_of
from rnea_control.model.robot_model import units

# Values of a joint that would make less than this part of its residual are not told.
SMALL = 0.1
# A factor on gravity within this of -1 is gravity that is not in the efforts.
NEAR = 0.15
# Factors on the efforts that differ by less, and are as near to 1, may be those of the masses.
ALIKE, HEAVIER = 0.1, 0.5


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
