"""The follower of joint streams: closed forms, and its bounds for any targets."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

from rnea_control.array_types import FloatArray
from rnea_control.control.joint_stream import LONGEST_SPAN, follow_stream
from rnea_control.control.layout import Settings, State
from rnea_control.jit.kernel import kernel_on_demand

PERIOD = 0.001
TIMEOUT = 0.1
# Columns of a recorded motion.
POSITION, VELOCITY, ACCELERATION = range(3)
CASES = int(os.environ.get("PROPERTY_CASES", "200"))


def settings(bandwidth: float = 30.0, **rows: float) -> Settings:
    """Bounds that are far away, except for these."""
    made = Settings.zeros(1)
    made.stream_bandwidth, made.stream_timeout = bandwidth, TIMEOUT
    made.stream_max_velocity, made.stream_max_acceleration = 1e6, 1e9
    made.stream_max_jerk = math.inf
    made.lower_limit, made.upper_limit = -math.inf, math.inf
    made.effort_limit = 100.0
    for name, value in rows.items():
        setattr(made, name, value)
    return made


def at_rest() -> State:
    state = State.zeros(1)
    state.scaling, state.stream_at = 1.0, -math.inf
    return state


@kernel_on_demand("void(Settings, State, f8[:,::1], f8[::1], f8[:,::1])")
def follow_targets(
    settings: Settings, state: State, targets: FloatArray, times: FloatArray, motion: FloatArray
) -> None:
    """Follows targets, shape (n, 3): time, position and velocity; fills `motion`, shape (m, 3), at
    `times`."""
    i, before = 0, times[0] - 0.001
    for k in range(times.shape[0]):
        t = times[k]
        while i < targets.shape[0] and targets[i, 0] <= t:
            state.target[0], state.target_rate[0] = targets[i, 1], targets[i, 2]
            state.target_at[0] = state.stream_at = targets[i, 0]
            state.target_span[0] = LONGEST_SPAN
            i += 1
        follow_stream(settings, state, t, t - before, False)
        before = t
        motion[k, 0] = state.desired_position[0]
        motion[k, 1] = state.desired_velocity[0]
        motion[k, 2] = state.desired_acceleration[0]


def follow(
    bounds: Settings, targets: FloatArray, times: FloatArray, state: State | None = None
) -> FloatArray:
    motion = np.zeros((len(times), 3))
    follow_targets(bounds, state or at_rest(), targets, times, motion)
    return motion


def repeated(position: float, duration: float, period: float = 0.02) -> FloatArray:
    """The same target again and again."""
    times = np.arange(0.0, duration, period)
    return np.stack([times, np.full_like(times, position), np.zeros_like(times)], axis=1)


@pytest.mark.parametrize("bandwidth", [10.0, 30.0, 60.0])
def test_step_is_that_of_a_critically_damped_filter(bandwidth: float) -> None:
    times = np.arange(0.0, 1.0, PERIOD)
    motion = follow(settings(bandwidth), repeated(1.0, 1.0), times)
    expected = 1.0 - (1.0 + bandwidth * times) * np.exp(-bandwidth * times)
    assert np.abs(motion[:, POSITION] - expected).max() < 1e-3


@pytest.mark.parametrize("bandwidth", [30.0, 60.0])
def test_error_of_a_sine(bandwidth: float) -> None:
    """Its amplitude is w_s^2 / (w_s^2 + w^2) of that of the sine."""
    sine = 2.0 * math.pi * 0.5
    times = np.arange(0.0, 8.0, PERIOD)
    target = np.sin(sine * times)
    targets = np.stack([times, target, sine * np.cos(sine * times)], axis=1)
    motion = follow(settings(bandwidth), targets, times)
    error = np.abs(motion[:, POSITION] - target)[2000:].max()
    assert abs(error - sine**2 / (sine**2 + bandwidth**2)) < 1e-3


@pytest.mark.parametrize("fastest", [1.5, 2.0])
@pytest.mark.parametrize("jerk", [math.inf, 200.0])
def test_far_step_is_within_its_bounds_and_does_not_overshoot(jerk: float, fastest: float) -> None:
    bounds = settings(
        30.0, stream_max_velocity=fastest, stream_max_acceleration=10.0, stream_max_jerk=jerk
    )
    times = np.arange(0.0, 4.0, PERIOD)
    motion = follow(bounds, repeated(1.0, 4.0), times)
    assert np.abs(motion[:, VELOCITY]).max() <= fastest + 1e-9
    assert np.abs(motion[:, ACCELERATION]).max() <= 10.0 + 1e-9
    overshoot = motion[:, POSITION].max() - 1.0
    assert overshoot < (1e-9 if jerk == math.inf else 0.12)
    assert abs(motion[-1, POSITION] - 1.0) < 1e-3
    if jerk < math.inf:
        assert np.abs(np.diff(motion[:, ACCELERATION])).max() <= jerk * PERIOD + 1e-9


def sine_with_gaps(times: FloatArray) -> FloatArray:
    """Targets of a sine at 50 Hz; twice a second two are lost, and the next one is 8 ms late."""
    sine = math.pi
    stamps = np.arange(0.0, times[-1], 0.02)
    k = np.arange(len(stamps)) % 50
    arrivals = stamps + np.where((k == 5) | (k == 22), 0.008, 0.0)
    targets = np.stack([arrivals, 0.5 * np.sin(sine * arrivals), np.cos(sine * arrivals)], axis=1)
    targets[:, 2] *= 0.5 * sine
    return targets[~np.isin(k, (3, 4, 20, 21))]


def test_late_target_does_not_brake_the_arm_hard() -> None:
    times = np.arange(0.0, 8.0, PERIOD)
    bounds = settings(30.0, stream_max_velocity=2.2, stream_max_acceleration=60.0)
    motion = follow(bounds, sine_with_gaps(times), times)
    assert np.abs(motion[2000:, ACCELERATION]).max() < 30.0
    assert np.abs(motion[:, POSITION] - 0.5 * np.sin(math.pi * times))[2000:].max() < 0.03


@pytest.mark.parametrize("jerk", [200.0, 1000.0])
def test_bounded_jerk_does_not_swing(jerk: float) -> None:
    times = np.arange(0.0, 20.0, PERIOD)
    bounds = settings(
        30.0, stream_max_velocity=2.2, stream_max_acceleration=60.0, stream_max_jerk=jerk
    )
    motion = follow(bounds, sine_with_gaps(times), times)
    error = np.abs(motion[:, POSITION] - 0.5 * np.sin(math.pi * times))
    assert error[5000:].max() < 0.06


def test_arm_comes_to_rest_when_targets_are_missing() -> None:
    bounds = settings(30.0, stream_max_velocity=1.5, stream_max_acceleration=10.0)
    times = np.arange(0.0, 1.0, PERIOD)
    targets = np.array([[0.02 * k, 0.01 * k, 0.5] for k in range(20)])
    motion = follow(bounds, targets, times)
    last = targets[-1, 0]
    moving = np.abs(motion[:, VELOCITY]) > 1e-6
    stops = times[np.flatnonzero(moving)[-1]]
    assert last + TIMEOUT < stops < last + TIMEOUT + 0.4
    assert motion[-1, VELOCITY] == motion[-1, ACCELERATION] == 0.0
    assert np.abs(motion[:, ACCELERATION]).max() <= 10.0 + 1e-9


def random_targets(rng: np.random.Generator, duration: float) -> FloatArray:
    """A walk and jumps, with jitter, losses and pauses; velocities that mean nothing."""
    times = np.cumsum(rng.choice([0.001, 0.004, 0.02, 0.3], int(duration / 0.02)))
    times += rng.uniform(0.0, 0.008, len(times))
    times.sort()
    positions = np.cumsum(rng.normal(0.0, 0.1, len(times)))
    jumps = rng.random(len(times)) < 0.1
    positions[jumps] = rng.uniform(-4.0, 4.0, jumps.sum())
    rates = rng.normal(0.0, 2.0, len(times))
    return np.stack([times, positions, rates], axis=1)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("limited_jerk", [False, True])
def test_bounds_hold_for_any_targets(seed: int, limited_jerk: bool) -> None:
    """And the joint can always stop before its position limit."""
    rng = np.random.default_rng(seed)
    for _ in range(max(CASES // 100, 1)):
        fastest, most = rng.uniform(0.3, 3.0), rng.uniform(2.0, 40.0)
        jerk = rng.uniform(20.0, 100.0) * most if limited_jerk else math.inf
        bounds = settings(
            float(rng.choice([10.0, 30.0, 100.0])),
            stream_max_velocity=fastest,
            stream_max_acceleration=most,
            stream_max_jerk=jerk,
            lower_limit=-1.0,
            upper_limit=1.5,
        )
        period = float(rng.choice([0.001, 0.002, 0.01]))
        steps = period * rng.choice(
            [1.0, 1.0, 1.0, 0.5, 1.4, 6.0 if not limited_jerk else 1.0], 20000
        )
        times = np.cumsum(steps)
        motion = follow(bounds, random_targets(rng, times[-1]), times)
        position, velocity, acceleration = motion.T
        # Where it turns round at a position limit, a bounded jerk costs some of the velocity bound.
        assert np.abs(velocity).max() <= fastest * (1.05 if limited_jerk else 1.0) + 1e-9
        assert np.abs(acceleration).max() <= most + 1e-9
        assert position.max() <= 1.5 + 1e-5 and position.min() >= -1.0 - 1e-5
        if limited_jerk:
            change = np.abs(np.diff(acceleration)) / np.maximum(steps[:-1], steps[1:])
            assert change.max() <= jerk * 3.0
