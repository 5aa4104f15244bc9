"""The intake of a planner's gains.

Whose messages count, and when they may begin, is decided as for targets of joints
(stream_intake.py). The state about which the gains are is near the measured one.
"""

from __future__ import annotations

from rnea_control.array_types import Matrix
from rnea_control.control.feedback import shortest_way
from rnea_control.control.layout import Settings, State
from rnea_control.control.references import begun_by
from rnea_control.control.robot import robot_of
from rnea_control.control.step import StepArrays, begin_stream
from rnea_control.control.stream_intake import (
    TAKEN,
    TOO_FAR,
    StreamIntake,
    Targets,
    admit,
    note,
    note_target,
)
from rnea_control.jit.inlining import inlined, shared


@inlined
def _distant_joint(
    intake: StreamIntake, settings: Settings, state: State, targets: Targets
) -> bool:
    """True if a position is too far from the measured one; writes joint and distance."""
    for j in range(state.shape[1]):
        way = shortest_way(settings, j, targets.position[j] - state.last_position[j])
        if not abs(way) <= settings.stream_max_distance[j]:
            intake.joint, intake.value = j, abs(way)
            return True
    return False


@shared
def take_gains(
    intake: StreamIntake,
    arrays: StepArrays,
    targets: Targets,
    gains: Matrix,
    decoded: int,
    kind: int,
    publisher: tuple[int, int],
    t: float,
    stamp: float,
    age: float,
    may_begin: bool,
) -> int:
    """Takes a planner's gains; returns whether they count.

    Args:
        targets: position, velocity and torque about which the gains are.
        gains: gains of the positions, then of the velocities, shape (nv, 2 nv).
        others: see `stream_intake.take_message`.
    """
    arm, state = arrays.arm[0], arrays.state
    nv, settings = state.shape[1], arrays.settings[arm.braced]
    result = admit(intake, arrays, decoded, kind, publisher, t, stamp, may_begin)
    if result == TAKEN and _distant_joint(intake, settings, state, targets):
        result = TOO_FAR
    if result == TAKEN:
        reference = begun_by(kind)
        begins = int(state.reference) != reference
        if begins:
            begin_stream(arrays, reference, t)
        note_target(intake, arrays, begins, t, age)
        in_force = robot_of(arm, nv).gains
        for i in range(nv):
            state.target[i], state.target_rate[i] = targets.position[i], targets.velocity[i]
            state.target_effort[i], state.target_at[i] = targets.effort[i], t
            for k in range(2 * nv):
                in_force[i, k] = gains[i, k]
    note(intake, result)
    return result
