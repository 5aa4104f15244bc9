"""New trajectories in place of old ones: for some joints, round and round, again and again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from controllers import ARM, ask, following, of_joints, run, step, to, wheel_and_hinge

from rnea_control.control import Waypoint, Waypoints
from rnea_control.control.splicing import continued
from rnea_control.control.trajectory import Trajectory
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


def test_partial_goal_does_not_move_a_joint_at_rest() -> None:
    c = following((0.1, 0.2))
    ask(c, 0.0, of_joints([to(1.0, 0.3, 0.0), to(2.0, -0.3, 0.0)], SHOULDER))
    rows = run(c, 0.0, 2.5, 0.01)
    np.testing.assert_array_equal(rows[:, 0, 1], 0.2)
    np.testing.assert_array_equal(rows[:, 1:, 1], 0.0)


def test_omitted_joint_does_not_count_at_the_end_of_its_goal() -> None:
    """Accelerations only, while the omitted joint moves: its velocity is none of the goal's end."""
    c = following(allow_integration=True)
    c.follow(0.0, FIRST, 0.0)
    run(c, 0.0, 0.5, 0.01)
    push = [Waypoint(t, None, None, np.array([a, 0.0])) for t, a in ((0.1, 0.0), (0.2, 0.0))]
    assert abs(c.desired[1, 0]) > 0.1 and abs(c.desired[1, 1]) > 0.1
    with pytest.raises(TrajectoryError, match="joint 'shoulder' has velocity"):
        ask(c, 0.5, of_joints(push, SHOULDER))
    c = following(allow_integration=True)
    ask(c, 0.0, of_joints(FIRST, ELBOW))
    run(c, 0.0, 0.5, 0.01)
    ask(c, 0.5, of_joints(push, SHOULDER))
    assert c.trajectory.end_time == 3.0


@pytest.mark.parametrize("moved", [SHOULDER, (True, True)])
def test_replacements_take_no_more_memory(moved) -> None:
    """Half of them in the future, each of 20 points in 2 s, a hundred a second."""
    c = following()
    ask(c, 0.0, [to(6.0, 0.5, 0.5)])
    most = 0
    for k in range(1, 500):
        t = 0.01 * k
        step(c, t)
        points = [to(0.1 * i, math.sin(t + 0.1 * i), 0.1, velocity=0.0) for i in range(1, 21)]
        ask(c, t, of_joints(points, moved), t + (0.05 if k % 2 else 0.0))
        most = max(most, len(c.trajectory.starts))
    assert most < 40
    if moved == SHOULDER:
        straight = following()
        ask(straight, 0.0, [to(6.0, 0.5, 0.5)])
        expected = straight.trajectory.at(5.5)[:, 1]
        np.testing.assert_allclose(c.trajectory.at(5.5)[:, 1], expected, atol=1e-9)


def test_joints_replaced_in_turn_do_not_add_up() -> None:
    c = following()
    most = 0
    for k in range(1, 500):
        t = 0.01 * k
        step(c, t)
        points = [to(0.1 * i, *np.full(2, math.sin(t + 0.1 * i))) for i in range(1, 21)]
        ask(c, t, of_joints(points, SHOULDER if k % 2 else ELBOW))
        most = max(most, len(c.trajectory.starts))
    assert most < 60


def test_only_joints_of_the_goal_are_turned_round() -> None:
    """Two wheels near half a turn; the goal moves one of them the short way, past it."""
    model = wheel_and_hinge()
    c = following((3.0, 0.5), model)
    ask(c, 0.0, of_joints([to(1.0, -3.0, 0.0)], (True, False)))
    np.testing.assert_allclose(c.trajectory.at(0.0)[0], [3.0 - 2.0 * math.pi, 0.5])
    np.testing.assert_allclose(c.trajectory.at(1.0)[0], [-3.0, 0.5])
    c = following((3.0, 0.5), model)
    ask(c, 0.0, of_joints([to(1.0, 0.0, -0.5)], (False, True)))
    for t in (0.0, 0.5, 1.0):
        assert c.trajectory.at(t)[0, 0] == 3.0


def test_error_of_a_turned_joint_stays_small() -> None:
    c = following((3.0, 0.0), wheel_and_hinge())
    c.follow(0.0, [to(0.5, -3.0, 0.0), to(1.0, -2.5, 0.0)], 0.0)
    for k in range(1, 100):
        q = c.trajectory.at(0.01 * k)[0] + [2.0 * math.pi * (k % 3 - 1), 0.0]
        c.step(0.01 * k, q, np.zeros(2), np.zeros(2))
        np.testing.assert_allclose(c.position_error, 0.0, atol=1e-12)


def test_continuous_joint_with_integrated_positions_is_not_turned_round() -> None:
    """It goes on for more than half a turn before the first point that has a position."""
    c = following((0.5, 0.0), wheel_and_hinge(), allow_integration=True)
    speed = np.array([2.0, 0.0])
    points = [
        Waypoint(0.5, None, speed),
        Waypoint(4.0, None, speed),
        Waypoint(5.0, None, 0 * speed),
    ]
    c.follow(0.0, points, 0.0)
    np.testing.assert_allclose(c.trajectory.at(4.0)[0], [0.5 + 0.5 + 7.0, 0.0])
    moved = [c.trajectory.at(t)[1, 0] for t in np.linspace(0.0, 5.0, 200)]
    assert min(moved) > -1e-9
    c = following((0.5, 0.0), wheel_and_hinge(), allow_integration=True)
    points[2] = Waypoint(5.0, np.array([9.0 - 2.0 * math.pi, 0.0]), 0.0 * speed)
    c.follow(0.0, points, 0.0)
    np.testing.assert_allclose(c.trajectory.at(0.0)[0], [0.5 - 2.0 * math.pi, 0.0])
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


def test_times_since_1970_splice_as_well() -> None:
    """They come in steps of 0.2 us."""
    late, early = following(), following()
    begin = 1.7e9
    late.hold(begin, np.zeros(2))
    for c, origin in ((early, 0.0), (late, begin)):
        c.follow(origin, FIRST, origin)
        ask(c, origin, of_joints([to(0.4, 0.3, 0.0)], SHOULDER), origin + 0.7)
    for t in np.linspace(0.0, 4.0, 100):
        now, expected = late.trajectory.sampled(begin + t), early.trajectory.sampled(t)
        np.testing.assert_allclose(now[:2], expected[:2], atol=1e-5)
        np.testing.assert_allclose(now[2:], expected[2:], atol=1e-3)


def test_before_the_old_trajectory_starts_it_rests() -> None:
    points = Waypoints.of([to(2.0, 0.5, 0.5)], 2)
    old = Trajectory.hold(1.0, np.array([0.1, 0.2]))
    new = continued(old, 0.0, 0.5, points, np.zeros(2))
    np.testing.assert_array_equal(new.at(0.2), [[0.1, 0.2], [0, 0], [0, 0]])
    np.testing.assert_allclose(new.at(0.5)[0], [0.1, 0.2])
    assert ARM.nv == new.nv
