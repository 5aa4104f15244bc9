"""Publishes what nobody should: `python disturber.py KIND`, from a line on stdin on.

zeros        a second commander, with zeros at 1 kHz
duplicate    a second publisher of joint_states, with an arm that rests at the start posture
targets      a second stream of joint targets, 0.3 rad off the start posture, at 50 Hz
positions    a stream of positions on ~/commands, 0.3 rad off the start posture, at 50 Hz
garbage      random bytes and well-formed nonsense on every input, each 100 times a second
requests     requests that callbacks cannot take, and messages that are none, 20 times a second
"""

from __future__ import annotations

import math
import random
import struct
import sys
import time
from array import array
from collections.abc import Callable

import rclpy
from builtin_interfaces.msg import Duration, Time
from fast_motion import panda
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

try:
    from control_msgs.msg import JointJog, SpeedScalingFactor
    from control_msgs.srv import QueryTrajectoryState
except ImportError as missing:  # Humble's lacks them
    if (missing.name or "").partition(".")[0] != "control_msgs":
        raise
    JointJog = SpeedScalingFactor = QueryTrajectoryState = None

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
NAME = "rnea_controller"
SENTINEL = "rnea_sentinel"
ODD = (math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, 0.0, -1.0, 1e9)


class Nonsense:
    """Well-formed messages that make no sense."""

    def __init__(self) -> None:
        self._rng = random.Random(8)
        self._model = panda().model

    def bytes(self) -> bytes:
        """Random ones, half of them with a valid header and then lengths that are too large."""
        data = self._rng.randbytes(self._rng.randrange(0, 400))
        head = b"\x00\x01\x00\x00" + struct.pack("<I", self._rng.getrandbits(32))
        return self._rng.choice((data, head + data))

    def numbers(self) -> array:
        rng = self._rng
        each = [rng.choice((rng.choice(ODD), rng.uniform(-3.0, 3.0))) for _ in range(9)]
        return array("d", each[rng.randrange(10) :])

    def names(self) -> list[str]:
        names = self._rng.sample(self._model.joint_names, self._model.nv)
        strange = ["", "\N{SNOWMAN}", "x" * 300]
        return self._rng.choice((names, names[:3], [*names, names[0]], strange))

    def joint_state(self) -> JointState:
        message, model = JointState(name=self.names()), self._model
        message.header.stamp.sec = self._rng.choice((0, -1, 2**31 - 1, int(time.time())))
        message.position, message.velocity = self.numbers(), self.numbers()
        if self._rng.random() < 0.5:  # one that a decoder accepts
            message.name = list(model.joint_names)
            message.header.stamp = now()
            message.position = array("d", map(self._rng.uniform, model.lower, model.upper))
            message.velocity = array("d", [self._rng.uniform(-2.0, 2.0) for _ in message.name])
        return message

    def trajectory(self) -> JointTrajectory:
        message = JointTrajectory(joint_names=self.names())
        message.header.stamp.sec = self._rng.choice((0, -1, 2**31 - 1, 1))
        for _ in range(self._rng.randrange(4)):
            time_from_start = Duration(sec=self._rng.choice((-1, 0, 1, 2**31 - 1)))
            point = JointTrajectoryPoint(time_from_start=time_from_start)
            point.positions, point.velocities = self.numbers(), self.numbers()
            point.accelerations, point.effort = self.numbers(), self.numbers()
            message.points.append(point)
        return message

    def array(self) -> Float64MultiArray:
        return Float64MultiArray(data=self.numbers())

    def jog(self) -> object:
        message = JointJog(joint_names=self.names())
        message.displacements, message.velocities = self.numbers(), self.numbers()
        return message

    def text(self) -> String:
        robot = '<robot name="x"><link name="a"/></robot>'
        return String(data=self._rng.choice(("", "<robot", robot, "\0", "x" * 10_000)))

    def factor(self) -> object:
        return SpeedScalingFactor(factor=self._rng.choice((*ODD[:5], -1.0, 1.5)))


def now() -> Time:
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    return Time(sec=seconds, nanosec=nanoseconds)


def commander(node: Node) -> tuple[float, Callable[[], None]]:
    publisher = node.create_publisher(Float64MultiArray, "effort_controller/commands", 1)
    zeros = Float64MultiArray(data=array("d", [0.0] * 7))
    return 1e-3, lambda: publisher.publish(zeros)


def duplicate(node: Node) -> tuple[float, Callable[[], None]]:
    publisher = node.create_publisher(JointState, "joint_states", LATCHED)
    message = JointState(name=list(panda().model.joint_names))
    message.position = array("d", panda().start)
    message.velocity = message.effort = array("d", [0.0] * 7)

    def publish() -> None:
        message.header.stamp = now()
        publisher.publish(message)

    return 1e-3, publish


def targets(node: Node) -> tuple[float, Callable[[], None]]:
    publisher = node.create_publisher(JointState, "target_joint", 1)
    message = JointState(name=list(panda().model.joint_names))
    message.position = array("d", panda().start - 0.3)

    def publish() -> None:
        message.header.stamp = now()
        publisher.publish(message)

    return 0.02, publish


def positions(node: Node) -> tuple[float, Callable[[], None]]:
    publisher = node.create_publisher(Float64MultiArray, f"{NAME}/commands", 1)
    message = Float64MultiArray(data=array("d", panda().start - 0.3))
    return 0.02, lambda: publisher.publish(message)


def garbage(node: Node) -> tuple[float, Callable[[], None]]:
    nonsense, rng = Nonsense(), random.Random(7)
    inputs = [
        (JointState, "joint_states", nonsense.joint_state, LATCHED),
        (JointTrajectory, f"{NAME}/joint_trajectory", nonsense.trajectory, 1),
        (Bool, f"{NAME}/emergency_stop", lambda: Bool(data=False), LATCHED),
        (String, "robot_description", nonsense.text, LATCHED),
        (JointState, "target_joint", nonsense.joint_state, 1),
        (Float64MultiArray, f"{NAME}/commands", nonsense.array, 1),
    ]
    if JointJog is not None:
        inputs.append((JointJog, f"{NAME}/delta_joint_cmds", nonsense.jog, 1))
    if SpeedScalingFactor is not None:
        topic = f"{NAME}/speed_scaling_input"
        inputs.append((SpeedScalingFactor, topic, nonsense.factor, LATCHED))
    made = [(node.create_publisher(kind, topic, qos), make) for kind, topic, make, qos in inputs]

    def publish() -> None:
        for publisher, make in made:
            publisher.publish(nonsense.bytes() if rng.random() < 0.5 else make())

    return 0.01, publish


def requests(node: Node) -> tuple[float, Callable[[], None]]:
    values = ParameterValue(type=255), ParameterValue(type=99)
    wrong = [Parameter(name="gravity", value=value) for value in values]
    unknown = [SetParameters.Request(parameters=[each]) for each in wrong]
    asked = [
        (node.create_client(SetParameters, f"{name}/set_parameters"), request)
        for name in (NAME, SENTINEL)
        for request in unknown
    ]
    if QueryTrajectoryState is not None:
        client = node.create_client(QueryTrajectoryState, f"{NAME}/query_state")
        asked.append((client, QueryTrajectoryState.Request(time=Time(sec=-1))))
    stop = node.create_publisher(Bool, f"{NAME}/emergency_stop", LATCHED)
    publishers = [stop, node.create_publisher(JointTrajectory, f"{NAME}/joint_trajectory", 1)]
    for client, _ in asked:
        client.wait_for_service()

    def publish() -> None:
        for client, request in asked:
            client.call_async(request)
        for publisher in publishers:
            for message in (b"", b"\x00\x01\x00\x00", b"\xff" * 40):
                publisher.publish(message)

    return 0.05, publish


KINDS = {
    "zeros": commander,
    "duplicate": duplicate,
    "targets": targets,
    "positions": positions,
    "garbage": garbage,
    "requests": requests,
}


def main() -> int:
    rclpy.init()
    node = rclpy.create_node(f"disturber_{sys.argv[1]}")
    print("ready", flush=True)
    if not sys.stdin.readline():
        return 0
    period, publish = KINDS[sys.argv[1]](node)
    due = time.monotonic()
    while rclpy.ok():
        publish()
        due = max(due + period, time.monotonic() - period)
        time.sleep(max(due - time.monotonic(), 0.0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
