"""Whether a recording has what identification needs."""

from __future__ import annotations

import numpy as np

from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.recording import Recording


def check_effort(recording: Recording) -> None:
    """Raises RecordingError, which names the joints, where some have no measured effort at all."""
    missing = _without(recording, recording.effort)
    if missing:
        raise RecordingError(
            f"{recording.source}: {_all(missing, recording)} no effort: it is empty or NaN in all "
            f"{len(recording.time)} samples. Does the hardware export the effort state interface "
            "(ros2 control list_hardware_interfaces), and does joint_state_broadcaster publish it?"
        )


def check_positions(recording: Recording) -> None:
    """Raises RecordingError, which names the joints, where some have no position at all."""
    missing = _without(recording, recording.q)
    if missing:
        raise RecordingError(
            f"{recording.source}: {_all(missing, recording)} no position: it is empty or NaN in "
            f"all {len(recording.time)} samples. Record the topic that has positions and efforts"
        )


def _without(recording: Recording, values: np.ndarray) -> list[str]:
    has = np.isfinite(values).any(axis=0).tolist()
    return [joint for joint, one in zip(recording.joints, has, strict=True) if not one]


def _all(joints: list[str], recording: Recording) -> str:
    if len(joints) == len(recording.joints):
        return f"all joints ({listed(joints)}) have"
    return f"{listed(joints)} {'has' if len(joints) == 1 else 'have'}"
