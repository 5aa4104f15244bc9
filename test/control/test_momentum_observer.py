"""The observer against arms integrated with their forward dynamics, with known external torques."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from allocation import allocated
from robots import PANDA_JOINTS, load_quietly, random_tree, two_link_arm

from rnea_control.control import Controller, ControllerSettings, Gains, Waypoint
from rnea_control.control.momentum_observer import MomentumObserver, default_thresholds
from rnea_control.dynamics import Workspace, crba, forward_dynamics, gravity, rnea
from rnea_control.exceptions import ArgumentError, ControllerError
from rnea_control.model import RobotModel
from rnea_control.model.bodies import INERTIA

H = 0.001
External = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


@pytest.fixture(scope="module")
def panda(panda_urdf) -> RobotModel:
    return load_quietly(panda_urdf, PANDA_JOINTS)


def two_links() -> RobotModel:
    return RobotModel.from_urdf_string(two_link_arm())


def without_friction(model: RobotModel) -> RobotModel:
    model.damping = model.friction = np.zeros(model.nv)
    return model


@dataclass
class Arm:
    """An arm whose torque is constant from one state to the next, by fourth-order Runge-Kutta."""

    model: RobotModel
    q: np.ndarray
    v: np.ndarray
    external: External | None = None
    t: float = 0.0
    ws: Workspace = field(init=False)

    def __post_init__(self) -> None:
        self.ws = Workspace(self.model)

    def _slope(self, t: float, x: np.ndarray, torque: np.ndarray) -> np.ndarray:
        q, v = x[0].copy(), x[1].copy()
        if self.external is not None:
            torque = torque + self.external(t, q, v)
        return np.array([v, forward_dynamics(self.model, self.ws, q, v, torque, np.zeros(len(v)))])

    def step(self, torque: np.ndarray, h: float = H, parts: int = 2) -> None:
        torque, d = torque.copy(), h / parts
        for _ in range(parts):
            x, t = np.array([self.q, self.v]), self.t
            k1 = self._slope(t, x, torque)
            k2 = self._slope(t + d / 2, x + d / 2 * k1, torque)
            k3 = self._slope(t + d / 2, x + d / 2 * k2, torque)
            k4 = self._slope(t + d, x + d * k3, torque)
            self.q, self.v = x + d / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            self.t = t + d


def drive(model: RobotModel, ws: Workspace, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Torques that swing every joint, whatever the arm's inertia is."""
    j = np.arange(model.nv)
    a = 12.0 * np.cos(7.0 * t + j) + 3.0 * (2.0 * np.sin(3.0 * t + 2.0 * j) - v)
    return rnea(model, ws, q, v, a, np.zeros(model.nv))


def seen(
    arm: Arm,
    observer: MomentumObserver,
    seconds: float,
    h: float = H,
    torque: Callable | None = None,
) -> np.ndarray:
    """The residual at each state after the first, shape (n, nv)."""
    tau, rows, ws = np.zeros(arm.model.nv), [], Workspace(arm.model)
    for _ in range(round(seconds / h)):
        observer.update(arm.t, arm.q, arm.v, tau)
        tau = torque(arm) if torque else drive(arm.model, ws, arm.t, arm.q, arm.v)
        arm.step(tau, h)
        observer.update(arm.t, arm.q, arm.v, tau)
        rows.append(observer.residual.copy())
    return np.array(rows)


def watching(model: RobotModel, gain: float = 25.0, **options) -> MomentumObserver:
    return MomentumObserver(model, gain, np.full(model.nv, np.inf), **options)


TREES = [(seed, 6) for seed in range(6)]


@pytest.mark.parametrize("robot", [*TREES, "panda", "two links"])
def test_residual_follows_the_external_torque_as_a_filter(robot, panda) -> None:
    """r(t) = (1 - exp(-K t)) tau_ext after a step, while the arm moves fast."""
    if robot == "panda":
        model = without_friction(copy.deepcopy(panda))
    elif robot == "two links":
        model = two_links()
    else:
        model = RobotModel.from_urdf_string(random_tree(*robot, fixed=False))
    rng = np.random.default_rng(0)
    arm = Arm(model, 0.3 * rng.standard_normal(model.nq), rng.standard_normal(model.nv))
    inertia = crba(model, arm.ws, arm.q, np.zeros((model.nv, model.nv))).diagonal()
    torque, K, begin = inertia * rng.choice([-20.0, 20.0], model.nv), 25.0, 0.05
    # The arm sees it at the first state from `begin` on, not within the step before.
    arm.external = lambda t, q, v: torque * (t > begin - 1e-9)
    rows = seen(arm, watching(model, K), 0.4)
    t = H * (1.0 + np.arange(len(rows)))[:, None]
    expected = torque * np.where(t > begin, -np.expm1(-K * np.maximum(t - begin, 0.0)), 0.0)
    assert np.abs(arm.v).max() > 1.0
    np.testing.assert_allclose(rows, expected, rtol=0.0, atol=0.02 * np.abs(torque).max())


@pytest.mark.parametrize("seed", range(4))
def test_error_of_an_exact_model_falls_with_the_square_of_the_step(seed: int) -> None:
    """All that is left in free motion is the trapezoidal rule's."""
    model = RobotModel.from_urdf_string(random_tree(seed, 6, fixed=False))

    def largest(h: float) -> float:
        arm = Arm(model, np.full(model.nq, 0.2), np.full(model.nv, 2.0))
        held = Workspace(model)

        def slow(a: Arm) -> np.ndarray:  # the same motion whatever the step
            return gravity(model, held, np.full(model.nq, 0.2), np.zeros(model.nv))

        return float(np.abs(seen(arm, watching(model), 0.2, h, slow)).max())

    coarse, fine = largest(0.002), largest(0.001)
    assert fine < 0.02
    assert fine < 0.3 * coarse


def test_fast_motion_of_the_demo_size_leaves_nothing(panda) -> None:
    """The Panda under computed torque at its velocity limits."""
    model = without_friction(copy.deepcopy(panda))
    q = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8])
    controller = Controller(model, ControllerSettings(Gains.uniform(7, 400.0, 40.0)))
    controller.hold(0.0, q)
    far = Waypoint(0.5, q + 0.5, np.zeros(7), np.zeros(7))
    controller.follow(0.0, [far, Waypoint(1.0, q, np.zeros(7), np.zeros(7))], 0.0)
    arm = Arm(model, q, np.zeros(7))
    fastest = 0.0

    def torque(a: Arm) -> np.ndarray:
        nonlocal fastest
        fastest = max(fastest, float(np.abs(a.v).max()))
        return controller.step(a.t, a.q, a.v, np.zeros(7))

    rows = seen(arm, watching(model), 1.0, H, torque)
    assert fastest > 1.8
    assert np.abs(rows).max() < 0.01


def test_friction_of_the_model_is_taken_off() -> None:
    model = two_links()
    model.damping, model.friction = np.array([2.0, 1.0]), np.array([1.5, 0.5])
    model.torque_offset = np.array([0.4, -0.3])
    start = np.array([0.3, -0.4]), np.array([1.0, -1.0])
    told = seen(Arm(model, *start), watching(model, friction=True), 0.5)
    not_told = seen(Arm(model, *start), watching(model), 0.5)
    assert np.abs(told).max() < 0.02
    assert np.abs(not_told).max(axis=0).min() > 0.9


def test_gravity_that_the_hardware_adds() -> None:
    """The commands leave it out, the joints get it."""
    model, ws = two_links(), Workspace(two_links())
    observer = watching(model, hardware_compensates_gravity=True)
    unaware = watching(model)
    arm, tau = Arm(model, np.array([0.3, -0.4]), np.array([1.0, -2.0])), np.zeros(2)
    for _ in range(500):
        for each in (observer, unaware):
            each.update(arm.t, arm.q, arm.v, tau)
        tau = np.array([0.5, -0.2]) - 0.3 * arm.v
        # the same from one state to the next, as the firmware would at a higher rate
        for _ in range(4):
            arm.step(tau + gravity(model, ws, arm.q, np.zeros(2)), H / 4, 1)
    assert np.abs(observer.residual).max() < 0.05
    assert np.abs(unaware.residual).max() > 3.0


@pytest.mark.parametrize("gain", [1.0, 1e3, 1e6, 1e12])
@pytest.mark.parametrize("h", [1e-4, 0.01, 0.09])
def test_stable_for_any_gain_and_step(gain: float, h: float) -> None:
    """A constant torque on an arm that stands: the exact filter at every state."""
    model, ws = two_links(), Workspace(two_links())
    q, v = np.array([0.3, -0.4]), np.zeros(2)
    held = gravity(model, ws, q, np.zeros(2))
    observer, push = watching(model, gain), np.array([2.0, -3.0])
    for k in range(300):
        observer.update(k * h, q, v, held - push)  # the push carries a part
        np.testing.assert_allclose(observer.residual, -np.expm1(-gain * k * h) * push, rtol=1e-9)


@pytest.mark.filterwarnings("error")
def test_repeated_stamps_gaps_and_bad_states() -> None:
    model, ws = two_links(), Workspace(two_links())
    q, v = np.array([0.3, -0.4]), np.zeros(2)
    tau = gravity(model, ws, q, np.zeros(2)) - np.array([2.0, 0.0])
    observer = MomentumObserver(model, 25.0, [1.0, 1.0], longest_gap=0.05)
    t = 0.0

    def settle() -> None:
        nonlocal t
        for _ in range(200):
            t += H
            observer.update(t, q, v, tau)
        assert observer.residual[0] == pytest.approx(2.0, rel=0.01)

    settle()
    before = observer.residual.copy()
    for _ in range(3):
        assert observer.update(t, q, v, tau) == 0
        np.testing.assert_array_equal(observer.residual, before)
    nan = np.full(2, np.nan)
    fast = np.full(2, 1e200)
    for stamp, position, velocity, torque in (
        (t + 0.051, q, v, tau),
        (t - 0.001, q, v, tau),
        (t + H, nan, v, tau),
        (t + H, q, nan, tau),
        (t + H, q, v, nan),
        (t + H, q, fast, tau),
        (math.nan, q, v, tau),
        (math.inf, q, v, tau),
    ):
        assert observer.update(stamp, position, velocity, torque) == -1
        np.testing.assert_array_equal(observer.residual, 0.0)
        observer.reset()
        settle()
    t += 0.049
    assert observer.update(t, q, v, tau) == 0  # a gap that is not too long


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


def test_hard_stop_is_found_within_milliseconds() -> None:
    """A stiff wall in the elbow's way."""
    model = two_links()
    observer = MomentumObserver(model, 25.0, [3.0, 3.0])
    wall = 0.3

    def stop(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([0.0, -1e4 * max(q[1] - wall, 0.0)])

    arm, tau = Arm(model, np.array([0.2, -0.2]), np.array([0.0, 4.0]), stop), np.zeros(2)
    ws, touched = Workspace(model), None
    for _ in range(400):
        if touched is None and arm.q[1] > wall:
            touched = arm.t
        found = observer.update(arm.t, arm.q, arm.v, tau)
        if found >= 0:
            break
        tau = rnea(model, ws, arm.q, arm.v, np.zeros(2), np.zeros(2))
        arm.step(tau, H, 10)
    assert found == 1
    assert touched is not None and arm.t - touched < 0.02


def test_default_thresholds_bear_masses_that_are_off(panda) -> None:
    """The argument for their size: masses 10 % off shift the residual by 10 % of the torques, which
    are within the effort limits."""
    model = without_friction(copy.deepcopy(panda))
    heavy = without_friction(copy.deepcopy(panda))
    heavy.bodies[1:, INERTIA : INERTIA + 10] *= 1.1
    q = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8])
    controller = Controller(model, ControllerSettings(Gains.uniform(7, 400.0, 40.0)))
    controller.hold(0.0, q)
    still = np.zeros(7)
    points = [Waypoint(0.6, q + 0.5, still, still), Waypoint(1.4, q - 0.3, still, still)]
    controller.follow(0.0, points, 0.0)
    observer = MomentumObserver(model, 25.0, default_thresholds(model.effort_limit))
    arm, tau = Arm(heavy, q, np.zeros(7)), np.zeros(7)
    largest = np.zeros(7)
    for _ in range(1500):
        assert observer.update(arm.t, arm.q, arm.v, tau) == -1
        largest = np.maximum(largest, np.abs(observer.residual) / observer.thresholds)
        controller.step(arm.t, arm.q, arm.v, tau)
        arm.step(tau)
    assert 0.2 < largest.max() < 1.0  # it does see them


def test_no_effort_limit_gives_no_threshold() -> None:
    found = default_thresholds(np.array([80.0, np.inf]))
    np.testing.assert_array_equal(found, [8.0, np.inf])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gain": 0.0}, "gain is 0.0"),
        ({"gain": math.nan}, "gain is nan"),
        ({"gain": math.inf}, "gain is inf"),
        ({"thresholds": [1.0]}, r"shape \(1,\)"),
        ({"thresholds": [1.0, 0.0]}, r"threshold\[1\] is 0.0"),
        ({"thresholds": [math.nan, 1.0]}, r"threshold\[0\] is nan"),
        ({"longest_gap": 0.0}, "longest_gap is 0.0"),
    ],
)
def test_wrong_settings_are_refused(options: dict, words: str) -> None:
    with pytest.raises(ControllerError, match=words):
        MomentumObserver(two_links(), **{"gain": 25.0, "thresholds": [1.0, 1.0], **options})


def test_wrong_arrays_are_refused() -> None:
    observer, good = watching(two_links()), np.zeros(2)
    for wrong in (np.zeros(3), np.zeros(2, dtype=int), np.zeros(4)[::2], [0.0, 0.0], None):
        for i in range(3):
            arrays = [good, good, good]
            arrays[i] = wrong
            with pytest.raises(ArgumentError, match="must each be"):
                observer.update(0.0, *arrays)


def test_update_allocates_nothing(panda) -> None:
    observer, q, v, tau = watching(panda), np.zeros(7), np.ones(7), np.zeros(7)
    time = 0.0

    def update() -> None:
        nonlocal time
        time += H
        observer.update(time, q, v, tau)

    counted = allocated(update)
    assert counted["held"] == 0
    assert counted["page faults"] == 0
    assert counted["peak"] < 300  # the tuple of arguments, and a number
