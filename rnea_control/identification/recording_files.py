"""Recordings from and to files: `read_recording`, `write_recording`.

| file | what it is |
| --- | --- |
| a folder, `.mcap`, `.db3` | rosbag2, as `ros2 bag record` and `rnea_identify record` write it |
| `.npz` | arrays of NumPy |
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.recording import Recording
from rnea_control.identification.rosbag_files import (
    METADATA,
    STORAGES,
    read_rosbag,
    write_rosbag_of,
)

WANTED = (
    f"a rosbag2 folder with {METADATA}, a {' or '.join(STORAGES)} file of rosbag2, or a .npz file"
)
NPZ_NEEDED = ("time", "q", "effort", "joints")
NPZ_WANTED = (
    "it must have time (samples,), q, effort, optionally v and commanded (samples, joints), joints "
    "(names), and optionally robot_description (text)"
)
_ARRAYS = ("q", "v", "effort", "commanded")


def read_recording(
    path: str | Path, joints: Sequence[str] | None = None, topic: str | None = None
) -> Recording:
    """Reads a recording; its numbers are not checked: see `recording`.

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
        return _of_joints(_read_npz(path), joints)
    if path.suffix == ".bag" or _is_of_ros1(path):
        raise RecordingError(
            f"{path} is a recording of ROS 1. Convert it: "
            f"rosbags-convert --src {path} --dst {path.with_suffix('')}"
        )
    raise RecordingError(f"{path} is no recording that can be read; it must be {WANTED}")


def write_recording(path: str | Path, recording: Recording) -> None:
    """Writes a recording: `.npz` by the name, else a rosbag2 folder with MCAP storage.

    All numbers are written as they are; a rosbag2 folder has the times in whole nanoseconds.

    Raises:
        RecordingError: something is there already, or it cannot be written.
    """
    path = Path(path)
    refuse_existing(path)
    if path.suffix == ".npz":
        _write_npz(path, recording)
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
    if path.suffix in (*STORAGES, ".bag", ".zstd", ".csv"):
        raise RecordingError(
            f"{path} would be a single file, and a rosbag2 recording is a folder; call it "
            f"{path.with_suffix('').name!r}, or let it end in .npz"
        )


def _is_of_ros1(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(7) == b"#ROSBAG"
    except OSError:
        return False


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
    chosen = {name: getattr(recording, name)[:, columns] for name in _ARRAYS}
    return replace(recording, joints=tuple(joints), **chosen)


def _read_npz(path: Path) -> Recording:
    """A file with the arrays of `NPZ_WANTED`; time is counted from the first sample."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise RecordingError(
            f"{path} is not a readable .npz file: {error}. I{NPZ_WANTED[1:]}; write "
            "it with numpy.savez, names as an array of strings, without pickled objects"
        ) from error
    missing = [name for name in NPZ_NEEDED if name not in arrays]
    if missing:
        raise RecordingError(
            f"{path} has {listed(list(arrays)) or 'no arrays'}, but no {listed(missing)}; "
            f"{NPZ_WANTED}"
        )
    joints = arrays["joints"]
    if joints.ndim != 1 or joints.dtype.kind not in "US":
        raise RecordingError(
            f"{path}: joints is of {joints.dtype} and shape {joints.shape}; it must be names"
        )
    names = tuple(map(str, joints.astype(str)))
    time = _numbers(path, "time", arrays["time"], None)
    if not len(time) or not names:
        raise RecordingError(f"{path} has {len(time)} samples of {len(names)} joints; {NPZ_WANTED}")
    if len(set(names)) != len(names):
        raise RecordingError(f"{path} names a joint twice: {listed(names)}; name each once")
    if not np.isfinite(time).all():
        i = int(np.argmin(np.isfinite(time)))
        raise RecordingError(
            f"{path}: time {i} is {time[i]}; every time must be finite, in seconds"
        )
    none = np.full((len(time), len(names)), np.nan)
    q, v, effort, commanded = (
        _numbers(path, name, arrays.get(name, none), none.shape) for name in _ARRAYS
    )
    description = str(arrays.get("robot_description", ""))
    return Recording(str(path), names, time - time[0], q, v, effort, commanded, description)


def _write_npz(path: Path, recording: Recording) -> None:
    """Writes a new file, from which `_read_npz` gives the same bits."""
    try:
        with path.open("xb") as file:
            np.savez_compressed(
                file,
                time=recording.time,
                **{name: getattr(recording, name) for name in _ARRAYS},
                joints=np.array(recording.joints),
                robot_description=np.array(recording.robot_description),
            )
    except OSError as error:
        raise RecordingError(f"{path} cannot be written: {error}") from error


def _numbers(path: Path, name: str, array: np.ndarray, shape: tuple[int, ...] | None) -> FloatArray:
    fits = array.ndim == 1 if shape is None else array.shape == shape
    if not fits or array.dtype.kind not in "fiu":
        wanted = "(samples,)" if shape is None else str(shape)
        raise RecordingError(
            f"{path}: {name} is of {array.dtype} and shape {array.shape}; it must be numbers of "
            f"shape {wanted}"
        )
    return np.ascontiguousarray(array, dtype=np.float64)
