"""Mode powerless, and the faults on the way to it: which events lead in and out, what is refused,
and what the reasons say."""

from __future__ import annotations

import numpy as np
import pytest
from streamed_arm import StreamedArm
from supervised_arm import START, SupervisedArm

from rnea_control.control import ControlLaw, Event, Mode
from rnea_control.control.mode import HAS_ARM
from rnea_control.exceptions import ControllerError, TrajectoryModeError

GOAL = (2.0, 1.1, 0.4)
SENTINEL = "the sentinel has let go of the arm"
NEVER = (Mode.INACTIVE, Mode.POWERLESS)
WEAK = np.full(2, 30.0)  # effort limits at which the arm is about as strong as a real one [Nm]


class WiredArm(SupervisedArm):
    """A supervised arm whose torques arrive changed by factors `wires`, shape (2,)."""

    wires = np.ones(2)

    def _pass(self) -> None:
        sent = self.tau
        self.tau = self.wires * sent
        super()._pass()
        self.tau = sent


def in_mode(mode: Mode, **safety) -> SupervisedArm:
    """An arm in a mode that has a way into powerless."""
    supervision = {"activation_check": "refuse"} if mode is Mode.CHECKING else {}
    arm = StreamedArm(supervision=supervision, **safety)
    if mode is Mode.INACTIVE:
        return arm
    arm.supervisor.activate()
    if mode is Mode.WAITING:
        return arm
    arm.run(0.02 if mode is Mode.CHECKING else 0.6)
    if mode in (Mode.MOVING, Mode.BRAKING):
        arm.follow(GOAL)
        arm.run(1.0)
    if mode is Mode.STREAMING:
        arm.send(START + 0.1)
        arm.tick()
    elif mode is Mode.BRAKING:
        arm.supervisor.hold()
    elif mode is Mode.GRAVITY_COMPENSATION:
        arm.supervisor.guide()
    elif mode is Mode.EMERGENCY_STOP:
        arm.supervisor.emergency_stop(True)
    elif mode is Mode.FAULT:
        arm.supervisor.fail("collision?", arm.t, arm.plant.q, arm.plant.v)
    elif mode is Mode.BLIND:
        arm.supervisor.happen(Event.LOST, "no states")
    elif mode is Mode.GUARDED:
        arm.supervisor.happen(Event.TAKEN_OVER, "the sentinel commands the arm")
    assert arm.mode is mode
    return arm


def powerless() -> SupervisedArm:
    arm = in_mode(Mode.MOVING)
    assert arm.supervisor.let_go(SENTINEL)
    return arm


def reversed_elbow(**arguments) -> WiredArm:
    """An arm whose elbow gets a torque of the wrong sign, after its fault and all that follows."""
    arm = WiredArm(effort_limit=WEAK, **arguments)
    arm.wires = np.array([1.0, -1.0])
    arm.supervisor.activate()
    return arm.run(0.6)


def reasons(arm: SupervisedArm, mode: Mode) -> list[str]:
    return [reason for _, new, reason in arm.changes if new is mode]


# The way in.


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode not in NEVER])
def test_controller_can_let_go_in_every_mode_in_which_it_is_active(mode: Mode) -> None:
    arm = in_mode(mode)
    motion = arm.controller.motion
    assert arm.supervisor.let_go(SENTINEL)
    assert arm.mode is Mode.POWERLESS and arm.supervisor.reason == SENTINEL
    assert arm.changes[-1] == (mode, Mode.POWERLESS, SENTINEL)
    assert motion is None or motion.ending.text == SENTINEL
    assert not arm.supervisor.unexplained  # who lets go knows why


def test_inactive_or_powerless_controller_has_nothing_to_let_go() -> None:
    arm = in_mode(Mode.INACTIVE)
    assert not arm.supervisor.let_go(SENTINEL) and arm.mode is Mode.INACTIVE
    assert not arm.controller.powerless
    arm = powerless()
    assert not arm.supervisor.let_go("again") and arm.supervisor.reason == SENTINEL


def test_reversed_torque_is_a_fault_whose_braking_does_not_help() -> None:
    arm = reversed_elbow()
    assert arm.mode is Mode.POWERLESS and arm.supervisor.unexplained
    path = [new for _, new, _ in arm.changes]
    assert path == [Mode.WAITING, Mode.HOLDING, Mode.FAULT, Mode.POWERLESS]
    (tripped,) = reasons(arm, Mode.FAULT)
    assert "elbow" in tripped
    # What was seen first stays in the reason.
    assert arm.supervisor.reason.startswith(f"{tripped}; braking does not help: elbow moves at")
    assert arm.supervisor.reason.endswith("the controller has let go of the arm")
    np.testing.assert_array_equal(arm.tau, 0.0)
    assert arm.run(0.5).mode is Mode.POWERLESS


# In it.


def test_powerless_arm_is_commanded_zero_torque_also_while_no_states_come() -> None:
    arm = powerless()
    arm.run(0.03)
    np.testing.assert_array_equal(arm.tau, 0.0)
    assert arm.tick()
    arm.tau[:] = 7.0
    assert arm.supervisor.answer_gap(arm.t + 0.05, arm.tau)
    np.testing.assert_array_equal(arm.tau, 0.0)
    arm.supervisor.miss(10.0)
    assert arm.mode is Mode.POWERLESS


def test_all_requests_are_refused_with_the_reason() -> None:
    arm = powerless()
    supervisor = arm.supervisor
    for request in (supervisor.resume, supervisor.hold, supervisor.guide):
        with pytest.raises(ControllerError, match=f"in mode powerless \\({SENTINEL}\\)"):
            request()
    with pytest.raises(ControllerError, match=f"{SENTINEL}; mend that, then deactivate and"):
        supervisor.reset_fault()
    with pytest.raises(TrajectoryModeError, match=f"{SENTINEL}; mend that, then deactivate and"):
        supervisor.situation(arm.t)
    with pytest.raises(TrajectoryModeError):
        arm.follow(GOAL)
    assert arm.mode is Mode.POWERLESS


def test_reset_of_the_fault_on_the_way_commands_nothing_again() -> None:
    arm = reversed_elbow()
    assert arm.supervisor.reset_fault() == "powerless"
    arm.run(0.05)
    assert arm.mode is Mode.POWERLESS and (arm.tau == 0.0).all()


@pytest.mark.parametrize("event", [event for event in Event if event is not Event.DEACTIVATED])
def test_no_event_but_a_deactivation_leads_out(event: Event) -> None:
    arm = powerless()
    state = (arm.t, arm.plant.q.copy(), arm.plant.v.copy())
    assert not arm.supervisor.happen(event, "whatever", state)
    assert arm.mode is Mode.POWERLESS
    arm.run(0.03)
    assert (arm.tau == 0.0).all()


def test_what_befalls_the_arm_meanwhile_changes_nothing() -> None:
    arm = powerless()
    supervisor, state = arm.supervisor, (arm.t, arm.plant.q.copy(), arm.plant.v.copy())
    supervisor.fail("collision?", *state)
    supervisor.hear_listeners(False, "nobody listens")
    supervisor.hear_listeners(True, "somebody listens")
    supervisor.take_over(*state, "the sentinel has gone")
    assert not supervisor.end("SIGINT")
    for _ in range(20):
        supervisor.refuse_state("joint_states lack a joint")
    assert arm.run(0.05).mode is Mode.POWERLESS and (arm.tau == 0.0).all()


def test_emergency_stop_meanwhile_counts_at_the_next_activation() -> None:
    arm = powerless()
    arm.supervisor.emergency_stop(True, "button")
    assert arm.mode is Mode.POWERLESS
    with pytest.raises(ControllerError, match="in mode powerless"):
        arm.supervisor.resume()
    arm.supervisor.happen(Event.DEACTIVATED, "told so")
    arm.plant.v[:] = 0.0
    assert arm.activate().mode is Mode.EMERGENCY_STOP
    arm.supervisor.emergency_stop(False, "button")
    arm.supervisor.resume()
    assert arm.run(0.5).mode is Mode.HOLDING


# The way out.


def test_arm_is_held_again_after_it_was_deactivated_mended_and_activated() -> None:
    arm = reversed_elbow()
    arm.supervisor.happen(Event.DEACTIVATED, "told so")
    assert arm.mode is Mode.INACTIVE
    arm.wires = np.ones(2)
    arm.plant.q[:], arm.plant.v[:] = (0.2, 0.1), 0.0
    here, arm._last = arm.plant.q.copy(), None  # nothing was in force
    arm.activate()
    assert arm.mode is Mode.HOLDING and not arm.supervisor.unexplained
    assert np.abs(arm.plant.q - here).max() < 1e-3
    arm.follow(GOAL)
    assert arm.run(2.3).mode is Mode.HOLDING
    assert np.abs(arm.plant.q - GOAL[1:]).max() < 1e-3


# Damping in place of none.


def test_verified_joints_are_damped_where_the_user_wants_that() -> None:
    supervision = {"activation_check": "warn", "power_down": "damp"}
    arm = SupervisedArm(supervision=supervision)
    arm.supervisor.activate()
    arm.run(1.0)
    assert arm.mode is Mode.HOLDING and arm.supervisor.verdict.verified.all()
    arm.supervisor.let_go(SENTINEL)
    arm.run(0.3)
    assert arm.speed > 0.1
    v = arm.plant.v.copy()
    arm.tick()
    assert (arm.tau * v < 0.0).all()
    assert arm.run(1.5).speed < 3.0
    free = powerless()
    free.plant.v[:] = 0.0
    assert max(free.run(0.1).speed for _ in range(15)) > 3.0


# Causes.


def test_likely_cause_comes_before_what_was_seen() -> None:
    arm = powerless()
    arm.supervisor.tell_cause("the torque of elbow has the wrong sign")
    assert arm.supervisor.reason == f"the torque of elbow has the wrong sign ({SENTINEL})"
    assert arm.changes[-1][:2] == (Mode.POWERLESS, Mode.POWERLESS)
    # A second one takes the place of the first.
    arm.supervisor.tell_cause("the torque of shoulder arrives not at all")
    assert arm.supervisor.reason == f"the torque of shoulder arrives not at all ({SENTINEL})"


def test_cause_of_a_fault_stays_in_its_reason_until_it_is_reset() -> None:
    arm = in_mode(Mode.MOVING, unmodeled_payload=0.0)
    arm.plant.push[:] = 60.0, 0.0
    while arm.mode is not Mode.FAULT:
        arm.tick()
    arm.plant.push[:] = 0.0
    assert arm.supervisor.unexplained
    seen = arm.supervisor.reason
    assert "shoulder" in seen
    arm.run(0.5)
    arm.supervisor.tell_cause("a push")
    assert arm.supervisor.reason == f"a push ({seen})"
    arm.supervisor.emergency_stop(True)
    arm.supervisor.tell_cause("another")
    assert arm.mode is Mode.EMERGENCY_STOP and arm.supervisor.reason == "emergency stop"
    arm.supervisor.emergency_stop(False)
    assert arm.supervisor.resume() == f"a push ({seen})" and arm.mode is Mode.FAULT
    arm.supervisor.reset_fault()
    assert arm.run(0.3).mode is Mode.HOLDING


def test_cause_that_comes_after_all_is_over_changes_nothing() -> None:
    arm = in_mode(Mode.HOLDING)
    told = len(arm.changes)
    arm.supervisor.tell_cause("the torque of elbow has the wrong sign")
    assert arm.supervisor.reason == "at the measured position" and len(arm.changes) == told


def test_cause_of_a_reversed_torque_is_found_in_what_was_recorded() -> None:
    """The arm had 0.6 s at most, from its activation on."""
    arm = reversed_elbow()
    cause = arm.supervisor.cause(arm.controller.recorded(0.4))
    assert "elbow has the wrong sign" in cause
    assert arm.supervisor.cause(tuple(rows[:5] for rows in arm.controller.recorded(0.4))) == ""


# Giving way.


def test_giving_way_while_braking_counts_as_well() -> None:
    """The arm is torn away again before it has come to rest: a law that shakes it."""
    arm = SupervisedArm(max_position_error=np.full(2, 0.05)).activate()
    while_braking = 0
    for side in (1.0, -1.0, 1.0, -1.0):
        arm.plant.push[:] = [24.0 * side, 0.0]
        before = arm.controller.gave_way
        while arm.controller.gave_way == before:
            mode = arm.mode
            arm.tick()
        while_braking += mode is Mode.BRAKING
        if arm.mode is Mode.FAULT:
            break
    assert while_braking >= 3
    assert arm.mode is Mode.FAULT and "gave way 4 times within 3 s" in arm.supervisor.reason
    arm.plant.push[:] = 0.0
    assert arm.run(2.0).speed < 1e-3


def test_tripped_bound_is_the_reason_of_the_fault_and_ends_the_motion() -> None:
    arm = in_mode(Mode.MOVING, unmodeled_payload=0.0)
    motion = arm.controller.motion
    arm.plant.push[:] = 60.0, 0.0
    while arm.mode is Mode.MOVING:
        arm.tick()
    arm.plant.push[:] = 0.0
    assert arm.mode is Mode.FAULT and "shoulder" in arm.supervisor.reason
    assert motion.ending.text == arm.supervisor.reason
    with pytest.raises(TrajectoryModeError, match="call ~/reset_fault first"):
        arm.supervisor.situation(arm.t)
    assert arm.run(1.0).speed < 1e-3 and arm.mode is Mode.FAULT


@pytest.mark.parametrize("mode", [mode for mode in HAS_ARM if mode is not Mode.CHECKING])
def test_bounds_hold_wherever_the_controller_moves_the_arm(mode: Mode) -> None:
    """Stopped arms may be pushed; a blind controller has no states to bound."""
    arm = in_mode(mode)
    if mode is Mode.BLIND:
        assert arm.controller.watch == 0
        return
    stopped = mode in (Mode.EMERGENCY_STOP, Mode.FAULT)
    assert arm.controller.watch == (2 if stopped else 1)


def test_law_that_holds_no_position_is_braked_by_another_one_after_a_violation() -> None:
    arm = SupervisedArm(law=ControlLaw.gravity_compensation).activate()
    arm.plant.push[:] = 70.0, 0.0
    while arm.mode is Mode.GRAVITY_COMPENSATION:
        arm.tick()
    assert arm.mode is Mode.FAULT and arm.controller.braced
    arm.plant.push[:] = 0.0
    assert arm.run(1.5).speed < 1e-3
    arm.supervisor.reset_fault()
    assert arm.mode is Mode.BRAKING or arm.mode is Mode.GRAVITY_COMPENSATION
    assert not arm.controller.braced
