"""`rnea_identify record`: sends a trajectory and writes the joint states, or only listens."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rclpy.exceptions import NameValidationException
from rclpy.executors import SingleThreadedExecutor
from rich.console import Console
from rich.status import Status

from rnea_control.commands.identify.motion_sender import MotionSender, read_trajectory
from rnea_control.commands.identify.recorder import Recorder
from rnea_control.commands.message_recorder import listening_node
from rnea_control.commands.options import add_controller_options, positive
from rnea_control.exceptions import RecordingError, RneaControlError, RobotModelError
from rnea_control.identification.diagnosis import diagnose
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording, check_measured, of_robot
from rnea_control.identification.recording_files import refuse_existing
from rnea_control.model import RobotModel
from rnea_control.parameters.settings import quietly
from rnea_control.ros.process import ros_process

NODE = "rnea_identify"
# Before and after the motion, [s].
MARGIN = 1.0
# Between two looks at what came, [s].
LOOK = 0.1
# While there are few states, a joint that has gone no further than this may be at rest, [rad] or
# [m].
MOVED = 0.05
LOWEST_RATE = 100.0  # [Hz]
# The recording is judged when it is so long, and whenever it is twice as long, [s].
FIRST_JUDGEMENT = 1.0
# Without joint states for so long it is said; a motion waits so long for its controller, [s].
SILENCE, PATIENCE = 5.0, 20.0
# How long a canceled motion may take to end, [s].
LONGEST_END = 3.0
INTERRUPTED = "interrupted"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    # fmt: off
    add("trajectory", nargs="?", type=Path, metavar="TRAJECTORY.yaml",
        help="a JointTrajectory, as `rnea_identify plan` writes it, to be followed by the "
        "controller; without one nothing is sent")
    add("--output", required=True, type=Path, metavar="NAME",
        help="folder for rosbag2 (MCAP), or a file that ends in .npz; must not exist")
    add("--seconds", type=positive,
        help="without a trajectory: how long to listen; until Ctrl-C by default")
    add_controller_options(parser)
    add("--commands", default="effort_controller/commands", metavar="TOPIC",
        help="topic of the effort commands; effort_controller/commands by default")
    add("--joints", nargs="+", default=[], metavar="JOINT",
        help="joints to look at, and columns of .npz; those of the trajectory, or of "
        "joint_states by default")
    # fmt: on


def run(options: argparse.Namespace) -> int:
    """Records, writes, and returns the exit status: 0 if all is well, 1 if the motion failed, was
    interrupted, or nothing came. What was recorded is written in any case.

    Raises:
        RneaControlError: a wrong output or trajectory, before anything is sent.
    """
    output: Path = options.output
    refuse_existing(output)
    trajectory = None if options.trajectory is None else read_trajectory(options.trajectory)
    if trajectory is not None and options.seconds is not None:
        raise RecordingError(
            "--seconds is for listening without a trajectory; with one, its end ends the recording"
        )
    joints = list(dict.fromkeys(options.joints)) or (trajectory.joint_names if trajectory else [])
    console = Console(markup=False, highlight=False, soft_wrap=True)
    with ros_process([NODE, *options.ros_arguments]) as running:
        sender = None
        try:
            node = listening_node(NODE, options.namespace)
            recorder = Recorder(node, options.commands)
            if trajectory is not None:
                sender = MotionSender(node, options.node, trajectory)
        except NameValidationException as error:
            raise RecordingError(f"--namespace, --node or --commands: {error}") from error
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        try:
            with console.status("waiting") as status:
                session = _Session(recorder, sender, executor, joints, status, running)
                failure = session.listen(options.seconds) if sender is None else session.move()
                session.conclude()
            if failure:
                console.print(f"not as planned: {failure}")
        finally:
            recorder.stop()
            count = len(recorder.states.messages)
            words = f"nothing came on {recorder.states.topic}: {output} is not written"
            if count:
                recorder.write(output, joints)
                words = f"{count} joint states in {output}"
            console.print(words)
            executor.shutdown()
            node.destroy_node()
    return int(bool(failure) or not count)


class _Session:
    """From the first joint state to the last one, with a motion in between; `running` says whether
    to go on, until so many signals came."""

    def __init__(
        self,
        recorder: Recorder,
        sender: MotionSender | None,
        executor: SingleThreadedExecutor,
        joints: Sequence[str],
        status: Status,
        running: Callable[..., bool],
    ) -> None:
        self._recorder, self._sender = recorder, sender
        self._executor, self._joints = executor, joints
        self._status, self._running = status, running
        self._started = self._heard = time.monotonic()
        self._first: float | None = None  # when the first state came
        self._states = 0  # that were seen
        self._judge_at = FIRST_JUDGEMENT
        self._said: set[str] = set()

    def listen(self, seconds: float | None) -> str:
        """Listens for so long, or until a signal; returns why it ended early, or nothing."""
        while self._running() and (seconds is None or self._elapsed < seconds):
            self._step("listening")
            if seconds is not None and time.monotonic() - self._started > seconds + SILENCE + 1.0:
                break
        return INTERRUPTED if seconds is not None and not self._running() else ""

    def move(self) -> str:
        """Has the trajectory followed; returns why that failed, or nothing."""
        assert self._sender is not None
        sender = self._sender
        while self._running() and not (sender.is_ready and self._elapsed >= MARGIN):
            self._step("waiting" if self._first is None else "before the motion")
            if time.monotonic() - self._started > PATIENCE:
                if self._first is None:
                    return f"no joint states on {self._recorder.states.topic}; nothing was sent"
                return f"no controller on {sender.sought}; is it running and active?"
        if not self._running():
            return f"{INTERRUPTED} before the trajectory was sent"
        sender.start(self._recorder.newest_stamp())
        words = f"sent {sender.duration:.1f} s of trajectory by {sender.way}"
        self._status.console.print(words)
        while self._running() and not sender.ended:
            self._step("moving")
            sender.check(self._recorder.newest_stamp())
        if not sender.ended:
            self._warn(". ".join(filter(None, (INTERRUPTED, sender.stop()))))
            self._step_until(lambda: sender.ended, LONGEST_END)
            sender.end(INTERRUPTED)
        self._step_until(lambda: False, MARGIN)
        return sender.failure

    def conclude(self) -> None:
        """Ends the recording, and says what is wrong with it."""
        self._recorder.stop()
        if self._recorder.states.messages:
            self._judge(faults)

    @property
    def _elapsed(self) -> float:
        """Since the first joint state, [s]."""
        return 0.0 if self._first is None else time.monotonic() - self._first

    def _step_until(self, condition: Callable[[], bool], seconds: float) -> None:
        """Until it holds, so much time has passed, or a second signal comes."""
        deadline = time.monotonic() + seconds
        while self._running(2) and not condition() and time.monotonic() < deadline:
            self._step("after the motion")

    def _step(self, phase: str) -> None:
        deadline = time.monotonic() + LOOK
        while (now := time.monotonic()) < deadline:
            self._executor.spin_once(timeout_sec=deadline - now)
        self._recorder.follow_commands()
        while self._sender is not None and self._sender.words:
            self._warn(self._sender.words.pop(0))
        states = len(self._recorder.states.messages)
        if states > self._states:
            self._states, self._heard = states, now
            self._first = now if self._first is None else self._first
        elif now - self._heard > SILENCE:
            self._heard = math.inf  # until one comes
            topic, remedy = self._recorder.states.topic, self._recorder.where_else()
            self._warn(f"no joint states on {topic} for {SILENCE:.0f} s; {remedy}")
        if self._elapsed >= self._judge_at:
            self._judge_at *= 2.0
            self._judge(early_faults)
        rate = states / self._elapsed if self._elapsed else 0.0
        self._status.update(f"{phase}: {self._elapsed:.1f} s, {states} joint states, {rate:.0f} Hz")

    def _judge(self, check: Callable[[Recording], Iterator[str]]) -> None:
        """Says what is wrong, and each thing once."""
        try:
            found = list(check(self._recorder.recording(self._joints)))
        except RecordingError as error:
            found = [str(error)]
        for text in found:
            if text not in self._said:
                self._said.add(text)
                self._warn(text)

    def _warn(self, text: str) -> None:
        self._status.console.print(f"warning: {text}", style="yellow")


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
        if model is None:
            check_measured(recording)
        else:
            recording = of_robot(recording, model)
        yield from recording.notes
        motion = motion_of(recording)
        yield from motion.notes
        if model is not None:
            yield from diagnose(model, motion).doubts
    except RneaControlError as error:
        yield str(error)
