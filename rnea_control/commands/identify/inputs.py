"""Shared parts of `plan`, `fit` and `check`: the robot from its URDF and its controller's settings,
recordings of its motions, and tables."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from rnea_control.commands.options import delay, parameters_in, positive
from rnea_control.exceptions import ParameterError, RecordingError
from rnea_control.identification.consistent_parameters import check_joints
from rnea_control.identification.motion import Motion, motion_of
from rnea_control.identification.recording import of_robot
from rnea_control.identification.recording_files import read_recording
from rnea_control.model import RobotModel
from rnea_control.model.urdf_text import read_urdf_file
from rnea_control.parameters.parameter import GivenParameters, expand
from rnea_control.parameters.settings import quietly, update_model
from rnea_control.parameters.table import LOCKED, LOCKED_POSITION, ROBOT


def add_robot_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `load_robot`."""
    add = parser.add_argument_group("robot").add_argument
    # fmt: off
    add("--joints", nargs="+", metavar="JOINT",
        help="the joints that move, in this order; by default those of --config, else all "
        "actuated joints. All other joints are locked")
    add("--config", metavar="FILE.yaml",
        help="parameters of rnea_controller, from which joints, locked positions, gravity, "
        "payload, friction and armature are read")
    add("--node", default="/rnea_controller",
        help="the node whose section of the --config is read; /rnea_controller by default")
    # fmt: on


def load_robot(options: argparse.Namespace, urdf: str | os.PathLike[str] | bytes) -> RobotModel:
    """The robot of a URDF; no warnings are issued.

    Args:
        options: options of `add_robot_arguments`; --joints overrides the joints of --config.
        urdf: name of a file, or the content of a file.

    Raises:
        RobotModelError: the URDF does not describe a robot with these joints.
        ParameterError: the --config cannot be read, has no section for the node, or has a value
            that is not allowed.
    """
    make = RobotModel.from_urdf_string if isinstance(urdf, bytes) else RobotModel.from_urdf_file
    joints = options.joints
    if options.config is None:
        return quietly(make, urdf, joints)
    node = f"/{options.node.lstrip('/')}"
    values = parameters_in(options.config, node)
    if not values:
        raise ParameterError(
            f"{options.config} has no parameters for {node}; give the file of rnea_controller, or "
            "the name of its node with --node"
        )
    if joints is None and "joints" in values:
        joints = GivenParameters(values, expand(ROBOT, ()))["joints"]
    moving = {f"{LOCKED}{name}" for name in joints or ()}
    locked = {
        name.removeprefix(LOCKED): LOCKED_POSITION.check(name, value)
        for name, value in values.items()
        if name.startswith(LOCKED) and name not in moving
    }
    model = quietly(make, urdf, joints, locked)
    update_model(GivenParameters(values, expand(ROBOT, model.joint_names)), model)
    return model


def add_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `motions_of` and `described_robot`."""
    add = parser.add_argument_group("recordings").add_argument
    # fmt: off
    add("recordings", nargs="+", metavar="RECORDING",
        help="rosbag2 folder, .mcap, .db3 or .npz with positions and efforts")
    add("--urdf", metavar="FILE.urdf",
        help="the robot; by default the recorded robot_description")
    add("--topic", help="topic of the joint states; by default the topic with these joints")
    add("--cutoff", type=positive, metavar="HZ",
        help="cut-off frequency of the zero-phase filter of the positions; by default from the "
        "frequencies of the motion")
    add("--delay", type=delay, metavar="SECONDS",
        help="delay of the efforts against the positions; estimated by default")
    # fmt: on


def described_robot(options: argparse.Namespace) -> tuple[bytes, RobotModel]:
    """The URDF of the options or of a recording, and the robot that it describes.

    Raises:
        RecordingError: neither the options nor a recording have a URDF.
        RobotModelError: the URDF does not describe a robot with these joints.
        ParameterError: the --config cannot be read, has no section for the node, or has a value
            that is not allowed.
    """
    urdf = options.urdf
    if urdf is None:
        recordings = (read_recording(path, topic=options.topic) for path in options.recordings)
        urdf = next(filter(None, (each.robot_description for each in recordings)), "").encode()
    if not urdf:
        raise RecordingError(
            f"{options.recordings[0]}: no robot_description was recorded; name the robot's URDF by "
            "the option --urdf"
        )
    model = load_robot(options, urdf)
    return urdf if isinstance(urdf, bytes) else read_urdf_file(urdf), model


def motions_of(
    options: argparse.Namespace, model: RobotModel, paths: Sequence[str], console: Console
) -> list[Motion]:
    """The motions of recordings, cleaned, filtered and differentiated. Prints a line for each.

    Raises:
        RecordingError: a recording cannot be read, lacks joints, efforts or a second without gaps,
            or cannot be of this robot.
        IdentificationError: the robot has joints of several degrees of freedom.
    """
    check_joints(model)
    motions = []
    for path in paths:
        recording = of_robot(read_recording(path, model.joint_names, options.topic), model)
        for note in recording.notes:
            console.print(f"note: {note}")
        motion = motion_of(recording, options.cutoff)
        motions.append(motion)
        console.print(
            f"{path}: {len(motion.time)} states, {motion.seconds:.1f} s at "
            f"{1.0 / motion.period:.0f} Hz; positions filtered at {motion.cutoff:.1f} Hz"
        )
    return motions


def check_distinct(motions: Sequence[Motion]) -> None:
    """Raises RecordingError if two motions are of the same measurement, which would count twice, or
    would be both fitted and held out."""
    for one, other in combinations(motions, 2):
        if np.array_equal(one.effort, other.effort):
            raise RecordingError(
                f"{other.source} has the same efforts as {one.source}; give each recording only "
                "once: for the fit, for --hold-out or for --without"
            )


def table_of(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table of names, numbers and, in columns without a heading, units or words."""
    table = Table(title=title, box=SIMPLE_HEAD)
    for k, heading in enumerate(headings):
        table.add_column(heading, justify="right" if k and heading else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table
