"""Trajectories as YAML of trajectory_msgs/JointTrajectory, as `ros2 topic pub` takes it.

    ros2 topic pub --once /rnea_controller/joint_trajectory \\
        trajectory_msgs/msg/JointTrajectory "$(cat plan.yaml)"
"""

from __future__ import annotations

import json
import math

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.excitation import Excitation
from rnea_control.identification.excitation_problem import HARMONICS
from rnea_control.model.robot_model import units

# Significant digits of a number.
DIGITS = 10
# Longest time between points, [s]: a shell passes a motion of 7 joints of half a minute as an
# argument, which Linux allows 128 KiB.
_STEP = 0.1
# Points in the time of the fastest oscillation, at least: quintics then stray from a sine by less
# than 1e-5 of its amplitude.
_POINTS_PER_OSCILLATION = 8
_BILLION = 1_000_000_000


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
        "Range of each joint, with what was allowed:",
    ]
    q, _, _ = series.sample(np.linspace(0.0, series.period, 4001))
    for j, name in enumerate(excitation.model.joint_names):
        unit = units(excitation.model, j).position
        lines.append(
            f"{name}: {q[:, j].min():.3f} to {q[:, j].max():.3f} {unit} ({limits.lower[j]:.3f} to "
            f"{limits.upper[j]:.3f})"
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
    return json.dumps(name, ensure_ascii=False)
