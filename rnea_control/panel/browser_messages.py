"""What a browser may send to the page: the messages that the page needs, with numbers in bounds.

viser takes any message of its protocol. One of them would publish the page on the internet, others
replace callbacks, or store a position that no browser can show any more.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

from msgspec import Meta, MsgspecError, Struct, msgpack, structs

LARGEST = 1e9  # largest size of a number
LONGEST = 200_000  # bytes of a message

Text = Annotated[str, Meta(max_length=10_000)]
Name = Annotated[str, Meta(max_length=200)]
Three = tuple[float, float, float]
Four = tuple[float, float, float, float]
Value = bool | float | Text | Annotated[list[float], Meta(max_length=16)] | None


class _Message(Struct, tag_field="type", forbid_unknown_fields=True):
    """A message, whose field `type` is the name of its class."""


class _Updates(Struct, forbid_unknown_fields=True):
    value: Value


class GuiUpdateMessage(_Message):
    """An element has a new value."""

    uuid: Name
    updates: _Updates


class GuiButtonHoldMessage(_Message):
    """A button is held."""

    uuid: Name
    frequency: float


class GuiFormSubmitMessage(_Message):
    """A form is sent."""

    uuid: Name


class GuiFormDirtyMessage(_Message):
    """A form is changed."""

    uuid: Name


class CommandTriggerMessage(_Message):
    """A key is pressed."""

    uuid: Name


class ViewerCameraMessage(_Message):
    """The camera is moved; the first one completes a connection."""

    wxyz: Four
    position: Three
    fov: float
    near: float
    far: float
    image_height: int
    image_width: int
    look_at: Three
    up_direction: Three


class TransformControlsUpdateMessage(_Message):
    """The handle is moved."""

    name: Name
    wxyz: Four
    position: Three
    owner: Name = ""


class TransformControlsDragStartMessage(_Message):
    """The handle is grabbed."""

    name: Name
    owner: Name = ""


class TransformControlsDragEndMessage(_Message):
    """The handle is let go."""

    name: Name
    owner: Name = ""


_DECODER = msgpack.Decoder(
    GuiUpdateMessage
    | GuiButtonHoldMessage
    | GuiFormSubmitMessage
    | GuiFormDirtyMessage
    | CommandTriggerMessage
    | ViewerCameraMessage
    | TransformControlsUpdateMessage
    | TransformControlsDragStartMessage
    | TransformControlsDragEndMessage
)


def is_sound(raw: Any) -> bool:
    """True if a message of a browser may be handled."""
    if not isinstance(raw, bytes) or len(raw) > LONGEST:
        return False
    try:
        message = _DECODER.decode(raw)
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return _is_bounded(message)


def _is_bounded(value: Any) -> bool:
    """True if all numbers are finite and at most LARGEST."""
    if isinstance(value, Struct):
        return all(map(_is_bounded, structs.astuple(value)))
    if isinstance(value, list | tuple):
        return all(map(_is_bounded, value))
    if isinstance(value, float | int):
        return math.isfinite(value) and abs(value) <= LARGEST
    return True
