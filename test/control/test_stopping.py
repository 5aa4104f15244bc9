"""Stops along the path: smooth, on the path, within the limits, and always at an end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import PANDA_JOINTS, load_quietly, two_link_arm
from trajectories import through as trajectory_through

from rnea_control.control import Waypoint
from rnea_control.control.stopping import (
    BRAKING_SHARE,
    FADE,
    LONGEST_STOP,
    RAMP,
    SCRATCH_ROWS,
    SHORTEST_STOP,
    STOP_SEGMENTS,
    stop_along_path,
)
from rnea_control.control.trajectory import COEFFICIENTS, EFFORT, Trajectory
from rnea_control.dynamics import Workspace, friction, rnea
from rnea_control.model import RobotModel


@pytest.fixture
def arm() -> RobotModel:
    return RobotModel.from_urdf_string(two_link_arm())


@pytest.fixture(scope="module")
def panda(panda_urdf) -> RobotModel:
    return load_quietly(panda_urdf, PANDA_JOINTS)


@dataclass
class Stop:
    """A stop of a model on a trajectory."""

    model: RobotModel
    path: Trajectory
    begin: float
    scaling: float = 1.0
    scaling_rate: float = 0.0
    max_deceleration: float = math.inf
    effort_limit: np.ndarray | None = None
    shift: np.ndarray | None = None
    starts: np.ndarray = field(init=False)
    coefficients: np.ndarray = field(init=False)
    end: float = field(init=False)

    def __post_init__(self) -> None:
        nv = self.model.nv
        if self.effort_limit is None:
            self.effort_limit = np.full(nv, math.inf)
        if self.shift is None:
            self.shift = np.zeros(nv)
        self.starts = np.full(STOP_SEGMENTS, math.nan)
        self.coefficients = np.full((STOP_SEGMENTS, nv, COEFFICIENTS), math.nan)
        self.end = stop_along_path(
            self.model.bodies,
            Workspace(self.model).memory,
            self.model.friction_parameters,
            self.effort_limit,
            np.full(nv, self.max_deceleration),
            self.shift,
            self.path.starts,
            self.path.coefficients,
            self.begin,
            self.scaling,
            self.scaling_rate,
            np.full((SCRATCH_ROWS, nv), math.nan),
            self.starts,
            self.coefficients,
        )

    @property
    def knots(self) -> np.ndarray:
        return self.starts[self.starts <= self.end]

    @property
    def duration(self) -> float:
        return self.end - self.begin

    def at(self, time: float) -> np.ndarray:
        return Trajectory(self.starts, self.coefficients).at(time)

    def effort(self, time: float) -> np.ndarray:
        return effort(self.starts, self.coefficients, time)


def effort(starts: np.ndarray, coefficients: np.ndarray, time: float) -> np.ndarray:
    i = max(int(np.searchsorted(starts, time, side="right")) - 1, 0)
    since = max(time - starts[i], 0.0)
    return coefficients[i, :, EFFORT] + coefficients[i, :, EFFORT + 1] * since


def torque(model: RobotModel, motion: np.ndarray) -> np.ndarray:
    ws, q, v, a = Workspace(model), *np.ascontiguousarray(motion)
    return rnea(model, ws, q, v, a, np.zeros(model.nv)) + friction(model, ws, v, np.zeros(model.nv))


def through(model: RobotModel, times, positions) -> Trajectory:
    """Quintics through the positions, with velocities between those of the neighbours."""
    times, positions = np.asarray(times, float), np.asarray(positions, float)
    velocities = np.gradient(positions, times, axis=0)
    velocities[[0, -1]] = 0.0
    zero = np.zeros(model.nv)
    points = [Waypoint(*state, zero) for state in zip(times, positions, velocities, strict=True)]
    return trajectory_through(points)


def swing(model: RobotModel, seed: int = 0, n: int = 4, step: float = 1.0) -> Trajectory:
    rng = np.random.default_rng(seed)
    positions = np.cumsum(rng.uniform(-0.8, 0.8, (n, model.nv)), axis=0)
    return through(model, step * np.arange(n), positions)


def with_effort(path: Trajectory, seed: int = 0) -> Trajectory:
    """The same with efforts at its points that lines join."""
    rng = np.random.default_rng(seed)
    c, values = path.coefficients.copy(), rng.uniform(-2.0, 2.0, (len(path.starts), path.nv))
    values[-1] = 0.0
    c[:, :, EFFORT] = values
    c[:-1, :, EFFORT + 1] = np.diff(values, axis=0) / np.diff(path.starts)[:, None]
    return Trajectory(path.starts, c)


def assert_smooth(stop: Stop) -> None:
    """Position, velocity, acceleration and effort continue at each knot and from the motion."""
    c, starts = stop.coefficients, stop.starts
    assert np.isfinite(c).all() and not np.isnan(starts).any()
    used = np.isfinite(starts)
    for i in range(used.sum() - 1):
        h = starts[i + 1] - starts[i]
        assert h > 0.0
        for j in range(stop.model.nv):
            before, after = np.poly1d(c[i, j, 5::-1]), np.poly1d(c[i + 1, j, 5::-1])
            for order, tolerance in enumerate((1e-11, 1e-8, 1e-5)):
                left = before.deriv(order)(h) if order else before(h)
                right = after.deriv(order)(0.0) if order else after(0.0)
                assert left == pytest.approx(right, abs=tolerance * (1 + abs(right)))
            left = c[i, j, EFFORT] + h * c[i, j, EFFORT + 1]
            assert left == pytest.approx(c[i + 1, j, EFFORT], abs=1e-9)
    p, dp, ddp = stop.path.at(stop.begin)
    if abs(stop.scaling) > 1e-9 or abs(stop.scaling_rate) > 1e-9:
        moving = ddp * stop.scaling**2 + dp * stop.scaling_rate
        expected = np.array([p + stop.shift, dp * stop.scaling, moving])
        np.testing.assert_allclose(stop.at(stop.begin), expected, atol=1e-12)
    given = effort(stop.path.starts, stop.path.coefficients, stop.begin)
    np.testing.assert_allclose(stop.effort(stop.begin), given, atol=1e-12)


def assert_at_rest(stop: Stop) -> None:
    np.testing.assert_array_equal(stop.at(stop.end)[1:], 0.0)
    last = stop.at(stop.end)[0]
    for time in (stop.end + 0.1, stop.end + FADE, stop.end + 100.0):
        np.testing.assert_array_equal(stop.at(time), [last, 0.0 * last, 0.0 * last])
    np.testing.assert_allclose(stop.effort(stop.end + FADE / 2), stop.effort(stop.end) / 2)
    np.testing.assert_array_equal(stop.effort(stop.end + FADE), 0.0)
    unused = ~np.isfinite(stop.starts)
    np.testing.assert_array_equal(stop.coefficients[unused, :, 0], np.tile(last, (unused.sum(), 1)))
    assert not stop.coefficients[unused, :, 1:].any()


def progress(stop: Stop, times: np.ndarray) -> np.ndarray:
    """Rows of s, sigma, kappa at each time, by the nearest place on the path."""
    rows, s = [], stop.begin
    for time in times:
        q, v, a = stop.at(time)
        q = q - stop.shift
        for _ in range(30):
            p, dp, ddp = stop.path.at(s)
            further = dp @ (q - p) / max(dp @ dp, 1e-300)
            s += min(max(further, -0.002), 0.002)
            if abs(further) < 1e-13:
                break
        p, dp, ddp = stop.path.at(s)
        sigma = dp @ v / max(dp @ dp, 1e-300)
        rows.append([s, sigma, dp @ (ddp * sigma**2 - a) / max(dp @ dp, 1e-300)])
    return np.array(rows).T


def assert_on_path(stop: Stop, tolerance: float = 1e-6) -> None:
    """Each position is one of the path, none before the one before."""
    times = np.linspace(stop.begin, stop.end, 500)
    s, sigma, _ = progress(stop, times)
    for time, where in zip(times, s, strict=True):
        assert np.abs(stop.path.at(where)[0] + stop.shift - stop.at(time)[0]).max() < tolerance
    assert np.diff(s).min() > -1e-6
    assert sigma.min() > -1e-6


@pytest.mark.parametrize(("scaling", "rate"), [(1.0, 0.0), (0.5, 0.0), (0.5, 2.0), (0.7, -3.0)])
def test_stop_continues_the_motion_along_the_path(arm, scaling, rate) -> None:
    stop = Stop(arm, with_effort(swing(arm)), 0.6, scaling, rate, max_deceleration=5.0)
    assert_smooth(stop)
    assert_on_path(stop)
    assert_at_rest(stop)


@pytest.mark.parametrize(("scaling", "rate"), [(1.0, 0.0), (0.5, 2.0)])
def test_panda_stops_along_its_path(panda, scaling, rate) -> None:
    stop = Stop(panda, swing(panda, 1), 1.4, scaling, rate, 10.0, panda.effort_limit.copy())
    assert_smooth(stop)
    assert_on_path(stop)
    assert_at_rest(stop)


def test_braking_respects_the_deceleration(arm) -> None:
    stop = Stop(arm, swing(arm), 1.3, max_deceleration=4.0)
    assert stop.duration < 0.8 * LONGEST_STOP
    fastest = 0.0
    for time in np.linspace(stop.begin, stop.end, 400):
        ((s,), (sigma,), _) = progress(stop, np.array([time]))
        limit = np.maximum(4.0, np.abs(stop.path.at(s)[2] * sigma**2))
        acceleration = np.abs(stop.at(time)[2])
        assert (acceleration <= 1.005 * limit).all()
        fastest = max(fastest, float((acceleration / limit).max()))
    assert fastest > 0.99


def test_braking_respects_the_torques(panda) -> None:
    """A lower limit of the second joint, which bears the most, makes the stop longer."""
    path = with_effort(swing(panda, 3, step=0.6))
    free = Stop(panda, path, 0.7)
    limit = 0.6 * panda.effort_limit
    stop = Stop(panda, path, 0.7, effort_limit=limit)
    assert free.duration < SHORTEST_STOP + RAMP + 0.01 < stop.duration < 0.5 * LONGEST_STOP
    used = 0.0
    for time in stop.knots[:-1]:
        ((s,), (sigma,), _) = progress(stop, np.array([time]))
        q, v, a = stop.at(time)
        unbraked = torque(panda, np.array([q, v, path.at(s)[2] * sigma**2])) + stop.effort(time)
        asked = np.abs(torque(panda, np.array([q, v, a])) + stop.effort(time))
        allowed = np.maximum(BRAKING_SHARE * limit, np.abs(unbraked))
        assert (asked <= allowed + 0.002 * limit).all()
        used = max(used, float((asked / allowed).max()))
    assert used > 0.99


def test_stop_without_limits_is_as_short_as_stops_are(arm) -> None:
    assert SHORTEST_STOP < Stop(arm, swing(arm), 1.3).duration <= SHORTEST_STOP + RAMP + 0.01


def test_stop_that_no_joint_can_bear_ends_in_time(arm) -> None:
    stop = Stop(arm, swing(arm), 1.3, max_deceleration=1e-6, effort_limit=np.full(2, 1e-6))
    assert 0.9 * LONGEST_STOP < stop.duration <= LONGEST_STOP + 2.0 * RAMP
    assert_smooth(stop)
    assert_at_rest(stop)


def test_shift_moves_all_positions(arm) -> None:
    shift = np.array([0.01, -0.02])
    stop = Stop(arm, swing(arm), 0.6, max_deceleration=5.0, shift=shift)
    assert_smooth(stop)
    assert_on_path(stop)


def test_short_segments(arm) -> None:
    """Waypoints closer than the knots, with accelerations that step between them."""
    times = 0.003 * np.arange(1000)
    positions = np.column_stack([np.sin(times), np.cos(2.0 * times)])
    velocities = np.column_stack([np.cos(times), -2.0 * np.sin(2.0 * times)])
    velocities[-1] = 0.0
    points = [Waypoint(*point) for point in zip(times, positions, velocities, strict=True)]
    stop = Stop(arm, trajectory_through(points), 0.6, max_deceleration=3.0)
    assert_smooth(stop)
    assert_on_path(stop)
    assert_at_rest(stop)


def test_end_of_the_path_comes_before_that_of_the_stop(arm) -> None:
    path = swing(arm)
    stop = Stop(arm, path, path.end_time - 0.02, max_deceleration=0.1)
    assert_smooth(stop)
    np.testing.assert_allclose(stop.at(stop.end)[0], path.at(path.end_time)[0], atol=1e-12)


def test_finished_path_is_held(arm) -> None:
    path = swing(arm)
    stop = Stop(arm, path, path.end_time + 1.0)
    for time in np.linspace(stop.begin, stop.end + 1.0, 50):
        np.testing.assert_allclose(stop.at(time), path.at(path.end_time + 1.0), atol=1e-12)


def test_motion_at_a_standstill_is_held_at_once(arm) -> None:
    path = swing(arm)
    stop = Stop(arm, path, 0.6, scaling=1e-10)
    assert stop.end == stop.begin
    np.testing.assert_array_equal(stop.at(5.0)[0], path.at(0.6)[0])
    assert_at_rest(stop)


@pytest.mark.parametrize("rate", [-1.0, -1000.0])
def test_scaling_that_is_about_to_reach_zero(arm, rate) -> None:
    stop = Stop(arm, swing(arm), 0.6, 1e-4, rate)
    assert_smooth(stop)
    assert_at_rest(stop)
    assert stop.duration <= RAMP


def test_stop_of_a_stop(arm) -> None:
    """Its segments that are not needed start at infinity."""
    first = Stop(arm, swing(arm), 1.3, max_deceleration=2.0)
    path = Trajectory(first.starts, first.coefficients)
    second = Stop(arm, path, 1.3 + 0.1, max_deceleration=4.0)
    assert second.end < first.end
    assert_smooth(second)
    assert_on_path(second)


def test_seconds_since_1970_are_precise_enough(arm) -> None:
    """They come in steps of 0.2 us; the acceleration shows the least error in positions."""
    begin = 1.7e9
    path = swing(arm)
    late = Trajectory(path.starts + begin, path.coefficients)
    stop, same = (
        Stop(arm, late, begin + 0.6, max_deceleration=5.0),
        Stop(arm, path, 0.6, 1.0, 0.0, 5.0),
    )
    for time in np.arange(0.0, 1.0, 1e-3):
        np.testing.assert_allclose(stop.at(begin + 0.6 + time), same.at(0.6 + time), atol=1e-4)


def test_arrays_of_a_wrong_size_are_left_alone(arm) -> None:
    ws, path = Workspace(arm), swing(arm)
    starts, coefficients = np.ones(3), np.ones((3, 2, COEFFICIENTS))
    none, scratch = np.zeros(2), np.zeros((SCRATCH_ROWS, 2))
    given = (arm.bodies, ws.memory, arm.friction_parameters, none, none, none)
    motion = (path.starts, path.coefficients, 0.6, 1.0, 0.0)
    assert math.isnan(stop_along_path(*given, *motion, scratch, starts, coefficients))
    assert (starts == 1.0).all() and (coefficients == 1.0).all()


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_any_stop_is_smooth_on_the_path_and_ends(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = RobotModel.from_urdf_string(two_link_arm())
    model.friction = rng.uniform(0.0, 1.0, 2)
    path = with_effort(swing(model, seed, int(rng.integers(2, 30)), rng.uniform(0.2, 1.0)), seed)
    stop = Stop(
        model,
        path,
        rng.uniform(-0.2, path.end_time + 0.2),
        rng.choice([1.0, 0.5, 1e-3, 1e-8, 0.0, rng.uniform()]),
        rng.choice([0.0, 2.0, -2.0, 20.0, -20.0]),
        rng.choice([math.inf, 0.0, 10.0 ** rng.uniform(-2.0, 2.0)]),
        rng.choice([0.0, math.inf, 10.0 ** rng.uniform(-1.0, 2.0)], 2),
    )
    assert stop.duration <= LONGEST_STOP + 2.0 * RAMP
    assert_smooth(stop)
    assert_at_rest(stop)
