"""Sends the demo's trajectory: by the action where control_msgs is installed, else by the topic."""

from __future__ import annotations

from array import array

from builtin_interfaces.msg import Duration
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_control.control import Waypoint
from rnea_control.demo.robots import DemoRobot
from rnea_control.exceptions import RneaControlError

try:
    from control_msgs.action import FollowJointTrajectory
except ModuleNotFoundError as missing:
    if missing.name != "control_msgs":
        raise
    FollowJointTrajectory = None

ACTION = "rnea_controller/follow_joint_trajectory"
TOPIC = "rnea_controller/joint_trajectory"


class Sender:
    """Sends one trajectory.

    Args:
        node: that sends it.
        robot: whose waypoints are sent.

    Attributes:
        report: how it was sent, and what came of it.
        aborted: why the action has given it up; empty if it has not.
    """

    def __init__(self, node: Node, robot: DemoRobot) -> None:
        self._robot = robot
        self._client = self._publisher = None
        self._refusal = self.aborted = ""
        if FollowJointTrajectory is None:
            self.report = f"the topic {TOPIC}, as control_msgs is not installed for the action"
            self._publisher = node.create_publisher(JointTrajectory, TOPIC, 1)
        else:
            self.report = f"the action {ACTION}, without a result so far"
            self._client = ActionClient(node, FollowJointTrajectory, ACTION)

    @property
    def is_ready(self) -> bool:
        """Whether the controller listens."""
        if self._client is not None:
            return self._client.server_is_ready()
        return self._publisher.get_subscription_count() > 0

    def send(self, start: int) -> None:
        """Sends the trajectory, which is to start at a stamp, [ns]."""
        message = _message(self._robot, start)
        if self._client is None:
            self._publisher.publish(message)
            return
        goal = FollowJointTrajectory.Goal(trajectory=message)
        self._client.send_goal_async(goal).add_done_callback(self._note_answer)

    def check(self) -> None:
        """Raises RneaControlError if the action has refused the trajectory."""
        if self._refusal:
            raise RneaControlError(self._refusal)

    def _note_answer(self, answer: Future) -> None:
        handle: ClientGoalHandle = answer.result()
        if handle.accepted:
            handle.get_result_async().add_done_callback(self._note_result)
        else:
            self._refusal = f"{ACTION} rejected the trajectory; the controller's output says why"

    def _note_result(self, result: Future) -> None:
        outcome = result.result().result
        if outcome.error_code == outcome.SUCCESSFUL:
            self.report = f"the action {ACTION}, which reports: {outcome.error_string}"
        else:
            self.aborted = f"the action aborted the trajectory: {outcome.error_string}"


def _message(robot: DemoRobot, start: int) -> JointTrajectory:
    message = JointTrajectory(joint_names=list(robot.model.joint_names))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(start, 1_000_000_000)
    message.points = [_point(waypoint) for waypoint in robot.waypoints]
    return message


def _point(waypoint: Waypoint) -> JointTrajectoryPoint:
    nanoseconds = round(1e9 * waypoint.time)
    return JointTrajectoryPoint(
        positions=array("d", waypoint.position),
        velocities=array("d", waypoint.velocity),
        accelerations=array("d", waypoint.acceleration),
        time_from_start=Duration(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9),
    )
