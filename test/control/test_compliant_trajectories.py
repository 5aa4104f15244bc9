"""Trajectories that are followed by Cartesian impedance: the arm yields, and keeps its limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from robots import panda
from std_msgs.msg import Float64MultiArray
from task_arm import READY, SENDER, TaskArm

from rnea_control.control import ControlLaw, EndKind, Mode, feasibility, stream_intake
from rnea_control.control.references import Reference
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import ControllerError
from rnea_control.loop import other_inputs

GOAL = READY + np.array([0.3, 0.2, -0.2, 0.3, 0.1, -0.2, 0.3])


def compliant(rotors: float = 0.0, **arguments: object) -> TaskArm:
    """An arm that is held by cartesian_impedance; `rotors`: armature of its joints."""
    model = panda()
    model.armature = np.full(7, rotors)
    law = ControlLaw.cartesian_impedance
    return TaskArm(model=model, control_law=law, **arguments).activate()


def test_arm_follows_a_trajectory_by_pose_and_posture() -> None:
    arm = compliant()
    motion = arm.follow((2.0, *GOAL))
    worst = 0.0
    for _ in range(2000):
        arm.tick()
        worst = max(worst, arm.error)
    arm.run(0.5)
    assert worst < 2e-3 and arm.error < 1e-4
    assert arm.mode is Mode.HOLDING
    assert motion.ending.kind is EndKind.REACHED


def test_held_arm_yields_to_a_push_by_its_stiffness_and_comes_back() -> None:
    arm = compliant()
    start = arm.pose.copy()
    arm.force = np.array([0.0, 12.0, -8.0, 0.0, 0.0, 0.0])
    arm.run(4.0)
    K = arm.controller.rows.stiffness.reshape(6, 6)[:3, :3]
    moved = arm.pose[:3, 3] - start[:3, 3]
    np.testing.assert_allclose(moved, np.linalg.solve(K, arm.force[:3]), rtol=0.05, atol=1e-3)
    assert arm.mode is Mode.HOLDING
    arm.force[:] = 0.0
    arm.run(4.0)
    np.testing.assert_allclose(arm.pose[:3, 3], start[:3, 3], atol=1e-3)
    assert {mode for _, mode, _ in arm.changes} <= {Mode.HOLDING, Mode.WAITING}


def test_arm_that_is_moved_about_by_hand_is_not_restless() -> None:
    arm = compliant()
    for k in range(6):
        arm.force = np.array([0.0, 15.0 * (-1) ** k, 10.0, 0.0, 0.0, 0.0])
        arm.run(0.7)
        assert arm.mode is Mode.HOLDING, arm.changes[-1]


def test_push_in_motion_ends_no_motion() -> None:
    arm = compliant()
    motion = arm.follow((2.0, *GOAL))
    arm.run(0.7)
    arm.force = np.array([10.0, -15.0, 10.0, 0.0, 0.0, 0.0])
    arm.run(0.5)
    assert arm.error > 0.01 and arm.mode is Mode.MOVING
    arm.force[:] = 0.0
    arm.run(2.0)
    assert motion.ending.kind is EndKind.REACHED and arm.error < 1e-2


def test_arm_that_is_pushed_too_far_gives_way() -> None:
    """As under every law, its desired position is taken from it; the motion has ended."""
    arm = compliant(rotors=0.1, max_position_error=np.full(7, 0.05))
    arm.follow((2.0, *GOAL))
    arm.run(0.7)
    arm.force = np.array([0.0, 40.0, 0.0, 0.0, 0.0, 0.0])
    while not arm.controller.arm.gave_way:
        arm.tick()
        assert arm.error < 0.06
    arm.force[:] = 0.0
    arm.run(1.0)
    assert arm.mode is Mode.HOLDING and arm.speed < 0.01


def test_emergency_stop_holds_a_pushed_arm_where_it_is() -> None:
    """It does not pull the arm back to where it was desired."""
    arm = compliant(rotors=0.1)
    arm.force = np.array([0.0, 20.0, 0.0, 0.0, 0.0, 0.0])
    arm.run(3.0)
    at = arm.plant.q.copy()
    off = arm.error
    assert off > 0.02
    arm.supervisor.emergency_stop(True)
    arm.run(1.0)
    assert arm.mode is Mode.EMERGENCY_STOP and np.abs(arm.plant.q - at).max() < 0.1 * off
    arm.force[:] = 0.0
    arm.run(1.0)
    arm.supervisor.emergency_stop(False)
    arm.supervisor.resume()
    arm.run(1.0)
    assert arm.mode is Mode.HOLDING
    assert arm.controller.rows.reference == Reference.trajectory
    assert arm.speed < 1e-3


def test_law_changes_at_rest_without_a_jump() -> None:
    arm = TaskArm().activate()
    before, q = arm.tau.copy(), arm.plant.q.copy()
    impedance = replace(arm.controller.settings, control_law=ControlLaw.cartesian_impedance)
    arm.supervisor.change(arm.model, impedance)
    largest = 0.0
    for _ in range(1500):
        arm.tick()
        largest = max(largest, np.abs(arm.tau - before).max())
    assert largest < 0.05 and np.abs(arm.plant.q - q).max() < 1e-4
    arm.supervisor.change(arm.model, replace(impedance, control_law=ControlLaw.computed_torque))
    arm.run(1.0)
    assert np.abs(arm.plant.q - q).max() < 1e-4 and arm.mode is Mode.HOLDING


def test_missing_states_are_bridged() -> None:
    arm = compliant()
    arm.follow((2.0, *GOAL))
    arm.run(0.7)
    arm.lack(0.06)
    arm.run(2.5)
    assert arm.error < 2e-2 and arm.mode is Mode.HOLDING


def test_hand_guides_an_arm_that_yields() -> None:
    arm = compliant()
    arm.supervisor.guide()
    arm.run(0.5)
    assert arm.mode is Mode.GRAVITY_COMPENSATION
    arm.force = np.array([0.0, 5.0, 0.0, 0.0, 0.0, 0.0])
    start = arm.pose.copy()
    arm.run(1.0)
    assert arm.pose[1, 3] - start[1, 3] > 0.03


def test_stiffness_that_the_rate_of_the_states_does_not_allow_is_refused() -> None:
    arm = compliant()
    stiff = {**arm.controller.settings.more, "task.k_pos_x": 1e6}
    settings = replace(arm.controller.settings, more=stiff)
    objection = arm.supervisor.objection(arm.model, settings)
    assert "multiply the stiffnesses by" in objection
    law, rows = ControlLaw.cartesian_impedance, settings.rows(arm.model)
    of_arm = arm.model, Workspace(arm.model), law, settings, rows, READY
    assert feasibility.excessive_task_gain(*of_arm, 0.001) == objection


def test_stiffness_that_does_not_hold_an_arm_is_refused_for_joints_only() -> None:
    arm = TaskArm().activate()
    free = replace(arm.controller.settings, more={"task.k_pos_z": 0.0})
    free.rows(arm.model)
    with pytest.raises(ControllerError, match=r"task.k_pos_z is 0; it must be at least 50"):
        replace(free, control_law=ControlLaw.cartesian_impedance).rows(arm.model)


def test_stop_brings_back_the_stiffness_of_the_parameters() -> None:
    arm = compliant(rotors=0.1)
    K = arm.controller.rows.stiffness.copy()
    message = Float64MultiArray(data=[0.0] * 6)
    assert arm.hear(other_inputs.TARGET_STIFFNESS, message, SENDER) == stream_intake.TAKEN
    arm.run(0.5)
    assert arm.controller.rows.stiffness.max() < 1e-3
    arm.supervisor.emergency_stop(True)
    arm.run(0.5)
    np.testing.assert_allclose(arm.controller.rows.stiffness, K)
    assert arm.hear(other_inputs.TARGET_STIFFNESS, message, SENDER) == stream_intake.NOT_NOW


@pytest.mark.parametrize("error", [0.2, 0.02])
def test_tolerances_of_a_path_are_those_of_the_joints(error: float) -> None:
    arm = compliant()
    motion = arm.follow((2.0, *GOAL))
    arm.controller.arrays.tolerances.path_position[:] = error
    arm.run(0.7)
    arm.force = np.array([10.0, -20.0, 10.0, 0.0, 0.0, 0.0])
    arm.run(1.0)
    if error < 0.1:
        assert motion.ending.kind is EndKind.PATH_TOLERANCE_VIOLATED
    else:
        assert motion.ending is None
