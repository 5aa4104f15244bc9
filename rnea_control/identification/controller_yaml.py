"""What `rnea_controller` is given, as YAML: an exciting trajectory, a JointTrajectory as
`ros2 topic pub` takes it; and, as parameters, identified actuators or a payload."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
import yaml

from rnea_control.identification.excitation import Excitation
from rnea_control.identification.excitation_problem import HARMONICS
from rnea_control.identification.identify import Identification
from rnea_control.identification.payload import Payload
from rnea_control.parameters.parameter import JOINT
from rnea_control.parameters.table import ROWS

# Longest time between points, [s]: a shell passes a motion of 7 joints of half a minute as an
# argument, which Linux allows 128 KiB.
_STEP = 0.1
# Points in the time of the fastest oscillation, at least: quintics then stray from a sine by less
# than 1e-5 of its amplitude.
_POINTS_PER_OSCILLATION = 8
_BILLION = 1_000_000_000
# Significant digits of a parameter: more than any identification determines. A rod's inertia that
# is rounded more is no real body's, and `payload` refuses it.
DIGITS, PAYLOAD_INERTIA_DIGITS = 5, 9
# Smaller numbers are 0, in SI units: all, and those of joints, whose bound of 0 no solver meets.
SMALLEST, SMALLEST_OF_JOINT = 1e-11, 1e-7
WIDTH = 90


def trajectory_yaml(excitation: Excitation, approach: float = 5.0, comment: str = "") -> str:
    """An exciting motion as text.

    The controller moves from where the arm is to the first point, which is at rest, in the time
    `approach`. Points have positions, velocities and accelerations: between them quintics follow
    the series to less than 1e-4 rad at any step.

    Args:
        excitation: the motion.
        approach: time_from_start of the first point, positive, [s].
        comment: for the beginning of the file.
    """
    duration, joints = excitation.duration, excitation.model.joint_names
    step = min(_STEP, duration / HARMONICS / _POINTS_PER_OSCILLATION)
    time = np.linspace(0.0, duration, math.ceil(duration / step - 1e-9) + 1)
    q, v, a = excitation.sample(time)
    # Zero at both ends but for rounding.
    v[[0, -1]], a[[0, -1]] = 0.0, 0.0
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"joint_names: {json.dumps(joints, ensure_ascii=False)}", "points:"]
    nanoseconds = np.rint((approach + time) * _BILLION).astype(np.int64)
    for t, *rows in zip(nanoseconds.tolist(), q, v, a, strict=True):
        # With a point and without an exponent, every reader takes them for doubles.
        positions, velocities, accelerations = (", ".join(f"{x:.8f}" for x in row) for row in rows)
        lines += [
            f"- positions: [{positions}]",
            f"  velocities: [{velocities}]",
            f"  accelerations: [{accelerations}]",
            f"  time_from_start: {{sec: {t // _BILLION}, nanosec: {t % _BILLION}}}",
        ]
    return "\n".join(lines) + "\n"


def controller_yaml(found: Identification, source: str) -> str:
    """A file of parameters that adds to the controller's own: friction and armature of each joint,
    by the recordings of `source`. It does not switch `friction_compensation` on."""
    joints = found.model.joint_names
    header = [
        f"Parameters of rnea_controller for {found.model.name}, by rnea_identify from {source}",
        f"({len(joints)} joints, {found.seconds:.0f} s of motion). They go with the URDF of this "
        "fit.",
        "The friction counts once friction_compensation is true; try the arm without it first.",
    ]
    kinds = "damping", "coulomb", "offset"
    rows = np.stack([found.damping, found.friction, found.torque_offset, found.armature], axis=1)
    friction, armature = {}, {}
    for joint, row in zip(joints, rows, strict=True):
        *numbers, armature[joint] = (significant(value, least=SMALLEST_OF_JOINT) for value in row)
        friction[joint] = dict(zip(kinds, numbers, strict=True))
    return _parameter_file(
        header,
        _section([f"friction.{JOINT}.{kind}" for kind in kinds], {"friction": friction}),
        _section([f"armature.{JOINT}"], {"armature": armature}),
    )


def payload_yaml(payload: Payload, source: str) -> str:
    """The same of a payload, one that `RobotModel.set_payload` takes."""
    header = [
        f"Payload of rnea_controller on {payload.link}, by rnea_identify from {source}",
        f"({payload.seconds:.0f} s of motion): {payload.mass:.4g} kg, standard deviation "
        f"{payload.mass_deviation:.2g} kg.",
    ]
    inertia = payload.inertia[np.triu_indices(3)]
    values = {
        "link": payload.link,
        "mass": significant(payload.mass),
        "center_of_mass": [significant(value) for value in payload.center_of_mass],
        "inertia": [significant(value, PAYLOAD_INERTIA_DIGITS) for value in inertia],
    }
    names = "payload.mass", "payload.center_of_mass", "payload.inertia"
    return _parameter_file(header, _section(names, {"payload": values}))


def _parameter_file(header: list[str], *sections: str) -> str:
    usage = "Copy them into the controller's own file."
    comments = ["# " + " ".join(line.split()) for line in [*header, usage]]  # no name ends one
    lines = [*comments, "/**:", "  rnea_controller:", "    ros__parameters:", ""]
    return "\n".join(lines) + textwrap.indent("".join(sections), " " * 6)


def _section(names: Iterable[str], content: dict[str, Any]) -> str:
    """Parameters in YAML, below their meanings by the table."""
    lines = []
    for row in (ROWS[name] for name in names):
        unit = f" [{row.unit}]" if row.unit else ""
        lines += textwrap.wrap(f"{row.name}: {row.meaning}{unit}", WIDTH)
    comment = "".join(f"# {line}\n" for line in lines)
    return comment + yaml.safe_dump(
        content, default_flow_style=None, sort_keys=False, allow_unicode=True, width=WIDTH
    )


def significant(value: float, digits: int = DIGITS, least: float = SMALLEST) -> float:
    """With so many significant digits; 0 if it is smaller than `least`."""
    return 0.0 if abs(value) < least else float(f"{value:.{digits}g}")
