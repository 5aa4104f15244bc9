"""The controller: laws, integral, limits, holding and following, and bad states."""

from __future__ import annotations

import math

import numpy as np
import pytest
from controllers import rules
from robots import joint, link, robot, two_link_arm

from rnea_control.control import (
    ControlLaw,
    Controller,
    ControllerSettings,
    EndKind,
    ExcessiveEffort,
    Gains,
    Waypoint,
)
from rnea_control.dynamics import Workspace, friction, gravity, rnea
from rnea_control.exceptions import ArgumentError, ControllerError, TrajectoryError
from rnea_control.model import Joint, RobotModel

MODEL = RobotModel.from_urdf_string(two_link_arm())
Q, V = np.array([0.3, -0.5]), np.array([0.7, 0.2])
ZERO = np.zeros(2)


def controller(law=ControlLaw.computed_torque, p=100.0, d=20.0, i=0.0, model=MODEL, **settings):
    gains = Gains.uniform(model.nv, p, d, i, settings.pop("i_clamp", 10.0))
    return Controller(model, ControllerSettings(gains, law, **settings))


def torque_of(c: Controller, t: float, q, v) -> np.ndarray:
    return c.step(t, np.array(q, dtype=float), np.array(v, dtype=float), np.zeros(c.model.nv))


def model_torque(q, v, a) -> np.ndarray:
    return rnea(MODEL, Workspace(MODEL), q.copy(), v.copy(), a.copy(), np.zeros(2))


def following(law: ControlLaw) -> tuple[Controller, np.ndarray]:
    """A controller in the middle of a motion, and the desired state there."""
    c = controller(law)
    c.hold(0.0, ZERO)
    if law != ControlLaw.gravity_compensation:
        c.follow(0.0, [Waypoint(2.0, np.array([0.8, -0.6]), ZERO, ZERO)], 0.0)
    return c, c.trajectory.at(0.9)


def test_computed_torque_is_rnea_of_the_corrected_acceleration() -> None:
    c, (q_d, v_d, a_d) = following(ControlLaw.computed_torque)
    expected = model_torque(Q, V, a_d + 100.0 * (q_d - Q) + 20.0 * (v_d - V))
    np.testing.assert_allclose(torque_of(c, 0.9, Q, V), expected, rtol=1e-12)


@pytest.mark.parametrize("law", [ControlLaw.computed_torque, ControlLaw.feedforward_pd])
def test_rotors_of_the_drives_take_torque(law: ControlLaw) -> None:
    model = RobotModel.from_urdf_string(two_link_arm())
    rotors, torques = np.array([0.3, 0.1]), []
    for armature in (np.zeros(2), rotors):
        model.armature = armature
        c = controller(law, model=model)
        c.hold(0.0, ZERO)
        c.follow(0.0, [Waypoint(2.0, np.array([0.8, -0.6]), ZERO, ZERO)], 0.0)
        q_d, v_d, a_d = c.trajectory.at(0.5)
        torques.append(torque_of(c, 0.5, q_d, v_d))
    np.testing.assert_allclose(torques[1] - torques[0], rotors * a_d, rtol=1e-10)


def test_feedforward_pd_is_rnea_of_the_plan_plus_pd() -> None:
    c, (q_d, v_d, a_d) = following(ControlLaw.feedforward_pd)
    expected = np.clip(
        model_torque(q_d, v_d, a_d) + 100.0 * (q_d - Q) + 20.0 * (v_d - V), -100.0, 100.0
    )
    np.testing.assert_allclose(torque_of(c, 0.9, Q, V), expected, rtol=1e-12)


def test_gravity_compensation_is_gravity_and_damping() -> None:
    c, _ = following(ControlLaw.gravity_compensation)
    expected = gravity(MODEL, Workspace(MODEL), Q, np.zeros(2)) - 20.0 * V
    np.testing.assert_allclose(torque_of(c, 0.9, Q, V), expected, rtol=1e-12)


def test_pd_knows_no_model() -> None:
    c, (q_d, v_d, _) = following(ControlLaw.pd)
    expected = 100.0 * (q_d - Q) + 20.0 * (v_d - V)
    np.testing.assert_allclose(torque_of(c, 0.9, Q, V), expected, rtol=1e-12)


@pytest.mark.parametrize("law", ControlLaw)
def test_gravity_is_left_to_hardware_that_compensates_it(law: ControlLaw) -> None:
    plain, relieved = controller(law), controller(law, hardware_compensates_gravity=True)
    for c in (plain, relieved):
        c.hold(0.0, Q)
    difference = torque_of(plain, 0.1, Q, V) - torque_of(relieved, 0.1, Q, V)
    expected = ZERO if law == ControlLaw.pd else gravity(MODEL, Workspace(MODEL), Q, np.zeros(2))
    np.testing.assert_allclose(difference, expected, atol=1e-12)


@pytest.mark.parametrize("law", ControlLaw)
def test_friction_is_compensated_on_request(law: ControlLaw) -> None:
    model = RobotModel.from_urdf_string(two_link_arm())
    model.damping, model.friction, model.torque_offset = [0.5, 0.2], [1.0, 0.7], [0.1, -0.3]
    plain, helped = (
        controller(law, model=model, friction_compensation=helps) for helps in (False, True)
    )
    for c in (plain, helped):
        c.hold(0.0, Q)
        if law != ControlLaw.gravity_compensation:
            c.follow(0.0, [Waypoint(2.0, Q + 0.2, ZERO, ZERO)], 0.0)
    difference = torque_of(helped, 0.9, Q, V) - torque_of(plain, 0.9, Q, V)
    rate = V if law == ControlLaw.gravity_compensation else helped.desired[1]
    expected = friction(model, Workspace(model), rate.copy(), np.zeros(2))
    if law == ControlLaw.pd:
        expected[:] = 0.0
    np.testing.assert_allclose(difference, expected, atol=1e-12)


def test_joint_of_several_freedoms_cannot_be_controlled() -> None:
    joints = [Joint("ball", "spherical", "base", "arm")]
    model = RobotModel.from_joints("toy", joints, {"arm": np.eye(4)})
    with pytest.raises(ControllerError, match=r"ball \(spherical\) cannot be controlled"):
        Controller(model, ControllerSettings(Gains.uniform(3, 1.0, 1.0)))


def test_at_rest_in_the_held_position_the_torque_is_gravity() -> None:
    c = controller()
    c.hold(0.0, Q)
    g = gravity(MODEL, Workspace(MODEL), Q, np.zeros(2))
    np.testing.assert_array_equal(torque_of(c, 0.0, Q, ZERO), g)
    np.testing.assert_array_equal(torque_of(c, 5.0, Q, ZERO), g)
    np.testing.assert_array_equal(c.holding_torque(Q, np.zeros(2)), g)


def test_integral_adds_up_and_stops_at_its_clamp() -> None:
    c = controller(ControlLaw.pd, p=0.0, d=0.0, i=2.0, i_clamp=0.05)
    c.hold(0.0, ZERO)
    error = np.array([-0.1, 0.2])
    for k in range(1, 11):
        tau = torque_of(c, 0.01 * k, error, ZERO)
        np.testing.assert_allclose(tau, np.clip(-2.0 * error * 0.01 * k, -0.05, 0.05), rtol=1e-9)
    for k in range(11, 400):
        tau = torque_of(c, 0.01 * k, error, ZERO)
    np.testing.assert_allclose(tau, [0.05, -0.05])
    c.hold(5.0, error)
    np.testing.assert_array_equal(torque_of(c, 5.0, error, ZERO), 0.0)


def test_a_long_gap_or_a_step_back_does_not_wind_the_integral() -> None:
    c = controller(ControlLaw.pd, p=0.0, d=0.0, i=1.0, i_clamp=1000.0)
    c.hold(0.0, ZERO)
    off = np.array([-1.0, -1.0])
    np.testing.assert_allclose(torque_of(c, 1000.0, off, ZERO), 0.1)
    np.testing.assert_allclose(torque_of(c, 500.0, off, ZERO), 0.1)


def test_torque_stays_within_the_scaled_effort_limits() -> None:
    c = controller(ControlLaw.pd, p=1e6, effort_limit_scale=0.3)
    c.hold(0.0, ZERO)
    np.testing.assert_allclose(torque_of(c, 0.1, [-1.0, 1.0], ZERO), [30.0, -30.0])
    assert c.saturated
    torque_of(c, 0.2, [0.0, 0.0], ZERO)
    assert not c.saturated


def test_zero_effort_limit_means_no_torque() -> None:
    urdf = two_link_arm().replace('effort="100"', 'effort="0"')
    with pytest.warns(UserWarning, match="<limit effort> is 0"):
        c = controller(model=RobotModel.from_urdf_string(urdf))
    c.hold(0.0, Q)
    np.testing.assert_array_equal(torque_of(c, 0.0, ZERO, V), 0.0)


def test_continuous_joint_is_corrected_the_short_way_round() -> None:
    limit = '<limit effort="100" velocity="10"/>'
    turning = joint("j", "base", "wheel", "continuous", limit=limit)
    urdf = robot(link("base"), link("wheel"), turning)
    c = controller(ControlLaw.pd, p=1.0, d=0.0, model=RobotModel.from_urdf_string(urdf))
    c.hold(0.0, np.array([3.0]))
    assert torque_of(c, 0.0, [-3.0], [0.0])[0] == pytest.approx(6.0 - 2.0 * math.pi)
    assert torque_of(c, 0.0, [3.0 + 20.0 * math.pi], [0.0])[0] == pytest.approx(0.0, abs=1e-12)


def test_gains_change_while_running() -> None:
    c = controller(ControlLaw.pd, p=1.0, d=0.0)
    c.hold(0.0, ZERO)
    assert torque_of(c, 0.1, [-1.0, 0.0], ZERO)[0] == 1.0
    c.settings = ControllerSettings(Gains.uniform(2, 3.0, 0.0), ControlLaw.pd)
    assert torque_of(c, 0.2, [-1.0, 0.0], ZERO)[0] == 3.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["q", "v", "t"])
def test_state_that_is_not_finite_is_refused_and_forgotten(bad: float, where: str) -> None:
    c = controller(i=5.0)
    c.hold(0.0, Q)
    before = torque_of(c, 0.001, Q, V)
    state = {"q": Q.copy(), "v": V.copy()}
    t = 0.002
    if where == "t":
        t = bad
    else:
        state[where][1] = bad
    tau = np.array([7.0, 8.0])
    of_joint = "" if where == "t" else r" \(joint elbow\)"
    with pytest.raises(
        ControllerError, match=f"the measured state at t = .* s is not finite{of_joint};"
    ):
        c.step(t, state["q"], state["v"], tau)
    np.testing.assert_array_equal(tau, [7.0, 8.0])
    assert np.isfinite(torque_of(c, 0.002, Q, V)).all()
    np.testing.assert_allclose(torque_of(c, 0.002, Q, V), before, rtol=0.01)


def test_wrong_sizes_and_no_motion_are_refused() -> None:
    c = controller()
    with pytest.raises(ControllerError, match=r"no trajectory yet; call hold\(t, q\)"):
        torque_of(c, 0.0, Q, V)
    c.hold(0.0, Q)
    with pytest.raises(ArgumentError, match="q, v and tau must each have 2 numbers"):
        c.step(0.0, np.zeros(3), np.zeros(2), np.zeros(2))
    for wrong in ([0.0, 0.0], np.zeros(2, dtype=np.float32), np.zeros(4)[::2]):
        with pytest.raises(ArgumentError, match=r"C-contiguous float64 array of shape \(2,\)"):
            c.step(0.0, wrong, np.zeros(2), np.zeros(2))
    with pytest.raises(ArgumentError, match="it must be 2 finite numbers"):
        c.hold(0.0, np.zeros(1))


def test_torque_that_overflows_is_refused() -> None:
    c = controller(p=1e308)
    c.hold(0.0, ZERO)
    tau = np.ones(2)
    with pytest.raises(ControllerError, match=r"torque .* is not finite"):
        c.step(0.1, np.full(2, -1e10), np.zeros(2), tau)
    gravity(c.model, c.workspace, np.full(2, -1e10), expected := np.zeros(2))
    np.testing.assert_allclose(tau, np.clip(expected, -c.effort_limit, c.effort_limit))


WRONG_SETTINGS = {
    "too few gains": (ControllerSettings(Gains.uniform(3, 1.0, 1.0)), r"gains\.p has .* 2 joints"),
    "negative": (ControllerSettings(Gains.uniform(2, -1.0, 1.0)), r"gains\.shoulder\.p is -1"),
    "NaN": (ControllerSettings(Gains.uniform(2, 1.0, math.nan)), r"gains\.shoulder\.d is nan"),
    "clamp": (ControllerSettings(Gains.uniform(2, 1, 1, 1, -1)), r"gains\.shoulder\.i_clamp_max"),
    "scale 0": (ControllerSettings(Gains.uniform(2, 1, 1), effort_limit_scale=0.0), "scale is 0.0"),
    "law": (ControllerSettings(Gains.uniform(2, 1, 1), control_law=99), "control_law is 99"),
    "scale 2": (ControllerSettings(Gains.uniform(2, 1, 1), effort_limit_scale=2.0), "scale is 2.0"),
}


@pytest.mark.parametrize("name", WRONG_SETTINGS)
def test_wrong_settings_are_refused(name: str) -> None:
    settings, words = WRONG_SETTINGS[name]
    with pytest.raises(ControllerError, match=words):
        Controller(MODEL, settings)


REFUSED = {
    "outside the limits": ([Waypoint(1.0, np.array([0.0, 4.0]))], 0.0, "'elbow' at 4 .* -3 to 3"),
    "over already": ([Waypoint(1.0, ZERO)], -2.0, "ended 1.000 s ago"),
    "at once": ([Waypoint(0.0, ZERO)], 0.0, "time is 0 s"),
    "too fast to reach": ([Waypoint(0.01, np.array([0.0, 1.0]))], 0.0, "'elbow' would move at 100"),
    "too fast in the middle": (
        [Waypoint(1.0, ZERO), Waypoint(1.1, np.array([0.0, 2.0])), Waypoint(9.0, ZERO)],
        0.0,
        "between the points at 1 s and 1.1 s, joint 'elbow' would move at 20 ",
    ),
    "too fast to the second": (
        [Waypoint(0.0, ZERO), Waypoint(0.05, np.ones(2))],
        0.0,
        "'shoulder' would move at 20",
    ),
}


def test_numbers_that_overflow_are_refused() -> None:
    c = controller()
    c.hold(0.0, ZERO)
    huge = np.full(2, 1e308)
    for waypoints in (
        [Waypoint(0.1, ZERO, huge), Waypoint(1.0, ZERO, ZERO)],
        [Waypoint(0.1, ZERO, ZERO, huge), Waypoint(1.0, ZERO, ZERO, ZERO)],
    ):
        with pytest.raises(TrajectoryError, match="its numbers are too large"):
            c.follow(0.0, waypoints, 0.0)


@pytest.mark.parametrize("treatment", list(ExcessiveEffort))
@pytest.mark.parametrize("apart", [1e-3, 1.0])
def test_efforts_that_overflow_are_refused(treatment: ExcessiveEffort, apart: float) -> None:
    c = controller(trajectories=rules(excessive_effort=treatment))
    c.hold(0.0, ZERO)
    zeros = [np.zeros(2)] * 3
    waypoints = [
        Waypoint(1.0, *zeros, effort=np.full(2, 1.7e308)),
        Waypoint(1.0 + apart, *zeros, effort=np.full(2, -1.7e308)),
    ]
    with pytest.raises(TrajectoryError, match="its efforts are too large"):
        c.follow(0.0, waypoints, 0.0)


@pytest.mark.parametrize("start", [math.nan, math.inf])
def test_start_that_is_not_finite_is_refused(start: float) -> None:
    c = controller()
    c.hold(0.0, ZERO)
    with pytest.raises(TrajectoryError, match=f"its start is {start} s; it must be finite"):
        c.follow(0.0, [Waypoint(1.0, ZERO)], start)


def test_times_that_rounding_makes_one_are_refused() -> None:
    c = controller()
    c.hold(0.0, ZERO)
    with pytest.raises(TrajectoryError, match=r"is too far ahead"):
        c.follow(0.0, [Waypoint(1e-9, ZERO)], 1e17)
    words = r"at its start, 2e\+09 s from now, points are less than .* apart"
    with pytest.raises(TrajectoryError, match=words):
        c.follow(0.0, [Waypoint(1.0, ZERO), Waypoint(1.0 + 1e-8, ZERO)], 2e9)


def test_holding_torque_is_never_published_when_not_finite() -> None:
    with pytest.raises(ControllerError, match=r"gravity torque at q = .* is not finite"):
        controller().holding_torque(np.array([math.nan, 0.0]), np.zeros(2))


@pytest.mark.parametrize("name", REFUSED)
def test_refused_motion_leaves_the_old_one(name: str) -> None:
    waypoints, start, words = REFUSED[name]
    c = controller()
    c.hold(0.0, ZERO)
    before = c.trajectory
    with pytest.raises(TrajectoryError, match=words):
        c.follow(0.0, waypoints, start)
    assert c.trajectory is before


def test_point_that_has_passed_may_lie_outside_the_limits() -> None:
    c = controller()
    c.hold(0.0, np.array([0.0, 3.0001]))
    c.follow(0.0, [Waypoint(0.0, np.array([0.0, 3.0001])), Waypoint(2.0, ZERO)], 0.0)
    np.testing.assert_allclose(c.trajectory.at(2.0)[0], 0.0)


def test_gravity_compensation_takes_no_trajectory() -> None:
    c = controller(ControlLaw.gravity_compensation)
    c.hold(0.0, ZERO)
    with pytest.raises(TrajectoryError, match="follows the hand"):
        c.follow(0.0, [Waypoint(1.0, ZERO)], 0.0)


def test_stop_is_smooth_and_ends_at_rest() -> None:
    c, _ = following(ControlLaw.computed_torque)
    torque_of(c, 0.9, *c.trajectory.at(0.9)[:2])
    before = c.desired.copy()
    assert np.abs(before[1]).max() > 0.3
    c.stop(EndKind.CANCELLED, "stop")
    np.testing.assert_allclose(c.trajectory.at(0.9), before, atol=1e-12)
    assert c.is_moving
    end = c.trajectory.end_time
    assert 0.9 < end < 1.5
    speeds = np.array([np.abs(c.trajectory.at(t)[1]) for t in np.linspace(0.9, end, 100)])
    assert (speeds <= 1.01 * speeds[0]).all()
    torque_of(c, end, *c.trajectory.at(end)[:2])
    assert not c.is_moving
    np.testing.assert_allclose(c.desired[1:], 0.0, atol=1e-12)


def test_integral_fades_when_its_gain_is_set_to_zero() -> None:
    c = controller(ControlLaw.pd, p=0.0, d=0.0, i=2.0)
    c.hold(0.0, ZERO)
    off = np.array([-1.0, 0.0])
    held = max(torque_of(c, 0.01 * k, off, ZERO)[0] for k in range(100))
    c.settings = ControllerSettings(Gains.uniform(2, 0.0, 0.0), ControlLaw.pd)
    torques = [torque_of(c, 1.0 + 0.01 * k, off, ZERO)[0] for k in range(1000)]
    assert torques[0] == pytest.approx(held, rel=0.05)
    assert (np.diff(torques) < 0.0).all()
    assert torques[-1] < 1e-3 * held


def test_a_catch_keeps_the_integral() -> None:
    c = controller(ControlLaw.pd, p=0.0, d=0.0, i=2.0)
    c.hold(0.0, ZERO)
    off = np.array([-1.0, 0.0])
    torque = torque_of(c, 0.05, off, ZERO)
    c.catch(0.05, off, ZERO, "a test")
    np.testing.assert_array_equal(torque_of(c, 0.05, off, ZERO), torque)


def test_motion_that_began_in_the_past_plays_its_remainder() -> None:
    c = controller()
    c.hold(0.0, ZERO)
    points = [Waypoint(1.0, np.full(2, 0.1)), Waypoint(2.0, np.full(2, 0.2))]
    c.follow(0.0, points, -1.5)
    np.testing.assert_allclose(c.trajectory.at(0.0)[0], 0.0)
    np.testing.assert_allclose(c.trajectory.at(0.5)[0], 0.2)
    assert c.trajectory.end_time == 0.5


def test_desired_motion_never_jumps_through_random_goals() -> None:
    rng = np.random.default_rng(8)
    c = controller()
    c.hold(0.0, ZERO)
    tau, previous = np.zeros(2), ZERO.copy()
    for k in range(4000):
        t = 0.001 * k
        if k % 250 == 100:
            goal = rng.uniform(-1, 1, 2)
            c.follow(t, [Waypoint(1.0, goal, ZERO, ZERO)], t + rng.choice([0.0, 0.05, -0.1]))
        c.step(t, previous, ZERO, tau)
        assert np.abs(c.desired[0] - previous).max() < 0.01
        previous = c.desired[0].copy()


def test_closed_loop_decays_as_designed() -> None:
    """e'' + 2 w e' + w^2 e = 0 for the whole arm, whatever its inertia: exact plant, fine steps."""
    w, dt = 10.0, 1e-4
    c = controller(p=w * w, d=2.0 * w)
    c.hold(0.0, ZERO)
    q, v = np.array([0.1, -0.1]), np.zeros(2)
    ws, tau = Workspace(MODEL), np.zeros(2)
    for k in range(3000):
        c.step(k * dt, q, v, tau)
        bias = rnea(MODEL, ws, q, v, ZERO, np.zeros(2))
        rest = rnea(MODEL, ws, q, ZERO, ZERO, np.zeros(2))
        mass = np.column_stack([rnea(MODEL, ws, q, ZERO, e, np.zeros(2)) - rest for e in np.eye(2)])
        v = v + dt * np.linalg.solve(mass, tau - bias)
        q = q + dt * v
    t = 3000 * dt
    expected = np.array([0.1, -0.1]) * (1.0 + w * t) * math.exp(-w * t)
    np.testing.assert_allclose(q, expected, rtol=0.01)
