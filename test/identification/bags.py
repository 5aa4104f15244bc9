"""rosbag2 recordings for the tests, written by the library rosbags and not by this package."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

TYPES = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE = "sensor_msgs/msg/JointState"
COMMANDS = "std_msgs/msg/Float64MultiArray"
STRING = "std_msgs/msg/String"
START = 1_700_000_000_000_000_000
PERIOD = 1_000_000
# Topic, time of the recording, type and bytes.
Message = tuple[str, int, str, bytes]


def joint_state(
    stamp: int,
    names: Sequence[str],
    q: Sequence[float],
    v: Sequence[float],
    effort: Sequence[float],
    little_endian: bool = True,
    frame: str = "",
) -> bytes:
    """A serialised JointState."""
    t = TYPES.types
    sec, nanosec = divmod(stamp, 1_000_000_000)
    header = t["std_msgs/msg/Header"](t["builtin_interfaces/msg/Time"](sec, nanosec), frame)
    numbers = [np.array(values, dtype=np.float64) for values in (q, v, effort)]
    message = t[JOINT_STATE](header, list(names), *numbers)
    return bytes(TYPES.serialize_cdr(message, JOINT_STATE, little_endian=little_endian))


def command(values: Sequence[float]) -> bytes:
    t = TYPES.types
    layout = t["std_msgs/msg/MultiArrayLayout"]([], 0)
    message = t[COMMANDS](layout, np.array(values, dtype=np.float64))
    return bytes(TYPES.serialize_cdr(message, COMMANDS))


def text(words: str) -> bytes:
    return bytes(TYPES.serialize_cdr(TYPES.types[STRING](words), STRING))


def states(
    count: int, names: Sequence[str], topic: str = "/joint_states", **options: object
) -> list[Message]:
    """Joint `j` has position 10 i + j, velocity -i - j and effort i / (j + 1) at state i."""
    found = []
    for i in range(count):
        stamp = START + i * PERIOD
        j = np.arange(len(names))
        data = joint_state(stamp, names, 10.0 * i + j, -1.0 * i - j, i / (j + 1), **options)
        found.append((topic, stamp + 100, JOINT_STATE, data))
    return found


def write_bag(
    path: Path,
    messages: Sequence[Message],
    storage: str = "MCAP",
    compression: str = "NONE",
) -> Path:
    """A rosbag2 folder."""
    bag = Writer(path, version=8, storage_plugin=StoragePlugin[storage])
    bag.set_compression(CompressionMode[compression], CompressionFormat.ZSTD)
    with bag:
        connections = {}
        for topic, time, kind, data in messages:
            if topic not in connections:
                connections[topic] = bag.add_connection(topic, kind, typestore=TYPES)
            bag.write(connections[topic], time, data)
    return path
