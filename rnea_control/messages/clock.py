"""Time of a rosgraph_msgs/Clock message."""

from __future__ import annotations

from rnea_control.exceptions import CdrError
from rnea_control.messages.cdr import CdrReader

SECOND = 1_000_000_000  # [ns]


def nanoseconds_of(message: CdrReader) -> int:
    """Time of the message [ns]; raises CdrError for bytes that are not a Clock, and for an invalid
    time."""
    seconds, nanoseconds = message.integer("sec", signed=True), message.integer("nanosec")
    if seconds < 0 or nanoseconds >= SECOND:
        raise CdrError(
            f"/clock: the time is {seconds} s and {nanoseconds} ns; seconds must be at least 0, "
            f"and nanoseconds less than {SECOND}"
        )
    return seconds * SECOND + nanoseconds
