"""Streams target poses of the tip at 50 Hz on `target_pose`: `python pose_streamer.py`, from a line
on stdin on.

The tip moves there and back along a line, over and over. Each further line on stdin changes the
targets from then on:

jump      the target is 1 m further
nan       the position is not a number
as before
"""

from __future__ import annotations

import math
import select
import sys
import time

import numpy as np
import rclpy
from fast_motion import READY, TIP, panda
from geometry_msgs.msg import PoseStamped
from rclpy.qos import QoSProfile

from rnea_control.dynamics import Workspace, forward_kinematics
from rnea_control.spatial.rotation import quaternion_of_rotation

PERIOD = 0.02  # time between two targets [s]
WAY = np.array([0.0, 0.16, 0.05])  # from one end of the line to the other [m]
LEG = 0.8  # time from one end to the other [s]


def start() -> np.ndarray:
    """Pose of the tip in the posture in which the arm starts."""
    model = panda().model
    poses = np.zeros((len(model.link_names), 4, 4))
    forward_kinematics(model, Workspace(model), READY, poses)
    return poses[model.link_names.index(TIP)]


def main() -> int:
    rclpy.init()
    node = rclpy.create_node("pose_streamer")
    publisher = node.create_publisher(PoseStamped, "target_pose", QoSProfile(depth=1))
    message, X = PoseStamped(), start()
    message.header.frame_id = panda().model.root_link
    turn = message.pose.orientation
    rotation = tuple(X[:3, :3].ravel().tolist())
    turn.x, turn.y, turn.z, turn.w = quaternion_of_rotation(rotation)
    print("ready", flush=True)
    if not sys.stdin.readline():
        return 0
    while not publisher.get_subscription_count():
        time.sleep(0.01)
    begin = due = time.monotonic()
    kind = ""
    while rclpy.ok():
        if select.select([sys.stdin], [], [], 0.0)[0]:
            line = sys.stdin.readline()
            if not line:
                return 0
            kind = line.strip()
        t = time.monotonic() - begin
        p = X[:3, 3] + 0.5 * WAY * (1.0 - math.cos(math.pi * t / LEG))
        if kind == "jump":
            p[0] += 1.0
        elif kind == "nan":
            p[0] = math.nan
        place = message.pose.position
        place.x, place.y, place.z = p.tolist()
        publisher.publish(message)
        due = max(due + PERIOD, time.monotonic())
        time.sleep(max(due - time.monotonic(), 0.0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
