"""Tolerances on the way and at the end, whose they are, and what the ending says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from controllers import ask, following, of_joints, rules, run, step, to
from robots import two_link_arm

from rnea_control.control import Act, EndKind, GoalTolerances, JointTolerance, Tolerances
from rnea_control.exceptions import TrajectoryJointsError, TrajectoryTolerancesError
from rnea_control.model import RobotModel

GOAL = [to(0.5, 0.2, -0.1), to(1.0, 0.4, 0.1)]


def asked(tolerances: dict, goal: GoalTolerances | None = None, **settings):
    c = following(tolerances=tolerances, **settings)
    return c, ask(c, 0.0, GOAL, tolerances=goal or GoalTolerances())


@pytest.mark.parametrize(
    ("of", "allowed", "within", "beyond", "words"),
    [
        ("position", 0.05, (0.0, 0.0499), (0.01, -0.0612), "elbow was 0.0612 rad"),
        ("velocity", 0.1, (0.099, 0.0), (0.12, 0.0), "shoulder was 0.12 rad/s"),
        # 1.5 times and twice what is allowed
        ("position", (0.2, 0.01), (0.199, 0.009), (0.3, 0.02), "elbow was 0.02 rad"),
    ],
)
@pytest.mark.parametrize("moved", [(True, True), (True, False)])
def test_arm_off_its_path_ends_the_motion(of, allowed, within, beyond, words, moved) -> None:
    """Every joint must stay on its path, and the worst one is named by its own tolerance."""
    c, off = following(tolerances={f"path_{of}": allowed}), "away" if of == "position" else "fast"
    motion = ask(c, 0.0, of_joints(GOAL, moved))
    run(c, 0.0, 0.3, **{off: within})
    assert motion.ending is None
    step(c, 0.301, **{off: beyond})
    assert motion.ending.kind == EndKind.PATH_TOLERANCE_VIOLATED
    assert (
        motion.ending.text
        == f"{words} off its path, {np.min(allowed)} allowed, 0.301 s into the trajectory"
    )


def test_goal_is_reached_at_its_end_and_not_before() -> None:
    c, motion = asked({"path_position": 0.01, "goal_position": 0.1})
    run(c, 0.0, 0.999)
    assert motion.ending is None
    step(c, 1.0, away=0.05)  # the tolerances of the path do not hold there
    assert motion.ending.kind == EndKind.REACHED
    assert motion.ending.text == "the goal is reached"
    np.testing.assert_array_equal(c.trajectory.at(2.0)[0], GOAL[-1].position)
    c = following(tolerances={"goal_position": 0.01, "goal_velocity": 0.01, "goal_time": 0.1})
    motion = ask(c, 0.0, of_joints(GOAL, (True, False)))  # only its joints must reach it
    run(c, 0.0, 1.0, away=(0.0, 0.5), fast=(0.0, 0.5))
    assert motion.ending.kind == EndKind.REACHED


def test_goal_may_be_reached_late_but_not_too_late() -> None:
    for late, kind in ((0.19, EndKind.REACHED), (0.21, EndKind.GOAL_TOLERANCE_VIOLATED)):
        c, motion = asked({"goal_position": 0.01, "goal_time": 0.2})
        run(c, 0.0, 1.0 + late - 0.001, away=(0.0, 0.02))
        if kind == EndKind.REACHED:
            assert motion.ending is None
        step(c, 1.0 + late)
        assert motion.ending.kind == kind
    words = "elbow was 0.02 rad off its goal, 0.01 allowed, 1.201 s into the trajectory"
    assert motion.ending.text == words
    np.testing.assert_allclose(c.trajectory.at(9.0)[0], [0.4, 0.12])


def test_velocity_at_the_goal() -> None:
    c, motion = asked({"goal_velocity": 0.01, "goal_time": 0.1})
    run(c, 0.0, 1.05, fast=0.02)
    assert motion.ending is None
    run(c, 1.05, 1.2, fast=0.02)
    assert motion.ending.text.startswith("shoulder was 0.02 rad/s off its goal, 0.01")


def test_without_a_goal_time_it_waits_for_ever() -> None:
    c, motion = asked({"goal_position": 0.01})
    run(c, 0.0, 60.0, 0.05, away=0.02)
    assert motion.ending is None
    step(c, 60.1)
    assert motion.ending.kind == EndKind.REACHED


def test_tolerances_of_a_goal_override_the_default_ones() -> None:
    """0 is the default, -1 none, and joints that are not named keep theirs."""
    default = Tolerances(*np.full((4, 2), 0.1), 1.0)
    of_path, of_goal = JointTolerance("elbow", 0.02, -1.0), JointTolerance("shoulder", 0.0, 0.3)
    goal = GoalTolerances((of_path,), (of_goal,), -1.0)
    new = default.overridden(goal, ("shoulder", "elbow"))
    np.testing.assert_array_equal(new.path_position, [0.1, 0.02])
    np.testing.assert_array_equal(new.path_velocity, [0.1, math.inf])
    np.testing.assert_array_equal(new.goal_position, [0.1, 0.1])
    np.testing.assert_array_equal(new.goal_velocity, [0.3, 0.1])
    assert new.goal_time == math.inf
    assert default.overridden(GoalTolerances(time=0.0), ("a", "b")).goal_time == 1.0
    assert default.overridden(GoalTolerances(time=2.5), ("a", "b")).goal_time == 2.5
    np.testing.assert_array_equal(default.path_position, 0.1)


@pytest.mark.parametrize(
    ("tolerances", "words"),
    [
        (GoalTolerances((JointTolerance("elbow", -0.5),)), "joint 'elbow', position is -0.5"),
        (GoalTolerances((), (JointTolerance("elbow", 0.1, -2.0),)), "'elbow', velocity is -2.0"),
        (GoalTolerances((JointTolerance("elbow", math.nan),)), "position is nan; it must be above"),
        (GoalTolerances(time=-3.0), "goal_time_tolerance is -3.0; it must be above 0, or 0 for"),
    ],
)
def test_tolerances_that_mean_nothing_are_refused(tolerances: GoalTolerances, words: str) -> None:
    c = following()
    held = c.trajectory
    with pytest.raises(TrajectoryTolerancesError, match=words):
        ask(c, 0.0, GOAL, tolerances=tolerances)
    assert c.trajectory is held


def test_tolerance_of_an_unknown_joint_is_refused() -> None:
    tolerances = GoalTolerances((JointTolerance("wrist", 0.1),))
    with pytest.raises(TrajectoryJointsError, match=r"'wrist': .* its joints are shoulder, elbow"):
        ask(following(), 0.0, GOAL, tolerances=tolerances)


def test_tolerance_of_the_goal_counts_while_it_is_followed() -> None:
    loose = GoalTolerances((JointTolerance("elbow", -1.0),))
    c, motion = asked({"path_position": 0.01}, loose)
    run(c, 0.0, 0.3, away=(0.0, 0.5))
    assert motion.ending is None
    step(c, 0.301, away=(0.02, 0.5))
    assert motion.ending.text.startswith("shoulder was 0.02")
    c, _ = asked({"path_position": 0.01}, loose)
    second = ask(c, 0.0, GOAL)
    step(c, 0.001, away=(0.0, 0.02))
    assert second.ending.kind == EndKind.PATH_TOLERANCE_VIOLATED


def test_settings_that_change_keep_what_the_goal_has_brought() -> None:
    c, motion = asked({}, GoalTolerances((JointTolerance("elbow", 0.3),)))
    run(c, 0.0, 0.2, away=0.25)
    new = rules(tolerances={"path_position": 0.1})
    c.settings = type(c.settings)(c.settings.gains, trajectories=new)
    step(c, 0.201, away=(0.09, 0.25))
    assert motion.ending is None
    step(c, 0.202, away=(0.11, 0.25))
    assert motion.ending.text.startswith("shoulder was 0.11 rad off its path, 0.1 allowed")


def test_holding_and_stopping_are_not_checked() -> None:
    c, motion = asked({"path_position": 0.01, "goal_position": 0.01, "goal_time": 0.1})
    c.finish("canceled by the client", Act.BRAKES, EndKind.CANCELLED)
    trajectory = c.trajectory
    run(c, 0.0, 3.0, 0.01, away=0.5)
    assert motion.ending.text == "canceled by the client" and c.trajectory is trajectory


def test_note_comes_with_the_ending() -> None:
    weak = RobotModel.from_urdf_string(two_link_arm().replace('effort="100"', 'effort="30"'))
    c = following(model=weak)
    motion = ask(c, 0.0, [to(0.3, 1.0, 0.0)])
    assert "its effort limit is 30" in motion.note
    run(c, 0.0, 0.3)
    assert motion.ending.text == f"the goal is reached; {motion.note}"


def test_until_its_start_a_trajectory_is_judged_by_the_default_tolerances() -> None:
    own = GoalTolerances(path=(JointTolerance("shoulder", 0.01),))
    for away, t, words in (
        (0.09, 0.501, "0.09 rad off its path, 0.01 allowed, 0.001 s into the trajectory"),
        (0.11, 0.2, "0.11 rad off its path, 0.1 allowed, 0.300 s before it"),
    ):
        c = following(tolerances={"path_position": np.array([0.1, math.inf])})
        motion = ask(c, 0.0, GOAL, start=0.5, tolerances=own)
        run(c, 0.0, t - 0.01, away=(min(away, 0.09), 0.0))
        assert motion.ending is None
        step(c, t, away=(away, 0.0))
        assert motion.ending.text == f"shoulder was {words}"
