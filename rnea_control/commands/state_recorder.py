"""Records joint_states with the times at which they came, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from rnea_control.commands.evidence import State
from rnea_control.ros.rclpy_internals import SubscriptionWaitSet, WaitSetUnavailable

# BEST_EFFORT takes from every publisher. None may be lost while Python is busy.
STATES = QoSProfile(depth=200, reliability=ReliabilityPolicy.BEST_EFFORT)
# How long the thread waits before it looks whether it shall end, [s].
LONGEST_WAIT = 0.1


@dataclass(frozen=True)
class _Arrival:
    received: float
    clock: int
    simulated: int | None
    message: bytes


class StateRecorder:
    """Takes the states as bytes; reads them only at the end.

    Args:
        node: for the subscription alone; no executor may spin it, unless `needs_executor`.
        topic: of the states.
        simulated_time: gives the last time on /clock, [ns]; None without one.

    Attributes:
        needs_executor: whether this rclpy has no wait set, so that an executor must spin the node.
    """

    def __init__(self, node: Node, topic: str, simulated_time: Callable[[], int | None]) -> None:
        self._simulated_time = simulated_time
        self._arrivals: list[_Arrival] = []
        self._stopping = threading.Event()
        subscription = node.create_subscription(JointState, topic, self._keep, STATES, raw=True)
        try:
            self._wait_set = SubscriptionWaitSet(node.context, subscription)
        except WaitSetUnavailable:
            self.needs_executor = True
            return
        self.needs_executor = False
        self._thread = threading.Thread(target=self._record, name="state recorder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the recording."""
        self._stopping.set()
        if not self.needs_executor:
            self._thread.join()

    def states(self) -> tuple[State, ...]:
        """What was recorded, in the order that it came; to be called after `stop`."""
        return tuple(map(_state, self._arrivals))

    def _record(self) -> None:
        while not self._stopping.is_set():
            self._wait_set.wait(LONGEST_WAIT)
            while (taken := self._wait_set.take(0)) is not None:
                self._keep(taken[0])

    def _keep(self, message: bytes) -> None:
        self._arrivals.append(
            _Arrival(time.monotonic(), time.time_ns(), self._simulated_time(), message)
        )


def _state(arrival: _Arrival) -> State:
    message = deserialize_message(arrival.message, JointState)
    stamp = message.header.stamp
    return State(
        arrival.received,
        arrival.clock,
        arrival.simulated,
        stamp.sec * 1_000_000_000 + stamp.nanosec,
        tuple(message.name),
        tuple(message.position),
        tuple(message.velocity),
        tuple(message.effort),
    )
