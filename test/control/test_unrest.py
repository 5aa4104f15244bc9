"""An arm that moves although it is held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from controllers import ARM
from default_safety import default_safety, default_supervision

from rnea_control.control import (
    Controller,
    ControllerSettings,
    Gains,
    Mode,
    MotionRequest,
    Supervisor,
    Waypoint,
    Waypoints,
)
from rnea_control.control.mode import Event
from rnea_control.control.unrest import RESTING_SPEED

START = np.array([0.3, -0.5])
NONE = np.zeros(2)
PERIOD = 0.001


class Held:
    """A supervised controller that holds `START`, and what it says of the states that it gets."""

    def __init__(self, noise: float = 0.0) -> None:
        settings = ControllerSettings(Gains.uniform(2, 100.0, 20.0), safety=default_safety(ARM))
        self.changes: list[tuple[Mode, str]] = []
        self.supervisor = Supervisor(
            Controller(ARM, settings),
            replace(default_supervision(), activation_check="off"),
            lambda old, new, reason: self.changes.append((new, reason)),
        )
        self.t, self.tau = 3.0, np.zeros(2)
        self._noise, self._random = noise, np.random.default_rng(0)
        self.supervisor.activate()
        self.rest(0.2)
        assert self.supervisor.mode is Mode.HOLDING

    def state(self, offset: np.ndarray, v: np.ndarray) -> None:
        self.t += PERIOD
        q = START + offset + 1e-9 * self._random.normal(size=2)
        measured = v + self._noise * self._random.normal(size=2)
        self.supervisor.answer(self.t, q, measured, self.tau)

    def rest(self, seconds: float) -> None:
        for _ in range(round(seconds / PERIOD)):
            self.state(NONE, NONE)

    def swing(self, seconds: float, speed: float, joint: int = 1, rate: float = 10.0) -> None:
        """The joint swings to and fro by `rate` [rad/s] about the position that is held."""
        for k in range(round(seconds / PERIOD)):
            angle = rate * k * PERIOD
            offset, v = np.zeros(2), np.zeros(2)
            offset[joint] = -speed / rate * np.cos(angle) + speed / rate
            v[joint] = speed * np.sin(angle)
            self.state(offset, v)


def test_an_arm_that_moves_is_not_said_to_hold_and_the_joint_is_named() -> None:
    arm = Held()
    arm.swing(1.5, 3.0 * RESTING_SPEED)
    mode, reason = arm.changes[-1]
    assert mode is arm.supervisor.mode is Mode.BRAKING and arm.supervisor.controller.restless
    assert (
        reason.startswith(f"{ARM.joint_names[1]} moves at 0.1") and "although it is held" in reason
    )


def test_an_arm_that_stands_still_again_holds() -> None:
    arm = Held()
    arm.swing(1.5, 3.0 * RESTING_SPEED)
    before = len(arm.changes)
    arm.rest(3.0)
    assert arm.changes[before:] == [(Mode.HOLDING, "at rest")]
    assert not arm.supervisor.controller.restless


def test_a_restless_arm_takes_a_trajectory() -> None:
    arm = Held()
    arm.swing(1.5, 3.0 * RESTING_SPEED)
    request = MotionRequest(Waypoints.of([Waypoint(5.0, START + 0.1, NONE, NONE)], 2))
    controller = arm.supervisor.controller
    assert arm.supervisor.adopt(controller.plan(request, arm.supervisor.situation(arm.t), 0.0))
    arm.rest(0.1)
    assert arm.supervisor.mode is Mode.MOVING and not controller.restless


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
def test_noise_and_short_or_slow_motion_are_rest(noise: float) -> None:
    arm = Held(noise)
    before = list(arm.changes)
    arm.rest(3.0)
    arm.swing(3.0, 0.8 * RESTING_SPEED)
    arm.swing(0.6, 2.0 * RESTING_SPEED)  # somebody touches the arm
    arm.rest(3.0)
    assert arm.changes == before


def test_an_arm_in_fault_stays_in_fault_however_it_moves() -> None:
    arm = Held()
    arm.supervisor.fail("a test", arm.t, START, NONE)
    arm.swing(2.0, 3.0 * RESTING_SPEED)
    assert arm.supervisor.mode is Mode.FAULT


def test_a_new_activation_forgets_unrest() -> None:
    arm = Held()
    arm.swing(1.5, 3.0 * RESTING_SPEED)
    arm.supervisor.happen(Event.DEACTIVATED, "a test")
    arm.supervisor.activate()
    assert not arm.supervisor.controller.restless


def test_a_controller_that_ends_waits_for_joints_that_still_move() -> None:
    """Those of an arm that lags behind the stop, say by its gains or its torque rate."""
    arm = Held()
    assert not arm.supervisor.end("a test")
    arm.state(NONE, np.array([0.0, 3.0 * RESTING_SPEED]))
    assert arm.supervisor.end("a test") and not arm.supervisor.controller.is_moving
    arm.rest(0.1)
    assert not arm.supervisor.end("a test")
