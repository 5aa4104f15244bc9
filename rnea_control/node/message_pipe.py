"""The pipe between the controller and the process of its action; the node's executor handles its
messages."""

from __future__ import annotations

import os
import struct
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import SimpleQueue
from socket import SHUT_RDWR, SO_SNDTIMEO, SOL_SOCKET, socket
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node

# Longest time that a full pipe waits for the other process to read; then it counts as ended [s].
LONGEST_SEND = 1
# Number of messages that may wait to be sent; if more would wait, the other process hangs.
MOST_WAITING = 1000


class MessagePipe:
    """One end of the pipe.

    Args:
        node: node whose executor handles the messages.
        end: end of a pair of connected sockets; the pipe closes it.
        handlers: handlers by the first word of a message; called with the rest of the message.
        on_close: called once in the executor when the other process has ended.

    Raises:
        OSError: no descriptor is free.
        RuntimeError: no thread is free.
    """

    def __init__(
        self,
        node: Node,
        end: socket,
        handlers: dict[str, Callable[..., object]],
        on_close: Callable[[], object],
    ) -> None:
        end.setsockopt(SOL_SOCKET, SO_SNDTIMEO, struct.pack("ll", LONGEST_SEND, 0))
        self._node, self._end = node, end
        self._connection = Connection(os.dup(end.fileno()))
        self._handlers, self._on_close = handlers, on_close
        self._received: deque[tuple[Any, ...]] = deque()  # an empty one is the last
        # In a group of its own: a callback may wait for a message.
        self._guard = node.create_guard_condition(self._handle, ReentrantCallbackGroup())
        self._waiting: SimpleQueue[tuple[object, ...]] = SimpleQueue()  # an empty one is the last
        self._threads = [
            threading.Thread(target=run, name="message pipe", daemon=True)
            for run in (self._receive, self._send)
        ]
        for thread in self._threads:
            try:
                thread.start()
            except RuntimeError:  # no thread is free
                self._take_down([each for each in self._threads if each.is_alive()])
                raise

    def send(self, *message: object) -> None:
        """Queues a message, and does not wait until it is sent. The message is lost if the other
        process has ended, or does not read any more; `on_close` is called then."""
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put(message)
        else:
            self._hang_up()

    def destroy(self) -> None:
        """Closes the pipe; the other process still receives what was sent, if it reads."""
        self._on_close = lambda: None
        self._waiting.put(())
        self._threads[1].join()  # it has then sent all waiting messages
        self._take_down(self._threads)

    def _take_down(self, running: list[threading.Thread]) -> None:
        self._hang_up()
        for thread in running:
            thread.join()
        self._node.destroy_guard_condition(self._guard)
        self._connection.close()
        self._end.close()

    def _hang_up(self) -> None:
        """Ends the receiving on both sides. Descriptors stay valid, as another thread uses them."""
        with suppress(OSError):  # the other process was first
            self._end.shutdown(SHUT_RDWR)

    def _send(self) -> None:
        while message := self._waiting.get():
            try:
                self._connection.send(message)
            except OSError:  # the other process ended or hangs; a partial message is lost
                self._hang_up()
                return

    def _receive(self) -> None:
        message: tuple[Any, ...] = (None,)
        while message:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                message = ()
            self._received.append(message)
            self._guard.trigger()

    def _handle(self) -> None:
        while self._received:
            message = self._received.popleft()
            if not message:
                self._on_close()
                return
            word, *rest = message
            self._handlers[word](*rest)
