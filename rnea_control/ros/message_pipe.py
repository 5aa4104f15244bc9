"""A pipe between two processes of the package; the node's executor handles its messages."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node


class MessagePipe:
    """One end of the pipe.

    Args:
        node: in whose executor messages are handled.
        connection: to the other process.
        handlers: by the first word of a message; called with the rest of it.
        on_close: called once when the other process has gone, also in the executor.
    """

    def __init__(
        self,
        node: Node,
        connection: Connection,
        handlers: dict[str, Callable[..., object]],
        on_close: Callable[[], object],
    ) -> None:
        self._node = node
        self._connection = connection
        self._handlers = handlers
        self._on_close = on_close
        self._received: deque[tuple[Any, ...]] = deque()  # an empty one is the last
        # In a group of its own: a callback may wait for a message.
        self._guard = node.create_guard_condition(self._handle, ReentrantCallbackGroup())
        self._thread = threading.Thread(target=self._receive, name="message pipe", daemon=True)
        self._thread.start()

    def send(self, *message: object) -> None:
        """Sends a message; does nothing if the other process has gone, which `on_close` tells."""
        with suppress(OSError):
            self._connection.send(message)

    def destroy(self) -> None:
        """Closes the pipe."""
        self._on_close = lambda: None
        with suppress(OSError):
            self._connection.send(())  # the other end answers by closing it
        self._thread.join()
        self._node.destroy_guard_condition(self._guard)

    def _receive(self) -> None:
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                message = ()
            self._received.append(message)
            self._guard.trigger()
            if not message:
                break
        self._connection.close()

    def _handle(self) -> None:
        while self._received:
            message = self._received.popleft()
            if not message:
                self._on_close()
                return
            word, *rest = message
            self._handlers[word](*rest)
