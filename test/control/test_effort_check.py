"""The torques that trajectories ask for, and how much slower they must be."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import joint, link, robot, two_link_arm
from trajectories import quintics, swing, through, torques, with_effort

from rnea_control.control import ControllerSettings, Gains, SafetySettings, Waypoint
from rnea_control.control.trajectory import COEFFICIENTS, Trajectory
from rnea_control.control.trajectory_limits import SAMPLE_TIME, EffortPeak, peak_efforts
from rnea_control.dynamics import Workspace
from rnea_control.model import RobotModel

MASS, LEVER, INERTIA = 2.0, 0.5, 0.1
G = MASS * LEVER * 9.81
M = INERTIA + MASS * LEVER**2


@pytest.fixture
def pendulum() -> RobotModel:
    """Level at 0, with its gravity torque -G cos(q)."""
    inertia = (INERTIA, 0, 0, INERTIA, 0, INERTIA)
    bob = link("bob", MASS, (LEVER, 0, 0), inertia)
    hinge = joint("hinge", "base", "bob", axis=(0, 1, 0))
    return RobotModel.from_urdf_string(robot(link("base"), bob, hinge))


def peak(
    model: RobotModel,
    path: Trajectory,
    limit,
    begin: float = 0.0,
    end: float | None = None,
    hardware_compensates_gravity: bool = False,
) -> EffortPeak:
    limit = np.broadcast_to(np.asarray(limit, float), model.nv)
    of_controller = ControllerSettings(
        Gains.uniform(model.nv, 1.0, 1.0),
        hardware_compensates_gravity=hardware_compensates_gravity,
        friction_compensation=True,
        safety=replace(SafetySettings.none(model.nv), effort_limit=limit),
    )
    path = Trajectory(path.starts, path.coefficients, path.end_time if end is None else end)
    return peak_efforts(model, Workspace(model), path, begin, of_controller)


def slower(path: Trajectory, k: float) -> Trajectory:
    """The same path in k times the time; the effort stays where it is on the path."""
    powers = np.array([*range(6), 0, 1])
    return Trajectory(k * path.starts, path.coefficients / k ** powers[:COEFFICIENTS])


@pytest.mark.parametrize("without_gravity", [False, True])
def test_peak_is_that_of_a_plain_loop(panda, without_gravity) -> None:
    panda.friction, panda.damping = np.full(7, 0.5), np.full(7, 0.3)
    panda.armature = np.full(7, 0.2)
    panda.torque_offset = np.linspace(-1.0, 1.0, 7)
    rng = np.random.default_rng(1)
    path = swing(7, 1)
    path = with_effort(path, rng.uniform(-3.0, 3.0, (4, 7)))
    found = peak(panda, path, panda.effort_limit, hardware_compensates_gravity=without_gravity)
    times = np.linspace(0.0, path.end_time, 3 * round(1.0 / SAMPLE_TIME) + 1)
    asked = torques(panda, path, times, without_gravity)
    ratio = np.abs(asked) / panda.effort_limit
    i, j = np.unravel_index(np.argmax(ratio), ratio.shape)
    assert (found.joint, found.limit) == (j, panda.effort_limit[j])
    assert found.time == pytest.approx(times[i])
    assert found.torque == pytest.approx(asked[i, j])
    assert found.ratio == pytest.approx(ratio.max())
    assert found.stretch == 1.0


def test_arm_that_cannot_hold_itself_is_not_helped_by_time(pendulum) -> None:
    path = quintics([[-1.2], [0.0]])
    found = peak(pendulum, path, 0.9 * G)
    assert found.ratio > 1.0 and found.stretch == math.inf
    held = peak(pendulum, path, 0.9 * G, hardware_compensates_gravity=True)
    assert held.ratio < 1.0 and held.stretch == 1.0


def test_only_the_time_between_begin_and_end_counts(pendulum) -> None:
    """The first second is at rest, the next one is fast; what comes after is too."""
    pendulum.gravity = (0.0, 0.0, 0.0)
    path = quintics([[0.0], [0.0], [0.0], [2.0]])
    assert peak(pendulum, path, 1.0, 0.0, 0.9).ratio == 0.0
    assert peak(pendulum, path, 1.0, path.end_time + 0.01, path.end_time + 9.0).ratio == 0.0
    here = peak(pendulum, path, 1.0, 2.3, 2.3)
    assert here.time == 2.3
    assert here.torque == pytest.approx(torques(pendulum, path, [2.3])[0, 0])
    assert peak(pendulum, path, 1.0, 2.3, 2.6).time >= 2.3


def test_both_ends_of_each_segment_are_looked_at(pendulum) -> None:
    """Cubics whose acceleration is largest at their ends, shorter than the samples' distance."""
    pendulum.gravity = (0.0, 0.0, 0.0)
    T = 0.3 * SAMPLE_TIME
    zero = np.zeros(1)
    points = [Waypoint(0.0, zero, zero), Waypoint(T, np.array([1e-6]), zero)]
    found = peak(pendulum, through(points), 1.0)
    assert abs(found.torque) == pytest.approx(6.0 * 1e-6 / T**2 * M)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_any_stretched_trajectory_is_within_the_limits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arm = RobotModel.from_urdf_string(two_link_arm())
    arm.friction, arm.damping = rng.uniform(0.0, 2.0, 2), rng.uniform(0.0, 1.0, 2)
    path = swing(2, seed, int(rng.integers(2, 5)), 0.2)
    path = with_effort(path, rng.uniform(-2.0, 2.0, (len(path.starts), 2)))
    limit = rng.uniform(1.0, 40.0, 2)
    found = peak(arm, path, limit)
    assert (found.stretch == 1.0) == (found.ratio <= 1.0)
    if found.stretch < math.inf:
        times = np.linspace(0.0, path.end_time, 50 * (len(path.starts) - 1) + 1)[:-1]
        asked = torques(arm, slower(path, found.stretch), found.stretch * times)
        assert (np.abs(asked) <= limit * (1.0 + 1e-6)).all()
