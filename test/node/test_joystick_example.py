"""The joystick of the examples: its targets begin at the arm, and end with the deflection."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from dds import ros, wait_for
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState, Joy

EXAMPLE = Path(__file__).parents[2] / "examples" / "joystick.py"


@pytest.fixture
def joystick():
    with ros(97):
        node = runpy.run_path(str(EXAMPLE))["Joystick"]("elbow")
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        yield node, lambda: executor.spin_once(0.01)
        node.destroy_node()


def test_targets_begin_at_the_arm_and_end_with_the_deflection(joystick) -> None:
    node, spin = joystick
    received: list[JointState] = []
    node.create_subscription(JointState, "target_joint", received.append, 10)
    states = node.create_publisher(JointState, "joint_states", 1)
    joy = node.create_publisher(Joy, "joy", 1)
    wait_for(lambda: states.get_subscription_count() and joy.get_subscription_count(), spin)
    for _ in range(20):
        states.publish(JointState(name=["shoulder", "elbow"], position=[0.1, 0.7]))
        spin()
    assert not received and node.target == pytest.approx(0.7)
    joy.publish(Joy(axes=[1.0]))
    wait_for(lambda: len(received) > 5, spin)
    assert received[0].name == ["elbow"]
    assert received[0].position[0] == pytest.approx(0.71)
    assert received[5].position[0] > received[0].position[0]
    joy.publish(Joy(axes=[0.0]))
    wait_for(lambda: node.velocity == 0.0, spin)
    count = len(received)
    for _ in range(20):
        spin()
    assert len(received) <= count + 2
