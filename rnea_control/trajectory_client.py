"""`TrajectoryClient`: has a controller follow a trajectory, and tells how that ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

try:
    from control_msgs.action import FollowJointTrajectory
except ModuleNotFoundError as missing:
    if missing.name != "control_msgs":
        raise
    FollowJointTrajectory = None

# The action is discovered later than the topic: how long the topic waits for it, [s].
GRACE = 3.0


class TrajectoryClient:
    """Sends one trajectory by the action of a controller, or by its topic where there is no action
    or control_msgs is not installed.

    An executor must spin `node`; `controller` names the node of the controller.

    Attributes:
        controller: its full name.
        way: by what the trajectory was sent; empty before.
        by_action: whether it is sent by the action.
        ended: whether the motion is over, as far as the action tells.
        accepted, rejected: whether the action has taken or refused it.
        failure: why it was refused or given up; empty if it was not.
        result: what the action says of a motion that succeeded.
    """

    def __init__(self, node: Node, controller: str) -> None:
        self.controller = node.resolve_topic_name(controller)
        self.way = self.failure = self.result = ""
        self.ended = self.accepted = self.rejected = self._cancels = False
        self.by_action = FollowJointTrajectory is not None
        name = f"{controller}/joint_trajectory"
        self._publisher = node.create_publisher(JointTrajectory, name, 1)
        self._topic = f"the topic {self._publisher.topic_name}"
        self._action = f"the action {self.controller}/follow_joint_trajectory"
        self._topic_found: float | None = None
        self._handle: Any = None
        if self.by_action:
            name = f"{controller}/follow_joint_trajectory"
            self._client = ActionClient(node, FollowJointTrajectory, name)

    @property
    def is_there(self) -> bool:
        """Whether the controller listens to the action or the topic that is used."""
        if self.by_action:
            return self._client.server_is_ready()
        return self._publisher.get_subscription_count() > 0

    @property
    def is_ready(self) -> bool:
        """Whether the trajectory can be sent."""
        if self.is_there or not self._publisher.get_subscription_count():
            return self.is_there
        now = time.monotonic()
        self._topic_found = now if self._topic_found is None else self._topic_found
        return now - self._topic_found > GRACE

    @property
    def sought(self) -> str:
        """What it looks for, for messages."""
        return f"{self._action}, or {self._topic}" if self.by_action else self._topic

    def send(
        self, message: JointTrajectory, on_feedback: Callable[[Any], None] | None = None
    ) -> None:
        """Sends a trajectory, once that is ready; `on_feedback` is given each message of feedback
        that the action sends."""
        self.by_action = self.by_action and self.is_there
        self.way = self._action if self.by_action else self._topic
        if self.by_action:
            goal = FollowJointTrajectory.Goal(trajectory=message)
            answer = self._client.send_goal_async(goal, on_feedback)
            answer.add_done_callback(self._note_answer)
        else:
            self._publisher.publish(message)

    def cancel(self) -> None:
        """Asks the action to end the motion, now or as soon as it has accepted it; the topic
        cannot."""
        self._cancels = True
        if self.accepted:
            self._handle.cancel_goal_async()

    def end(self, failure: str = "") -> None:
        """The motion is over; the first failure counts."""
        self.ended, self.failure = True, self.failure or failure

    def _note_answer(self, answer: Future) -> None:
        self._handle = answer.result()
        self.accepted = self._handle.accepted
        if self.accepted:
            self._handle.get_result_async().add_done_callback(self._note_result)
            if self._cancels:
                self._handle.cancel_goal_async()
        else:
            self.rejected = True
            self.end("the controller rejected the goal; its output says why")

    def _note_result(self, result: Future) -> None:
        status, outcome = result.result().status, result.result().result
        if status == GoalStatus.STATUS_CANCELED and not self._cancels:
            self.end("another client canceled the goal")
        elif outcome.error_code == outcome.SUCCESSFUL:
            self.result = outcome.error_string
            self.end()
        else:
            self.end(f"the controller aborted the goal: {outcome.error_string}")
