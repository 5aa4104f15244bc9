"""The intake of a planner's gains.

Whose messages count, and when they may begin, is decided as for targets of joints
(stream_intake.py). The state about which the gains are is near the measured one.
"""

from __future__ import annotations

from rnea_control.array_types import Matrix
from rnea_control.control.references import begun_by
from rnea_control.control.robot import robot_of
from rnea_control.control.step import StepArrays, begin_stream
from rnea_control.control.stream_intake import (
    TAKEN,
    TOO_FAR,
    StreamIntake,
    Targets,
    admit,
    is_distant,
    note,
    note_target,
)
from rnea_control.jit.inlining import shared


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
    if result == TAKEN and is_distant(intake, settings, targets, state.last_position):
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
