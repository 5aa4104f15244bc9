"""The output stage: soft limits, velocity limit, blend at the start, finite check, saturation, rate
limit and giving way, each by itself."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from controllers import ARM, ZERO, to, wheel_and_hinge
from plant import Plant
from robots import (
    PANDA_JOINTS,
    example_robot,
    joint,
    link,
    load_quietly,
    robot,
    two_link_arm,
)

from rnea_control.control import (
    ControlLaw,
    Controller,
    ControllerSettings,
    EndKind,
    Gains,
    SafetySettings,
    layout,
)
from rnea_control.control.output_stage import BRAKING_RATE, LONGEST_RATE_STEP
from rnea_control.dynamics import Workspace, crba, gravity
from rnea_control.exceptions import ControllerError, TorqueError
from rnea_control.model import RobotModel

LAWS = list(ControlLaw)
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
    all_safety = SafetySettings.none(model.nv).changed(**limits)
    chosen = gains or Gains.uniform(model.nv, 100.0, 20.0)
    made = Controller(model, ControllerSettings(chosen, law, safety=all_safety, **(settings or {})))
    made.hold(0.0, np.array(q, dtype=float))
    return made


def torque(c: Controller, t: float, q, v=(0.0, 0.0)) -> np.ndarray:
    return c.step(t, np.array(q, dtype=float), np.array(v, dtype=float), np.zeros(c.model.nv))


def gravity_torque(model: RobotModel, q) -> np.ndarray:
    return gravity(model, Workspace(model), np.array(q, dtype=float), np.zeros(model.nv))


def set_safety(c: Controller, **changes) -> None:
    c.settings = replace(c.settings, safety=c.settings.safety.changed(**changes))


# Soft position limits. The joints of the arm go from -3 to 3.


def push(law: ControlLaw, q, v=(0.0, 0.0), desired=None, margin=0.2) -> np.ndarray:
    """What a soft limit adds to the torques while a controller holds `desired`."""
    limited, free = (
        torque(
            controller(law=law, q=q if desired is None else desired, position_margin=m), 0.1, q, v
        )
        for m in (margin, 0.0)
    )
    return limited - free


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_soft_limit_pushes_back_as_a_spring_and_damper_would(law: ControlLaw, side: float) -> None:
    """The acceleration is stiffness times excess, plus critical damping."""
    q, v, omega = np.array([0.4, side * 2.9]), np.array([0.0, side * 0.3]), 30.0
    c = controller(law=law, q=[0.4, side * 2.7], position_margin=0.2, max_position_error=math.inf)
    c.guide()  # else the feedback would push too; the gain of the damping is that of the free one
    free = controller(law=law, q=[0.4, side * 2.7])
    free.guide()
    difference = torque(c, 0.001, q, v) - torque(free, 0.001, q, v)
    # 0.1 rad too far, where the damper is felt in full; times the inertia of the elbow.
    a = -side * (omega**2 * 0.1 + 2.0 * omega * 0.3)
    inertia = crba(ARM, Workspace(ARM), q, np.zeros((2, 2)))[1, 1]
    np.testing.assert_allclose(difference, [0.0, inertia * a], rtol=1e-9, atol=1e-9)
    assert c.at_work[POSITION, 1] == pytest.approx(0.001) and c.at_work[POSITION, 0] == 0.0


@pytest.mark.parametrize("law", LAWS)
def test_soft_limit_never_pushes_outward(law: ControlLaw) -> None:
    """Not even to damp a fast return."""
    for speed in np.linspace(0.0, 8.0, 9):
        added = push(law, (0.0, 2.9), (0.0, -speed), desired=(0.0, 2.7))
        assert added[1] <= 0.0
        assert push(law, (0.0, -2.9), (0.0, speed), desired=(0.0, -2.7))[1] >= 0.0
    assert added[1] == 0.0


@pytest.mark.parametrize("law", WITH_MODEL)
def test_soft_limit_does_not_act_within_the_margin_nor_where_the_arm_is_desired(law) -> None:
    if law != ControlLaw.gravity_compensation:  # that has no desired position
        assert (push(law, (0.0, 2.95), desired=(0.0, 2.95)) == 0.0).all()
        assert (push(law, (0.0, 2.9), desired=(0.0, 2.95)) == 0.0).all()
        assert push(law, (0.0, 2.97), desired=(0.0, 2.95))[1] < 0.0
    assert (push(law, (0.0, 2.79), (0.0, 1.0), desired=(0.0, 0.0)) == 0.0).all()
    assert push(law, (0.0, 2.81), (0.0, 1.0), desired=(0.0, 2.7))[1] < 0.0


def test_soft_limit_is_at_most_a_tenth_of_the_range() -> None:
    """Of the arm's 6 rad: with a margin of 5, it begins to push at 2.4."""
    assert (push(ControlLaw.gravity_compensation, (0.0, 2.39), margin=5.0) == 0.0).all()
    assert push(ControlLaw.gravity_compensation, (0.0, 2.41), margin=5.0)[1] < 0.0


def test_continuous_joint_has_no_soft_limit() -> None:
    model = wheel_and_hinge()
    for q in (100.0, -100.0):
        c = controller(model, q=[q, 0.0], position_margin=0.1)
        torque(c, 0.1, [q, 0.0])
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
    ws, middle = Workspace(model), 0.5 * (model.lower + model.upper)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    margin = np.minimum(0.3, 0.1 * (model.upper - model.lower))
    fastest = 0.0
    for j in range(model.nv):
        for side, limit in ((1.0, model.upper[j]), (-1.0, model.lower[j])):
            if not math.isfinite(limit):
                continue
            q = middle.copy()
            q[j] = limit - side * margin[j]
            M = np.diag(crba(model, ws, q, np.zeros((model.nv, model.nv))))
            left = model.effort_limit - np.abs(gravity_torque(model, q))
            capable = (
                0.5 * np.min(left / M)
                if law == ControlLaw.computed_torque
                else 0.5 * left[j] / M[j]
            )
            most = math.sqrt(max(capable, 0.0) * 0.5 * margin[j])
            speed = min(model.velocity_limit[j], most, 20.0 * margin[j])
            if speed < 0.1:
                continue
            fastest = max(fastest, speed / model.velocity_limit[j])
            inertia = np.ones(model.nv) if law == ControlLaw.computed_torque else M
            # Weak feedback, so that it is the soft limit that stops the joint.
            gains = Gains(9.0 * inertia, 6.0 * inertia, 0.0 * M, M, -M)
            c = controller(
                model,
                law,
                q,
                gains,
                position_margin=margin,
                torque_rate_limit=50.0 * model.effort_limit,
            )
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


@pytest.mark.parametrize("rate", [1000, 250, 100, 50])
@pytest.mark.parametrize("law", [ControlLaw.computed_torque, ControlLaw.gravity_compensation])
@pytest.mark.parametrize("name", THROWN)
def test_joint_pressed_into_its_soft_limit_rests_there_at_any_rate_of_states(
    name: str, law: ControlLaw, rate: int
) -> None:
    """Where axes are in line, a joint feels a tenth of its own inertia and less."""
    model = THROWN[name]()
    ws, middle = Workspace(model), 0.5 * (model.lower + model.upper)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    for j in np.nonzero(np.isfinite(model.upper))[0]:
        q = middle.copy()
        q[j] = model.upper[j] - 0.05
        mobility = np.diag(np.linalg.inv(crba(model, ws, q, np.zeros((model.nv, model.nv)))))
        gains = np.ones(model.nv) if law == ControlLaw.computed_torque else 1.0 / mobility
        c = controller(
            model,
            law,
            q,
            Gains(100.0 * gains, 20.0 * gains, 0.0 * gains, gains, -gains),
            position_margin=0.05,
            velocity_limit_scale=1.0,
            torque_rate_limit=50.0 * model.effort_limit,
        )
        plant, tau = Plant(model, q), np.zeros(model.nv)
        plant.v[j], plant.push[j] = 0.3, 20.0 / mobility[j]  # would give 20 rad/s^2
        for tick in range(2 * rate):
            c.step(tick / rate, plant.q, plant.v, tau)
            for _ in range(1000 // rate):
                plant.step(tau)
        # Guided by hand the other joints still drift away from the push.
        slow = 0.05 if law == ControlLaw.computed_torque else 0.3
        assert np.abs(plant.v).max() < slow, (model.joint_names[j], plant.v)


@pytest.mark.parametrize("name", THROWN)
def test_inertias_that_a_joint_feels(name: str) -> None:
    model = THROWN[name]()
    q = np.clip(np.linspace(-1.0, 1.0, model.nv), model.lower, model.upper)
    c = controller(model, q=q, velocity_limit_scale=0.01)
    c.step(0.001, q, model.velocity_limit.copy(), np.zeros(model.nv))
    M = crba(model, Workspace(model), q, np.zeros((model.nv, model.nv)))
    rows = c.snapshot().rows
    np.testing.assert_allclose(rows[layout.HELD_INERTIA], np.diag(M), rtol=1e-12)
    free = 1.0 / np.diag(np.linalg.inv(M))
    np.testing.assert_allclose(rows[layout.FREE_INERTIA], free, rtol=1e-8)


# Velocity limit. That of the arm is 10 rad/s.


@pytest.mark.parametrize("law", LAWS)
def test_beyond_the_velocity_limit_joints_brake_and_are_not_driven_on(law: ControlLaw) -> None:
    held = ZERO if law == ControlLaw.pd else gravity_torque(ARM, ZERO)
    for side in (1.0, -1.0):
        for speed, part in ((0.9, 1.0), (1.05, 0.5), (1.1, 0.0), (1.3, 0.0)):
            # Feedback that pulls ahead with 4 rad/s^2 or Nm more than it damps.
            v = np.array([side * speed * 2.0, 0.0])
            gains = Gains.uniform(2, 50.0, 0.0)
            c = controller(law=law, q=[side, 0.0], gains=gains, velocity_limit_scale=0.2)
            free = controller(law=law, q=[side, 0.0], gains=gains)
            driven = side * (torque(c, 0.1, ZERO, v) - held)[0]
            unlimited = side * (torque(free, 0.1, ZERO, v) - held)[0]
            if law != ControlLaw.gravity_compensation:  # that drives nothing
                assert unlimited > 0.0
            if part == 1.0:
                assert driven == pytest.approx(unlimited, rel=1e-12)
                assert c.at_work[VELOCITY, 0] == 0.0
            else:
                assert driven <= part * max(unlimited, 0.0) + 1e-9
                assert driven < unlimited
                assert c.at_work[VELOCITY, 0] == pytest.approx(0.1)


def test_braking_beyond_the_velocity_limit_is_not_weakened() -> None:
    """Only what drives the joint on fades out."""
    v = np.array([2.5, 0.0])  # 1.25 times the limit
    c = controller(q=ZERO, velocity_limit_scale=0.2)
    M = crba(ARM, Workspace(ARM), ZERO, np.zeros((2, 2)))
    expected = gravity_torque(ARM, ZERO) + M @ [-20.0 * 2.5, 0.0]
    expected[0] -= M[0, 0] * BRAKING_RATE * 0.5
    np.testing.assert_allclose(torque(c, 0.0001, ZERO, v), expected, rtol=1e-9)


def test_hardware_that_compensates_gravity_is_left_with_none_beyond_the_velocity_limit() -> None:
    c = controller(
        q=[1.0, 0.0],
        gains=Gains.uniform(2, 50.0, 0.0),
        settings={"hardware_compensates_gravity": True},
        velocity_limit_scale=0.2,
    )
    assert torque(c, 0.1, ZERO, [2.3, 0.0])[0] <= 0.0


# Saturation and rate limit.


def test_saturation_is_the_urdfs_limit_or_a_joints_own_times_the_factor() -> None:
    gains = Gains.uniform(2, 1000.0, 20.0)
    c = controller(gains=gains, effort_limit=[math.nan, 7.0], settings={"effort_limit_scale": 0.5})
    np.testing.assert_array_equal(c.effort_limit, [50.0, 3.5])
    np.testing.assert_array_equal(torque(c, 0.1, [-3.0, -3.0]), [50.0, 3.5])
    np.testing.assert_array_equal(torque(c, 0.3, [3.0, 3.0]), [-50.0, -3.5])
    assert c.saturated
    np.testing.assert_allclose(c.at_work[EFFORT], [0.3, 0.3])
    np.testing.assert_allclose(c.at_work[[POSITION, VELOCITY, RATE]], 0.0)


def test_first_torque_of_all_is_not_rate_limited() -> None:
    c = controller(q=ZERO, torque_rate_limit=1.0)
    np.testing.assert_allclose(torque(c, 0.001, ZERO), gravity_torque(ARM, ZERO))


def test_torque_changes_no_faster_than_the_rate() -> None:
    c = controller(q=ZERO, gains=Gains.uniform(2, 1000.0, 20.0), torque_rate_limit=[100.0, 1000.0])
    last = torque(c, 0.001, ZERO).copy()
    for t, dt in ((0.002, 0.001), (0.002, 0.0), (0.006, 0.004), (5.0, LONGEST_RATE_STEP)):
        now = torque(c, t, [-3.0, -3.0]).copy()
        np.testing.assert_allclose(now - last, [100.0 * dt, 1000.0 * dt], rtol=1e-9, atol=1e-12)
        last = now
    assert c.at_work[RATE, 0] == pytest.approx(5.0 - 0.001)


def test_rate_limit_counts_no_more_than_the_time_it_is_told() -> None:
    c = controller(q=ZERO, gains=Gains.uniform(2, 1000.0, 20.0), torque_rate_limit=100.0)
    last = torque(c, 0.001, ZERO).copy()
    c.limit_rate_step(0.002)
    for t, dt in ((0.005, 0.002), (0.008, 0.003), (0.012, 0.004)):
        now = torque(c, t, [-3.0, -3.0]).copy()
        np.testing.assert_allclose(now - last, 100.0 * dt, rtol=1e-9)
        last = now


def live_changes() -> dict:
    def payload(c: Controller) -> None:
        c.model.set_payload("lower", 3.0, (0.3, 0.0, 0.0))

    def gravitation(c: Controller) -> None:
        c.model.gravity = (0.0, 0.0, -20.0)

    def friction(c: Controller) -> None:
        c.model.friction, c.model.torque_offset = [10.0, 10.0], [5.0, -5.0]
        c.settings = replace(c.settings, friction_compensation=True)

    def settings(**changes):
        return lambda c: setattr(c, "settings", replace(c.settings, **changes))

    return {
        "gains": settings(gains=Gains.uniform(2, 900.0, 60.0)),
        "payload": payload,
        "gravity": gravitation,
        "friction": friction,
        "effort_limit_scale": settings(effort_limit_scale=0.02),
        "hardware_compensates_gravity": settings(hardware_compensates_gravity=True),
        "effort_limit": lambda c: set_safety(c, effort_limit=np.array([3.0, 3.0])),
        "margin": lambda c: set_safety(c, position_margin=np.array([0.6, 0.6])),
        **{law.name: settings(control_law=law) for law in ControlLaw},
    }


def changes_of_the_torque() -> list[tuple[ControlLaw, str]]:
    """But for a law changed to itself, and for what a law without a model does not use."""
    return [
        (law, change)
        for law in LAWS
        for change in live_changes()
        if law.name != change and not (law == ControlLaw.pd and change in ("payload", "gravity"))
    ]


@pytest.mark.parametrize(("law", "change"), changes_of_the_torque())
def test_live_change_makes_no_step_beyond_the_rate(law: ControlLaw, change: str) -> None:
    """It does arrive: in the end the torque is that of a controller that always had the change."""
    model, q, v, rate = copy.deepcopy(ARM), np.array([0.2, 2.7]), np.array([0.1, 0.1]), 500.0
    c = controller(model, law, q - 0.05, torque_rate_limit=rate, max_position_error=math.inf)
    last = torque(c, 0.001, q, v).copy()
    live_changes()[change](c)
    first = last
    for tick in range(2, 400):
        now = torque(c, 0.001 * tick, q, v).copy()
        assert np.abs(now - last).max() <= rate * 0.001 * (1.0 + 1e-9)
        last = now
    free = controller(model, law, q - 0.05)
    free.settings = replace(
        c.settings, safety=c.settings.safety.changed(torque_rate_limit=np.full(2, math.inf))
    )
    if c.guided != free.guided:
        free.guide()
    np.testing.assert_allclose(last, torque(free, 0.001, q, v), rtol=1e-9)
    if not (
        law == ControlLaw.pd and change in ("friction", "hardware_compensates_gravity", "margin")
    ):
        assert np.abs(last - first).max() > 1e-3


# Torques that are not finite.


@pytest.mark.parametrize("law", LAWS)
def test_torque_that_is_not_finite_gives_way_to_gravity(law: ControlLaw) -> None:
    """By the rate limit, too."""
    gains = Gains.uniform(2, 1e308, 0.0)
    q, rate = np.array([1.0, 0.5]), 100.0
    c = controller(law=law, q=q, torque_rate_limit=rate)
    first = torque(c, 0.001, q).copy()
    c.hold(0.001, q + 2.0, reason="far away")
    c.settings = replace(c.settings, gains=gains)
    target = np.zeros(2) if law == ControlLaw.pd else gravity_torque(ARM, q)
    if law == ControlLaw.gravity_compensation:
        c.settings = replace(c.settings, gains=Gains.uniform(2, 0.0, 1e308))
    tau = np.zeros(2)
    for tick in range(2, 400):
        last = tau.copy() if tick > 2 else first
        with pytest.raises(TorqueError, match="not finite"):
            c.step(0.001 * tick, q, np.full(2, 100.0), tau)
        assert np.abs(tau - last).max() <= 0.1 * (1.0 + 1e-9)
    np.testing.assert_allclose(tau, target, rtol=1e-12)


@pytest.mark.parametrize("speed", [0.0, 12.0])
def test_without_even_a_gravity_torque_the_last_one_stays(speed: float) -> None:
    """Beyond the velocity limit too, where gravity is what may still drive."""
    limit = '<limit lower="-3" upper="3" effort="100" velocity="10"/>'
    model = RobotModel.from_urdf_string(
        robot(
            link("base"),
            link("cart"),
            link("arm", 2.0, (0.3, 0, 0)),
            joint("slide", "base", "cart", "prismatic", limit=limit),
            joint("hinge", "cart", "arm", axis=(0, 1, 0), limit=limit),
        )
    )
    c = controller(model, q=ZERO, velocity_limit_scale=1.0)
    last = torque(c, 0.001, ZERO).copy()
    model.set_payload("arm", 1e306, (0.3, 0.0, 0.0))
    model.gravity = (0.0, 0.0, -1000.0)
    tau = np.zeros(2)
    with pytest.raises(TorqueError):
        c.step(0.002, ZERO, np.full(2, speed), tau)
    np.testing.assert_array_equal(tau, last)


# The desired position is taken from the arm.


def moving(**safety) -> Controller:
    c = controller(q=ZERO, **safety)
    c.follow(0.0, [to(2.0, 1.0, 0.5)], 0.0)
    return c


def test_max_position_error_ends_the_motion_where_the_arm_is() -> None:
    c = moving(max_position_error=[0.3, 0.1])
    motion = c.motion
    q_d = c.trajectory.at(1.0)[0]
    torque(c, 1.0, q_d + np.array([0.29, 0.09]))
    assert c.motion is motion and c.gave_way == 0
    q, v = q_d + np.array([0.2, -0.15]), np.array([0.3, 0.2])
    torque(c, 1.001, q, v)
    assert c.motion is None and c.gave_way == 1
    assert motion.ending.kind == EndKind.PATH_TOLERANCE_VIOLATED
    assert motion.ending.text == c.gave_way_reason
    assert "elbow was 0.15" in c.gave_way_reason and "max_position_error, 0.1" in c.gave_way_reason
    position, velocity, _ = c.trajectory.at(1.001)
    np.testing.assert_allclose([position, velocity], [q, v], atol=1e-12)
    # It comes to rest within the second that a stop takes, and does not pull at the arm any more.
    at_rest = c.trajectory.at(2.1)
    np.testing.assert_array_equal(at_rest[1], 0.0)
    assert np.abs(at_rest[0] - q).max() < 0.05


def test_max_position_error_comes_before_a_goal_that_has_no_tolerances() -> None:
    c = moving(max_position_error=0.1)
    motion = c.motion
    torque(c, 1.999, c.trajectory.at(1.999)[0])
    torque(c, 2.0, [0.5, 0.5])
    assert motion.ending.kind == EndKind.PATH_TOLERANCE_VIOLATED and c.gave_way == 1


def test_position_held_gives_way_too() -> None:
    c = controller(q=ZERO, max_position_error=0.1)
    torque(c, 0.001, [0.0, 0.2])
    assert c.gave_way == 1
    torque(c, 0.002, [0.0, 0.2])
    assert c.position_error == pytest.approx([0.0, 0.0], abs=1e-12)


def test_saturation_timeout_ends_the_motion_and_names_the_joint() -> None:
    c = moving(saturation_timeout=0.1, effort_limit=[math.nan, 0.5])
    motion, t = c.motion, 0.0
    while c.motion is not None and t < 1.0:
        t += 0.001
        torque(c, t, c.trajectory.at(t)[0] - [0.0, 0.05])
    assert t == pytest.approx(0.101, abs=0.0011)
    assert motion.ending.kind == EndKind.PATH_TOLERANCE_VIOLATED
    assert "the torque of elbow was at its limit for 0.1" in motion.ending.text


def test_saturation_with_pauses_does_not_end_the_motion() -> None:
    c = moving(saturation_timeout=0.1, effort_limit=[math.nan, 4.0])
    for tick in range(1, 1000):
        t = 0.001 * tick
        pulls = tick % 90 != 0
        torque(c, t, c.trajectory.at(t)[0] - [0.0, 1.0 if pulls else 0.0])
    assert c.motion is not None and c.gave_way == 0 and c.at_work[EFFORT, 1] > 0.9


def test_catch_near_a_limit_ends_within_it() -> None:
    """Even where a stop by the effort limits would take the arm beyond."""
    c = controller(q=[0.0, 2.98], position_margin=0.05)
    c.catch(0.0, np.array([0.0, 2.98]), np.array([1.0, 4.0]), "caught")
    path = np.array([c.trajectory.at(t)[0] for t in np.linspace(0.0, 1.2, 200)])
    assert path[:, 1].max() <= 3.0 and path[0, 1] == pytest.approx(2.98)
    assert (np.diff(path[:, 1]) >= -1e-12).all()
    assert path[-1, 0] > 0.01  # the other joint takes the room that it needs


def test_catch_of_a_velocity_without_sense_stays_finite() -> None:
    c = controller(q=ZERO)
    c.catch(0.0, ZERO, np.array([1e308, 0.0]), "caught")
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


def test_start_without_a_known_torque_begins_with_the_law_itself() -> None:
    """Which is the gravity torque, as the arm is at rest where it is desired."""
    q = np.array([0.3, -0.4])
    c = controller(q=ZERO, blend_time=0.5, torque_rate_limit=1.0)
    torque(c, 0.5, ZERO)
    c.in_force = math.nan
    c.start(1.0, q)
    np.testing.assert_allclose(torque(c, 1.0, q), gravity_torque(ARM, q), rtol=1e-12)


def test_first_torque_for_an_arm_that_moves_is_the_gravity_torque_too() -> None:
    """From there on the rate limit lets it brake."""
    q, v = np.array([0.3, -0.4]), np.array([2.0, -1.0])
    c = controller(q=ZERO, torque_rate_limit=1000.0)
    c.in_force = math.nan
    c.start(1.0, q)
    c.catch(1.0, q, v, "an arm that falls")
    np.testing.assert_allclose(torque(c, 1.0, q, v), gravity_torque(ARM, q), rtol=1e-12)
    change = np.abs(torque(c, 1.001, q, v) - gravity_torque(ARM, q))
    assert (change > 0.1).all() and (change <= 1.0 + 1e-9).all()


def test_start_keeps_the_rate_from_the_torque_in_force() -> None:
    c = controller(q=ZERO, blend_time=0.01, torque_rate_limit=100.0)
    c.in_force = np.array([50.0, -50.0])
    c.start(1.0, ZERO)
    last = np.array([50.0, -50.0])
    for tick in range(500):
        now = torque(c, 1.0 + 0.001 * tick, ZERO).copy()
        assert np.abs(now - last).max() <= 0.1 * (1.0 + 1e-9)
        last = now


def test_wrong_safety_settings_are_refused() -> None:
    for changes, text in (
        ({"torque_rate_limit": np.array([1.0, 0.0])}, "torque_rate_limit of 'elbow' is 0.0"),
        ({"position_margin": np.array([-0.1, 0.0])}, "position_margin of 'shoulder' is -0.1"),
        ({"max_position_error": np.ones(3)}, r"max_position_error has shape \(3,\)"),
        ({"effort_limit": np.array([1.0, -1.0])}, "effort_limit of 'elbow' is -1.0"),
        ({"limit_stiffness": 0.0}, "limit_stiffness is 0.0"),
        ({"saturation_timeout": math.nan}, "saturation_timeout is nan"),
        ({"blend_time": -1.0}, "blend_time is -1.0"),
        ({"guiding_damping": math.inf}, "guiding_damping is inf"),
    ):
        with pytest.raises(ControllerError, match=text):
            set_safety(controller(), **changes)
