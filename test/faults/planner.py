"""Streams a planner's gains at 100 Hz on `control`: `python planner.py [NODE]`, from a line on
stdin on. A planner with a name of its own lets the arm fall.

As a model predictive controller does, it begins at the measured state: the torque accelerates the
arm toward the path of streamer.py, and the gains hold it there. Each further line on stdin changes
the messages from then on:

huge      torques of 1e300 Nm
stiff     gains that are a million times too large
garbage   random bytes
storm     as many messages as it can send, up to 2000 a second
as before
"""

from __future__ import annotations

import math
import random
import select
import sys
import time

import numpy as np
import rclpy
from fast_motion import LEG, WAY, panda
from linear_feedback_controller_msgs.msg import Control
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from streamer import motion

from rnea_control.demo.robots import DemoRobot
from rnea_control.dynamics import Workspace, crba, rnea

PERIOD, STORM = 0.01, 0.0005  # time between two messages [s]
BANDWIDTH = 5.0  # with which the plan approaches the path [1/s]
MOST = 9.0  # acceleration of a joint in the plan [rad/s^2]
STIFFNESS, DAMPING = 100.0, 20.0  # of the gains, per inertia [1/s^2], [1/s]
HUGE, STIFF = 1e300, 1e6


class Planner:
    """Plans one message after the other.

    Attributes:
        q, v: measured state; none before the first message.
    """

    def __init__(self, robot: DemoRobot) -> None:
        self._model, self._workspace = robot.model, Workspace(robot.model)
        self._names = list(robot.model.joint_names)
        nv = len(self._names)
        self._M, self._tau = np.zeros((nv, nv)), np.zeros(nv)
        self.q: np.ndarray | None = None
        self.v = np.zeros(nv)

    def hear(self, state: JointState) -> None:
        rows = [state.name.index(name) for name in self._names]
        self.q, self.v = np.array(state.position)[rows], np.array(state.velocity)[rows]

    def plan(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Gains and torque for the measured state at time `t` [s]."""
        phase, rate = math.pi * t / LEG, math.pi / LEG
        v_path = 0.5 * WAY * rate * math.sin(phase)
        a_path = 0.5 * WAY * rate * rate * math.cos(phase)
        way = motion(t) - self.q
        a = a_path + BANDWIDTH**2 * way + 2.0 * BANDWIDTH * (v_path - self.v)
        a *= min(1.0, MOST / np.abs(a).max())
        M = crba(self._model, self._workspace, self.q, self._M)
        tau = rnea(self._model, self._workspace, self.q, self.v, a, self._tau)
        return np.hstack([STIFFNESS * M, DAMPING * M]), tau


def control(planner: Planner, K: np.ndarray, tau: np.ndarray) -> Control:
    message = Control(
        feedback_gain=Float64MultiArray(data=K.ravel().tolist()),
        feedforward=Float64MultiArray(data=tau.tolist()),
    )
    state = message.initial_state.joint_state
    state.name = list(panda().model.joint_names)
    state.position, state.velocity = planner.q.tolist(), planner.v.tolist()
    return message


def main() -> int:
    rclpy.init()
    other = sys.argv[1:]
    node = rclpy.create_node(other[0] if other else "planner")
    planner, rng = Planner(panda()), random.Random(9)
    latest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    node.create_subscription(JointState, "joint_states", planner.hear, latest)
    publisher = node.create_publisher(Control, "control", QoSProfile(depth=1))
    print("ready", flush=True)
    if not sys.stdin.readline():
        return 0
    while not publisher.get_subscription_count() or planner.q is None:
        rclpy.spin_once(node, timeout_sec=0.01)
    change, begin = "", time.monotonic()
    due = begin
    while rclpy.ok():
        if select.select([sys.stdin], [], [], 0.0)[0]:
            line = sys.stdin.readline()
            if not line:
                return 0
            change = line.strip()
        rclpy.spin_once(node, timeout_sec=0.0)
        if change == "garbage":
            publisher.publish(rng.randbytes(rng.randrange(4000)))
        else:
            K, tau = planner.plan(time.monotonic() - begin)
            if change == "huge":
                tau *= HUGE
            elif change == "stiff":
                K *= STIFF
            publisher.publish(control(planner, K, 0.0 * tau if other else tau))
        due = max(due + (STORM if change == "storm" else PERIOD), time.monotonic())
        time.sleep(max(due - time.monotonic(), 0.0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
