"""Logs what happened to streams of targets, and to what is set while a pose is followed, once a
second: messages that were not taken, and the end of a stream."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from rnea_control.control import pose_intake, pose_settings_intake, stream_intake
from rnea_control.control.stream_intake import StreamIntake
from rnea_control.exceptions import quoted
from rnea_control.loop import other_inputs
from rnea_control.messages import feedback_control, joint_targets, tip_targets
from rnea_control.model.robot_model import units
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.interfaces import INTERFACES, LoopInput

COUNTS = "taken", "ignored", "foreign"  # counts of an intake that are logged
REPEAT = 10.0  # time after which the same thing is logged again [s]
# Topics by their kinds.
TOPICS = {row.kind: row.name for row in INTERFACES if isinstance(row, LoopInput)}
REASONS = {
    joint_targets.WRONG_LENGTH: "the number of values differs from the number of joints",
    joint_targets.UNKNOWN_JOINT: "it names a joint that is not in `joints`, or one twice",
    joint_targets.NOT_FINITE: "a value is not finite",
    stream_intake.BACKWARD: "its stamp is before that of the message before; if the clock of the "
    "publisher was set back, they count again once the arm rests",
    tip_targets.NO_ORIENTATION: "the length of its quaternion is not 1",
    pose_settings_intake.NO_STIFFNESS: "a stiffness is a symmetric matrix without a negative "
    "eigenvalue, or its diagonal",
    joint_targets.NO_TARGET: "it has no position or velocity",
    feedback_control.TOO_LARGE: "a value is beyond 1e12",
}


def publisher_name(loop: ControlLoop, kind: int, low: int, high: int) -> str:
    """Name of the node that publishes a stream; empty if it is not known."""
    gid = np.array([low, high], dtype=np.int64).tobytes()
    known: Mapping[bytes, str] = loop.arm_loop.heard.publishers_of(TOPICS[kind]) or {}
    return known.get(gid, "")


class _Watched:
    """Compares an intake with its state at the last look.

    Args:
        loop: control loop of the intake.
        intake: state of the intake.
    """

    def __init__(self, loop: ControlLoop, intake: StreamIntake) -> None:
        self.intake, self._loop = intake, loop
        self._logged = {count: 0 for count in COUNTS}
        self._gid, self._name = (0, 0), ""  # publisher of the stream; it may end before its report

    def note_publisher(self) -> None:
        """Notes the name of the publisher while it is there."""
        intake = self.intake
        gid = intake.gid_low, intake.gid_high
        if intake.known and (gid != self._gid or not self._name):
            self._gid, self._name = gid, publisher_name(self._loop, intake.kind, *gid)

    @property
    def name(self) -> str:
        """Name of the publisher."""
        return self._name or "a node"

    def new(self, count: str) -> int:
        """Increase of a count, of COUNTS, since it was logged."""
        total: int = getattr(self.intake, count)
        return total - self._logged[count]

    def note_logged(self, count: str) -> None:
        """Notes that this count is logged."""
        self._logged[count] = getattr(self.intake, count)


class StreamWatch:
    """Reports what the intakes have refused.

    Args:
        loop: control loop that follows the streams.

    Attributes:
        refusal: sentence about the messages that were refused last; empty without any.
    """

    def __init__(self, loop: ControlLoop) -> None:
        self._loop, others = loop, loop.arm_loop.others
        self.refusal = ""
        self._stream = _Watched(loop, others.stream)
        beside = others.posture, others.stiffness, others.wrench
        self._all = (self._stream, *(_Watched(loop, intake) for intake in beside))
        self._logged: dict[object, float] = {}  # time of the last line about each thing [s]

    @property
    def intake(self) -> StreamIntake:
        """State of the intake of streams."""
        return self._stream.intake

    @property
    def foreign(self) -> int:
        """Number of messages of publishers that are not followed, on all topics."""
        return sum(watched.intake.foreign for watched in self._all)

    def note_publisher(self) -> None:
        """Notes the name of the publisher while it is there."""
        for watched in self._all:
            watched.note_publisher()

    def look(self) -> None:
        """Logs what is new."""
        self.note_publisher()
        for watched in self._all:
            self._report_ignored(watched)
            self._report_foreign(watched)
        stream, intake = self._stream, self.intake
        if not self._loop.controller.streams and stream.new("taken"):
            stream.note_logged("taken")
            age = self._loop.controller.time - intake.heard_at
            self._loop.arm_loop.log.logger.info(
                f"{TOPICS[intake.kind]}: the arm no longer follows the stream of {stream.name}, "
                f"whose last message came {age:.3g} s ago"
            )

    def _report_ignored(self, watched: _Watched) -> None:
        intake = watched.intake
        about = "ignored", intake.ignored_kind, intake.gid_low, intake.gid_high, intake.result
        if not (count := watched.new("ignored")):
            return
        sender = f" of {watched.name}" if intake.known else ""
        self.refusal = (
            f"{TOPICS[intake.ignored_kind]}: {count} message(s){sender} are ignored, the "
            f"last one as {self._reason(intake)}"
        )
        self._log("ignored", watched, about)

    def _report_foreign(self, watched: _Watched) -> None:
        loop, intake = self._loop, watched.intake
        gid = intake.foreign_low, intake.foreign_high
        if not (count := watched.new("foreign")):
            return
        other = publisher_name(loop, intake.foreign_kind, *gid) or "another node"
        self.refusal = (
            f"{TOPICS[intake.foreign_kind]}: {count} message(s) of {other} are "
            f"ignored, as the arm follows {TOPICS[intake.kind]} of {watched.name}; stop one of them"
        )
        self._log("foreign", watched, ("foreign", *gid))

    def _log(self, count: str, watched: _Watched, about: object) -> None:
        """Logs the refusal, unless the same was logged lately."""
        if self._is_due(about):
            watched.note_logged(count)
            self._loop.arm_loop.log.logger.warning(self.refusal)

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
            place = "measured" if intake.ignored_kind == other_inputs.CONTROL else "desired"
            return (
                f"{model.joint_names[j]} is {intake.value:.3g} {unit} from its {place} position, "
                f"more than stream.max_distance ({limit:.3g} {unit}); begin where the arm is"
            )
        if intake.result == joint_targets.UNREADABLE:
            longest = len(self._loop.arm_loop.others.arrays.message)
            return f"its bytes are no message of this type, or are longer than {longest} bytes"
        if intake.result == pose_intake.SHAKES:
            return self._loop.supervisor.tip_objection
        if intake.result == tip_targets.UNKNOWN_FRAME:
            frame = bytes(self._loop.arm_loop.others.arrays.frame).partition(b"\0")[0]
            model = self._loop.controller.model
            return (
                f"its frame_id {quoted(frame.decode(errors='replace'))} is not a link of the "
                f"robot; use its root link {quoted(model.root_link)}, the tip, or another link"
            )
        if intake.result == pose_settings_intake.TOO_STIFF:
            return (
                "the rate of joint_states and dead_time do not allow this stiffness, but "
                f"{intake.value:.2g} times this stiffness at most"
            )
        if intake.result == stream_intake.NOT_NOW:
            supervisor = self._loop.supervisor
            if self._loop.controller.arm.takes_streams and intake is not self.intake:
                return (
                    "cartesian_impedance is not in force: it is while target_pose is followed, or "
                    "by control_law"
                )
            if self._loop.controller.arm.takes_streams:
                return (
                    "a stream begins only after a pause of the targets for stream.target_timeout, "
                    "or after ~/resume"
                )
            return f"the controller is {supervisor.mode.value} ({supervisor.reason})"
        return REASONS.get(intake.result, "")
