"""The observer against arms integrated with their forward dynamics, with known external torques."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import numpy as np
import pytest
from plant import Plant
from robots import random_tree, two_link_arm

from rnea_control.control import Controller, ControllerSettings, Gains, Waypoint
from rnea_control.control.momentum_observer import MomentumObserver, default_thresholds
from rnea_control.dynamics import Workspace, crba, gravity, rnea
from rnea_control.exceptions import ArgumentError, ControllerError
from rnea_control.model import RobotModel
from rnea_control.model.bodies import INERTIA

H = 0.001


def two_links() -> RobotModel:
    return RobotModel.from_urdf_string(two_link_arm())


def arm_at(model: RobotModel, q, v) -> Plant:
    """An arm in this state."""
    plant = Plant(model, q)
    plant.v = np.array(v, dtype=float)
    return plant


def watching(model: RobotModel, gain: float = 25.0, **options) -> MomentumObserver:
    return MomentumObserver(model, gain, np.full(model.nv, np.inf), **options)


def drive(model: RobotModel, ws: Workspace, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Torques that swing every joint, whatever the arm's inertia is."""
    j = np.arange(model.nv)
    a = 12.0 * np.cos(7.0 * t + j) + 3.0 * (2.0 * np.sin(3.0 * t + 2.0 * j) - v)
    return rnea(model, ws, q, v, a, np.zeros(model.nv))


def seen(
    arm: Plant,
    observer: MomentumObserver,
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
    told = seen(arm_at(model, *start), watching(model, friction=True), 0.5)
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
    observer = MomentumObserver(model, 25.0, [1.0, 1.0])
    nan, fast = np.full(2, np.nan), np.full(2, 1e200)

    def settled(begin: float) -> float:
        """The time when it has."""
        for k in range(1, 201):
            observer.update(begin + k * H, q, v, tau)
        assert observer.residual[0] == pytest.approx(2.0, rel=0.01)
        return begin + 200 * H

    t = settled(0.0)
    before = observer.residual.copy()
    for _ in range(3):
        assert observer.update(t, q, v, tau) == 0
        np.testing.assert_array_equal(observer.residual, before)
    good = q, v, tau
    bad = (nan, v, tau), (q, nan, tau), (q, v, nan), (q, fast, tau)
    away_from = (0.101, *good), (-0.001, *good), (math.nan, *good), (math.inf, *good)
    for away, *state in (*away_from, *((H, *each) for each in bad)):
        assert observer.update(t + away, *state) == -1
        np.testing.assert_array_equal(observer.residual, 0.0)
        observer.reset()
        t = settled(t)
    assert observer.update(t + 0.099, q, v, tau) == 0  # a gap that is not too long


def test_joint_beyond_its_threshold_is_named() -> None:
    model, ws = two_links(), Workspace(two_links())
    q, v, held = np.array([0.3, -0.4]), np.zeros(2), np.zeros(2)
    gravity(model, ws, q, held)
    observer = MomentumObserver(model, 25.0, [5.0, 2.0])

    def found(push: list[float], seconds: float = 1.0) -> int:
        observer.reset()
        joints = [observer.update(H * k, q, v, held - push) for k in range(round(seconds / H))]
        assert set(joints) <= {-1, joints[-1]}
        return joints[-1]

    assert found([4.9, 1.9]) == -1
    assert found([-5.1, 0.0]) == 0
    assert found([0.0, 2.1]) == 1
    assert found([6.0, 3.0]) == 1  # 1.2 and 1.5 times the threshold
    assert found([6.0, -2.2]) == 0
    # It comes when the filter has risen that far.
    time = -math.log(1.0 - 2.0 / 4.0) / 25.0
    assert found([0.0, 4.0], time - 0.003) == -1
    assert found([0.0, 4.0], time + 0.003) == 1
    observer.thresholds[1] = np.inf
    assert found([0.0, 4.0]) == -1


def test_default_thresholds_bear_masses_that_are_off(panda) -> None:
    """The argument for their size: masses 10 % off shift the residual by 10 % of the torques, which
    are within the effort limits."""
    panda.damping = panda.friction = still = np.zeros(7)
    heavy = copy.deepcopy(panda)
    heavy.bodies[1:, INERTIA : INERTIA + 10] *= 1.1
    q = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8])
    controller = Controller(panda, ControllerSettings(Gains.uniform(7, 400.0, 40.0)))
    controller.hold(0.0, q)
    points = [Waypoint(0.6, q + 0.5, still, still), Waypoint(1.4, q - 0.3, still, still)]
    controller.follow(0.0, points, 0.0)
    observer = MomentumObserver(panda, 25.0, default_thresholds(panda.effort_limit))
    arm, tau, largest = Plant(heavy, q), np.zeros(7), 0.0
    for k in range(1500):
        assert observer.update(k * H, arm.q, arm.v, tau) == -1
        largest = max(largest, np.abs(observer.residual / observer.thresholds).max())
        controller.step(k * H, arm.q, arm.v, tau)
        arm.step(tau)
    assert 0.2 < largest < 1.0  # it does see them
    np.testing.assert_array_equal(default_thresholds(np.array([80.0, np.inf])), [8.0, np.inf])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gain": math.inf}, "gain is inf"),
        ({"thresholds": [1.0]}, r"shape \(1,\)"),
        ({"thresholds": [1.0, 0.0]}, r"threshold\[1\] is 0.0"),
        ({"thresholds": [math.nan, 1.0]}, r"threshold\[0\] is nan"),
        ({"gain": 0.0}, "gain is 0.0"),
    ],
)
def test_wrong_settings_are_refused(options: dict, words: str) -> None:
    with pytest.raises(ControllerError, match=words):
        MomentumObserver(two_links(), **{"gain": 25.0, "thresholds": [1.0, 1.0], **options})


def test_wrong_arrays_are_refused() -> None:
    for wrong in (np.zeros(3), np.zeros(2, dtype=int), np.zeros(4)[::2], [0.0, 0.0], None):
        for i in range(3):
            arrays = [np.zeros(2), np.zeros(2), np.zeros(2)]
            arrays[i] = wrong
            with pytest.raises(ArgumentError, match="must each be"):
                watching(two_links()).update(0.0, *arrays)
