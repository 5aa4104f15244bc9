"""Motions of rnea_move: limits, ends and knots, also as the controller joins these."""

from __future__ import annotations

import math
import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnea_control.client import profile as module
from rnea_control.client.profile import (
    SHORTEST_WAY,
    MotionLimits,
    Profile,
    chained,
    largest_rates,
    straight,
    through,
)
from rnea_control.control.trajectory import Trajectory, segments

CASES = settings(max_examples=int(os.environ.get("PROPERTY_CASES", "100")), deadline=None)
WAYS = st.one_of(st.just(0.0), st.floats(-1e-5, 1e-5), st.floats(-7.0, 7.0), st.floats(-500, 500))
LIMITS = st.floats(1e-3, 100.0)


@st.composite
def motions(draw) -> tuple[np.ndarray, np.ndarray, MotionLimits]:
    """Start, target and limits of some joints."""
    nv = draw(st.integers(1, 7))

    def numbers(kind) -> np.ndarray:
        return np.array(draw(st.lists(kind, min_size=nv, max_size=nv)))

    start, velocity, acceleration = numbers(st.floats(-3, 3)), numbers(LIMITS), numbers(LIMITS)
    return start, start + numbers(WAYS), MotionLimits(velocity, acceleration)


@pytest.fixture(params=["ruckig", "quintic"])
def times_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What gives the times of the motion."""
    if request.param == "quintic":
        monkeypatch.setattr(module, "ruckig", None)
    else:
        pytest.importorskip("ruckig")
    return request.param


def sampled(profile: Profile, count: int = 400) -> np.ndarray:
    """Position, velocity and acceleration as the controller interpolates, shape (count, 3, nv)."""
    trajectory = Trajectory(profile.times, segments(profile.waypoints))
    moments = np.linspace(0.0, profile.duration, count, endpoint=False)
    return np.array([trajectory.at(t) for t in moments])


@pytest.mark.usefixtures("times_by")
def test_motion_keeps_its_limits_and_ends_exactly() -> None:
    @CASES
    @given(motions())
    def holds(motion: tuple) -> None:
        start, target, limits = motion
        profile = straight(start, target, limits)
        if np.abs(target - start).max() <= SHORTEST_WAY:
            assert profile.duration == 0.0
            return
        np.testing.assert_array_equal(profile.positions[0], start)
        np.testing.assert_array_equal(profile.positions[-1], target)
        for rates in (profile.velocities, profile.accelerations):
            np.testing.assert_array_equal(rates[[0, -1]], 0.0)
        assert (np.diff(profile.times) > 0.0).all()
        rows = sampled(profile)
        assert (np.abs(rows[:, 1]) <= limits.velocity * (1 + 1e-9) + 1e-12).all()
        assert (np.abs(rows[:, 2]) <= limits.acceleration * (1 + 1e-9) + 1e-12).all()
        # A straight line, and never past its ends.
        way = target - start
        j = int(np.abs(way).argmax())
        part = (rows[:, 0, j] - start[j]) / way[j]
        assert part.min() >= -1e-9 and part.max() <= 1.0 + 1e-9
        np.testing.assert_allclose(rows[:, 0], start + part[:, None] * way, atol=1e-8)

    holds()


def test_ruckig_has_a_limit_at_work_and_its_knots_are_what_the_controller_follows() -> None:
    """Between the knots the controller's quintic is Ruckig's cubic."""
    ruckig = pytest.importorskip("ruckig")
    start, target = np.array([0.2, -1.0, 0.4]), np.array([1.4, 0.3, 0.4])
    limits = MotionLimits.of(np.array([2.0, 1.5, 2.0]), 0.3)
    profile = straight(start, target, limits)
    largest = largest_rates(profile.waypoints)
    assert (largest[0] / limits.velocity).max() == pytest.approx(1.0, abs=2e-3)
    motion = ruckig.InputParameter(1)
    motion.current_position, motion.target_position = [0.0], [1.3]
    share = (1.0 - module.MARGIN) * 0.45
    motion.max_velocity, motion.max_acceleration = [share], [2.0 * share]
    motion.max_jerk = [2.0 * share / module.TIME_TO_ACCELERATION]
    exact = ruckig.Trajectory(1)
    ruckig.Ruckig(1).calculate(motion, exact)
    assert profile.duration == pytest.approx(exact.duration, abs=1e-8)
    rows = sampled(profile)
    for t, row in zip(np.linspace(0.0, profile.duration, 400, endpoint=False), rows, strict=True):
        along = [exact.at_time(t)[k][0] / 1.3 for k in range(3)]
        expected = np.outer(along, target - start)
        expected[0] += start
        np.testing.assert_allclose(row, expected, atol=1e-6)


def test_ruckig_takes_less_time_than_the_quintic(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ruckig")
    limits = MotionLimits.of(np.ones(2), 0.2)
    fast = straight(np.zeros(2), np.ones(2), limits)
    monkeypatch.setattr(module, "ruckig", None)
    slow = straight(np.zeros(2), np.ones(2), limits)
    assert len(slow.times) == 2 and fast.duration < slow.duration


@pytest.mark.usefixtures("times_by")
def test_default_acceleration_and_a_given_one() -> None:
    assert MotionLimits.of(np.array([2.0]), 0.5).acceleration == 2.0 * 0.5 * 2.0
    way, slow = np.array([1.0]), MotionLimits.of(np.ones(1), 1.0, np.array([0.01]))
    assert straight(0.0 * way, way, slow).duration >= 2.0 * math.sqrt(1.0 / 0.01)


def test_points_at_times_are_met_and_slowed_down_as_a_whole() -> None:
    times = np.arange(0.0, 4.01, 0.25)
    ramp = (times / 4.0) ** 3 * (10 - 15 * times / 4.0 + 6 * (times / 4.0) ** 2)
    positions = np.outer(ramp, [1.0, -0.5]) + np.array([0.2, 0.3])
    wide = MotionLimits(np.full(2, 10.0), np.full(2, 100.0))
    profile = through(times + 7.0, positions, wide)
    assert profile.slowed == 1.0
    np.testing.assert_allclose(profile.times, times, atol=1e-9)
    np.testing.assert_array_equal(profile.positions, positions)
    rows = sampled(profile)
    assert np.abs(np.diff(rows[:, 2], axis=0)).max() < 0.1  # no step of the acceleration
    narrow = MotionLimits(np.array([0.2, 10.0]), np.array([0.05, 100.0]))
    slow = through(times, positions, narrow)
    assert slow.slowed > 1.5
    np.testing.assert_allclose(slow.times, slow.slowed * times, atol=1e-8)
    rows = sampled(slow)
    assert np.abs(rows[:, 1, 0]).max() <= 0.2 and np.abs(rows[:, 2, 0]).max() <= 0.05
    bound = largest_rates(slow.waypoints)
    assert np.abs(rows[:, 1]).max() <= bound[0].max() <= 1.05 * np.abs(rows[:, 1]).max()
    assert np.abs(rows[:, 2]).max() <= bound[1].max() <= 1.05 * np.abs(rows[:, 2]).max()


def test_chained_motions_follow_each_other() -> None:
    limits = MotionLimits.of(np.ones(2), 1.0)
    corners = [np.zeros(2), np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.array([1.0, 1.0])]
    legs = [straight(a, b, limits) for a, b in pairwise(corners)]
    whole = chained(legs)
    assert whole.duration == pytest.approx(sum(each.duration for each in legs))
    assert (np.diff(whole.times) > 0.0).all()
    np.testing.assert_array_equal(whole.positions[-1], corners[-1])
    at = int(np.searchsorted(whole.times, legs[0].duration - 1e-9))
    np.testing.assert_allclose(whole.positions[at], corners[1])
