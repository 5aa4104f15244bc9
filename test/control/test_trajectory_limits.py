"""Trajectories that leave the limits between their points, or start where the arm is not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import joint, link, robot
from trajectories import then

from rnea_control.control import Controller, ControllerSettings, Gains, Waypoint
from rnea_control.exceptions import TrajectoryError
from rnea_control.model import RobotModel

LIMIT = '<limit lower="-1" upper="1" effort="100" velocity="2"/>'
WHEEL = '<limit effort="100" velocity="2"/>'
ZERO = np.zeros(2)


def controller(q=(0.0, 0.0)) -> Controller:
    hinge = joint("hinge", "base", "one", limit=LIMIT)
    wheel = joint("wheel", "one", "two", "continuous", limit=WHEEL)
    urdf = robot(link("base"), link("one"), link("two"), hinge, wheel)
    c = Controller(RobotModel.from_urdf_string(urdf), ControllerSettings(Gains.uniform(2, 1, 1)))
    c.hold(0.0, np.array(q))
    return c


def at(time: float, hinge: float, velocity: float = 0.0, wheel: float = 0.0) -> Waypoint:
    return Waypoint(time, np.array([hinge, wheel]), np.array([velocity, 0.0]))


def test_cubic_that_dips_below_a_limit_between_two_good_points() -> None:
    """From -0.9 at -1.2 rad/s to -0.9 at 1.2 rad/s in 1 s: at -1.2 rad in the middle."""
    c = controller()
    before = c.trajectory
    points = [at(1.0, -0.9, -1.2), at(2.0, -0.9, 1.2), at(4.0, 0.0)]
    words = r"at 1\.5 s, between the points at 1 s and 2 s, joint 'hinge' would be at -1\.2 rad"
    with pytest.raises(TrajectoryError, match=words):
        c.follow(100.0, points, 103.0)  # times are counted from the trajectory's start
    assert c.trajectory is before
    c.follow(100.0, [at(1.0, -0.9, -0.3), at(2.0, -0.9, 0.3), at(4.0, 0.0)], 103.0)


def test_velocity_limit_holds_at_the_peak_of_the_spline() -> None:
    """A cubic over 0.9 rad in T seconds, at rest at both ends, peaks at 1.5 * 0.9 / T."""
    controller().follow(0.0, [at(1.5 * 0.9 / 2.0 + 1e-9, 0.9)], 0.0)
    with pytest.raises(TrajectoryError) as refused:
        controller().follow(0.0, [at(1.5 * 0.9 / 2.0 / 1.05, 0.9)], 0.0)
    text = str(refused.value)
    assert "joint 'hinge' would move at 2.1 rad/s" in text and "its limit is 2." in text
    assert "Make the trajectory 1.05 times slower" in text and text.startswith("at 0.321 s")


def test_position_just_beyond_a_limit_is_told_with_the_digits_that_differ() -> None:
    with pytest.raises(TrajectoryError, match=r"at 1\.00000001 is outside its limits -1 to 1$"):
        controller().follow(0.0, [at(2.0, 1.0 + 1e-8)], 0.0)


def test_joint_beyond_its_limit_may_come_back_but_not_go_further() -> None:
    c = controller([1.2, 0.0])
    c.follow(0.0, [at(1.0, 0.9)], 0.0)
    c = controller([1.2, 0.0])
    c.follow(0.0, [at(1.0, 1.0)], 0.0)
    outward = Waypoint(0.5, np.array([1.0, 0.0]), np.array([1.8, 0.0]))
    with pytest.raises(TrajectoryError, match="'hinge' would be at"):
        c.follow(0.1, [outward, at(3.0, 0.0)], 0.1)


def test_joint_that_came_back_may_not_leave_again() -> None:
    """It starts at 1.2, comes back to 0.9, and would swing out to 1.1 between two good points."""
    c = controller([1.2, 0.0])
    points = [at(1.0, 0.9), at(2.0, 0.9, 0.8), at(3.0, 0.9, -0.8), at(5.0, 0.0)]
    with pytest.raises(TrajectoryError, match=r"joint 'hinge' would be at 1\.1 rad, outside"):
        c.follow(0.0, points, 0.0)


def test_first_point_at_time_zero_must_be_where_the_arm_is() -> None:
    c = controller()
    c.follow(0.0, [at(0.0, 0.05), at(2.0, 0.5)], 0.0)
    with pytest.raises(TrajectoryError, match=r"point 0 is at time 0, but joint 'hinge' is 0\."):
        controller().follow(0.0, [at(0.0, 0.4), at(2.0, 0.5)], 0.0)
    a_turn_away = at(0.0, 0.0, wheel=0.1 + 2.0 * math.pi)  # of the wheel
    controller([0.0, 0.1]).follow(0.0, [a_turn_away, at(2.0, 0.5, wheel=7.0)], 0.0)
    with pytest.raises(TrajectoryError, match="point 0 is at time 0"):  # stamped now, 10 ms ago
        controller().follow(0.01, [at(0.0, 0.4), at(2.0, 0.5)], 0.0)
    late = controller()
    late.follow(1.0, [at(0.0, 1.4), at(3.0, 0.5)], 0.0)  # that point has passed


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_accepted_stays_within_the_limits_everywhere(seed: int) -> None:
    """And what is refused does leave them: both seen on a fine grid."""
    rng = np.random.default_rng(seed)
    c = controller(rng.uniform(-0.5, 0.5, 2))
    n = int(rng.integers(1, 5))
    times = np.cumsum(rng.uniform(0.3, 2.0, n))
    with_acceleration = rng.random() < 0.5
    q, v, a = rng.uniform(-1.0, 1.0, (n, 2)), rng.uniform(-1.5, 1.5, (n, 2)), [None] * n
    v[-1] = 0.0
    if with_acceleration:
        a = rng.uniform(-3.0, 3.0, (n, 2))
    points = [Waypoint(*each) for each in zip(times, q, v, a, strict=True)]
    held = c.trajectory
    model, grid = c.model, np.linspace(0.0, times[-1], 4001)
    joined = then(held, points, 0.0, 0.0, model.continuous)
    samples = np.array([joined.at(t) for t in grid])
    position = (samples[:, 0] - model.upper).max(), (model.lower - samples[:, 0]).max()
    excess = max(*position, (np.abs(samples[:, 1]) - model.velocity_limit).max())
    try:
        c.follow(0.0, points, 0.0)
    except TrajectoryError as error:
        assert excess > -1e-4, error
    else:
        assert excess <= 1e-5
