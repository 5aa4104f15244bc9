"""New trajectories in place of old ones: for some joints, round and round, again and again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from controllers import ask, following, of_joints, run, step, to, wheel_and_hinge

from rnea_control.control import Waypoint
from rnea_control.exceptions import TrajectoryError

SHOULDER, ELBOW = (True, False), (False, True)
FIRST = [to(1.0, 0.5, 0.4, velocity=0.1), to(2.0, 0.8, -0.2, velocity=-0.2), to(3.0, 0.1, 0.6)]


@pytest.mark.parametrize("start", [0.7, 1.0, 1.3, 2.5])
def test_omitted_joint_follows_its_old_path(start: float) -> None:
    c = following()
    c.follow(0.0, FIRST, 0.0)
    old = c.trajectory
    ask(c, 0.0, of_joints([to(0.4, 0.3, 9.0), to(0.8, 0.2, 9.0)], SHOULDER), start)
    for t in np.linspace(0.0, 4.0, 401):
        now, before = c.trajectory.sampled(t), old.sampled(t)
        np.testing.assert_allclose(now[:, 1], before[:, 1], rtol=1e-13, atol=1e-13)
        if t < start:
            np.testing.assert_array_equal(now[:, 0], before[:, 0])
    np.testing.assert_allclose(c.trajectory.at(start + 0.4)[:2, 0], [0.3, 0.0], atol=1e-13)


def test_omitted_joint_may_outlast_the_goal_that_ends_at_its_own_end() -> None:
    c = following()
    c.follow(0.0, FIRST, 0.0)
    motion = ask(c, 0.0, of_joints([to(1.0, 0.3, 0.0)], SHOULDER))
    run(c, 0.0, 1.0 - 1e-3)
    assert motion.ending is None
    run(c, 1.0 - 1e-3, 1.1)
    assert motion.ending is not None and c.is_moving
    assert c.trajectory.end_time == 3.0
    run(c, 1.1, 3.0)
    assert not c.is_moving
    np.testing.assert_allclose(c.desired[0], [0.3, 0.6], atol=1e-12)


def test_goal_may_outlast_the_omitted_joint() -> None:
    c = following()
    c.follow(0.0, FIRST, 0.0)
    ask(c, 0.0, of_joints([to(5.0, 0.3, 0.0)], SHOULDER))
    assert c.trajectory.end_time == 5.0
    np.testing.assert_allclose(c.trajectory.at(4.0)[:, 1], [0.6, 0.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("first", [SHOULDER, ELBOW])
def test_omitted_joint_does_not_count_at_the_end_of_its_goal(first: tuple[bool, bool]) -> None:
    """Accelerations only, while the omitted joint moves: its velocity is none of the goal's end."""
    c = following(allow_integration=True)
    ask(c, 0.0, of_joints(FIRST, first))
    run(c, 0.0, 0.5, 0.01)
    push = of_joints([Waypoint(t, None, None, np.zeros(2)) for t in (0.1, 0.2)], SHOULDER)
    assert (np.abs(c.desired[1]) > 0.1).tolist() == list(first)
    if first == SHOULDER:
        with pytest.raises(TrajectoryError, match="joint 'shoulder' has velocity"):
            ask(c, 0.5, push)
    else:
        ask(c, 0.5, push)
        assert c.trajectory.end_time == 3.0


@pytest.mark.parametrize("moved", [[SHOULDER], [(True, True)], [SHOULDER, ELBOW]])
def test_replacements_take_no_more_memory(moved: list) -> None:
    """Half of them in the future, each of 20 points in 2 s, a hundred a second; also in turn."""
    c = following()
    ask(c, 0.0, [to(6.0, 0.5, 0.5)])
    expected, most = c.trajectory.at(5.5)[:, 1], 0
    for k in range(1, 150):
        t = 0.01 * k
        step(c, t)
        points = [to(0.1 * i, math.sin(t + 0.1 * i), 0.1) for i in range(1, 21)]
        ask(c, t, of_joints(points, moved[k % len(moved)]), t + (0.05 if k % 2 else 0.0))
        most = max(most, len(c.trajectory.starts))
    assert most < (40 if len(moved) == 1 else 60)
    if moved == [SHOULDER]:
        np.testing.assert_allclose(c.trajectory.at(5.5)[:, 1], expected, atol=1e-9)


@pytest.mark.parametrize(
    ("wheel", "goal", "moved", "begin"),
    [
        (3.0, [-3.0, 0.0], SHOULDER, 3.0 - 2.0 * math.pi),
        (3.0, [0.0, -0.5], ELBOW, 3.0),
        (0.0, [-0.3, 0.0], SHOULDER, 0.0),  # the short way already
    ],
)
def test_only_joints_of_the_goal_are_turned_round(wheel, goal, moved, begin: float) -> None:
    """A wheel near half a turn; the goal moves it the short way, past it."""
    c = following((wheel, 0.5), wheel_and_hinge())
    ask(c, 0.0, of_joints([to(1.0, *goal)], moved))
    np.testing.assert_allclose(c.trajectory.at(0.0)[0], [begin, 0.5])
    end = np.where(moved, goal, [begin, 0.5])
    np.testing.assert_allclose(c.trajectory.at(1.0)[0], end)


@pytest.mark.parametrize("last", [None, 9.0 - 2.0 * math.pi])
def test_continuous_joint_with_integrated_positions_is_not_turned_round(last) -> None:
    """It goes on for more than half a turn before the first point that has a position."""
    c = following((0.5, 0.0), wheel_and_hinge(), allow_integration=True)
    speed, turn = np.array([2.0, 0.0]), 0.0 if last is None else 2.0 * math.pi
    points = [Waypoint(t, None, speed) for t in (0.5, 4.0)]
    points.append(Waypoint(5.0, None if last is None else np.array([last, 0.0]), 0.0 * speed))
    c.follow(0.0, points, 0.0)
    for t, q in ((0.0, 0.5), (4.0, 8.0)):
        np.testing.assert_allclose(c.trajectory.at(t)[0], [q - turn, 0.0])
    assert min(c.trajectory.at(t)[1, 0] for t in np.linspace(0.0, 5.0, 200)) > -1e-9


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_joint_outside_its_limits_may_be_left_out(side: float) -> None:
    """It rests at 1.05 of 1, or comes back: neither keeps the other joint from moving."""
    wheel = of_joints([to(0.2 * i, 0.1 * i, 0.0) for i in range(1, 6)], (True, False))
    c = following((0.0, 1.05 * side), wheel_and_hinge())
    ask(c, 0.0, wheel)
    c = following((0.0, 1.3 * side), wheel_and_hinge())
    ask(c, 0.0, of_joints([to(1.0, 0.0, 0.5 * side)], (False, True)))
    ask(c, 0.0, wheel)
    np.testing.assert_allclose(c.trajectory.at(1.0)[0], [0.5, 0.5 * side])


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_breakpoints_of_the_omitted_joint_do_not_shorten_the_way_back(side: float) -> None:
    c = following((0.0, 1.3 * side), wheel_and_hinge())
    ask(c, 0.0, of_joints([to(0.1 * i, 0.1 * i, 0.0) for i in range(1, 9)], (True, False)))
    ask(c, 0.0, of_joints([to(1.0, 0.0, 0.5 * side)], (False, True)))
    with pytest.raises(TrajectoryError, match="'hinge' would be at"):
        fast = np.array([0.0, 3.0 * side])
        outward = [to(0.5, 0.0, 0.9 * side, velocity=fast), to(2.0, 0.0, 0.0)]
        ask(c, 0.0, of_joints(outward, (False, True)))


def test_trajectory_that_has_not_started_is_replaced_from_where_the_arm_is_then() -> None:
    c = following((0.2, -0.4))
    c.follow(0.0, [to(1.0, 0.6, -0.6)], 5.0)
    step(c, 0.5)
    c.follow(0.5, [to(0.5, 0.3, -0.3)], 1.0)
    path = np.array([c.trajectory.at(t)[0] for t in np.linspace(1.0, 1.5, 51)])
    np.testing.assert_allclose(path[0], [0.2, -0.4], atol=1e-12)
    np.testing.assert_allclose(path, np.clip(path, [0.2, -0.4], [0.3, -0.3]), atol=1e-12)
    np.testing.assert_allclose(c.trajectory.at(6.0)[0], [0.3, -0.3], atol=1e-12)  # no old one
