"""What CdrWriter writes is read back by CdrReader, at any alignment."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnea_control.messages.cdr import CdrReader
from rnea_control.messages.cdr_writer import CdrWriter, write_time

text = st.text(max_size=9).filter(lambda text: "\0" not in text)
field = st.one_of(
    st.tuples(st.just("integer"), st.integers(0, 2**32 - 1)),
    st.tuples(st.just("string"), text),
    st.tuples(st.just("strings"), st.lists(text, max_size=4)),
    st.tuples(st.just("numbers"), st.lists(st.floats(allow_nan=False), max_size=4)),
    st.tuples(st.just("time"), st.integers(-(2**31) * 10**9, 2**31 * 10**9 - 1)),
)


@settings(deadline=None)
@given(st.lists(field, max_size=10))
def test_fields_are_read_back(fields) -> None:
    writer = CdrWriter()
    places = []
    for kind, value in fields:
        if kind == "time":
            places.append(writer.time())
        else:
            getattr(writer, kind)(len(value) if kind == "numbers" else value)
    message, views = writer.message(), iter(writer.views())
    times = [value for kind, value in fields if kind == "time"]
    for place, time in zip(places, times, strict=True):
        write_time(message, place, time)
    for kind, value in fields:
        if kind == "numbers":
            next(views)[:] = value
    reader = CdrReader(bytes(message), "message")
    for kind, value in fields:
        if kind == "time":
            assert reader.integer("", signed=True) * 10**9 + reader.integer("") == value
        elif kind == "numbers":
            start, count = reader.skip_numbers("")
            assert np.frombuffer(message, np.float64, count, start).tolist() == value
        else:
            assert getattr(reader, kind)("") == value
    assert reader.position == len(message)


def test_numbers_stand_where_float64_may_stand_in_memory() -> None:
    writer = CdrWriter()
    writer.string("ab")
    writer.numbers(3)
    writer.number()
    assert all(view.flags.aligned and view.flags.writeable for view in writer.views())


def test_no_field_is_added_once_the_message_is_viewed() -> None:
    writer = CdrWriter()
    message = writer.message()
    with pytest.raises(BufferError):
        writer.string("late")
    assert len(message) == 4
