"""The controller's link to the sentinel: news of it, and requests to it."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack

from lifecycle_msgs.msg import TransitionEvent
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from rnea_control.control.handover import UNHEARD, Phase
from rnea_control.exceptions import ControllerError
from rnea_control.node.control_loop import ControlLoop
from rnea_control.ros.arm_node import STEADY
from rnea_control.ros.effort_command import UNKNOWN
from rnea_control.ros.qos import COMMANDS, LATCHED
from rnea_control.ros.raw_subscription import RawSubscription

SENTINEL = "rnea_sentinel"
MODE = TransitionEvent, f"{SENTINEL}/mode", LATCHED
# A sentinel that has published no mode for this long has gone: five of its heartbeats, [s].
LONGEST_SILENCE = 0.5
# How long a new participant may take to discover those that are there, [s]: Fast DDS announces it
# five times within half of it, and on a busy machine answers come late.
DISCOVERY = 1.0
# How long the sentinel may take to give the arm, [s]; later it has taken it again.
LONGEST_ANSWER = 0.1
GONE = "rnea_sentinel has gone: nobody guards the arm"


class SentinelLink:
    """The sentinel, as the controller knows it.

    Args:
        node: of the controller.
        loop: that hears of it.
        command_topic: where both command.
        undo: takes it down again.
        born: when the node was made, by the steady clock, [s].

    Attributes:
        gone: whether it was there, and is heard no more.
    """

    def __init__(
        self, node: Node, loop: ControlLoop, command_topic: str, undo: ExitStack, born: float
    ) -> None:
        self._node, self._loop, self._topic, self._born = node, loop, command_topic, born
        self._label = ""
        self.gone = False
        self._heard_at = -math.inf
        self._silent = False  # when it was looked at last
        self._commands: RawSubscription | None = None
        kind, topic, qos = MODE
        modes = node.create_subscription(kind, topic, self._hear, qos)
        undo.callback(node.destroy_subscription, modes)
        # A node of its own, spun while an answer is waited for: a callback that awaits one keeps
        # rclpy's executor so busy that the answer is never taken.
        self._asking = Node(
            f"{node.get_name()}_asks_sentinel",
            namespace=node.get_namespace(),
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
        )
        undo.callback(self._asking.destroy_node)
        self._release = self._asking.create_client(Trigger, f"{SENTINEL}/release")
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._asking)
        undo.callback(self._executor.shutdown)
        undo.callback(self._listen, False)
        left = max(born + DISCOVERY - time.monotonic(), 0.0)
        self._discovery = node.create_timer(left, self._discovered, clock=STEADY)
        undo.callback(node.destroy_timer, self._discovery)

    @property
    def label(self) -> str:
        """Its mode; empty without one, `UNHEARD` while one may be there that was not heard yet."""
        if time.monotonic() - self._heard_at < LONGEST_SILENCE:
            return self._label
        if self._heard_at > 0.0:
            return ""
        new = time.monotonic() - self._born < DISCOVERY
        return UNHEARD if new or {SENTINEL, UNKNOWN} & self._seen() else ""

    @property
    def is_there(self) -> bool:
        """Whether it is heard, or known to be there."""
        return self.label not in ("", UNHEARD) or SENTINEL in self._seen()

    def _seen(self) -> set[str]:
        """`SENTINEL` if anything of it is discovered: its mode, or its publisher or subscription of
        the commands. Names are discovered after these, and are `UNKNOWN` until then."""
        node = self._node
        if node.count_publishers(f"{SENTINEL}/mode"):
            return {SENTINEL}
        ends = node.get_publishers_info_by_topic, node.get_subscriptions_info_by_topic
        infos = (info for end in ends for info in end(self._topic))
        space = node.get_namespace()
        return {i.node_name for i in infos if i.node_name == UNKNOWN or i.node_namespace == space}

    def await_it(self) -> bool:
        """Whether it is there, once one must have been discovered."""
        while not self.is_there and time.monotonic() - self._born < DISCOVERY:
            time.sleep(0.01)
        return self.is_there

    def _discovered(self) -> None:
        """A sentinel that is there must have been discovered."""
        self._discovery.cancel()
        if not self.label and self._loop.running:
            self._loop.hear_sentinel("")

    def take_back(self) -> str:
        """Asks it for the arm, once its torque is known, and waits for the answer; says what comes.

        Raises:
            ControllerError: it does not give the arm.
        """
        if not self._release.service_is_ready():
            raise ControllerError("the sentinel does not answer; it may just have ended")
        self._listen(self._loop.listens)
        deadline = time.monotonic() + LONGEST_ANSWER
        while not self._loop.knows_torque():  # it has just yielded: no torque may step
            if time.monotonic() > deadline:
                raise ControllerError("no command of the sentinel has come; call ~/resume again")
            time.sleep(0.001)
        asked_at = time.monotonic()
        future = self._release.call_async(Trigger.Request())
        self._executor.spin_until_future_complete(future, LONGEST_ANSWER)
        answer = future.result()
        if answer is None:
            self._release.remove_pending_request(future)
            raise ControllerError("the sentinel does not answer; call ~/resume again")
        if not answer.success:
            raise ControllerError(f"the sentinel does not give the arm: {answer.message}")
        if not self._loop.receive(asked_at):
            raise ControllerError("the arm was given too late; the sentinel takes it again")
        return "the controller holds the arm again"

    def look(self) -> None:
        """Once a second: whether it has gone, and whether its commands must be heard."""
        before, self._silent = self._silent, not self.label
        if self._silent and before:  # the first time this process may have been away itself
            if self._label and self._label != Phase.idle.value:
                self._node.get_logger().error(f"{GONE}; start it again")
                self.gone = True
            self._label = ""
            self._loop.hear_sentinel("")
        self._listen(self._loop.listens)

    def _hear(self, event: TransitionEvent) -> None:
        self._label, self._heard_at = event.goal_state.label, time.monotonic()
        self.gone = False
        if self._loop.running:
            self._loop.hear_sentinel(self._label)
            self._listen(self._loop.listens)

    def _listen(self, wanted: bool) -> None:
        """Has the loop hear the commands of the sentinel while that has the arm."""
        if wanted and self._commands is None:
            # The loop takes them itself, in time: the executor may be busy for long.
            kind, qos = Float64MultiArray, COMMANDS
            self._commands = RawSubscription(self._node, kind, self._topic, qos, own_context=False)
            self._loop.listen(self._commands.poll)
        elif not wanted and self._commands is not None:
            self._loop.listen(None)
            self._commands.destroy()
            self._commands = None
