"""`MotionSender`: has a controller follow one trajectory, and tells how it ended."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from rcl_interfaces.msg import Log
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_control.identification.trajectory_file import TrajectoryFile

try:
    from control_msgs.action import FollowJointTrajectory
except ModuleNotFoundError as missing:
    if missing.name != "control_msgs":
        raise
    FollowJointTrajectory = None

# The action is discovered later than the topic: how long the topic waits for it, [s].
GRACE = 3.0
# Levels of log messages, by rcl_interfaces/Log.
WARNING, ERROR = 30, 40
# So long the controller may be out of sight, [s].
ABSENCE = 5.0


class MotionSender:
    """Sends by the action of a controller, or by its topic where there is no action.

    Args:
        node: that sends; an executor must spin it.
        controller: name of the controller's node.
        message: the trajectory.
        newest_stamp: gives the stamp of the newest joint state, [ns]; 0 without one.

    Attributes:
        duration: of the trajectory, [s].
        way: by what it was sent; empty before.
        ended: whether the motion is over.
        failure: why it was refused or given up; empty if it was not.
        words: what the controller has logged since, from warnings on.
    """

    def __init__(
        self, node: Node, controller: str, message: JointTrajectory, newest_stamp: Callable[[], int]
    ) -> None:
        last = message.points[-1].time_from_start
        self.duration = last.sec + 1e-9 * last.nanosec
        self.way = self.failure = ""
        self.ended = False
        self.words: list[str] = []
        self._message = message
        self._newest_stamp = newest_stamp
        self._controller = node.resolve_topic_name(controller)
        self._created = self._seen = time.monotonic()
        self._sent_at, self._stamp_at = 0.0, 0
        self._handle: Any = None
        self._publisher = node.create_publisher(
            JointTrajectory, f"{controller}/joint_trajectory", 1
        )
        self._topic = f"the topic {self._publisher.topic_name}"
        self._action = f"the action {self._controller}/follow_joint_trajectory"
        self._client = None
        if FollowJointTrajectory is not None:
            name = f"{controller}/follow_joint_trajectory"
            self._client = ActionClient(node, FollowJointTrajectory, name)
        node.create_subscription(Log, "/rosout", self._hear, QoSProfile(depth=100))

    @property
    def is_ready(self) -> bool:
        """Whether the controller listens."""
        waited = self._client is None or time.monotonic() - self._created > GRACE
        return self._has_action or (waited and self._publisher.get_subscription_count() > 0)

    @property
    def sought(self) -> str:
        """What it looks for, for messages."""
        return self._topic if self._client is None else f"{self._action}, or {self._topic}"

    def send(self) -> None:
        """Sends the trajectory."""
        self._sent_at = self._seen = time.monotonic()
        self._stamp_at = self._newest_stamp()
        if not self._has_action:
            self.way, self._client = self._topic, None
            self._publisher.publish(self._message)
            return
        self.way = self._action
        goal = FollowJointTrajectory.Goal(trajectory=self._message)
        self._client.send_goal_async(goal).add_done_callback(self._note_answer)

    def check(self) -> None:
        """Looks whether the motion has ended."""
        now = time.monotonic()
        if self._has_action if self._client else self._publisher.get_subscription_count():
            self._seen = now
        if now - self._seen > ABSENCE:
            self._end(f"{self._controller} is gone; see its output")
        if self._client is None and not self.ended:
            stamp = self._newest_stamp()
            elapsed = 1e-9 * (stamp - self._stamp_at) if stamp else now - self._sent_at
            if elapsed >= self.duration:
                self._end("")

    def cancel(self) -> str:
        """Has the motion ended early; returns what is left to do for the user."""
        if self._client is not None:
            if self._handle is not None:
                self._handle.cancel_goal_async()
            return ""
        self.ended = True
        return (
            "the controller goes on with the trajectory, which came by the topic; to stop it: ros2 "
            f"service call {self._controller}/hold std_srvs/srv/Trigger"
        )

    @property
    def _has_action(self) -> bool:
        return self._client is not None and self._client.server_is_ready()

    def _note_answer(self, answer: Future) -> None:
        self._handle = answer.result()
        if self._handle.accepted:
            self._handle.get_result_async().add_done_callback(self._note_result)
        else:
            self._end("the controller rejected the goal; its output says why")

    def _note_result(self, result: Future) -> None:
        outcome = result.result().result
        aborted = f"the controller aborted the goal: {outcome.error_string}"
        self._end("" if outcome.error_code == outcome.SUCCESSFUL else aborted)

    def _end(self, failure: str) -> None:
        self.ended, self.failure = True, self.failure or failure

    def _hear(self, message: Log) -> None:
        logger = self._controller.strip("/").replace("/", ".")
        if message.name != logger or message.level < WARNING:
            return
        self.words.append(f"{self._controller}: {message.msg}")
        # The topic has no answer: the log has it.
        if self.way and self._client is None and message.level >= ERROR:
            self._end(message.msg)


def trajectory_message(trajectory: TrajectoryFile) -> JointTrajectory:
    """The message, without a stamp: the motion starts when it comes."""
    message = JointTrajectory(joint_names=list(trajectory.joints))
    for i, seconds in enumerate(trajectory.time.tolist()):
        sec, nanosec = divmod(round(1e9 * seconds), 1_000_000_000)
        point = JointTrajectoryPoint(time_from_start=Duration(sec=sec, nanosec=nanosec))
        point.positions = array("d", trajectory.q[i])
        for field, values in (("velocities", trajectory.v), ("accelerations", trajectory.a)):
            if np.isfinite(values[i]).all():
                setattr(point, field, array("d", values[i]))
        message.points.append(point)
    return message
