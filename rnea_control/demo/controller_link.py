"""What the demo says to the controller and hears of it: the trajectory, by the action where
control_msgs is installed, else by the topic; and what it reports of itself during a run."""

from __future__ import annotations

from array import array

from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import TransitionEvent
from rclpy.action import ActionClient
from rclpy.action.client import ClientGoalHandle
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
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

CONTROLLER = "rnea_controller"
LATCHED = QoSProfile(depth=20, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# The modes of an undisturbed run.
FOLLOWING = "moving"
EXPECTED = {"holding", FOLLOWING}

# Counts in the controller's diagnostics that do not rise in an undisturbed run.
COUNTS = {
    "gave way": "the controller gave way to the arm",
    "gaps in states": "joint states did not come in time",
    "states refused": "the controller refused joint states",
    "trajectories dropped": "the controller dropped the trajectory, as the states' stamps jumped",
}


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


class ControllerWatch:
    """Collects modes and diagnostics of the controller in a node's namespace.

    Args:
        node: that listens.

    Attributes:
        reports: how many diagnostics have come.
        values: of the last one.
    """

    def __init__(self, node: Node) -> None:
        self.reports = 0
        self.values: dict[str, str] = {}
        self._controller = f"{node.get_namespace()}/{CONTROLLER}".lstrip("/")
        self._before: dict[str, str] = {}
        self._modes: list[TransitionEvent] = []
        node.create_subscription(DiagnosticArray, "/diagnostics", self._note_report, 10)
        node.create_subscription(TransitionEvent, f"{CONTROLLER}/mode", self._modes.append, LATCHED)

    @property
    def latency(self) -> str:
        """From the stamp of a state to the command, in words."""
        return self.values.get("state age, since activation", "not reported")

    def begin(self) -> None:
        """The run begins: what was before does not count."""
        self._before = dict(self.values)
        self._modes.clear()

    def incidents(self) -> tuple[str, ...]:
        """What has happened since `begin`, a sentence each."""
        found = []
        for event in self._modes:
            mode, reason = event.goal_state.label, event.transition.label
            if mode not in EXPECTED:
                found.append(f"the controller's mode became {mode}: {reason}")
        if all(event.goal_state.label != FOLLOWING for event in self._modes):
            found.append("the controller did not follow the trajectory")
        for key, words in COUNTS.items():
            count = self._count(self.values, key) - self._count(self._before, key)
            if count > 0:
                found.append(f"{words} ({count} times)" if count > 1 else words)
        return tuple(found)

    def _note_report(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.startswith(self._controller):
                self.values = {value.key: value.value for value in status.values}
                self.reports += 1

    @staticmethod
    def _count(values: dict[str, str], key: str) -> int:
        return int(values.get(key, "0"))
