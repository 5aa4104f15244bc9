"""Goals that are not followed: they end at once and say why, and the running motion goes on."""

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
)
from trajectory_msgs.msg import MultiDOFJointTrajectoryPoint

DOMAIN = 90
TARGET = START + np.array([0.4, -0.3])
REACHED = (*SUCCEEDED, "the goal is reached")

WRONG = {
    "unknown joint": (
        {"joints": ["shoulder", "wrist"]},
        Result.INVALID_JOINTS,
        "joint_names has 'wrist', which this controller does not control; its joints are "
        "shoulder, elbow",
    ),
    "joint twice": (
        {"joints": ["shoulder", "elbow", "elbow"], "points": [(1.0, [0.0] * 3)]},
        Result.INVALID_JOINTS,
        "joint_names names a joint twice: shoulder, elbow, elbow",
    ),
    "no joints": (
        {"joints": []},
        Result.INVALID_JOINTS,
        "joint_names is empty; it must name the joints that the points' values belong to",
    ),
    "no points": (
        {"points": []},
        Result.INVALID_GOAL,
        "the trajectory has no points; it needs one at least. To stop the arm, cancel the goal or "
        "send the point where it is",
    ),
    "NaN": (
        {"points": [(1.0, [0.0, math.nan])]},
        Result.INVALID_GOAL,
        "point 0: the position of joint 'elbow' is nan; it must be finite",
    ),
    "infinite velocity": (
        {"points": [(1.0, TARGET, [math.inf, 0.0])]},
        Result.INVALID_GOAL,
        "point 0: the velocity of joint 'shoulder' is inf; it must be finite",
    ),
    "falling times": (
        {"points": [(1.0, TARGET), (0.5, START)]},
        Result.INVALID_GOAL,
        "point 1: its time 0.5 s is not after that of point 0, 1 s; times must rise from point to "
        "point",
    ),
    "equal times": (
        {"points": [(1.0, TARGET), (1.0, START)]},
        Result.INVALID_GOAL,
        "point 1: its time 1 s is not after that of point 0, 1 s; times must rise from point to "
        "point",
    ),
    "negative time": (
        {"points": [(-1.0, TARGET), (1.0, START)]},
        Result.INVALID_GOAL,
        "point 0: its time is -1 s; times are counted from the start and must not be negative",
    ),
    "too few positions": (
        {"points": [(1.0, [0.1])]},
        Result.INVALID_GOAL,
        "point 0: has 1 positions for 2 joint_names; it must have one for each",
    ),
    "too many velocities": (
        {"points": [(0.5, TARGET), (1.0, TARGET, [0.0] * 3)]},
        Result.INVALID_GOAL,
        "point 1: has 3 velocities for 2 joint_names; it must have one for each",
    ),
    "no fields": (
        {"points": [(1.0, [])]},
        Result.INVALID_GOAL,
        "point 0: has no positions, velocities or accelerations; give positions",
    ),
    "accelerations without velocities": (
        {"points": [(1.0, TARGET, [], STILL)]},
        Result.INVALID_GOAL,
        "point 0: has positions and accelerations but no velocities; give all three",
    ),
    "moving end": (
        {"points": [(1.0, TARGET, [0.0, 0.25])]},
        Result.INVALID_GOAL,
        "the last point: joint 'elbow' has velocity 0.25 at the end; the last point must be at "
        "rest, unless the parameter allow_nonzero_velocity_at_trajectory_end is set",
    ),
    "outside the limits": (
        {"points": [(1.0, [3.5, 0.0])]},
        Result.INVALID_GOAL,
        "the point at 1 s: joint 'shoulder' at 3.5 is outside its limits -3 to 3",
    ),
    "far first point at time 0": (
        {"points": [(0.0, START + 1.0), (1.0, TARGET)]},
        Result.INVALID_GOAL,
        r"point 0 is at time 0, but joint '\w+' is [\d.]+ rad away from it at the start, 0.1 "
        "allowed. Start where the arm is, or give the point the time to get there",
    ),
    "outside the limits between the points": (
        {"points": [(0.5, [2.9, 0.0], [3.0, 0.0]), (1.0, [2.9, 0.0], STILL)]},
        Result.INVALID_GOAL,
        r"at [\d.]+ s, between the points at 0.5 s and 1 s, joint 'shoulder' would be at 3.\d+ "
        "rad, outside its limits -3 to 3. Add a point there, or lower the velocities at its "
        "neighbours",
    ),
    "too fast": (
        {"points": [(0.1, [2.5, 0.0])]},
        Result.INVALID_GOAL,
        r"at [\d.]+ s, between the points at 0 s and 0.1 s, joint 'shoulder' would move at [\d.]+ "
        r"rad/s; its limit is 10. Make the trajectory [\d.]+ times slower",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_goal_says_why_and_the_running_motion_goes_on(
    bench: TrajectoryBench, name: str
) -> None:
    fields, code, words = WRONG[name]
    running = bench.follow([(0.2, TARGET, STILL)], start=bench.now + 5 / RATE)
    bench.run(0.1)
    status, error_code, text = bench.refused(bench.goal(**{"points": [(1.0, TARGET)], **fields}))
    assert (status, error_code) == aborted(code)
    assert text == words or re.fullmatch(words, text), text
    assert not running.ended
    assert bench.end(running) == REACHED
    np.testing.assert_allclose(bench.observed().reference.positions, TARGET, atol=1e-9)


def test_points_of_several_degrees_of_freedom_are_refused(bench: TrajectoryBench) -> None:
    goal = bench.goal([(1.0, TARGET)])
    goal.multi_dof_trajectory.points = [MultiDOFJointTrajectoryPoint()]
    assert bench.refused(goal) == (
        *aborted(Result.INVALID_GOAL),
        "multi_dof_trajectory has points, which this controller does not follow; leave it empty",
    )
