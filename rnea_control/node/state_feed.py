"""Brings joint states and emergency stops to the control loop: by a thread of its own, which waits
for both, or by the node's executor."""

from __future__ import annotations

import threading
import time
import traceback

from lifecycle_msgs.msg import TransitionEvent
from rclpy.clock import Clock, ClockType
from rclpy.guard_condition import GuardCondition
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool

from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.sentinel_link import SENTINEL
from rnea_control.ros import native_loop as native
from rnea_control.ros.effort_command import EffortCommand, publisher_names
from rnea_control.ros.native_loop import PREDICTION_PERIOD
from rnea_control.ros.native_ticks import NativeTicks
from rnea_control.ros.qos import LATCHED, STATES
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.rclpy_internals import WaitSetUnavailable
from rnea_control.ros.real_time import RealTime

# Whatever the QoS of who stops the arm, one of these hears it: a message that waited for the
# controller, one that its publisher sends again if it is lost, or one that it sends once.
EMERGENCY_STOP = "~/emergency_stop"
STOPS = (
    QoSProfile(
        depth=10,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    ),
    QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE),
    QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT),
)
# Of the subscriptions beside that of the states: the stops, and the sentinel's mode.
KINDS = (*[native.STOP] * len(STOPS), native.MODE)
# How long the thread waits for a state before it calls the watchdog, [s]; it is shorter while none
# comes.
LONGEST_WAIT = 0.05


class ThreadFeed:
    """A thread that does nothing but answer states, without the interpreter where that is possible.

    Raises:
        WaitSetUnavailable: with this rclpy.
    """

    def __init__(
        self,
        node: Node,
        loop: ControlLoop,
        real_time: RealTime,
        command: EffortCommand,
        attention: GuardCondition,
    ) -> None:
        self._node = node
        self._loop = loop
        self._real_time = real_time
        beside = [
            *((Bool, EMERGENCY_STOP, qos) for qos in STOPS),
            (TransitionEvent, f"{SENTINEL}/mode", LATCHED),
        ]
        self._subscription = RawSubscription(node, JointState, "joint_states", STATES, *beside)
        self.topic = node.resolve_topic_name("joint_states")
        self._stopping = False
        self._thread: threading.Thread | None = None
        table = self._subscription.addresses(command.publisher, command.message.memory, attention)
        self._ticks = None if table is None else NativeTicks(loop, table, KINDS)
        loop.newest_natively = None if self._ticks is None else self._ticks.newest

    def start(self) -> None:
        """Answers states from now on, none that came before; returns once the thread is set up."""
        self._stopping = False
        self._subscription.take(0.0)  # what came while the loop was inactive
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="control loop")
        self._thread.start()
        ready.wait()

    def stop(self) -> None:
        """Returns when the thread has ended and answers no more states."""
        self._stopping = True
        if self._thread is not None:
            self._loop.interrupt()
            self._thread.join()
            self._thread = None

    def idle(self, seconds: float) -> None:
        """Lets the loop run on for so long while the caller waits."""
        time.sleep(seconds)

    def publishers(self) -> int:
        """How many publishers of states there are."""
        return self._subscription.publishers()

    def publisher_names(self) -> list[str]:
        """The full names of the nodes that publish states."""
        return publisher_names(self._node, self.topic)

    def who_may_stop(self) -> dict[bytes, str]:
        """The names of the nodes that publish on the emergency stop, by GID."""
        return self._subscription.publishers_of(EMERGENCY_STOP)

    def destroy(self) -> None:
        """Takes the subscription down."""
        self.stop()
        if self._ticks is not None:
            self._loop.newest_natively = None
            self._ticks.destroy()
        self._subscription.destroy()

    def _run(self, ready: threading.Event) -> None:
        loop, take = self._loop, self._subscription.take
        tick, watch, stop, beside = loop.tick, loop.watch, loop.hear_stop, self._subscription.beside
        usual = min(LONGEST_WAIT, loop.longest_wait)
        wait = usual
        try:
            try:
                self._real_time.enter_thread()
            finally:
                ready.set()
            ticks = self._ticks
            while not self._stopping:
                taken = None
                if ticks is not None and ticks.possible():
                    reason, taken = ticks.run()
                    if reason in native.STEPPED:
                        loop.after_native(reason)
                        continue
                if taken is None:
                    taken = take(wait)
                answered = taken is not None and tick(*taken)
                for which, (message, _, publisher) in beside():
                    if KINDS[which - 1] == native.STOP:
                        stop(message, publisher)
                if answered:
                    wait = usual
                    continue
                if taken is None:
                    if not self._node.context.ok():
                        break
                    loop.hear_nothing()
                wait = PREDICTION_PERIOD if watch() else usual
        except Exception:  # a bug: the motors must not keep the torque of a moving arm
            self._loop.fail(f"the control loop has failed:\n{traceback.format_exc()}")


class ExecutorFeed:
    """States by the node's executor, beside its other work."""

    def __init__(self, node: Node, loop: ControlLoop, real_time: RealTime) -> None:
        self._node = node
        self._loop = loop
        self._real_time = real_time
        self._subscription = node.create_subscription(
            JointState, "joint_states", loop.tick, STATES, raw=True
        )
        self._stops = [
            node.create_subscription(Bool, EMERGENCY_STOP, loop.hear_stop, qos, raw=True)
            for qos in STOPS
        ]
        self.topic = node.resolve_topic_name("joint_states")
        self._watchdog = node.create_timer(
            loop.longest_wait,
            self._look,
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    def start(self) -> None:
        """Sets up the calling thread, which must be the executor's."""
        self._real_time.enter_thread()

    def stop(self) -> None:
        """Nothing to do."""

    def idle(self, seconds: float) -> None:
        """Lets the loop run on for so long while the caller, the executor's thread, waits: without
        states, which only the executor takes."""
        time.sleep(seconds)
        self._look()

    def _look(self) -> None:
        self._loop.hear_nothing()
        self._loop.watch()

    def publishers(self) -> int:
        """How many publishers of states there are."""
        return self._subscription.get_publisher_count()

    def publisher_names(self) -> list[str]:
        """The full names of the nodes that publish states."""
        return publisher_names(self._node, self.topic)

    def who_may_stop(self) -> None:
        """Not known: rclpy hands no GID on."""

    def destroy(self) -> None:
        """Takes the subscription and the watchdog down."""
        self._node.destroy_timer(self._watchdog)
        for subscription in (self._subscription, *self._stops):
            self._node.destroy_subscription(subscription)


StateFeed = ThreadFeed | ExecutorFeed


def state_feed(
    node: Node,
    loop: ControlLoop,
    real_time: RealTime,
    command: EffortCommand,
    attention: GuardCondition,
) -> StateFeed:
    """A feed by a thread of its own, or by the executor where this rclpy does not allow that.

    Args:
        node, loop, real_time: whose states are answered, and how.
        command: publishes the torques.
        attention: is triggered when machine code has news for Python.
    """
    try:
        return ThreadFeed(node, loop, real_time, command, attention)
    except WaitSetUnavailable as error:
        node.get_logger().warning(
            f"the executor takes the joint states, which costs more CPU time: {error}", once=True
        )
        return ExecutorFeed(node, loop, real_time)
