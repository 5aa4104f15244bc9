"""The action: what is followed and how, and what comes back meanwhile."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from rclpy.duration import Duration
from rclpy.time import Time
from trajectory_bench import (
    JOINTS,
    RATE,
    START,
    STILL,
    SUCCEEDED,
    Result,
    TrajectoryBench,
    aborted,
)

DOMAIN = 91
SWING = np.array([0.4, -0.3])
TARGET = START + SWING
# From the adoption to the start of a trajectory with stamp 0, [s].
LEAD = 0.005
REACHED = (*SUCCEEDED, "the goal is reached")


def started(bench: TrajectoryBench) -> float:
    """The next time at which a trajectory may start, a whole number of steps from now, [s]."""
    return bench.now + 5 / RATE


def test_positions_are_joined_by_lines(bench: TrajectoryBench) -> None:
    sent = bench.follow([(0.4, TARGET)], start=started(bench))
    reference = bench.recorded(0.4 + 4 / RATE)[5:]
    np.testing.assert_allclose(reference[:, 1], np.broadcast_to(SWING / 0.4, (99, 2)), atol=1e-9)
    np.testing.assert_allclose(reference[:, 2], 0.0, atol=1e-9)
    assert bench.end(sent) == REACHED


def test_velocities_make_cubics(bench: TrajectoryBench) -> None:
    sent = bench.follow([(0.4, TARGET, STILL)], start=started(bench))
    bench.recorded(5 / RATE)
    reference = bench.recorded(0.4)
    np.testing.assert_allclose(reference[49, 0], START + SWING / 2, atol=1e-9)
    np.testing.assert_allclose(reference[49, 1], 1.5 * SWING / 0.4, atol=1e-9)
    np.testing.assert_allclose(reference[98, 2], -6.0 * SWING / 0.4**2, rtol=0.03)
    assert bench.end(sent) == REACHED


def test_accelerations_make_quintics(bench: TrajectoryBench) -> None:
    sent = bench.follow([(0.4, TARGET, STILL, STILL)], start=started(bench))
    bench.recorded(5 / RATE)
    reference = bench.recorded(0.4)
    np.testing.assert_allclose(reference[49, 0], START + SWING / 2, atol=1e-9)
    np.testing.assert_allclose(reference[49, 1], 1.875 * SWING / 0.4, atol=1e-9)
    np.testing.assert_allclose(reference[98, 2], 0.0, atol=2.0)
    assert bench.end(sent) == REACHED


def test_several_points_are_passed_on_time(bench: TrajectoryBench) -> None:
    v = [0.5, -0.5]
    points = [(0.2, START + 0.1, v), (0.4, START - 0.05, [0.0, 0.3]), (0.6, TARGET, STILL)]
    sent = bench.follow(points, start=started(bench))
    reference = bench.recorded(0.6 + 5 / RATE)[4:]
    for due, position, velocity in points:
        np.testing.assert_allclose(reference[round(due * RATE), 0], position, atol=1e-9)
        np.testing.assert_allclose(reference[round(due * RATE), 1], velocity, atol=1e-8)
    assert bench.end(sent) == REACHED


def test_arm_arrives_and_holds(bench: TrajectoryBench) -> None:
    bench.end(bench.follow([(0.4, TARGET, STILL, STILL)]))
    bench.run(0.6)
    np.testing.assert_allclose(bench.arm.q[-1], TARGET, atol=1e-4)
    np.testing.assert_allclose(bench.arm.v[-1], 0.0, atol=1e-3)


def test_success_comes_when_the_last_point_is_due(bench: TrajectoryBench) -> None:
    before = bench.now
    sent = bench.follow([(0.4, TARGET, STILL, STILL)])
    bench.run(0.4)
    bench.observed()
    assert not sent.ended
    bench.end(sent)
    assert bench.now - before < 0.5


def test_feedback_is_the_state_of_the_last_step(bench: TrajectoryBench) -> None:
    sent = bench.follow([(0.4, TARGET, STILL, STILL)])
    before = bench.now
    bench.run(0.16)
    stamp = round(bench.now * 1e9)
    bench.wait(lambda: Time.from_msg(sent.feedback[-1].header.stamp).nanoseconds == stamp)
    feedback = sent.feedback[-1]
    assert feedback.joint_names == JOINTS
    t = bench.now - before - LEAD
    x = t / 0.4
    desired = START + SWING * x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
    np.testing.assert_allclose(feedback.desired.positions, desired, atol=1e-9)
    np.testing.assert_allclose(feedback.actual.positions, bench.arm.q[-1], atol=1e-12)
    np.testing.assert_allclose(feedback.actual.velocities, bench.arm.v[-1], atol=1e-12)
    for error, wanted, measured in (
        (feedback.error.positions, feedback.desired.positions, feedback.actual.positions),
        (feedback.error.velocities, feedback.desired.velocities, feedback.actual.velocities),
    ):
        np.testing.assert_allclose(error, np.subtract(wanted, measured), atol=1e-12)
    elapsed = Duration.from_msg(feedback.desired.time_from_start).nanoseconds * 1e-9
    assert elapsed == pytest.approx(t, abs=1e-6)


def test_feedback_names_the_point_that_is_due(bench: TrajectoryBench) -> None:
    sent = bench.follow([(0.2, START, STILL), (0.4, TARGET, STILL)])
    if not hasattr(sent.feedback[0], "index"):
        pytest.skip("this distribution's feedback has no index")
    assert sent.feedback[-1].index == 0
    bench.run(0.3)
    bench.wait(lambda: sent.feedback[-1].index == 1)


def test_feedback_comes_at_action_monitor_rate(bench: TrajectoryBench) -> None:
    begin = time.monotonic()
    sent = bench.follow([(0.4, TARGET)])
    bench.wait(lambda: len(sent.feedback) >= 41)
    assert time.monotonic() - begin > 0.15  # 0.2 s, if timers never catch up


def test_no_feedback_after_the_end(bench: TrajectoryBench) -> None:
    sent = bench.follow([(0.1, TARGET)])
    bench.end(sent)
    bench.run(0.1)
    bench.observed()
    count = len(sent.feedback)
    for _ in range(3):  # messages of controller_state come after what was sent before
        bench.run(0.02)
        bench.observed()
    assert len(sent.feedback) == count


def test_jumbled_joint_order(bench: TrajectoryBench) -> None:
    bench.end(bench.follow([(0.4, TARGET[::-1], STILL)], joints=JOINTS[::-1]))
    np.testing.assert_allclose(bench.observed().reference.positions, TARGET, atol=1e-9)


# Partial goals.


def test_partial_goal_is_refused_by_default(bench: TrajectoryBench) -> None:
    ending = bench.refused(bench.goal([(0.4, [0.5])], joints=["elbow"]))
    assert ending == (
        *aborted(Result.INVALID_JOINTS),
        "joint_names lacks shoulder; name every controlled joint, or set the parameter "
        "allow_partial_joints_goal",
    )


def test_partial_goal_moves_its_joints_and_the_others_hold(bench: TrajectoryBench) -> None:
    bench.set(allow_partial_joints_goal=True)
    sent = bench.follow([(0.3, [0.1], [0.0])], joints=["elbow"])
    reference = bench.recorded(0.32)
    np.testing.assert_allclose(reference[:, 0, 0], START[0], atol=1e-12)
    np.testing.assert_allclose(reference[-1, 0, 1], 0.1, atol=1e-9)
    assert bench.end(sent) == REACHED


def test_omitted_joint_follows_its_old_path_beyond_the_end_of_the_goal(
    bench: TrajectoryBench,
) -> None:
    bench.set(allow_partial_joints_goal=True)
    old = bench.follow([(0.8, TARGET, STILL)], start=started(bench))
    begin = bench.now + 5 / RATE
    bench.run(0.2)
    new = bench.follow([(0.2, [-0.2], [0.0])], joints=["elbow"])
    bench.wait(lambda: old.ended)
    assert bench.end(new) == REACHED
    assert bench.now - begin < 0.5
    reference = bench.recorded(0.2)
    x = (bench.now - 0.2 - begin + np.arange(1, 51) / RATE) / 0.8
    expected = START[0] + SWING[0] * (3.0 * x**2 - 2.0 * x**3)
    np.testing.assert_allclose(reference[:, 0, 0], expected, atol=1e-9)
    np.testing.assert_allclose(reference[:, 0, 1], -0.2, atol=1e-9)


# Stamps.


def test_future_start_is_waited_for(bench: TrajectoryBench) -> None:
    begin = bench.now + 0.2
    sent = bench.follow([(0.2, TARGET, STILL, STILL)], start=begin)
    reference = bench.recorded(0.4)
    np.testing.assert_allclose(reference[:50, 0], np.tile(START, (50, 1)), atol=1e-12)
    np.testing.assert_allclose(reference[74, 0], START + SWING / 2, atol=1e-9)
    assert bench.end(sent) == REACHED


def test_running_goal_goes_on_until_a_future_start(bench: TrajectoryBench) -> None:
    bench.follow([(0.4, TARGET, STILL, STILL)], start=started(bench))
    begin = bench.now + 5 / RATE
    bench.run(0.1)
    sent = bench.follow([(0.3, START, STILL, STILL)], start=begin + 0.2)
    reference = bench.recorded(0.5)
    moment = round((begin + 0.2 - (bench.now - 0.5)) * RATE) - 1
    np.testing.assert_allclose(reference[moment, 0], START + SWING / 2, atol=1e-9)
    np.testing.assert_allclose(reference[moment, 1], 1.875 * SWING / 0.4, atol=1e-9)
    assert bench.end(sent) == REACHED


def test_past_start_plays_the_remainder(bench: TrajectoryBench) -> None:
    bench.run(0.2)
    begin = bench.now - 0.2
    points = [(0.1, START + 1.0, STILL), (0.4, START + SWING / 2, STILL), (0.6, TARGET, STILL)]
    sent = bench.follow(points, start=begin)
    reference = bench.recorded(0.4)
    assert (np.abs(reference[:, 0] - START) <= np.abs(SWING) + 1e-9).all()
    np.testing.assert_allclose(reference[49, 0], START + SWING / 2, atol=1e-9)
    np.testing.assert_allclose(reference[99, 0], TARGET, atol=1e-9)
    assert bench.end(sent) == REACHED


def test_past_end_is_an_old_header_timestamp(bench: TrajectoryBench) -> None:
    bench.run(0.4)
    ending = bench.refused(bench.goal([(0.2, TARGET)], start=bench.now - 0.3))
    assert ending == (
        *aborted(Result.OLD_HEADER_TIMESTAMP),
        "the trajectory ended 0.105 s ago; send it earlier, or with stamp 0 to start now",
    )


def test_stamp_of_another_clock_is_refused(bench: TrajectoryBench) -> None:
    status, code, text = bench.refused(bench.goal([(0.2, TARGET)], start=time.time()))
    assert (status, code) == aborted(Result.INVALID_GOAL)
    assert re.search(r"its stamp is \d+ s ahead .* do both use the same clock", text)
