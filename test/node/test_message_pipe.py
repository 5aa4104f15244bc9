"""Whatever becomes of the other process, a pipe neither raises an error nor waits for ever."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from socket import socketpair

import pytest
import rclpy
from dds import ros, wait_for
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from rnea_control.node.message_pipe import LONGEST_SEND, MessagePipe

MESSAGE = bytes(10_000)


@pytest.fixture(scope="module")
def executor() -> Iterator[SingleThreadedExecutor]:
    with ros(68):
        executor = SingleThreadedExecutor()
        executor.add_node(rclpy.create_node("pipes"))
        yield executor


class Ends:
    def __init__(self, node: Node) -> None:
        ours, theirs = socketpair()
        self.other = Connection(theirs.detach())
        self.received: list[object] = []
        self.closed: list[bool] = []
        handlers = {"word": self.received.append}
        self.pipe = MessagePipe(node, ours, handlers, lambda: self.closed.append(True))


@pytest.fixture
def ends(executor: SingleThreadedExecutor) -> Iterator[Ends]:
    ends = Ends(executor.get_nodes()[0])
    yield ends
    ends.pipe.destroy()
    ends.other.close()


def test_messages_come_in_order(executor: SingleThreadedExecutor, ends: Ends) -> None:
    for number in range(100):
        ends.other.send(("word", number))
    wait_for(lambda: executor.spin_once(0.01) or len(ends.received) == 100)
    assert ends.received == list(range(100))


def test_other_end_may_close_in_the_middle_of_a_send(executor, ends) -> None:
    class Slow:
        """The other process goes while this is being written."""

        def __reduce__(self) -> tuple[type[int], tuple[()]]:
            ends.other.close()
            time.sleep(0.1)
            return int, ()

    ends.pipe.send("word", Slow())
    ends.pipe.send("word", 1)
    wait_for(lambda: executor.spin_once(0.01) or ends.closed)
    assert ends.closed == [True]


def test_other_end_that_does_not_read_counts_as_gone(executor, ends) -> None:
    started = time.monotonic()
    for _ in range(1000):
        ends.pipe.send("word", MESSAGE)
    assert time.monotonic() - started < 0.5 * LONGEST_SEND  # nobody waits for it
    wait_for(lambda: executor.spin_once(0.01) or ends.closed)
    assert ends.closed == [True]


def test_what_was_sent_is_received_after_the_end(executor: SingleThreadedExecutor) -> None:
    gc.collect()  # what other tests have left
    before = os.listdir("/proc/self/fd")
    ends = Ends(executor.get_nodes()[0])
    ends.other.send(("word", 0))  # that nobody handles any more
    ends.pipe.send("last", MESSAGE)
    ends.pipe.destroy()
    assert ends.other.recv() == ("last", MESSAGE)
    with pytest.raises(EOFError):
        ends.other.recv()
    ends.other.close()
    assert not ends.closed
    assert len(os.listdir("/proc/self/fd")) == len(before)
