"""The intake of what may be set while the tip yields: posture, stiffness and wrench.

The first publisher of each counts, until its messages are missing for `stream_timeout` or, as a
stiffness is sent once, for STIFFNESS_SILENCE.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control.laws import is_impedance
from rnea_control.control.pose_intake import into_root
from rnea_control.control.robot import robot_of
from rnea_control.control.step import StepArrays
from rnea_control.control.stream_intake import (
    FOREIGN,
    NOT_NOW,
    TAKEN,
    StreamIntake,
    Targets,
    note,
)
from rnea_control.control.task_space import (
    is_stiffness,
    largest_frequency,
)
from rnea_control.control.tip import (
    clipped,
    position_in,
    rotation_part,
    store_six,
)
from rnea_control.jit.inlining import inlined, shared
from rnea_control.spatial.symmetric import SIZE

STIFFNESS_SILENCE = 5.0  # time after which another publisher's stiffness counts [s]

# Results of the intake, beside those of stream_intake.py and pose_intake.py.
NO_STIFFNESS = 16  # the matrix is not symmetric, or has a negative eigenvalue
TOO_STIFF = 17  # the rate of the states does not allow this stiffness


@inlined
def _follows(intake: StreamIntake, publisher: tuple[int, int], t: float, silence: float) -> bool:
    """True if a message at time `t` [s] is of the publisher that counts, until its messages are
    missing for `silence` [s]."""
    low, high = publisher
    same = low == intake.gid_low and high == intake.gid_high
    intake.heard_at = min(intake.heard_at, t)  # the time goes back where that of the states does
    if intake.known and t - intake.heard_at <= silence and not same:
        intake.foreign_low, intake.foreign_high, intake.foreign_kind = low, high, intake.kind
        intake.foreign += 1
        return False
    intake.known, intake.gid_low, intake.gid_high, intake.heard_at = True, low, high, t
    return True


@inlined
def take_posture(
    intake: StreamIntake,
    arrays: StepArrays,
    targets: Targets,
    decoded: int,
    publisher: tuple[int, int],
    t: float,
) -> int:
    """Takes targets of joints as the posture while a pose is followed; returns whether they
    count."""
    state, settings = arrays.state, arrays.settings[arrays.arm[0].braced]
    if not _follows(intake, publisher, t, settings.stream_timeout):
        return FOREIGN
    if decoded == TAKEN:
        intake.taken += 1
        for j in range(state.shape[1]):
            q = targets.position[j]
            if not math.isnan(q):
                state.posture[j] = min(max(q, settings.lower_limit[j]), settings.upper_limit[j])
    note(intake, decoded)
    return decoded


@shared
def take_stiffness(
    intake: StreamIntake,
    arrays: StepArrays,
    numbers: Vector,
    count: int,
    decoded: int,
    publisher: tuple[int, int],
    t: float,
) -> int:
    """Takes a stiffness in the root link's frame; returns whether it counts.

    Args:
        numbers: its diagonal or the whole matrix, row by row [N/m], [N/rad], [Nm/rad]; overwritten.
        count: 6 or 36.
        others: see `stream_intake.take_message`.
    """
    arm, state = arrays.arm[0], arrays.state
    settings = arrays.settings[arm.braced]
    if not (arm.takes_streams and is_impedance(settings, state)):
        note(intake, NOT_NOW)
        return NOT_NOW
    if not _follows(intake, publisher, t, STIFFNESS_SILENCE):
        return FOREIGN
    result = decoded
    if result == TAKEN:
        if count == SIZE:
            for back in range(SIZE):
                k = SIZE - 1 - back
                entry = numbers[k]
                for m in range(SIZE):
                    numbers[SIZE * k + m] = entry if k == m else 0.0
        if is_stiffness(state, numbers):
            robot = robot_of(arm, state.shape[1])
            frequency = largest_frequency(robot, settings, state, numbers)
            if not frequency <= arm.most_tip_frequency:
                result, intake.value = TOO_STIFF, (arm.most_tip_frequency / frequency) ** 2
        else:
            result = NO_STIFFNESS
    if result == TAKEN:
        intake.taken += 1
        for k in range(SIZE):
            for m in range(SIZE):
                mean = 0.5 * (numbers[SIZE * k + m] + numbers[SIZE * m + k])
                state.target_stiffness[SIZE * k + m] = mean
    note(intake, result)
    return result


@shared
def take_wrench(
    intake: StreamIntake,
    arrays: StepArrays,
    wrench: Vector,
    frame: int,
    decoded: int,
    publisher: tuple[int, int],
    t: float,
) -> int:
    """Takes a wrench that the tip is to exert; returns whether it counts.

    Args:
        wrench: force and moment in the frame of the link [N], [Nm]; overwritten.
        frame: row of the link.
        others: see `stream_intake.take_message`.
    """
    arm, state = arrays.arm[0], arrays.state
    settings = arrays.settings[arm.braced]
    if not (arm.takes_streams and is_impedance(settings, state)):
        note(intake, NOT_NOW)
        return NOT_NOW
    if not _follows(intake, publisher, t, settings.stream_timeout):
        return FOREIGN
    if decoded == TAKEN:
        intake.taken += 1
        into_root(robot_of(arm, state.shape[1]), state, frame, wrench, True)
        most = settings.task_max_force
        force = clipped(position_in(wrench), most[0])
        store_six(state.asked_wrench, force, clipped(rotation_part(wrench), most[1]))
        state.wrench_at = t
    note(intake, decoded)
    return decoded
