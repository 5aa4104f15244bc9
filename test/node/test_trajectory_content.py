"""Points with more or less than positions, and trajectories that ask for too much effort."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from planar_arm import torque
from trajectory_bench import (
    RATE,
    START,
    STILL,
    SUCCEEDED,
    Result,
    TrajectoryBench,
    aborted,
    tolerance,
)

DOMAIN = 79
SWING = np.array([0.4, -0.3])
TARGET = START + SWING
REACHED = (*SUCCEEDED, "the goal is reached")


def started(bench: TrajectoryBench) -> float:
    """The next time at which a trajectory may start, a whole number of steps from now, [s]."""
    return bench.now + 5 / RATE


# Efforts.


def test_effort_of_the_points_is_added_to_the_torque(bench: TrajectoryBench) -> None:
    points = [(0.2, START, STILL, STILL, [6.0, -2.0]), (0.4, START, STILL, STILL, [6.0, -2.0])]
    bench.follow(points, start=started(bench))
    bench.run(5 / RATE)
    for step in range(1, 80):
        bench.arm.run(1)
        state = bench.observed()
        effort = np.array([6.0, -2.0]) * min(step / RATE / 0.2, 1.0)
        np.testing.assert_allclose(state.reference.effort, effort, atol=1e-9)
        q, v = np.array(state.feedback.positions), np.array(state.feedback.velocities)
        feedback = 100.0 * np.array(state.error.positions) + 20.0 * np.array(state.error.velocities)
        a = np.array(state.reference.accelerations) + feedback
        expected = torque(q, v, a) + effort
        np.testing.assert_allclose(bench.arm.node.torque, expected, atol=1e-9)


def test_effort_of_the_last_point_stays(bench: TrajectoryBench) -> None:
    bench.end(bench.follow([(0.2, START, STILL, STILL, [3.0, 0.0])]))
    bench.run(0.3)
    np.testing.assert_allclose(bench.observed().reference.effort, [3.0, 0.0], atol=1e-12)


def test_effort_fades_after_a_cancel(bench: TrajectoryBench) -> None:
    sent = bench.follow([(0.1, START, STILL, STILL, [3.0, 0.0]), (9.0, TARGET, STILL, STILL)])
    bench.run(0.2)
    bench.cancel(sent)
    efforts = []
    for _ in range(75):
        bench.arm.run(1)
        efforts.append(bench.observed().reference.effort[0])
    assert efforts[0] > 2.0
    assert np.abs(np.diff(efforts)).max() < 0.1  # no step
    assert efforts[-1] == pytest.approx(0.0, abs=1e-9)


# Fields that are left out.


def test_points_without_positions_are_refused_by_default(bench: TrajectoryBench) -> None:
    ending = bench.refused(bench.goal([(0.4, [], [0.5, 0.5]), (0.8, [], STILL)]))
    assert ending == (
        *aborted(Result.INVALID_GOAL),
        "point 0: has no positions; give them, or set the parameter "
        "allow_integration_in_goal_trajectories to have them integrated from velocities",
    )


def test_positions_are_integrated_from_velocities(bench: TrajectoryBench) -> None:
    bench.set(allow_integration_in_goal_trajectories=True)
    points = [(0.4, [], [0.5, -0.25]), (0.8, [], STILL)]
    sent = bench.follow(points, start=started(bench))
    reference = bench.recorded(0.8 + 5 / RATE)[4:]
    np.testing.assert_allclose(reference[100, 0], START + np.array([0.1, -0.05]), atol=1e-9)
    np.testing.assert_allclose(reference[100, 1], [0.5, -0.25], atol=1e-9)
    np.testing.assert_allclose(reference[200, 0], START + np.array([0.2, -0.1]), atol=1e-9)
    assert bench.end(sent) == REACHED


def test_positions_are_integrated_from_accelerations(bench: TrajectoryBench) -> None:
    bench.set(allow_integration_in_goal_trajectories=True)
    points = [(0.2, [], [], [1.0, -2.0]), (0.6, [], [], [-1.5, 3.0])]
    sent = bench.follow(points, start=started(bench))
    reference = bench.recorded(0.6 + 5 / RATE)[4:]
    np.testing.assert_allclose(reference[50, 1], [0.1, -0.2], atol=1e-9)
    np.testing.assert_allclose(reference[150, 0], START + np.array([0.03, -0.06]), atol=1e-9)
    np.testing.assert_allclose(reference[150, 1], 0.0, atol=1e-9)
    assert bench.end(sent) == REACHED


def test_moving_end_settles_at_the_last_point(bench: TrajectoryBench) -> None:
    bench.set(allow_nonzero_velocity_at_trajectory_end=True)
    sent = bench.follow([(0.4, TARGET, [0.5, -0.5])], start=started(bench))
    reference = bench.recorded(0.8)[4:]
    np.testing.assert_allclose(reference[100, 0], TARGET, atol=1e-9)
    np.testing.assert_allclose(reference[100, 1], [0.5, -0.5], atol=1e-8)
    assert np.abs(np.diff(reference[:, 1], axis=0)).max() < 0.15
    np.testing.assert_allclose(reference[-20:, 0], np.broadcast_to(TARGET, (20, 2)), atol=1e-9)
    assert bench.end(sent) == REACHED


# Where a trajectory starts.


def first_reference(bench: TrajectoryBench) -> tuple[np.ndarray, np.ndarray]:
    """Reference and arm at the first step of a goal, which starts with the arm pushed away."""
    bench.push([-6.0, 0.0])
    bench.run(1.0)
    bench.follow([(0.5, TARGET, STILL, STILL)], start=bench.now + 1 / RATE)
    reference = bench.recorded(3 / RATE)[-1, 0]
    assert abs(bench.arm.q[-1] - START)[0] > 0.05
    return reference, bench.arm.q[-1]


def test_trajectory_starts_at_the_desired_state(bench: TrajectoryBench) -> None:
    reference, _ = first_reference(bench)
    np.testing.assert_allclose(reference, START, atol=1e-3)


def test_trajectory_starts_at_the_measured_state_if_asked_to(bench: TrajectoryBench) -> None:
    bench.set(interpolate_from_desired_state=False)
    np.testing.assert_allclose(*first_reference(bench), atol=0.01)


def test_trajectory_starts_at_the_measured_state_after_an_error_beyond_the_path_tolerance(
    bench: TrajectoryBench,
) -> None:
    bench.set(constraints__shoulder__trajectory=0.03)
    np.testing.assert_allclose(*first_reference(bench), atol=0.01)


def test_path_tolerance_of_the_running_goal_counts_too(bench: TrajectoryBench) -> None:
    """What a new goal starts from after the goal before has violated its own tolerance."""
    bench.push([-6.0, 0.0])
    sent = bench.follow([(0.5, START, STILL)], path=[tolerance("shoulder", 0.02)])
    assert bench.end(sent)[:2] == aborted(Result.PATH_TOLERANCE_VIOLATED)
    bench.run(0.1)
    before = bench.observed().reference.positions
    bench.follow([(0.5, TARGET, STILL, STILL)])
    np.testing.assert_allclose(bench.recorded(3 / RATE)[-1, 0], before, atol=1e-3)


# Too much effort: gravity takes 12 Nm of 20.

FAST = [(0.3, TARGET, STILL, STILL)]


def test_excessive_effort_is_told_in_the_result(bench: TrajectoryBench) -> None:
    bench.set(effort_limit_scale=0.2)
    status, code, text = bench.end(bench.follow(FAST))
    assert (status, code) == SUCCEEDED
    words = (
        r"the goal is reached; ([\d.]+) s into it, joint 'shoulder' needs (-?[\d.]+) Nm; its "
        r"effort limit is 20. Make the trajectory ([\d.]+) times slower"
    )
    match = re.fullmatch(words, text)
    assert match, text
    time, needed, slower = map(float, match.groups())
    assert 0.0 < time < 0.3
    assert abs(needed) > 20.0
    assert 1.0 < slower < 3.0


def test_excessive_effort_is_refused_if_asked_to(bench: TrajectoryBench) -> None:
    bench.set(effort_limit_scale=0.2, constraints__excessive_effort="refuse")
    status, code, text = bench.refused(bench.goal(FAST))
    assert (status, code) == aborted(Result.INVALID_GOAL)
    assert re.search(r"joint 'shoulder' needs -?[\d.]+ Nm; its effort limit is 20\.", text)


def test_excessive_effort_slows_the_trajectory_down_if_asked_to(bench: TrajectoryBench) -> None:
    bench.set(effort_limit_scale=0.2, constraints__excessive_effort="slow_down")
    sent = bench.follow(FAST)
    reference = bench.recorded(0.5)
    status, code, text = bench.end(sent)
    assert (status, code) == SUCCEEDED
    match = re.fullmatch(
        r"the goal is reached; ([\d.]+) times slower than asked for, to stay within the effort "
        "limits",
        text,
    )
    assert match, text
    moving = np.count_nonzero(np.abs(reference[:, 0] - TARGET).max(axis=1) > 1e-9) / RATE
    assert moving == pytest.approx(0.3 * float(match[1]), abs=0.01)
    needed = max(np.abs(torque(*desired)).max() for desired in reference)
    assert 19.5 < needed < 20.0 + 1e-3  # no slower than it must be


def test_stretched_trajectory_is_slow_enough_for_refuse(bench: TrajectoryBench) -> None:
    """What the result proposes is what the trajectory needs, and no more."""
    bench.set(effort_limit_scale=0.2)
    _, _, text = bench.end(bench.follow(FAST))
    slower = float(re.search(r"([\d.]+) times slower", text)[1])
    bench.reset()
    bench.set(effort_limit_scale=0.2, constraints__excessive_effort="refuse")
    sent = bench.follow([(0.3 * slower * 1.01, TARGET, STILL, STILL)])
    assert bench.end(sent) == REACHED
    bench.reset()
    bench.set(effort_limit_scale=0.2, constraints__excessive_effort="refuse")
    status, _, _ = bench.refused(bench.goal([(0.3 * slower * 0.98, TARGET, STILL, STILL)]))
    assert status == aborted(Result.INVALID_GOAL)[0]
