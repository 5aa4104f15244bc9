"""Streams a stiffness or a wrench of the tip at 50 Hz: `python tip_settings_streamer.py
stiffness|wrench [NODE]`, from a line on stdin on. A sender with a name of its own sends other
numbers.

Each further line on stdin changes the messages from then on:

huge      numbers of 1e300
garbage   random bytes
storm     2000 messages a second
as before
"""

from __future__ import annotations

import random
import select
import sys
import time

import numpy as np
import rclpy
from fast_motion import panda
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import QoSProfile
from std_msgs.msg import Float64MultiArray

PERIOD, STORM = 0.02, 0.0005  # time between two messages [s]
STIFFNESS = np.array([400.0, 400.0, 400.0, 20.0, 20.0, 20.0])  # [N/m], [Nm/rad]
FORCE = 8.0  # along z [N]
HUGE = 1e300


def stiffness(factor: float) -> Float64MultiArray:
    return Float64MultiArray(data=(factor * STIFFNESS).tolist())


def wrench(factor: float) -> WrenchStamped:
    message = WrenchStamped()
    message.header.frame_id = panda().model.root_link
    message.wrench.force.z = factor * FORCE
    return message


KINDS = {"stiffness": (Float64MultiArray, stiffness), "wrench": (WrenchStamped, wrench)}


def main() -> int:
    what, *other = sys.argv[1:]
    kind, made = KINDS[what]
    rclpy.init()
    node = rclpy.create_node(other[0] if other else f"{what}_streamer")
    publisher = node.create_publisher(kind, f"target_{what}", QoSProfile(depth=1))
    usual, huge = made(0.5 if other else 1.0), made(HUGE)
    rng = random.Random(9)
    print("ready", flush=True)
    if not sys.stdin.readline():
        return 0
    while not publisher.get_subscription_count():
        time.sleep(0.01)
    change, due = "", time.monotonic()
    while rclpy.ok():
        if select.select([sys.stdin], [], [], 0.0)[0]:
            line = sys.stdin.readline()
            if not line:
                return 0
            change = line.strip()
        if change == "garbage":
            publisher.publish(rng.randbytes(rng.randrange(400)))
        else:
            publisher.publish(huge if change == "huge" else usual)
        due = max(due + (STORM if change == "storm" else PERIOD), time.monotonic())
        time.sleep(max(due - time.monotonic(), 0.0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
