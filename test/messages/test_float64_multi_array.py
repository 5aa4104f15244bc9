"""Float64MultiArray, the command message: to bytes and back, against rclpy, and fuzzed."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from allocation import allocated
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

from rnea_control.exceptions import RneaControlError
from rnea_control.messages.float64_multi_array import (
    Float64MultiArrayDecoder,
    Float64MultiArrayEncoder,
)

finite = st.floats(allow_nan=False, allow_infinity=False)


def message(values, labels=()) -> bytes:
    layout = MultiArrayLayout(
        dim=[MultiArrayDimension(label=label, size=1, stride=2) for label in labels], data_offset=0
    )
    return serialize_message(Float64MultiArray(layout=layout, data=values))


@settings(deadline=None)
@given(st.lists(st.floats(), min_size=1, max_size=20))
def test_encoded_is_what_rclpy_would_send(values: list[float]) -> None:
    encoder = Float64MultiArrayEncoder(len(values))
    encoder.values[:] = values
    back = deserialize_message(encoder.encode(), Float64MultiArray)
    np.testing.assert_array_equal(np.array(back.data), values)
    assert len(encoder.encode()) == len(message(values))


@settings(deadline=None)
@given(st.lists(finite, min_size=1, max_size=20), st.lists(st.text(max_size=9), max_size=4))
def test_decodes_what_rclpy_sends_with_any_layout(values: list[float], labels: list[str]) -> None:
    labels = [label.replace("\0", "") for label in labels]
    decoder = Float64MultiArrayDecoder(len(values))
    decoder.decode(message(values, labels))
    assert decoder.values.tolist() == values


def test_decodes_both_byte_orders_and_what_the_encoder_makes() -> None:
    decoder = Float64MultiArrayDecoder(2)
    for order in "<>":
        header = bytes([0, order == "<", 0, 0])
        decoder.decode(header + struct.pack(order + "IIII2d", 0, 0, 2, 0xABCD, 1.5, -2.5))
        assert decoder.values.tolist() == [1.5, -2.5]
    encoder = Float64MultiArrayEncoder(2)
    encoder.values[:] = 3.0, 4.0
    decoder.decode(encoder.encode())
    assert decoder.values.tolist() == [3.0, 4.0]


GOOD = message([1.0, 2.0], ["joints"])
WRONG = {
    "empty": (b"", "topic: the bytes begin with nothing"),
    "another encapsulation": (b"\0\7" + GOOD[2:], "begin with 00 07"),
    "header only": (GOOD[:4], "ends inside its layout.dim"),
    "truncated label": (GOOD[:10], r"ends inside its layout.dim\[0\].label"),
    "truncated numbers": (message([1.0, 2.0])[:-3], "ends inside its data"),
    "count of dimensions": (GOOD[:4] + b"\xff" * 4 + GOOD[8:], "topic: the message ends inside"),
    "no numbers": (message([]), "topic has 0 numbers; it must have 2"),
    "one number": (message([1.0]), "topic has 1 numbers; it must have 2"),
    "three numbers": (message([1.0, 2.0, 3.0], ["a", "b"]), "topic has 3 numbers; it must have 2"),
    "NaN": (message([1.0, np.nan], ["a"]), "topic: number 1 is nan; it must be finite"),
    "infinite": (message([-np.inf, 0.0]), "topic: number 0 is -inf; it must be finite"),
    "too long": (message([1.0, 2.0], ["x" * 5000]), r"topic has \d+ bytes; at most"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_bytes_are_refused_and_nothing_changes(name: str) -> None:
    data, words = WRONG[name]
    decoder = Float64MultiArrayDecoder(2, "topic")
    decoder.decode(message([5.0, 6.0]))
    with pytest.raises(RneaControlError, match=words):
        decoder.decode(data)
    assert decoder.values.tolist() == [5.0, 6.0]


def test_decoding_keeps_no_memory() -> None:
    decoder, data = Float64MultiArrayDecoder(7), message([1.0] * 7, ["joints"])
    counted = allocated(lambda: decoder.decode(data))
    assert counted["held"] == 0
    assert counted["page faults"] == 0
    assert counted["peak"] < 500  # the slice of the decoder's memory lives for an instant


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_hostile_bytes_give_finite_numbers_or_an_error(data) -> None:
    hostile = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 6))):
        hostile[data.draw(st.integers(0, len(hostile) - 1))] = data.draw(st.integers(0, 255))
    hostile = bytes(hostile[: data.draw(st.integers(0, len(hostile)))])
    decoder = Float64MultiArrayDecoder(2)
    try:
        decoder.decode(hostile)
    except RneaControlError:
        assert decoder.values.tolist() == [0.0, 0.0]
    assert np.isfinite(decoder.values).all()
