"""Trajectories by topic: single ones, and streams of positions."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from trajectory_bench import JOINTS, RATE, START, STILL, SUCCEEDED, TrajectoryBench

DOMAIN = 97
SWING = np.array([0.4, -0.3])
TARGET = START + SWING
LEAD = 0.005
PUSH = [-30.0, 0.0]
# A policy's positions: points a second, points a chunk, and how many of them are executed before
# the next chunk comes.
FREQUENCY, CHUNK, USED = 50.0, 10, 5


def test_message_is_followed(bench: TrajectoryBench) -> None:
    line = bench.publish([(0.4, TARGET, STILL, STILL)])
    assert "following a trajectory: 1 points, starts in 0.000 s, takes 0.400 s" in line
    bench.run(1.0)
    np.testing.assert_allclose(bench.arm.q[-1], TARGET, atol=1e-4)


def test_message_with_a_future_stamp(bench: TrajectoryBench) -> None:
    line = bench.publish([(0.4, TARGET, STILL, STILL)], start=bench.now + 0.2)
    assert "starts in 0.200 s" in line
    reference = bench.recorded(0.4)
    np.testing.assert_allclose(reference[48, 0], START, atol=1e-12)
    np.testing.assert_allclose(reference[99, 0], START + SWING / 2, atol=1e-9)


def test_message_replaces_the_one_before_without_a_jump(bench: TrajectoryBench) -> None:
    bench.publish([(0.4, TARGET, STILL, STILL)])
    before = bench.recorded(0.2)
    bench.publish([(0.4, START, STILL, STILL)])
    reference = np.concatenate([before, bench.recorded(0.5)])
    assert np.abs(before[-1, 1]).max() > 1.0
    assert np.abs(np.diff(reference[:, 1], axis=0)).max() < 0.2
    assert np.abs(np.diff(reference[:, 2], axis=0)).max() < 5.0
    np.testing.assert_allclose(reference[-1, 0], START, atol=1e-9)


def test_partial_message_moves_its_joints(bench: TrajectoryBench) -> None:
    bench.set(allow_partial_joints_goal=True)
    bench.publish([(0.2, [0.0], [0.0])], joints=["elbow"])
    np.testing.assert_allclose(bench.recorded(0.24)[-1, 0], [START[0], 0.0], atol=1e-9)


def test_empty_message_is_refused_and_the_motion_goes_on(bench: TrajectoryBench) -> None:
    bench.publish([(0.4, TARGET, STILL)])
    bench.run(0.2)
    line = bench.publish([])
    assert (
        "trajectory refused, the controller goes on as before: the trajectory has no points" in line
    )
    bench.run(0.3)
    np.testing.assert_allclose(bench.observed().reference.positions, TARGET, atol=1e-9)


def test_wrong_message_is_refused_and_the_goal_goes_on(bench: TrajectoryBench) -> None:
    sent = bench.follow([(0.4, TARGET, STILL)])
    bench.run(0.2)
    line = bench.publish([(0.4, [9.0, 0.0])])
    assert "trajectory refused" in line
    assert "joint 'shoulder' at 9 is outside its limits -3 to 3" in line
    assert bench.end(sent) == (*SUCCEEDED, "the goal is reached")


# Streams.


def path(t: float) -> np.ndarray:
    """Positions that start at rest, and their first two derivatives, shape (3, 2)."""
    w = 4.0
    swings = np.array([[1.0 - np.cos(w * t), np.sin(w * t) * w, np.cos(w * t) * w**2]]).T
    return np.outer([1.0, 0.0, 0.0], START) + swings * [0.25, -0.15]


def untimed(t: float) -> list:
    """The next chunk of the path, whose first point is due one period after `t`."""
    return [(0.0, path(t + k / FREQUENCY)[0]) for k in range(1, CHUNK + 1)]


def streamed(bench: TrajectoryBench, chunks: int) -> tuple[np.ndarray, np.ndarray]:
    """The references while chunks come in time, and after the last one."""
    bench.set(positions_upsampling__enable=True, positions_upsampling__policy_frequency=FREQUENCY)
    begin = bench.now + LEAD
    parts = []
    for _ in range(chunks):
        bench.publish(untimed(bench.now + LEAD - begin))
        parts.append(bench.recorded(USED / FREQUENCY))
    return np.concatenate(parts), bench.recorded(1.0)


def test_stream_follows_the_path_and_does_not_stop_between_chunks(bench: TrajectoryBench) -> None:
    reference, _ = streamed(bench, 12)
    times = np.arange(1, len(reference) + 1) / RATE - LEAD
    expected = np.array([path(max(t, 0.0)) for t in times])
    np.testing.assert_allclose(reference[:, 0], expected[:, 0], atol=2e-3)
    # Away from where the path itself turns round, the arm never slows down.
    np.testing.assert_allclose(reference[25:, 1], expected[25:, 1], atol=0.1)


def test_acceleration_is_continuous_across_chunks(bench: TrajectoryBench) -> None:
    reference, _ = streamed(bench, 8)
    start_of_chunks = np.arange(USED, 8 * USED, USED) / FREQUENCY * RATE
    change = np.abs(np.diff(reference[:, 2], axis=0)).max(axis=1)
    assert change[start_of_chunks.astype(int) - 1].max() < 1.0
    assert change[25:].max() < 1.5
    moved = np.diff(reference[25:, 1], axis=0)
    mean = 0.5 * (reference[26:, 2] + reference[25:-1, 2])
    np.testing.assert_allclose(moved, mean / RATE, atol=1e-3)


def test_arm_stops_smoothly_where_the_stream_ends(bench: TrajectoryBench) -> None:
    before, reference = streamed(bench, 5)
    last = path(4 * USED / FREQUENCY + CHUNK / FREQUENCY)[0]
    np.testing.assert_allclose(reference[-50:, 0], np.broadcast_to(last, (50, 2)), atol=1e-9)
    together = np.concatenate([before[-5:], reference])
    assert np.abs(np.diff(together[:, 1], axis=0)).max() < 0.15
    moved = np.diff(together[:, 1], axis=0)
    mean = 0.5 * (together[1:, 2] + together[:-1, 2])
    # At the end of the spline, and at rest, the acceleration may step; the velocity may not.
    np.testing.assert_allclose(moved, mean / RATE, atol=0.1)
    bench.run(0.5)
    np.testing.assert_allclose(bench.arm.q[-1], last, atol=1e-3)


def test_untimed_points_are_refused_without_a_frequency(bench: TrajectoryBench) -> None:
    bench.set(positions_upsampling__enable=True)
    line = bench.publish(untimed(0.0))
    assert "point 1: its time 0 s is not after that of point 0, 0 s" in line


def test_untimed_points_are_refused_without_upsampling(bench: TrajectoryBench) -> None:
    bench.set(positions_upsampling__policy_frequency=FREQUENCY)
    line = bench.publish(untimed(0.0))
    assert "point 1: its time 0 s is not after that of point 0, 0 s" in line


def test_upsampled_goal_is_smooth_and_ends_at_rest(bench: TrajectoryBench) -> None:
    bench.set(positions_upsampling__enable=True)
    points = [(0.1 * k, START + SWING * np.sin(0.2 * k) ** 2) for k in range(1, 9)]
    sent = bench.follow(points, start=bench.now + 5 / RATE)
    reference = bench.recorded(0.8 + 5 / RATE)[4:]
    for time, position in points:
        np.testing.assert_allclose(reference[round(time * RATE), 0], position, atol=1e-9)
    np.testing.assert_allclose(reference[-1, 1:], 0.0, atol=1e-9)
    assert np.abs(np.diff(reference[:, 2], axis=0)).max() < 3.0
    assert bench.end(sent) == (*SUCCEEDED, "the goal is reached")


def test_untimed_goal(bench: TrajectoryBench) -> None:
    bench.set(positions_upsampling__enable=True, positions_upsampling__policy_frequency=20.0)
    points = [(0.0, START + SWING * k / 8) for k in range(1, 9)]
    sent = bench.follow(points, start=bench.now + 5 / RATE)
    reference = bench.recorded(0.4 + 5 / RATE)[4:]
    np.testing.assert_allclose(reference[50, 0], START + SWING / 2, atol=1e-9)
    np.testing.assert_allclose(reference[100, 0], TARGET, atol=1e-9)
    assert bench.end(sent)[:2] == SUCCEEDED


def test_points_with_velocities_are_not_upsampled(bench: TrajectoryBench) -> None:
    bench.set(positions_upsampling__enable=True)
    bench.follow([(0.4, TARGET, STILL)], start=bench.now + 5 / RATE)
    reference = bench.recorded(0.2 + 5 / RATE)[-1]
    np.testing.assert_allclose(reference[1], 1.5 * SWING / 0.4, atol=1e-9)  # a cubic


def test_jumbled_joint_order_in_a_message(bench: TrajectoryBench) -> None:
    bench.publish([(0.2, TARGET[::-1], STILL)], joints=JOINTS[::-1])
    np.testing.assert_allclose(bench.recorded(0.24)[-1, 0], TARGET, atol=1e-9)


def test_violated_path_tolerance_stops_the_arm_and_is_logged(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__trajectory=0.05)
    bench.publish([(1.0, TARGET, STILL, STILL)])
    bench.run(0.2)
    line = bench.said_after("trajectory stopped", lambda: pushed(bench))
    assert re.search(r"shoulder was 0\.05\d* rad off its path, 0\.05 allowed, 0\.\d+ s into", line)
    np.testing.assert_allclose(bench.recorded(0.2)[-1, 1], 0.0, atol=1e-9)


def pushed(bench: TrajectoryBench) -> None:
    bench.push(PUSH)
    bench.run(0.2)
    bench.push(STILL)


def test_missed_goal_is_logged_when_its_time_is_over(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__goal=1e-6, constraints__goal_time=0.1)
    bench.push(PUSH)
    bench.publish([(0.2, TARGET, STILL, STILL)])
    line = bench.said_after("trajectory stopped", lambda: bench.run(0.4))
    assert re.search(r"shoulder was \S+ rad off its goal, 1e-06 allowed, 0\.30\d s into", line)
