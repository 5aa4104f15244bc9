"""The load of one link, from a motion with it, and better also one without it."""

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

# How far the robot's own inertias are trusted when there is no motion without the load, and when
# there is one.
TRUST_ALONE, TRUST_WITH_EMPTY = 0.1, 0.5
# A mass of less than this many standard deviations is none.
SIGNIFICANT = 3.0
# A deviation of more than this part of what was thought possible says that nothing was learned.
UNKNOWN = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class Payload(LinkInertia):
    """A load by the link that carries it, in that link's frame."""

    mass_deviation: float  # standard deviation, [kg]
    center_deviation: FloatArray  # of the center of mass, shape (3,), [m]
    delay: float  # by which the efforts are later than the motion, [s]
    seconds: float  # of motion with the load
    notes: tuple[str, ...]  # what the user should know
    doubts: tuple[str, ...] = ()  # why the load may be wrong although it fits


def identify_payload(
    model: RobotModel,
    link: str,
    loaded: Motion,
    empty: Motion | None = None,
    robust: bool = False,
    delay: float | None = None,
) -> Payload:
    """The ten parameters of a load.

    Friction and offsets are unknowns too, and so are the robot's own inertias, within what the
    description is trusted for; a motion without the load tells them apart from it.

    Args:
        model: without the load.
        link: that carries it.
        loaded, empty: motions with and without it.
        robust, delay: as of `identify`.

    Raises:
        IdentificationError: an unknown link, one that does not move or whose load no joint feels,
            or nothing that moves.
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
            f"{motion.source}: the motion does not tell what {link!r} carries; the standard "
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
