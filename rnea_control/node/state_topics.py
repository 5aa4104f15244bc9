"""Publication of the controller's state: the thread, and the messages of sensor_msgs."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable
from typing import Any

from sensor_msgs.msg import JointState

from rnea_control.array_types import FloatArray
from rnea_control.control import ControllerState, controller_state
from rnea_control.control.controller_state import TERMS
from rnea_control.dynamics import Workspace
from rnea_control.node.control_loop import ControlLoop
from rnea_control.ros.guarded_node import GuardedNode

# Fills a topic's message with the stamp [ns] and the controller's state; returns the message.
Filled = Callable[[int, ControllerState], Any]
# Prepares an empty message of a topic for a loop's joints; the result fills it.
Fill = Callable[[Any, ControlLoop], Filled]


class StateTopics:
    """Thread that publishes the topics of the controller's state while they have a subscriber.

    A timer of rclpy would cost half a millisecond of CPU time for each message. A tick only waits
    while the state is copied.

    Args:
        node: node of the publishers.
        loop: control loop whose state is published.
        rate: rate of the messages [Hz].
    """

    def __init__(self, node: GuardedNode, loop: ControlLoop, rate: float) -> None:
        self._node, self._loop = node, loop
        self._topics: list[tuple[Any, Filled]] = []  # publishers, and what fills their messages
        self._period = 1.0 / rate
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def add(self, publisher: Any, filled: Filled) -> None:
        """Adds a topic. Call before the first `look_for_listeners`."""
        self._topics.append((publisher, filled))

    def look_for_listeners(self) -> None:
        """Starts the thread if a topic has a subscriber, or stops it. Call once a second."""
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
            raise RuntimeError("its thread has ended")  # the thread's own message has the reason
        if not any(publisher.get_subscription_count() for publisher, _ in self._topics):
            self.stop()
        elif self._thread is None:
            self._stopping.clear()
            thread = threading.Thread(target=self._run, name="state topics")
            thread.start()
            self._thread = thread

    def stop(self) -> None:
        """Ends the thread."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping.wait(due - time.monotonic()):
            snapshot = self._loop.snapshot()
            for publisher, filled in self._topics if snapshot else ():
                if publisher.get_subscription_count():
                    self._node.publish_or_log(publisher, filled(*snapshot))
            due = max(due + self._period, time.monotonic())


def torque_terms(message: JointState, loop: ControlLoop) -> Filled:
    """`~/torque_terms`: the terms of each joint's torque."""
    model, workspace = loop.controller.model, Workspace(loop.controller.model)
    message.name = [f"{joint}/{term}" for joint in model.joint_names for term in TERMS]

    def filled(stamp: int, state: ControllerState) -> JointState:
        model, settings = loop.controller.model, loop.controller.settings
        terms = controller_state.torque_terms(model, workspace, settings, state)
        return fill_terms(message, stamp, terms)

    return filled


def external_torques(message: JointState, loop: ControlLoop) -> Filled:
    """`~/external_torques`: the external torque of each joint."""
    message.name = list(loop.controller.model.joint_names)
    return lambda stamp, state: fill_efforts(message, stamp, state.external_torque)


def fill_terms(message: JointState, stamp: int, terms: FloatArray) -> JointState:
    """Writes the terms of each joint into a message, and returns it. Each term is a name,
    `joint1/gravity`, with an effort: tools that label efforts by their names label the terms.

    Args:
        message: message with its names.
        stamp: stamp of the header [ns].
        terms: shape (len(TERMS), nv), [Nm] or [N].
    """
    return fill_efforts(message, stamp, terms.T.ravel())


def fill_efforts(message: JointState, stamp: int, efforts: FloatArray) -> JointState:
    """Writes a stamp [ns] and efforts, shape (n,), [Nm] or [N], into a message that has their
    names, and returns it."""
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    message.effort = array("d", efforts)
    return message
