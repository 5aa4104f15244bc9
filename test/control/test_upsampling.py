"""Curves through waypoints: by the fields given, and smooth ones through positions alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from controllers import ZERO, ask, following, run
from trajectories import through

from rnea_control.control import Waypoint, Waypoints
from rnea_control.control.trajectory import POSITION_COEFFICIENTS

RNG = np.random.default_rng(11)
STATE = RNG.standard_normal((4, 3))


def test_positions_alone_give_straight_lines() -> None:
    p0, p1 = np.array([[0.0, 1.0], [2.0, -1.0]])
    trajectory = through([Waypoint(1.0, p0), Waypoint(3.0, p1)])
    q, v, a = trajectory.at(1.5)
    np.testing.assert_allclose(q, [0.5, 0.5])
    np.testing.assert_allclose(v, [1.0, -1.0])
    np.testing.assert_array_equal(a, 0.0)


def test_velocities_give_cubics_that_meet_both_ends() -> None:
    p0, p1, v0, v1 = RNG.standard_normal((4, 2))
    points = [Waypoint(1.0, p0, v0), Waypoint(2.5, p1, v1), Waypoint(4.0, p1, ZERO)]
    trajectory = through(points)
    for point in points:
        expected = [point.position, point.velocity]
        np.testing.assert_allclose(trajectory.at(point.time)[:2], expected, atol=1e-13)
    assert not trajectory.coefficients[:, :, 4:POSITION_COEFFICIENTS].any()


def test_accelerations_give_quintics_that_meet_both_ends() -> None:
    first, second = RNG.standard_normal((2, 3, 2))
    points = [Waypoint(0.0, *first), Waypoint(1.7, *second), Waypoint(3.0, ZERO, ZERO, ZERO)]
    trajectory = through(points)
    np.testing.assert_allclose(trajectory.at(0.0), first, atol=1e-10)
    for t in (1.7 - 1e-12, 1.7):
        np.testing.assert_allclose(trajectory.at(t), second, atol=1e-9)


def test_a_segment_uses_the_fields_that_both_its_ends_have() -> None:
    p0, p1, p2 = RNG.standard_normal((3, 2))
    points = [Waypoint(0.0, p0), Waypoint(1.0, p1, np.ones(2)), Waypoint(2.0, p2, np.zeros(2))]
    trajectory = through(points)
    assert not trajectory.coefficients[0, :, 2:].any()  # a line
    assert trajectory.coefficients[1, :, 2:4].all()  # a cubic


def test_rests_before_the_start_and_after_the_end() -> None:
    p0, p1, v = RNG.standard_normal((3, 2))
    points = [Waypoint(1.0, p0, v), Waypoint(2.0, p1, np.zeros(2))]
    trajectory = through(points)
    assert trajectory.end_time == 2.0
    for t, position in ((-5.0, p0), (0.999, p0), (2.0, p1), (1e9, p1)):
        np.testing.assert_allclose(trajectory.at(t), [position, [0, 0], [0, 0]])


# Smooth motions through positions, and streams of them.


def chunk(n: int, at_rest: bool) -> Waypoints:
    """`n` random positions after a state, upsampled."""
    times = np.cumsum(RNG.uniform(0.05, 0.4, n))
    points = Waypoints.of([Waypoint(t, RNG.standard_normal(3)) for t in times], 3)
    return points.inserted(0, 0.0, STATE).upsampled(at_rest)


def closed_form(points: Waypoints, at_rest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Velocities and accelerations, by one dense system of all coefficients of the polynomials.

    Quartic first, cubics, and for a rest at the end a quartic last; position at both ends of each,
    velocity and acceleration continuous and given at the start, acceleration zero at the end.
    """
    n, T = len(points) - 1, np.diff(points.times)
    order = np.array([5, *[4] * (n - 1)])
    order[-1] += at_rest
    first = np.concatenate([[0], np.cumsum(order)])

    def derivative(i: int, k: int, u: float) -> np.ndarray:
        row = np.zeros(first[-1])
        for power in range(k, order[i]):
            row[first[i] + power] = math.perm(power, k) * u ** (power - k)
        return row

    demands = [(derivative(0, k, 0.0), points.fields[k, 0]) for k in (1, 2)]
    for i in range(n):
        demands.append((derivative(i, 0, 0.0), points.positions[i]))
        demands.append((derivative(i, 0, T[i]), points.positions[i + 1]))
    zero = np.zeros(points.nv)
    for i in range(n - 1):
        for k in (1, 2):
            demands.append((derivative(i, k, T[i]) - derivative(i + 1, k, 0.0), zero))
    for k in (1, 2) if at_rest else (2,):
        demands.append((derivative(n - 1, k, T[-1]), zero))
    rows, right = zip(*demands, strict=True)
    solved = np.linalg.solve(np.array(rows), np.array(right))
    ends = [(i, 0.0) for i in range(n)] + [(n - 1, T[-1])]
    v, a = (np.array([derivative(i, k, u) @ solved for i, u in ends]) for k in (1, 2))
    return v, a


@pytest.mark.parametrize("at_rest", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 17])
def test_it_is_the_solution_of_the_whole_system(n: int, at_rest: bool) -> None:
    points = chunk(n, at_rest)
    v, a = closed_form(points, at_rest)
    np.testing.assert_allclose(points.velocities, v, atol=1e-9)
    np.testing.assert_allclose(points.fields[2], a, atol=1e-8)
    np.testing.assert_array_equal(points.fields[:, 0], STATE)


def streaming(q=(0.0, 0.3), **settings):
    return following(q, upsample_positions=True, **settings)


def wave(begin: float, n: int, dt: float = 0.02) -> list[Waypoint]:
    """The next `n` positions of a policy."""
    times = begin + dt * np.arange(1, n + 1)
    return [Waypoint(t - begin, 0.3 * np.array([np.sin(2 * t), np.cos(3 * t)])) for t in times]


def test_stream_in_time_does_not_stop_between_its_chunks() -> None:
    c = streaming()
    for k in range(20):
        t = 0.1 * k
        ask(c, t, [Waypoint(0.15, np.full(2, 0.1 * (k + 1.5)))], is_stream=True)
        slowest = run(c, t, t + 0.1, 0.005)[:, 1].min()
        assert slowest > 0.5 or k < 3


@pytest.mark.parametrize("n", [1, 25])
def test_stream_that_ends_settles_at_its_last_point(n: int) -> None:
    c = streaming((0.0, 0.3), max_deceleration=np.full(2, 5.0))
    points = wave(0.0, n)
    ask(c, 0.0, points, is_stream=True)
    moving = c.trajectory.at(points[-1].time)
    np.testing.assert_allclose(moving[0], points[-1].position, atol=1e-12)
    assert np.abs(moving[1]).max() > 0.3
    np.testing.assert_allclose(moving[2], 0.0, atol=1e-9)
    times = np.linspace(points[-1].time, c.trajectory.end_time, 500)
    rows = np.array([c.trajectory.at(t) for t in times])
    np.testing.assert_allclose(rows[-1], [points[-1].position, [0, 0], [0, 0]], atol=1e-12)
    assert np.abs(rows[:, 2]).max() <= 5.0 * 1.001
    assert np.abs(np.diff(rows[:, 2], axis=0)).max() < 0.3


@pytest.mark.parametrize("n", [1, 25])
def test_goal_ends_at_rest(n: int) -> None:
    c = streaming()
    motion = ask(c, 0.0, wave(0.0, n))
    np.testing.assert_allclose(c.trajectory.at(motion.end - 1e-12)[1:], 0.0, atol=1e-6)
    assert c.trajectory.end_time == pytest.approx(0.02 * n) == motion.end


def test_stream_that_would_leave_the_limits_ends_at_rest() -> None:
    """At 0.1 rad from the limit with 5 rad/s it cannot settle back without passing it."""
    c = streaming((0.0, 0.0))
    points = [Waypoint(0.1 * i, np.array([0.0, 0.29 * i])) for i in range(1, 11)]
    ask(c, 0.0, points, is_stream=True)
    assert np.abs(c.trajectory.at(1.0 - 1e-9)[1]).max() < 1e-6
    assert max(c.trajectory.at(t)[0, 1] for t in np.linspace(0.0, 2.0, 2000)) <= 3.0


@pytest.mark.parametrize("field", [{"velocity": np.ones(2)}, {"acceleration": np.ones(2)}])
def test_points_with_velocities_are_taken_as_they_are(field) -> None:
    c = streaming(allow_moving_end=True, allow_integration=True)
    points = wave(0.0, 5)
    q = None if "acceleration" in field else points[1].position
    points[1] = Waypoint(points[1].time, q, **field)
    ask(c, 0.0, points)
    assert not c.trajectory.coefficients[3:, :, 2:6].any()  # lines


def test_effort_of_the_points_stays_a_line() -> None:
    c = streaming((0.0, 0.0))
    points = [Waypoint(t, np.full(2, 0.1 * t), effort=np.full(2, 10.0 * t)) for t in (0.2, 0.4)]
    ask(c, 0.0, points)
    for t in (0.0, 0.1, 0.3, 0.4, 9.0):
        np.testing.assert_allclose(c.trajectory.sampled(t)[3], 10.0 * min(t, 0.4), atol=1e-12)
