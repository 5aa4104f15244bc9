"""Stiffness and wrench that are set while a pose is followed."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest
from geometry_msgs.msg import WrenchStamped
from std_msgs.msg import Float64MultiArray
from task_arm import OTHER, SENDER, TCP, TaskArm

from rnea_control.control import ControlLaw, pose_settings_intake, stream_intake
from rnea_control.loop import other_inputs
from rnea_control.messages import joint_targets, tip_targets

TIMEOUT = 0.1  # stream.target_timeout [s]
SOFT = np.array([200.0, 300.0, 400.0, 10.0, 15.0, 20.0])
TURNED = pin.exp3(np.array([0.2, -0.3, 0.4]))


def stiffness(numbers: np.ndarray) -> Float64MultiArray:
    return Float64MultiArray(data=np.ravel(numbers).tolist())


def turned_stiffness() -> np.ndarray:
    """Soft along one axis of a turned frame, stiff along the others."""
    turn = np.zeros((6, 6))
    turn[:3, :3] = turn[3:, 3:] = TURNED
    return turn @ np.diag(SOFT) @ turn.T


def set_stiffness(arm: TaskArm, numbers: np.ndarray, publisher: tuple[int, int] = SENDER) -> int:
    return arm.hear(other_inputs.TARGET_STIFFNESS, stiffness(numbers), publisher)


def wrench(force: object, moment: object = (0.0, 0.0, 0.0), frame: str = "") -> WrenchStamped:
    message = WrenchStamped()
    message.header.frame_id = frame or "panda_link0"
    for part, numbers in ((message.wrench.force, force), (message.wrench.torque, moment)):
        part.x, part.y, part.z = map(float, numbers)
    return message


def hold(arm: TaskArm, X: np.ndarray, seconds: float, beside: object = None) -> None:
    """The pose X is followed; a wrench may be sent beside it."""
    for _ in range(round(seconds / 0.02)):
        assert arm.send(X[:3, 3], X[:3, :3]) == stream_intake.TAKEN
        if beside is not None:
            assert arm.hear(other_inputs.TARGET_WRENCH, beside, SENDER) == stream_intake.TAKEN
        arm.run(0.02)


@pytest.mark.parametrize("whole", [False, True])
def test_arm_yields_to_a_force_by_the_stiffness_of_the_message(whole: bool) -> None:
    arm = TaskArm(parameters={"task.error_clip": [1.0, 3.0]}).activate()
    X = arm.pose.copy()
    hold(arm, X, 0.2)
    K = turned_stiffness() if whole else np.diag(SOFT)
    assert set_stiffness(arm, K if whole else SOFT) == stream_intake.TAKEN
    arm.force = np.array([4.0, -3.0, 5.0, 0.1, 0.2, -0.1])
    hold(arm, X, 4.0)
    np.testing.assert_allclose(arm.controller.rows.stiffness, K.ravel(), atol=1e-9)
    error = arm.controller.rows.task_error
    np.testing.assert_allclose(-error[:3], np.linalg.solve(K, arm.force)[:3], rtol=0.02, atol=1e-4)


def test_stiffness_is_ramped_and_adds_no_more_than_the_power() -> None:
    power = 0.5
    arm = TaskArm(parameters={"task.max_power": power}).activate()
    X = arm.pose.copy()
    arm.force = np.array([0.0, 0.0, 20.0, 0.0, 0.0, 0.0])
    hold(arm, X, 1.0)
    assert set_stiffness(arm, 2.0 * SOFT) == stream_intake.TAKEN
    rows, growth = arm.controller.rows, 0.0
    for _ in range(40):
        assert arm.send(X[:3, 3], X[:3, :3]) == stream_intake.TAKEN
        for _ in range(20):
            before, e = rows.stiffness.copy(), rows.task_error.copy()
            arm.tick()
            added = 0.5 * e @ (rows.stiffness - before).reshape(6, 6) @ e
            growth = max(growth, added / 1e-3)
    assert 0.5 * power < growth <= power * (1.0 + 1e-6)


def test_a_parameter_replaces_the_stiffness_of_a_message_and_a_new_stream_begins_with_it() -> None:
    arm = TaskArm().activate()
    X = arm.pose.copy()
    hold(arm, X, 0.2)
    own = arm.controller.rows.stiffness.copy()
    assert set_stiffness(arm, SOFT) == stream_intake.TAKEN
    hold(arm, X, 0.5)
    np.testing.assert_allclose(arm.controller.rows.stiffness, np.diag(SOFT).ravel())
    arm.controller.arrays.settings[0].task_stiffness[2] += 10.0
    hold(arm, X, 0.5)
    changed = own.reshape(6, 6) + np.diag([0, 0, 10.0, 0, 0, 0])
    np.testing.assert_allclose(arm.controller.rows.stiffness, changed.ravel())
    assert set_stiffness(arm, SOFT) == stream_intake.TAKEN
    arm.run(1.5)
    assert not arm.controller.streams
    hold(arm, X, 0.1)
    np.testing.assert_allclose(arm.controller.rows.stiffness, changed.ravel())


def off_diagonal() -> np.ndarray:
    K = np.diag(SOFT)
    K[0, 1] = 5.0
    return K


@pytest.mark.parametrize(
    ("numbers", "result"),
    [
        (SOFT[:5], joint_targets.WRONG_LENGTH),
        (np.zeros(0), joint_targets.WRONG_LENGTH),
        (np.ones(37), joint_targets.WRONG_LENGTH),
        (SOFT * [1, 1, math.nan, 1, 1, 1], joint_targets.NOT_FINITE),
        (-SOFT, pose_settings_intake.NO_STIFFNESS),
        (SOFT * [1, 1, 1, 1, 1, -0.01], pose_settings_intake.NO_STIFFNESS),
        (off_diagonal(), pose_settings_intake.NO_STIFFNESS),
        (np.ones((6, 6)) - 2.0 * np.eye(6), pose_settings_intake.NO_STIFFNESS),
        (1e4 * SOFT, pose_settings_intake.TOO_STIFF),
        (np.full(6, 1e300), pose_settings_intake.TOO_STIFF),
        (np.full(6, 1.7e308), pose_settings_intake.NO_STIFFNESS),  # its trace is infinite
    ],
)
def test_stiffness_that_is_none_or_too_large_changes_nothing(
    numbers: np.ndarray, result: int
) -> None:
    arm = TaskArm().activate()
    X = arm.pose.copy()
    hold(arm, X, 0.2)
    before = arm.controller.rows.target_stiffness.copy()
    assert set_stiffness(arm, numbers) == result
    np.testing.assert_array_equal(arm.controller.rows.target_stiffness, before)
    assert arm.others.stiffness.refused == 1 and not arm.others.stiffness.taken
    hold(arm, X, 0.2)


def test_stiffness_of_the_refusal_is_taken() -> None:
    arm = TaskArm().activate()
    X = arm.pose.copy()
    hold(arm, X, 0.2)
    assert set_stiffness(arm, 1e4 * SOFT) == pose_settings_intake.TOO_STIFF
    factor = arm.others.stiffness.value
    assert set_stiffness(arm, 1.001 * factor * 1e4 * SOFT) == pose_settings_intake.TOO_STIFF
    assert set_stiffness(arm, 0.999 * factor * 1e4 * SOFT) == stream_intake.TAKEN
    hold(arm, X, 2.0)
    assert arm.speed < 1e-3


def test_zero_stiffness_lets_the_tip_go() -> None:
    arm = TaskArm().activate()
    X = arm.pose.copy()
    hold(arm, X, 0.2)
    assert set_stiffness(arm, np.zeros(6)) == stream_intake.TAKEN
    hold(arm, X, 0.3)
    arm.force = np.array([0.0, 3.0, 0.0, 0.0, 0.0, 0.0])
    hold(arm, X, 1.0)
    assert arm.pose[1, 3] - X[1, 3] > 0.01


@pytest.mark.parametrize("law", [None, ControlLaw.task_computed_torque])
def test_without_a_pose_or_an_impedance_nothing_is_taken(law: ControlLaw | None) -> None:
    arm = TaskArm(law or ControlLaw.cartesian_impedance).activate()
    if law is not None:
        hold(arm, arm.pose.copy(), 0.2)
    assert set_stiffness(arm, SOFT) == stream_intake.NOT_NOW
    message = wrench([5.0, 0.0, 0.0])
    assert arm.hear(other_inputs.TARGET_WRENCH, message, SENDER) == stream_intake.NOT_NOW
    assert not arm.controller.rows.asked_wrench.any()


def test_the_first_publisher_counts_until_it_is_silent() -> None:
    arm = TaskArm().activate()
    X = arm.pose.copy()
    hold(arm, X, 0.2)
    assert set_stiffness(arm, SOFT) == stream_intake.TAKEN
    hold(arm, X, 1.0)
    assert set_stiffness(arm, 0.5 * SOFT, OTHER) == stream_intake.FOREIGN
    assert arm.others.stiffness.foreign == 1
    hold(arm, X, pose_settings_intake.STIFFNESS_SILENCE)
    assert set_stiffness(arm, 0.5 * SOFT, OTHER) == stream_intake.TAKEN


@pytest.mark.parametrize("frame", ["panda_link0", TCP])
def test_wrench_moves_the_tip_by_the_stiffness_and_ends_with_its_messages(frame: str) -> None:
    arm = TaskArm().activate()
    X = arm.pose.copy()
    hold(arm, X, 0.2)
    force = np.array([0.0, 6.0, 0.0])
    hold(arm, X, 3.0, wrench(force, frame=frame))
    in_root = force if frame == "panda_link0" else X[:3, :3] @ force
    rows = arm.controller.rows
    np.testing.assert_allclose(rows.target_wrench[:3], in_root, atol=0.1)
    K = rows.stiffness.reshape(6, 6)
    np.testing.assert_allclose(K[:3, :3] @ -rows.task_error[:3], in_root, atol=0.15)
    hold(arm, X, TIMEOUT + 2.0)
    assert np.abs(rows.target_wrench).max() < 1e-9
    np.testing.assert_allclose(arm.pose[:3, 3], X[:3, 3], atol=1e-3)


def test_wrench_is_bounded_and_a_second_publisher_waits() -> None:
    arm = TaskArm(parameters={"task.max_force": [20.0, 2.0]}).activate()
    X = arm.pose.copy()
    hold(arm, X, 0.2)
    message = wrench([300.0, 400.0, 0.0], [0.0, 0.0, 50.0])
    assert arm.hear(other_inputs.TARGET_WRENCH, message, SENDER) == stream_intake.TAKEN
    np.testing.assert_allclose(arm.controller.rows.asked_wrench, [12.0, 16.0, 0.0, 0.0, 0.0, 2.0])
    assert arm.hear(other_inputs.TARGET_WRENCH, message, OTHER) == stream_intake.FOREIGN
    assert arm.others.wrench.foreign == 1
    bad = wrench([math.nan, 0.0, 0.0])
    assert arm.hear(other_inputs.TARGET_WRENCH, bad, SENDER) == joint_targets.NOT_FINITE
    lost = wrench([1.0, 0.0, 0.0], frame="camera")
    assert arm.hear(other_inputs.TARGET_WRENCH, lost, SENDER) == tip_targets.UNKNOWN_FRAME
    np.testing.assert_allclose(arm.controller.rows.asked_wrench[:3], [12.0, 16.0, 0.0])
    hold(arm, X, TIMEOUT + 0.02)
    assert arm.hear(other_inputs.TARGET_WRENCH, message, OTHER) == stream_intake.TAKEN


def test_wrench_counts_from_its_arrival_in_the_frame_of_the_link() -> None:
    arm = TaskArm().activate()
    X = arm.pose.copy()
    hold(arm, X, 0.02)
    message = wrench([1.0, 2.0, 3.0], [0.1, 0.2, 0.3], TCP)
    assert arm.hear(other_inputs.TARGET_WRENCH, message, SENDER) == stream_intake.TAKEN
    rows = arm.controller.rows
    expected = np.r_[X[:3, :3] @ [1.0, 2.0, 3.0], X[:3, :3] @ [0.1, 0.2, 0.3]]
    np.testing.assert_allclose(rows.asked_wrench, expected, atol=1e-3)
    assert 0.0 <= arm.t - rows.wrench_at < 2e-3


def test_matrix_is_symmetric_in_force() -> None:
    """Rounding of a message leaves no trace."""
    arm = TaskArm().activate()
    hold(arm, arm.pose.copy(), 0.02)
    K = turned_stiffness()
    K[0, 1] += 1e-4
    assert set_stiffness(arm, K) == stream_intake.TAKEN
    target = arm.controller.rows.target_stiffness.reshape(6, 6)
    np.testing.assert_array_equal(target, target.T)
    np.testing.assert_allclose(target, 0.5 * (K + K.T), rtol=1e-12, atol=1e-9)
    assert set_stiffness(arm, SOFT) == stream_intake.TAKEN
    np.testing.assert_array_equal(target, np.diag(SOFT))


@pytest.mark.parametrize("ends", ["stop", "silence"])
def test_stream_begins_with_the_stiffness_of_the_parameters_and_no_wrench(ends: str) -> None:
    arm = TaskArm().activate()
    X, rows = arm.pose.copy(), arm.controller.rows
    hold(arm, X, 0.02)
    assert set_stiffness(arm, SOFT) == stream_intake.TAKEN
    hold(arm, X, 0.1, wrench([5.0, 0.0, 0.0]))
    if ends == "stop":
        arm.supervisor.emergency_stop(True)
        np.testing.assert_array_equal(rows.asked_wrench, 0.0)
        own = np.diag(arm.controller.arrays.settings[0].task_stiffness)
        np.testing.assert_array_equal(rows.target_stiffness.reshape(6, 6), own)
        return
    arm.run(0.25)
    assert not arm.controller.streams
    rows.posture = 9.0
    arm.plant.q[0] += 0.01
    arm.tick()
    hold(arm, arm.pose.copy(), 0.02)
    own = np.diag(arm.controller.arrays.settings[0].task_stiffness)
    np.testing.assert_array_equal(rows.stiffness.reshape(6, 6), own)
    np.testing.assert_array_equal(rows.target_wrench, 0.0)
    np.testing.assert_allclose(rows.posture, arm.plant.q, atol=1e-3)
    np.testing.assert_allclose(rows.desired_pose[:3], arm.pose[:3, 3], atol=1e-3)


def test_bytes_that_are_cut_are_refused() -> None:
    from rclpy.serialization import serialize_message  # noqa: PLC0415

    arm = TaskArm().activate()
    hold(arm, arm.pose.copy(), 0.2)
    before = arm.controller.rows.target_stiffness.copy()
    for message, kind in (
        (stiffness(SOFT), other_inputs.TARGET_STIFFNESS),
        (stiffness(np.diag(SOFT)), other_inputs.TARGET_STIFFNESS),
        (wrench([1.0, 2.0, 3.0]), other_inputs.TARGET_WRENCH),
    ):
        whole = serialize_message(message)
        for size in range(len(whole)):
            result = arm.hear(kind, whole[:size], SENDER)
            assert result not in (stream_intake.TAKEN, stream_intake.FOREIGN), (kind, size)
    np.testing.assert_array_equal(arm.controller.rows.target_stiffness, before)
    assert not arm.controller.rows.asked_wrench.any()
