"""The modes of a controller, and the table of what leads from one to another.

An `Event` counts in the modes of its row; it changes the mode, and has the arm do something. No
mode changes but by an event, and an emergency stop or a fault that was not resumed takes the place
of every mode in which the arm would be free (`Supervisor`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple


class Mode(Enum):
    """The modes of a controller; docs/safety.md draws the transitions."""

    INACTIVE = "inactive"
    """Answers no state."""
    WAITING = "waiting"
    """For a state that it may start from, or for somebody who takes the commands."""
    HOLDING = "holding"
    MOVING = "moving"
    """Follows a trajectory."""
    BRAKING = "braking"
    """Comes to rest after a motion that did not end at its goal."""
    GRAVITY_COMPENSATION = "gravity_compensation"
    """A hand guides the arm."""
    EMERGENCY_STOP = "emergency_stop"
    """Brakes, holds, and takes no trajectory."""
    FAULT = "fault"
    """The same, until the fault is reset."""
    BLIND = "blind"
    """No usable state comes: brakes and holds by the model."""
    GUARDED = "guarded"
    """The sentinel commands the arm."""


# Modes in which trajectories are taken; in which the arm is free; in which it brakes and holds,
# whatever the law; in which the controller has the arm; and in which it commands nothing.
TAKES_TRAJECTORIES = (Mode.HOLDING, Mode.MOVING, Mode.BRAKING)
FREE = (*TAKES_TRAJECTORIES, Mode.GRAVITY_COMPENSATION)
STOPPED = (Mode.EMERGENCY_STOP, Mode.FAULT)
HAS_ARM = (*FREE, *STOPPED, Mode.BLIND)
SILENT = (Mode.INACTIVE, Mode.GUARDED)
_NOT_BLIND = (*FREE, *STOPPED)


class Act(Enum):
    """The effect of an event on the arm's motion."""

    GOES_ON = "goes on"
    ENDS = "ends"
    """The arm goes on along its trajectory, if it is commanded."""
    BRAKES = "brakes"
    """Along its path; where a hand guides the arm, straight on."""
    IS_CAUGHT = "is caught"
    """Brakes from the measured state."""
    IS_GUIDED = "is guided"
    """By a hand."""


class Row(NamedTuple):
    """An event.

    Attributes:
        leads: to which mode from which. HOLDING stands for the law's own mode at rest.
        act: its effect on the arm's motion.
        besides: modes that stay, while the arm does the same.
    """

    leads: Mapping[Mode, Mode]
    act: Act = Act.GOES_ON
    besides: tuple[Mode, ...] = ()


def _from(modes: Iterable[Mode], to: Mode) -> dict[Mode, Mode]:
    return dict.fromkeys(modes, to)


class Event(Enum):
    """The events of a controller."""

    ACTIVATED = Row({Mode.INACTIVE: Mode.WAITING})
    DEACTIVATED = Row(_from((*HAS_ARM, Mode.WAITING, Mode.GUARDED), Mode.INACTIVE), Act.ENDS)
    LISTENERS_CHANGED = Row(_from((*HAS_ARM, Mode.WAITING), Mode.WAITING), Act.ENDS)
    """Somebody takes the commands now, or nobody does."""
    TAKEN_OVER = Row(_from((*HAS_ARM, Mode.WAITING, Mode.GUARDED), Mode.GUARDED), Act.ENDS)
    """The sentinel has the arm, or another node, which may turn out to be the sentinel."""
    STARTED = Row({Mode.WAITING: Mode.HOLDING})
    CAUGHT = Row(_from((Mode.WAITING, Mode.BLIND, Mode.GUARDED), Mode.BRAKING), Act.IS_CAUGHT)
    """The controller has an arm again that may move."""
    ADOPTED = Row(_from(TAKES_TRAJECTORIES, Mode.MOVING))
    """It follows another trajectory."""
    HELD = Row(_from(FREE, Mode.BRAKING), Act.BRAKES)
    """Told to hold, or the client cancels the motion."""
    ENDING = Row(
        _from((Mode.MOVING, Mode.GRAVITY_COMPENSATION), Mode.BRAKING),
        Act.BRAKES,
        (Mode.HOLDING, Mode.BRAKING, *STOPPED, Mode.BLIND),
    )
    """It is to be deactivated."""
    GUIDED = Row({Mode.HOLDING: Mode.GRAVITY_COMPENSATION}, Act.IS_GUIDED)
    LOST = Row(_from(_NOT_BLIND, Mode.BLIND), Act.BRAKES)
    """No state can be used."""
    PRESSED = Row(_from(_NOT_BLIND, Mode.EMERGENCY_STOP), Act.BRAKES, (Mode.BLIND,))
    FAILED = Row(
        _from((*FREE, Mode.FAULT), Mode.FAULT), Act.IS_CAUGHT, (Mode.EMERGENCY_STOP, Mode.BLIND)
    )
    RELEASED = Row(_from(STOPPED, Mode.BRAKING))
    """The emergency stop is resumed, or the fault reset."""
    BRAKED = Row(_from(FREE, Mode.BRAKING))
    """A step has made the arm brake."""
    RESTED = Row(_from((Mode.MOVING, Mode.BRAKING), Mode.HOLDING))
