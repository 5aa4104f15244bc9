"""Brings joint states and emergency stops to the control loop, by a thread of its own."""

from __future__ import annotations

from lifecycle_msgs.msg import TransitionEvent
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
from rnea_control.ros.qos import LATCHED, STATES
from rnea_control.ros.raw_subscription import subscription
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


class StateFeed:
    """A thread that does nothing but answer states, without the interpreter where that is possible.

    Args:
        node, loop, real_time: whose states are answered, and how.
        command: publishes the torques.
        attention: is triggered when machine code has news for Python.
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
        self._subscription = subscription(
            node,
            "the joint states",
            JointState,
            "joint_states",
            STATES,
            *((Bool, EMERGENCY_STOP, qos) for qos in STOPS),
            (TransitionEvent, f"{SENTINEL}/mode", LATCHED),
        )
        self.topic = node.resolve_topic_name("joint_states")
        self._stopping = False
        addresses = self._subscription.addresses
        loop.attach(addresses(command.publisher, command.message.memory, attention), KINDS)

    def start(self) -> None:
        """Answers states from now on, none that came before; returns once the thread is set up."""
        self._stopping = False
        self._subscription.take(0.0)  # what came while the loop was inactive
        self._loop.run_in_thread("control loop", self._real_time, self._run)

    def stop(self) -> None:
        """Returns when the thread has ended and answers no more states."""
        self._stopping = True
        self._loop.interrupt()
        self._loop.join()

    def publishers(self) -> int:
        """How many publishers of states there are."""
        return self._subscription.publishers()

    def publisher_names(self) -> list[str]:
        """The full names of the nodes that publish states."""
        return publisher_names(self._node, self.topic)

    def who_may_stop(self) -> dict[bytes, str] | None:
        """The names of the nodes that publish on the emergency stop, by GID; None if messages do
        not tell their publishers."""
        return self._subscription.publishers_of(EMERGENCY_STOP)

    def destroy(self) -> None:
        """Takes the subscription down."""
        self.stop()
        self._loop.detach()
        self._subscription.destroy()

    def _run(self) -> None:
        loop, take = self._loop, self._subscription.take
        tick, watch, stop, beside = loop.tick, loop.watch, loop.hear_stop, self._subscription.beside
        usual = min(LONGEST_WAIT, loop.longest_wait)
        wait = usual
        while not self._stopping:
            taken = None
            if loop.may_run_natively():
                reason, taken = loop.run_natively()
                if reason in native.STEPPED:
                    loop.after_native(reason)
                    continue
            if taken is None:
                taken = take(wait)
            for which, (message, _, publisher) in beside():
                if KINDS[which - 1] == native.STOP:
                    stop(message, publisher)
            if taken is not None and tick(*taken):
                wait = usual
                continue
            if taken is None:
                if not self._node.context.ok():
                    break
                if self._subscription.knows():
                    loop.hear_nothing()
            wait = PREDICTION_PERIOD if watch() else usual
