"""Trajectories as YAML of trajectory_msgs/JointTrajectory, as `ros2 topic pub` takes it.

    ros2 topic pub --once /rnea_controller/joint_trajectory \\
        trajectory_msgs/msg/JointTrajectory "$(cat plan.yaml)"
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml  # type: ignore[import-untyped]

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError, TrajectoryError, listed
from rnea_control.identification.excitation import Excitation
from rnea_control.identification.excitation_problem import HARMONICS
from rnea_control.model.robot_model import units

# Significant digits of a number.
DIGITS = 10
# Linux passes no longer argument than this to a program, [bytes]: longer files need another way.
LONGEST_ARGUMENT = 128 * 1024 - 1
# Longest time between points, [s]: a motion of 7 joints of half a minute stays within
# `LONGEST_ARGUMENT`.
_STEP = 0.1
# Points in the time of the fastest oscillation, at least: quintics then stray from a sine by less
# than 1e-5 of its amplitude.
_POINTS_PER_OSCILLATION = 8
_BILLION = 1_000_000_000
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# Strings that YAML takes for something else.
_RESERVED = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


@dataclass(frozen=True, eq=False)
class TrajectoryFile:
    """The points of a file; NaN where a point has no velocity or acceleration."""

    joints: tuple[str, ...]  # the order of the columns
    time: FloatArray  # from the start, rising, shape (points,), [s]
    q: FloatArray  # shape (points, joints), [rad] or [m]
    v: FloatArray  # [rad/s] or [m/s]
    a: FloatArray  # [rad/s^2] or [m/s^2]

    @property
    def points(self) -> Iterator[tuple[float, FloatArray, FloatArray, FloatArray]]:
        """Time, position, velocity and acceleration of each."""
        return zip(self.time.tolist(), self.q, self.v, self.a, strict=True)


def trajectory_yaml(excitation: Excitation, approach: float = 5.0, limits: str = "") -> str:
    """An exciting motion as text.

    The controller moves from where the arm is to the first point, which is at rest, in the time
    `approach`. Points have positions, velocities and accelerations: between them quintics follow
    the series to less than 1e-4 rad at any step.

    Args:
        excitation: the motion.
        approach: time_from_start of the first point, [s].
        limits: what the motion was allowed to use, in words for the comment at the beginning.

    Raises:
        IdentificationError: a time that is not positive and finite.
    """
    if not 0.0 < approach < math.inf:
        raise IdentificationError(f"approach is {approach} s; it must be positive and finite")
    series = excitation.series
    step = min(_STEP, series.period / HARMONICS / _POINTS_PER_OSCILLATION)
    count = math.ceil(series.period / step - 1e-9)  # an hour is fewer than a controller takes
    time: FloatArray = np.arange(count + 1.0) * (excitation.duration / count)
    q, v, a = excitation.sample(time)
    # Zero at both ends but for rounding.
    v[[0, -1]], a[[0, -1]] = 0.0, 0.0
    nanoseconds = np.rint((approach + time) * _BILLION).astype(np.int64)
    lines = [f"# {line}".rstrip() for line in _comment(excitation, approach, limits)]
    lines += [f"joint_names: [{', '.join(map(quoted, excitation.model.joint_names))}]", "points:"]
    for t, *rows in zip(nanoseconds.tolist(), q, v, a, strict=True):
        positions, velocities, accelerations = (", ".join(map(decimal, row)) for row in rows)
        lines += [
            f"- positions: [{positions}]",
            f"  velocities: [{velocities}]",
            f"  accelerations: [{accelerations}]",
            f"  time_from_start: {{sec: {t // _BILLION}, nanosec: {t % _BILLION}}}",
        ]
    return "\n".join(lines) + "\n"


def read_trajectory(path: str | os.PathLike[str]) -> TrajectoryFile:
    """A file that `trajectory_yaml` wrote, or another one of a JointTrajectory.

    Raises:
        TrajectoryError: the file cannot be read, is no JointTrajectory, or has points that lack
            positions, that are not numbers, or whose times do not rise. The message names the file
            and the point.
    """
    source = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TrajectoryError(f"{source} cannot be read: {error}") from error
    try:
        content = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise TrajectoryError(f"{source} is not valid YAML: {error}") from error
    if not isinstance(content, dict) or not {"joint_names", "points"} <= content.keys():
        raise TrajectoryError(
            f"{source} is not a JointTrajectory: it must have joint_names and points, as the file "
            "that `rnea_identify plan` writes"
        )
    joints, points = content["joint_names"], content["points"]
    if not isinstance(joints, list) or not joints or {str} != set(map(type, joints)):
        raise TrajectoryError(f"{source}: joint_names must be a list of at least one name")
    twice = sorted({name for name in joints if joints.count(name) > 1})
    if twice:
        raise TrajectoryError(f"{source}: joint_names has {listed(twice)} more than once")
    if not isinstance(points, list) or not points:
        raise TrajectoryError(f"{source}: points must be a list of at least one point")
    time = np.array([_time(source, i, point) for i, point in enumerate(points)])
    falling = np.flatnonzero(np.diff(time, prepend=-math.inf) <= 0.0)
    if falling.size:
        i = int(falling[0])
        raise TrajectoryError(
            f"{source}: time_from_start of points[{i}] is {time[i]:g} s, and of the point before "
            f"{time[i - 1]:g} s; it must rise from point to point"
        )
    q, v, a = (
        np.array([_field(source, i, point, name, len(joints)) for i, point in enumerate(points)])
        for name in ("positions", "velocities", "accelerations")
    )
    return TrajectoryFile(tuple(joints), time, q, v, a)


def _comment(excitation: Excitation, approach: float, words: str) -> list[str]:
    series, limits = excitation.series, excitation.limits
    lines = [
        f"Exciting motion of {excitation.model.name} for the identification of its parameters.",
        "",
        "WARNING: the arm will move through the whole range below. Collisions with itself and with",
        "what is around it were not looked at: watch the motion in simulation first.",
        "",
        f"approach: {approach:g} s, from where the arm is to the first point",
        f"motion:   {series.period:g} s, {HARMONICS} harmonics, at rest at both ends",
        f"made by:  seed {excitation.seed}; condition number {excitation.condition:.3g}",
        *([f"limits:   {words}"] if words else []),
        "",
        "Largest values, with what was allowed:",
    ]
    time = np.linspace(0.0, series.period, 4001)
    q, v, a = series.sample(time)
    for j, name in enumerate(excitation.model.joint_names):
        unit, _, effort = units(excitation.model, j)
        torque, allowed = "no effort limit", limits.torque[j]
        if math.isfinite(allowed):
            torque = f"{excitation.peaks[3, j] * allowed:.3g} {effort} ({allowed:.3g})"
        lines.append(
            f"{name}: {q[:, j].min():.3f} to {q[:, j].max():.3f} {unit} ({limits.lower[j]:.3f} to "
            f"{limits.upper[j]:.3f}), {np.abs(v[:, j]).max():.3g} {unit}/s "
            f"({limits.velocity[j]:.3g}), {np.abs(a[:, j]).max():.3g} {unit}/s^2 "
            f"({limits.acceleration[j]:.3g}), {torque}"
        )
    return lines


def decimal(value: float, digits: int = DIGITS) -> str:
    """A number with that many digits that YAML and ROS take for a double: with a point, without an
    exponent."""
    return np.format_float_positional(
        value + 0.0, precision=digits, unique=False, fractional=False, trim="0"
    )


def quoted(name: str) -> str:
    """A name as every reader of YAML takes it for a string."""
    plain = _PLAIN.fullmatch(name) and name.lower() not in _RESERVED
    return name if plain else json.dumps(name, ensure_ascii=False)


def _time(source: str, i: int, point: Any) -> float:
    duration = point.get("time_from_start") if isinstance(point, dict) else None
    parts = [0, 0]
    if isinstance(duration, dict):
        parts = [duration.get(name, 0) for name in ("sec", "nanosec")]
    if not isinstance(duration, dict) or any(type(part) is not int or part < 0 for part in parts):
        raise TrajectoryError(
            f"{source}: points[{i}] has no time_from_start of the form {{sec: 1, nanosec: 0}}"
        )
    return parts[0] + parts[1] / _BILLION


def _field(source: str, i: int, point: dict[str, Any], name: str, joints: int) -> list[float]:
    values = point.get(name)
    if not values and name != "positions":
        return [math.nan] * joints
    numbers: list[float] = values if isinstance(values, list) else []
    right = all(type(each) in (float, int) and math.isfinite(each) for each in numbers)
    if not right or len(numbers) != joints:
        raise TrajectoryError(
            f"{source}: {name} of points[{i}] is {values}; it must be a list of {joints} finite "
            "numbers, one for each of joint_names"
        )
    return numbers
