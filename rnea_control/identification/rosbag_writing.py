"""Writes rosbag2 folders with MCAP storage: messages as they came, or a `Recording`."""

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
from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
from rosbags.typesys import Stores, get_typestore

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.exceptions import RecordingError
from rnea_control.identification.recorded_topics import (
    COMMANDS,
    FLOAT64_MULTI_ARRAY,
    JOINT_STATE,
    JOINT_STATES,
    ROBOT_DESCRIPTION,
    STRING,
)
from rnea_control.identification.recording import Recording
from rnea_control.messages.cdr import CdrWriter, write_time
from rnea_control.messages.float64_multi_array import Float64MultiArrayEncoder

# ROS 2 Iron and newer read it.
VERSION: Literal[8] = 8
# The stamp of the first state: 0 would mean that the publisher left it empty, [ns].
_START = 1_000_000_000
_STAMP = 4
_FOREVER = QosTime(0, 0)


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
    logged = _ascending(stamps)
    topics = [
        TopicMessages(
            f"/effort_controller{COMMANDS}", FLOAT64_MULTI_ARRAY, _commands(recording, logged)
        ),
        TopicMessages(JOINT_STATES, JOINT_STATE, _states(recording, stamps, logged)),
    ]
    if recording.robot_description:
        writer = CdrWriter()
        writer.string(recording.robot_description)
        message = [(int(logged[0]), bytes(writer.message()))]
        topics.append(TopicMessages(ROBOT_DESCRIPTION, STRING, message, is_latched=True))
    write_rosbag(path, topics)


def _ascending(stamps: IntArray) -> IntArray:
    """Times of recording that keep the order of the states where stamps repeat or fall."""
    steps = np.arange(len(stamps))
    rising: IntArray = np.maximum.accumulate(stamps - steps) + steps
    return rising


def _states(
    recording: Recording, stamps: IntArray, logged: IntArray
) -> Iterator[tuple[int, bytes]]:
    writer = CdrWriter()
    writer.time()
    writer.string("")
    writer.strings(recording.joints)
    for _ in range(3):
        writer.numbers(len(recording.joints))
    message, views = writer.message(), writer.views()
    columns = recording.q, recording.v, recording.effort
    for i, time in enumerate(logged.tolist()):
        write_time(message, _STAMP, int(stamps[i]))
        for view, column in zip(views, columns, strict=True):
            view[:] = column[i]
        yield time, bytes(message)


def _commands(recording: Recording, logged: IntArray) -> Iterator[tuple[int, bytes]]:
    """A message wherever the command changes."""
    encoder = Float64MultiArrayEncoder(len(recording.joints))
    last: FloatArray = np.full(len(recording.joints), np.nan)
    for time, row in zip(logged.tolist(), recording.commanded, strict=True):
        if not np.array_equal(row, last, equal_nan=True):
            encoder.values[:] = last = row
            yield time, encoder.encode()


def _stream(
    connection: Connection, messages: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, Connection, bytes]]:
    return ((time, connection, message) for time, message in messages)


def _qos(is_latched: bool) -> Qos:
    return Qos(
        QosHistory.KEEP_LAST,
        1 if is_latched else 1000,
        QosReliability.RELIABLE,
        QosDurability.TRANSIENT_LOCAL if is_latched else QosDurability.VOLATILE,
        _FOREVER,
        _FOREVER,
        QosLiveliness.AUTOMATIC,
        _FOREVER,
        avoid_ros_namespace_conventions=False,
    )
