"""Causes of a difference between measured efforts and a model's torques: for each its message, its
remedy, and the recording that separates it from other causes. The check of a recording and the
check of an arm at rest (`control/model_check.py`) use the same messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.exceptions import listed
from rnea_control.model.robot_model import RobotModel, units

HEAVIER = 0.5  # largest difference from 1 of a common scale that wrong masses may explain


class Cause(Enum):
    """The table of causes.

    Attributes:
        words: finding; {rows} are joints with their numbers, {joints} the joints' names.
        remedy: what the user can do.
        decided_by: recording that separates this cause from others that are as likely.
    """

    clipping = (
        "the efforts are clipped: {rows} are at the largest or smallest value",
        "Record a slower motion with less load, or let the driver report all of its range",
    )
    rounding = (
        "the efforts come in coarse steps: {rows}. A delay or friction in them is a guess",
        "Let the driver report finer steps, or record a faster motion with more torque",
    )
    gravity = (
        "gravity {what}",
        "Set hardware_compensates_gravity to true if the hardware compensates gravity, to false if "
        "not; a recording needs the whole torque. Else correct the parameter gravity (in the root "
        "link's frame)",
        "the arm at rest in several postures, where its efforts are those of gravity alone",
    )
    sign = (
        "the sign of the efforts of {joints} is reversed",
        "Reverse the sign in the hardware interface: an effort must push its joint towards larger "
        "positions",
        "a joint that moves alone, fast to and fro: friction must brake it",
    )
    exchange = (
        "{what}",
        "Correct the order of the joints or the wiring in the hardware interface",
        "each of the joints moving alone: its own effort must change",
    )
    unit = (
        "the efforts {what}",
        "Are they in Nm and N? Motor currents need torque constant and gear ratio, Nmm a factor of "
        "0.001",
        "a known load in the hand, at rest: the efforts must rise by its weight times the lever",
    )
    clock = (
        "efforts and positions have different clocks: from the beginning to the end the efforts "
        "become {what}",
        "Let one clock stamp positions and efforts",
    )
    limit = (
        "efforts beyond the URDF's limits: {rows}",
        "Are they in Nm and N, and is <limit effort> right?",
    )
    strength = (
        "in slow motion the effort of {joints} is {what} times the gravity torque of the URDF",
        "Are the efforts in Nm and N, at the joint and not at the motor? Is this the robot of the "
        "URDF, and is its load in the parameter payload?",
    )
    unknown = (
        "no cause that is known explains the efforts of {rows}",
        "Is the model that of this robot, with its zeros, its directions of the joints and its "
        "lengths, and are the joints' order and signs right?",
    )
    delay = (
        "the efforts are {what} than the positions",
        "A filter of the drives? fit makes up for it",
    )
    payload = (
        "a load of {mass:+.3g} kg on {link}, center of mass [{center}] m in its frame",
        "Set payload, as rnea_identify fit --payload {link} writes it",
    )
    masses = (
        "masses, centers of mass and inertias of the URDF are off, felt by {rows}",
        "rnea_identify fit writes a new URDF",
    )
    offset = (
        "constant offsets that the model lacks: {rows}",
        "Set friction.<joint>.offset, or zero the torque sensors",
    )
    friction = (
        "friction that the model lacks, or has too much: {rows}",
        "rnea_identify fit writes friction.<joint>",
    )
    rotor = (
        "rotor inertia that the model lacks: {rows}",
        "rnea_identify fit writes armature.<joint>",
    )

    def __init__(self, words: str, remedy: str, decided_by: str = "") -> None:
        self.words, self.remedy, self.decided_by = words, remedy, decided_by

    @property
    def fitted(self) -> bool:
        """True if a fit compensates this cause; else it makes the fitted parameters wrong."""
        return self.name in ("delay", "payload", "masses", "offset", "friction", "rotor")


@dataclass(frozen=True, eq=False)
class Contribution:
    """A cause that was found.

    Attributes:
        cause: row of the table of causes.
        part: share of the residual that this cause explains and no earlier cause does, 0 to 1. The
            residual is what the URDF's masses leave for causes that no fit compensates, else what
            is above the noise. None for direct observations, such as clipping.
        joints: joints concerned.
        words: finding, with numbers.
        remedy: what the user can do.
    """

    cause: Cause
    part: float | None
    joints: tuple[str, ...]
    words: str
    remedy: str

    @property
    def sentence(self) -> str:
        """Finding and remedy."""
        return f"{self.words}. {self.remedy}"


def told(
    cause: Cause,
    model: RobotModel,
    which: BoolArray,
    text: Callable[[int], str] = lambda j: "",
    part: float | None = None,
    **names: Any,
) -> Contribution:
    """Fills in the message of a cause.

    Args:
        cause: row of the table of causes.
        model: the robot.
        which: mask of the joints concerned, shape (nv,).
        text: words for each of these joints, by its index.
        part: share of the residual, see `Contribution`.
        names: values of the other placeholders in the table.
    """
    rows = {model.joint_names[j]: text(j) for j in np.flatnonzero(which).tolist()}
    each = ", ".join(f"{joint} {words}".rstrip() for joint, words in rows.items())
    words = cause.words.format(rows=each, joints=listed(rows), **names)
    return Contribution(cause, part, tuple(rows), words, cause.remedy.format(**names))


def effort_words(model: RobotModel, j: int, efforts: FloatArray, form: str = ".3g") -> str:
    """The effort of a joint with its unit."""
    return f"{efforts[j]:{form}} {units(model, j).effort}"


def gravity_words(model: RobotModel, gravity: FloatArray) -> str:
    """Difference of `gravity` from the model's, in words. `gravity` is given in the root link's
    frame, shape (3,), [m/s^2]."""
    own = model.gravity
    factor = float(gravity @ own / (own @ own))
    if not gravity.any():
        return "is not in the efforts"
    if np.allclose(gravity, -own):
        return "in the efforts is the opposite of the model's"
    if np.allclose(gravity, factor * own):
        return f"in the efforts is {factor:.2f} times the model's"
    x, y, z = gravity
    return (
        f"in the efforts is along [{x:.2f}, {y:.2f}, {z:.2f}] in the frame of "
        f"{model.root_link!r}, not along [{own[0]:g}, {own[1]:g}, {own[2]:g}]"
    )


def scale_words(factor: float) -> str:
    """Words for efforts that are `factor` times the model's torques at all joints."""
    words = f"of all joints are {factor:.3g} times the torques of the robot"
    if abs(factor - 1.0) < HEAVIER:
        words += f"; or all masses and inertias are {factor:.3g} times the URDF's"
    return words
