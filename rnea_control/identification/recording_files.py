"""Reads and writes recordings as files of rosbag2 and NumPy."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np
from rosbags import interfaces
from rosbags.rosbag2 import Reader, StoragePlugin, Writer, WriterError
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.bounded_memory import GIB, bounded_memory, most_memory, too_large
from rnea_control.identification.recorded_topics import (
    JOINT_STATE,
    ROBOT_DESCRIPTION,
    STRING,
    Message,
    recording_of,
)
from rnea_control.identification.recording import Recording, other_joints

METADATA = "metadata.yaml"
STORAGES = (".mcap", ".db3")
WANTED = (
    f"a rosbag2 folder with {METADATA}, a {' or '.join(STORAGES)} file of rosbag2, or a .npz file"
)
NPZ_WANTED = (
    "it must have time (samples,), q and effort (samples, joints), joints (names), and optionally "
    "robot_description (text)"
)
_FOREVER = interfaces.QosTime(0, 0)
# Late subscribers receive the last message.
LATCHED = interfaces.Qos(
    interfaces.QosHistory.KEEP_LAST,
    1,
    interfaces.QosReliability.RELIABLE,
    interfaces.QosDurability.TRANSIENT_LOCAL,
    deadline=_FOREVER,
    lifespan=_FOREVER,
    liveliness=interfaces.QosLiveliness.AUTOMATIC,
    liveliness_lease_duration=_FOREVER,
    avoid_ros_namespace_conventions=False,
)


def read_recording(
    path: str | Path, joints: Sequence[str] | None = None, topic: str | None = None
) -> Recording:
    """Reads a recording; its numbers are not checked, see `recording`.

    A folder without metadata.yaml is from a recorder that was killed: its files are read one after
    the other, by name.

    Args:
        path: path of a file or a folder.
        joints: joints to read, in the order wanted for the columns; by default all joints of the
            messages with the most efforts, in the messages' order.
        topic: topic of the joint states; by default the topic that names `joints`, or without
            `joints` the topic with the most efforts.

    Raises:
        RecordingError: the path does not exist, is not a recording, unpacks to more than the bound
            (bounded_memory.py), or has no such joints or topic.
    """
    path = Path(path).parent if Path(path).name == METADATA else Path(path)
    if not path.exists():
        raise RecordingError(f"{path} is not there; a recording must be {WANTED}")
    if path.is_dir() or path.suffix in STORAGES:
        with bounded_memory(path):
            messages = chain.from_iterable(map(_messages, _parts(path)))
            return recording_of(str(path), messages, joints, topic)
    if path.suffix == ".npz":
        with bounded_memory(path):
            return _read_npz(path, joints)
    why = f"is no recording that can be read; it must be {WANTED}"
    if path.suffix == ".bag":
        convert = f"rosbags-convert --src {path} --dst {path.with_suffix('')}"
        why = f"is a recording of ROS 1. Convert it: {convert}"
    elif path.suffix == ".zstd":
        why = f"is compressed: give the folder that it is in, with its {METADATA}"
    raise RecordingError(f"{path} {why}")


def read_messages(path: str | Path, kind: str) -> list[Message]:
    """Messages of a type, of all topics of a recording of rosbag2; none of a file that ends in
    .npz.

    Args:
        path: path of a file or a folder.
        kind: type of the messages.

    Raises:
        RecordingError: the path is not a recording.
    """
    path = Path(path).parent if Path(path).name == METADATA else Path(path)
    if not (path.is_dir() or path.suffix in STORAGES):
        return []
    with bounded_memory(path):
        return [message for part in _parts(path) for message in _messages(part, (kind,))]


def refuse_existing(path: Path) -> None:
    """Raises RecordingError if a recording cannot be written to `path`: the path exists, its folder
    does not, or it has the suffix of a file in a rosbag2 folder."""
    folder, why = path.absolute().parent, ""
    if os.path.lexists(path):
        why = "exists already, and is not overwritten; remove it, or choose another name"
    elif not folder.is_dir():
        why = f"cannot be written: there is no folder {folder}; make it first"
    elif path.suffix in (*STORAGES, ".bag", ".zstd", ".csv"):
        why = (
            "would be a single file, and a rosbag2 recording is a folder; call it "
            f"{path.with_suffix('').name!r}, or let it end in .npz"
        )
    if why:
        raise RecordingError(f"{path} {why}")


def _parts(path: Path) -> list[Path]:
    """Files of a recording: the file, the bag, or the files of a bag without metadata."""
    if not path.is_dir() or (path / METADATA).exists():
        return [path]
    if files := sorted(file for file in path.iterdir() if file.suffix in STORAGES):
        return files
    raise RecordingError(
        f"{path}: this folder is no rosbag2 recording: it has no {METADATA}, and no file that ends "
        f"in {' or '.join(STORAGES)}. Give the folder that `ros2 bag record` made; if the recorder "
        f"was killed, decompress files in .zstd with `unzstd`, and run `ros2 bag reindex {path}`"
    )


def _messages(path: Path, kinds: Sequence[str] = (JOINT_STATE, STRING)) -> Iterator[Message]:
    """Messages of these types in a file or a bag; by default those for `recording_of`."""
    write_ahead = path.with_name(f"{path.name}-wal")
    if path.suffix == ".db3" and write_ahead.exists() and write_ahead.stat().st_size:
        raise RecordingError(
            f"{path}: its last messages are still in {write_ahead.name}, as the recorder was "
            f'killed. Bring them home with `sqlite3 {path} "PRAGMA wal_checkpoint(TRUNCATE)"`'
        )
    # The library raises many kinds of errors for broken files.
    try:
        with Reader(path) as reader:
            wanted = [each for each in reader.connections if each.msgtype in kinds]
            for connection, time, message in reader.messages(wanted) if wanted else ():
                yield Message(connection.topic, connection.msgtype, time, message)
    except (GeneratorExit, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            raise  # the error of the bound on unpacking
        words = (str(error) or type(error).__name__).rstrip(".")
        repair = f"ros2 bag reindex {path if path.is_dir() else path.parent}"
        if path.suffix == ".mcap":
            repair = f"mcap recover {path} -o rescued.mcap"
        raise RecordingError(
            f"{path}: rosbag2 cannot be read: {words}. If its recorder was killed or its copy was "
            f"not finished, copy it again, or repair it with `{repair}`"
        ) from error


def write_rosbag(
    path: Path, messages: Iterable[Message], definitions: Mapping[str, str] | None = None
) -> None:
    """Writes a folder with MCAP storage; messages are ordered by time, and by their order at equal
    times.

    Args:
        path: the new folder.
        messages: the messages.
        definitions: definitions of types that are not of ROS itself, by name.

    Raises:
        RecordingError: the path exists already, or cannot be written.
    """
    types = get_typestore(Stores.ROS2_JAZZY)
    for name, definition in (definitions or {}).items():
        types.register(get_types_from_msg(definition, name))
    connections: dict[str, interfaces.Connection] = {}
    try:
        # ROS 2 Iron and newer read version 8.
        with Writer(path, version=8, storage_plugin=StoragePlugin.MCAP) as bag:
            for topic, kind, log_time, data in sorted(messages, key=attrgetter("log_time")):
                if topic not in connections:
                    qos = [LATCHED] if topic.endswith(ROBOT_DESCRIPTION) else []
                    connections[topic] = bag.add_connection(
                        topic, kind, typestore=types, offered_qos_profiles=qos
                    )
                bag.write(connections[topic], log_time, data)
    except (OSError, WriterError) as error:
        raise RecordingError(f"{path} cannot be written: {error}") from error


def write_npz(path: Path, recording: Recording) -> None:
    """Writes a new file, from which `read_recording` reads the same bits.

    Raises:
        RecordingError: the path exists already, or cannot be written.
    """
    try:
        with path.open("xb") as file:
            np.savez_compressed(
                file,
                time=recording.time,
                q=recording.q,
                effort=recording.effort,
                joints=np.array(recording.joints),
                robot_description=np.array(recording.robot_description),
            )
    except OSError as error:
        raise RecordingError(f"{path} cannot be written: {error}") from error


# Errors of NumPy for a file that is not .npz; an AttributeError for .npy comes from Python 3.10.
_UNREADABLE = OSError, EOFError, LookupError, TypeError, ValueError, AttributeError, BadZipFile


def _read_npz(path: Path, joints: Sequence[str] | None) -> Recording:
    """Reads the columns of `joints`, or all columns, of a file with the arrays of `NPZ_WANTED`;
    time is counted from the first sample."""
    try:
        with ZipFile(path) as archive:
            declared = sum(each.file_size for each in archive.infolist())
        if declared > most_memory():
            raise too_large(path, f"unpacks to {declared / GIB:.3g} GiB", most_memory())
        with np.load(path, allow_pickle=False) as file:
            time, q, effort = (file[name].astype(np.float64) for name in ("time", "q", "effort"))
            names = file["joints"].astype(str).ravel().tolist()
            description = str(file["robot_description"]) if "robot_description" in file else ""
    except _UNREADABLE as error:
        raise RecordingError(
            f"{path} is not a readable .npz file: {error}; {NPZ_WANTED}. Write it with "
            "numpy.savez, names as an array of strings, without pickled objects"
        ) from error
    chosen = names if joints is None else list(joints)
    lacking = [joint for joint in chosen if joint not in names]
    shape, unknown = (time.size, len(names)), np.flatnonzero(~np.isfinite(time)).tolist()
    shapes, expected = (time.shape, q.shape, effort.shape), (shape[:1], shape, shape)
    faults = {
        f"time, q and effort have the shapes {shapes}; they must be {expected}": shapes != expected,
        f"there are {shape[0]} samples of {shape[1]} joints; {NPZ_WANTED}": 0 in shape,
        f"it names a joint twice: {listed(names)}; name each once": len(set(names)) < len(names),
        f"time{unknown[:1]} is infinite or NaN; every time must be finite, in seconds": unknown,
        f"it lacks the joints {listed(lacking)} of {listed(chosen)}; it has {listed(names)}. "
        f"{other_joints(chosen, names)}": lacking or not chosen,
    }
    if wrong := [words for words, is_so in faults.items() if is_so]:
        raise RecordingError(f"{path}: {'; '.join(wrong)}")
    columns = [names.index(joint) for joint in chosen]
    values = (array.take(columns, axis=1) for array in (q, effort))
    return Recording(
        str(path),
        tuple(chosen),
        time - time[0],
        *values,
        robot_description=description,
        start=float(time[0]),
    )
