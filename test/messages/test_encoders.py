"""What is written is read back: by CdrReader, and by rclpy what the controller says of itself."""

from __future__ import annotations

import numpy as np
import pytest
from builtin_interfaces.msg import Duration, Time
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from rnea_control.messages.cdr import CdrReader, CdrWriter, write_time
from rnea_control.messages.controller_messages import ControllerStateEncoder, TorqueTermsEncoder

STATE = ("positions", "velocities")
KNOWN = {"feedback": STATE, "error": STATE, "output": ("effort",)}
KNOWN["reference"] = (*STATE, "accelerations", "effort")
name = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=9)
stamps = st.integers(0, 2**31 * 10**9 - 1)
names = st.sampled_from([1, 2, 7]).flatmap(lambda n: st.lists(name, min_size=n, max_size=n))


def header(stamp: int) -> Header:
    return Header(stamp=Time(sec=stamp // 10**9, nanosec=stamp % 10**9))


@settings(deadline=None)
@given(names, stamps, st.integers(0, 10**14), st.integers(0, 2**32))
def test_state_agrees_with_rclpys_serialization(joint_names, stamp, microseconds, seed) -> None:
    State = pytest.importorskip("control_msgs.msg").JointTrajectoryControllerState
    nv, rng = len(joint_names), np.random.default_rng(seed)
    encoder = ControllerStateEncoder(joint_names)
    for _ in range(2):  # nothing of the first message is left in the second
        stamp, microseconds, scaling = stamp // 2, microseconds // 2, rng.random()
        time = Duration(sec=microseconds // 10**6, nanosec=microseconds % 10**6 * 1000)
        expected = State(header=header(stamp), joint_names=joint_names)
        expected.reference.time_from_start = expected.feedback.time_from_start = time
        expected.speed_scaling_factor = scaling
        for point, fields in KNOWN.items():
            for field in fields:
                values = rng.normal(size=nv)
                getattr(getattr(encoder, point), field)[:] = values
                setattr(getattr(expected, point), field, values.tolist())
        data = encoder.encode(stamp, 1e-6 * microseconds, scaling)
        # rounding of the seconds may change the last nanoseconds
        message = deserialize_message(data, State)
        for point in (message.reference, message.feedback):
            rounded = point.time_from_start.sec * 10**9 + point.time_from_start.nanosec
            assert abs(rounded - 1000 * microseconds) < 30
            point.time_from_start = time
        assert message == expected


@settings(deadline=None)
@given(names, st.lists(name, min_size=1, max_size=5), stamps, st.integers(0, 2**32))
def test_torque_terms_agree_with_rclpys_serialization(joint_names, terms, stamp, seed) -> None:
    encoder, rng = TorqueTermsEncoder(joint_names, terms), np.random.default_rng(seed)
    for _ in range(2):
        values = rng.normal(size=(len(terms), len(joint_names)))
        data = encoder.encode(stamp, values)
        expected = JointState(header=header(stamp), effort=values.T.ravel().tolist())
        expected.name = [f"{joint}/{term}" for joint in joint_names for term in terms]
        assert deserialize_message(data, JointState) == expected


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
