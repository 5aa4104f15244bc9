"""The terms of the torque as rclpy reads them."""

from __future__ import annotations

import numpy as np
from allocation import allocated
from builtin_interfaces.msg import Time
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from rnea_control.messages.torque_terms import TorqueTermsEncoder

name = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=9)


@settings(deadline=None)
@given(
    st.sampled_from([1, 2, 7]).flatmap(lambda n: st.lists(name, min_size=n, max_size=n)),
    st.lists(name, min_size=1, max_size=5),
    st.integers(0, 2**31 * 10**9 - 1),
    st.integers(0, 2**32),
)
def test_agrees_with_rclpys_serialisation(
    joint_names: list[str], terms: list[str], stamp: int, seed: int
) -> None:
    encoder, rng = TorqueTermsEncoder(joint_names, terms), np.random.default_rng(seed)
    for _ in range(2):
        values = rng.normal(size=(len(terms), len(joint_names)))
        data = encoder.encode(stamp, values)
        expected = JointState(
            header=Header(stamp=Time(sec=stamp // 10**9, nanosec=stamp % 10**9)),
            name=[f"{joint}/{term}" for joint in joint_names for term in terms],
            effort=[value for of_joint in values.T for value in of_joint],
        )
        assert deserialize_message(data, JointState) == expected


def test_encoding_keeps_no_memory() -> None:
    terms = ["gravity", "coriolis", "inertia", "friction", "feedback"]
    encoder = TorqueTermsEncoder([f"joint{i}" for i in range(7)], terms)
    values = np.ones((5, 7))
    counted = allocated(lambda: encoder.encode(1_500_000_000, values))
    assert counted["held"] <= 0
    assert counted["page faults"] == 0
    assert counted["peak"] < len(encoder.encode(0, values)) + 1000
