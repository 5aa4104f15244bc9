"""An action server that reports each point of a goal and says how many there were."""

from __future__ import annotations

import time

import rclpy
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer
from rclpy.action.server import ServerGoalHandle

ACTION = "/arm_controller/follow_joint_trajectory"
FEEDBACK = f"{ACTION}/_action/feedback"


def main() -> None:
    rclpy.init()
    node = rclpy.create_node("arm_controller")

    def execute(handle: ServerGoalHandle) -> FollowJointTrajectory.Result:
        goal = handle.request
        while node.count_subscribers(FEEDBACK) == 0:
            time.sleep(0.01)
        for point in goal.trajectory.points:
            feedback = FollowJointTrajectory.Feedback(joint_names=goal.trajectory.joint_names)
            feedback.desired = point
            handle.publish_feedback(feedback)
        handle.succeed()
        result = FollowJointTrajectory.Result(error_code=FollowJointTrajectory.Result.SUCCESSFUL)
        tolerances = [f"{each.name} {each.position}" for each in goal.goal_tolerance]
        result.error_string = f"{len(goal.trajectory.points)} points within {tolerances}"
        return result

    server = ActionServer(node, FollowJointTrajectory, ACTION, execute)
    rclpy.spin(node)
    server.destroy()


if __name__ == "__main__":
    main()
