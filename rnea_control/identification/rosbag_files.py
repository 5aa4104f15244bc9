"""Reads rosbag2 recordings, MCAP and sqlite3, compressed or not, and writes them with MCAP storage:
messages as they came, or a `Recording`."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Literal

import numpy as np
from rosbags.interfaces import (
    Connection,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)
from rosbags.rosbag2 import Reader, StoragePlugin, Writer, WriterError
from rosbags.typesys import Stores, get_typestore

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.recorded_topics import (
    COMMANDS,
    FLOAT64_MULTI_ARRAY,
    JOINT_STATE,
    JOINT_STATES,
    ROBOT_DESCRIPTION,
    STRING,
    RecordedTopics,
)
from rnea_control.identification.recording import Recording
from rnea_control.messages.cdr import CdrWriter, write_time
from rnea_control.messages.controller_messages import Float64MultiArrayEncoder

METADATA = "metadata.yaml"
STORAGES = (".mcap", ".db3")
_KINDS = (JOINT_STATE, FLOAT64_MULTI_ARRAY, STRING)
# ROS 2 Iron and newer read it.
VERSION: Literal[8] = 8
# The stamp of the first state: 0 would mean that the publisher left it empty, [ns].
_START = 1_000_000_000
_STAMP = 4


def read_rosbag(path: Path) -> RecordedTopics:
    """What identification knows of a folder with metadata.yaml, a `.mcap` or a `.db3` file.

    A folder without metadata.yaml is that of a recorder that was killed: its files are read one
    after the other, by name.

    Raises:
        RecordingError: it cannot be read, or has no messages.
    """
    topics = RecordedTopics(str(path))
    for part in _parts(path):
        for topic, kind, log_time, message in _messages(part, topics):
            topics.add(topic, kind, log_time, message)
    return topics


def _parts(path: Path) -> list[Path]:
    if not path.is_dir() or (path / METADATA).exists():
        return [path]
    files = sorted(file for file in path.iterdir() if file.suffix in STORAGES)
    if files:
        return files
    compressed = sorted(file.name for file in path.iterdir() if file.suffix == ".zstd")
    if compressed:
        raise RecordingError(
            f"{path}: it has {listed(compressed)} but no {METADATA}, as after a recorder that was "
            f"killed. Decompress the files with `unzstd`, and run `ros2 bag reindex {path}`"
        )
    raise RecordingError(
        f"{path}: this folder is no rosbag2 recording: it has no {METADATA}, and no file that ends "
        f"in {' or '.join(STORAGES)}. Give the folder that `ros2 bag record` made"
    )


def _messages(path: Path, topics: RecordedTopics) -> Iterator[tuple[str, str, int, bytes]]:
    """Topic, type, time of the recording [ns] and bytes of each message in a file or a bag."""
    write_ahead = path.with_name(f"{path.name}-wal")
    if path.suffix == ".db3" and write_ahead.exists() and write_ahead.stat().st_size:
        raise RecordingError(
            f"{path}: its last messages are still in {write_ahead.name}, as the recorder was "
            f'killed. Bring them home with `sqlite3 {path} "PRAGMA wal_checkpoint(TRUNCATE)"`'
        )
    # The library raises many kinds of errors for files that are broken.
    try:
        with Reader(path) as reader:
            topics.others.update((each.topic, each.msgtype) for each in reader.connections)
            wanted = [each for each in reader.connections if each.msgtype in _KINDS]
            if not wanted:
                return
            for connection, log_time, message in reader.messages(wanted):
                yield connection.topic, connection.msgtype, log_time, message
    except (GeneratorExit, MemoryError):
        raise
    except Exception as error:
        words = (str(error) or type(error).__name__).rstrip(".")
        raise RecordingError(f"{path}: rosbag2 cannot be read: {words}. {_remedy(path)}") from error


def _remedy(path: Path) -> str:
    if path.suffix == ".mcap":
        return (
            "If the file was cut off, by a recorder that was killed or a copy that was not "
            f"finished, copy it again, or rescue it with `mcap recover {path} -o rescued.mcap`"
        )
    return (
        "If its recorder was killed or its copy was not finished, copy it again, or rebuild its "
        f"index with `ros2 bag reindex {path if path.is_dir() else path.parent}`"
    )


@dataclass(frozen=True)
class TopicMessages:
    """The messages of a topic.

    Attributes:
        name: of the topic.
        kind: their type.
        messages: the time of each, ascending, [ns], and its bytes.
        is_latched: whether who subscribes later shall have the last one.
    """

    name: str
    kind: str
    messages: Iterable[tuple[int, bytes]]
    is_latched: bool = False


def write_rosbag(path: Path, topics: Sequence[TopicMessages]) -> None:
    """Writes a folder; of messages with the same time those of the topic named first come first.

    Raises:
        RecordingError: it exists already, or cannot be written.
    """
    types = get_typestore(Stores.ROS2_JAZZY)
    try:
        with Writer(path, version=VERSION, storage_plugin=StoragePlugin.MCAP) as bag:
            streams = []
            for topic in topics:
                connection = bag.add_connection(
                    topic.name,
                    topic.kind,
                    typestore=types,
                    offered_qos_profiles=[_qos(topic.is_latched)],
                )
                streams.append(_stream(connection, topic.messages))
            for time, connection, message in heapq.merge(*streams, key=itemgetter(0)):
                bag.write(connection, time, message)
    except (OSError, WriterError) as error:
        raise RecordingError(f"{path} cannot be written: {error}") from error


def write_rosbag_of(path: Path, recording: Recording) -> None:
    """Writes a recording as the messages that it was read from, or might have been.

    Positions, velocities, efforts and commands stay as they are to the bit; times are rounded to
    nanoseconds, as stamps are.

    Raises:
        RecordingError: as of `write_rosbag`.
    """
    stamps = np.rint(1e9 * recording.time).astype(np.int64)
    stamps += _START - stamps.min()
    # Times of recording keep the order of the states where stamps repeat or fall.
    steps = np.arange(len(stamps))
    logged = (np.maximum.accumulate(stamps - steps) + steps).tolist()
    commands, states = _commands(recording, logged), _states(recording, stamps.tolist(), logged)
    topics = [
        TopicMessages(f"/effort_controller{COMMANDS}", FLOAT64_MULTI_ARRAY, commands),
        TopicMessages(JOINT_STATES, JOINT_STATE, states),
    ]
    if recording.robot_description:
        writer = CdrWriter()
        writer.string(recording.robot_description)
        message = [(logged[0], bytes(writer.message()))]
        topics.append(TopicMessages(ROBOT_DESCRIPTION, STRING, message, is_latched=True))
    write_rosbag(path, topics)


def _states(
    recording: Recording, stamps: list[int], logged: list[int]
) -> Iterator[tuple[int, bytes]]:
    writer = CdrWriter()
    writer.time()
    writer.string("")
    writer.strings(recording.joints)
    for _ in range(3):
        writer.numbers(len(recording.joints))
    message, views = writer.message(), writer.views()
    columns = recording.q, recording.v, recording.effort
    for i, time in enumerate(logged):
        write_time(message, _STAMP, stamps[i])
        for view, column in zip(views, columns, strict=True):
            view[:] = column[i]
        yield time, bytes(message)


def _commands(recording: Recording, logged: list[int]) -> Iterator[tuple[int, bytes]]:
    """A message wherever the command changes."""
    encoder = Float64MultiArrayEncoder(len(recording.joints))
    last: FloatArray = np.full(len(recording.joints), np.nan)
    for time, row in zip(logged, recording.commanded, strict=True):
        if not np.array_equal(row, last, equal_nan=True):
            encoder.values[:] = last = row
            yield time, encoder.encode()


def _stream(
    connection: Connection, messages: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, Connection, bytes]]:
    return ((time, connection, message) for time, message in messages)


def _qos(is_latched: bool) -> Qos:
    forever = QosTime(0, 0)
    return Qos(
        QosHistory.KEEP_LAST,
        1 if is_latched else 1000,
        QosReliability.RELIABLE,
        QosDurability.TRANSIENT_LOCAL if is_latched else QosDurability.VOLATILE,
        forever,
        forever,
        QosLiveliness.AUTOMATIC,
        forever,
        avoid_ros_namespace_conventions=False,
    )
