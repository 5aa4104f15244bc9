"""Desired positions of a recording, from the states that the controller has published."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import CdrError
from rnea_control.identification.recording import RESTART, Recording
from rnea_control.identification.recording_files import read_messages
from rnea_control.messages.cdr import CdrReader

KIND = "control_msgs/msg/JointTrajectoryControllerState"
STALE = 0.1  # time from the next message beyond which nothing is known [s]
WITHOUT = "there is no second arm, and no tracking error"
ABSENT = (
    f"The desired positions were not recorded: {WITHOUT}. Record ~/controller_state of the "
    "controller too"
)
RESTARTED = f"The stamps start again, so the desired positions have no time: {WITHOUT}"


class RecordedDesired:
    """Desired positions over time, of `~/controller_state`; joint_trajectory_controller has the
    same topic.

    Args:
        path: the recording.
        states: its joint states; the topic with the most messages that name all of their joints is
            read.
        start: stamp that is time 0 [s].

    Attributes:
        remark: why nothing is known, in words; empty if something is.
    """

    def __init__(self, path: Path, states: Recording, start: float) -> None:
        joints, found = states.joints, defaultdict[str, dict[float, list[float]]](dict)
        self.remark = RESTARTED if (np.diff(states.time) < -RESTART).any() else ""
        for message in () if self.remark else read_messages(path, KIND):
            try:
                stamp, desired = _decoded(message.data, message.topic)
            except CdrError:  # another version of the message
                continue
            if desired.keys() >= set(joints):
                found[message.topic][stamp - start] = [desired[joint] for joint in joints]
        rows = sorted(max(found.values(), key=len, default={}).items())
        self._times = np.array([time for time, _ in rows])
        self._positions = np.array([row for _, row in rows]).reshape(len(rows), len(joints))
        self.remark = self.remark or ("" if rows else ABSENT)

    def at(self, seconds: float) -> FloatArray:
        """Desired positions, shape (nv,), [rad] or [m]; NaN where they are not known."""
        times = self._times
        after = int(np.searchsorted(times, seconds))
        around = times[max(after - 1, 0) : after + 1]
        known = len(around) > 0 and np.abs(around - seconds).max() <= STALE
        if not known:
            return np.full(self._positions.shape[1], np.nan)
        return np.array([np.interp(seconds, times, column) for column in self._positions.T])


def _decoded(data: bytes, topic: str) -> tuple[float, dict[str, float]]:
    """Stamp [s] and desired positions by joint of a serialized message; raises CdrError for other
    bytes."""
    reader = CdrReader(data, topic)
    stamp = reader.integer("stamp", signed=True) + 1e-9 * reader.integer("stamp")
    reader.string("frame_id")
    names = reader.strings("joint_names")
    positions = reader.numbers(reader.skip_numbers("reference.positions"))
    return stamp, dict(zip(names, positions.tolist(), strict=False))
