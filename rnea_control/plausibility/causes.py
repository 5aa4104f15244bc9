"""Causes of a difference between measured efforts and a model's torques, and the messages about
them.

The causes here are found in a recording and by the check of an arm at rest
(`model_check.py`). Causes that only a recording shows are in `identification/hypotheses/`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.exceptions import listed
from rnea_control.model.robot_model import RobotModel, units

HEAVIER = 0.5  # largest difference from 1 of a common scale that wrong masses may explain


@dataclass(frozen=True)
class Cause:
    """A cause, with the words for it."""

    name: str
    words: str  # finding; {rows} are joints with their numbers, {joints} the joints' names
    remedy: str  # what the user can do
    decided_by: str = ""  # recording that separates this cause from others that are as likely
    fitted: bool = False  # True if a fit compensates it; else it makes the fit's parameters wrong


GRAVITY = Cause(
    "gravity",
    "gravity {what}",
    "Set hardware_compensates_gravity to true if the hardware compensates gravity, to false if "
    "not; a recording needs the whole torque. Else correct the parameter gravity (in the root "
    "link's frame)",
    "the arm at rest in several postures, where its efforts are those of gravity alone",
)
UNIT = Cause(
    "unit",
    "the efforts {what}",
    "Are they in Nm and N? Motor currents need torque constant and gear ratio, Nmm a factor of "
    "0.001",
    "a known load in the hand, at rest: the efforts must rise by its weight times the lever",
)
PAYLOAD = Cause(
    "payload",
    "a load of {mass:+.3g} kg on {link}, center of mass [{center}] m in its frame",
    "Add it to payload.mass, or take it off if it is negative; rnea_identify fit --payload {link} "
    "measures mass and center of mass",
    fitted=True,
)
UNKNOWN = Cause(
    "unknown",
    "no cause that is known explains the efforts of {rows}",
    "Is the model that of this robot, with its zeros, its directions of the joints and its "
    "lengths, and are the joints' order and signs right?",
)


@dataclass(frozen=True, eq=False)
class Contribution:
    """A cause that was found.

    Attributes:
        cause: the cause.
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
        cause: the cause.
        model: the robot.
        which: mask of the joints concerned, shape (nv,).
        text: words for each of these joints, by its index.
        part: share of the residual, see `Contribution`.
        names: values of the other placeholders of the cause's words.
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
