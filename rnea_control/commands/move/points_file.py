"""`read_points`: the points of a CSV file. No ROS."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import TrajectoryPointsError, listed, quoted

TIME = "time"
COMMENT = "#"
MOST_POINTS = 100_000


@dataclass(frozen=True)
class Points:
    """Positions of some joints, with or without times."""

    joints: tuple[str, ...]
    positions: FloatArray  # shape (n, joints), [rad] or [m]
    times: FloatArray | None  # shape (n,), [s]; None without times


def read_points(path: Path, joint_names: Sequence[str]) -> Points:
    """The points of a CSV file: a header with joint names and optionally `time`, then a line for
    each point. Empty lines and lines that begin with # are skipped.

    Raises:
        TrajectoryPointsError: the file cannot be read or is malformed; the message names the line
            and the column.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = _rows(path, csv.reader(file))
            line, header = next(rows, (1, []))
            if not header:
                _refuse(path, line, "the file is empty; its first line must name the joints")
            _check_header(path, line, header, joint_names)
            numbers = [_numbers(path, line, header, row) for line, row in rows]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TrajectoryPointsError(f"{path} cannot be read: {error}") from error
    if not numbers:
        _refuse(path, line, "there are no points after the header")
    values = np.array(numbers)
    joints = tuple(name for name in header if name != TIME)
    positions = values[:, [header.index(name) for name in joints]]
    return Points(joints, positions, values[:, header.index(TIME)] if TIME in header else None)


def _rows(path: Path, reader: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and fields of the header and of all points."""
    count = 0
    for row in reader:
        fields = [field.strip() for field in row]
        if any(fields) and not fields[0].startswith(COMMENT):
            count += 1
            line: int = reader.line_num  # type: ignore[attr-defined]
            if count > MOST_POINTS + 1:
                _refuse(path, line, f"there are more than {MOST_POINTS} points")
            yield line, fields


def _check_header(path: Path, line: int, header: list[str], joint_names: Sequence[str]) -> None:
    allowed = (TIME, *joint_names)
    for column, name in enumerate(header, start=1):
        if name not in allowed:
            _refuse(
                path,
                line,
                f"{quoted(name)} is not a joint of the controller; the first line may have "
                f"{listed(allowed)}",
                column,
            )
        if header.index(name) != column - 1:
            _refuse(path, line, f"{quoted(name)} is named twice", column)
    if header == [TIME]:
        _refuse(path, line, "the first line names no joint")


def _numbers(path: Path, line: int, header: list[str], row: list[str]) -> list[float]:
    if len(row) != len(header):
        _refuse(path, line, f"has {len(row)} fields; the first line has {len(header)}")
    numbers = []
    for column, (name, field) in enumerate(zip(header, row, strict=True), start=1):
        try:
            number = float(field)
        except ValueError:
            _refuse(path, line, f"{name} is {quoted(field)}; it must be a number", column)
        if not math.isfinite(number):
            _refuse(path, line, f"{name} is {field}; it must be finite", column)
        numbers.append(number)
    return numbers


def _refuse(path: Path, line: int, what: str, column: int | None = None) -> NoReturn:
    place = f"line {line}" if column is None else f"line {line}, column {column}"
    raise TrajectoryPointsError(f"{path}, {place}: {what}")
