"""Logs what happened to streams of targets, once a second: their end, and messages that were not
taken."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rnea_control.control import stream_intake
from rnea_control.control.stream_intake import StreamIntake
from rnea_control.loop import other_inputs
from rnea_control.messages import joint_targets
from rnea_control.model.robot_model import units
from rnea_control.node.control_loop import ControlLoop

# Topics by their kinds.
TOPICS = {
    other_inputs.TARGET_JOINT: "target_joint",
    other_inputs.POSITIONS: "~/commands",
    other_inputs.JOG: "~/delta_joint_cmds",
}
REASONS = {
    joint_targets.UNREADABLE: "its bytes are no message of this type, or are longer than "
    f"{other_inputs.LONGEST_MESSAGE} bytes",
    joint_targets.WRONG_LENGTH: "the number of values differs from the number of joints",
    joint_targets.UNKNOWN_JOINT: "it names a joint that is not in `joints`, or one twice",
    joint_targets.NOT_FINITE: "a value is not finite",
    stream_intake.BACKWARD: "its stamp is before that of the message before",
    joint_targets.NO_TARGET: "it has no position or velocity",
}


def publisher_name(topics: ControlLoop, kind: int, low: int, high: int) -> str:
    """Name of the node that publishes a stream, for the log."""
    gid = np.array([low, high], dtype=np.int64).tobytes()
    known: Mapping[bytes, str] = topics.arm_loop.heard.publishers_of(TOPICS[kind]) or {}
    return known.get(gid) or "a node"


class StreamWatch:
    """Compares the intake of streams with its state a second before.

    Args:
        loop: control loop that follows the streams.
    """

    def __init__(self, loop: ControlLoop) -> None:
        self._loop, self._streamed = loop, False
        self._news = self._foreign = 0

    @property
    def intake(self) -> StreamIntake:
        return self._loop.arm_loop.others.stream

    def look(self) -> None:
        """Logs what is new."""
        loop, intake = self._loop, self.intake
        if not intake.known:
            return
        log = loop.arm_loop.log.logger
        topic = TOPICS[intake.kind]
        if intake.news != self._news:
            if words := self._reason(intake):
                name = publisher_name(loop, intake.kind, intake.gid_low, intake.gid_high)
                log.warning(f"{topic}: a target of {name} is ignored: {words}")
            self._news = intake.news
        if intake.foreign != self._foreign:
            gid = intake.foreign_low, intake.foreign_high
            other = publisher_name(loop, intake.kind, *gid)
            name = publisher_name(loop, intake.kind, intake.gid_low, intake.gid_high)
            log.warning(
                f"{topic}: {intake.foreign - self._foreign} targets of {other} are ignored, as the "
                f"arm follows {name}; stop one of them"
            )
            self._foreign = intake.foreign
        streams = loop.controller.streams
        if self._streamed and not streams:
            name = publisher_name(loop, intake.kind, intake.gid_low, intake.gid_high)
            age = loop.controller.time - intake.heard_at
            log.info(f"{topic}: the stream of {name} ended {age:.3g} s ago")
        self._streamed = streams

    def _reason(self, intake: StreamIntake) -> str:
        """Why the last message was not taken, in words; empty if that needs none."""
        if intake.result == stream_intake.TOO_FAR:
            model, j = self._loop.controller.model, intake.joint
            distance = f"{intake.value:.3g} {units(model, j).position}"
            return (
                f"{model.joint_names[j]} is {distance} from its desired position, more than "
                "stream.max_distance"
            )
        if intake.result == stream_intake.NOT_NOW:
            supervisor = self._loop.supervisor
            if self._loop.controller.arm.stream_waits:
                return "after a stop it waits for a pause of the targets, or for ~/resume"
            return f"the controller is {supervisor.mode.value} ({supervisor.reason})"
        return REASONS.get(intake.result, "")
