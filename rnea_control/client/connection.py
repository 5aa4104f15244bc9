"""`Connection`: a node whose callbacks run in a thread, and that all other threads use by it."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillRuns  # another class before Python 3.11
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from rnea_control.exceptions import NotThere
from rnea_control.ros.conventions import QUIET
from rnea_control.ros.middleware import use_udp
from rnea_control.ros.rclpy_internals import InvalidHandle, RCLError

T = TypeVar("T")
GONE = (RCLError, InvalidHandle)  # errors of rclpy about a node or a context that is gone
Running = Callable[..., bool]
LOOK = 0.05  # longest time until a condition of the ROS graph is seen [s]
LONGEST_CALL = 5.0  # time limit for an answer [s]
LONGEST_END = 3.0  # time limit for the end of the thread [s]
_numbers = itertools.count()  # one process may have several clients


def always(signals: int = 1) -> bool:
    """`running` of a program that signals end by exceptions."""
    return True


class Connection:
    """A node and the thread of its callbacks.

    Args:
        name: first part of the node's name.
        namespace: namespace of the node.
        own_context: True for a ROS context of its own, beside one of the user's `rclpy.init`.
        running: False after the given number of signals, 1 by default; ends a wait.

    Attributes:
        node: the node. Only functions for `run` create, destroy, send and publish by it.
    """

    def __init__(
        self, name: str, namespace: str, own_context: bool = True, running: Running = always
    ) -> None:
        self._running = running
        use_udp()  # a new participant in shared memory can delay the controller's messages
        self._own_context: Context | None = None
        if own_context:
            self._own_context = Context()
            self._own_context.init()
        try:
            name = f"{name}_{os.getpid()}_{next(_numbers)}"
            self.node = Node(name, namespace=namespace, context=self._own_context, **QUIET)
        except Exception:
            self._shut_down()
            raise
        self._executor = SingleThreadedExecutor(context=self._own_context)
        self._executor.add_node(self.node)
        self._changed, self._ends = threading.Condition(), threading.Event()
        self._has_ended = False
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()  # for the thread
        self._guard = self.node.create_guard_condition(lambda: None)
        self._clients: dict[str, Any] = {}  # by service
        self._thread = threading.Thread(target=self._spin, name=name, daemon=True)
        self._thread.start()

    def wait(self, condition: Callable[[], Any], seconds: float, signals: int = 1) -> bool:
        """Waits for a condition; returns False if it does not hold after `seconds`, a number of
        signals, or the end of the thread."""

        def is_over() -> bool:
            return self.asks(condition) or self.has_ended or not self._running(signals)

        with self._changed:
            self._changed.wait_for(is_over, seconds)
        return self.asks(condition)

    @property
    def has_ended(self) -> bool:
        """True once the thread has ended, by `close` or as the ROS context was shut down."""
        return self._has_ended or not self.node.context.ok()

    def asks(self, condition: Callable[[], Any]) -> bool:
        """Value of a condition that may ask the ROS graph; False once the node is gone."""
        try:
            return bool(condition())
        except GONE:
            return False

    def run(self, function: Callable[[], T]) -> T:
        """Calls a function in the thread of the callbacks, as rclpy loses answers to requests of
        other threads; returns its result, or raises its error.

        Raises:
            NotThere: the thread has ended.
        """
        if threading.current_thread() is self._thread:
            return function()
        future: Future[T] = Future()

        def work() -> None:
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self._work.put(work)
        self._wake()
        deadline = time.monotonic() + LONGEST_CALL
        while not self.has_ended and time.monotonic() < deadline:
            with suppress(StillRuns):
                return future.result(LOOK)
        raise NotThere("the connection to ROS is closed")

    def call(
        self,
        kind: Any,
        service: str,
        request: Any,
        seconds: float = LONGEST_CALL,
        signals: int = 1,
    ) -> Any:
        """Response of a service.

        Args:
            kind: type of the service.
            service: name of the service.
            request: the request.
            seconds: time limit for the service, and for its answer [s].
            signals: number of signals that end the call.

        Raises:
            NotThere: the service does not exist, or does not answer.
        """
        if service not in self._clients:
            self._clients[service] = self.run(lambda: self.node.create_client(kind, service))
        client = self._clients[service]
        if not self.wait(client.service_is_ready, seconds, signals):
            raise NotThere(f"there is no service {client.srv_name}: does the controller run?")
        answer = self.run(lambda: client.call_async(request))
        if not self.wait(answer.done, seconds, signals):
            raise NotThere(f"{client.srv_name} does not answer within {seconds:g} s")
        return answer.result()

    def close(self) -> None:
        """Ends the thread, which destroys the node."""
        self._ends.set()
        self._wake()
        if threading.current_thread() is not self._thread:  # a garbage collector runs anywhere
            self._thread.join(LONGEST_END)

    def _wake(self) -> None:
        """Ends the wait of the thread."""
        with suppress(*GONE):
            self._guard.trigger()

    def _spin(self) -> None:
        try:
            while not self._ends.is_set():
                self._executor.spin_once(LOOK)
                while not self._work.empty():
                    self._work.get()()
                with self._changed:
                    self._changed.notify_all()
        except (ExternalShutdownException, *GONE):
            pass  # the user has shut down the context
        finally:
            self._has_ended = True
            self._executor.shutdown()
            self.node.destroy_node()
            self._shut_down()
            with self._changed:
                self._changed.notify_all()

    def _shut_down(self) -> None:
        if self._own_context is not None:
            self._own_context.try_shutdown()
