"""The modes of a controller, and the only way from one to another."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from rnea_control.exceptions import ControllerError


class Mode(Enum):
    """What a controller does; docs/safety.md draws the transitions."""

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


# What every mode but INACTIVE may change to.
_ALWAYS = {
    Mode.INACTIVE,
    Mode.WAITING,
    Mode.EMERGENCY_STOP,
    Mode.FAULT,
    Mode.BLIND,
    Mode.GUARDED,
}
# What each mode may change to besides.
TRANSITIONS: dict[Mode, set[Mode]] = {
    Mode.INACTIVE: {Mode.WAITING},
    Mode.WAITING: {Mode.HOLDING, Mode.BRAKING, Mode.GRAVITY_COMPENSATION, *_ALWAYS} - {Mode.BLIND},
    Mode.HOLDING: {Mode.MOVING, Mode.BRAKING, Mode.GRAVITY_COMPENSATION, *_ALWAYS},
    Mode.MOVING: {Mode.HOLDING, Mode.BRAKING, *_ALWAYS},
    Mode.BRAKING: {Mode.HOLDING, Mode.MOVING, Mode.GRAVITY_COMPENSATION, *_ALWAYS},
    Mode.GRAVITY_COMPENSATION: {Mode.BRAKING, *_ALWAYS},
    Mode.EMERGENCY_STOP: {Mode.BRAKING, *_ALWAYS},
    Mode.FAULT: {Mode.BRAKING, *_ALWAYS},
    Mode.BLIND: {Mode.BRAKING, *_ALWAYS},
    Mode.GUARDED: {Mode.BRAKING, *_ALWAYS} - {Mode.BLIND, Mode.WAITING},
}


class Modes:
    """The mode that a controller is in.

    Args:
        on_change: called with the old mode, the new one and the reason, maybe in a tick: it must be
            quick.

    Attributes:
        mode: the present one.
        reason: why.
    """

    def __init__(self, on_change: Callable[[Mode, Mode, str], None]) -> None:
        self.mode = Mode.INACTIVE
        self.reason = "not activated yet"
        self._on_change = on_change

    def change(self, mode: Mode, reason: str) -> None:
        """Changes the mode; with the same mode, the reason.

        Raises:
            ControllerError: there is no such transition.
        """
        old = self.mode
        if mode is not old and mode not in TRANSITIONS[old]:
            raise ControllerError(f"the controller cannot change from {old.value} to {mode.value}")
        if mode is old and reason == self.reason:
            return
        self.mode, self.reason = mode, reason
        self._on_change(old, mode, reason)
