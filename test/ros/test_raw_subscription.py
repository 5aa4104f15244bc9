"""A message wakes the thread that waits for it, whenever it comes."""

from __future__ import annotations

import ctypes
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
from dds import ros, wait_for
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import String, UInt64

from rnea_control.ros import raw_subscription, rcl_calls
from rnea_control.ros.publishers import publishers_of
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.rcl_calls import Proof, RclTable, RclUnavailable, Taken, takes_like_rclpy

QOS = QoSProfile(depth=10)
BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# Of a wait that is woken, no machine here takes this long, [s].
LONGEST_WAIT = 20.0
MESSAGES = 2000


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    with ros(89):
        node = rclpy.create_node("talker")
        yield node
        node.destroy_node()


@pytest.fixture(scope="module")
def topic(node: Node) -> Iterator[tuple[Publisher, RawSubscription]]:
    publisher = node.create_publisher(UInt64, "count", 1)
    subscription = RawSubscription(node, UInt64, "count", BEST_EFFORT)
    wait_for(lambda: publisher.get_subscription_count() and subscription.publishers())
    yield publisher, subscription
    subscription.destroy()


def count(message: int) -> bytes:
    return serialize_message(UInt64(data=message))


@contextmanager
def talker(publisher: Publisher, messages: int, pause: Callable[[], None]) -> Iterator[Callable]:
    """Publishes one message, after a pause, whenever it is asked to by what this gives."""
    asked = threading.Semaphore(0)

    def talk() -> None:
        for k in range(messages):
            if not asked.acquire(timeout=LONGEST_WAIT):
                return
            pause()
            publisher.publish(count(k))

    thread = threading.Thread(target=talk)
    thread.start()
    yield asked.release
    thread.join()


def test_no_wake_up_is_lost_between_take_and_wait(topic) -> None:
    """Messages come at every moment of the round that takes and waits; each is taken before the
    next is sent, so that one that is not seen would keep both waiting."""
    publisher, subscription = topic
    rng = random.Random(0)

    def pause() -> None:
        end = time.perf_counter() + rng.choice((0.0, 5e-6, 2e-5, 1e-4, 3e-4)) * rng.random()
        while time.perf_counter() < end:  # shorter than any sleep
            pass

    longest = 0.0
    with talker(publisher, MESSAGES, pause) as ask:
        for k in range(MESSAGES):
            ask()
            started = time.monotonic()
            taken = subscription.take(LONGEST_WAIT)
            longest = max(longest, time.monotonic() - started)
            assert taken is not None and taken[0] == count(k)
    assert longest < 0.5 * LONGEST_WAIT


def test_message_at_the_end_of_a_wait_is_not_lost(topic) -> None:
    """A wait that ends as the message comes leaves it to this take or the next."""
    publisher, subscription = topic
    with talker(publisher, 300, lambda: time.sleep(0.001 + 2e-4 * random.random())) as ask:
        for k in range(300):
            ask()
            deadline, taken = time.monotonic() + LONGEST_WAIT, None
            while taken is None and time.monotonic() < deadline:
                taken = subscription.take(0.0011)
            assert taken is not None and taken[0] == count(k)


def test_only_the_newest_of_several_is_taken_and_the_count_tells(topic) -> None:
    """What a controller misses that was held up: a queue of 1 keeps the last message."""
    publisher, subscription = topic
    publisher.publish(count(0))
    time.sleep(0.02)  # it is there before the wait
    first = subscription.take(LONGEST_WAIT)
    for k in range(1, 6):
        publisher.publish(count(k))
    time.sleep(0.2)
    started = time.monotonic()
    last = subscription.take(LONGEST_WAIT)
    assert time.monotonic() - started < 0.5 * LONGEST_WAIT
    assert first is not None and last is not None
    assert last[0] == count(5)
    if first[1] is not None:  # Cyclone DDS counts nothing
        assert last[1] - first[1] == 5
    started = time.monotonic()
    assert subscription.take(0.05) is None
    assert time.monotonic() - started >= 0.04


def test_what_nobody_has_waited_for_is_not_counted_all_at_once(topic) -> None:
    """In a day that is a hundred million messages, and seconds."""
    publisher, subscription = topic
    where = ctypes.c_void_p(int(subscription.table.array[rcl_calls.SEMAPHORE]))
    libc = ctypes.CDLL(None)
    for _ in range(5000):
        libc.sem_post(where)
    publisher.publish(count(1))
    assert subscription.take(LONGEST_WAIT).data == count(1)
    left = ctypes.c_int()
    libc.sem_getvalue(where, ctypes.byref(left))
    assert left.value >= 4000
    while subscription.take(0.001) is not None or left.value:
        libc.sem_getvalue(where, ctypes.byref(left))


# rcl takes messages by their addresses as rclpy does, and tells who has sent them.


def test_two_publishers_are_told_apart(node: Node) -> None:
    proof = takes_like_rclpy(89)
    assert proof
    one, two = (node.create_publisher(UInt64, "told", 10) for _ in range(2))
    subscription = RawSubscription(node, UInt64, "told", QOS, (String, "beside", QOS))
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
    names = subscription.publishers_of("told")
    if proof is Proof.BY_GID:
        for counts in seen.values():
            assert counts == list(range(counts[0], counts[0] + len(counts)))
        known = publishers_of(node, "told")
        assert {known[gid] for gid in seen} == {"/talker"}
        assert names.keys() == known.keys()
    else:
        assert names is None
    text = "x" * 100_000  # longer than the room there is at first
    beside.publish(String(data=text))
    started, heard = time.monotonic(), []
    while not heard and time.monotonic() < started + LONGEST_WAIT:
        assert subscription.take(LONGEST_WAIT) is None  # it wakes whoever waits
        heard += subscription.beside()
    assert time.monotonic() - started < 0.5 * LONGEST_WAIT
    ((which, found),) = heard
    assert which == 1
    assert deserialize_message(found.data, String).data == text
    assert found.publisher not in seen
    subscription.destroy()


def test_other_addresses_are_told(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    none = [SimpleNamespace(handle=object())]
    with pytest.raises(RclUnavailable):
        RclTable(none)
    with monkeypatch.context() as change:
        change.setattr(rcl_calls, "LIBRARY", "/nowhere.so")
        rcl_calls._libraries.cache_clear()
        with pytest.raises(RclUnavailable):
            RclTable(none)
    rcl_calls._libraries.cache_clear()


def test_without_addresses_an_executor_takes(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_subscription, "takes_like_rclpy", lambda domain: Proof.NOTHING)
    one, other = (node.create_publisher(UInt64, name, 10) for name in ("one", "other"))
    subscription = RawSubscription(node, UInt64, "one", QOS, (UInt64, "other", QOS))
    assert subscription.take(0.05) is None
    wait_for(lambda: one.get_subscription_count() and other.get_subscription_count())
    for k in range(3):
        other.publish(UInt64(data=k))
    one.publish(UInt64(data=7))
    found: list[Taken] = []
    wait_for(lambda: (taken := subscription.take(0.1)) and (found.append(taken) or found))
    assert [taken.data for taken in found] == [count(7)] and found[0].publisher is None
    assert subscription.publishers_of("one") is None
    beside: list[tuple[int, Taken]] = []
    while len(beside) < 3:
        assert subscription.take(0.1) is None
        beside += subscription.beside()
    assert [(which, taken.data) for which, taken in beside] == [(1, count(k)) for k in range(3)]
    counts = [taken.count for _, taken in beside]
    assert counts[0] is None or np.diff(counts).tolist() == [1, 1]  # Cyclone DDS counts nothing
    subscription.destroy()


def test_executor_looks_once_for_all_messages_beside_the_states(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look takes a tenth of a millisecond, in every tick."""
    monkeypatch.setattr(raw_subscription, "takes_like_rclpy", lambda domain: Proof.NOTHING)
    beside = [(String, f"beside_{k}", QOS) for k in range(6)]
    publishers = [node.create_publisher(String, name, QOS) for _, name, _ in beside]
    subscription = RawSubscription(node, UInt64, "idle", BEST_EFFORT, *beside)
    wait_for(lambda: all(each.get_subscription_count() for each in publishers))
    executor, looks = subscription._executor, []
    spin = executor.spin_once
    monkeypatch.setattr(executor, "spin_once", lambda *given: (looks.append(1), spin(*given)))
    assert list(subscription.beside()) == [] and len(looks) <= 2
    for k in (0, 5, 5):
        publishers[k].publish(String(data=str(k)))
    found: list[tuple[int, str]] = []

    def take() -> bool:
        found.extend(
            (index, deserialize_message(taken.data, String).data)
            for index, taken in subscription.beside()
        )
        return len(found) == 3

    wait_for(take)
    assert sorted(found) == [(1, "0"), (6, "5"), (6, "5")]
    subscription.destroy()
