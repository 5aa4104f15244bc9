"""How goals end that are not reached: each once, with a reason, and with an arm that holds."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from action_msgs.msg import GoalStatus, GoalStatusArray
from lifecycle_msgs.msg import Transition
from rclpy.qos import QoSProfile
from rclpy.time import Time
from trajectory_bench import (
    CANCELED,
    RATE,
    START,
    STILL,
    SUCCEEDED,
    Result,
    TrajectoryBench,
    aborted,
    tolerance,
)

DOMAIN = 93
SWING = np.array([0.6, -0.4])
TARGET = START + SWING
POINTS = [(0.6, TARGET, STILL, STILL)]
# Its own deceleration is less than those that the tests ask for.
GENTLE = [(1.2, TARGET, STILL, STILL)]
REACHED = (*SUCCEEDED, "the goal is reached")
REPLACED = (*aborted(Result.INVALID_GOAL), "a new trajectory has replaced it")
CANCELLED = (*CANCELED, "cancelled by the client")
# No velocity here changes by more between two steps but by a jump: that of 1 rad/s would be.
SMOOTH = 0.25


def assert_smooth(reference: np.ndarray, most: float = SMOOTH) -> None:
    """The reference goes on without a jump: positions are the integral of velocities, which
    change by little between two steps."""
    position, velocity = reference[:, 0], reference[:, 1]
    assert np.abs(np.diff(velocity, axis=0)).max() < most
    moved = np.diff(position, axis=0)
    np.testing.assert_allclose(moved, 0.5 / RATE * (velocity[1:] + velocity[:-1]), atol=5e-4)


def assert_on_the_line(position: np.ndarray) -> None:
    """Positions are on the straight way from START to TARGET."""
    np.testing.assert_allclose((position - START) @ [SWING[1], -SWING[0]], 0.0, atol=1e-9)


# Preemption.


def test_new_goal_ends_the_old_one(bench: TrajectoryBench) -> None:
    old = bench.follow(POINTS)
    before = bench.recorded(0.3)
    new = bench.follow([(0.4, START, STILL, STILL)])
    bench.wait(lambda: old.ended)
    assert old.ending == REPLACED
    assert_smooth(np.concatenate([before, bench.recorded(0.3)]))
    assert bench.end(new) == REACHED


def test_message_ends_a_goal(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    before = bench.recorded(0.3)
    assert "following" in bench.publish([(0.4, START, STILL, STILL)])
    bench.wait(lambda: sent.ended)
    assert sent.ending == REPLACED
    reference = np.concatenate([before, bench.recorded(0.5)])
    assert_smooth(reference)
    np.testing.assert_allclose(reference[-1, 0], START, atol=1e-9)


def test_goals_in_quick_succession(bench: TrajectoryBench) -> None:
    goals = [bench.submit(bench.goal([(0.3, START + 0.1 * k, STILL)])) for k in range(1, 6)]
    bench.wait(lambda: all(goal.ended for goal in goals[:-1]) and goals[-1].feedback)
    assert [goal.ending for goal in goals[:-1]] == [REPLACED] * 4
    assert bench.end(goals[-1]) == REACHED
    np.testing.assert_allclose(bench.observed().reference.positions, START + 0.5, atol=1e-9)


def test_each_goal_ends_once(bench: TrajectoryBench) -> None:
    seen: dict[bytes, list[int]] = defaultdict(list)

    def take(message: GoalStatusArray) -> None:
        for status in message.status_list:
            key = bytes(status.goal_info.goal_id.uuid)
            if not seen[key] or seen[key][-1] != status.status:
                seen[key].append(status.status)

    topic = "rnea_controller/follow_joint_trajectory/_action/status"
    subscription = bench.node.create_subscription(
        GoalStatusArray, topic, take, QoSProfile(depth=50)
    )
    bench.wait(lambda: bench.node.count_publishers(topic) == 1)
    bench.wait(lambda: subscription.get_publisher_count() == 1)
    replaced = bench.follow(POINTS)
    bench.run(0.1)
    cancelled = bench.follow(POINTS)
    bench.wait(lambda: replaced.ended)
    bench.cancel(cancelled)
    reached = bench.follow([(0.2, START, STILL)])
    bench.end(reached)
    bench.run(0.2)
    keys = [bytes(sent.handle.goal_id.uuid) for sent in (replaced, cancelled, reached)]
    bench.wait(lambda: all(seen[key] and seen[key][-1] > 3 for key in keys))
    ends = [
        [status for status in seen[key] if status > GoalStatus.STATUS_CANCELING] for key in keys
    ]
    assert ends == [
        [GoalStatus.STATUS_ABORTED],
        [GoalStatus.STATUS_CANCELED],
        [GoalStatus.STATUS_SUCCEEDED],
    ]
    bench.node.destroy_subscription(subscription)


# Cancel.


def test_cancel_brakes_along_the_path_and_holds(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    before = bench.recorded(0.3)
    assert np.abs(before[-1, 1]).max() > 1.0
    assert bench.cancel(sent) == CANCELLED
    reference = np.concatenate([before, bench.recorded(0.6)])
    assert_smooth(reference)
    assert_on_the_line(reference[:, 0])
    np.testing.assert_allclose(reference[-100:, 1], 0.0, atol=1e-9)
    bench.run(0.5)
    np.testing.assert_allclose(bench.arm.q[-1], reference[-1, 0], atol=1e-4)


def test_cancel_decelerates_as_asked_for(bench: TrajectoryBench) -> None:
    bench.set(
        constraints__decelerate_on_cancel=True,
        constraints__shoulder__max_deceleration_on_cancel=4.0,
        constraints__elbow__max_deceleration_on_cancel=4.0,
    )
    sent = bench.follow(GENTLE)
    before = bench.recorded(0.6)
    bench.cancel(sent)
    reference = bench.recorded(0.6)
    assert_smooth(np.concatenate([before, reference]), 4.1 / RATE)
    speed = abs(before[-1, 1, 0])
    assert 3.9 < np.abs(reference[:, 2]).max() < 4.01  # exact at the knots of the stop
    moving = np.count_nonzero(np.abs(reference[:, 1, 0]) > 1e-6) / RATE
    assert speed / 4.0 < moving < speed / 4.0 + 0.07  # the ramps of the deceleration on top
    assert_on_the_line(reference[:, 0])


def test_slowest_joint_decides_about_the_deceleration(bench: TrajectoryBench) -> None:
    bench.set(
        constraints__decelerate_on_cancel=True,
        constraints__elbow__max_deceleration_on_cancel=2.5,
    )
    sent = bench.follow(GENTLE)
    bench.run(0.6)
    bench.cancel(sent)
    reference = bench.recorded(0.6)
    assert np.abs(reference[:, 2, 1]).max() == pytest.approx(2.5, abs=0.05)
    assert_on_the_line(reference[:, 0])


def test_cancel_without_deceleration_brakes_within_the_effort_limits(
    bench: TrajectoryBench,
) -> None:
    bench.set(effort_limit_scale=0.25)  # 25 Nm, of which gravity takes half
    sent = bench.follow([(0.8, TARGET, STILL, STILL)])
    bench.run(0.4)
    first = len(bench.arm.torque)
    bench.cancel(sent)
    reference = bench.recorded(0.4)
    np.testing.assert_allclose(reference[-20:, 1], 0.0, atol=1e-9)
    assert np.abs(bench.arm.torque[first:]).max() < 25.0
    assert np.abs(reference[:, 2]).max() > 10.0


def test_cancel_of_a_goal_that_has_not_started(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS, start=bench.now + 0.2)
    bench.run(0.1)
    assert bench.cancel(sent) == CANCELLED
    reference = bench.recorded(0.4)
    np.testing.assert_allclose(reference[:, 0], np.broadcast_to(START, (100, 2)), atol=1e-12)


def test_cancel_while_the_goal_tolerance_is_waited_for(bench: TrajectoryBench) -> None:
    bench.push([-3.0, 0.0])
    sent = bench.follow(POINTS, goal=[tolerance("shoulder", 0.01)])
    bench.run(1.0)
    assert not sent.ended
    assert bench.cancel(sent) == CANCELLED
    np.testing.assert_allclose(bench.recorded(0.1)[-1, 0], TARGET, atol=1e-9)


def test_cancel_comes_too_late(bench: TrajectoryBench) -> None:
    sent = bench.follow([(0.3, TARGET, STILL)])
    assert bench.end(sent) == REACHED
    answer = sent.handle.cancel_goal_async()
    bench.wait(answer.done)
    assert answer.result().goals_canceling == []


def test_cancel_of_one_goal_leaves_the_next_alone(bench: TrajectoryBench) -> None:
    old = bench.submit(bench.goal(POINTS))
    new = bench.submit(bench.goal([(0.3, START + 0.2, STILL)]))
    bench.wait(lambda: old.handle and new.feedback)
    old.handle.cancel_goal_async()
    assert bench.end(new) == REACHED
    assert old.ending == REPLACED


def test_goal_while_braking(bench: TrajectoryBench) -> None:
    bench.set(
        constraints__decelerate_on_cancel=True,
        constraints__shoulder__max_deceleration_on_cancel=4.0,
    )
    old = bench.follow(POINTS)
    before = bench.recorded(0.3)
    bench.cancel(old)
    braking = bench.recorded(0.1)
    assert np.abs(braking[-1, 1]).max() > 0.3
    new = bench.follow([(0.4, START, STILL, STILL)])
    assert_smooth(np.concatenate([before, braking, bench.recorded(0.3)]))
    assert bench.end(new) == REACHED
    np.testing.assert_allclose(bench.observed().reference.positions, START, atol=1e-9)


# The controller itself ends.


def test_deactivation_ends_a_goal(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    bench.run(0.2)
    bench.transition(Transition.TRANSITION_DEACTIVATE)
    bench.wait(lambda: sent.ended)
    assert sent.ending == (
        *aborted(Result.INVALID_GOAL),
        "the controller was deactivated",
    )
    bench.transition(Transition.TRANSITION_ACTIVATE)
    bench.first_steps()
    assert bench.end(bench.follow([(0.2, START, STILL)])) == REACHED


def test_cleaning_up_with_a_waiting_goal(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS, start=bench.now + 10.0)
    bench.transition(Transition.TRANSITION_DEACTIVATE)
    bench.transition(Transition.TRANSITION_CLEANUP)
    bench.wait(lambda: sent.ended)
    assert sent.ending[:2] == aborted(Result.INVALID_GOAL)
    bench.transition(Transition.TRANSITION_CONFIGURE)
    bench.transition(Transition.TRANSITION_ACTIVATE)
    bench.first_steps()
    assert bench.end(bench.follow([(0.2, START, STILL)])) == REACHED


def test_goal_is_rejected_while_inactive(bench: TrajectoryBench) -> None:
    bench.transition(Transition.TRANSITION_DEACTIVATE)
    line = bench.rejected(bench.goal(POINTS))
    assert "goal rejected: the controller is not active; activate it first" in line
    bench.transition(Transition.TRANSITION_ACTIVATE)


def test_goal_is_rejected_before_the_first_state(bench: TrajectoryBench) -> None:
    bench.transition(Transition.TRANSITION_DEACTIVATE)
    bench.transition(Transition.TRANSITION_ACTIVATE)
    line = bench.rejected(bench.goal(POINTS))
    assert "has no joint_states yet; send it again later" in line


def test_stamps_that_jump_end_a_goal(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    bench.run(0.3)
    bench.arm.node.ticks -= 50
    bench.arm.run(11)  # one more than are ignored
    states = 11
    while not sent.ended and states < 31:  # a busy machine may have lost some
        bench.arm.run(1)
        states += 1
    bench.wait(lambda: sent.ended)
    assert sent.ending[:2] == aborted(Result.INVALID_GOAL)
    jumps = [f"{(n - 50) / RATE:+.3f}" for n in range(11, states + 1)]
    assert sent.ending[2] in [f"the stamps of joint_states jumped by {each} s" for each in jumps]
    bench.run(1.1)
    np.testing.assert_allclose(bench.observed().reference.velocities, 0.0, atol=1e-9)


def test_trajectory_stands_while_the_stamps_do(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    bench.run(0.2)
    references = []
    for repetitions in (1, 20):  # of the next state
        for _ in range(repetitions):
            received = bench.arm.node.commands_received
            bench.arm.node.publish_state()
            bench.wait(lambda received=received: bench.arm.node.commands_received > received)
        bench.state = type(bench.state)()
        bench.wait(lambda: Time.from_msg(bench.state.header.stamp).nanoseconds > 1e9 * bench.now)
        references.append(bench.state.reference)
    assert references[0] == references[1]
    assert np.abs(references[0].velocities).max() > 1.0
    assert bench.end(sent)[:2] == SUCCEEDED
