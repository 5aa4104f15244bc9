"""What the controller hears of the sentinel, and asks of it."""

from __future__ import annotations

import time
from contextlib import ExitStack

from lifecycle_msgs.msg import TransitionEvent
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from rnea_control.control import Mode
from rnea_control.exceptions import ControllerError
from rnea_control.node.control_loop import ControlLoop

SENTINEL = "rnea_sentinel"
MODES = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
COMMANDS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
# A sentinel that has published no mode for this long has gone: five of its heartbeats, [s].
LONGEST_SILENCE = 0.5


class SentinelLink:
    """The sentinel, as the controller knows it.

    Args:
        node: of the controller.
        command_topic: where both command.
        undo: takes it down again.

    Attributes:
        loop: that hears of it, once there is one.
    """

    def __init__(self, node: Node, command_topic: str, undo: ExitStack) -> None:
        self.loop: ControlLoop | None = None
        self._node = node
        self._topic = command_topic
        self._label = ""
        self._heard_at = -LONGEST_SILENCE
        self._commands: Subscription | None = None
        modes = node.create_subscription(TransitionEvent, f"{SENTINEL}/mode", self._hear, MODES)
        undo.callback(node.destroy_subscription, modes)
        self._release = node.create_client(Trigger, f"{SENTINEL}/release")
        undo.callback(node.destroy_client, self._release)
        undo.callback(self._listen, False)

    @property
    def label(self) -> str:
        """Its mode; empty without one."""
        return self._label if time.monotonic() - self._heard_at < LONGEST_SILENCE else ""

    async def take_back(self) -> str:
        """Asks it for the arm; says what comes.

        Raises:
            ControllerError: it does not give the arm.
        """
        if not self._release.service_is_ready():
            raise ControllerError("the sentinel does not answer; it may just have ended")
        asked_at = time.monotonic()
        answer = await self._release.call_async(Trigger.Request())
        if not answer.success:
            raise ControllerError(f"the sentinel does not give the arm: {answer.message}")
        if self.loop is None or not self.loop.receive(asked_at):
            raise ControllerError("the arm was given too late; the sentinel takes it again")
        return "the controller holds the arm again"

    def look(self) -> None:
        """Once a second: whether it has gone, and whether its commands must be heard."""
        if self.loop is None:
            return
        if not self.label:
            self.loop.hear_sentinel("")
        self._listen(self.loop.supervisor.mode is Mode.GUARDED)

    def _hear(self, event: TransitionEvent) -> None:
        self._label, self._heard_at = event.goal_state.label, time.monotonic()
        if self.loop is not None and self.loop.running:
            self.loop.hear_sentinel(self._label)
            self._listen(self.loop.supervisor.mode is Mode.GUARDED)

    def _listen(self, wanted: bool) -> None:
        """Hears the commands of the sentinel while that has the arm."""
        if wanted and self._commands is None:
            self._commands = self._node.create_subscription(
                Float64MultiArray, self._topic, self._hear_command, COMMANDS, raw=True
            )
        elif not wanted and self._commands is not None:
            self._node.destroy_subscription(self._commands)
            self._commands = None

    def _hear_command(self, message: bytes) -> None:
        if self.loop is not None:
            self.loop.hear_command(message)
