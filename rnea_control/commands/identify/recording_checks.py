"""What is wrong with a recording: while it is made, and once it is there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rnea_control.exceptions import RneaControlError, RobotModelError
from rnea_control.identification.diagnosis import diagnose
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording, check_measured, of_robot
from rnea_control.model import RobotModel
from rnea_control.parameters.settings import quietly

# While there are few states, a joint that has gone no further than this may be at rest, [rad] or
# [m].
MOVED = 0.05
LOWEST_RATE = 100.0  # [Hz]


def early_faults(recording: Recording) -> Iterator[str]:
    """What makes it useless however long it becomes, a sentence each."""
    try:
        check_measured(recording, MOVED)
    except RneaControlError as error:
        yield str(error)
    steps = np.diff(recording.time)
    rate = 1.0 / np.median(steps[steps > 0.0]) if (steps > 0.0).any() else np.inf
    if rate < 0.99 * LOWEST_RATE:
        yield (
            f"joint states come {rate:.0f} times a second; accelerations need at least "
            f"{LOWEST_RATE:.0f} Hz. Raise update_rate of the controller manager"
        )


def faults(recording: Recording) -> Iterator[str]:
    """What `rnea_identify fit` would say of it by itself, a sentence each: what it would leave out,
    and why it would be wrong by the robot that was recorded with it, if there is one."""
    yield from early_faults(recording)
    model = None
    try:
        if recording.robot_description:
            model = quietly(
                RobotModel.from_urdf_string, recording.robot_description, recording.joints
            )
    except RobotModelError as error:
        yield f"its robot_description cannot be used, give `fit` another by --urdf: {error}"
    try:
        check_measured(recording)
        recording = recording if model is None else of_robot(recording, model)
        yield from recording.notes
        motion = motion_of(recording)
        yield from motion.notes
        if model is not None:
            yield from diagnose(model, motion).doubts
    except RneaControlError as error:
        yield str(error)
