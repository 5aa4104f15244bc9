"""Streams joint targets at 50 Hz on `target_joint`: `python streamer.py`, from a line on stdin on.

The targets go there and back along the path of the fast motion, over and over. Each further line on
stdin changes them from then on:

jump      the elbow's target is 1 rad further
nan       the elbow's target is not a number
clock     stamps of a clock that is 100 s ahead
limit     the elbow moves to 0.3 rad beyond its upper limit
as before
"""

from __future__ import annotations

import math
import select
import sys
import time
from array import array

import numpy as np
import rclpy
from builtin_interfaces.msg import Time
from fast_motion import LEG, WAY, panda
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

PERIOD = 0.02  # time between two targets [s]
ELBOW = 3
AHEAD = 100 * 10**9  # difference of the other clock [ns]
BEYOND = 0.3  # distance of the farthest target from the elbow's limit [rad]
TO_THE_LIMIT = 1.0  # velocity toward the limit [rad/s]


def motion(t: float) -> np.ndarray:
    """Positions at time `t` [s]."""
    return panda().start + 0.5 * WAY * (1.0 - math.cos(math.pi * t / LEG))


def targets(kind: str, t: float, since: float) -> np.ndarray:
    """Targets at time `t` [s], of a kind that began at time `since`."""
    if kind == "limit":
        q = motion(since)
        farthest = panda().model.upper[ELBOW] + BEYOND
        q[ELBOW] = min(q[ELBOW] + TO_THE_LIMIT * (t - since), farthest)
        return q
    q = motion(t)
    if kind == "jump":
        q[ELBOW] += 1.0
    elif kind == "nan":
        q[ELBOW] = math.nan
    return q


def main() -> int:
    rclpy.init()
    node = rclpy.create_node("streamer")
    publisher = node.create_publisher(JointState, "target_joint", QoSProfile(depth=1))
    message = JointState(name=list(panda().model.joint_names))
    print("ready", flush=True)
    if not sys.stdin.readline():
        return 0
    while not publisher.get_subscription_count():
        time.sleep(0.01)
    begin = due = time.monotonic()
    kind, since = "", 0.0
    while rclpy.ok():
        t = time.monotonic() - begin
        if select.select([sys.stdin], [], [], 0.0)[0]:
            line = sys.stdin.readline()
            if not line:
                return 0
            kind, since = line.strip(), t
        stamp = time.time_ns() + (AHEAD if kind == "clock" else 0)
        message.header.stamp = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
        message.position = array("d", targets(kind, t, since))
        publisher.publish(message)
        due = max(due + PERIOD, time.monotonic())
        time.sleep(max(due - time.monotonic(), 0.0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
