"""The torques that trajectories ask for, and how much slower they must be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import PANDA_JOINTS, joint, link, load_quietly, robot, two_link_arm
from trajectories import through as trajectory_through

from rnea_control.control import Waypoint
from rnea_control.control.effort_check import SAMPLE_TIME, EffortPeak, peak_efforts
from rnea_control.control.trajectory import COEFFICIENTS, EFFORT, Trajectory
from rnea_control.dynamics import Workspace, friction, gravity, rnea
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel

MASS, LEVER, INERTIA = 2.0, 0.5, 0.1
G = MASS * LEVER * 9.81
M = INERTIA + MASS * LEVER**2


@pytest.fixture
def pendulum() -> RobotModel:
    """Level at 0, with its gravity torque -G cos(q)."""
    inertia = (INERTIA, 0, 0, INERTIA, 0, INERTIA)
    return RobotModel.from_urdf_string(
        robot(
            link("base"),
            link("bob", MASS, (LEVER, 0, 0), inertia),
            joint("hinge", "base", "bob", axis=(0, 1, 0)),
        )
    )


@pytest.fixture(scope="module")
def panda(panda_urdf) -> RobotModel:
    return load_quietly(panda_urdf, PANDA_JOINTS)


def peak(
    model: RobotModel,
    path: Trajectory,
    limit,
    begin: float = 0.0,
    end: float | None = None,
    hardware_compensates_gravity: bool = False,
) -> EffortPeak:
    limit = np.broadcast_to(np.asarray(limit, float), model.nv)
    end = path.end_time if end is None else end
    ws, rows = Workspace(model), model.friction_parameters
    return peak_efforts(model, ws, path, begin, end, limit, rows, hardware_compensates_gravity)


def quintic(model: RobotModel, positions, step: float = 1.0) -> Trajectory:
    positions = np.atleast_2d(np.asarray(positions, float))
    zero = np.zeros(model.nv)
    velocities = np.gradient(positions, step, axis=0)
    velocities[[0, -1]] = 0.0
    points = [
        Waypoint(step * i, *state, zero)
        for i, state in enumerate(zip(positions, velocities, strict=True))
    ]
    return trajectory_through(points)


def swing(model: RobotModel, seed: int = 0, n: int = 4, step: float = 1.0) -> Trajectory:
    rng = np.random.default_rng(seed)
    return quintic(model, np.cumsum(rng.uniform(-0.8, 0.8, (n, model.nv)), axis=0), step)


def with_effort(path: Trajectory, values: np.ndarray) -> Trajectory:
    """The same with efforts at its points, shape (m, nv), that lines join."""
    c = path.coefficients.copy()
    c[:, :, EFFORT] = values
    c[:-1, :, EFFORT + 1] = np.diff(values, axis=0) / np.diff(path.starts)[:, None]
    return Trajectory(path.starts, c)


def slower(path: Trajectory, k: float) -> Trajectory:
    """The same path in k times the time; the effort stays where it is on the path."""
    powers = np.array([*range(6), 0, 1])
    return Trajectory(k * path.starts, path.coefficients / k ** powers[:COEFFICIENTS])


def commands(model: RobotModel, path: Trajectory, times, without_gravity: bool = False):
    """Torque and effort at each time, by the public functions."""
    ws, rows = Workspace(model), []
    for time in times:
        q, v, a = np.ascontiguousarray(path.at(time))
        i = max(int(np.searchsorted(path.starts, time, side="right")) - 1, 0)
        c = path.coefficients[i]
        torque = rnea(model, ws, q, v, a, np.zeros(model.nv))
        torque += friction(model, ws, v, np.zeros(model.nv))
        torque += c[:, EFFORT] + c[:, EFFORT + 1] * (time - path.starts[i])
        if without_gravity:
            torque -= gravity(model, ws, q, np.zeros(model.nv))
        rows.append(torque)
    return np.array(rows)


@pytest.mark.parametrize("without_gravity", [False, True])
def test_peak_is_that_of_a_plain_loop(panda, without_gravity) -> None:
    panda.friction, panda.damping = np.full(7, 0.5), np.full(7, 0.3)
    panda.armature = np.full(7, 0.2)
    panda.torque_offset = np.linspace(-1.0, 1.0, 7)
    rng = np.random.default_rng(1)
    path = swing(panda, 1)
    path = with_effort(path, rng.uniform(-3.0, 3.0, (4, 7)))
    found = peak(panda, path, panda.effort_limit, hardware_compensates_gravity=without_gravity)
    times = np.linspace(0.0, path.end_time, 3 * round(1.0 / SAMPLE_TIME) + 1)
    asked = commands(panda, path, times, without_gravity)
    ratio = np.abs(asked) / panda.effort_limit
    i, j = np.unravel_index(np.argmax(ratio), ratio.shape)
    assert (found.joint, found.limit) == (j, panda.effort_limit[j])
    assert found.time == pytest.approx(times[i])
    assert found.torque == pytest.approx(asked[i, j])
    assert found.ratio == pytest.approx(ratio.max())
    assert found.stretch == 1.0


def test_stretch_of_a_pendulum_is_exact(pendulum) -> None:
    """Without gravity its torque is M a, of which the limit is half."""
    pendulum.gravity = (0.0, 0.0, 0.0)
    path = quintic(pendulum, [[0.0], [1.0]])
    a = 10.0 / math.sqrt(3.0)  # of the quintic from rest to rest over 1 rad in 1 s
    found = peak(pendulum, path, 0.5 * M * a)
    assert found.ratio == pytest.approx(2.0, rel=1e-4)
    assert found.stretch == pytest.approx(math.sqrt(2.0), rel=1e-4)


@pytest.mark.parametrize("without_gravity", [False, True])
def test_stretched_trajectory_is_just_within_the_limit(pendulum, without_gravity) -> None:
    """Samples of the slower trajectory at the same places on the path."""
    path = quintic(pendulum, [[0.4], [1.2], [-0.9]], 0.4)
    limit = G + 5.0 if not without_gravity else 5.0
    found = peak(pendulum, path, limit, hardware_compensates_gravity=without_gravity)
    assert found.ratio > 1.2 and 1.0 < found.stretch < math.inf
    times = np.linspace(0.0, 0.8, 201)
    asked = commands(pendulum, slower(path, found.stretch), found.stretch * times, without_gravity)
    assert np.abs(asked).max() == pytest.approx(limit, rel=1e-6)


def test_friction_and_armature_count(pendulum) -> None:
    pendulum.gravity = (0.0, 0.0, 0.0)
    path = quintic(pendulum, [[0.0], [1.0]])
    plain = peak(pendulum, path, 3.0)
    pendulum.armature = np.array([M])
    doubled = peak(pendulum, path, 3.0)
    assert doubled.torque == pytest.approx(2.0 * plain.torque)
    pendulum.friction, pendulum.damping = np.array([0.7]), np.array([0.2])
    found = peak(pendulum, path, 3.0)
    assert found.torque > doubled.torque + 0.7
    times = np.linspace(0.0, 1.0, 251)
    asked = commands(pendulum, slower(path, found.stretch), found.stretch * times)
    assert np.abs(asked).max() == pytest.approx(3.0, rel=1e-6)
    assert found.stretch > doubled.stretch


def test_effort_of_the_trajectory_counts(pendulum) -> None:
    pendulum.gravity = (0.0, 0.0, 0.0)
    path = with_effort(quintic(pendulum, [[0.0], [0.01]]), np.array([[0.0], [4.0]]))
    found = peak(pendulum, path, 5.0)
    assert found.time == pytest.approx(1.0, abs=0.02)
    assert found.torque == pytest.approx(4.0, rel=0.02)


def test_arm_that_cannot_hold_itself_is_not_helped_by_time(pendulum) -> None:
    path = quintic(pendulum, [[-1.2], [0.0]])
    found = peak(pendulum, path, 0.9 * G)
    assert found.ratio > 1.0 and found.stretch == math.inf
    held = peak(pendulum, path, 0.9 * G, hardware_compensates_gravity=True)
    assert held.ratio < 1.0 and held.stretch == 1.0


def test_no_limit(pendulum) -> None:
    found = peak(pendulum, quintic(pendulum, [[0.0], [1.0]], 1e-3), math.inf)
    assert found.stretch == 1.0 and found.limit == math.inf and found.ratio == 0.0


def test_limit_of_zero_allows_no_torque(pendulum) -> None:
    found = peak(pendulum, quintic(pendulum, [[0.0], [1.0]], 1e-3), 0.0)
    assert found.stretch == math.inf and found.limit == 0.0 and found.ratio == math.inf


def test_worst_joint_is_named(pendulum) -> None:
    arm = RobotModel.from_urdf_string(two_link_arm())
    path = swing(arm)
    assert peak(arm, path, [100.0, 1.0]).joint == 1
    assert peak(arm, path, [1.0, 100.0]).joint == 0


def test_only_the_time_between_begin_and_end_counts(pendulum) -> None:
    """The first second is at rest, the next one is fast; what comes after is too."""
    pendulum.gravity = (0.0, 0.0, 0.0)
    path = quintic(pendulum, [[0.0], [0.0], [0.0], [2.0]])
    assert peak(pendulum, path, 1.0, 0.0, 0.9).ratio == 0.0
    assert peak(pendulum, path, 1.0, path.end_time + 0.01, path.end_time + 9.0).ratio == 0.0
    here = peak(pendulum, path, 1.0, 2.3, 2.3)
    assert here.time == 2.3
    assert here.torque == pytest.approx(commands(pendulum, path, [2.3])[0, 0])
    assert peak(pendulum, path, 1.0, 2.3, 2.6).time >= 2.3


def test_both_ends_of_each_segment_are_looked_at(pendulum) -> None:
    """Cubics whose acceleration is largest at their ends, shorter than the samples' distance."""
    pendulum.gravity = (0.0, 0.0, 0.0)
    T = 0.3 * SAMPLE_TIME
    zero = np.zeros(1)
    points = [Waypoint(0.0, zero, zero), Waypoint(T, np.array([1e-6]), zero)]
    found = peak(pendulum, trajectory_through(points), 1.0)
    assert abs(found.torque) == pytest.approx(6.0 * 1e-6 / T**2 * M)


def test_friction_that_holds_back_does_not_hide_a_peak(pendulum) -> None:
    """Braking, a joint whose friction helps may need more torque when slower: all hold."""
    pendulum.gravity = (0.0, 0.0, 0.0)
    pendulum.friction = np.array([2.0])
    path = with_effort(quintic(pendulum, [[0.0], [1.0]]), np.array([[0.0], [1.5]]))
    limit = 3.6
    found = peak(pendulum, path, limit)
    assert 1.0 < found.stretch < math.inf
    times = found.stretch * np.linspace(0.0, 1.0, 251)
    assert np.abs(commands(pendulum, slower(path, found.stretch), times)).max() <= limit * (
        1 + 1e-9
    )


def test_long_trajectories_have_wider_samples(pendulum) -> None:
    found = peak(pendulum, quintic(pendulum, [[0.0], [1.0]], 1e5), 100.0)
    assert abs(found.torque) == pytest.approx(G, rel=1e-6)


def test_stop_with_unneeded_segments(pendulum) -> None:
    """Those start at infinity."""
    path = quintic(pendulum, [[0.0], [1.0]])
    padded = Trajectory(
        np.append(path.starts, [math.inf] * 3),
        np.concatenate([path.coefficients, path.coefficients[[-1] * 3]]),
    )
    assert peak(pendulum, padded, 9.0, end=2.0) == peak(pendulum, path, 9.0, end=2.0)


@pytest.mark.parametrize(("begin", "end"), [(1.0, 0.0), (0.0, math.inf), (math.nan, 1.0)])
def test_times_are_checked(pendulum, begin, end) -> None:
    with pytest.raises(ArgumentError, match="begin and end"):
        peak(pendulum, quintic(pendulum, [[0.0], [1.0]]), 9.0, begin, end)


def test_sizes_are_checked(pendulum) -> None:
    arm = RobotModel.from_urdf_string(two_link_arm())
    with pytest.raises(ArgumentError, match="of 1 joints"):
        peak(pendulum, swing(arm), 9.0)
    rows = pendulum.friction_parameters
    for ws, limit in ((Workspace(arm), np.ones(1)), (Workspace(pendulum), np.ones(2))):
        with pytest.raises(ArgumentError, match="of 1 joints"):
            peak_efforts(pendulum, ws, swing(pendulum), 0.0, 1.0, limit, rows, False)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_any_stretched_trajectory_is_within_the_limits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arm = RobotModel.from_urdf_string(two_link_arm())
    arm.friction, arm.damping = rng.uniform(0.0, 2.0, 2), rng.uniform(0.0, 1.0, 2)
    path = swing(arm, seed, int(rng.integers(2, 5)), 0.2)
    path = with_effort(path, rng.uniform(-2.0, 2.0, (len(path.starts), 2)))
    limit = rng.uniform(1.0, 40.0, 2)
    found = peak(arm, path, limit)
    assert (found.stretch == 1.0) == (found.ratio <= 1.0)
    if found.stretch < math.inf:
        times = np.linspace(0.0, path.end_time, 50 * (len(path.starts) - 1) + 1)[:-1]
        asked = commands(arm, slower(path, found.stretch), found.stretch * times)
        assert (np.abs(asked) <= limit * (1.0 + 1e-6)).all()
