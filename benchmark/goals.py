"""A client that has goals of 1000 points followed, one after the other, until SIGTERM.

    python goals.py <file>

It then writes into the file, as JSON, how many there were, how many of them were lost and why, and
how often the sentinel took the arm; the client has the controller take it back.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import rclpy
from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from lifecycle_msgs.msg import TransitionEvent
from load import CONTROLLER, trajectory
from rclpy.action import ActionClient
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger

POINTS = 1000  # points of a goal
STEP = 0.002  # time between two points [s]


def main(results: Path) -> None:
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    running = [True]
    signal.signal(signal.SIGTERM, lambda *_: running.clear())
    node = rclpy.create_node("client")
    counts = {"goals": 0, "lost": 0, "takeovers": 0}
    reasons: list[str] = []

    def hear(event: TransitionEvent) -> None:
        changed = event.start_state.label != event.goal_state.label
        counts["takeovers"] += changed and event.goal_state.label == "commanding"

    latched = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_subscription(TransitionEvent, "rnea_sentinel/mode", hear, latched)
    action = ActionClient(node, FollowJointTrajectory, f"{CONTROLLER}/follow_joint_trajectory")
    resume = node.create_client(Trigger, f"{CONTROLLER}/resume")
    points = trajectory(POINTS, STEP, ("velocities", "accelerations"))
    while running and not action.wait_for_server(0.1):
        pass
    while running:
        handle = action.send_goal_async(FollowJointTrajectory.Goal(trajectory=points))
        future, reached, reason = handle, False, "not accepted"
        for _ in range(2):  # the answer, and the result
            while running and not future.done():
                rclpy.spin_once(node, timeout_sec=0.1)
            if not running or not handle.result().accepted:
                break
            if future is handle:
                future = handle.result().get_result_async()
            else:
                reached = future.result().status == GoalStatus.STATUS_SUCCEEDED
                reason = future.result().result.error_string
        if running:
            counts["goals"] += 1
            counts["lost"] += not reached
            if not reached:
                reasons.append(reason)
                resume.call_async(Trigger.Request())
    results.write_text(json.dumps({**counts, "reasons": reasons}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
