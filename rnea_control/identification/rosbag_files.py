"""Reads rosbag2 recordings, MCAP and sqlite3, compressed or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rosbags.rosbag2 import Reader

from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.recorded_topics import (
    FLOAT64_MULTI_ARRAY,
    JOINT_STATE,
    STRING,
    RecordedTopics,
)

METADATA = "metadata.yaml"
STORAGES = (".mcap", ".db3")
_KINDS = (JOINT_STATE, FLOAT64_MULTI_ARRAY, STRING)


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
    if not path.is_dir():
        return [path]
    if (path / METADATA).exists():
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
        raise RecordingError(
            f"{path}: rosbag2 cannot be read: {_words(error)}. {_remedy(path)}"
        ) from error


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".")


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
