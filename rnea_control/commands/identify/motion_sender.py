"""`MotionSender`: has a controller follow a trajectory, and notices when that is over."""

from __future__ import annotations

import time
from collections.abc import Callable

from rcl_interfaces.msg import Log
from rclpy.node import Node
from rclpy.qos import QoSProfile

from rnea_control.identification.trajectory_file import TrajectoryFile
from rnea_control.ros.trajectory_client import TrajectoryClient, trajectory_message

# Levels of log messages, by rcl_interfaces/Log.
WARNING, ERROR = 30, 40
# So long the controller may be out of sight, [s].
ABSENCE = 5.0


class MotionSender(TrajectoryClient):
    """Sends a trajectory and notices its end, also by the topic, which has no answer.

    Args:
        node: that sends; an executor must spin it.
        controller: name of the controller's node.
        trajectory: to follow.
        newest_stamp: gives the stamp of the newest joint state, [ns]; 0 without one.

    Attributes:
        duration: of the trajectory, [s].
        words: what the controller has logged since, from warnings on.
    """

    def __init__(
        self,
        node: Node,
        controller: str,
        trajectory: TrajectoryFile,
        newest_stamp: Callable[[], int],
    ) -> None:
        super().__init__(node, controller)
        self.duration = float(trajectory.time[-1])
        self.words: list[str] = []
        self._message = trajectory_message(trajectory.joints, trajectory.points)
        self._newest_stamp = newest_stamp
        self._sent_at = self._seen = time.monotonic()
        self._stamp_at = 0
        node.create_subscription(Log, "/rosout", self._hear, QoSProfile(depth=100))

    def start(self) -> None:
        """Sends the trajectory."""
        self._sent_at = self._seen = time.monotonic()
        self._stamp_at = self._newest_stamp()
        self.send(self._message)

    def check(self) -> None:
        """Looks whether the motion has ended."""
        now = time.monotonic()
        if self.is_there:
            self._seen = now
        if now - self._seen > ABSENCE:
            self.end(f"{self.controller} is gone; see its output")
        if not self.by_action and not self.ended:
            stamp = self._newest_stamp()
            elapsed = 1e-9 * (stamp - self._stamp_at) if stamp else now - self._sent_at
            if elapsed >= self.duration:
                self.end()

    def stop(self) -> str:
        """Has the motion ended early; returns what is left to do for the user."""
        if self.by_action:
            self.cancel()
            return ""
        self.end()
        return (
            "the controller goes on with the trajectory, which came by the topic; to stop it: ros2 "
            f"service call {self.controller}/hold std_srvs/srv/Trigger"
        )

    def _hear(self, message: Log) -> None:
        logger = self.controller.strip("/").replace("/", ".")
        if message.name != logger or message.level < WARNING:
            return
        self.words.append(f"{self.controller}: {message.msg}")
        # The topic has no answer: the log has it.
        if self.way and not self.by_action and message.level >= ERROR:
            self.end(message.msg)
