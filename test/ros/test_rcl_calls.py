"""Messages that are taken by rcl's addresses come as by rclpy, and tell who has sent them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import rclpy
from dds import ros, wait_for
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from std_msgs.msg import String, UInt64

from rnea_control.ros import rcl_calls
from rnea_control.ros.effort_command import publishers_of
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.rcl_calls import RclSubscription, RclUnavailable, takes_like_rclpy

QOS = QoSProfile(depth=10)


def test_it_is_proven_here() -> None:
    with ros(90) as _:
        assert takes_like_rclpy(90)


def test_two_publishers_are_told_apart() -> None:
    with ros(90):
        node = rclpy.create_node("talker")
        one, two = (node.create_publisher(UInt64, "count", 10) for _ in range(2))
        subscription = RawSubscription(node, UInt64, "count", QOS, (String, "beside", QOS))
        beside = node.create_publisher(String, "beside", 10)
        wait_for(lambda: one.get_subscription_count() and two.get_subscription_count())
        wait_for(lambda: subscription.publishers() == 2)
        wait_for(beside.get_subscription_count)
        seen: dict[bytes, list[int]] = {}
        for k in range(5):
            for publisher in (one, two, one):
                publisher.publish(UInt64(data=k))
                taken = subscription.take(20.0)
                assert taken.data == serialize_message(UInt64(data=k))
                seen.setdefault(taken.publisher, []).append(taken.count)
        assert sorted(map(len, seen.values())) == [5, 10]
        for counts in seen.values():
            assert counts == list(range(counts[0], counts[0] + len(counts)))
        names = publishers_of(node, "count")
        assert {names[gid] for gid in seen} == {"/talker"}
        text = "x" * 100_000  # longer than the room there is at first
        beside.publish(String(data=text))
        wait_for(lambda: subscription.take(0.1) is None)
        (found,) = subscription.beside()
        assert found.data == serialize_message(String(data=text))
        assert found.publisher not in seen
        subscription.destroy()
        node.destroy_node()


def test_without_addresses_rclpy_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RclUnavailable):
        RclSubscription(SimpleNamespace(handle=object()))
    with monkeypatch.context() as change:
        change.setattr(rcl_calls, "LIBRARY", "/nowhere.so")
        rcl_calls._functions.cache_clear()
        with pytest.raises(RclUnavailable):
            RclSubscription(SimpleNamespace(handle=object()))
    rcl_calls._functions.cache_clear()
    monkeypatch.setattr("rnea_control.ros.raw_subscription.takes_like_rclpy", lambda domain: False)
    with ros(90):
        node = rclpy.create_node("talker")
        publisher = node.create_publisher(UInt64, "count", 1)
        subscription = RawSubscription(node, UInt64, "count", QOS)
        wait_for(lambda: publisher.get_subscription_count() and subscription.publishers())
        publisher.publish(UInt64(data=3))
        taken = subscription.take(20.0)
        assert taken.data == serialize_message(UInt64(data=3)) and taken.publisher is None
        assert subscription.publishers_of("count") is None
        subscription.destroy()
        node.destroy_node()
