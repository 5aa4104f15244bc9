"""The causes by which measured efforts differ from a model's torques: what each is called, what to
do about it, and which recording tells it from others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Kind:
    """What is to say of a cause.

    Attributes:
        name: in a few words.
        remedy: what to do.
        decided_by: the recording that tells it from other causes.
        fitted: whether a fit makes up for it; the parameters are wrong otherwise.
    """

    name: str
    remedy: str
    decided_by: str = ""
    fitted: bool = False


class Cause(Enum):
    """The table of causes."""

    clipping = Kind(
        "efforts that are clipped",
        "Record a slower motion with less load, or let the driver report all of its range",
    )
    rounding = Kind(
        "efforts that are rounded",
        "Let the driver report finer steps, or record a faster motion with more torque",
    )
    gravity = Kind(
        "gravity in the efforts",
        "Does the hardware compensate gravity? Then set hardware_compensates_gravity: true, and "
        "record the whole torque; else correct the parameter gravity (in the root link's frame)",
        "the arm at rest in several postures, where its efforts are those of gravity alone",
    )
    sign = Kind(
        "sign of the efforts",
        "Reverse the sign in the hardware interface: an effort must push its joint towards larger "
        "positions",
        "a joint that moves alone, fast to and fro: friction must brake it",
    )
    exchange = Kind(
        "joints that are exchanged",
        "Correct the order of the joints or the wiring in the hardware interface",
        "each of the joints moving alone: its own effort must change",
    )
    unit = Kind(
        "unit of the efforts",
        "Are they in Nm and N? Motor currents need torque constant and gear ratio, Nmm a factor of "
        "0.001",
        "a known load in the hand, at rest: the efforts must rise by its weight times the lever",
    )
    clock = Kind(
        "clock of the efforts",
        "Let one clock stamp positions and efforts",
        "a longer motion: the delay must keep growing",
    )
    limit = Kind(
        "efforts beyond the URDF's limits",
        "Are they in Nm and N, and is <limit effort> right?",
    )
    unknown = Kind(
        "nothing that is known",
        "Is the recording of this robot, with its zeros, its directions of the joints and its "
        "lengths, and are the joints' order and signs right?",
        "each joint moving alone",
    )
    delay = Kind("delay of the efforts", "A filter of the drives? fit makes up for it", fitted=True)
    payload = Kind(
        "load of the last link",
        "rnea_identify fit --payload {link} writes payload",
        "the same motion without any load",
        fitted=True,
    )
    masses = Kind(
        "masses, centers of mass and inertias of the URDF",
        "rnea_identify fit writes a new URDF",
        fitted=True,
    )
    offset = Kind(
        "constant offsets",
        "Set friction.<joint>.offset, or zero the torque sensors",
        fitted=True,
    )
    friction = Kind("friction", "rnea_identify fit writes friction.<joint>", fitted=True)
    rotor = Kind("rotor inertia", "rnea_identify fit writes armature.<joint>", fitted=True)


@dataclass(frozen=True, eq=False)
class Contribution:
    """A cause that was found.

    Attributes:
        cause: which.
        part: of what it could explain, and nothing before it, 0 to 1: for causes that no fit makes
            up for, of what no parameters of the robot explain; else of what is above the noise.
        joints: those that it is about.
        values: its numbers, such as one for each joint; see `Diagnosis`.
        sentence: what was found, with numbers, and what to do.
    """

    cause: Cause
    part: float
    joints: tuple[str, ...]
    values: tuple[float, ...]
    sentence: str


def told(
    cause: Cause,
    words: str,
    joints: Iterable[str] = (),
    values: Iterable[float] = (),
    part: float = 1.0,
    **names: str,
) -> Contribution:
    """A cause in words, with what to do about it; `names` go into that."""
    sentence = f"{words}. {cause.value.remedy.format(**names)}"
    return Contribution(cause, part, tuple(joints), tuple(map(float, values)), sentence)
