"""Behaviours that joint_trajectory_controller's own tests name and that need no ROS to be shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from robots import two_link_arm

from rnea_control.control import (
    Controller,
    ControllerSettings,
    Gains,
    MotionRequest,
    TrajectorySettings,
    Waypoint,
    Waypoints,
)
from rnea_control.model import RobotModel

STILL = np.zeros(2)
NEAR, FAR = np.array([0.3, -0.3]), np.array([0.6, -0.6])
START = np.array([0.2, -0.4])


def holding(**rules: object) -> Controller:
    """A controller that holds `START`."""
    model = RobotModel.from_urdf_string(two_link_arm())
    settings = ControllerSettings(
        Gains.uniform(2, 100.0, 20.0),
        trajectories=replace(TrajectorySettings.default(2), **rules),
    )
    controller = Controller(model, settings)
    controller.hold(0.0, START)
    return controller


def step(controller: Controller, t: float) -> None:
    """A step with the arm just where it should be."""
    desired = controller.trajectory.at(t)
    controller.step(t, desired[0], desired[1], np.zeros(2))


def partial(points: list[Waypoint], joints: list[bool]) -> Waypoints:
    return replace(Waypoints.of(points, 2), joints=np.array(joints))


def solved(times: np.ndarray, positions: np.ndarray, at_rest: bool) -> np.ndarray:
    """Velocities at the waypoints of the smooth motion of one joint from rest, by one equation for
    each condition on the coefficients of its polynomials."""
    n = len(times) - 1
    degrees = [4] + [3] * (n - 1)
    if at_rest:
        degrees[-1] += 1
    first = np.concatenate([[0], np.cumsum(np.array(degrees) + 1)])
    rows, right = [], []

    def value(segment: int, s: float, order: int) -> np.ndarray:
        row = np.zeros(first[-1])
        for k in range(order, degrees[segment] + 1):
            factor = np.prod(np.arange(k, k - order, -1.0))
            row[first[segment] + k] = factor * s ** (k - order)
        return row

    def demand(row: np.ndarray, number: float) -> None:
        rows.append(row)
        right.append(number)

    for i in range(n):
        T = times[i + 1] - times[i]
        demand(value(i, 0.0, 0), positions[i])
        demand(value(i, T, 0), positions[i + 1])
        if i < n - 1:
            for order in (1, 2):
                demand(value(i, T, order) - value(i + 1, 0.0, order), 0.0)
    T = times[-1] - times[-2]
    demand(value(0, 0.0, 1), 0.0)
    demand(value(0, 0.0, 2), 0.0)
    demand(value(n - 1, T, 2), 0.0)
    if at_rest:
        demand(value(n - 1, T, 1), 0.0)
    c = np.linalg.solve(np.array(rows), np.array(right))
    return np.array([value(i, 0.0, 1) @ c for i in range(n)] + [value(n - 1, T, 1) @ c])


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("times", [(0.1, 0.2), (0.1, 0.2, 0.3, 0.4, 0.5), (0.1, 0.25, 0.3, 0.5)])
def test_velocities_of_the_smooth_motion_meet_its_equations(
    times: tuple[float, ...], is_stream: bool
) -> None:
    controller = holding(upsample_positions=True)
    offsets = 0.02 * np.sin(5.0 * np.array(times))
    points = [Waypoint(t, START + x) for t, x in zip(times, offsets, strict=True)]
    request = MotionRequest(Waypoints.of(points, 2), 0.0, is_stream=is_stream)
    trajectory = controller.plan(request, controller.situation(0.0), 0.0).trajectory
    expected = solved(np.array([0.0, *times]), np.array([0.0, *offsets]), not is_stream)
    for t, velocity in zip(times, expected[1:], strict=True):
        np.testing.assert_allclose(trajectory.at(t)[1], velocity, atol=1e-9)


@pytest.mark.parametrize("is_stream", [False, True])
def test_single_position_is_reached_smoothly(is_stream: bool) -> None:
    controller = holding(upsample_positions=True)
    request = MotionRequest(Waypoints.of([Waypoint(0.5, NEAR)], 2), 0.0, is_stream=is_stream)
    trajectory = controller.plan(request, controller.situation(0.0), 0.0).trajectory
    np.testing.assert_allclose(trajectory.at(0.5)[0], NEAR, atol=1e-12)
    begin, end = trajectory.at(1e-9), trajectory.at(trajectory.end_time)
    np.testing.assert_allclose(begin, [START, STILL, STILL], atol=1e-6)
    np.testing.assert_allclose(end, [NEAR, STILL, STILL], atol=1e-9)
    assert (trajectory.end_time > 0.5) == is_stream


def test_trajectory_that_has_not_started_is_replaced_from_where_the_arm_is_then() -> None:
    controller = holding()
    controller.follow(0.0, [Waypoint(1.0, FAR, STILL)], 5.0)
    step(controller, 0.5)
    controller.follow(0.5, [Waypoint(0.5, NEAR, STILL)], 1.0)
    trajectory = controller.trajectory
    np.testing.assert_allclose(trajectory.at(1.0)[0], START, atol=1e-12)
    path = np.array([trajectory.at(t)[0] for t in np.linspace(1.0, 1.5, 51)])
    assert (path >= np.minimum(START, NEAR) - 1e-12).all()
    assert (path <= np.maximum(START, NEAR) + 1e-12).all()
    np.testing.assert_allclose(trajectory.at(6.0)[0], NEAR, atol=1e-12)  # the old one is gone


def test_partial_goal_that_outlasts_the_old_trajectory() -> None:
    """Until its start both joints follow the old path; then the omitted one goes on to the end of
    it, and holds."""
    controller = holding()
    old = [Waypoint(1.0, NEAR, [0.2, -0.2]), Waypoint(2.0, FAR, STILL)]
    controller.follow(0.0, old, 0.0)
    before = controller.trajectory
    step(controller, 0.3)
    new = partial([Waypoint(3.0, [-0.5, 0.0], STILL)], [True, False])
    request = MotionRequest(new, 1.5)
    assert controller.adopt(controller.plan(request, controller.situation(0.3), 0.0))
    after = controller.trajectory
    for t in np.linspace(0.3, 1.5, 25):
        np.testing.assert_allclose(after.at(t)[:2], before.at(t)[:2], atol=1e-12)
    for t in np.linspace(1.5, 4.5, 61):
        np.testing.assert_allclose(after.at(t)[:, 1], before.at(t)[:, 1], atol=1e-9)
    np.testing.assert_allclose(after.at(4.5)[0], [-0.5, FAR[1]], atol=1e-12)
