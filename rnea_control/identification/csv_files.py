"""Reads and writes recordings as `.csv` files: a line a sample, a column a joint and quantity.

The header is `time,joint1.position,joint1.velocity,joint1.effort,joint1.commanded,joint2...`.
What PlotJuggler exports is read too: `__time,/joint_states/joint1/position,...`, where cells are
empty in the lines of other topics.
"""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import RecordingError, listed
from rnea_control.identification.npz_files import recording_of_table
from rnea_control.identification.recording import Recording

FIELDS = ("position", "velocity", "effort", "commanded")
# The times of PlotJuggler, and of tables by other programs.
TIMES = ("time", "__time", "timestamp")
STAMP = "header/stamp"
WANTED = (
    "the header must be time,joint1.position,joint1.velocity,joint1.effort,joint2.position,... or "
    "that of PlotJuggler: __time,/joint_states/joint1/position,..."
)


def read_csv(
    path: Path, joints: Sequence[str] | None = None, topic: str | None = None
) -> Recording:
    """A table with a header.

    Args:
        path: of the file.
        joints, topic: where the header names topics, they choose one; `topic` by name, `joints` by
            the columns.

    Raises:
        RecordingError: it has no such header, or a cell that is no number.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            header = [name.strip() for name in next(lines, [])]
            columns = _columns(path, header, joints, topic)
            table = _table(path, lines, header)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordingError(f"{path} is not a readable .csv file: {error}; {WANTED}") from error
    names = tuple(columns.joints)
    values = [np.full((len(table), len(names)), np.nan) for _ in FIELDS]
    for (joint, field), column in columns.places.items():
        values[FIELDS.index(field)][:, names.index(joint)] = table[:, column]
    time = table[:, columns.time]
    # The lines of other topics have no position.
    kept = np.isfinite(values[0]).any(axis=1) & np.isfinite(time)
    return recording_of_table(path, names, time[kept], [each[kept] for each in values], "")


def write_csv(path: Path, recording: Recording) -> None:
    """Writes a new file; a .csv file has no robot_description.

    Raises:
        RecordingError: it exists already, or cannot be written.
    """
    columns = [recording.q, recording.v, recording.effort, recording.commanded]
    used = [k for k, values in enumerate(columns) if k != 3 or np.isfinite(values).any()]
    header = [f"{joint}.{FIELDS[k]}" for joint in recording.joints for k in used]
    table = np.stack([columns[k] for k in used], axis=2).reshape(len(recording.time), len(header))
    try:
        with path.open("x", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["time", *header])
            for time, row in zip(recording.time.tolist(), table.tolist(), strict=True):
                writer.writerow([time, *("" if math.isnan(value) else value for value in row)])
    except OSError as error:
        raise RecordingError(f"{path} cannot be written: {error}") from error


class _Columns:
    """Where the columns of one topic stand.

    Attributes:
        time: the column of the times.
        places: columns by joint and field.
        joints: in the order of the header.
    """

    def __init__(self, time: int, places: dict[tuple[str, str], int]) -> None:
        self.time = time
        self.places = places
        self.joints = list(dict.fromkeys(joint for joint, _ in places))


def _columns(
    path: Path, header: list[str], joints: Sequence[str] | None, topic: str | None
) -> _Columns:
    topics: dict[str, dict[tuple[str, str], int]] = {}
    for column, name in enumerate(header):
        prefix, joint, field = _split(name)
        if field in FIELDS and joint:
            topics.setdefault(prefix, {})[joint, field] = column
    fit = {
        name: places
        for name, places in topics.items()
        if topic is None or name.strip("/") == topic.strip("/")
    }
    if not fit:
        of_topic = "" if topic is None else f" of the topic {topic}"
        raise RecordingError(
            f"{path} has the columns {listed(header) or '(none)'}, and none{of_topic} is a joint's "
            f"position, velocity or effort; {WANTED}"
        )
    wanted = set(joints or ())

    def worth(name: str) -> tuple[bool, int, int]:
        found = _Columns(-1, fit[name])
        efforts = sum(field == "effort" for _, field in found.places)
        return wanted <= set(found.joints), efforts, len(found.places)

    best = max(fit, key=worth)
    times = [f"{best}/{STAMP}", *TIMES] if best else list(TIMES)
    found = [name for name in times if name in header]
    if not found:
        raise RecordingError(
            f"{path} has no column {' or '.join(TIMES)}, but {listed(header)}; {WANTED}"
        )
    return _Columns(header.index(found[0]), fit[best])


def _split(name: str) -> tuple[str, str, str]:
    """The topic, joint and field of a column; the topic is empty in our own tables."""
    if name.startswith("/"):
        prefix, _, field = name.rpartition("/")
        topic, _, joint = prefix.rpartition("/")
        return topic, joint, field
    joint, _, field = name.rpartition(".")
    return "", joint, field


def _table(path: Path, lines: csv._reader, header: list[str]) -> FloatArray:  # type: ignore[name-defined]
    """The numbers, shape (lines, columns), NaN where a cell is empty."""
    numbers = array("d")
    nan = math.nan
    for line in lines:
        if not line:
            continue
        if len(line) != len(header):
            raise RecordingError(
                f"{path}, line {lines.line_num}: {len(line)} cells for {len(header)} columns. Was "
                "the file cut off?"
            )
        try:
            numbers.extend([float(cell) if cell else nan for cell in line])
        except ValueError:
            numbers.extend(_checked(path, lines.line_num, line, header))
    return np.array(numbers, dtype=np.float64).reshape(-1, len(header))


def _checked(path: Path, number: int, line: list[str], header: list[str]) -> list[float]:
    """The numbers of a line where some cell is none; text is allowed in columns of no joint."""
    found = []
    for cell, name in zip(line, header, strict=True):
        try:
            found.append(float(cell) if cell.strip() else math.nan)
        except ValueError as error:
            if _split(name)[2] in FIELDS or name in TIMES or name.endswith(STAMP):
                raise RecordingError(
                    f"{path}, line {number}: {name} is {cell!r}; it must be a number with a point "
                    "for the decimals, or empty"
                ) from error
            found.append(math.nan)
    return found
