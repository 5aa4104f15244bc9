"""The supervisor: start, missing and bad states, hand guiding, emergency stop, faults and the
hand-over, with an arm that obeys forward dynamics."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from controllers import ARM
from robots import two_link_arm
from supervised_arm import START, SupervisedArm

from rnea_control.control import ControlLaw, ControllerSettings, EndKind, Gains, Mode
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
        ([0.0, 0.0], [0.1, -0.3], "elbow moves at -0.3 rad/s: the arm must be at rest"),
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
    assert not arm.supervisor.answer_gap(11.0, 1.0, tau)
    assert arm.tick() and arm.mode is Mode.HOLDING


def test_start_within_the_tolerances() -> None:
    arm = SupervisedArm(q=np.array([3.015, 0.0]))
    arm.supervisor.activate()
    assert arm.tick() and arm.mode is Mode.HOLDING


def test_start_from_a_slow_motion_brakes() -> None:
    arm = SupervisedArm()
    arm.plant.v[:] = 0.15
    arm.supervisor.activate()
    assert arm.tick() and arm.mode is Mode.BRAKING
    assert arm.run(1.2).mode is Mode.HOLDING
    assert arm.speed < 1e-3


def test_torque_in_force_is_taken_over_without_a_step() -> None:
    arm = SupervisedArm()
    in_force = gravity_torque(START) + np.array([3.0, -1.0])
    arm.supervisor.activate()
    arm.supervisor.controller.in_force = in_force
    arm.tick()
    np.testing.assert_allclose(arm.tau, in_force)
    arm.run(1.5)
    np.testing.assert_allclose(arm.tau, gravity_torque(arm.plant.q), rtol=1e-3)


def test_without_a_listener_it_follows_the_arm() -> None:
    arm = SupervisedArm()
    arm.supervisor.listening = False
    arm.supervisor.activate()
    for shift in np.linspace(0.0, 0.5, 500):
        q = START + shift
        assert arm.supervisor.answer(arm.t, q, np.zeros(2), arm.tau)
        np.testing.assert_allclose(arm.tau, gravity_torque(q), rtol=1e-9)
        arm.t += 0.001
    assert arm.mode is Mode.WAITING
    assert arm.supervisor.reason == "for a subscription to the commands"
    arm.plant.q = q
    arm.supervisor.start_anew("somebody listens")
    arm.tick()
    assert arm.mode is Mode.HOLDING
    np.testing.assert_allclose(arm.controller.desired[0], q)


def test_arm_that_falls_until_the_effort_controller_is_active_is_caught() -> None:
    arm = SupervisedArm(supervision={"start_velocity": 0.05})
    arm.supervisor.listening = False
    arm.supervisor.activate()
    for _ in range(300):
        assert arm.supervisor.answer(arm.t, arm.plant.q, arm.plant.v, arm.tau)
        arm.plant.step(np.zeros(2))
        arm.t += 0.001
    assert arm.speed > 1.0
    arm.supervisor.start_anew("somebody listens")
    arm.tick()
    assert arm.mode is Mode.BRAKING
    assert arm.run(1.5).mode is Mode.HOLDING
    assert arm.speed < 1e-3


def test_arm_that_lies_at_its_stops_while_nobody_listens_has_given_way_to_nothing() -> None:
    arm = SupervisedArm(max_position_error=np.full(2, 0.01), saturation_timeout=0.01)
    arm.supervisor.listening = False
    arm.supervisor.activate()
    falling = np.array([0.3, -0.3])
    for _ in range(200):  # also positions that stand still, and jump
        assert arm.supervisor.answer(arm.t, START, falling, arm.tau)
        arm.t += 0.001
    assert arm.supervisor.answer(arm.t, -START, falling, arm.tau)
    arm.supervisor.start_anew("somebody listens")
    arm.plant.q[:] = -START
    arm.tick()
    assert arm.controller.gave_way == 0 and arm.supervisor.bad_states == 0
    assert not arm.controller.at_work.any()


def test_arm_that_moves_and_was_not_watched_is_not_caught() -> None:
    arm = SupervisedArm(supervision={"start_velocity": 0.05})
    arm.supervisor.activate()
    falling = np.array([0.0, 0.3])
    assert not arm.supervisor.answer(arm.t, START, falling, arm.tau)
    assert "the arm must be at rest" in arm.supervisor.reason
    assert "set activation.max_velocity to .inf" in arm.supervisor.obstacle


def test_reason_to_wait_is_the_present_one() -> None:
    arm = SupervisedArm()
    arm.supervisor.wait_for_listener("as the effort controller is not loaded")
    arm.supervisor.activate()
    arm.tick()
    for state in ("not loaded", "inactive"):
        arm.supervisor.wait_for_listener(f"as the effort controller is {state}")
        arm.tick()
        assert arm.supervisor.reason == f"as the effort controller is {state}"
    assert [reason for _, _, reason in arm.changes].count(arm.supervisor.reason) == 1


def test_motion_ends_when_nobody_listens_any_more() -> None:
    arm = moving()
    arm.supervisor.wait_for_listener("nobody subscribes to the commands")
    assert arm.motion.ending.kind == EndKind.DROPPED
    assert arm.motion.ending.text == "nobody subscribes to the commands"
    assert arm.mode is Mode.WAITING


# Motions.


def test_motion_to_its_goal() -> None:
    arm = moving()
    assert arm.mode is Mode.MOVING
    arm.run(1.1)
    assert arm.motion.ending.kind == EndKind.REACHED and arm.mode is Mode.HOLDING
    np.testing.assert_allclose(arm.plant.q, GOAL[1:], atol=1e-3)


def test_cancelled_motion_brakes_then_holds() -> None:
    arm = moving()
    arm.supervisor.cancel(arm.motion)
    assert arm.mode is Mode.BRAKING and arm.motion.ending.kind == EndKind.CANCELLED
    arm.supervisor.cancel(arm.motion)  # too late: another end has come
    assert arm.run(1.2).mode is Mode.HOLDING
    new = arm.follow(GOAL)
    arm.supervisor.cancel(arm.motion)
    assert new.ending is None and arm.mode is Mode.MOVING


def test_trajectory_may_come_while_braking() -> None:
    arm = moving()
    arm.supervisor.hold()
    arm.run(0.02)
    assert arm.mode is Mode.BRAKING
    arm.follow(GOAL)
    assert arm.mode is Mode.MOVING
    assert arm.run(2.2).mode is Mode.HOLDING


def test_plan_is_not_adopted_in_a_mode_that_takes_none() -> None:
    arm = SupervisedArm().activate()
    situation = arm.supervisor.situation(arm.t)
    from controllers import to  # noqa: PLC0415

    from rnea_control.control import MotionRequest, Waypoints  # noqa: PLC0415

    request = MotionRequest(Waypoints.of([to(*GOAL)], 2))
    plan = arm.controller.plan(request, situation, 0.1)
    arm.supervisor.guide()
    assert not arm.supervisor.adopt(plan) and arm.mode is Mode.GRAVITY_COMPENSATION


def test_arm_that_is_torn_away_brakes_and_holds_where_it_is() -> None:
    arm = moving()
    arm.plant.push[0] = -150.0  # more than the motor can do
    while arm.mode is Mode.MOVING:
        arm.tick()
    assert arm.mode is Mode.BRAKING and arm.motion.ending.kind == EndKind.PATH_TOLERANCE_VIOLATED
    assert "max_position_error, 0.3" in arm.supervisor.reason
    assert "off its desired position" in arm.motion.ending.text
    arm.plant.push[0] = 0.0
    there = arm.plant.q.copy()
    assert arm.run(2.0).mode is Mode.HOLDING and arm.speed < 1e-3 and arm.error < 1e-3
    assert np.abs(arm.plant.q - there).max() < 1.0


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
    before = arm.tau.copy()
    most = arm.supervisor.settings.max_bad_states
    for count in range(1, most + 1):
        with pytest.raises(ControllerError, match="not finite"):
            arm.bad(NAN)
        assert arm.mode is Mode.MOVING and arm.supervisor.bad_states == count
    np.testing.assert_array_equal(arm.tau, before)
    with pytest.raises(ControllerError, match="not finite"):
        arm.bad(NAN)
    assert arm.mode is Mode.BLIND and "not finite" in arm.supervisor.reason
    assert arm.motion.ending.kind == EndKind.DROPPED
    # A state that is as bad does not end blindness; a good one does.
    with pytest.raises(ControllerError, match="not finite"):
        arm.bad(NAN)
    assert arm.mode is Mode.BLIND
    assert np.isfinite(arm.controller.trajectory.coefficients).all()
    arm.tick()
    assert arm.mode is Mode.BRAKING and arm.supervisor.reason == "joint_states are back"
    assert arm.run(1.2).mode is Mode.HOLDING and arm.speed < 1e-3


def test_good_state_between_bad_ones_starts_the_count_anew() -> None:
    arm = moving()
    for _ in range(5):
        for _ in range(arm.supervisor.settings.max_bad_states):
            with pytest.raises(ControllerError):
                arm.bad(NAN)
        arm.tick()
    assert arm.mode is Mode.MOVING and arm.supervisor.bad_states == 50


def test_jump_is_a_bad_state() -> None:
    arm = moving()
    with pytest.raises(ControllerError, match="the measured position of elbow has jumped from"):
        arm.bad(arm.plant.q + np.array([0.0, 0.5]))
    assert arm.mode is Mode.MOVING and arm.supervisor.bad_states == 1
    arm.run(1.2)
    assert arm.motion.ending.kind == EndKind.REACHED


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


def test_many_short_gaps() -> None:
    arm = moving()
    for _ in range(20):
        arm.lack(0.05).run(0.02)
    assert arm.mode is Mode.MOVING and arm.supervisor.gaps == 20 and arm.error < 5e-3


def test_long_gap_ends_the_motion_and_brakes_by_the_model() -> None:
    arm = moving()
    fastest = arm.speed
    arm.lack(0.11)
    assert (
        arm.mode is Mode.BLIND
        and "no joint_states with a new stamp for 0.1" in arm.supervisor.reason
    )
    assert arm.motion.ending.kind == EndKind.DROPPED
    arm.lack(0.4)
    assert fastest > 0.5 and arm.speed < 0.02
    here = arm.plant.q.copy()
    arm.lack(0.5)
    # An exact model balances the arm, like a pencil on its tip, for long.
    assert arm.error < 0.02 and np.abs(arm.plant.q - here).max() < 0.02
    arm.tick()
    assert arm.mode is Mode.BRAKING
    assert arm.run(1.2).mode is Mode.HOLDING and arm.speed < 1e-3
    assert np.abs(arm.plant.q - here).max() < 0.05


@pytest.mark.parametrize("law", ControlLaw)
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


def test_arm_guided_by_hand_is_slowed_down_in_a_gap_and_braked_after_the_timeout() -> None:
    arm = SupervisedArm().activate()
    arm.supervisor.guide()
    arm.plant.push[:] = [2.0, 0.5]
    arm.run(0.3)
    arm.plant.push[:] = 0.0
    fastest = arm.speed
    arm.lack(0.08)
    assert arm.mode is Mode.GRAVITY_COMPENSATION and fastest > 0.2 and arm.speed < 0.8 * fastest
    arm.run(0.05)
    assert arm.controller.guided
    np.testing.assert_array_equal(arm.controller.position_error, 0.0)  # it follows the hand on
    slowest = min(arm.lack(0.01).speed for _ in range(40))
    assert arm.mode is Mode.BLIND and slowest < 0.1


# What an operator asks for.


def test_hand_guiding() -> None:
    arm = SupervisedArm().activate()
    with pytest.raises(ControllerError, match="cannot resume in mode holding"):
        arm.supervisor.resume()
    assert "~/resume" in arm.supervisor.guide()
    assert arm.mode is Mode.GRAVITY_COMPENSATION
    arm.plant.push[:] = [2.0, 0.5]
    arm.run(0.5)
    arm.plant.push[:] = 0.0
    moved = np.abs(arm.plant.q - START).max()
    assert moved > 0.1  # it gives way
    with pytest.raises(TrajectoryError, match="a hand guides the arm"):
        arm.supervisor.situation(arm.t)
    assert arm.supervisor.resume() == "holding"
    assert arm.mode is Mode.BRAKING
    assert arm.run(1.2).mode is Mode.HOLDING and arm.speed < 1e-3
    assert np.abs(arm.plant.q - START).max() > 0.5 * moved  # it does not go back


def test_hand_that_presses_too_hard_ends_the_guiding() -> None:
    """Against a soft limit, until the motor has been at its own limit for the timeout."""
    limits = {"effort_limit": np.array([100.0, 5.0]), "limit_stiffness": 9000.0}
    arm = SupervisedArm(q=np.array([0.3, 2.7]), **limits).activate()
    arm.supervisor.guide()
    arm.plant.push[1] = 8.0
    arm.plant.upper[1] = 2.995
    arm.run(1.5)
    assert arm.mode in (Mode.BRAKING, Mode.HOLDING) and not arm.controller.guided
    reasons = [reason for old, _, reason in arm.changes if old is Mode.GRAVITY_COMPENSATION]
    assert len(reasons) == 1 and "the torque of elbow was at its limit for 0.5" in reasons[0]


def test_hold_ends_a_motion_and_hand_guiding() -> None:
    arm = moving()
    arm.supervisor.hold()
    assert arm.mode is Mode.BRAKING and arm.motion.ending.text == "told to hold"
    arm.run(1.2)
    arm.supervisor.guide()
    arm.supervisor.hold()
    assert arm.run(1.2).mode is Mode.HOLDING and not arm.controller.guided


def test_law_of_hand_guiding_holds_no_position() -> None:
    arm = SupervisedArm(law=ControlLaw.gravity_compensation).activate()
    assert arm.mode is Mode.GRAVITY_COMPENSATION
    with pytest.raises(ControllerError, match="holds no position"):
        arm.supervisor.hold()


def test_emergency_stop_is_latched() -> None:
    arm = moving()
    supervisor = arm.supervisor
    supervisor.emergency_stop(True)
    assert arm.mode is Mode.EMERGENCY_STOP and arm.motion.ending.text == "emergency stop"
    arm.run(1.2)
    assert arm.mode is Mode.EMERGENCY_STOP and arm.speed < 1e-3
    with pytest.raises(TrajectoryError, match="emergency stop"):
        supervisor.situation(arm.t)
    with pytest.raises(
        ControllerError, match="still on, held by somebody: publish false there first"
    ):
        supervisor.resume()
    with pytest.raises(ControllerError, match="cannot hold in mode emergency_stop"):
        supervisor.hold()
    supervisor.emergency_stop(False)
    assert arm.run(0.1).mode is Mode.EMERGENCY_STOP
    assert supervisor.resume() == "holding"
    assert arm.run(0.1).mode is Mode.HOLDING


def lost(arm: SupervisedArm) -> None:
    arm.lack(0.2)
    assert arm.mode is Mode.BLIND


def unheard(arm: SupervisedArm) -> None:
    arm.supervisor.wait_for_listener("nobody listens")
    arm.supervisor.start_anew("somebody listens")


def guarded(arm: SupervisedArm) -> None:
    arm.supervisor.guarded("the sentinel commands")
    arm.supervisor.take_over(arm.t, arm.plant.q, arm.plant.v, "it has gone")


@pytest.mark.parametrize("between", [lost, unheard, guarded])
@pytest.mark.parametrize("released", ["before", "meanwhile", "not"])
def test_emergency_stop_outlasts_blindness_and_other_hands(between, released: str) -> None:
    arm = SupervisedArm().activate()
    if released == "meanwhile" and between is lost:
        arm.lack(0.2)  # pressed and released while nothing is seen
    arm.supervisor.emergency_stop(True)
    if released == "before":
        arm.supervisor.emergency_stop(False)
    between(arm)
    if released == "meanwhile":
        arm.supervisor.emergency_stop(False)
    arm.run(0.2)
    assert arm.mode is Mode.EMERGENCY_STOP
    if released == "not":
        arm.supervisor.emergency_stop(False)
    arm.supervisor.resume()
    assert arm.run(0.1).mode is Mode.HOLDING


@pytest.mark.parametrize("between", [lost, unheard, guarded])
def test_fault_outlasts_blindness_and_other_hands(between) -> None:
    arm = SupervisedArm().activate()
    arm.supervisor.fail("collision?", arm.t, arm.plant.q, arm.plant.v)
    assert arm.mode is Mode.FAULT
    between(arm)
    arm.run(0.2)
    assert arm.mode is Mode.FAULT and arm.supervisor.reason == "collision?"
    with pytest.raises(ControllerError, match="cannot resume"):
        arm.supervisor.resume()
    arm.supervisor.reset_fault()
    assert arm.run(0.1).mode is Mode.HOLDING


def test_fault_and_emergency_stop_end_each_by_its_own() -> None:
    arm = SupervisedArm().activate()
    supervisor = arm.supervisor
    supervisor.fail("collision?", arm.t, arm.plant.q, arm.plant.v)
    supervisor.emergency_stop(True)
    assert arm.mode is Mode.EMERGENCY_STOP
    supervisor.emergency_stop(False)
    assert supervisor.resume() == "collision?" and arm.mode is Mode.FAULT
    supervisor.reset_fault()
    assert arm.mode is Mode.BRAKING
    with pytest.raises(ControllerError, match="no fault to reset"):
        supervisor.reset_fault()


def test_activation_ends_a_fault_but_not_a_stop_that_is_on() -> None:
    arm = SupervisedArm().activate()
    arm.supervisor.fail("collision?", arm.t, arm.plant.q, arm.plant.v)
    arm.supervisor.emergency_stop(True)
    arm.supervisor.deactivate("told so")
    assert arm.activate().mode is Mode.EMERGENCY_STOP
    arm.supervisor.deactivate("told so")
    arm.supervisor.emergency_stop(False)
    assert arm.activate().mode is Mode.HOLDING


# Collisions.


def test_push_beyond_the_threshold_is_a_fault() -> None:
    arm = moving(observer=3.0)
    arm.plant.push[:] = [8.0, 0.0]
    arm.run(0.2)
    assert arm.mode is Mode.FAULT
    assert "collision?" in arm.supervisor.reason and "act on shoulder" in arm.supervisor.reason
    assert "collision?" in arm.motion.ending.text
    arm.plant.push[:] = 0.0
    assert arm.run(1.2).mode is Mode.FAULT and arm.speed < 1e-3
    arm.supervisor.reset_fault()
    assert arm.run(0.5).mode is Mode.HOLDING


def test_push_below_the_threshold_is_none() -> None:
    arm = moving(observer=3.0)
    arm.plant.push[:] = [2.5, 0.0]
    arm.run(0.9)
    assert arm.mode is Mode.MOVING


@pytest.mark.parametrize("duration", [0.03, 0.06, 0.09, 0.3])
def test_gap_is_no_collision(duration: float) -> None:
    """The observer does not know the torques that were predicted."""
    arm = moving(observer=0.5)
    arm.lack(duration)
    arm.run(0.3)
    assert Mode.FAULT not in [new for _, new, _ in arm.changes]


# The sentinel.


def test_guarded_commands_nothing_and_take_over_brakes() -> None:
    arm = moving()
    arm.supervisor.guarded("the sentinel commands the arm")
    assert arm.mode is Mode.GUARDED and arm.motion.ending.kind == EndKind.DROPPED
    tau = np.full(2, 7.0)
    assert not arm.supervisor.answer(arm.t, arm.plant.q, arm.plant.v, tau)
    assert not arm.supervisor.answer_gap(arm.t + 1.0, 1.0, tau)
    assert (tau == 7.0).all()
    with pytest.raises(TrajectoryError, match="the sentinel commands"):
        arm.supervisor.situation(arm.t)
    arm.supervisor.lose("no states")
    assert arm.mode is Mode.GUARDED
    arm.supervisor.take_over(arm.t, arm.plant.q, arm.plant.v, "given back")
    assert arm.mode is Mode.BRAKING
    assert arm.run(1.2).mode is Mode.HOLDING and arm.speed < 1e-3


def test_only_a_guarded_arm_is_taken_over() -> None:
    arm = moving()
    arm.supervisor.take_over(arm.t, arm.plant.q, arm.plant.v, "given back")
    assert arm.mode is Mode.MOVING and arm.motion.ending is None


# What no arm can do, and what nothing makes true.


def mislead(arm: SupervisedArm, duration: float, off: float) -> None:
    """States for a while whose elbow is off by so much and drifts, as the node answers them."""
    for k in range(round(1000 * duration)):
        with pytest.raises(ControllerError):
            q, v = arm.plant.q + np.array([0.0, off * (1.0 + 1e-4 * k)]), arm.plant.v.copy()
            arm.supervisor.answer(arm.t, q, v, arm.tau)
        arm.supervisor.answer_gap(arm.t, 0.0, arm.tau)
        arm.plant.step(arm.tau, 0.001)
        arm.t += 0.001


@pytest.mark.parametrize("off", [1.0, -0.2])
def test_jump_does_not_become_true_by_lasting(off: float) -> None:
    arm = SupervisedArm().activate()
    mislead(arm, 2.0, off)
    assert arm.mode is Mode.BLIND
    assert "elbow has jumped from" in arm.supervisor.reason
    assert "~/resume takes that for true" in arm.supervisor.reason
    assert len(arm.changes) < 8, "the mode is told with every state"
    assert np.abs(arm.plant.q - START).max() < 1e-3
    arm.tick()
    assert arm.mode is Mode.BRAKING
    arm.run(1.2)
    assert arm.mode is Mode.HOLDING and np.abs(arm.plant.q - START).max() < 1e-3


def test_jump_in_simulated_time_becomes_true_by_lasting() -> None:
    """Somebody has reset the world."""
    arm = SupervisedArm(supervision={"simulated": True}).activate()
    most = arm.supervisor.settings.max_bad_states
    mislead(arm, 0.001 * (most + 1), 0.5)
    assert arm.mode is Mode.BLIND
    arm.plant.q[1] += 0.5
    arm.tick()
    assert arm.mode is Mode.BRAKING


def test_operator_may_take_a_jump_for_true() -> None:
    arm = SupervisedArm().activate()
    with pytest.raises(ControllerError, match="cannot resume in mode holding"):
        arm.supervisor.resume()
    mislead(arm, 0.5, 0.5)
    assert arm.supervisor.resume() == "the measured positions are taken for true"
    assert arm.supervisor.answer(
        arm.t, arm.plant.q + np.array([0.0, 0.5]), arm.plant.v.copy(), arm.tau
    )
    assert arm.mode is Mode.BRAKING


@pytest.mark.parametrize("law", ControlLaw)
def test_emergency_stop_holds_under_each_law(law: ControlLaw) -> None:
    arm = SupervisedArm(law=law).activate()
    arm.plant.v[:] = [0.5, -0.3]
    arm.run(0.01)
    arm.supervisor.emergency_stop(True)
    arm.run(1.5)
    here = arm.plant.q.copy()
    arm.plant.push[:] = [8.0, 3.0]
    arm.run(0.2)
    arm.plant.push[:] = 0.0
    arm.run(2.0)
    assert arm.mode is Mode.EMERGENCY_STOP
    assert np.abs(arm.plant.q - here).max() < 0.003
    arm.supervisor.emergency_stop(False)
    arm.supervisor.resume()
    arm.run(1.2)
    hand = law == ControlLaw.gravity_compensation
    assert arm.mode is (Mode.GRAVITY_COMPENSATION if hand else Mode.HOLDING)
    assert arm.controller.guided == hand


@pytest.mark.parametrize("heard", [None, np.array([7.0, -2.0])], ids=["nothing", "a command"])
def test_arm_is_taken_over_within_the_rate_limit(heard: np.ndarray | None) -> None:
    arm = moving()
    last = arm.tau.copy()
    arm.supervisor.guarded("the sentinel commands")
    if heard is not None:
        arm.controller.in_force = last = heard
    arm.run(0.05)  # under the torque that was last
    arm.plant.v[:] = [3.0, -2.0]
    arm.supervisor.take_over(arm.t, arm.plant.q, arm.plant.v, "the sentinel commands no more")
    rate = arm.controller.settings.safety.torque_rate_limit
    for _ in range(20):
        arm.tick()
        assert (np.abs(arm.tau - last) <= 0.005 * rate).all()
        last = arm.tau.copy()


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
    arm.run(2.0)
    assert arm.mode is (Mode.FAULT if words else Mode.HOLDING)
    assert np.abs(arm.plant.q - START).max() < 1e-3
    if words:
        with pytest.raises(ControllerError, match="gains"):
            arm.supervisor.reset_fault()
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
    settings = arm.controller.settings
    assert "to be held, and its effort limit is 100" in arm.supervisor.objection(heavy, settings)
    assert "see payload, gravity" in arm.supervisor.objection(
        ARM, replace(settings, effort_limit_scale=0.01)
    )
    assert arm.supervisor.objection(ARM, settings) == ""
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
    arm.run(3.0)
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


def test_arm_that_falls_fast_is_caught_without_a_fault() -> None:
    arm = SupervisedArm(
        supervision={"start_velocity": math.inf},
        max_position_error=np.full(2, 0.002),
        saturation_timeout=0.001,
    )
    arm.plant.v[:] = [9.0, -9.0]
    arm.supervisor.listening = False
    arm.supervisor.activate()
    for _ in range(200):
        arm.supervisor.answer(arm.t, arm.plant.q, arm.plant.v, arm.tau)
        arm.plant.step(np.zeros(2))
        arm.t += 0.001
    arm.supervisor.start_anew("somebody listens")
    arm.run(3.0)
    assert arm.controller.gave_way > 3
    assert arm.mode is Mode.HOLDING and arm.speed < 1e-3
