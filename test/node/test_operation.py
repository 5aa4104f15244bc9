"""What an operator asks of a real controller over DDS, and what its mode topic tells."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from control_msgs.action import FollowJointTrajectory
from lifecycle_msgs.msg import TransitionEvent
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool
from trajectory_bench import LATCHED, START, STILL, TrajectoryBench, aborted, trajectory_bench

DOMAIN = 75
INVALID_GOAL = FollowJointTrajectory.Result.INVALID_GOAL
POINTS = [(0.5, START + 0.5, STILL), (1.0, START, STILL)]


class Operator:
    """Services and topics of the mode, beside a bench.

    Attributes:
        modes: that were published, in order.
        reasons: of them.
    """

    def __init__(self, bench: TrajectoryBench) -> None:
        self.bench = bench
        self.modes: list[str] = []
        self.reasons: list[str] = []
        node = bench.node
        node.create_subscription(TransitionEvent, "rnea_controller/mode", self._hear, LATCHED)
        self.stop = node.create_publisher(Bool, "rnea_controller/emergency_stop", LATCHED)
        self.until("holding")

    def _hear(self, event: TransitionEvent) -> None:
        self.modes.append(event.goal_state.label)
        self.reasons.append(event.transition.label)

    def until(self, mode: str) -> None:
        """Waits, without a step, until the mode is this."""
        self.bench.wait(lambda: self.modes and self.modes[-1] == mode)

    def press(self, pressed: bool) -> None:
        self.stop.publish(Bool(data=pressed))


@pytest.fixture(scope="module")
def bench() -> Iterator[TrajectoryBench]:
    with trajectory_bench(DOMAIN) as bench:
        yield bench


@pytest.fixture(scope="module")
def operator(bench: TrajectoryBench) -> Operator:
    return Operator(bench)


def at_rest(bench: TrajectoryBench) -> bool:
    return np.abs(bench.arm.node.v).max() < 0.01


def test_hold_ends_a_motion(bench: TrajectoryBench, operator: Operator) -> None:
    sent = bench.follow(POINTS)
    bench.run(0.25)
    assert bench.ask("hold") == (True, "braking, then holding")
    bench.wait(lambda: sent.ended)
    assert sent.ending == (*aborted(INVALID_GOAL), "told to hold")
    bench.run(1.2)
    operator.until("holding")
    assert operator.modes[-3:] == ["moving", "braking", "holding"]
    assert at_rest(bench)


def test_a_hand_guides_the_arm_and_it_stays_where_it_is_left(
    bench: TrajectoryBench, operator: Operator
) -> None:
    before = bench.arm.node.q
    assert bench.ask("gravity_compensation")[0]
    bench.push([2.0, 1.0])
    bench.run(0.5)
    bench.push([0.0, 0.0])
    moved = bench.arm.node.q
    assert np.abs(moved - before).max() > 0.05
    line = bench.rejected(bench.goal(POINTS))
    assert "a hand guides the arm; call ~/resume first" in line
    success, text = bench.ask("reset_fault")
    assert not success and text == "there is no fault to reset"
    assert bench.ask("resume")[0]
    bench.run(1.2)
    operator.until("holding")
    assert at_rest(bench)
    left = bench.arm.node.q
    bench.run(0.5)
    np.testing.assert_allclose(bench.arm.node.q, left, atol=1e-4)


def test_emergency_stop_holds_until_it_is_released_and_resumed(
    bench: TrajectoryBench, operator: Operator
) -> None:
    sent = bench.follow([(0.5, bench.arm.node.q + 0.4, STILL)])
    bench.run(0.2)
    operator.press(True)
    operator.until("emergency_stop")
    bench.wait(lambda: sent.ended)
    assert sent.ending == (*aborted(INVALID_GOAL), "emergency stop")
    bench.run(1.2)
    assert at_rest(bench)
    assert "emergency stop; release it" in bench.rejected(bench.goal(POINTS))
    success, text = bench.ask("resume")
    assert not success and "held by /client: publish false there first" in text
    success, text = bench.ask("hold")
    assert not success and "cannot hold in mode emergency_stop" in text
    operator.press(False)
    bench.wait(lambda: bench.ask("resume")[0])
    bench.run(0.2)
    operator.until("holding")


@pytest.mark.parametrize("reliability", ["RELIABLE", "BEST_EFFORT"])
@pytest.mark.parametrize("durability", ["VOLATILE", "TRANSIENT_LOCAL"])
def test_emergency_stop_is_heard_with_any_qos(
    bench: TrajectoryBench, operator: Operator, reliability: str, durability: str
) -> None:
    qos = QoSProfile(
        depth=1,
        reliability=ReliabilityPolicy[reliability],
        durability=DurabilityPolicy[durability],
    )
    button = bench.node.create_publisher(Bool, "rnea_controller/emergency_stop", qos)
    bench.wait(button.get_subscription_count)

    def stopped() -> bool:
        button.publish(Bool(data=True))  # again, as the first one may come before the two match
        return operator.modes[-1] == "emergency_stop"

    bench.wait(stopped)
    button.publish(Bool(data=False))
    bench.wait(lambda: bench.ask("resume") == (True, "holding"))
    bench.node.destroy_publisher(button)
    bench.run(0.2)
    operator.until("holding")


def test_each_button_is_released_by_itself(bench: TrajectoryBench, operator: Operator) -> None:
    buttons = [
        bench.node.create_publisher(Bool, "rnea_controller/emergency_stop", 1) for _ in range(2)
    ]
    for button in buttons:
        bench.wait(button.get_subscription_count)
        button.publish(Bool(data=True))
    operator.until("emergency_stop")
    bench.run(0.1)
    buttons[0].publish(Bool(data=False))
    bench.run(0.1)
    success, text = bench.ask("resume")
    assert not success and "held by /client" in text
    bench.node.destroy_publisher(buttons[1])
    over = "holding, over the emergency stop of 1 publisher(s) that have gone"
    bench.wait(lambda: bench.ask("resume") == (True, over))
    bench.node.destroy_publisher(buttons[0])
    bench.run(0.2)
    operator.until("holding")


def test_mode_shows_in_diagnostics(bench: TrajectoryBench, operator: Operator) -> None:
    bench.arm.until_diagnosed("mode", "holding")
    assert bench.arm.diagnostics["sentinel"] == "none"
    assert bench.arm.diagnostics["effort limit at work"] == "never"
