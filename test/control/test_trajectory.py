"""Trajectories: interpolation by the fields given, holding, splicing, and what is refused."""

from __future__ import annotations

import math

import numpy as np
from trajectories import then, through

from rnea_control.control import Trajectory, Waypoint
from rnea_control.control.trajectory import POSITION_COEFFICIENTS

ZERO = np.zeros(2)
RNG = np.random.default_rng(6)


def two(*rows) -> list[np.ndarray]:
    return [np.array(row, dtype=np.float64) for row in rows]


def test_positions_alone_give_straight_lines() -> None:
    p0, p1 = two([0, 1], [2, -1])
    trajectory = through([Waypoint(1.0, p0), Waypoint(3.0, p1)])
    q, v, a = trajectory.at(1.5)
    np.testing.assert_allclose(q, [0.5, 0.5])
    np.testing.assert_allclose(v, [1.0, -1.0])
    np.testing.assert_array_equal(a, 0.0)


def test_velocities_give_cubics_that_meet_both_ends() -> None:
    p0, p1, v0, v1 = RNG.standard_normal((4, 2))
    rest = Waypoint(4.0, p1, np.zeros(2))
    points = [Waypoint(1.0, p0, v0), Waypoint(2.5, p1, v1), rest]
    trajectory = through(points)
    for point in points:
        q, v, _ = trajectory.at(point.time)
        np.testing.assert_allclose(q, point.position, atol=1e-13)
        np.testing.assert_allclose(v, point.velocity, atol=1e-13)
    assert not trajectory.coefficients[:, :, 4:POSITION_COEFFICIENTS].any()


def test_accelerations_give_quintics_that_meet_both_ends() -> None:
    p0, p1, v0, v1, a0, a1 = RNG.standard_normal((6, 2))
    zero = np.zeros(2)
    points = [Waypoint(0.0, p0, v0, a0), Waypoint(1.7, p1, v1, a1), Waypoint(3.0, p0, zero, zero)]
    trajectory = through(points)
    for point in points[:2]:
        for t in (point.time, point.time + 1e-12):
            q, v, a = trajectory.at(t)
            np.testing.assert_allclose(q, point.position, atol=1e-10)
            np.testing.assert_allclose(v, point.velocity, atol=1e-10)
            np.testing.assert_allclose(a, point.acceleration, atol=1e-10)
    just_before = trajectory.at(1.7 - 1e-12)
    np.testing.assert_allclose(just_before, trajectory.at(1.7), atol=1e-9)


def test_a_segment_uses_the_fields_that_both_its_ends_have() -> None:
    p0, p1, p2 = RNG.standard_normal((3, 2))
    points = [Waypoint(0.0, p0), Waypoint(1.0, p1, np.ones(2)), Waypoint(2.0, p2, np.zeros(2))]
    trajectory = through(points)
    assert not trajectory.coefficients[0, :, 2:].any()  # a line
    assert trajectory.coefficients[1, :, 2:4].all()  # a cubic


def test_velocity_and_acceleration_are_the_derivatives() -> None:
    p, v, a = RNG.standard_normal((3, 2))
    zero = np.zeros(2)
    points = [
        Waypoint(0.0, zero, zero, zero),
        Waypoint(1.0, p, v, a),
        Waypoint(2.0, -p, zero, zero),
    ]
    trajectory = through(points)
    h = 1e-6
    for t in (0.3, 0.9, 1.1, 1.8):
        before, now, after = trajectory.at(t - h), trajectory.at(t), trajectory.at(t + h)
        np.testing.assert_allclose((after[0] - before[0]) / (2 * h), now[1], atol=1e-8)
        np.testing.assert_allclose((after[1] - before[1]) / (2 * h), now[2], atol=1e-7)


def test_rests_before_the_start_and_after_the_end() -> None:
    p0, p1, v = RNG.standard_normal((3, 2))
    points = [Waypoint(1.0, p0, v), Waypoint(2.0, p1, np.zeros(2))]
    trajectory = through(points)
    assert trajectory.end_time == 2.0
    for t, position in ((-5.0, p0), (0.999, p0), (2.0, p1), (1e9, p1)):
        np.testing.assert_allclose(trajectory.at(t), [position, [0, 0], [0, 0]])


def test_splice_begins_without_a_jump() -> None:
    zero = np.zeros(2)
    old = through([Waypoint(0.0, zero, zero, zero), Waypoint(4.0, np.ones(2), zero, zero)])
    goal = [Waypoint(3.0, -np.ones(2), zero, zero)]
    new = then(old, goal, 0.5, 1.0, zero)
    for t in (0.5, 0.8, 1.0 - 1e-9):
        np.testing.assert_allclose(new.at(t), old.at(t), atol=1e-12)
    np.testing.assert_allclose(new.at(1.0), old.at(1.0), atol=1e-12)
    np.testing.assert_allclose(new.at(1.0 + 1e-9), old.at(1.0), atol=1e-7)
    np.testing.assert_allclose(new.at(3.0), [-np.ones(2), zero, zero], atol=1e-12)


def test_splicing_for_ever_does_not_grow() -> None:
    zero = np.zeros(2)
    trajectory = Trajectory.hold(0.0, zero)
    for i in range(200):
        now = 0.1 * i
        goal = [Waypoint(now + 1.0, RNG.standard_normal(2), zero)]
        trajectory = then(trajectory, goal, now, now + 0.05, zero)
    assert len(trajectory.starts) < 6


def test_continuous_joint_goes_the_short_way() -> None:
    start = np.array([3.0, 3.0])
    goal = [Waypoint(1.0, np.array([-3.0, -3.0]), np.zeros(2))]
    new = then(Trajectory.hold(0.0, start), goal, 0.0, 0.0, np.array([1.0, 0.0]))
    np.testing.assert_allclose(new.at(0.0)[0], [3.0 - 2 * math.pi, 3.0])
    assert np.ptp([new.at(t)[0, 0] for t in np.linspace(0, 1, 20)]) < 0.3
    np.testing.assert_allclose(new.at(1.0)[0], [-3.0, -3.0])


def test_continuous_joint_that_moves_does_not_jump_when_the_short_way_is_taken() -> None:
    """The rest of the old motion is turned round with the new one."""
    zero, ones = np.zeros(2), np.ones(2)
    old = through([Waypoint(0.0, zero, zero), Waypoint(2.0, 3.0 * ones, zero)])
    goal = [Waypoint(4.0, -3.0 * ones, zero)]
    new = then(old, goal, 1.0, 1.9, np.array([1.0, 0.0]))
    turn = np.zeros((3, 2))
    turn[0, 0] = -2.0 * math.pi
    for t in (1.0, 1.5):
        np.testing.assert_allclose(new.at(t), old.at(t) + turn, atol=1e-12)
    np.testing.assert_allclose(new.at(1.9 - 1e-9)[:2], new.at(1.9)[:2], atol=1e-7)
    np.testing.assert_allclose(new.at(4.0)[0], [-3.0, -3.0])
