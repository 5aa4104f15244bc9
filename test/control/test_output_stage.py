"""The output stage: soft limits, velocity limit, blend at the start, finite check, saturation, rate
limit and giving way, each by itself."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from controllers import ARM, JOINT_SPACE, ZERO, to, wheel_and_hinge
from plant import Plant
from robots import PANDA_JOINTS, example_robot, load_quietly, two_link_arm

from rnea_control.control import (
    Act,
    ControlLaw,
    Controller,
    ControllerSettings,
    EndKind,
    Gains,
    SafetySettings,
)
from rnea_control.control.output_stage import BRAKING_RATE, LONGEST_RATE_STEP
from rnea_control.dynamics import Workspace, crba, gravity
from rnea_control.exceptions import TorqueError
from rnea_control.model import RobotModel

LAWS = list(JOINT_SPACE)
WITH_MODEL = [law for law in LAWS if law != ControlLaw.pd]
POSITION, VELOCITY, EFFORT, RATE = range(4)  # rows of `at_work`


def controller(
    model: RobotModel = ARM,
    law: ControlLaw = ControlLaw.computed_torque,
    q=(0.0, 0.0),
    gains: Gains | None = None,
    settings: dict | None = None,
    **safety,
) -> Controller:
    """One that holds `q`, with these safety settings and no others."""
    limits = {
        name: np.broadcast_to(np.float64(value), model.nv)
        if name in ("effort_limit", "torque_rate_limit", "position_margin", "max_position_error")
        else value
        for name, value in safety.items()
    }
    all_safety = replace(SafetySettings.none(model.nv), **limits)
    chosen = gains or Gains.uniform(model.nv, 100.0, 20.0)
    made = Controller(model, ControllerSettings(chosen, law, safety=all_safety, **(settings or {})))
    made.hold(0.0, np.array(q, dtype=float))
    return made


def torque(c: Controller, t: float, q, v=(0.0, 0.0)) -> np.ndarray:
    tau = np.zeros(c.model.nv)
    c.step(t, np.array(q, dtype=float), np.array(v, dtype=float), tau)
    return tau


def gravity_torque(model: RobotModel, q) -> np.ndarray:
    return gravity(model, Workspace(model), np.array(q, dtype=float), np.zeros(model.nv))


def inertia(model: RobotModel, q) -> np.ndarray:
    return crba(model, Workspace(model), np.array(q, dtype=float), np.zeros((model.nv, model.nv)))


def middle_of(model: RobotModel) -> np.ndarray:
    """The posture half-way between the limits."""
    middle = 0.5 * (model.lower + model.upper)
    return np.where(np.isfinite(middle), middle, 0.0)


# Soft position limits. The joints of the arm go from -3 to 3.


def push(law: ControlLaw, q, v=0.0, desired=None, margin=0.2) -> float:
    """What a soft limit adds to the elbow's torque while a controller holds it at `desired`."""
    held = [0.0, q if desired is None else desired]
    each = (controller(law=law, q=held, position_margin=m) for m in (margin, 0.0))
    limited, free = (torque(c, 0.1, [0.0, q], [0.0, v]) for c in each)
    return (limited - free)[1]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_soft_limit_pushes_back_as_a_spring_and_damper_would(law: ControlLaw, side: float) -> None:
    """The acceleration is stiffness times excess, plus critical damping."""
    q, v, omega = np.array([0.4, side * 2.9]), np.array([0.0, side * 0.3]), 30.0
    c, free = (controller(law=law, q=[0.4, side * 2.7], position_margin=m) for m in (0.2, 0.0))
    for each in (c, free):
        each.finish("guided", Act.IS_GUIDED)  # else the feedback would push too
    difference = torque(c, 0.001, q, v) - torque(free, 0.001, q, v)
    # 0.1 rad too far, where the damper is felt in full; times the inertia of the elbow.
    a = -side * (omega**2 * 0.1 + 2.0 * omega * 0.3)
    np.testing.assert_allclose(difference, [0.0, inertia(ARM, q)[1, 1] * a], rtol=1e-9, atol=1e-9)
    assert c.at_work[POSITION, 1] == pytest.approx(0.001) and c.at_work[POSITION, 0] == 0.0


@pytest.mark.parametrize("law", WITH_MODEL)
def test_soft_limit_does_not_act_within_the_margin_nor_where_the_arm_is_desired(law) -> None:
    if law != ControlLaw.gravity_compensation:  # that has no desired position
        assert push(law, 2.95) == push(law, 2.9, desired=2.95) == 0.0
        assert push(law, 2.97, desired=2.95) < 0.0
    assert push(law, 2.79, 1.0, desired=0.0) == 0.0
    assert push(law, 2.81, 1.0, desired=2.7) < 0.0


def test_soft_limit_is_at_most_a_tenth_of_the_range() -> None:
    """Of the arm's 6 rad: with a margin of 5, it begins to push at 2.4. A wheel has none."""
    assert push(ControlLaw.gravity_compensation, 2.39, margin=5.0) == 0.0
    assert push(ControlLaw.gravity_compensation, 2.41, margin=5.0) < 0.0
    for q in ([100.0, 0.0], [-100.0, 0.0]):
        c = controller(wheel_and_hinge(), q=q, position_margin=0.1)
        torque(c, 0.1, q)
        assert (c.at_work[POSITION] == 0.0).all()


THROWN = {
    "two_link_arm": lambda: RobotModel.from_urdf_string(two_link_arm()),
    "panda": lambda: load_quietly(example_robot("panda"), PANDA_JOINTS),
    "ur5": lambda: load_quietly(example_robot("ur5_robot")),
    "seven_axis_arm": lambda: load_quietly(Path(__file__).parents[2] / "urdf/seven_axis_arm.urdf"),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", THROWN)
def test_joint_thrown_at_its_limit_stops_before_it(name: str, law: ControlLaw) -> None:
    """At its velocity limit, or as fast as half of its effort limit stops it within a quarter of
    the margin, and as the torque can rise meanwhile: more than that is not promised."""
    model = THROWN[name]()
    margin = np.minimum(0.3, 0.1 * (model.upper - model.lower))
    rate, fastest = 50.0 * model.effort_limit, 0.0
    ends = [(j, side) for j in np.nonzero(np.isfinite(model.upper))[0] for side in (1.0, -1.0)]
    for j, side in ends:
        q, limit = middle_of(model), model.upper[j] if side > 0.0 else model.lower[j]
        q[j] = limit - side * margin[j]
        M = inertia(model, q).diagonal()
        capable = 0.5 * (model.effort_limit - np.abs(gravity_torque(model, q))) / M
        most = capable.min() if law == ControlLaw.computed_torque else capable[j]
        bounds = model.velocity_limit[j], math.sqrt(max(most, 0.0) * 0.5 * margin[j])
        speed = min(*bounds, 20.0 * margin[j])
        if speed < 0.1:
            continue
        fastest = max(fastest, speed / model.velocity_limit[j])
        units = np.ones(model.nv) if law == ControlLaw.computed_torque else M
        # Weak feedback, so that it is the soft limit that stops the joint.
        gains = Gains(9.0 * units, 6.0 * units, 0.0 * M, M, -M)
        c = controller(model, law, q, gains, position_margin=margin, torque_rate_limit=rate)
        plant, tau = Plant(model, q), np.zeros(model.nv)
        plant.v[j] = side * speed
        c.step(0.0, plant.q, np.zeros(model.nv), tau)
        for tick in range(1, 400):
            c.step(0.001 * tick, plant.q, plant.v, tau)
            plant.step(tau)
            assert side * (limit - plant.q[j]) > 0.0, (model.joint_names[j], side, speed)
            if side * plant.v[j] < 0.0:
                break
        assert side * plant.v[j] < 0.05 * speed, (model.joint_names[j], side, speed)
    assert fastest > 0.5, fastest


@pytest.mark.parametrize("law", [ControlLaw.computed_torque, ControlLaw.gravity_compensation])
@pytest.mark.parametrize(("name", "rate"), [("panda", 1000), *((name, 50) for name in THROWN)])
def test_joint_pressed_into_its_soft_limit_rests_there_at_any_rate_of_states(
    name: str, law: ControlLaw, rate: int
) -> None:
    """Where axes are in line, a joint feels a tenth of its own inertia and less."""
    model = THROWN[name]()
    limits = {"velocity_limit_scale": 1.0, "torque_rate_limit": 50.0 * model.effort_limit}
    for j in np.nonzero(np.isfinite(model.upper))[0]:
        q = middle_of(model)
        q[j] = model.upper[j] - 0.05
        free = 1.0 / np.diag(np.linalg.inv(inertia(model, q)))
        units = np.ones(model.nv) if law == ControlLaw.computed_torque else free
        gains = Gains(100.0 * units, 20.0 * units, 0.0 * units, units, -units)
        c = controller(model, law, q, gains, position_margin=0.05, **limits)
        plant, tau = Plant(model, q), np.zeros(model.nv)
        plant.v[j], plant.push[j] = 0.3, 20.0 * free[j]  # would give 20 rad/s^2
        parts = max(500 // rate, 1)
        for tick in range(rate):
            c.step(tick / rate, plant.q, plant.v, tau)
            for _ in range(parts):
                plant.step(tau, 1.0 / (rate * parts))
        # Guided by hand the other joints still drift away from the push.
        slow = 0.05 if law == ControlLaw.computed_torque else 0.3
        assert np.abs(plant.v).max() < slow, (model.joint_names[j], plant.v)


# Velocity limit. That of the arm is 10 rad/s.


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize(("speed", "part"), [(0.9, 1.0), (1.05, 0.5), (1.1, 0.0), (1.3, 0.0)])
@pytest.mark.parametrize("law", [law for law in LAWS if law != ControlLaw.gravity_compensation])
def test_beyond_the_velocity_limit_joints_are_not_driven_on(law, speed, part, side) -> None:
    held = ZERO if law == ControlLaw.pd else gravity_torque(ARM, ZERO)
    # Feedback that pulls ahead with 4 rad/s^2 or Nm more than it damps.
    how = {"law": law, "q": [side, 0.0], "gains": Gains.uniform(2, 50.0, 0.0)}
    c, free = controller(**how, velocity_limit_scale=0.2), controller(**how)
    v = np.array([side * speed * 2.0, 0.0])
    driven, unlimited = (side * (torque(each, 0.1, ZERO, v) - held)[0] for each in (c, free))
    assert unlimited > 0.0
    assert driven == pytest.approx(unlimited) if part == 1.0 else driven < unlimited
    assert driven <= part * unlimited + 1e-9
    assert c.at_work[VELOCITY, 0] == pytest.approx(0.1 * (part < 1.0))


def test_braking_beyond_the_velocity_limit_is_not_weakened() -> None:
    """Only what drives the joint on fades out."""
    v = np.array([2.5, 0.0])  # 1.25 times the limit
    M = inertia(ARM, ZERO)
    expected = gravity_torque(ARM, ZERO) + M @ [-20.0 * 2.5, 0.0]
    expected[0] -= M[0, 0] * BRAKING_RATE * 0.5
    c = controller(velocity_limit_scale=0.2)
    np.testing.assert_allclose(torque(c, 0.0001, ZERO, v), expected, rtol=1e-9)
    # Hardware that compensates gravity is left with none.
    relieved = {"hardware_compensates_gravity": True}
    weak = Gains.uniform(2, 50.0, 0.0)
    c = controller(q=[1.0, 0.0], gains=weak, settings=relieved, velocity_limit_scale=0.2)
    assert torque(c, 0.1, ZERO, [2.3, 0.0])[0] <= 0.0


# Saturation and rate limit.


def test_torque_changes_no_faster_than_the_rate() -> None:
    """And of a gap counts no more than it is told."""
    gains, rate = Gains.uniform(2, 1000.0, 20.0), np.array([100.0, 1000.0])
    for told, steps in (
        (None, ((0.002, 0.001), (0.002, 0.0), (0.006, 0.004), (5.0, LONGEST_RATE_STEP))),
        (0.002, ((0.005, 0.002), (0.008, 0.003), (0.012, 0.004))),
    ):
        c = controller(gains=gains, torque_rate_limit=rate)
        last = torque(c, 0.001, ZERO)
        if told is not None:
            c.rows.rate_step = told
        for t, dt in steps:
            now = torque(c, t, [-3.0, -3.0])
            np.testing.assert_allclose(now - last, rate * dt, rtol=1e-9, atol=1e-12)
            last = now
    assert c.at_work[RATE, 0] == pytest.approx(0.012 - 0.001)


# Torques that are not finite.


@pytest.mark.parametrize("law", LAWS)
def test_torque_that_is_not_finite_gives_way_to_gravity(law: ControlLaw) -> None:
    """By the rate limit, too."""
    q = np.array([1.0, 0.5])
    c = controller(law=law, q=q, torque_rate_limit=100.0)
    tau = torque(c, 0.001, q)
    c.hold(0.001, q + 2.0, reason="far away")
    by_hand = law == ControlLaw.gravity_compensation
    gains = Gains.uniform(2, 0.0, 1e308) if by_hand else Gains.uniform(2, 1e308, 0.0)
    c.settings = replace(c.settings, gains=gains)
    for tick in range(2, 400):
        last = tau.copy()
        with pytest.raises(TorqueError, match="not finite"):
            c.step(0.001 * tick, q, np.full(2, 100.0), tau)
        assert np.abs(tau - last).max() <= 0.1 * (1.0 + 1e-9)
    target = ZERO if law == ControlLaw.pd else gravity_torque(ARM, q)
    np.testing.assert_allclose(tau, target, rtol=1e-12)


# The desired position is taken from the arm.


def moving(**safety) -> Controller:
    c = controller(**safety)
    c.follow(0.0, [to(2.0, 1.0, 0.5)], 0.0)
    return c


def test_max_position_error_ends_the_motion_where_the_arm_is() -> None:
    c = moving(max_position_error=[0.3, 0.1])
    motion = c.motion
    q_d = c.trajectory.at(1.0)[0]
    torque(c, 1.0, q_d + np.array([0.29, 0.09]))
    assert c.motion is motion and c.gave_way == 0
    q, v = q_d + np.array([0.2, -0.15]), np.array([0.3, 0.2])
    (found,) = c.step(1.001, q, v, np.zeros(2))
    assert c.motion is None and c.gave_way == 1 and found.gave_way and not found.shaken
    assert motion.ending.kind == found.kind == EndKind.PATH_TOLERANCE_VIOLATED
    assert motion.ending.text == found.text == c.gave_way_reason
    assert "elbow was 0.15" in c.gave_way_reason and "max_position_error, 0.1" in c.gave_way_reason
    position, velocity, _ = c.trajectory.at(1.001)
    np.testing.assert_allclose([position, velocity], [q, v], atol=1e-12)
    # It comes to rest within the second that a stop takes, and does not pull at the arm any more.
    at_rest = c.trajectory.at(2.1)
    np.testing.assert_array_equal(at_rest[1], 0.0)
    assert np.abs(at_rest[0] - q).max() < 0.05


def test_saturation_timeout_ends_the_motion_and_names_the_joint() -> None:
    c = moving(saturation_timeout=0.1, effort_limit=[math.nan, 0.5])
    motion, t = c.motion, 0.0
    while c.motion is not None and t < 1.0:
        t += 0.001
        torque(c, t, c.trajectory.at(t)[0] - [0.0, 0.05])
    assert t == pytest.approx(0.101, abs=0.0011)
    assert motion.ending.kind == EndKind.PATH_TOLERANCE_VIOLATED
    assert "the torque of elbow was at its limit for 0.1" in motion.ending.text
    c = moving(saturation_timeout=0.1, effort_limit=[math.nan, 4.0])  # with pauses it does not
    for tick in range(1, 1000):
        pulled = [0.0, 1.0 if tick % 90 else 0.0]
        torque(c, 0.001 * tick, c.trajectory.at(0.001 * tick)[0] - pulled)
    assert c.motion is not None and c.gave_way == 0 and c.at_work[EFFORT, 1] > 0.9


def test_catch_near_a_limit_ends_within_it() -> None:
    """Even where a stop by the effort limits would take the arm beyond."""
    c = controller(q=[0.0, 2.98], position_margin=0.05)
    c.finish("caught", Act.IS_CAUGHT, state=(0.0, np.array([0.0, 2.98]), np.array([1.0, 4.0])))
    path = np.array([c.trajectory.at(t)[0] for t in np.linspace(0.0, 1.2, 200)])
    assert path[:, 1].max() <= 3.0 and path[0, 1] == pytest.approx(2.98)
    assert (np.diff(path[:, 1]) >= -1e-12).all()
    assert path[-1, 0] > 0.01  # the other joint takes the room that it needs
    c = controller()
    c.finish("a velocity without sense", Act.IS_CAUGHT, state=(0.0, ZERO, np.array([1e308, 0.0])))
    assert np.isfinite(torque(c, 0.001, ZERO)).all()
    assert np.abs(c.trajectory.at(2.0)[0]).max() <= 3.0


# The blend at the start.


@pytest.mark.parametrize("law", LAWS)
def test_torque_of_before_the_start_fades_out(law: ControlLaw) -> None:
    q, in_force = np.array([0.3, -0.4]), np.array([20.0, -5.0])
    c, free = (controller(law=law, q=q, blend_time=duration) for duration in (0.5, 0.0))
    c.in_force = in_force
    c.start(1.0, q)
    law_torque = torque(free, 1.0, q).copy()
    for x in (0.0, 0.25, 0.5, 0.75, 1.0, 2.0):
        left = 1.0 - min(x, 1.0) ** 2 * (3.0 - 2.0 * min(x, 1.0))
        expected = law_torque + left * (in_force - law_torque)
        np.testing.assert_allclose(torque(c, 1.0 + 0.5 * x, q), expected, rtol=1e-9)


@pytest.mark.parametrize("v", [ZERO, np.array([2.0, -1.0])])
def test_start_without_a_known_torque_begins_with_the_gravity_torque(v: np.ndarray) -> None:
    """From there on the rate limit lets an arm that moves brake."""
    q = np.array([0.3, -0.4])
    c = controller(blend_time=0.0 if v.any() else 0.5, torque_rate_limit=1000.0)
    torque(c, 0.5, ZERO)
    c.in_force = math.nan
    c.start(1.0, q)
    if v.any():
        c.finish("an arm that falls", Act.IS_CAUGHT, state=(1.0, q, v))
    np.testing.assert_allclose(torque(c, 1.0, q, v), gravity_torque(ARM, q), rtol=1e-12)
    change = np.abs(torque(c, 1.001, q, v) - gravity_torque(ARM, q))
    assert ((change > 0.1) == v.any()).all() and (change <= 1.0 + 1e-9).all()
