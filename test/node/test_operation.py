"""What an operator asks of a real controller over DDS, what its mode topic tells, and what the
controller says of a model that does not fit the arm."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from lifecycle_msgs.msg import TransitionEvent
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool
from trajectory_bench import LATCHED, START, STILL, Result, TrajectoryBench, aborted

DOMAIN = 75
INVALID_GOAL = Result.INVALID_GOAL
POINTS = [(0.5, START + 0.5, STILL), (1.0, START, STILL)]


class Operator:
    """Services and topics of the mode, beside a bench.

    Attributes:
        modes: that were published, in order.
    """

    def __init__(self, bench: TrajectoryBench) -> None:
        self.bench = bench
        self.modes: list[str] = []
        node = bench.node
        node.create_subscription(TransitionEvent, "rnea_controller/mode", self._hear, LATCHED)
        self.until("holding")

    def _hear(self, event: TransitionEvent) -> None:
        self.modes.append(event.goal_state.label)

    def until(self, mode: str) -> None:
        """Waits, without a step, until the mode is this."""
        self.bench.wait(lambda: self.modes and self.modes[-1] == mode)


@pytest.fixture(scope="module")
def operator(shared_bench: TrajectoryBench) -> Operator:
    return Operator(shared_bench)


def test_services_change_the_mode(bench: TrajectoryBench, operator: Operator) -> None:
    sent = bench.follow(POINTS)
    bench.run(0.25)
    assert bench.ask("hold") == (True, "braking, then holding")
    bench.wait(lambda: sent.ended)
    assert sent.ending == (*aborted(INVALID_GOAL), "requested by ~/hold")
    bench.run(1.2)
    operator.until("holding")
    assert operator.modes[-3:] == ["moving", "braking", "holding"]
    assert bench.ask("gravity_compensation")[0]
    assert "a hand guides the arm; call ~/resume" in bench.rejected(bench.goal(POINTS))
    no_fault = "no fault to reset: the controller is gravity_compensation"
    assert bench.ask("reset_fault") == (True, no_fault)
    assert bench.ask("resume")[0]
    bench.run(1.2)
    operator.until("holding")
    assert bench.ask("resume") == (True, "already holding: there was nothing to resume")


def test_emergency_stop_is_heard_with_any_qos(bench: TrajectoryBench, operator: Operator) -> None:
    reliabilities = ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT
    durabilities = DurabilityPolicy.VOLATILE, DurabilityPolicy.TRANSIENT_LOCAL
    for reliability, durability in itertools.product(reliabilities, durabilities):
        qos = QoSProfile(depth=1, reliability=reliability, durability=durability)
        button = bench.node.create_publisher(Bool, "rnea_controller/emergency_stop", qos)
        bench.wait(button.get_subscription_count)

        def stopped(button: Publisher = button) -> bool:
            button.publish(Bool(data=True))  # again, as the first may come before the two match
            return operator.modes[-1] == "emergency_stop"

        bench.wait(stopped)
        button.publish(Bool(data=False))
        bench.wait(lambda: bench.ask("resume") == (True, "holding"))
        bench.node.destroy_publisher(button)
        bench.run(0.2)
        operator.until("holding")


@pytest.mark.usefixtures("publishers_are_known")
def test_each_button_is_released_by_itself(bench: TrajectoryBench, operator: Operator) -> None:
    topic = "rnea_controller/emergency_stop"
    buttons = [bench.node.create_publisher(Bool, topic, 1) for _ in range(2)]

    def holders() -> int:
        for button in buttons:
            button.publish(Bool(data=True))  # again: before the two match, none is heard
        return bench.ask("resume")[1].count("/client")

    bench.wait(lambda: holders() == 2)
    buttons[0].publish(Bool(data=False))
    bench.wait(lambda: bench.ask("resume")[1].count("/client") == 1)
    success, text = bench.ask("resume")
    assert not success and "held by /client" in text
    bench.node.destroy_publisher(buttons[1])
    over = "holding, despite the emergency stop of 1 publisher(s) that have ended"
    bench.wait(lambda: bench.ask("resume") == (True, over))
    bench.node.destroy_publisher(buttons[0])
    bench.run(0.2)
    operator.until("holding")


def test_unknown_load_is_reported_for_each_joint(bench: TrajectoryBench) -> None:
    bench.arm.until_diagnosed("mode", "holding")
    assert bench.arm.diagnostics["sentinel"] == "none"
    assert bench.arm.diagnostics["effort limit at work"] == "never"
    bench.set(model_check__bound=0.01)
    bench.push([5.0, 2.0])  # of effort limits of 100 and 50 Nm
    bench.run(2.0)
    bench.arm.until_diagnosed("model 1", "shoulder: model ")
    assert " Nm, held with " in bench.arm.diagnostics["model 1"]
    assert "elbow: model " in bench.arm.diagnostics["model 2"]
    bench.process.said("the model does not fit the robot: shoulder")
    bench.push([0.0, 0.0])
    bench.run(2.0)
    bench.wait(lambda: "model 1" not in bench.arm.diagnostics)
