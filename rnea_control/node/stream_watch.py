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

TIMEOUT = "stream.target_timeout"

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


class StreamWatch:
    """Compares the intake of streams with its state at the last look.

    Args:
        loop: control loop that follows the streams.
    """

    def __init__(self, loop: ControlLoop) -> None:
        self._loop = loop
        self._taken = 0  # targets of streams whose end was logged
        self._news = self._foreign = 0
        self._refusal = ""  # the one that was logged last, while it lasts
        self._gid, self._name = (0, 0), ""  # publisher of the stream; it may end before its report

    @property
    def intake(self) -> StreamIntake:
        return self._loop.arm_loop.others.stream

    def _name_of(self, kind: int, low: int, high: int) -> str:
        """Name of the node with this publisher of a stream; empty if it is not known."""
        gid = np.array([low, high], dtype=np.int64).tobytes()
        known: Mapping[bytes, str] = self._loop.arm_loop.heard.publishers_of(TOPICS[kind]) or {}
        return known.get(gid, "")

    def note_publisher(self) -> None:
        """Notes the name of the sender while it is there."""
        intake = self.intake
        if not intake.known:
            return
        gid = intake.gid_low, intake.gid_high
        if gid != self._gid or (self._loop.controller.streams and not self._name):
            self._gid, self._name = gid, self._name_of(intake.kind, *gid)

    def look(self) -> None:
        """Logs what is new."""
        loop, intake = self._loop, self.intake
        if not intake.known:
            return
        self.note_publisher()
        log, topic, name = loop.arm_loop.log.logger, TOPICS[intake.kind], self._name or "a node"
        refusal = self._reason(intake) if intake.news != self._news else ""
        if refusal not in ("", self._refusal):
            log.warning(f"{topic}: a target of {name} is ignored: {refusal}")
        self._news, self._refusal = intake.news, refusal
        if intake.foreign != self._foreign:
            kind, gid = intake.foreign_kind, (intake.foreign_low, intake.foreign_high)
            other = self._name_of(kind, *gid) or "another node"
            log.warning(
                f"{TOPICS[kind]}: {intake.foreign - self._foreign} targets of {other} are ignored, "
                f"as the arm follows {name}; stop one of them"
            )
            self._foreign = intake.foreign
        age = loop.controller.time - intake.heard_at
        ended = not loop.controller.streams and age > loop.controller.settings[TIMEOUT]
        if ended and intake.taken != self._taken:
            log.info(f"{topic}: the stream of {name} ended {age:.3g} s ago")
            self._taken = intake.taken

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
            supervisor, arm = self._loop.supervisor, self._loop.controller.arm
            if arm.takes_streams and not arm.stream_waits:
                return ""  # that was before
            if arm.stream_waits:
                return "after a stop it waits for a pause of the targets, or for ~/resume"
            return f"the controller is {supervisor.mode.value} ({supervisor.reason})"
        return REASONS.get(intake.result, "")
