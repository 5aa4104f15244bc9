"""Smooth motions through positions, and streams of them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from controllers import ask, following, run, step

from rnea_control.control import Waypoint, Waypoints
from rnea_control.control.upsampling import upsampled

RNG = np.random.default_rng(11)
STATE = RNG.standard_normal((4, 3))


def chunk(n: int, at_rest: bool, times=None, state=STATE) -> Waypoints:
    """`n` random positions after a state, upsampled."""
    times = np.cumsum(RNG.uniform(0.05, 0.4, n)) if times is None else times
    points = Waypoints.of([Waypoint(t, RNG.standard_normal(3)) for t in times], 3)
    return upsampled(points.led_by(0.0, state), at_rest)


def closed_form(points: Waypoints, at_rest: bool) -> tuple[np.ndarray, np.ndarray]:
    """Velocities and accelerations, by one dense system of all coefficients of the polynomials.

    Quartic first, cubics, and for a rest at the end a quartic last; position at both ends of each,
    velocity and acceleration continuous and given at the start, acceleration zero at the end.
    """
    n, T = len(points) - 1, np.diff(points.times)
    order = [5 if i == 0 else 4 for i in range(n)]
    if at_rest:
        order[-1] += 1
    first = np.concatenate([[0], np.cumsum(order)])
    rows, right = [], []

    def derivative(i: int, k: int, u: float) -> np.ndarray:
        row = np.zeros(first[-1])
        for power in range(k, order[i]):
            factor = np.prod(np.arange(power - k + 1, power + 1)) if k else 1.0
            row[first[i] + power] = factor * u ** (power - k)
        return row

    def demand(row: np.ndarray, value) -> None:
        rows.append(row)
        right.append(np.broadcast_to(value, points.nv))

    demand(derivative(0, 1, 0.0), points.fields[1, 0])
    demand(derivative(0, 2, 0.0), points.fields[2, 0])
    for i in range(n):
        demand(derivative(i, 0, 0.0), points.positions[i])
        demand(derivative(i, 0, T[i]), points.positions[i + 1])
        if i + 1 < n:
            for k in (1, 2):
                demand(derivative(i, k, T[i]) - derivative(i + 1, k, 0.0), 0.0)
    demand(derivative(n - 1, 2, T[-1]), 0.0)
    if at_rest:
        demand(derivative(n - 1, 1, T[-1]), 0.0)
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


def test_uniform_motion_stays_uniform() -> None:
    v = np.array([0.3, -0.1, 0.0])
    points = Waypoints.of([Waypoint(t, v * t) for t in (0.1, 0.35, 0.9)], 3)
    smooth = upsampled(points.led_by(0.0, np.array([0 * v, v, 0 * v, 0 * v])), False)
    np.testing.assert_allclose(smooth.velocities, np.tile(v, (4, 1)), atol=1e-12)
    np.testing.assert_allclose(smooth.fields[2], 0.0, atol=1e-10)


def test_a_smooth_curve_is_met_to_fourth_order() -> None:
    def error(n: int) -> float:
        times = np.arange(1, n + 1) / n
        points = Waypoints.of([Waypoint(t, np.array([np.sin(6.0 * t)])) for t in times], 1)
        smooth = upsampled(points.led_by(0.0, np.array([[0.0], [6.0], [0.0], [0.0]])), False)
        inner = times < 0.6  # away from the end, whose acceleration is not zero in truth
        return np.abs(smooth.velocities[1:, 0] - 6.0 * np.cos(6.0 * times))[inner].max()

    assert error(80) < error(40) / 7.0 < error(20) / 49.0


def streaming(q=(0.0, 0.3), **settings):
    return following(q, upsample_positions=True, **settings)


def wave(begin: float, n: int, dt: float = 0.02) -> list[Waypoint]:
    """The next `n` positions of a policy."""
    times = begin + dt * np.arange(1, n + 1)
    return [Waypoint(t - begin, 0.3 * np.array([np.sin(2 * t), np.cos(3 * t)])) for t in times]


@pytest.mark.parametrize("rate", [10.0, 50.0, 100.0])
def test_chunks_follow_each_other_without_a_step_of_the_acceleration(rate: float) -> None:
    """A policy with some noise, chunks of 0.5 s, each replaced before its end."""
    c = streaming()
    last, h, t = c.snapshot().desired, 0.001, 0.0
    for k in range(round(2.0 * rate)):
        points = wave(k / rate, 25)
        noisy = [Waypoint(p.time, p.position + 1e-4 * RNG.standard_normal(2)) for p in points]
        ask(c, t, noisy, is_stream=True, lead=0.002)
        most = np.abs(c.trajectory.coefficients[:, :, 3:6]).max()
        while t < (k + 1) / rate - 1e-9:
            t += h
            step(c, t)
            now = c.snapshot().desired
            np.testing.assert_allclose(now[0] - last[0], h * last[1], atol=50.0 * h**2)
            np.testing.assert_allclose(now[1] - last[1], h * last[2], atol=6.0 * most * h**2)
            assert np.abs(now[2] - last[2]).max() <= 80.0 * most * h
            last = now
    error = c.desired[0] - 0.3 * np.array([np.sin(2 * t), np.cos(3 * t)])
    assert np.abs(error).max() < 0.02


def test_stream_in_time_does_not_stop_between_its_chunks() -> None:
    c, t = streaming(), 0.0
    speeds = []
    for k in range(20):
        ask(c, t, [Waypoint(0.15, np.full(2, 0.1 * (k + 1.5)))], is_stream=True)
        speeds.append(run(c, t, t + 0.1, 0.005)[:, 1].min())
        t += 0.1
    assert min(speeds[3:]) > 0.5


def test_stream_that_ends_settles_at_its_last_point() -> None:
    c = streaming(max_deceleration=np.full(2, 5.0))
    points = wave(0.0, 25)
    ask(c, 0.0, points, is_stream=True)
    moving = c.trajectory.at(0.5)
    np.testing.assert_allclose(moving[0], points[-1].position, atol=1e-12)
    assert np.abs(moving[1]).max() > 0.3
    np.testing.assert_allclose(moving[2], 0.0, atol=1e-9)
    end = c.trajectory.end_time
    times = np.linspace(0.5, end, 500)
    rows = np.array([c.trajectory.at(t) for t in times])
    np.testing.assert_allclose(rows[-1], [points[-1].position, [0, 0], [0, 0]], atol=1e-12)
    assert np.abs(rows[:, 2]).max() <= 5.0 * 1.001
    assert np.abs(np.diff(rows[:, 2], axis=0)).max() < 0.3


def test_goal_ends_at_rest() -> None:
    c = streaming()
    points = wave(0.0, 25)
    motion = ask(c, 0.0, points)
    np.testing.assert_allclose(c.trajectory.at(0.5 - 1e-12)[1:], 0.0, atol=1e-6)
    assert c.trajectory.end_time == 0.5 == motion.end


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


def test_without_upsampling_positions_are_joined_by_lines() -> None:
    c = following((0.0, 0.3))
    ask(c, 0.0, wave(0.0, 5))
    assert not c.trajectory.coefficients[:, :, 2:6].any()


def test_effort_of_the_points_stays_a_line() -> None:
    c = streaming((0.0, 0.0))
    points = [Waypoint(t, np.full(2, 0.1 * t), effort=np.full(2, 10.0 * t)) for t in (0.2, 0.4)]
    ask(c, 0.0, points)
    for t in (0.0, 0.1, 0.3, 0.4, 9.0):
        np.testing.assert_allclose(c.trajectory.sampled(t)[3], 10.0 * min(t, 0.4), atol=1e-12)


def test_a_thousand_points_take_a_millisecond_or_two() -> None:
    points = Waypoints.of([Waypoint(0.01 * i, RNG.random(3)) for i in range(1, 1001)], 3)
    led = points.led_by(0.0, STATE)
    begin = time.perf_counter()
    for _ in range(10):
        smooth = upsampled(led, True)
    assert (time.perf_counter() - begin) / 10 < 0.02
    T = np.diff(smooth.times)[:, None]
    v, p = smooth.velocities, smooth.positions
    d = np.diff(p, axis=0) / T
    left = (-6.0 * d[1:-2] + 2.0 * v[1:-3] + 4.0 * v[2:-2]) / T[1:-2]
    np.testing.assert_allclose(left, smooth.fields[2, 2:-2], rtol=1e-9, atol=1e-6)
