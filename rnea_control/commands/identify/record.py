"""`rnea_identify record`: sends a trajectory and writes the joint states, or only records."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rclpy.exceptions import NameValidationException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rich.console import Console
from rich.status import Status

from rnea_control.client.recorder import Recorder
from rnea_control.commands.identify.motion_sender import MotionSender, read_trajectory
from rnea_control.commands.options import add_controller_options, positive
from rnea_control.exceptions import RecordingError, RneaControlError, RobotModelError
from rnea_control.identification.diagnosis import diagnose
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording, check_measured, of_robot
from rnea_control.identification.recording_files import refuse_existing
from rnea_control.model import RobotModel
from rnea_control.parameters.settings import quietly
from rnea_control.ros.conventions import QUIET
from rnea_control.ros.process import ros_process

NODE = "rnea_identify"
MARGIN = 1.0  # recorded time before and after the motion [s]
LOOK = 0.1  # period of the checks during the recording [s]
MOVED = 0.05  # range within which a joint may be at rest while there are few states [rad] or [m]
LOWEST_RATE = 100.0  # lowest rate of joint states for accelerations [Hz]
# The recording is checked at this length, and whenever the length has doubled [s].
FIRST_JUDGEMENT = 1.0
SILENCE = 5.0  # time without joint states after which a warning is printed [s]
PATIENCE = 20.0  # time limit for the discovery of the controller [s]
LONGEST_END = 3.0  # time limit for the end of a canceled motion [s]
INTERRUPTED = "interrupted"
Condition = Callable[[], bool]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    add = parser.add_argument
    # fmt: off
    way = parser.add_mutually_exclusive_group()
    way.add_argument("trajectory", nargs="?", type=Path, metavar="TRAJECTORY.yaml",
        help="JointTrajectory, as `rnea_identify plan` writes it, to send to the controller; by "
        "default nothing is sent")
    way.add_argument("--seconds", type=positive, default=math.inf,
        help="without a trajectory: time of the recording [s]; until Ctrl-C by default")
    add("--output", required=True, type=Path, metavar="NAME",
        help="new folder for rosbag2 (MCAP), or new file that ends in .npz")
    add_controller_options(parser)
    add("--commands", default="effort_controller/commands", metavar="TOPIC",
        help="topic of the effort commands; effort_controller/commands by default")
    add("--joints", nargs="+", default=[], metavar="JOINT",
        help="joints to check, and columns of .npz; by default those of the trajectory, else of "
        "joint_states")
    # fmt: on


def run(options: argparse.Namespace) -> int:
    """Records, writes, and returns the exit status: 0 for success, 1 if the motion failed or was
    interrupted, or if no joint state was received. The recording is written in any case.

    Raises:
        RneaControlError: a wrong output or trajectory; nothing was sent.
    """
    output: Path = options.output
    refuse_existing(output)
    trajectory = None if options.trajectory is None else read_trajectory(options.trajectory)
    joints = list(dict.fromkeys(options.joints)) or (trajectory.joint_names if trajectory else [])
    console = Console(markup=False, highlight=False, soft_wrap=True)

    def warn(text: str) -> None:
        console.print(f"warning: {text}", style="yellow")

    with ros_process([NODE, *options.ros_arguments]) as running:
        sender = None
        try:
            node = Node(NODE, namespace=options.namespace, **QUIET)
            recorder = Recorder(node, options.commands)
            if trajectory is not None:
                sender = MotionSender(node, options.node, trajectory, recorder.now, warn)
        except NameValidationException as error:
            raise RecordingError(f"--namespace, --node or --commands: {error}") from error
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        try:
            with console.status("waiting") as status:
                session = _Session(recorder, executor, joints, status, running, warn)
                failure = session.move(sender) if sender else session.listen(options.seconds)
                recorder.stop()
                if recorder.states.messages:
                    session.judge(faults)
            if failure:
                console.print(f"the motion failed: {failure}")
        finally:
            recorder.stop()
            count = len(recorder.states.messages)
            words = f"no message on {recorder.states.topic}: {output} is not written"
            if count:
                recorder.write(output, joints)
                words = f"{count} joint states in {output}"
            console.print(words)
            executor.shutdown()
            node.destroy_node()
    return int(bool(failure) or not count)


@dataclass
class _Session:
    """A recording from the first joint state to the last, with a motion in between."""

    recorder: Recorder
    executor: SingleThreadedExecutor
    joints: Sequence[str]
    status: Status
    running: Callable[..., bool]  # False after the given number of signals, 1 by default
    warn: Callable[[str], None]
    first: float = math.inf  # steady time of the first state [s]
    latest: float = field(default_factory=time.monotonic)  # steady time of the newest state [s]
    states: int = 0  # number of states received
    judge_at: float = FIRST_JUDGEMENT  # length of the recording at the next check [s]
    printed: set[str] = field(default_factory=set)  # warnings printed

    def listen(self, seconds: float) -> str:
        """Records for `seconds`, or until a signal; returns why it ended early, else an empty
        string."""
        longest = seconds + SILENCE + 1.0
        self._go_on("recording", longest, lambda: self._elapsed >= seconds)
        return INTERRUPTED if math.isfinite(seconds) and not self.running() else ""

    def move(self, sender: MotionSender) -> str:
        """Sends the trajectory and records its motion; returns why it failed, else an empty
        string."""
        self._go_on("waiting", PATIENCE, lambda: sender.is_ready and self._elapsed >= MARGIN)
        if not self.running():
            return f"{INTERRUPTED} before the trajectory was sent"
        if not self.states:
            return f"no joint states on {self.recorder.states.topic}; the trajectory was not sent"
        if not sender.is_ready:
            return f"no controller on {sender.sought}; is it running and active?"
        sender.start()
        self.status.console.print(f"sent {sender.duration:.1f} s of trajectory by {sender.way}")
        self._go_on("moving", math.inf, sender.has_ended)
        if not sender.ended:
            self.warn(". ".join(filter(None, (INTERRUPTED, sender.stop()))))
            self._go_on("stopping", LONGEST_END, lambda: sender.ended, signals=2)
            sender.end(INTERRUPTED)
        self._go_on("after the motion", MARGIN, lambda: False, signals=2)
        return sender.failure

    @property
    def _elapsed(self) -> float:
        """Time since the first joint state [s]."""
        return max(time.monotonic() - self.first, 0.0)

    def _go_on(self, phase: str, seconds: float, is_over: Condition, signals: int = 1) -> None:
        """Records until `is_over`, for at most `seconds`, or until `signals` signals were
        received."""
        deadline = time.monotonic() + seconds
        while self.running(signals) and not is_over() and time.monotonic() < deadline:
            self._step(phase)

    def _step(self, phase: str) -> None:
        deadline = time.monotonic() + LOOK
        while (now := time.monotonic()) < deadline:
            self.executor.spin_once(timeout_sec=deadline - now)
        self.recorder.follow_commands()
        states = len(self.recorder.states.messages)
        if states > self.states:
            self.states, self.latest = states, now
            self.first = min(self.first, now)
        elif now - self.latest > SILENCE:
            self.latest = math.inf  # no second warning before the next state
            topic, remedy = self.recorder.states.topic, self.recorder.where_else()
            self.warn(f"no joint states on {topic} for {SILENCE:.0f} s; {remedy}")
        if self._elapsed >= self.judge_at:
            self.judge_at *= 2.0
            self.judge(early_faults)
        rate = states / self._elapsed if self._elapsed else 0.0
        self.status.update(f"{phase}: {self._elapsed:.1f} s, {states} joint states, {rate:.0f} Hz")

    def judge(self, check: Callable[[Recording], Iterator[str]]) -> None:
        """Prints the faults of the recording, each once."""
        try:
            found = list(check(self.recorder.recording(self.joints)))
        except RecordingError as error:
            found = [str(error)]
        for text in found:
            if text not in self.printed:
                self.printed.add(text)
                self.warn(text)


def early_faults(recording: Recording) -> Iterator[str]:
    """Faults that a longer recording does not cure, a sentence each."""
    try:
        check_measured(recording, MOVED)
    except RneaControlError as error:
        yield str(error)
    steps = np.diff(recording.time)
    rate = 1.0 / np.median(steps[steps > 0.0]) if (steps > 0.0).any() else np.inf
    if rate < 0.99 * LOWEST_RATE:
        yield (
            f"the rate of joint states is {rate:.0f} Hz; accelerations need at least "
            f"{LOWEST_RATE:.0f} Hz. Raise update_rate of the controller manager"
        )


def faults(recording: Recording) -> Iterator[str]:
    """Complaints of `rnea_identify fit` about a recording, a sentence each: parts that it would
    leave out, and contradictions to the recorded robot_description if there is one."""
    yield from early_faults(recording)
    model = None
    try:
        if recording.robot_description:
            model = quietly(
                RobotModel.from_urdf_string, recording.robot_description, recording.joints
            )
    except RobotModelError as error:
        yield f"the recorded robot_description cannot be used; give `fit` a --urdf: {error}"
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
