"""Stops along the path: smooth, on the path, within the limits, and always at an end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import polynomial
from numpy.typing import ArrayLike
from robots import two_link_arm
from trajectories import swing, through, torques, with_effort

from rnea_control.control import Waypoint, layout
from rnea_control.control.stopping import (
    BRAKING_SHARE,
    FADE,
    LONGEST_STOP,
    RAMP,
    SHORTEST_STOP,
    STOP_SEGMENTS,
    Scratch,
    stop_along_path,
)
from rnea_control.control.trajectory import COEFFICIENTS, EFFORT, Trajectory
from rnea_control.dynamics import Workspace
from rnea_control.model import RobotModel


@pytest.fixture
def arm() -> RobotModel:
    return RobotModel.from_urdf_string(two_link_arm())


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
    trajectory: Trajectory = field(init=False)

    def __post_init__(self) -> None:
        nv = self.model.nv
        if self.effort_limit is None:
            self.effort_limit = np.full(nv, math.inf)
        if self.shift is None:
            self.shift = np.zeros(nv)
        self.starts = np.full(STOP_SEGMENTS, math.nan)
        self.coefficients = np.full((STOP_SEGMENTS, nv, COEFFICIENTS), math.nan)
        self.trajectory = Trajectory(self.starts, self.coefficients)
        rows = layout.Settings.zeros(nv)
        rows.friction = self.model.friction_parameters
        rows.effort_limit = self.effort_limit
        rows.max_deceleration = self.max_deceleration
        scratch = Scratch.zeros(nv)
        scratch[:] = math.nan
        self.end = stop_along_path(
            self.model.bodies,
            Workspace(self.model).memory,
            rows,
            self.shift,
            self.path.starts,
            self.path.coefficients,
            0,
            self.begin,
            self.scaling,
            self.scaling_rate,
            scratch,
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
        """Rows of position, velocity, acceleration and effort."""
        return self.trajectory.sampled(time)


def loaded(path: Trajectory, seed: int = 0) -> Trajectory:
    """The same with random efforts, none at its end."""
    values = np.random.default_rng(seed).uniform(-2.0, 2.0, (len(path.starts), path.nv))
    values[-1] = 0.0
    return with_effort(path, values)


def assert_smooth(stop: Stop) -> None:
    """Position, velocity, acceleration and effort continue at each knot and from the motion."""
    assert np.isfinite(stop.coefficients).all() and not np.isnan(stop.starts).any()
    used = np.isfinite(stop.starts)
    c, h = stop.coefficients[used], np.diff(stop.starts[used])[:, None]
    assert (h > 0.0).all()
    before = np.moveaxis(c[:-1, :, :6], 2, 0)
    for order, tolerance in enumerate((1e-11, 1e-8, 1e-5)):
        left = polynomial.polyval(h, polynomial.polyder(before, order), tensor=False)
        right = math.factorial(order) * c[1:, :, order]
        assert (np.abs(left - right) <= tolerance * (1.0 + np.abs(right))).all()
    left = c[:-1, :, EFFORT] + h * c[:-1, :, EFFORT + 1]
    np.testing.assert_allclose(left, c[1:, :, EFFORT], atol=1e-9)
    p, dp, ddp, effort = stop.path.sampled(stop.begin)
    if abs(stop.scaling) > 1e-9 or abs(stop.scaling_rate) > 1e-9:
        moving = ddp * stop.scaling**2 + dp * stop.scaling_rate
        expected = np.array([p + stop.shift, dp * stop.scaling, moving])
        np.testing.assert_allclose(stop.at(stop.begin)[:3], expected, atol=1e-12)
    np.testing.assert_allclose(stop.at(stop.begin)[3], effort, atol=1e-12)


def assert_at_rest(stop: Stop) -> None:
    last, *derivatives, effort = stop.at(stop.end)
    np.testing.assert_array_equal(derivatives, 0.0)
    np.testing.assert_allclose(stop.at(stop.end + FADE / 2)[3], effort / 2)
    for time in (stop.end + FADE, stop.end + 100.0):
        np.testing.assert_array_equal(stop.at(time), [last, 0.0 * last, 0.0 * last, 0.0 * last])
    unused = ~np.isfinite(stop.starts)
    np.testing.assert_array_equal(stop.coefficients[unused, :, 0], np.tile(last, (unused.sum(), 1)))
    assert not stop.coefficients[unused, :, 1:].any()


def progress(stop: Stop, times: ArrayLike) -> np.ndarray:
    """Rows of s and sigma at each time, by the nearest place on the path."""
    rows, s = [], stop.begin
    for time in times:
        q, v, _, _ = stop.at(time)
        q = q - stop.shift
        for _ in range(30):
            p, dp, _ = stop.path.at(s)
            further = dp @ (q - p) / max(dp @ dp, 1e-300)
            s += min(max(further, -0.002), 0.002)
            if abs(further) < 1e-13:
                break
        _, dp, _ = stop.path.at(s)
        rows.append([s, dp @ v / max(dp @ dp, 1e-300)])
    return np.array(rows).T


def assert_on_path(stop: Stop) -> None:
    """Each position is one of the path, none before the one before."""
    times = np.linspace(stop.begin, stop.end, 200)
    s, sigma = progress(stop, times)
    for time, where in zip(times, s, strict=True):
        assert np.abs(stop.path.at(where)[0] + stop.shift - stop.at(time)[0]).max() < 1e-6
    assert np.diff(s).min() > -1e-6
    assert sigma.min() > -1e-6


def short_segments() -> Trajectory:
    """Waypoints closer than the knots, with accelerations that step between them."""
    times = 0.003 * np.arange(1000)
    positions = np.column_stack([np.sin(times), np.cos(2.0 * times)])
    velocities = np.column_stack([np.cos(times), -2.0 * np.sin(2.0 * times)])
    velocities[-1] = 0.0
    return through([Waypoint(*point) for point in zip(times, positions, velocities, strict=True)])


@pytest.mark.parametrize(("scaling", "rate"), [(1.0, 0.0), (0.5, 2.0), (0.7, -3.0)])
def test_stop_continues_the_motion_along_the_path(arm, panda, scaling, rate) -> None:
    shift, motion = np.array([0.01, -0.02]), (scaling, rate)
    for stop in (
        Stop(arm, loaded(swing(2)), 0.6, *motion, max_deceleration=5.0, shift=shift),
        Stop(panda, swing(7, 1), 1.4, *motion, 10.0, panda.effort_limit.copy()),
        Stop(arm, short_segments(), 0.6, *motion, max_deceleration=3.0),
    ):
        assert_smooth(stop)
        assert_on_path(stop)
        assert_at_rest(stop)


def test_braking_respects_the_deceleration(arm) -> None:
    stop = Stop(arm, swing(2), 1.3, max_deceleration=4.0)
    assert stop.duration < 0.8 * LONGEST_STOP
    fastest = 0.0
    for time in np.linspace(stop.begin, stop.end, 400):
        (s,), (sigma,) = progress(stop, [time])
        limit = np.maximum(4.0, np.abs(stop.path.at(s)[2] * sigma**2))
        acceleration = np.abs(stop.at(time)[2])
        assert (acceleration <= 1.005 * limit).all()
        fastest = max(fastest, float((acceleration / limit).max()))
    assert fastest > 0.99


def test_braking_respects_the_torques(panda) -> None:
    """A lower limit of the second joint, which bears the most, makes the stop longer."""
    path = loaded(swing(7, 3, step=0.6))
    free = Stop(panda, path, 0.7)
    limit = 0.6 * panda.effort_limit
    stop = Stop(panda, path, 0.7, effort_limit=limit)
    shortest = SHORTEST_STOP + RAMP + 0.01
    assert SHORTEST_STOP < free.duration < shortest < stop.duration < 0.5 * LONGEST_STOP
    used = 0.0
    asked = np.abs(torques(panda, stop.trajectory, stop.knots[:-1]))
    for time, torque in zip(stop.knots[:-1], asked, strict=True):
        (s,), (sigma,) = progress(stop, [time])
        q, v, _, effort = stop.at(time)
        a = path.at(s)[2] * sigma**2
        going_on = np.stack([q, v, 0.5 * a, 0 * q, 0 * q, 0 * q, effort, 0 * q], axis=-1)
        unbraked = np.abs(torques(panda, Trajectory(np.zeros(1), going_on[None]), [0.0])[0])
        allowed = np.maximum(BRAKING_SHARE * limit, unbraked)
        assert (torque <= allowed + 0.002 * limit).all()
        used = max(used, float((torque / allowed).max()))
    assert used > 0.99


def test_end_of_the_path_comes_before_that_of_the_stop(arm) -> None:
    path = swing(2)
    stop = Stop(arm, path, path.end_time - 0.02, max_deceleration=0.1)
    assert_smooth(stop)
    np.testing.assert_allclose(stop.at(stop.end)[0], path.at(path.end_time)[0], atol=1e-12)
    finished = Stop(arm, path, path.end_time + 1.0)  # it is held
    for time in np.linspace(finished.begin, finished.end + 1.0, 50):
        np.testing.assert_allclose(finished.at(time), path.sampled(path.end_time), atol=1e-12)
    standing = Stop(arm, path, 0.6, scaling=1e-10)  # it is held at once
    assert standing.end == standing.begin
    np.testing.assert_array_equal(standing.at(5.0)[0], path.at(0.6)[0])
    assert_at_rest(standing)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_any_stop_is_smooth_on_the_path_and_ends(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = RobotModel.from_urdf_string(two_link_arm())
    model.friction = rng.uniform(0.0, 1.0, 2)
    path = loaded(swing(2, seed, int(rng.integers(2, 30)), rng.uniform(0.2, 1.0)), seed)
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
