"""control_msgs as these tests have it: the same on the wire as the package of the distribution."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import rclpy
from build_interfaces import distribution, missing_tools
from builtin_interfaces.msg import Duration
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.task import Future
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

if find_spec("control_msgs") is None and missing_tools():
    pytest.skip(f"control_msgs: no {', '.join(missing_tools())}", allow_module_level=True)

from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import (
    JointComponentTolerance,
    JointTolerance,
    JointTrajectoryControllerState,
    SpeedScalingFactor,
)
from control_msgs.srv import QueryTrajectoryState
from trajectory_server import ACTION, FEEDBACK
from type_hash import type_hash

# Longer than anything here takes on an overloaded machine, [s].
PATIENCE = 60.0

# What the definitions of control_msgs 5.8.0 hash to. The hash of an action or a service covers all
# its messages.
HASHES = {
    "msg/JointComponentTolerance": (
        "739ea7566931944d33830fa10f1bf5e7a7fbdc3172bce7a7eaac642bd6e3ffa4"
    ),
    "msg/JointTolerance": "c254f9cece0f3b733017b6990fd46d1326e25242d6b8844398c97d9a88e7d648",
    "msg/JointTrajectoryControllerState": (
        "51d8dd89cc624cbe9daaeeb4d80d6de9b86168ffdc3be41fefc0953e3c26e480"
    ),
    "msg/SpeedScalingFactor": "0c240f349f2b74e33e8741f83e0f196ddeb6585923663876ed3c1f51f0566037",
    "srv/QueryTrajectoryState": "4a0935dffef18bc5b9e101c9d03d84e681ecd4cebd724b8f11fde008751a325a",
    "action/FollowJointTrajectory": (
        "738ebcb7a2d7cfa42f9f1001cc99ce3a4383d1cfe508015d9be8485e4b1c66f6"
    ),
    "action/FollowJointTrajectory_SendGoal": (
        "b13789dddc325a7a962825c45e28c77d37237ec129dd0c34dc5994562938c57f"
    ),
    "action/FollowJointTrajectory_GetResult": (
        "e3ceb38e3e1867c8dc0f46014df26e90eb93422f27e9e97f936e07f94be4bc8b"
    ),
    "action/FollowJointTrajectory_FeedbackMessage": (
        "80398fcb9674a79081a9906e2ccf0c804dd7cb15e22e362e606ee87186beab71"
    ),
}
# And those of 6.8.0, where the feedback of the action has two more fields.
if distribution() != "jazzy":
    HASHES |= {
        "action/FollowJointTrajectory": (
            "ff29901b2693f5deb847e96084a1c2cdb26e70b7c847be21859b70a55fb29cf0"
        ),
        "action/FollowJointTrajectory_FeedbackMessage": (
            "95618cc73912d99b9acaa17d2da5e832cb0bfdeede7534fa8ec600feca2a6c4b"
        ),
    }


@pytest.mark.skipif(distribution() == "humble", reason="humble knows no type hashes")
@pytest.mark.parametrize("name", HASHES)
def test_type_hashes_are_those_of_the_package(name: str) -> None:
    assert type_hash("control_msgs", name) == (1, HASHES[name])


HEADER = Header(frame_id="base")
POINT = JointTrajectoryPoint(positions=[0.5, -1.0], time_from_start=Duration(sec=1))
TRAJECTORY = JointTrajectory(joint_names=["a", "b"], points=[POINT])
TOLERANCE = JointTolerance(name="a", position=0.1, velocity=0.2, acceleration=0.3)
COMPONENT = JointComponentTolerance(joint_name="b", component=JointComponentTolerance.ROTATION)
MESSAGES = [
    TOLERANCE,
    COMPONENT,
    SpeedScalingFactor(factor=0.5),
    JointTrajectoryControllerState(
        header=HEADER, joint_names=["a", "b"], reference=POINT, speed_scaling_factor=0.5
    ),
    QueryTrajectoryState.Response(success=True, message="held", name=["a"], position=[0.5]),
    FollowJointTrajectory.Goal(
        trajectory=TRAJECTORY,
        path_tolerance=[TOLERANCE],
        component_goal_tolerance=[COMPONENT],
        goal_time_tolerance=Duration(nanosec=5),
    ),
    FollowJointTrajectory.Result(
        error_code=FollowJointTrajectory.Result.GOAL_TOLERANCE_VIOLATED, error_string="a"
    ),
    FollowJointTrajectory.Feedback(header=HEADER, joint_names=["a", "b"], actual=POINT),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_message_survives_serialisation(message: Any) -> None:
    raw = serialize_message(message)
    assert deserialize_message(raw, type(message)) == message


@pytest.fixture
def node() -> Iterator[Node]:
    rclpy.init()
    server = Path(__file__).with_name("trajectory_server.py")
    process = subprocess.Popen([sys.executable, server])
    try:
        yield rclpy.create_node("client")
    finally:
        # On SIGTERM rclpy may wait for ever, seldom.
        process.kill()
        process.wait()
        rclpy.try_shutdown()


def test_action_in_another_process_takes_a_goal(node: Node) -> None:
    client = ActionClient(node, FollowJointTrajectory, ACTION)
    assert client.wait_for_server(PATIENCE)
    goal = FollowJointTrajectory.Goal(trajectory=TRAJECTORY, goal_tolerance=[TOLERANCE])

    feedback = Future()
    accepted = client.send_goal_async(goal, lambda message: feedback.set_result(message.feedback))
    rclpy.spin_until_future_complete(node, accepted, timeout_sec=PATIENCE)
    done = accepted.result().get_result_async()
    for future in (done, feedback):
        rclpy.spin_until_future_complete(node, future, timeout_sec=PATIENCE)

    assert done.result().result.error_code == FollowJointTrajectory.Result.SUCCESSFUL
    assert done.result().result.error_string == "1 points within ['a 0.1']"
    assert (feedback.result().joint_names, feedback.result().desired) == (["a", "b"], POINT)

    (publisher,) = node.get_publishers_info_by_topic(FEEDBACK)
    announced = bytes(publisher.topic_type_hash.value).hex()
    assert announced == HASHES["action/FollowJointTrajectory_FeedbackMessage"]
