"""The options of `fit` and `check` that say what was recorded, and the motions that they name."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np
from rich.console import Console

from rnea_control.commands.identify.robot import load_robot
from rnea_control.exceptions import RecordingError
from rnea_control.identification.identify import check_joints
from rnea_control.identification.motion import Motion, motion_of
from rnea_control.identification.recording_checks import check_effort, check_positions, of_robot
from rnea_control.identification.recording_files import read_recording
from rnea_control.model import RobotModel
from rnea_control.model.urdf_text import read_urdf_file

# A delay that can be given, [s].
LONGEST = 1.0


def add_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `motions_of` and `described_robot`."""
    group = parser.add_argument_group("recordings")
    group.add_argument(
        "recordings",
        nargs="+",
        metavar="RECORDING",
        help="rosbag2 folder, .mcap, .db3, .npz or .csv with positions and efforts",
    )
    group.add_argument(
        "--urdf",
        metavar="FILE.urdf",
        help="the robot; by default the robot_description that was recorded",
    )
    group.add_argument("--topic", help="of the joint states; found by the joints by default")
    group.add_argument(
        "--cutoff",
        type=positive,
        metavar="HZ",
        help="cut-off of the zero-phase filter of the positions; by the motion's own frequencies "
        "by default",
    )
    group.add_argument(
        "--delay",
        type=delay,
        metavar="SECONDS",
        help="by which the efforts are later than the positions; found from the data by default",
    )


def described_robot(options: argparse.Namespace) -> tuple[bytes, RobotModel]:
    """The URDF that the options or a recording give, and the robot that it describes.

    Raises:
        RecordingError: there is none.
        RobotModelError, ParameterError: as `load_robot`.
    """
    if options.urdf is not None:
        return read_urdf_file(options.urdf), load_robot(options, options.urdf)
    for path in options.recordings:
        text = read_recording(path, topic=options.topic).robot_description
        if text:
            urdf = text.encode()
            return urdf, load_robot(options, urdf)
    raise RecordingError(
        f"{options.recordings[0]}: no robot_description was recorded; name the robot's URDF by "
        "the option --urdf"
    )


def motions_of(
    options: argparse.Namespace, model: RobotModel, paths: Sequence[str], console: Console
) -> list[Motion]:
    """The motions of some recordings, cleaned, filtered and differentiated; says what they are.

    Raises:
        RecordingError: one cannot be read, lacks joints, efforts or a second without gaps, or
            cannot be of this robot.
        IdentificationError: joints of several degrees of freedom.
    """
    check_joints(model)
    motions = []
    for path in paths:
        recording = read_recording(path, model.joint_names, options.topic)
        check_positions(recording)
        check_effort(recording)
        recording = of_robot(recording, model)
        for note in recording.notes:
            console.print(f"note: {note}", markup=False, highlight=False)
        motion = motion_of(recording, options.cutoff)
        motions.append(motion)
        console.print(
            f"{path}: {len(motion.time)} states, {motion.seconds:.1f} s at "
            f"{1.0 / motion.period:.0f} Hz; positions filtered at {motion.cutoff:.1f} Hz",
            markup=False,
            highlight=False,
        )
    return motions


def check_distinct(motions: Sequence[Motion]) -> None:
    """Raises RecordingError if two motions are of the same measurement, which would count twice or
    judge itself."""
    for k, one in enumerate(motions):
        for other in motions[:k]:
            if np.array_equal(one.effort, other.effort):
                raise RecordingError(
                    f"{one.source} has the same efforts as {other.source}; give each recording "
                    "once, to fit, to --hold-out or to --without"
                )


def delay(text: str) -> float:
    """A time that efforts may be late by, for argparse."""
    value = float(text)
    if not abs(value) <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text}; it must be at most {LONGEST:g} s")
    return value


def positive(text: str) -> float:
    """A number above 0, for argparse."""
    value = float(text)
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text}; it must be positive and finite")
    return value
