"""The supervisor: start, missing and bad states, hand guiding, emergency stop, faults and the
hand-over, with an arm that obeys forward dynamics."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from controllers import ARM, JOINT_SPACE, to
from robots import two_link_arm
from supervised_arm import START, SupervisedArm

from rnea_control.control import (
    ControlLaw,
    ControllerSettings,
    Ending,
    EndKind,
    Event,
    Gains,
    Mode,
    MotionRequest,
    Waypoints,
)
from rnea_control.dynamics import Workspace, gravity
from rnea_control.exceptions import ControllerError, TorqueError, TrajectoryError
from rnea_control.model import RobotModel

GOAL = (2.0, 1.1, 0.4)
NAN = np.full(2, math.nan)


def gravity_torque(q: np.ndarray) -> np.ndarray:
    return gravity(ARM, Workspace(ARM), q, np.zeros(2))


def moving(**arguments) -> SupervisedArm:
    """An arm in the middle of a motion of two seconds."""
    arm = SupervisedArm(**arguments).activate()
    arm.motion = arm.follow(GOAL)
    return arm.run(1.0)


def pushed(arm: SupervisedArm, push: list[float], duration: float) -> SupervisedArm:
    arm.plant.push[:] = push
    arm.run(duration)
    arm.plant.push[:] = 0.0
    return arm


def fail(arm: SupervisedArm) -> None:
    arm.supervisor.fail("collision?", arm.t, arm.plant.q, arm.plant.v)


def take_over(arm: SupervisedArm) -> None:
    arm.supervisor.take_over(arm.t, arm.plant.q, arm.plant.v, "given back")


def unheard_of(**arguments) -> SupervisedArm:
    """An arm whose commands nobody takes."""
    arm = SupervisedArm(**arguments)
    arm.supervisor.listening = False
    arm.supervisor.activate()
    return arm


# Start.


def test_it_holds_the_first_state_that_it_may_start_from() -> None:
    arm = SupervisedArm()
    tau = np.zeros(2)
    assert not arm.supervisor.answer(arm.t, START, tau.copy(), tau) and arm.mode is Mode.INACTIVE
    arm.supervisor.activate()
    assert arm.mode is Mode.WAITING and arm.supervisor.reason == "for joint_states"
    assert arm.tick() and arm.mode is Mode.HOLDING
    np.testing.assert_allclose(arm.tau, gravity_torque(START), rtol=1e-9)
    arm.run(0.5)
    assert arm.error < 1e-9 and np.abs(arm.plant.q - START).max() < 1e-6


@pytest.mark.parametrize(
    ("q", "v", "reason"),
    [
        ([3.03, 0.0], [0.0, 0.0], "shoulder is at 3.03 rad, outside its limits -3 to 3"),
        ([0.0, -3.5], [0.0, 0.0], "elbow is at -3.5 rad, outside its limits"),
        ([0.0, 0.0], [0.1, -0.3], "elbow moves at -0.3 rad/s: the arm must be at rest. To have"),
        ([0.0, 0.0], [math.nan, 0.0], "for joint_states that are finite"),
        ([math.inf, 0.0], [0.0, 0.0], "for joint_states that are finite"),
    ],
)
def test_start_is_refused_with_a_reason(q: list[float], v: list[float], reason: str) -> None:
    arm = SupervisedArm()
    arm.supervisor.activate()
    tau = np.full(2, 7.0)
    for tick in range(5):
        assert not arm.supervisor.answer(10.0 + 0.001 * tick, np.array(q), np.array(v), tau)
    assert arm.mode is Mode.WAITING and reason in arm.supervisor.reason
    assert len(arm.changes) == 2  # said once, not with every state
    assert (tau == 7.0).all()
    with pytest.raises(TrajectoryError, match="send it again later"):
        arm.supervisor.situation(10.0)
    assert not arm.supervisor.answer_gap(11.0, tau)
    assert arm.tick() and arm.mode is Mode.HOLDING


def test_without_a_listener_it_follows_the_arm() -> None:
    arm = unheard_of()
    for shift in np.linspace(0.0, 0.5, 500):
        arm.plant.q = START + shift
        assert arm.supervisor.answer(arm.t, arm.plant.q, np.zeros(2), arm.tau)
        np.testing.assert_allclose(arm.tau, gravity_torque(arm.plant.q), rtol=1e-9)
        arm.t += 0.001
    assert arm.mode is Mode.WAITING
    assert arm.supervisor.reason == "for a subscription to the commands"
    here = arm.plant.q.copy()
    arm.supervisor.hear_listeners(True, "somebody listens")
    arm.tick()
    assert arm.mode is Mode.HOLDING
    np.testing.assert_allclose(arm.controller.desired[0], here)


@pytest.mark.parametrize("law", list(JOINT_SPACE))
@pytest.mark.parametrize("v", [[0.0, 0.0], [4.0, -12.0], [-25.0, 3.0]])
def test_torque_that_nobody_applies_is_the_gravity_torque_wherever_the_arm_falls(law, v) -> None:
    """Beyond a soft limit and the velocity limit too: springs and brakes would move nothing, and
    jump at the hardware when it begins to apply the commands."""
    arm = unheard_of(law=law, supervision={"start_tolerance": 0.1})
    q = np.array([-3.02, 2.98])  # beyond a limit, and within the margin of another
    expected = np.zeros(2) if law is ControlLaw.pd else gravity_torque(q)
    for _ in range(3):
        assert arm.supervisor.answer(arm.t, q, np.array(v), arm.tau)
        np.testing.assert_allclose(arm.tau, expected, rtol=1e-9)
        arm.t += 0.001
    state = arm.controller.snapshot()
    np.testing.assert_allclose(state.measured, [q, v])
    np.testing.assert_allclose(state.torque, arm.tau)
    arm.supervisor.hear_listeners(True, "somebody listens")
    assert arm.supervisor.answer(arm.t, q, np.array(v), arm.tau)
    rate = arm.controller.arrays.settings[0].torque_rate_limit
    if law is not ControlLaw.gravity_compensation:
        assert arm.mode in (Mode.BRAKING, Mode.HOLDING)
    assert (np.abs(arm.tau - expected) <= rate * 0.005).all()


def test_resting_arm_beyond_a_soft_limit_is_held_where_it_is_after_activation() -> None:
    """It has fallen there: nothing pulls it out with the whole effort limit."""
    arm = unheard_of()
    arm.plant.q[:] = [0.3, -2.97]  # the margin begins at -2.95
    for _ in range(50):
        assert arm.supervisor.answer(arm.t, arm.plant.q, arm.plant.v, arm.tau)
        arm.t += 0.001
    arm.supervisor.hear_listeners(True, "somebody listens")
    held = gravity_torque(arm.plant.q)
    for _ in range(200):
        arm.tick()
        np.testing.assert_allclose(arm.tau, held, atol=0.05)


@pytest.mark.parametrize(
    ("fast", "start_velocity", "safety"),
    [
        (0.0, 0.05, {}),
        (9.0, math.inf, {"max_position_error": np.full(2, 0.002), "saturation_timeout": 0.001}),
    ],
)
def test_arm_that_falls_until_the_effort_controller_is_active_is_caught(
    fast: float, start_velocity: float, safety: dict
) -> None:
    """Without a fault, however often it gives way."""
    arm = unheard_of(supervision={"start_velocity": start_velocity}, **safety)
    arm.plant.v[:] = [fast, -fast]
    for _ in range(200 if fast else 300):
        assert arm.supervisor.answer(arm.t, arm.plant.q, arm.plant.v, arm.tau)
        arm.plant.step(np.zeros(2))
        arm.t += 0.001
    assert arm.speed > 1.0
    arm.supervisor.hear_listeners(True, "somebody listens")
    arm.tick()
    assert arm.mode is Mode.BRAKING
    assert arm.run(3.0).mode is Mode.HOLDING and arm.speed < 1e-3
    assert (arm.controller.gave_way > 3) == bool(safety)


def test_arm_that_lies_at_its_stops_while_nobody_listens_has_given_way_to_nothing() -> None:
    arm = unheard_of(max_position_error=np.full(2, 0.01), saturation_timeout=0.01)
    falling = np.array([0.3, -0.3])
    for _ in range(200):  # also positions that stand still, and jump
        assert arm.supervisor.answer(arm.t, START, falling, arm.tau)
        arm.t += 0.001
    assert arm.supervisor.answer(arm.t, -START, falling, arm.tau)
    arm.supervisor.hear_listeners(True, "somebody listens")
    arm.plant.q[:] = -START
    arm.tick()
    assert arm.controller.gave_way == 0 and arm.supervisor.bad_states == 0
    assert not arm.controller.at_work.any()


def test_arm_that_bounces_at_its_stops_while_nobody_listens_is_said_once() -> None:
    """First that nobody takes the commands, then what else is in the way, and not in turns."""
    arm = unheard_of()
    inside, outside = np.array([0.0, 2.99]), np.array([0.0, 3.05])
    for k in range(15000):
        q = outside if k // 270 % 11 == 1 else inside
        arm.supervisor.answer(arm.t, q, np.array([0.0, 0.5]), arm.tau)
        arm.t += 0.001
    first, missing = arm.changes[1:3]
    assert first[2] == "for a subscription to the commands" and len(arm.changes) == 3
    besides = "nor can it start while elbow is outside its limits -3 to 3 rad"
    assert missing[2] == f"{first[2]}; {besides}"
    arm.supervisor.hear_listeners(False, "as effort_controller is inactive")
    assert arm.supervisor.reason == f"as effort_controller is inactive; {besides}"
    for _ in range(5100):
        arm.supervisor.answer(arm.t, inside, np.zeros(2), arm.tau)
        arm.t += 0.001
    assert arm.supervisor.reason == "as effort_controller is inactive"
    assert arm.supervisor.streaming
    arm.supervisor.hear_listeners(True, "somebody listens")
    arm.supervisor.answer(arm.t, outside, np.zeros(2), arm.tau)
    assert arm.supervisor.reason.endswith("outside its limits -3 to 3: bring it back by hand")


def test_nobody_listens_any_more() -> None:
    """The motion ends, and the reason to wait is the present one."""
    arm = moving()
    for state in ("not loaded", "unknown", "inactive"):
        reason = f"as the effort controller is {state}"
        arm.supervisor.hear_listeners(False, reason)
        arm.tick()
        assert arm.mode is Mode.WAITING and arm.supervisor.reason == reason
    assert [reason for _, _, reason in arm.changes].count(reason) == 1
    assert arm.motion.ending.kind == EndKind.DROPPED
    assert arm.motion.ending.text == "as the effort controller is not loaded"


# Motions.


def test_end_brings_the_arm_to_rest_and_takes_no_trajectory() -> None:
    arm = moving()
    assert arm.supervisor.end("SIGINT")
    assert arm.mode is Mode.BRAKING and arm.motion.ending.text == "SIGINT"
    with pytest.raises(TrajectoryError, match="bringing the arm to rest"):
        arm.supervisor.situation(arm.t)
    arm.run(1.1)
    assert not arm.supervisor.end("SIGINT") and arm.mode is Mode.HOLDING and arm.speed < 1e-3
    with pytest.raises(ControllerError, match="bringing the arm to rest"):
        arm.supervisor.guide()


# Bad states.


def test_bad_states_are_ignored_up_to_the_number_then_it_goes_blind() -> None:
    arm = moving()
    with pytest.raises(ControllerError, match="the measured position of elbow has jumped from"):
        arm.bad(arm.plant.q + np.array([0.0, 0.5]))
    for k in range(5):
        arm.tick()  # a good state between them starts the count anew
        before = arm.tau.copy()
        for _ in range(arm.supervisor.settings.max_bad_states):
            with pytest.raises(ControllerError, match="not finite"):
                arm.bad(NAN)
        assert arm.mode is Mode.MOVING and arm.supervisor.bad_states == 1 + 10 * (k + 1)
        np.testing.assert_array_equal(arm.tau, before)
    for _ in range(2):  # the second one is as bad, and does not end blindness
        with pytest.raises(ControllerError, match="not finite"):
            arm.bad(NAN)
        assert arm.mode is Mode.BLIND and "not finite" in arm.supervisor.reason
    assert arm.motion.ending.kind == EndKind.DROPPED
    assert np.isfinite(arm.controller.trajectory.coefficients).all()
    arm.tick()
    assert arm.mode is Mode.BRAKING and arm.supervisor.reason == "joint_states are back"
    assert arm.run(1.2).mode is Mode.HOLDING and arm.speed < 1e-3


def test_torque_that_is_not_finite_is_a_fault() -> None:
    arm = moving()
    with pytest.raises(TorqueError):
        arm.bad(arm.plant.q.copy(), np.array([1e200, 0.0]))
    assert arm.mode is Mode.FAULT and "not finite" in arm.supervisor.reason
    arm.run(1.2)
    assert arm.mode is Mode.FAULT and arm.speed < 1e-3
    with pytest.raises(TrajectoryError, match=r"not finite.*reset_fault first"):
        arm.supervisor.situation(arm.t)
    assert arm.supervisor.reset_fault() == "holding"
    assert arm.run(0.1).mode is Mode.HOLDING


# Missing states.


def test_short_gap_slows_the_motion_down_and_lets_it_go_on() -> None:
    arm, whole = moving(), moving()
    arm.lack(0.08)
    assert arm.mode is Mode.MOVING and arm.supervisor.gaps == 1
    assert arm.controller.speed_scaling < 0.9
    before = arm.controller.desired.copy()
    arm.tick()
    # The desired motion is continuous, and the arm still follows it.
    assert np.abs(arm.controller.desired[0] - before[0]).max() < 0.003
    assert arm.error < 2e-3
    arm.run(1.5)
    whole.run(1.0)
    assert arm.motion.ending.kind == EndKind.REACHED and arm.mode is Mode.HOLDING
    np.testing.assert_allclose(arm.plant.q, whole.plant.q, atol=2e-3)
    many = moving()
    for _ in range(20):
        many.lack(0.05).run(0.02)
    assert many.mode is Mode.MOVING and many.supervisor.gaps == 20 and many.error < 5e-3


def test_long_gap_ends_the_motion_and_brakes_by_the_model() -> None:
    arm = moving()
    fastest = arm.speed
    arm.lack(0.11)
    assert arm.mode is Mode.BLIND
    assert "no joint_states with a new stamp for 0.1" in arm.supervisor.reason
    assert arm.motion.ending.kind == EndKind.DROPPED
    arm.lack(0.4)
    assert fastest > 0.5 and arm.speed < 0.02
    here = arm.plant.q.copy()
    arm.lack(0.5)
    # An exact model balances the arm, like a pencil on its tip, for long.
    assert arm.error < 0.02 and np.abs(arm.plant.q - here).max() < 0.02
    assert arm.controller.repeats(arm.controller.time)  # who starts anew, elsewhere, is not told
    arm.run(0.001)
    assert not arm.controller.repeats(arm.controller.time)
    arm.tick()
    assert arm.mode is Mode.BRAKING
    assert arm.run(1.2).mode is Mode.HOLDING and arm.speed < 1e-3
    assert np.abs(arm.plant.q - here).max() < 0.05


@pytest.mark.parametrize("law", JOINT_SPACE)
def test_arm_is_braked_without_states_under_each_law(law: ControlLaw) -> None:
    arm = SupervisedArm(law=law).activate()
    if law in (ControlLaw.gravity_compensation, ControlLaw.pd):
        # Thrown by hand, or sagging: pd holds no arm without errors.
        arm.run(1.0)
        arm.plant.v[:] = [0.3, -0.2]
        arm.run(0.02)
    else:
        arm.follow(GOAL)
        arm.run(1.0)
    speeds = [arm.lack(0.01).speed for _ in range(50)]
    assert arm.mode is Mode.BLIND
    # A velocity error that no state corrects decays, then grows again: an upright pendulum's.
    assert min(speeds) < 0.1 and max(speeds[25:]) < 0.5
    assert arm.tick() and arm.mode is Mode.BRAKING
    rest = Mode.GRAVITY_COMPENSATION if law == ControlLaw.gravity_compensation else Mode.HOLDING
    assert arm.run(1.2).mode is rest


# What an operator asks for.


def test_hand_guiding() -> None:
    arm = SupervisedArm().activate()
    assert arm.supervisor.resume() == "already holding: there was nothing to resume"
    assert arm.mode is Mode.HOLDING
    request = MotionRequest(Waypoints.of([to(*GOAL)], 2))
    plan = arm.controller.plan(request, arm.supervisor.situation(arm.t), 0.1)
    assert "~/resume" in arm.supervisor.guide()
    assert not arm.supervisor.adopt(plan) and arm.mode is Mode.GRAVITY_COMPENSATION
    moved = np.abs(pushed(arm, [2.0, 0.5], 0.5).plant.q - START).max()
    assert moved > 0.1  # it gives way
    with pytest.raises(TrajectoryError, match="a hand guides the arm"):
        arm.supervisor.situation(arm.t)
    assert arm.supervisor.resume() == "holding"
    assert arm.mode is Mode.BRAKING
    assert arm.run(1.2).mode is Mode.HOLDING and arm.speed < 1e-3
    assert np.abs(arm.plant.q - START).max() > 0.5 * moved  # it does not go back


def test_under_a_law_that_holds_no_position_nobody_is_told_that_it_does() -> None:
    arm = SupervisedArm(ControlLaw.gravity_compensation).activate()
    supervisor = arm.supervisor
    with pytest.raises(TrajectoryError, match="choose another control_law"):
        supervisor.situation(arm.t)
    supervisor.emergency_stop(True)
    supervisor.emergency_stop(False)
    assert supervisor.resume() == "gravity_compensation"
    assert arm.run(0.1) and supervisor.guide() == "the arm follows the hand"
    fail(arm)
    assert supervisor.reset_fault() == "gravity_compensation"


def test_emergency_stop_is_latched() -> None:
    arm = moving()
    supervisor = arm.supervisor
    supervisor.emergency_stop(True)
    assert arm.mode is Mode.EMERGENCY_STOP and arm.motion.ending.text == "emergency stop"
    arm.run(1.2)
    assert arm.mode is Mode.EMERGENCY_STOP and arm.speed < 1e-3
    with pytest.raises(TrajectoryError, match="emergency stop"):
        supervisor.situation(arm.t)
    with pytest.raises(ControllerError, match="still on, held by somebody: publish false there"):
        supervisor.resume()
    with pytest.raises(ControllerError, match="cannot hold in mode emergency_stop"):
        supervisor.hold()
    supervisor.emergency_stop(False)
    assert arm.run(0.1).mode is Mode.EMERGENCY_STOP
    assert supervisor.resume() == "holding"
    assert arm.run(0.1).mode is Mode.HOLDING


def test_activation_ends_a_fault_but_not_a_stop_that_is_on() -> None:
    arm = SupervisedArm().activate()
    fail(arm)
    arm.supervisor.happen(Event.DEACTIVATED, "told so")
    assert arm.activate().mode is Mode.HOLDING
    arm.supervisor.emergency_stop(True)
    arm.supervisor.happen(Event.DEACTIVATED, "told so")
    assert arm.activate().mode is Mode.EMERGENCY_STOP


# Collisions.


def test_push_beyond_the_threshold_is_a_fault() -> None:
    arm = pushed(moving(observer=3.0), [8.0, 0.0], 0.2)
    assert arm.mode is Mode.FAULT
    assert "collision?" in arm.supervisor.reason and "act on shoulder" in arm.supervisor.reason
    assert "collision?" in arm.motion.ending.text
    assert arm.run(1.2).mode is Mode.FAULT and arm.speed < 1e-3
    arm.supervisor.reset_fault()
    assert arm.run(0.5).mode is Mode.HOLDING


@pytest.mark.parametrize("duration", [0.06, 0.3])
def test_gap_is_no_collision(duration: float) -> None:
    """The observer does not know the torques that were predicted."""
    arm = moving(observer=0.5)
    arm.lack(duration)
    arm.run(0.3)
    assert Mode.FAULT not in [new for _, new, _ in arm.changes]


# The sentinel.


def test_guarded_commands_nothing_and_take_over_brakes() -> None:
    arm = moving()
    take_over(arm)  # only a guarded arm is
    assert arm.mode is Mode.MOVING and arm.motion.ending is None
    arm.supervisor.happen(Event.TAKEN_OVER, "the sentinel commands the arm")
    assert arm.mode is Mode.GUARDED and arm.motion.ending.kind == EndKind.DROPPED
    tau = np.full(2, 7.0)
    assert not arm.supervisor.answer(arm.t, arm.plant.q, arm.plant.v, tau)
    assert not arm.supervisor.answer_gap(arm.t + 1.0, tau)
    assert (tau == 7.0).all()
    with pytest.raises(TrajectoryError, match="the sentinel commands"):
        arm.supervisor.situation(arm.t)
    arm.supervisor.happen(Event.LOST, "no states")
    assert arm.mode is Mode.GUARDED
    take_over(arm)
    assert arm.mode is Mode.BRAKING
    assert arm.run(1.2).mode is Mode.HOLDING and arm.speed < 1e-3


# What no arm can do, and what nothing makes true.


def mislead(arm: SupervisedArm, duration: float, off: float) -> None:
    """States for a while whose elbow is off by so much and drifts, as the node answers them."""
    for k in range(round(1000 * duration)):
        with pytest.raises(ControllerError):
            q, v = arm.plant.q + np.array([0.0, off * (1.0 + 1e-4 * k)]), arm.plant.v.copy()
            arm.supervisor.answer(arm.t, q, v, arm.tau)
        arm.supervisor.answer_gap(arm.t, arm.tau)
        arm.plant.step(arm.tau, 0.001)
        arm.t += 0.001


def test_bad_state_does_not_end_the_predictions() -> None:
    arm = SupervisedArm().activate()
    supervisor = arm.supervisor
    supervisor.answer_gap(arm.t, arm.tau)
    with pytest.raises(ControllerError):
        supervisor.answer(arm.t, NAN, arm.plant.v.copy(), arm.tau)
    assert supervisor.controller.predicting
    arm.run(0.001)
    assert not supervisor.controller.predicting


@pytest.mark.parametrize("off", [1.0, -0.2])
def test_jump_does_not_become_true_by_lasting(off: float) -> None:
    arm = SupervisedArm().activate()
    mislead(arm, 1.2, off)
    assert arm.mode is Mode.BLIND
    assert "elbow has jumped from" in arm.supervisor.reason
    assert "~/resume accepts it" in arm.supervisor.reason
    assert len(arm.changes) < 8, "the mode is told with every state"
    for duration, mode in ((0.001, Mode.BRAKING), (1.2, Mode.HOLDING)):
        assert np.abs(arm.plant.q - START).max() < 1e-3
        assert arm.run(duration).mode is mode
    assert np.abs(arm.plant.q - START).max() < 1e-3


@pytest.mark.parametrize("simulated", [False, True])
def test_jump_becomes_true_by_word_of_an_operator_or_in_simulated_time(simulated: bool) -> None:
    """There somebody has reset the world."""
    arm = SupervisedArm(supervision={"simulated": simulated}).activate()
    mislead(arm, 0.001 * (arm.supervisor.settings.max_bad_states + 1), 0.5)
    assert arm.mode is Mode.BLIND
    if not simulated:
        assert arm.supervisor.resume() == "the measured positions are accepted"
    arm.plant.q[1] += 0.5
    assert arm.tick() and arm.mode is Mode.BRAKING


@pytest.mark.parametrize("law", JOINT_SPACE)
def test_emergency_stop_holds_under_each_law(law: ControlLaw) -> None:
    arm = SupervisedArm(law=law).activate()
    arm.plant.v[:] = [0.5, -0.3]
    arm.run(0.01)
    arm.supervisor.emergency_stop(True)
    arm.run(1.2)
    here = arm.plant.q.copy()
    pushed(arm, [8.0, 3.0], 0.2).run(1.0)
    assert arm.mode is Mode.EMERGENCY_STOP
    assert np.abs(arm.plant.q - here).max() < 0.003
    arm.supervisor.emergency_stop(False)
    arm.supervisor.resume()
    arm.run(1.2)
    hand = law == ControlLaw.gravity_compensation
    assert arm.mode is (Mode.GRAVITY_COMPENSATION if hand else Mode.HOLDING)
    assert arm.controller.guided == hand


def with_gains(arm: SupervisedArm, p: float, d: float, **changes) -> ControllerSettings:
    return replace(arm.controller.settings, gains=Gains.uniform(2, p, d), **changes)


@pytest.mark.parametrize(
    ("p", "d", "dead_time", "words"),
    [
        (1e5, 2000.0, 0.0, "gains.shoulder.d is 2000; states at 1000 Hz and a dead_time of 0 s"),
        (1e5, 400.0, 0.0, "gains.shoulder.p is 100000;"),
        (100.0, 100.0, 0.02, "and a dead_time of 0.02 s allow 48.8 at most"),
        (40000.0, 400.0, 0.001, ""),
        (0.0, 1.7e308, 0.0, "gains.shoulder.d is 1.7e+308"),
    ],
)
def test_gain_beyond_what_the_states_allow(p, d, dead_time, words) -> None:
    arm = SupervisedArm().activate()
    settings = with_gains(arm, p, d, dead_time=dead_time)
    found = arm.supervisor.objection(ARM, settings)
    assert words in found and bool(words) == bool(found)
    arm = SupervisedArm()
    arm.controller.settings = settings
    arm.supervisor.activate()
    arm.run(0.5)
    assert arm.mode is (Mode.FAULT if words else Mode.HOLDING)
    assert np.abs(arm.plant.q - START).max() < 1e-3
    if words:
        for stopped in (False, True):
            if stopped:
                arm.supervisor.emergency_stop(True)
            with pytest.raises(ControllerError, match="gains"):
                arm.supervisor.reset_fault()
        arm.supervisor.emergency_stop(False)
        arm.supervisor.resume()
        # The braced law holds the arm: gains may be mended one by one.
        assert arm.supervisor.objection(ARM, with_gains(arm, 400.0, 1e4)) == ""
        arm.controller.settings = with_gains(arm, 400.0, 40.0)
        arm.supervisor.reset_fault()
        assert arm.run(1.2).mode is Mode.HOLDING


def test_gains_in_nm_are_judged_by_the_inertia() -> None:
    arm = SupervisedArm(law=ControlLaw.feedforward_pd).activate()
    assert arm.supervisor.objection(ARM, with_gains(arm, 1e3, 60.0)) == ""
    assert "gains.elbow.d" in arm.supervisor.objection(ARM, with_gains(arm, 1e3, 1e3))


def test_load_that_cannot_be_held() -> None:
    heavy = RobotModel.from_urdf_string(two_link_arm())
    heavy.set_payload("lower", 50.0, [0.0, 0.0, 0.5])
    arm = SupervisedArm().activate()
    compensated = replace(arm.controller.settings, hardware_compensates_gravity=True)
    for settings in (arm.controller.settings, compensated):
        assert "to be held" in arm.supervisor.objection(heavy, settings)
    arm = SupervisedArm(model=heavy)
    arm.supervisor.activate()
    assert not arm.tick()
    assert arm.mode is Mode.WAITING and "needs" in arm.supervisor.reason


@pytest.mark.parametrize("d", [1.7e308, 1e4])
def test_fault_brakes_by_another_law_than_the_one_that_failed(d: float) -> None:
    arm = moving()
    arm.controller.settings = with_gains(arm, 400.0, d)  # past all checks
    with suppress(TorqueError):
        arm.run(0.5)
    here = arm.plant.q.copy()
    arm.run(1.5)
    assert arm.mode is Mode.FAULT and arm.speed < 1e-3
    assert np.abs(arm.plant.q - here).max() < 0.5


def test_giving_way_again_and_again_is_a_fault() -> None:
    arm = SupervisedArm(max_position_error=np.full(2, 0.05)).activate()
    for side in (1.0, -1.0, 1.0, -1.0):
        arm.plant.push[:] = [40.0 * side, 0.0]
        before = arm.controller.gave_way
        while arm.controller.gave_way == before:
            arm.tick()
        arm.plant.push[:] = 0.0
        arm.run(0.2)
    assert arm.mode is Mode.FAULT and "gave way 4 times within 3 s" in arm.supervisor.reason
    arm.run(2.0)
    assert arm.speed < 1e-3


def test_what_was_found_counts_though_machine_code_has_begun_to_predict_meanwhile() -> None:
    arm = SupervisedArm().activate()
    arm.run(0.1)
    arm.controller.arm.predicting = 1
    arm.supervisor.follow_up([Ending(EndKind.DROPPED, "a joint shook", gave_way=True, shaken=True)])
    assert arm.mode is Mode.FAULT
