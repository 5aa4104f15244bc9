"""Identifies the load of a link from a motion with the load, and optionally one without it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.consistent_parameters import (
    LOAD_TRUST,
    SIZE,
    ParameterSpace,
    parameters_in_body,
)
from rnea_control.identification.diagnosis import diagnose
from rnea_control.identification.least_squares import delay_of
from rnea_control.identification.motion import Motion, join
from rnea_control.identification.torque_equations import TorqueEquations, identified_robot
from rnea_control.identification.unmodeled_torques import solve_beside_unmodeled
from rnea_control.model import RobotModel
from rnea_control.model.rigid_body import LinkInertia, link_inertia_of

# Relative standard deviation of the robot's own inertias.
TRUST_ALONE = 0.1  # without a motion without the load
TRUST_WITH_EMPTY = 0.5  # with a motion without the load
SIGNIFICANT = 3.0  # smallest significant mass, in standard deviations
UNKNOWN = 0.1  # largest standard deviation of a determined mass, over the deviation assumed before


@dataclass(frozen=True, eq=False, kw_only=True)
class Payload(LinkInertia):
    """Load of a link, in the link's frame."""

    mass_deviation: float  # standard deviation of the mass, [kg]
    center_deviation: FloatArray  # standard deviation of the center of mass, shape (3,), [m]
    delay: float  # delay of the efforts against the motion, [s]
    seconds: float  # duration of the motion with the load, [s]
    notes: tuple[str, ...]  # notes for the user
    doubts: tuple[str, ...] = ()  # reasons why the load may be wrong although it fits


def identify_payload(
    model: RobotModel,
    link: str,
    loaded: Motion,
    empty: Motion | None = None,
    robust: bool = False,
    delay: float | None = None,
) -> Payload:
    """Identifies the ten parameters of a load.

    Friction, offsets and the robot's own inertias are unknown too; the inertias are near the
    description's. A motion without the load separates them from the load.

    Args:
        model: the robot without the load.
        link: link that carries the load.
        loaded: motion with the load.
        empty: motion without the load.
        robust: True to give outliers less weight.
        delay: delay of the efforts against the motion, [s]; from the data by default.

    Raises:
        IdentificationError: an unknown link, a link that does not move or whose load affects no
            joint, or no motion.
    """
    body, to_body = parameters_in_body(model, link)
    motion = loaded if empty is None else join([loaded, empty])
    trust = TRUST_ALONE if empty is None else TRUST_WITH_EMPTY
    space = ParameterSpace(model, motion, with_load=True, trust=trust)
    rank, prior = space.base.rank, space.beta(space.start)
    equations = TorqueEquations(identified_robot(model), space.base.independent, loaded)
    if delay is None:
        delay = delay_of(equations, prior[:rank], robust).seconds
    parts = [each.delayed(delay) for each in (loaded, empty) if each is not None]
    motion = join(parts)
    carries = np.arange(len(motion.time)) < len(parts[0].time)

    def load_columns(rows: slice, Y: FloatArray) -> FloatArray:
        columns = Y[:, :, SIZE * body : SIZE * (body + 1)] @ to_body
        return np.asarray(columns * carries[rows, None, None])

    equations = replace(equations, motion=motion, more=(load_columns,))
    solution, unmodeled = solve_beside_unmodeled(equations, prior, robust)
    found = link_inertia_of(link, space.load_inertia(space.nearest(solution)))
    covariance = space.posterior(solution)[rank:, rank:]
    # c = mc / m, to first order.
    slope = np.concatenate([-found.center_of_mass[:, None], np.eye(3)], axis=1) / found.mass
    notes = [*motion.notes, *unmodeled]
    mass_deviation = float(np.sqrt(covariance[0, 0]))
    if mass_deviation > max(UNKNOWN * LOAD_TRUST, found.mass):
        raise IdentificationError(
            f"{motion.source}: the motion does not determine the load of {link!r}; the standard "
            f"deviation of the mass is {mass_deviation:.2g} kg. Move joints that lift the load, "
            "and name the link that carries it"
        )
    if found.mass < SIGNIFICANT * mass_deviation:
        notes.append(
            f"{found.mass:.3g} kg with a standard deviation of {mass_deviation:.2g} kg may be no "
            "load at all"
        )
    if empty is None:
        notes.append(
            "without a motion of the empty arm, errors of the robot's own model count as load"
        )
    carrying = model.copy()
    if empty is None:
        carrying.set_payload(link, found.mass, found.center_of_mass, found.inertia)
    return Payload(
        **vars(found),
        mass_deviation=mass_deviation,
        center_deviation=np.sqrt(np.diag(slope @ covariance[:4, :4] @ slope.T)),
        delay=delay,
        seconds=parts[0].seconds,
        notes=tuple(notes),
        doubts=diagnose(carrying, loaded if empty is None else empty, delay).doubts,
    )
