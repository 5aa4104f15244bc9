"""The topics of the controller's state."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from sensor_msgs.msg import JointState

from rnea_control.array_types import FloatArray
from rnea_control.control import ControllerState
from rnea_control.control.controller_state import TERMS, torque_terms
from rnea_control.dynamics import Workspace
from rnea_control.node.control_loop import ControlLoop
from rnea_control.ros.guarded_node import GuardedNode

# Makes a topic's message of a stamp, [ns], and the controller's state then.
Filled = Callable[[int, ControllerState], Any]


class StateTopics:
    """`~/torque_terms`, `~/external_torques`, and those that are added.

    A thread publishes the topics while somebody listens: a timer of rclpy's costs half a
    millisecond of CPU time each time. A tick only waits while the state is copied.

    Args:
        node, loop: of the controller.
        rate: how often the topics are published, [Hz].
        undo: takes the topics down, after `stop`.
    """

    def __init__(self, node: GuardedNode, loop: ControlLoop, rate: float, undo: ExitStack) -> None:
        self._node, self._loop, self._undo = node, loop, undo
        self._workspace = Workspace(loop.controller.model)
        names = loop.controller.model.joint_names
        self._terms = JointState(name=[f"{joint}/{term}" for joint in names for term in TERMS])
        self._external = JointState(name=list(names))
        self._topics: list[tuple[Any, Filled]] = []  # publishers
        self.add(JointState, "~/torque_terms", self._filled_terms)
        self.add(JointState, "~/external_torques", self._filled_external)
        self._period = 1.0 / rate
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def add(self, kind: type, topic: str, filled: Filled) -> None:
        """Publishes one more topic; to be called before anybody listens."""
        self._topics.append((self._node.until(self._undo, "publisher", kind, topic, 1), filled))

    def look_for_listeners(self) -> None:
        """Starts to publish if somebody listens, or stops; to be called now and then."""
        if self._thread is not None and not self._thread.is_alive():
            self._thread = None
            raise RuntimeError("its thread has ended")  # its own message says why
        if not any(publisher.get_subscription_count() for publisher, _ in self._topics):
            self.stop()
        elif self._thread is None:
            self._stopping.clear()
            thread = threading.Thread(target=self._run, name="state topics")
            thread.start()
            self._thread = thread

    def stop(self) -> None:
        """Publishes nothing any more."""
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

    def _filled_terms(self, stamp: int, state: ControllerState) -> JointState:
        model, settings = self._loop.controller.model, self._loop.controller.settings
        terms = torque_terms(model, self._workspace, settings, state)
        return fill_terms(self._terms, stamp, terms)

    def _filled_external(self, stamp: int, state: ControllerState) -> JointState:
        return fill_efforts(self._external, stamp, state.external_torque)


def fill_terms(message: JointState, stamp: int, terms: FloatArray) -> JointState:
    """Writes the terms of each joint into a message, and returns it. Every one is a name,
    `joint1/gravity`, with an effort: so tools that label efforts by their names label the terms.

    Args:
        message: with its names.
        stamp: of the header, [ns].
        terms: shape (len(TERMS), nv), [Nm] or [N].
    """
    return fill_efforts(message, stamp, terms.T.ravel())


def fill_efforts(message: JointState, stamp: int, efforts: FloatArray) -> JointState:
    """Writes efforts, shape (n,), [Nm] or [N], of a stamp, [ns], into a message that has their
    names, and returns it."""
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    message.effort = array("d", efforts)
    return message
