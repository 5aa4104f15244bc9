"""A message wakes the thread that waits for it, whenever it comes."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest
import rclpy
from dds import ros, wait_for
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from std_msgs.msg import UInt64

from rnea_control.ros.raw_subscription import RawSubscription

BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# Of a wait that is woken, no machine here takes this long, [s].
LONGEST_WAIT = 20.0
MESSAGES = 3000


@pytest.fixture
def topic() -> Iterator[tuple[Publisher, RawSubscription]]:
    with ros(89):
        node = rclpy.create_node("talker")
        publisher = node.create_publisher(UInt64, "count", 1)
        subscription = RawSubscription(node, UInt64, "count", BEST_EFFORT)
        wait_for(lambda: publisher.get_subscription_count() and subscription.publishers())
        yield publisher, subscription
        subscription.destroy()
        node.destroy_node()


def count(message: int) -> bytes:
    return serialize_message(UInt64(data=message))


def test_message_that_is_there_before_the_wait(topic) -> None:
    """`take` does not wait for a wake-up that has come already."""
    publisher, subscription = topic
    for k in range(50):
        publisher.publish(count(k))
        time.sleep(0.02)  # it has arrived
        started = time.monotonic()
        taken = subscription.take(LONGEST_WAIT)
        assert taken is not None and taken[0] == count(k)
        assert time.monotonic() - started < 0.5 * LONGEST_WAIT
    assert subscription.take(0.0) is None


def test_no_wake_up_is_lost_between_take_and_wait(topic) -> None:
    """Messages come at every moment of the round that takes and waits; each is taken before the
    next is sent, so that one that is not seen would keep both waiting."""
    publisher, subscription = topic
    rng, ready = random.Random(0), threading.Semaphore(0)

    def talk() -> None:
        for k in range(MESSAGES):
            if not ready.acquire(timeout=LONGEST_WAIT):
                return
            end = time.perf_counter() + rng.choice((0.0, 5e-6, 2e-5, 1e-4, 3e-4)) * rng.random()
            while time.perf_counter() < end:  # shorter than any sleep
                pass
            publisher.publish(count(k))

    talker = threading.Thread(target=talk)
    talker.start()
    longest = 0.0
    for k in range(MESSAGES):
        ready.release()
        started = time.monotonic()
        taken = subscription.take(LONGEST_WAIT)
        longest = max(longest, time.monotonic() - started)
        assert taken is not None and taken[0] == count(k)
    talker.join()
    assert longest < 0.5 * LONGEST_WAIT


def test_message_at_the_end_of_a_wait_is_not_lost(topic) -> None:
    """A wait that ends as the message comes leaves it to this take or the next."""
    publisher, subscription = topic
    asked = threading.Semaphore(0)

    def talk() -> None:
        for k in range(500):
            if not asked.acquire(timeout=LONGEST_WAIT):
                return
            time.sleep(0.001 + 2e-4 * random.random())
            publisher.publish(count(k))

    talker = threading.Thread(target=talk)
    talker.start()
    for k in range(500):
        asked.release()
        deadline, taken = time.monotonic() + LONGEST_WAIT, None
        while taken is None and time.monotonic() < deadline:
            taken = subscription.take(0.0011)
        assert taken is not None and taken[0] == count(k)
    talker.join()


def test_only_the_newest_of_several_is_taken_and_the_count_tells(topic) -> None:
    """What a controller misses that was held up: a queue of 1 keeps the last message."""
    publisher, subscription = topic
    publisher.publish(count(0))
    first = subscription.take(LONGEST_WAIT)
    for k in range(1, 6):
        publisher.publish(count(k))
    time.sleep(0.2)
    last = subscription.take(LONGEST_WAIT)
    assert first is not None and last is not None
    assert last[0] == count(5)
    assert last[1] - first[1] == 5
    assert subscription.take(0.01) is None


def test_take_gives_up_after_its_timeout(topic) -> None:
    _, subscription = topic
    started = time.monotonic()
    assert subscription.take(0.05) is None
    assert time.monotonic() - started >= 0.04
