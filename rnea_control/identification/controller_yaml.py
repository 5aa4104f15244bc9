"""YAML for `rnea_controller`: an exciting trajectory, as a JointTrajectory for `ros2 topic pub`;
and parameters of identified actuators, of a payload or of tuned joints."""

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
from rnea_control.identification.tuning.proposal import Proposal, Values
from rnea_control.parameters.parameter import JOINT
from rnea_control.parameters.parameter_file import nested
from rnea_control.parameters.table import ROWS

# Longest time between points, [s]. A motion of 7 joints of half a minute then fits in one argument
# of a shell command, which Linux limits to 128 KiB.
_STEP = 0.1
# Smallest number of points in a period of the fastest oscillation: quintics then differ from a sine
# by less than 1e-5 of its amplitude.
_POINTS_PER_OSCILLATION = 8
_BILLION = 1_000_000_000
DIGITS = 5  # significant digits of a parameter; more than any identification determines
# Significant digits of a payload's inertia. With fewer, a rod's inertia would be that of no real
# body, and `payload` would refuse it.
PAYLOAD_INERTIA_DIGITS = 9
SMALLEST = 1e-11  # smaller numbers are 0, in SI units
SMALLEST_OF_JOINT = 1e-7  # the same for joints, whose bound of 0 a solver reaches approximately
WIDTH = 90


def trajectory_yaml(excitation: Excitation, approach: float = 5.0, comment: str = "") -> str:
    """An exciting motion as YAML.

    The controller moves from the present position of the arm to the first point, which is at rest,
    in the time `approach`. Points have positions, velocities and accelerations: the quintics
    between them follow the series to less than 1e-4 rad at any step.

    Args:
        excitation: the motion.
        approach: time_from_start of the first point, positive, [s].
        comment: comment at the beginning of the file.
    """
    duration, joints = excitation.duration, excitation.model.joint_names
    step = min(_STEP, duration / HARMONICS / _POINTS_PER_OSCILLATION)
    time = np.linspace(0.0, duration, math.ceil(duration / step - 1e-9) + 1)
    q, v, a = excitation.sample(time)
    # Zero at both ends, except for rounding.
    v[[0, -1]], a[[0, -1]] = 0.0, 0.0
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"joint_names: {json.dumps(joints, ensure_ascii=False)}", "points:"]
    nanoseconds = np.rint((approach + time) * _BILLION).astype(np.int64)
    for t, *rows in zip(nanoseconds.tolist(), q, v, a, strict=True):
        # With a decimal point and without an exponent, every reader takes the numbers for doubles.
        positions, velocities, accelerations = (", ".join(f"{x:.8f}" for x in row) for row in rows)
        lines += [
            f"- positions: [{positions}]",
            f"  velocities: [{velocities}]",
            f"  accelerations: [{accelerations}]",
            f"  time_from_start: {{sec: {t // _BILLION}, nanosec: {t % _BILLION}}}",
        ]
    return "\n".join(lines) + "\n"


def controller_yaml(found: Identification, source: str) -> str:
    """Parameter file to add to the controller's: friction and armature of each joint, identified
    from the recordings of `source`. It does not enable `friction_compensation`."""
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
    """Parameter file with an identified payload, which `RobotModel.set_payload` accepts."""
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


def tuning_yaml(proposal: Proposal, robot: str, applied: Values | None = None) -> str:
    """Parameter file with the proposal of rnea_tune for a robot of this name; `applied` are the
    parameters that the controller has, if it took others than the proposed ones."""
    deviation = 1e3 * proposal.dead_time_deviation
    header = [
        f"Parameters of rnea_controller for {robot}, by rnea_tune ({len(proposal.joints)} joints). "
        f"Standard deviation of the dead time: {deviation:.2g} ms.",
    ]
    rows: dict[str, dict[str, bool]] = {}
    values = {**proposal.values(), **(applied or {})}
    for name in values:
        of_joint = next((one for one in proposal.joints if f".{one}" in name), "")
        row = name.replace(f".{of_joint}", f".{JOINT}") if of_joint else name
        rows.setdefault(row.split(".")[0], {})[row] = True
    content = nested(
        {
            name: value if isinstance(value, bool) else significant(value)
            for name, value in values.items()
        }
    )
    sections = [_section(group, {key: content[key]}) for key, group in rows.items()]
    return _parameter_file(header, *sections)


def _parameter_file(header: list[str], *sections: str) -> str:
    usage = "Copy them into the controller's own file."
    comments = ["# " + " ".join(line.split()) for line in [*header, usage]]  # no line breaks
    lines = [*comments, "/**:", "  rnea_controller:", "    ros__parameters:", ""]
    return "\n".join(lines) + textwrap.indent("".join(sections), " " * 6)


def _section(names: Iterable[str], content: dict[str, Any]) -> str:
    """Parameters in YAML, each below its meaning from the parameter table."""
    lines = []
    for row in (ROWS[name] for name in names):
        unit = f" [{row.unit}]" if row.unit else ""
        lines += textwrap.wrap(f"{row.name}: {row.meaning}{unit}", WIDTH)
    comment = "".join(f"# {line}\n" for line in lines)
    # Maps of numbers are written in one line, but not the section itself.
    flow = None if any(isinstance(value, dict) for value in content.values()) else False
    return comment + yaml.safe_dump(
        content, default_flow_style=flow, sort_keys=False, allow_unicode=True, width=WIDTH
    )


def significant(value: float, digits: int = DIGITS, least: float = SMALLEST) -> float:
    """Rounds to `digits` significant digits; returns 0 for a value smaller than `least`."""
    return 0.0 if abs(value) < least else float(f"{value:.{digits}g}")
