"""Logs what happened to streams of targets, once a second: their end, and messages that were not
taken."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from rnea_control.control import pose_intake, stream_intake
from rnea_control.control.stream_intake import StreamIntake
from rnea_control.exceptions import quoted
from rnea_control.loop import other_inputs
from rnea_control.messages import joint_targets, tip_targets
from rnea_control.model.robot_model import units
from rnea_control.node.control_loop import ControlLoop

REPEAT = 10.0  # time after which the same thing is logged again [s]
# Topics by their kinds.
TOPICS = {
    other_inputs.TARGET_JOINT: "target_joint",
    other_inputs.POSITIONS: "~/commands",
    other_inputs.JOG: "~/delta_joint_cmds",
    other_inputs.TARGET_POSE: "target_pose",
    other_inputs.TWIST: "~/delta_twist_cmds",
}
REASONS = {
    joint_targets.UNREADABLE: "its bytes are no message of this type, or are longer than "
    f"{other_inputs.LONGEST_MESSAGE} bytes",
    joint_targets.WRONG_LENGTH: "the number of values differs from the number of joints",
    joint_targets.UNKNOWN_JOINT: "it names a joint that is not in `joints`, or one twice",
    joint_targets.NOT_FINITE: "a value is not finite",
    stream_intake.BACKWARD: "its stamp is before that of the message before; if the clock of the "
    "publisher was set back, they count again once the arm rests",
    tip_targets.NO_ORIENTATION: "the length of its quaternion is not 1",
    joint_targets.NO_TARGET: "it has no position or velocity",
}


def publisher_name(loop: ControlLoop, kind: int, low: int, high: int) -> str:
    """Name of the node that publishes a stream; empty if it is not known."""
    gid = np.array([low, high], dtype=np.int64).tobytes()
    known: Mapping[bytes, str] = loop.arm_loop.heard.publishers_of(TOPICS[kind]) or {}
    return known.get(gid, "")


class StreamWatch:
    """Compares the intake of streams with its state a second before.

    Args:
        loop: control loop that follows the streams.
    """

    def __init__(self, loop: ControlLoop) -> None:
        self._loop = loop
        self._taken = self._ignored = self._foreign = 0  # counts of what was logged
        self._gid, self._name = (0, 0), ""  # publisher of the stream; it may end before its report
        self._logged: dict[object, float] = {}  # time of the last line about each thing [s]

    @property
    def intake(self) -> StreamIntake:
        """State of the intake of streams."""
        return self._loop.arm_loop.others.stream

    def note_publisher(self) -> None:
        """Notes the name of the publisher while it is there."""
        intake = self.intake
        gid = intake.gid_low, intake.gid_high
        if intake.known and (gid != self._gid or not self._name):
            self._gid, self._name = gid, publisher_name(self._loop, intake.kind, *gid)

    def look(self) -> None:
        """Logs what is new."""
        loop, intake = self._loop, self.intake
        if not intake.known:
            return
        self.note_publisher()
        log, topic, name = loop.arm_loop.log.logger, TOPICS[intake.kind], self._name or "a node"
        about = "ignored", intake.kind, intake.gid_low, intake.gid_high, intake.result
        if intake.ignored != self._ignored and self._is_due(about):
            count, self._ignored = intake.ignored - self._ignored, intake.ignored
            log.warning(
                f"{topic}: {count} target(s) of {name} are ignored, the last one as "
                f"{self._reason(intake)}"
            )
        gid = intake.foreign_low, intake.foreign_high
        if intake.foreign != self._foreign and self._is_due(("foreign", *gid)):
            count, self._foreign = intake.foreign - self._foreign, intake.foreign
            other = publisher_name(loop, intake.foreign_kind, *gid) or "another node"
            log.warning(
                f"{TOPICS[intake.foreign_kind]}: {count} target(s) of {other} are ignored, as the "
                f"arm follows {topic} of {name}; stop one of them"
            )
        if not loop.controller.streams and intake.taken != self._taken:
            self._taken = intake.taken
            age = loop.controller.time - intake.heard_at
            log.info(
                f"{topic}: the arm no longer follows the stream of {name}, whose last message came "
                f"{age:.3g} s ago"
            )

    def _is_due(self, about: object) -> bool:
        """True if nothing was logged about this for `REPEAT`."""
        now = time.monotonic()
        if now - self._logged.get(about, -REPEAT) < REPEAT:
            return False
        self._logged = {each: at for each, at in self._logged.items() if now - at < REPEAT}
        self._logged[about] = now
        return True

    def _reason(self, intake: StreamIntake) -> str:
        """Why the last message was not taken, in words."""
        if intake.result == stream_intake.TOO_FAR and intake.joint < 0:
            is_position = intake.joint == pose_intake.FAR_POSITION
            unit = "m" if is_position else "rad"
            limits = self._loop.controller.arrays.settings[0].task_max_distance
            limit = limits[0 if is_position else 1]
            return (
                f"its {'position' if is_position else 'orientation'} is {intake.value:.3g} {unit} "
                f"from the desired pose, more than task.max_distance ({limit:.3g} {unit}); begin "
                "where the tip is"
            )
        if intake.result == stream_intake.TOO_FAR:
            model, j = self._loop.controller.model, intake.joint
            unit = units(model, j).position
            limit = self._loop.controller.arrays.settings[0].stream_max_distance[j]
            return (
                f"{model.joint_names[j]} is {intake.value:.3g} {unit} from its desired position, "
                f"more than stream.max_distance ({limit:.3g} {unit}); begin where the arm is"
            )
        if intake.result == pose_intake.SHAKES:
            return self._loop.supervisor.tip_objection
        if intake.result == tip_targets.UNKNOWN_FRAME:
            frame = bytes(self._loop.arm_loop.others.arrays.frame).partition(b"\0")[0]
            model = self._loop.controller.model
            return (
                f"its frame_id {quoted(frame.decode(errors='replace'))} is not a link of the "
                f"robot; use its root link {quoted(model.root_link)}, the tip, or another link"
            )
        if intake.result == stream_intake.NOT_NOW:
            supervisor = self._loop.supervisor
            if self._loop.controller.arm.takes_streams:
                return (
                    "a stream begins only after a pause of the targets for stream.target_timeout, "
                    "or after ~/resume"
                )
            return f"the controller is {supervisor.mode.value} ({supervisor.reason})"
        return REASONS.get(intake.result, "")
