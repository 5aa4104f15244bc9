"""Brings joint states to the control loop: in a thread of its own, or by the node's executor."""

from __future__ import annotations

import threading
import traceback

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.real_time import RealTime
from rnea_control.ros.raw_subscription import RawSubscription, WaitSetUnavailable

# Only the newest counts: a queue would answer old ones first.
STATES = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# How long the thread waits for a state before it looks about, [s].
LONGEST_WAIT = 0.05


class ThreadFeed:
    """A thread that does nothing but answer states.

    Raises:
        WaitSetUnavailable: with this rclpy.
    """

    def __init__(self, node: Node, loop: ControlLoop, real_time: RealTime) -> None:
        self._node = node
        self._loop = loop
        self._real_time = real_time
        self._subscription = RawSubscription(node, JointState, "joint_states", STATES)
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """States are answered from now on, none that came before; returns once set up."""
        self._stopping = False
        self._subscription.take(0.0)  # what may have come while nobody looked
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="control loop")
        self._thread.start()
        ready.wait()

    def stop(self) -> None:
        """Returns when no state will be answered any more."""
        self._stopping = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def publishers(self) -> int:
        """How many publishers of states there are."""
        return self._subscription.publishers()

    def destroy(self) -> None:
        """Takes the subscription down."""
        self.stop()
        self._subscription.destroy()

    def _run(self, ready: threading.Event) -> None:
        take, tick, watch = self._subscription.take, self._loop.tick, self._loop.watch
        wait = min(LONGEST_WAIT, 0.5 * self._loop.timeout)
        try:
            try:
                self._real_time.enter_thread()
            finally:
                ready.set()
            while not self._stopping:
                taken = take(wait)
                if taken is not None:
                    tick(*taken)
                elif not self._node.context.ok():
                    break
                watch()
        except Exception:  # a fault of ours; the motors must not keep a torque of motion
            self._loop.fail(f"the control loop has failed:\n{traceback.format_exc()}")


class ExecutorFeed:
    """States by the node's executor, among all else that it does."""

    def __init__(self, node: Node, loop: ControlLoop, real_time: RealTime) -> None:
        self._node = node
        self._real_time = real_time
        self._subscription = node.create_subscription(
            JointState, "joint_states", loop.tick, STATES, raw=True
        )
        self._watchdog = node.create_timer(
            0.5 * loop.timeout, loop.watch, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def start(self) -> None:
        """Nothing to do: the loop leaves states alone while it does not run."""
        self._real_time.enter_thread()

    def stop(self) -> None:
        """Nothing to do."""

    def publishers(self) -> int:
        """How many publishers of states there are."""
        return self._subscription.get_publisher_count()

    def destroy(self) -> None:
        """Takes the subscription and the watchdog down."""
        self._node.destroy_timer(self._watchdog)
        self._node.destroy_subscription(self._subscription)


def state_feed(node: Node, loop: ControlLoop, real_time: RealTime) -> ThreadFeed | ExecutorFeed:
    """A feed with its own thread, or, where this rclpy does not allow it, one by the executor."""
    try:
        return ThreadFeed(node, loop, real_time)
    except WaitSetUnavailable as error:
        node.get_logger().warning(
            f"states are taken by the executor, which costs more: no wait set of our own ({error})"
        )
        return ExecutorFeed(node, loop, real_time)
