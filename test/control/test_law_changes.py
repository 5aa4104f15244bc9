"""Another control law while an arm is held: the torque changes over the blend time, and the arm
takes up the reference that the law has at rest."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from controllers import ARM, JOINT_SPACE
from supervised_arm import START, SupervisedArm, stiff_gains

from rnea_control.control import ControlLaw, Mode
from rnea_control.control.laws import JOINT_LAWS, TASK_LAWS, law_in_force
from rnea_control.control.layout import Settings, State
from rnea_control.control.references import Reference

BLEND_TIME = 0.2
GOAL = (2.0, 1.1, 0.4)
SAG = 0.12  # of the arm under PD without gravity [rad]
CHANGES = list(permutations(JOINT_SPACE, 2))


def held(law: ControlLaw) -> SupervisedArm:
    arm = SupervisedArm(law=law, blend_time=BLEND_TIME).activate()
    arm.run(0.1)
    return arm


def change(arm: SupervisedArm, law: ControlLaw, scale: float = 1.0) -> None:
    old, model = arm.controller.settings, arm.controller.model
    gains = stiff_gains(model, law, START)
    gains = replace(gains, p=scale * gains.p, d=scale * gains.d)
    assert not arm.supervisor.objection(model, replace(old, gains=gains, control_law=law))
    arm.supervisor.change(model, replace(old, gains=gains, control_law=law))


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_arm_at_rest_changes_to_the_reference_of_the_law(
    before: ControlLaw, after: ControlLaw
) -> None:
    arm = held(before)
    change(arm, after)
    arm.run(1.0)
    by_hand = after is ControlLaw.gravity_compensation
    assert arm.mode is (Mode.GRAVITY_COMPENSATION if by_hand else Mode.HOLDING)
    assert arm.controller.rows.reference == (Reference.hand if by_hand else Reference.trajectory)
    off = SAG if ControlLaw.pd in (before, after) else 0.02
    assert np.abs(arm.plant.q - START).max() < off
    if not by_hand:
        arm.follow(GOAL)
        arm.run(2.5)
        assert np.abs(arm.plant.q - GOAL[1:]).max() < off


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_torque_of_the_law_before_fades_out(before: ControlLaw, after: ControlLaw) -> None:
    """The feedback of the two laws differs by far, as a constant torque pushes the arm."""
    arm = held(before)
    arm.plant.push[:] = [6.0, 2.0]
    arm.run(0.5)
    last, settled = arm.tau.copy(), np.abs(arm.tau).max()
    change(arm, after, scale=0.5)
    for _ in range(round(BLEND_TIME / 0.001)):
        arm.tick()
        assert np.abs(arm.tau - last).max() < 0.02 * settled
        last = arm.tau.copy()


def test_integral_of_the_law_before_ends() -> None:
    """An acceleration is no torque."""
    arm = held(ControlLaw.computed_torque)
    integrating = replace(arm.controller.settings.gains, i=np.full(2, 100.0))
    arm.controller.settings = replace(arm.controller.settings, gains=integrating)
    arm.plant.push[:] = [6.0, 2.0]
    arm.run(0.5)
    assert np.abs(arm.controller.rows.integral).min() > 0.1
    change(arm, ControlLaw.feedforward_pd)
    assert not arm.controller.rows.integral.any()


def test_law_stays_while_the_arm_moves() -> None:
    arm = held(ControlLaw.computed_torque)
    arm.follow(GOAL)
    arm.run(0.5)
    other = replace(arm.controller.settings, control_law=ControlLaw.pd_gravity)
    assert arm.supervisor.objection(ARM, other) == (
        "control_law cannot change to pd_gravity in mode moving (following a trajectory), only "
        "while the arm rests in mode holding or gravity_compensation"
    )


def test_stopped_arm_takes_laws_that_hold_it() -> None:
    """After a fault another law may be the remedy."""
    arm = held(ControlLaw.computed_torque)
    arm.supervisor.emergency_stop(True)
    arm.run(0.2)
    by_hand = replace(arm.controller.settings, control_law=ControlLaw.gravity_compensation)
    assert "in mode emergency_stop" in arm.supervisor.objection(ARM, by_hand)
    change(arm, ControlLaw.pd_gravity)
    arm.run(0.5)
    assert arm.mode is Mode.EMERGENCY_STOP and np.abs(arm.plant.q - START).max() < 0.01


def test_hand_goes_on_guiding_under_another_law_that_follows_trajectories() -> None:
    arm = held(ControlLaw.computed_torque)
    arm.supervisor.guide()
    arm.run(0.1)
    change(arm, ControlLaw.pd_gravity)
    arm.run(0.1)
    assert arm.mode is Mode.GRAVITY_COMPENSATION and arm.controller.guided


@pytest.mark.parametrize("law", JOINT_LAWS)
@pytest.mark.parametrize("task_law", TASK_LAWS)
def test_kernels_and_settings_agree_about_the_law_of_a_reference(
    law: ControlLaw, task_law: ControlLaw
) -> None:
    settings, state = Settings.zeros(2), State.zeros(2)
    settings.joint_law, settings.task_law = law, task_law
    of_python = replace(SupervisedArm().controller.settings, control_law=law, task_law=task_law)
    for reference in Reference:
        state.reference = reference
        assert law_in_force(settings, state) == of_python.law_of(reference)
