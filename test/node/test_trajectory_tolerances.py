"""Goals whose tolerances are violated, in the settings and in the goal, and what the arm does then.

A push at the joints leads the arm away from its path.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

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

DOMAIN = 92
SWING = np.array([0.4, -0.3])
TARGET = START + SWING
TIME = 0.4
POINTS = [(TIME, TARGET, STILL, STILL)]
LEAD = 0.005
REACHED = (*SUCCEEDED, "the goal is reached")
# Leads the shoulder about 0.2 rad, and the elbow less, off their positions.
PUSH = [-12.0, 0.0]


def desired(t: float) -> np.ndarray:
    x = min(t / TIME, 1.0)
    return START + SWING * x**3 * (10.0 - 15.0 * x + 6.0 * x**2)


def details(text: str, joint: str, place: str, unit: str = "rad") -> tuple[float, ...]:
    """Error, tolerance and time that an error_string names."""
    number = r"([\d.e-]+)"
    match = re.fullmatch(
        f"{joint} was {number} {unit} off its {place}, {number} allowed, {number} s into the "
        "trajectory",
        text,
    )
    assert match, text
    return tuple(map(float, match.groups()))


# On the way.


def violated_path(bench: TrajectoryBench, **goal: object) -> tuple[int, int, str]:
    sent = bench.follow(POINTS, **goal)
    bench.run(0.1)
    bench.push(PUSH)
    return bench.end(sent)


def test_path_tolerance_names_joint_error_tolerance_and_time(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__trajectory=0.05)
    first = len(bench.arm.q)
    status, code, text = violated_path(bench)
    assert (status, code) == aborted(Result.PATH_TOLERANCE_VIOLATED)
    error, allowed, time = details(text, "shoulder", "path")
    step = round((LEAD + time) * RATE) - 1
    errors = [
        abs(desired(t) - bench.arm.q[first + i])[0]
        for i, t in ((step - 1, time - 1 / RATE), (step, time))
    ]
    assert allowed == 0.05
    assert error == pytest.approx(errors[1], rel=0.005)
    assert errors[0] <= allowed < error  # at the first step that was beyond it


def test_arm_comes_to_rest_where_the_path_tolerance_stopped_it(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__trajectory=0.05)
    sent = bench.follow(POINTS)
    before = bench.recorded(0.1)
    bench.push(PUSH)
    reference = np.concatenate([before, bench.recorded(0.5)])
    bench.wait(lambda: sent.ended)
    position, velocity = reference[:, 0], reference[:, 1]
    assert np.abs(np.diff(velocity, axis=0)).max() < 0.15  # 0.9 rad/s would be a step
    np.testing.assert_allclose(velocity[-1], 0.0, atol=1e-9)
    moved = np.diff(position, axis=0) - 0.5 / RATE * (velocity[1:] + velocity[:-1])
    jumps = np.flatnonzero(np.abs(moved).max(axis=1) > 1e-3)
    assert len(jumps) == 1  # the desired position is taken from the arm, once
    assert moved[jumps[0], 0] == pytest.approx(-0.05, abs=0.02)
    bench.push(STILL)
    bench.run(1.5)
    np.testing.assert_allclose(bench.arm.q[-1], position[-1], atol=1e-4)
    assert abs(bench.arm.q[-1][0] - TARGET[0]) > 0.05


def test_without_path_tolerance_any_error_is_borne(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    bench.run(0.1)
    bench.push(PUSH)
    bench.run(0.2)
    assert not sent.ended
    bench.push(STILL)
    assert bench.end(sent) == REACHED


def test_path_tolerance_of_the_goal_overrides_the_default(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__trajectory=1.0)
    _, code, text = violated_path(bench, path=[tolerance("shoulder", 0.03)])
    assert code == Result.PATH_TOLERANCE_VIOLATED
    assert details(text, "shoulder", "path")[1] == 0.03


def test_path_tolerance_of_0_is_the_default(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__trajectory=0.04)
    _, code, text = violated_path(bench, path=[tolerance("shoulder", 0.0)])
    assert code == Result.PATH_TOLERANCE_VIOLATED
    assert details(text, "shoulder", "path")[1] == 0.04


def test_path_tolerance_of_minus_1_is_none(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__trajectory=0.04, constraints__stopped_velocity_tolerance=0.0)
    assert violated_path(bench, path=[tolerance("shoulder", -1.0)]) == REACHED


def test_path_tolerance_of_a_joint_leaves_the_other_its_own(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__trajectory=0.04)
    _, code, text = violated_path(bench, path=[tolerance("elbow", 1.0)])
    assert code == Result.PATH_TOLERANCE_VIOLATED
    details(text, "shoulder", "path")


def test_velocity_tolerance_on_the_way(bench: TrajectoryBench) -> None:
    status, code, text = violated_path(bench, path=[tolerance("shoulder", velocity=0.2)])
    assert (status, code) == aborted(Result.PATH_TOLERANCE_VIOLATED)
    error, allowed, _ = details(text, "shoulder", "path", "rad/s")
    assert error > allowed == 0.2


def test_joint_that_is_farthest_beyond_its_tolerance_is_named(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__trajectory=0.04, constraints__elbow__trajectory=1e-4)
    _, _, text = violated_path(bench)
    details(text, "elbow", "path")


def test_tolerances_are_live(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    bench.run(0.1)
    bench.push(PUSH)
    bench.run(0.1)
    assert not sent.ended
    bench.set(constraints__shoulder__trajectory=0.01)
    bench.arm.run(1)
    bench.wait(lambda: sent.ended)
    assert sent.ending[:2] == aborted(Result.PATH_TOLERANCE_VIOLATED)


# At the end.


def at_the_end(bench: TrajectoryBench, **goal: object) -> object:
    """A goal whose points have all been due for 0.1 s, while the arm is pushed away."""
    bench.push([-3.0, 0.0])
    sent = bench.follow(POINTS, **goal)
    bench.run(TIME + 0.1)
    bench.observed()
    return sent


def test_goal_tolerance_names_joint_error_tolerance_and_time(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__goal=0.01, constraints__goal_time=0.2)
    first = len(bench.arm.q)
    sent = at_the_end(bench)
    assert not sent.ended
    status, code, text = bench.end(sent)
    assert (status, code) == aborted(Result.GOAL_TOLERANCE_VIOLATED)
    error, allowed, time = details(text, "shoulder", "goal")
    assert allowed == 0.01
    assert TIME + 0.2 < time <= TIME + 0.2 + 1.001 / RATE
    step = round((LEAD + time) * RATE) - 1
    assert error == pytest.approx(abs(TARGET - bench.arm.q[first + step])[0], rel=0.005)


def test_arm_stays_where_the_goal_tolerance_gave_up(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__goal=0.01, constraints__goal_time=0.05)
    sent = at_the_end(bench)
    bench.wait(lambda: sent.ended)
    np.testing.assert_allclose(bench.observed().reference.velocities, 0.0, atol=1e-9)
    position = bench.observed().reference.positions
    assert abs(position[0] - TARGET[0]) > 0.01
    bench.push(STILL)
    bench.run(0.8)
    np.testing.assert_allclose(bench.arm.q[-1], position, atol=1e-3)


def test_goal_within_goal_time_succeeds(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__goal=0.01, constraints__goal_time=1.0)
    sent = at_the_end(bench)
    assert not sent.ended
    bench.push(STILL)
    assert bench.end(sent) == REACHED
    assert abs(bench.arm.q[-1] - TARGET)[0] < 0.01


def test_goal_time_of_0_waits(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__goal=0.01)
    sent = at_the_end(bench)
    bench.run(3.0)
    bench.observed()
    assert not sent.ended
    bench.push(STILL)
    assert bench.end(sent) == REACHED


def test_cmd_timeout_takes_the_place_of_goal_time(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__goal=0.01, cmd_timeout=0.15)
    status, code, text = bench.end(at_the_end(bench))
    assert (status, code) == aborted(Result.GOAL_TOLERANCE_VIOLATED)
    assert details(text, "shoulder", "goal")[2] == pytest.approx(TIME + 0.15, abs=1.001 / RATE)


def test_goal_tolerance_and_time_of_the_goal_override_the_default(bench: TrajectoryBench) -> None:
    bench.set(constraints__goal_time=100.0)
    sent = at_the_end(bench, goal=[tolerance("shoulder", 0.005)], goal_time=0.12)
    status, code, text = bench.end(sent)
    assert (status, code) == aborted(Result.GOAL_TOLERANCE_VIOLATED)
    _, allowed, time = details(text, "shoulder", "goal")
    assert (allowed, time) == (0.005, pytest.approx(TIME + 0.12, abs=1.001 / RATE))


def test_goal_tolerance_of_0_is_the_default(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__goal=0.01, constraints__goal_time=0.4)
    ending = bench.end(at_the_end(bench, goal=[tolerance("shoulder")]))
    assert details(ending[2], "shoulder", "goal")[1] == 0.01


def test_goal_tolerance_of_minus_1_is_none(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__goal=0.01, constraints__goal_time=0.05)
    sent = at_the_end(
        bench, goal=[tolerance("shoulder", -1.0, -1.0), tolerance("elbow", -1.0, -1.0)]
    )
    bench.wait(lambda: sent.ended)
    assert sent.ending == REACHED


def test_goal_time_of_minus_1_is_for_ever(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__goal=0.01, constraints__goal_time=0.05)
    sent = at_the_end(bench, goal_time=-1.0)
    bench.run(0.5)
    bench.observed()
    assert not sent.ended
    bench.push(STILL)
    assert bench.end(sent) == REACHED


def test_arm_must_stand_at_the_goal(bench: TrajectoryBench) -> None:
    bench.set(constraints__goal_time=0.01)
    sent = bench.follow([(0.3, TARGET)])  # a line, at whose end the arm still moves
    status, code, text = bench.end(sent)
    assert (status, code) == aborted(Result.GOAL_TOLERANCE_VIOLATED)
    error, allowed, _ = details(text, "(?:shoulder|elbow)", "goal", "rad/s")
    assert error > 0.5 > allowed == 0.01


def test_success_waits_until_the_arm_stands(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__goal=0.004, constraints__elbow__goal=0.004)
    begin = bench.now
    assert bench.end(bench.follow([(0.3, TARGET)])) == REACHED
    assert bench.now - begin > 0.5
    assert np.abs(bench.arm.v[-1]).max() < 0.012


def test_stopped_velocity_tolerance_of_0_is_none(bench: TrajectoryBench) -> None:
    bench.set(constraints__stopped_velocity_tolerance=0.0)
    sent = bench.follow([(0.3, TARGET)])
    bench.run(0.3 + 2 / RATE)
    bench.wait(lambda: sent.ended)
    assert sent.ending == REACHED
    assert np.abs(bench.arm.v[-1]).max() > 0.5


def test_omitted_joint_does_not_decide_about_the_goal(bench: TrajectoryBench) -> None:
    bench.set(
        allow_partial_joints_goal=True,
        constraints__shoulder__goal=0.001,
        constraints__goal_time=0.5,
    )
    bench.push([-3.0, 0.0])
    bench.run(1.0)
    sent = bench.follow([(0.3, [-0.2], [0.0], [0.0])], joints=["elbow"])
    assert bench.end(sent) == REACHED
    assert abs(bench.arm.q[-1][0] - START[0]) > 0.01


# Tolerances that mean nothing.

WRONG = {
    "negative": (
        {"path": [tolerance("elbow", -2.0)]},
        Result.INVALID_GOAL,
        "path_tolerance of joint 'elbow', position is -2.0; it must be above 0, or 0 for the "
        "default, or -1 for none",
    ),
    "NaN": (
        {"goal": [tolerance("shoulder", 0.1, math.nan)]},
        Result.INVALID_GOAL,
        "goal_tolerance of joint 'shoulder', velocity is nan; it must be above 0, or 0 for the "
        "default, or -1 for none",
    ),
    "negative time": (
        {"goal_time": -3.0},
        Result.INVALID_GOAL,
        "goal_time_tolerance is -3.0; it must be above 0, or 0 for the default, or -1 for none",
    ),
    "unknown joint": (
        {"goal": [tolerance("wrist", 0.1)]},
        Result.INVALID_JOINTS,
        "goal_tolerance of joint 'wrist': this controller does not control it; its joints are "
        "shoulder, elbow",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_tolerance_says_why(bench: TrajectoryBench, name: str) -> None:
    tolerances, code, text = WRONG[name]
    assert bench.refused(bench.goal(POINTS, **tolerances)) == (*aborted(code), text)
