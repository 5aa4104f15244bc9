"""Torques that act later than the state that they answer; joints with more inertia than told."""

from __future__ import annotations

import functools
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from controllers import ask, following, to
from plant import Plant
from robots import two_link_arm

from rnea_control.control import Act, ControlLaw, Controller, Gains
from rnea_control.model import RobotModel

PERIOD = 0.001
GOAL = (1.2, -0.8)
# Soft enough for the elbow with torques two ticks late.
GAINS = {ControlLaw.feedforward_pd: Gains.uniform(2, 30.0, 3.0)}


@functools.cache
def swing(
    late: int,
    dead_time: float,
    law: ControlLaw = ControlLaw.computed_torque,
    scaling: float = 1.0,
    rotor: float = 0.0,
    feedback_inertia: float = 0.0,
) -> tuple[np.ndarray, Controller]:
    """Tracking errors of a swing, shape (n, 2), of a robot that gets its torques `late` ticks late,
    and holds each for one. Its elbow has a rotor that its controller does not know of, and
    `feedback_inertia` is told instead."""
    c = following(law=law)
    gains, inertia = GAINS.get(law, c.settings.gains), np.array([0.0, feedback_inertia])
    c.settings = replace(c.settings, gains=gains, dead_time=dead_time, feedback_inertia=inertia)
    robot = RobotModel.from_urdf_string(two_link_arm())
    robot.armature = [0.0, rotor]
    c.speed_scaling = scaling
    plant, errors, tau = Plant(robot, np.zeros(2)), [], np.zeros(2)
    under_way: deque[np.ndarray] = deque([c.holding_torque(plant.q, tau).copy()] * late)
    c.step(0.0, plant.q, plant.v, tau)
    ask(c, 0.0, [to(1.0, *GOAL)])
    behind = 0.0
    for k in range(round(1.2 / scaling / PERIOD)):
        t = k * PERIOD
        c.step(t, plant.q, plant.v, tau)
        under_way.append(tau.copy())
        behind = t - (c.trajectory_time - dead_time * c.speed_scaling)
        errors.append(c.trajectory.at(t - behind)[0] - plant.q)
        plant.step(under_way.popleft(), PERIOD)
    return np.array(errors), c


def rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.mean(errors**2)))


@pytest.mark.parametrize(
    ("law", "late", "scaling", "part"),
    [
        (ControlLaw.computed_torque, 0, 1.0, 0.1),
        (ControlLaw.computed_torque, 1, 1.0, 0.1),
        (ControlLaw.feedforward_pd, 2, 1.0, 0.1),
        (ControlLaw.computed_torque, 1, 0.5, 0.2),
    ],
)
def test_told_its_dead_time_the_arm_tracks_many_times_closer(law, late, scaling, part) -> None:
    """A torque that is held for a period acts half of one late in the mean."""
    told, c = swing(late, (late + 0.5) * PERIOD, law, scaling)
    untold, _ = swing(late, 0.0, law, scaling)
    assert rms(told) < part * rms(untold)
    assert c.motion is None and not c.is_moving  # it has reached the goal


def test_error_is_that_of_the_moment_when_the_torque_acts() -> None:
    c = following()
    c.settings = replace(c.settings, dead_time=0.01)
    q, v, tau = np.array([0.1, 0.0]), np.array([0.5, -0.2]), np.zeros(2)
    c.step(0.001, q, v, tau)
    np.testing.assert_allclose(c.position_error, -(q + 0.01 * v), rtol=0.0, atol=1e-15)
    np.testing.assert_array_equal(c.last_state[0], q)  # what checks and stops start from


def test_new_goals_in_motion_make_no_step() -> None:
    """What is desired already at the moment when the torque acts is not taken back."""
    c = following()
    c.settings = replace(c.settings, dead_time=0.01)
    q, v, tau = np.zeros(2), np.zeros(2), np.zeros(2)
    c.step(0.0, q, v, tau)
    ask(c, 0.0, [to(1.0, *GOAL)])
    last = None
    for k in range(1, 900):
        t = k * PERIOD
        q, v, _ = c.trajectory.at(t)
        c.step(t, q, v, tau)
        if k % 100 == 50:
            ask(c, t, [to(1.0, 0.1 * k / 50, -0.5)])
        if k % 300 == 299:
            c.finish("told to", Act.BRAKES)
        desired = c.desired.copy()
        if last is not None:
            assert np.abs(desired[0] - last[0] - PERIOD * last[1]).max() < 1e-4
            assert np.abs(desired[1] - last[1]).max() < 0.1
        last = desired


def test_least_inertia_of_the_feedback_stands_in_for_a_rotor_that_is_not_known() -> None:
    untold, _ = swing(0, 0.0005, rotor=2.0)
    told, _ = swing(0, 0.0005, rotor=2.0, feedback_inertia=2.0)
    assert rms(told) < 0.5 * rms(untold)
    below_the_models, _ = swing(0, 0.0, feedback_inertia=1e-6)
    np.testing.assert_array_equal(below_the_models, swing(0, 0.0)[0])
