"""Recordings from and to files: `read_recording`, `write_recording`.

| file | what it is |
| --- | --- |
| a folder, `.mcap`, `.db3` | rosbag2, as `ros2 bag record` and `rnea_identify record` write it |
| `.npz` | arrays of NumPy |
| `.csv` | a table, our own or PlotJuggler's |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.csv_files import read_csv, write_csv
from rnea_control.identification.npz_files import read_npz, write_npz
from rnea_control.identification.recording import Recording
from rnea_control.identification.rosbag_files import METADATA, STORAGES, read_rosbag
from rnea_control.identification.rosbag_writing import write_rosbag_of

WANTED = (
    f"a rosbag2 folder with {METADATA}, a {' or '.join(STORAGES)} file of rosbag2, a .npz or a "
    ".csv file"
)
_ROS1 = b"#ROSBAG"


def read_recording(
    path: str | Path, joints: Sequence[str] | None = None, topic: str | None = None
) -> Recording:
    """Reads a recording; its numbers are not checked: see `recording_checks`.

    Args:
        path: of a file or a folder.
        joints: the joints to read, in the order wanted for the columns; by default all of the
            messages that have the most efforts, in the messages' order.
        topic: of the joint states; by default the one that names `joints`, or without these the
            one with the most efforts.

    Raises:
        RecordingError: it is not there, not a recording, or has no such joints or topic.
    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f"{path} is not there; a recording must be {WANTED}")
    if path.is_dir() or path.suffix in STORAGES:
        return read_rosbag(path).recording(joints, topic)
    if path.name == METADATA:
        return read_recording(path.parent, joints, topic)
    if path.suffix == ".zstd":
        raise RecordingError(
            f"{path} is compressed: give the folder that it is in, with its {METADATA}"
        )
    if path.suffix == ".npz":
        return _of_joints(read_npz(path), joints)
    if path.suffix == ".csv":
        return _of_joints(read_csv(path, joints, topic), joints)
    if path.suffix == ".bag" or _begins_with(path, _ROS1):
        raise RecordingError(
            f"{path} is a recording of ROS 1. Convert it: "
            f"rosbags-convert --src {path} --dst {path.with_suffix('')}"
        )
    raise RecordingError(f"{path} is no recording that can be read; it must be {WANTED}")


def write_recording(path: str | Path, recording: Recording) -> None:
    """Writes a recording: `.npz` and `.csv` by the name, else a rosbag2 folder with MCAP storage.

    All numbers are written as they are; a rosbag2 folder has the times in whole nanoseconds, and a
    `.csv` file has no robot_description.

    Raises:
        RecordingError: something is there already, or it cannot be written.
    """
    path = Path(path)
    refuse_existing(path)
    if path.suffix == ".npz":
        write_npz(path, recording)
    elif path.suffix == ".csv":
        write_csv(path, recording)
    else:
        write_rosbag_of(path, recording)


def refuse_existing(path: Path) -> None:
    """Raises RecordingError where a recording cannot be written.

    It may be that something is there, that there is no folder for it, or that its name is that of
    a single file of rosbag2, which is always a folder.
    """
    if path.exists() or path.is_symlink():
        raise RecordingError(
            f"{path} exists already, and is not overwritten; remove it, or choose another name"
        )
    folder = path.absolute().parent
    if not folder.is_dir():
        raise RecordingError(
            f"{path} cannot be written: there is no folder {folder}; make it first"
        )
    if path.suffix in (*STORAGES, ".bag", ".zstd"):
        raise RecordingError(
            f"{path} would be a single file, and a rosbag2 recording is a folder; call it "
            f"{path.with_suffix('').name!r}, or let it end in .npz or .csv"
        )


def _of_joints(recording: Recording, joints: Sequence[str] | None) -> Recording:
    """The columns of some joints."""
    if joints is None:
        return recording
    missing = [joint for joint in joints if joint not in recording.joints]
    if missing or not joints:
        raise RecordingError(
            f"{recording.source} lacks the joints {listed(missing)} of {listed(joints)}; it has "
            f"{listed(recording.joints)}. Give the joints as it names them, or the recording of "
            "this robot"
        )
    columns = [recording.joints.index(joint) for joint in joints]
    return replace(
        recording,
        joints=tuple(joints),
        q=recording.q[:, columns],
        v=recording.v[:, columns],
        effort=recording.effort[:, columns],
        commanded=recording.commanded[:, columns],
    )


def _begins_with(path: Path, words: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(words)) == words
    except OSError:
        return False
