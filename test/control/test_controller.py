"""The controller: laws, integral, limits, holding and following, and bad states."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from controllers import JOINT_SPACE, rules, wheel_and_hinge
from robots import two_link_arm

from rnea_control.control import (
    Act,
    ControlLaw,
    Controller,
    ControllerSettings,
    Gains,
    SafetySettings,
    Waypoint,
)
from rnea_control.control.laws import Friction, Model
from rnea_control.dynamics import Workspace, gravity
from rnea_control.exceptions import ArgumentError, ControllerError, TrajectoryError
from rnea_control.model import Joint, RobotModel

MODEL = RobotModel.from_urdf_string(two_link_arm())
Q, V = np.array([0.3, -0.5]), np.array([0.7, 0.2])
ZERO = np.zeros(2)


def controller(
    law=ControlLaw.computed_torque, p=100.0, d=20.0, i=0.0, model=MODEL, q=ZERO, i_clamp=10.0
) -> Controller:
    """One that holds `q`."""
    gains = Gains.uniform(model.nv, p, d, i, i_clamp)
    c = Controller(model, ControllerSettings(gains, law))
    c.hold(0.0, np.array(q))
    return c


def torque_of(c: Controller, t: float, q, v) -> np.ndarray:
    tau = np.zeros(c.model.nv)
    c.step(t, np.array(q, dtype=float), np.array(v, dtype=float), tau)
    return tau


def test_joint_of_several_freedoms_cannot_be_controlled() -> None:
    joints = [Joint("ball", "spherical", "base", "arm")]
    model = RobotModel.from_joints("toy", joints, {"arm": np.eye(4)})
    with pytest.raises(ControllerError, match=r"ball \(spherical\) cannot be controlled"):
        Controller(model, ControllerSettings(Gains.uniform(3, 1.0, 1.0)))


def test_at_rest_in_the_held_position_the_torque_is_gravity() -> None:
    c = controller(q=Q)
    g = gravity(MODEL, Workspace(MODEL), Q, np.zeros(2))
    np.testing.assert_array_equal(torque_of(c, 0.0, Q, ZERO), g)
    np.testing.assert_array_equal(torque_of(c, 5.0, Q, ZERO), g)
    np.testing.assert_array_equal(c.holding_torque(Q, np.zeros(2)), g)


def test_pd_gravity_adds_the_feedback_to_the_gravity_of_the_measured_position() -> None:
    c = controller(ControlLaw.pd_gravity, p=30.0, d=4.0, i=2.0)
    effort = np.array([0.5, -1.5])
    c.follow(0.0, [Waypoint(1.0, np.array([0.8, -0.9]), ZERO, ZERO, effort)], 0.0)
    integral = np.zeros(2)
    for t in (0.02, 0.04, 0.06):
        tau = torque_of(c, t, Q, V)
        q_d, v_d, _, external = c.snapshot().desired
        integral += 2.0 * 0.02 * (q_d - Q)
        g = gravity(MODEL, Workspace(MODEL), Q, np.zeros(2))
        expected = g + 30.0 * (q_d - Q) + 4.0 * (v_d - V) + integral + external
        np.testing.assert_allclose(tau, expected, rtol=1e-12)


def test_each_row_of_the_laws_is_one_that_the_step_can_do() -> None:
    """An acceleration needs a model that takes one; names and numbers are those of the YAML."""
    for number, law in enumerate(JOINT_SPACE):
        assert law == number and ControlLaw[law.name] is law
        assert law.model in (Model.measured, Model.desired) or not law.feeds_back_acceleration
        assert law.follows_trajectories or law.friction is not Friction.desired


def test_integral_adds_up_and_stops_at_its_clamp() -> None:
    c = controller(ControlLaw.pd, p=0.0, d=0.0, i=2.0, i_clamp=0.05)
    error = np.array([-0.1, 0.2])
    for k in range(1, 400):
        tau = torque_of(c, 0.01 * k, error, ZERO)
        np.testing.assert_allclose(tau, np.clip(-2.0 * error * 0.01 * k, -0.05, 0.05), rtol=1e-9)
    c.finish("a test", Act.IS_CAUGHT, state=(3.99, error, ZERO))  # keeps the integral
    np.testing.assert_array_equal(torque_of(c, 3.99, error, ZERO), tau)
    c.hold(5.0, error)
    np.testing.assert_array_equal(torque_of(c, 5.0, error, ZERO), 0.0)
    # A long gap or a step back does not wind it.
    c = controller(ControlLaw.pd, p=0.0, d=0.0, i=1.0, i_clamp=1000.0)
    for t in (1000.0, 500.0):
        np.testing.assert_allclose(torque_of(c, t, [-1.0, -1.0], ZERO), 0.1)


def test_zero_effort_limit_means_no_torque() -> None:
    urdf = two_link_arm().replace('effort="100"', 'effort="0"')
    c = controller(model=RobotModel.from_urdf_string(urdf), q=Q)
    np.testing.assert_array_equal(torque_of(c, 0.0, ZERO, V), 0.0)


def test_continuous_joint_is_corrected_the_short_way_round() -> None:
    c = controller(ControlLaw.pd, p=1.0, d=0.0, model=wheel_and_hinge(), q=[3.0, 0.0])
    for q, expected in ((-3.0, 6.0 - 2.0 * math.pi), (3.0 + 20.0 * math.pi, 0.0)):
        assert torque_of(c, 0.0, [q, 0.0], ZERO)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["q", "v", "t"])
def test_state_that_is_not_finite_is_refused_and_forgotten(bad: float, where: str) -> None:
    c = controller(i=5.0, q=Q)
    before = torque_of(c, 0.001, Q, V)
    state = {"t": 0.002, "q": Q.copy(), "v": V.copy()}
    if where == "t":
        state["t"] = bad
    else:
        state[where][1] = bad
    tau = np.array([7.0, 8.0])
    of_joint = "" if where == "t" else r" \(joint elbow\)"
    words = f"the measured state at t = .* s is not finite{of_joint};"
    with pytest.raises(ControllerError, match=words):
        c.step(*state.values(), tau)
    np.testing.assert_array_equal(tau, [7.0, 8.0])
    np.testing.assert_allclose(torque_of(c, 0.002, Q, V), before, rtol=0.01)


def test_wrong_sizes_and_no_motion_are_refused() -> None:
    new = Controller(MODEL, ControllerSettings(Gains.uniform(2, 1.0, 1.0)))
    with pytest.raises(ControllerError, match=r"no trajectory yet; call hold\(t, q\)"):
        torque_of(new, 0.0, Q, V)
    c = controller(q=Q)
    with pytest.raises(ArgumentError, match=r"q, v and tau must each be .* of shape \(2,\)"):
        c.step(0.0, np.zeros(3), np.zeros(2), np.zeros(2))
    for wrong in ([0.0, 0.0], np.zeros(2, dtype=np.float32), np.zeros(4)[::2]):
        with pytest.raises(ArgumentError, match=r"C-contiguous float64 array of shape \(2,\)"):
            c.step(0.0, wrong, np.zeros(2), np.zeros(2))
    with pytest.raises(ArgumentError, match="it must be 2 finite numbers"):
        c.hold(0.0, np.zeros(1))


GAINS, NEGATIVE = Gains.uniform(2, 1, 1), np.array([1.0, -1.0])
WRONG_SETTINGS = [
    ({"gains": Gains.uniform(3, 1, 1)}, r"gains\.<joint>\.p has .* 2 joints"),
    ({"gains": Gains.uniform(2, -1, 1)}, r"'gains\.shoulder\.p' is -1"),
    ({"gains": Gains.uniform(2, 1, math.nan)}, r"'gains\.shoulder\.d' is nan"),
    ({"gains": Gains.uniform(2, 1, 1, 1, -1)}, r"gains\.shoulder\.i_clamp_max"),
    ({"effort_limit_scale": 0.0}, "scale' is 0.0"),
    ({"effort_limit_scale": 2.0}, "scale' is 2.0"),
    ({"control_law": 99}, "control_law is 99"),
    *(({"dead_time": bad}, r"dead_time' is .* at most 0\.02") for bad in (-1e-9, 0.0201, math.nan)),
    ({"feedback_inertia": NEGATIVE}, r"feedback_inertia\.elbow' is -1"),
    ({"feedback_inertia": np.zeros(3)}, "feedback_inertia.<joint> has shape"),
    ({"torque_rate_limit": np.array([1.0, 0.0])}, r"torque_rate_limits\.elbow' is 0\.0"),
    ({"position_margin": NEGATIVE}, r"soft_limits\.elbow\.margin' is -1\.0"),
    ({"max_position_error": np.ones(3)}, r"max_position_errors.* has shape \(3,\)"),
    ({"effort_limit": NEGATIVE}, r"effort_limits\.elbow' is -1\.0"),
    ({"limit_stiffness": 0.0}, "soft_limits.stiffness' is 0.0"),
    ({"saturation_timeout": math.nan}, "saturation_timeout' is nan"),
    ({"blend_time": -1.0}, "blend_time' is -1.0"),
    ({"guiding_damping": math.inf}, "gravity_compensation.damping' is inf"),
    ({"more": {"gains.<joint>.error_deadband": NEGATIVE}}, r"elbow\.error_deadband' is -1"),
    ({"more": {"gains.<joint>.deadband": GAINS.p}}, "`more` has 'gains.<joint>.deadband'; it may"),
    ({"more": {"dead_time": 0.01}}, "has 'dead_time'; it may have gains.<joint>.error_deadband"),
    ({"trajectories": rules(3)}, r"has shape \(3,\)"),
    (
        {"trajectories": rules(max_deceleration=NEGATIVE)},
        "elbow.max_deceleration_on_cancel' is -1.0",
    ),
    (
        {"trajectories": rules(tolerances={"goal_velocity": math.nan})},
        "stopped_velocity_tolerance' is nan",
    ),
    ({"trajectories": rules(tolerances={"goal_time": -1.0})}, "goal_time' is -1"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG_SETTINGS)
def test_wrong_settings_are_refused(changes: dict, words: str) -> None:
    settings, safety = ControllerSettings(GAINS), SafetySettings.none(2)
    if all(hasattr(safety, name) for name in changes):
        changes = {"safety": replace(safety, **changes)}
    settings = replace(settings, **changes)
    with pytest.raises(ControllerError, match=words):
        Controller(MODEL, settings)
    c = controller()
    with pytest.raises(ControllerError, match=words):
        c.settings = settings


def test_holding_torque_is_never_published_when_not_finite() -> None:
    with pytest.raises(ControllerError, match=r"gravity torque at q = .* is not finite"):
        controller().holding_torque(np.array([math.nan, 0.0]), np.zeros(2))


def test_gravity_compensation_takes_no_trajectory() -> None:
    c = controller(ControlLaw.gravity_compensation)
    with pytest.raises(TrajectoryError, match="follows the hand"):
        c.follow(0.0, [Waypoint(1.0, ZERO)], 0.0)


def test_integral_stands_within_the_error_deadband() -> None:
    c = controller(ControlLaw.pd, p=0.0, d=0.0, i=2.0)
    deadband = {"gains.<joint>.error_deadband": np.array([0.1, 0.3])}
    c.settings = replace(c.settings, more=deadband)
    torques = np.array([torque_of(c, 0.01 * k, np.full(2, -0.2), ZERO) for k in range(20)])
    assert (np.diff(torques[:, 0]) > 0.0).all()
    assert (torques[:, 1] == 0.0).all()


def test_integral_fades_when_its_gain_is_set_to_zero() -> None:
    c = controller(ControlLaw.pd, p=0.0, d=0.0, i=2.0)
    off = np.array([-1.0, 0.0])
    held = max(torque_of(c, 0.01 * k, off, ZERO)[0] for k in range(100))
    c.settings = ControllerSettings(Gains.uniform(2, 0.0, 0.0), ControlLaw.pd)
    torques = [torque_of(c, 1.0 + 0.01 * k, off, ZERO)[0] for k in range(1000)]
    assert torques[0] == pytest.approx(held, rel=0.05)
    assert (np.diff(torques) < 0.0).all()
    assert torques[-1] < 1e-3 * held
