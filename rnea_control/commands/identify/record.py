"""`rnea_identify record`: sends a trajectory and writes the joint states, or only listens."""

from __future__ import annotations

import argparse
from pathlib import Path

from rclpy.exceptions import NameValidationException
from rclpy.executors import SingleThreadedExecutor
from rich.console import Console

from rnea_control.commands.identify.motion_sender import MotionSender, read_trajectory
from rnea_control.commands.identify.recorder import Recorder
from rnea_control.commands.identify.recording_session import RecordingSession
from rnea_control.commands.message_recorder import listening_node
from rnea_control.commands.options import add_controller_options, positive
from rnea_control.exceptions import RecordingError
from rnea_control.identification.recording_files import refuse_existing
from rnea_control.ros.process import ros_process

NODE = "rnea_identify"


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
    joints = options.joints or (trajectory.joint_names if trajectory else [])
    console = Console(markup=False, highlight=False)
    with ros_process([NODE, *getattr(options, "ros_arguments", [])]) as running:
        sender = None
        try:
            node = listening_node(NODE, options.namespace)
            recorder = Recorder(node, options.commands)
            if trajectory is not None:
                sender = MotionSender(node, options.node, trajectory, recorder.newest_stamp)
        except NameValidationException as error:
            raise RecordingError(f"--namespace, --node or --commands: {error}") from error
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        failure = "it failed"
        try:
            with console.status("waiting") as status:
                session = RecordingSession(recorder, executor, status, joints, running)
                listens = sender is None
                failure = session.listen(options.seconds) if listens else session.move(sender)
                session.conclude()
            if failure:
                console.print(f"not as planned: {failure}", soft_wrap=True)
        finally:
            recorder.stop()
            count = len(recorder.states.messages)
            words = f"nothing came on {recorder.states.topic}: {output} is not written"
            if count:
                recorder.write(output, joints)
                words = f"{count} joint states in {output}"
            console.print(words, soft_wrap=True)
            executor.shutdown()
            node.destroy_node()
    return int(bool(failure) or not count)
