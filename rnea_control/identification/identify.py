"""Parameters of a robot from motions: least squares, then physical consistency."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from rnea_control.analysis import BaseParameters, inertial_parameters
from rnea_control.array_types import FloatArray
from rnea_control.identification.consistent_parameters import ParameterSpace
from rnea_control.identification.diagnosis import diagnose
from rnea_control.identification.least_squares import Solution, beside_delay, delay_of, late
from rnea_control.identification.motion import Motion
from rnea_control.identification.torque_equations import TorqueEquations, identified_robot
from rnea_control.identification.unmodeled_torques import ROUNDS, solve_beside_unmodeled
from rnea_control.model import RobotModel

# Largest standard deviation of an identified parameter, relative to its value or to the uncertainty
# of the URDF. A parameter with a relative deviation above 1 is not identified.
CERTAIN = 0.1
SMALL_FRICTION = 0.1  # negligible friction as a fraction of the measured torque
SHORT = 1.0  # shortest moving time of a joint that determines its friction [s]
WORSE = 0.05  # increase of the residual by consistency that is reported, as a fraction

_INERTIAL_UNITS = {"m": "kg", "mcx": "kg m", "mcy": "kg m", "mcz": "kg m"}
_ACTUATOR_UNITS = {
    "armature": ("kg m^2", "kg"),
    "damping": ("Nm s/rad", "N s/m"),
    "friction": ("Nm", "N"),
    "torque_offset": ("Nm", "N"),
}


class Certainty(Enum):
    """Classes of parameters by how well the data determine them."""

    identified = "identified"
    uncertain = "uncertain"
    unidentified = "not identified"


@dataclass(frozen=True)
class Estimate:
    """Estimate of a base parameter."""

    name: str  # sum of the robot's parameters, such as "panda_link3.mcx + 0.08 panda_link4.m"
    unit: str  # unit, such as "kg m"
    prior: float  # value by the URDF and the configuration
    value: float  # value by least squares
    deviation: float  # standard deviation of `value`
    certainty: Certainty


@dataclass(frozen=True, eq=False)
class Identification:
    """Parameters of a robot identified from recordings."""

    model: RobotModel  # the robot as described
    base: BaseParameters  # grouping of its parameters
    beta: FloatArray  # base parameters by least squares, shape (base.rank,); NaN if not determined
    covariance: FloatArray  # covariance of `beta`, shape (base.rank, base.rank)
    estimates: tuple[Estimate, ...]  # one estimate for each base parameter
    # Physically consistent pseudo-inertia of each moving link, in the link's frame, shape (4, 4),
    # by name; and the actuators' parameters for these inertias, shape (nv,), SI units.
    inertias: dict[str, FloatArray]
    armature: FloatArray
    damping: FloatArray
    friction: FloatArray
    torque_offset: FloatArray
    noise: FloatArray  # standard deviation of the residual, shape (nv,), [Nm] or [N]
    condition: float  # condition number of the weighted and scaled regressor
    delay: float  # delay of the measured effort against the motion, [s]
    cutoff: float  # cut-off of the filter, [Hz]
    samples: FloatArray  # number of torques used for each joint, shape (nv,)
    seconds: float  # duration of the motion used, [s]
    notes: tuple[str, ...]  # dropped data, parameters that are not identified, and other notes
    doubts: tuple[str, ...] = ()  # reasons why the parameters may be wrong although they fit


def identify(
    model: RobotModel, motion: Motion, robust: bool = False, delay: float | None = None
) -> Identification:
    """Identifies the parameters of a robot from a motion.

    Args:
        model: the robot as described by URDF and configuration; its payloads are taken as known.
        motion: motion of its joints, in the order of `model.joint_names`.
        robust: True to give outliers less weight.
        delay: delay of the efforts against the motion, [s]; from the data by default.

    Raises:
        IdentificationError: joints with several degrees of freedom, no motion, no link with a mass,
            or no physically consistent parameters.
    """
    space = ParameterSpace(model, motion)
    prior = space.beta(space.start)
    equations = TorqueEquations(identified_robot(model), space.base.independent, motion)
    notes = list(motion.notes)
    diagnosis = diagnose(model, motion, delay)
    finds_delay, near, seconds = delay is None, prior, delay or 0.0
    if finds_delay and not diagnosis.doubts:
        found = diagnosis.delay
        if found is None or robust:
            found = delay_of(equations, prior, robust)
        near, seconds = found.beta, found.seconds if found.is_significant else 0.0
        done = "that was made up for" if seconds else "too little to be sure, and 0 was taken"
        notes.append(
            f"the efforts are {late(found.seconds)} than the positions, standard deviation "
            f"{1e3 * found.deviation:.2g} ms; {done}"
        )
    motion = motion.delayed(seconds)
    equations = replace(equations, motion=motion)
    if finds_delay:
        equations = beside_delay(equations, near)
    rounds = 0 if diagnosis.doubts else ROUNDS
    solution, unmodeled = solve_beside_unmodeled(equations, prior, robust, rounds)
    theta = space.nearest(solution)
    armature, damping, friction, offset = theta[space.actuators].reshape(4, -1)
    notes += [*unmodeled, *_notes(model, motion, solution, space.beta(theta))]
    beta = np.where(solution.determined, solution.beta, np.nan)
    return Identification(
        model=model,
        base=space.base,
        beta=beta,
        covariance=solution.covariance,
        estimates=_estimates(space, solution, beta),
        inertias=space.inertias(theta),
        armature=armature,
        damping=damping,
        friction=friction,
        torque_offset=offset,
        noise=solution.noise,
        condition=solution.condition,
        delay=seconds,
        cutoff=motion.cutoff,
        samples=motion.counts.sum(axis=0).astype(np.float64),
        seconds=motion.seconds,
        notes=tuple(notes),
        doubts=diagnosis.doubts,
    )


def _estimates(space: ParameterSpace, solution: Solution, beta: FloatArray) -> tuple[Estimate, ...]:
    model, base = space.model, space.base
    prior = base.values(inertial_parameters(model))
    deviations = np.sqrt(np.diag(solution.covariance))
    columns = np.stack([prior, beta, deviations, space.beta_deviation], axis=1).tolist()
    found = []
    for name, (own, value, deviation, left_open) in zip(base.names, columns, strict=True):
        owner, _, kind = name.split(" ")[0].rpartition(".")
        unit, least = _INERTIAL_UNITS.get(kind, "kg m^2"), left_open
        if kind in _ACTUATOR_UNITS:
            sliding = model.joint_types[model.joint_names.index(owner)] == "prismatic"
            unit, least = _ACTUATOR_UNITS[kind][sliding], SMALL_FRICTION * left_open
        certainty = Certainty.uncertain
        if not deviation <= max(least, abs(own)):
            certainty = Certainty.unidentified
        elif deviation <= CERTAIN * max(least, abs(value)):
            certainty = Certainty.identified
        found.append(Estimate(name, unit, own, value, deviation, certainty))
    return tuple(found)


def _notes(
    model: RobotModel, motion: Motion, solution: Solution, consistent: FloatArray
) -> list[str]:
    notes = []
    for j, name in enumerate(model.joint_names):
        seconds = np.count_nonzero(motion.counts[:, j]) * motion.period
        if seconds < SHORT:
            notes.append(
                f"{name} moves for {seconds:.2g} s only; its friction, and parameters that affect "
                "no other joint, keep the description's values unless the data determine them"
            )
    difference = consistent - solution.beta
    # Cost of consistency over the residual's sum of squares, both weighted by the noise.
    cost = float(difference @ solution.information @ difference)
    least = float((motion.counts.sum(axis=0) * solution.noise**2 / solution.variance).sum())
    if cost > WORSE * least:
        notes.append(
            "no parameters of real bodies fit as well as others would: the residual grows by "
            f"{100.0 * (math.sqrt(1.0 + cost / least) - 1.0):.0f} %. Are the efforts in Nm, and "
            "are the lengths of the URDF those of the robot?"
        )
    return notes
