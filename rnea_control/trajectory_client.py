"""`TrajectoryClient`: sends trajectories to a controller, one after the other, and receives the
results."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
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

GRACE = 3.0  # time for the discovery of the action, after that of the topic [s]


class TrajectoryClient:
    """Sends trajectories by the action of a controller, or by its topic if the action is missing or
    control_msgs is not installed. The attributes are about the last trajectory.

    Args:
        node: node of the client; an executor must spin it.
        controller: name of the controller's node.

    Attributes:
        controller: full name of the controller's node.
        way: "the action ..." or "the topic ..." by which the trajectory was sent; empty before.
        by_action: True if the action is used.
        ended: True after the motion, as reported by the action.
        accepted: True if the action has accepted the goal.
        rejected: True if the action has rejected the goal.
        failure: why the goal was rejected or aborted; empty otherwise.
        result: `error_string` of a goal that succeeded.
        status: status of the result, from action_msgs/GoalStatus.
        code: `error_code` of the result.
    """

    def __init__(self, node: Node, controller: str) -> None:
        self.controller = node.resolve_topic_name(controller)
        self.way = self.failure = self.result = ""
        self.ended = self.accepted = self.rejected = self._cancels = False
        self.status = self.code = 0
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
        """True if the controller serves the action, or subscribes to the topic, that is used."""
        if self.by_action:
            return self._client.server_is_ready()
        return self._publisher.get_subscription_count() > 0

    @property
    def is_ready(self) -> bool:
        """True if the trajectory can be sent."""
        if self.is_there or not self._publisher.get_subscription_count():
            return self.is_there
        now = time.monotonic()
        self._topic_found = now if self._topic_found is None else self._topic_found
        return now - self._topic_found > GRACE

    @property
    def sought(self) -> str:
        """Names of the action and the topic, for messages."""
        return f"{self._action}, or {self._topic}" if self.by_action else self._topic

    def send(
        self, message: JointTrajectory, on_feedback: Callable[[Any], None] | None = None
    ) -> None:
        """Sends a trajectory; call it when `is_ready`, and the trajectory before has ended.

        Args:
            message: the trajectory.
            on_feedback: called with each feedback message of the action.
        """
        if self.way:
            self.ended = self.accepted = self.rejected = self._cancels = False
            self.failure = self.result = ""
        self.by_action = self.by_action and self.is_there
        self.way = self._action if self.by_action else self._topic
        if self.by_action:
            goal = FollowJointTrajectory.Goal(trajectory=message)
            answer = self._client.send_goal_async(goal, on_feedback)
            answer.add_done_callback(self._note_answer)
        else:
            self._publisher.publish(message)

    def another(self) -> TrajectoryClient:
        """A client for a further trajectory, by the same connection."""
        client = copy(self)
        client.way = client.failure = client.result = ""
        client.ended = client.accepted = client.rejected = client._cancels = False
        return client

    def cancel(self) -> None:
        """Cancels the goal of the action, now or once it is accepted. No effect with the topic."""
        self._cancels = True
        if self.accepted:
            self._handle.cancel_goal_async()

    def end(self, failure: str = "") -> None:
        """Marks the motion as over; keeps the first failure."""
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
            self.end("the controller rejected the goal; its log has the reason")

    def _note_result(self, result: Future) -> None:
        status, outcome = result.result().status, result.result().result
        self.status, self.code = status, outcome.error_code
        if status == GoalStatus.STATUS_CANCELED and not self._cancels:
            self.end("another client canceled the goal")
        elif outcome.error_code == outcome.SUCCESSFUL:
            self.result = outcome.error_string
            self.end()
        else:
            self.end(f"the controller aborted the goal: {outcome.error_string}")
