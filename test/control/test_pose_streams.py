"""A supervised arm whose tip follows target poses and twists: begin, limits, end, refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import serialize_message
from robots import example_robot, load_quietly
from task_arm import OTHER, READY, TCP, TaskArm

from rnea_control.control import ControlLaw, Mode, pose_intake, stream_intake
from rnea_control.control.feasibility import excessive_task_gain
from rnea_control.control.references import Reference
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import ControllerError
from rnea_control.loop import other_inputs
from rnea_control.messages import joint_targets, tip_targets

IDENTITY = np.eye(3)


def test_arm_follows_poses_and_comes_to_rest_when_they_end() -> None:
    arm = TaskArm().activate()
    start = arm.pose.copy()
    for k in range(100):
        wanted = start[:3, 3] + [0.0, 0.05 * math.sin(0.02 * k * math.pi), 0.0]
        assert arm.send(wanted, start[:3, :3]) == stream_intake.TAKEN
        arm.run(0.02)
    assert arm.mode is Mode.STREAMING and arm.controller.rows.reference == Reference.pose_stream
    assert np.abs(arm.pose[:3, 3] - wanted).max() < 0.01
    arm.run(1.5)
    assert arm.mode is Mode.HOLDING and arm.speed < 2e-3
    assert arm.controller.rows.reference == Reference.trajectory
    assert "no target has come for stream.target_timeout" in arm.changes[-2][2]


@pytest.mark.parametrize("law", [ControlLaw.cartesian_impedance, ControlLaw.task_computed_torque])
def test_first_target_moves_nothing_by_itself(law: ControlLaw) -> None:
    arm = TaskArm(law).activate()
    before, start = arm.tau.copy(), arm.pose.copy()
    arm.hold_pose(1.0)
    np.testing.assert_allclose(arm.tau, before, atol=0.05)
    assert np.abs(arm.pose - start).max() < 1e-4


def test_task_computed_torque_follows_exactly() -> None:
    arm = TaskArm(ControlLaw.task_computed_torque).activate()
    start, worst = arm.pose.copy(), 0.0
    for k in range(200):
        arm.send(start[:3, 3] + [0.05 * math.sin(0.02 * k * math.pi), 0.0, 0.0], start[:3, :3])
        for _ in range(20):
            arm.tick()
            if k > 50:
                error = arm.controller.rows.task_error
                worst = max(worst, np.abs(error[:3]).max())
    assert worst < 5e-4


@pytest.mark.parametrize("seed", range(5))
def test_desired_pose_stays_within_its_limits(seed: int) -> None:
    """Random jumps of the target, pauses, and twists."""
    parameters = {
        "task.max_velocity": [0.3, 0.9],
        "task.max_acceleration": [2.0, 6.0],
        "task.box": [0.2, -0.2, 0.3, 0.5, 0.2, 0.7],
    }
    arm = TaskArm(ControlLaw.task_computed_torque, parameters=parameters).activate()
    rng, start, rows = np.random.default_rng(seed), arm.pose.copy(), arm.controller.rows
    last, h = np.zeros(6), 1e-3
    for _ in range(150):
        if rng.random() < 0.8:
            turn = pin.exp3(rng.normal(0.0, 0.2, 3)) @ start[:3, :3]
            arm.send(start[:3, 3] + rng.normal(0.0, 0.08, 3), turn)
        elif rng.random() < 0.5:
            arm.send_twist(rng.normal(0.0, 0.4, 3), rng.normal(0.0, 1.0, 3))
        for _ in range(rng.integers(1, 40)):
            arm.tick()
            twist = rows.desired_twist.copy()
            for part, fastest, most in ((slice(0, 3), 0.3, 2.0), (slice(3, 6), 0.9, 6.0)):
                assert np.linalg.norm(twist[part]) <= fastest * (1 + 1e-9)
                if rows.reference == Reference.pose_stream:
                    change = np.linalg.norm(twist[part] - last[part]) / h
                    assert change <= most * (1 + 1e-6) + 1e-6
            last = twist if rows.reference == Reference.pose_stream else np.zeros(6)
            if rows.reference == Reference.pose_stream:
                low, high = np.array(parameters["task.box"]).reshape(2, 3)
                p = rows.desired_pose[:3]
                assert (p > low - 0.02).all() and (p < high + 0.02).all()
    assert arm.mode in (Mode.STREAMING, Mode.BRAKING, Mode.HOLDING)


def test_step_of_the_target_is_the_closed_form() -> None:
    arm = TaskArm(parameters={"stream.bandwidth": 20.0}).activate()
    start, rows = arm.pose.copy(), arm.controller.rows
    arm.hold_pose(0.2)
    arm.send(start[:3, 3] + [0.002, 0.0, 0.0], start[:3, :3])
    rows.target_twist = 0.0  # only this target
    t0 = arm.t
    for _ in range(60):
        arm.tick()
        passed = 20.0 * (arm.t - t0 - 0.001 + arm.controller.settings.dead_time)
        expected = 0.002 * (1.0 - (1.0 + passed) * math.exp(-passed))
        assert abs(rows.desired_pose[0] - start[0, 3] - expected) < 4e-5


def message(numbers: list[float], frame: str) -> bytes:
    pose = PoseStamped()
    pose.header.frame_id = frame
    place, turn = pose.pose.position, pose.pose.orientation
    place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w = numbers
    return serialize_message(pose)


ROOT = "panda_link0"


@pytest.mark.parametrize(
    ("change", "frame", "result"),
    [
        ({0: math.nan}, ROOT, joint_targets.NOT_FINITE),
        ({6: math.inf}, ROOT, joint_targets.NOT_FINITE),
        ({3: 0.0, 4: 0.0, 5: 0.0, 6: 0.0}, ROOT, tip_targets.NO_ORIENTATION),
        ({3: 3.0}, ROOT, tip_targets.NO_ORIENTATION),
        ({}, "camera", tip_targets.UNKNOWN_FRAME),
        ({}, "", tip_targets.UNKNOWN_FRAME),
        ({}, "panda_link", tip_targets.UNKNOWN_FRAME),
        ({0: 2.0}, ROOT, stream_intake.TOO_FAR),
    ],
)
def test_target_that_is_refused_moves_nothing(change: dict, frame: str, result: int) -> None:
    arm = TaskArm().activate()
    start = arm.pose
    numbers = [*start[:3, 3], *pin.Quaternion(start[:3, :3].copy()).coeffs()]
    for k, value in change.items():
        numbers[k] = value
    assert arm.model.root_link == ROOT
    data = message(numbers, frame)
    assert arm.hear(other_inputs.TARGET_POSE, data, OTHER) == result
    assert not arm.controller.streams and arm.others.stream.refused == 1
    if result == stream_intake.TOO_FAR:
        stream = arm.others.stream
        assert (stream.joint, round(stream.value, 3)) == (
            pose_intake.FAR_POSITION,
            round(float(2.0 - start[0, 3]), 3),
        )


def test_bytes_that_are_cut_are_refused() -> None:
    arm = TaskArm().activate()
    whole = message([0.3, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0], ROOT)
    for size in range(len(whole) - 1):
        result = arm.hear(other_inputs.TARGET_POSE, whole[:size], OTHER)
        assert result in (joint_targets.UNREADABLE, tip_targets.UNKNOWN_FRAME)
    assert not arm.controller.streams


@pytest.mark.parametrize("frame", [TCP, "panda_link4", "panda_hand"])
def test_pose_in_the_frame_of_a_link(frame: str) -> None:
    """The pose of the tip there, a little off."""
    arm = TaskArm().activate()
    tip = arm.pose.copy()
    arm.tip, own = frame, arm.tip
    X = arm.pose.copy()
    arm.tip = own
    wanted = tip.copy()
    wanted[:3, 3] += [0.01, -0.02, 0.015]
    relative = np.linalg.inv(X) @ wanted
    assert arm.send(relative[:3, 3], relative[:3, :3], frame) == stream_intake.TAKEN
    np.testing.assert_allclose(arm.controller.rows.target_pose[:3], wanted[:3, 3], atol=1e-6)
    turned = pin.Quaternion(wanted[:3, :3]).coeffs()
    assert abs(abs(turned @ arm.controller.rows.target_pose[3:]) - 1.0) < 1e-9


def test_twist_moves_the_tip_until_it_ends() -> None:
    arm = TaskArm(ControlLaw.task_computed_torque).activate()
    start = arm.pose.copy()
    for _ in range(50):
        assert arm.send_twist([0.0, 0.1, 0.0], [0.0, 0.0, 0.2]) == stream_intake.TAKEN
        arm.run(0.02)
    moved = arm.pose[:3, 3] - start[:3, 3]
    turned = pin.log3(arm.pose[:3, :3] @ start[:3, :3].T)
    np.testing.assert_allclose(moved, [0.0, 0.1, 0.0], atol=0.012)
    np.testing.assert_allclose(turned, [0.0, 0.0, 0.2], atol=0.025)
    arm.run(1.0)
    assert arm.mode is Mode.HOLDING and arm.speed < 1e-3


def test_twist_in_the_frame_of_the_tip() -> None:
    arm = TaskArm(ControlLaw.task_computed_torque).activate()
    start = arm.pose.copy()
    for _ in range(25):
        arm.send_twist([0.0, 0.0, 0.1], [0.0, 0.0, 0.0], TCP)
        arm.run(0.02)
    way = start[:3, :3].T @ (arm.pose[:3, 3] - start[:3, 3])
    np.testing.assert_allclose(way, [0.0, 0.0, 0.05], atol=0.006)


def test_joint_targets_are_the_posture_while_a_pose_is_followed() -> None:
    """They move the elbow, not the tip."""
    arm = TaskArm(parameters={"nullspace.stiffness": 30.0}).activate()
    start, elbow = arm.pose.copy(), READY + np.array([0.4, 0, 0, 0, 0, 0, 0])
    largest = 0.0
    for _ in range(150):
        arm.send(start[:3, 3], start[:3, :3])
        assert arm.send_posture(elbow) == stream_intake.TAKEN
        arm.run(0.02)
        largest = max(largest, np.abs(arm.pose[:3, 3] - start[:3, 3]).max())
    assert np.abs(arm.plant.q - READY).max() > 0.1
    assert largest < 1e-3
    assert arm.send_posture(READY, (8, 8)) == stream_intake.FOREIGN
    assert arm.send_posture(np.full(7, math.nan)) == joint_targets.NOT_FINITE
    assert arm.controller.rows.posture[0] == elbow[0]


def test_posture_stays_within_the_limits() -> None:
    arm = TaskArm().activate()
    arm.hold_pose(0.02)
    beyond = arm.model.upper + 1.0
    assert arm.send_posture(beyond) == stream_intake.TAKEN
    np.testing.assert_allclose(arm.controller.rows.posture, arm.model.upper, atol=0.2)
    assert (arm.controller.rows.posture <= arm.model.upper).all()


def test_missing_states_end_the_motion_of_the_tip() -> None:
    """Although targets go on."""
    arm = TaskArm(ControlLaw.task_computed_torque).activate()
    for _ in range(10):
        arm.send_twist([0.0, 0.2, 0.0], [0.0, 0.0, 0.0])
        arm.run(0.02)
    fastest = float(arm.controller.rows.desired_twist[1])
    assert fastest > 0.1
    for _ in range(4):
        arm.send_twist([0.0, 0.2, 0.0], [0.0, 0.0, 0.0])
        arm.lack(0.02)
    assert arm.controller.rows.desired_twist[1] < 0.7 * fastest


def test_second_publisher_is_not_followed_until_the_first_ends() -> None:
    arm = TaskArm().activate()
    arm.hold_pose(0.2)
    X = arm.pose
    assert arm.send(X[:3, 3], X[:3, :3], publisher=OTHER) == stream_intake.FOREIGN
    arm.run(0.2)
    assert arm.send(X[:3, 3], X[:3, :3], publisher=OTHER) == stream_intake.TAKEN


@pytest.mark.parametrize("law", [ControlLaw.cartesian_impedance, ControlLaw.task_computed_torque])
def test_emergency_stop_ends_a_stream_in_motion(law: ControlLaw) -> None:
    arm = TaskArm(law).activate()
    for _ in range(50):
        arm.send_twist([0.0, 0.3, 0.0], [0.0, 0.0, 0.0])
        arm.run(0.02)
    assert np.linalg.norm(arm.jacobian_at(arm.plant.q)[:3] @ arm.plant.v) > 0.25
    begin = arm.pose.copy()
    arm.supervisor.emergency_stop(True)
    assert arm.controller.rows.reference == Reference.trajectory
    for _ in range(30):
        assert arm.send_twist([0.0, 0.3, 0.0], [0.0, 0.0, 0.0]) == stream_intake.NOT_NOW
        arm.run(0.01)
    assert arm.speed < 0.02 and np.linalg.norm(arm.pose[:3, 3] - begin[:3, 3]) < 0.03
    assert arm.mode is Mode.EMERGENCY_STOP


def test_hold_and_a_trajectory_end_a_stream_without_a_jump() -> None:
    arm = TaskArm().activate()
    arm.force[:3] = 4.0, 0.0, 4.0  # so that the laws' torques differ
    arm.hold_pose(2.0)
    before = arm.tau.copy()
    arm.supervisor.hold()
    steps = []
    for _ in range(1000):
        arm.tick()
        steps.append(np.abs(arm.tau - before).max())
        before = arm.tau.copy()
    assert max(steps) < 0.6 and arm.mode is Mode.HOLDING
    arm.hold_pose(1.0)
    arm.run(0.05)
    q = arm.plant.q
    arm.follow((1.0, *(q + 0.1)))
    arm.run(3.0)
    assert arm.mode is Mode.HOLDING and np.abs(arm.plant.q - q - 0.1).max() < 0.08


def test_states_that_stay_away_bring_the_arm_to_rest() -> None:
    arm = TaskArm().activate()
    for _ in range(40):
        arm.send_twist([0.0, 0.2, 0.0], [0.0, 0.0, 0.0])
        arm.run(0.02)
    assert arm.speed > 0.3
    arm.lack(0.2)  # later a torque that is not fed back lets an arm without friction move again
    assert arm.mode is Mode.BLIND and arm.speed < 0.05
    arm.run(1.0)
    assert arm.mode is Mode.HOLDING and arm.speed < 5e-3


def test_motion_toward_a_singular_posture_slows_down_and_the_way_back_does_not() -> None:
    """The arm stretches; the condition number stays below that of a stop."""
    arm = TaskArm(ControlLaw.task_computed_torque).activate()
    conditions = []
    for _ in range(300):
        arm.send_twist([0.25, 0.0, 0.0], [0.0, 0.0, 0.0])
        arm.run(0.02)
        conditions.append(np.linalg.cond(arm.jacobian_at(arm.plant.q)))
    assert 25.0 < max(conditions) < 32.0 and arm.speed < 0.05
    assert arm.mode is Mode.STREAMING
    away = arm.pose[0, 3]
    for _ in range(50):
        arm.send_twist([-0.25, 0.0, 0.0], [0.0, 0.0, 0.0])
        arm.run(0.02)
    assert arm.pose[0, 3] < away - 0.15


@pytest.mark.parametrize("joints", [(1, 2, 4, 5, 6), (1, 2, 4, 6)])
def test_arm_of_fewer_joints_follows_in_the_directions_that_it_can_move(joints: tuple) -> None:
    """A direction in which no joint moves the tip is no singular posture, which it would leave."""
    model = load_quietly(example_robot("panda"), tuple(f"panda_joint{i}" for i in joints))
    law, q = ControlLaw.task_computed_torque, READY[[i - 1 for i in joints]]
    arm = TaskArm(law, model=model, q=q).activate()
    start = arm.pose.copy()
    for k in range(50):
        wanted = start[:3, 3] + [0.0, 0.0, 0.04 * math.sin(0.04 * k * math.pi)]
        assert arm.send(wanted, start[:3, :3]) == stream_intake.TAKEN
        arm.run(0.02)
        if k in (12, 37):
            assert abs(arm.pose[2, 3] - wanted[2]) < 0.008
    assert arm.controller.rows.condition < 10.0


def test_tip_that_is_pushed_yields_and_returns() -> None:
    """No guard takes a push within `task.max_force` for a fault."""
    arm = TaskArm().activate()
    start, rng = arm.pose.copy(), np.random.default_rng(2)
    for _ in range(12):
        push = rng.standard_normal(3)
        arm.force[:3] = 40.0 * push / np.linalg.norm(push)
        arm.hold_pose(0.4, start[:3, 3], start[:3, :3])
        assert np.linalg.norm(arm.pose[:3, 3] - start[:3, 3]) > 0.03
        arm.force[:] = 0.0
        arm.hold_pose(0.6, start[:3, 3], start[:3, :3])
        assert arm.mode is Mode.STREAMING, arm.changes[-1]
    arm.hold_pose(1.0, start[:3, 3], start[:3, :3])
    assert np.abs(arm.pose - start).max() < 2e-3


@pytest.mark.parametrize(
    ("law", "parameters", "words"),
    [
        (
            ControlLaw.cartesian_impedance,
            {"task.k_rot_z": 3000.0},
            "natural frequency of 673 rad/s; states at 1000 Hz",
        ),
        (
            ControlLaw.task_computed_torque,
            {"task.bandwidth": 400.0},
            "task.bandwidth is 400 rad/s; states at 1000 Hz",
        ),
    ],
)
def test_gains_that_the_rate_of_the_states_does_not_allow_are_refused(
    law: ControlLaw, parameters: dict, words: str
) -> None:
    arm = TaskArm(law, parameters=parameters).activate()
    X = arm.pose
    assert arm.send(X[:3, 3], X[:3, :3]) == pose_intake.SHAKES
    assert words in arm.supervisor.tip_objection and not arm.controller.streams
    softer = replace(arm.controller.settings, more={})
    arm.supervisor.change(arm.model, softer)
    arm.run(0.2)
    arm.hold_pose(0.1)
    assert arm.mode is Mode.STREAMING
    stiffer = replace(softer, more=parameters)
    assert words in arm.supervisor.objection(arm.model, stiffer)


def test_law_of_the_tip_does_not_change_while_it_follows_poses() -> None:
    arm = TaskArm().activate()
    other = replace(arm.controller.settings, task_law=ControlLaw.task_computed_torque)
    assert arm.supervisor.objection(arm.model, other) == ""
    arm.hold_pose(0.1)
    assert "while the tip follows poses" in arm.supervisor.objection(arm.model, other)


def test_ordinary_gains_suit_states_of_an_ordinary_rate() -> None:
    arm = TaskArm().activate()
    settings, rows = arm.controller.settings, arm.controller.arrays.settings[0]
    given = arm.model, Workspace(arm.model), settings.task_law, settings, rows, READY
    for rate, allowed in ((1000.0, True), (500.0, True), (100.0, False)):
        assert (excessive_task_gain(*given, 1.0 / rate) == "") is allowed, rate


@pytest.mark.parametrize(
    ("tip", "words"),
    [("gripper", "the robot has the links"), (ROOT, "no joint of `joints` moves")],
)
def test_tip_that_cannot_be_moved_is_refused(tip: str, words: str) -> None:
    arm = TaskArm()
    with pytest.raises(ControllerError, match=words):
        arm.controller.settings = replace(arm.controller.settings, tip=tip)
    with pytest.raises(ControllerError, match=r"task.box is .* below its upper bound"):
        box = {"task.box": [0.0, 0.0, 0.0, 1.0, -1.0, 1.0]}
        arm.controller.settings = replace(arm.controller.settings, more=box)
