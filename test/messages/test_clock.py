"""The time of a /clock message, and bytes of which no decoder can make a message."""

from __future__ import annotations

import pytest
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock

from rnea_control.exceptions import CdrError, JointStateError
from rnea_control.messages.cdr import CdrReader, decoding
from rnea_control.messages.clock import nanoseconds_of


def clock(sec: int, nanosec: int = 0) -> bytes:
    message = Clock()
    message.clock.sec, message.clock.nanosec = sec, nanosec
    return serialize_message(message)


def test_time_of_a_clock() -> None:
    assert nanoseconds_of(CdrReader(clock(7, 5), "/clock")) == 7_000_000_005


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (clock(-1), "the time is -1 s and 0 ns"),
        (clock(0, 10**9), "nanoseconds less than"),
        (b"\x00\x01\x00\x00\x05", "ends inside its sec"),
        (b"", "begin with nothing"),
    ],
)
def test_message_that_is_no_time(data: bytes, words: str) -> None:
    with pytest.raises(CdrError, match=words):
        nanoseconds_of(CdrReader(data, "/clock"))


def test_whatever_a_decoder_raises_is_of_the_message() -> None:
    words = r"joint_states: .* ValueError: \\x1b\\n no such"
    with pytest.raises(CdrError, match=words) as found, decoding("joint_states"):
        raise ValueError("\x1b\n no such")
    assert str(found.value).isprintable()
    with pytest.raises(JointStateError), decoding("joint_states"):
        raise JointStateError("as it says")
