"""The observer against arms integrated with their forward dynamics, with known external torques."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from plant import Plant
from robots import random_tree, two_link_arm

from rnea_control.control import Controller, ControllerSettings, Gains, SafetySettings
from rnea_control.control.motion_watch import UNWATCHED, watch
from rnea_control.dynamics import Workspace, crba, gravity, rnea
from rnea_control.model import RobotModel

H = 0.001


def two_links() -> RobotModel:
    return RobotModel.from_urdf_string(two_link_arm())


def arm_at(model: RobotModel, q, v) -> Plant:
    """An arm in this state."""
    plant = Plant(model, q)
    plant.v = np.array(v, dtype=float)
    return plant


class Observer:
    """The observer of a controller's tick, with torques that come from elsewhere.

    Attributes:
        residual: external torques, shape (nv,), [Nm] or [N].
    """

    def __init__(self, model: RobotModel, gain: float = 25.0, **options) -> None:
        safety = replace(SafetySettings.none(model.nv), observer_gain=gain)
        gains = Gains.uniform(model.nv, 0.0, 0.0)
        controller = Controller(model, ControllerSettings(gains, safety=safety, **options))
        controller.watch, self._rows = UNWATCHED, controller.rows
        self.model, self._controller = model, controller
        settings = controller.arrays.settings[0]
        self._arguments = controller.arm.array[0], settings, self._rows
        self.residual = controller.external_torque

    def update(self, t: float, q: np.ndarray, v: np.ndarray, tau_applied: np.ndarray) -> None:
        """Takes a state, and the torques that were applied since the last one."""
        self._rows.last_command = self._rows.command = tau_applied
        watch(*self._arguments, t, q, v)


def watching(model: RobotModel, gain: float = 25.0, **options) -> Observer:
    return Observer(model, gain, **options)


def drive(model: RobotModel, ws: Workspace, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Torques that swing every joint, whatever the arm's inertia is."""
    j = np.arange(model.nv)
    a = 12.0 * np.cos(7.0 * t + j) + 3.0 * (2.0 * np.sin(3.0 * t + 2.0 * j) - v)
    return rnea(model, ws, q, v, a, np.zeros(model.nv))


def seen(
    arm: Plant,
    observer: Observer,
    seconds: float,
    torque: np.ndarray | None = None,
    h: float = H,
    push: Callable[[float], np.ndarray] | None = None,
) -> np.ndarray:
    """The residual at each state after the first, shape (n, nv)."""
    tau, rows, ws = np.zeros(len(arm.v)), [], Workspace(observer.model)
    observer.update(0.0, arm.q, arm.v, tau)
    for k in range(round(seconds / h)):
        tau = drive(observer.model, ws, k * h, arm.q, arm.v) if torque is None else torque
        if push:
            arm.push = push(k * h)
        arm.step(tau, 0.5 * h)
        arm.step(tau, 0.5 * h)
        observer.update((k + 1) * h, arm.q, arm.v, tau)
        rows.append(observer.residual.copy())
    return np.array(rows)


@pytest.mark.parametrize("robot", [0, 1, 2, "panda", "two links"])
def test_residual_follows_the_external_torque_as_a_filter(robot, panda) -> None:
    """r(t) = (1 - exp(-K t)) tau_ext after a step, while the arm moves fast."""
    if robot == "panda":
        model = panda
        model.damping = model.friction = np.zeros(7)
    elif robot == "two links":
        model = two_links()
    else:
        model = RobotModel.from_urdf_string(random_tree(robot, 6, fixed=False))
    rng = np.random.default_rng(0)
    arm = arm_at(model, 0.3 * rng.standard_normal(model.nq), rng.standard_normal(model.nv))
    inertia = crba(model, Workspace(model), arm.q, np.zeros((model.nv, model.nv))).diagonal()
    torque, K, begin = inertia * rng.choice([-20.0, 20.0], model.nv), 25.0, 0.05
    # The arm sees it at the first state from `begin` on, not within the step before.
    rows = seen(arm, watching(model, K), 0.4, push=lambda t: torque * (t > begin - 1e-9))
    t = H * (1.0 + np.arange(len(rows)))[:, None]
    expected = torque * np.where(t > begin, -np.expm1(-K * np.maximum(t - begin, 0.0)), 0.0)
    assert np.abs(arm.v).max() > 1.0
    np.testing.assert_allclose(rows, expected, rtol=0.0, atol=0.02 * np.abs(torque).max())


def test_friction_of_the_model_is_taken_off() -> None:
    model = two_links()
    model.damping, model.friction = np.array([2.0, 1.0]), np.array([1.5, 0.5])
    model.torque_offset = np.array([0.4, -0.3])
    start = np.array([0.3, -0.4]), np.array([1.0, -1.0])
    told = seen(arm_at(model, *start), watching(model, friction_compensation=True), 0.5)
    not_told = seen(arm_at(model, *start), watching(model), 0.5)
    assert np.abs(told).max() < 0.02
    assert np.abs(not_told).max(axis=0).min() > 0.9


def test_gravity_that_the_hardware_adds() -> None:
    """The commands leave it out, the joints get it."""
    model, ws = two_links(), Workspace(two_links())
    observers = watching(model, hardware_compensates_gravity=True), watching(model)
    arm, tau = arm_at(model, [0.3, -0.4], [1.0, -2.0]), np.zeros(2)
    for k in range(500):
        for observer in observers:
            observer.update(k * H, arm.q, arm.v, tau)
        tau = np.array([0.5, -0.2]) - 0.3 * arm.v
        # the same from one state to the next, as the firmware would at a higher rate
        for _ in range(4):
            arm.step(tau + gravity(model, ws, arm.q, np.zeros(2)), H / 4)
    told, unaware = (np.abs(observer.residual).max() for observer in observers)
    assert told < 0.05 and unaware > 3.0


@pytest.mark.parametrize("gain", [1.0, 1e3, 1e12])
@pytest.mark.parametrize("h", [1e-4, 0.09])
def test_stable_for_any_gain_and_step(gain: float, h: float) -> None:
    """A constant torque on an arm that stands: the exact filter at every state."""
    model, ws = two_links(), Workspace(two_links())
    q, v = np.array([0.3, -0.4]), np.zeros(2)
    held = gravity(model, ws, q, np.zeros(2))
    observer, push = watching(model, gain), np.array([2.0, -3.0])
    for k in range(100):
        observer.update(k * h, q, v, held - push)  # the push carries a part
        np.testing.assert_allclose(observer.residual, -np.expm1(-gain * k * h) * push, rtol=1e-9)


@pytest.mark.filterwarnings("error")
def test_repeated_stamps_gaps_and_bad_states() -> None:
    model, ws = two_links(), Workspace(two_links())
    q, v = np.array([0.3, -0.4]), np.zeros(2)
    tau = gravity(model, ws, q, np.zeros(2)) - np.array([2.0, 0.0])
    observer = watching(model)
    fast = np.full(2, 1e200)

    def settled(begin: float) -> float:
        """The time when it has."""
        for k in range(1, 201):
            observer.update(begin + k * H, q, v, tau)
        assert observer.residual[0] == pytest.approx(2.0, rel=0.01)
        return begin + 200 * H

    t = settled(0.0)
    before = observer.residual.copy()
    for _ in range(3):
        observer.update(t, q, v, tau)
        np.testing.assert_array_equal(observer.residual, before)
    for away, *state in ((0.101, q, v), (-0.001, q, v), (H, q, fast)):
        observer.update(t + away, *state, tau)
        np.testing.assert_array_equal(observer.residual, 0.0)
        t = settled(t + 1.0)
    observer.update(t + 0.099, q, v, tau)  # a gap that is not too long
    assert observer.residual[0] == pytest.approx(2.0, rel=0.01)


def test_torque_acts_a_dead_time_after_its_command() -> None:
    """A torque that swings, applied 3 ms late: told of that, the residual is a tenth."""
    model, ws = two_links(), Workspace(two_links())

    def largest(dead_time: float) -> float:
        observer, arm = watching(model, dead_time=dead_time), arm_at(model, [0.3, -0.4], [0.0, 0.0])
        sent = [np.zeros(2)] * 4
        for k in range(400):
            observer.update(k * H, arm.q, arm.v, sent[-1])
            wave = 10.0 * np.sin(20.0 * k * H + np.arange(2))
            sent.append(gravity(model, ws, arm.q, np.zeros(2)) + wave)
            arm.step(sent[-4], H)
        return float(np.abs(observer.residual).max())

    assert largest(0.003) < 0.1 * largest(0.0)
