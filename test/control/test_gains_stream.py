"""A supervised arm that is moved by a planner's gains: the law, begin, limits, end, refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from robots import panda

pytest.importorskip("linear_feedback_controller_msgs", reason="the ROS 2 wheels lack it")

from controllers import wheel_and_hinge
from linear_feedback_controller_msgs.msg import Control
from planned_arm import OTHER, PlannedArm, control
from rclpy.serialization import serialize_message

from rnea_control.control import ControlLaw, Mode, stream_intake
from rnea_control.control.references import Reference
from rnea_control.messages import feedback_control, joint_targets

READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
STILL = np.zeros(2)


def test_torque_is_that_of_linear_feedback_controller() -> None:
    """Numbers of its own test: 9.5 - 100 * 0.1 - 20 * 0.2, and 1.4 + 120 * 0.1."""
    arm = PlannedArm(q=np.array([0.1, -0.1])).activate().hold(0.6)
    arm.plant.q[:], arm.plant.v[:] = [0.1, -0.1], [0.2, 0.0]
    K = np.array([[100.0, 0.0, 20.0, 0.0], [0.0, 120.0, 0.0, 25.0]])
    assert arm.hear(control(K, np.array([9.5, 1.4]), STILL, STILL)) == stream_intake.TAKEN
    arm.tick()
    np.testing.assert_allclose(arm.controller.torque, [-4.5, 13.4], atol=1e-12)


@pytest.mark.parametrize("hardware", [False, True])
@pytest.mark.parametrize("dead_time", [0.0, 0.004])
def test_law_is_its_formula(dead_time: float, hardware: bool) -> None:
    """For the state when the torque acts, with the numbers in the order of the names."""
    arm = PlannedArm(model=panda(), q=READY)
    arm.controller.settings = replace(
        arm.controller.settings, dead_time=dead_time, hardware_compensates_gravity=hardware
    )
    if hardware:
        arm.plant.push = arm.gravity(READY)
    arm.activate().hold(0.6)
    rng, names = np.random.default_rng(1), list(arm.model.joint_names)
    for _ in range(20):
        order = rng.permutation(7)
        K, tau = rng.normal(0.0, 30.0, (7, 14)), rng.normal(0.0, 10.0, 7)
        q, v = arm.x
        q_0, v_0 = q + rng.normal(0.0, 0.05, 7), rng.normal(0.0, 0.2, 7)
        turned = K[order][:, [*order, *(order + 7)]]
        numbers = turned, tau[order], q_0[order], v_0[order]
        message = control(*numbers, [names[j] for j in order])
        assert arm.hear(message) == stream_intake.TAKEN
        arm.tick()
        expected = tau + K @ np.concatenate([q_0 - q - dead_time * v, v_0 - v])
        if hardware:
            expected -= arm.gravity(q + dead_time * v)
        np.testing.assert_allclose(arm.controller.torque, expected, rtol=1e-12, atol=1e-12)
        arm.plant.q[:], arm.plant.v[:] = READY, 0.0


def test_continuous_joint_turns_the_shortest_way() -> None:
    arm = PlannedArm(model=wheel_and_hinge(), q=STILL).activate()
    K = np.array([[10.0, 0.0, 1.0, 0.0], [0.0, 10.0, 0.0, 1.0]])
    for turns in (0, 1, -3):
        x_0 = np.array([0.1 + 2.0 * math.pi * turns, 0.0])
        for _ in range(60):
            assert arm.hear(control(K, STILL, x_0, STILL)) == stream_intake.TAKEN
            arm.run(0.01)
            arm.plant.q[:], arm.plant.v[:] = 0.0, 0.0
        arm.tick()
        np.testing.assert_allclose(arm.controller.torque, [1.0, 0.0], atol=1e-9)


def test_first_message_moves_nothing_by_itself() -> None:
    arm = PlannedArm(model=panda(), q=READY).activate()
    before = arm.tau.copy()
    arm.hold(1.0)
    assert arm.mode is Mode.STREAMING
    assert arm.controller.rows.reference == Reference.feedback_gains
    np.testing.assert_allclose(arm.tau, before, atol=1e-6)
    assert np.abs(arm.plant.q - READY).max() < 1e-9


def test_terms_of_the_torque() -> None:
    arm = PlannedArm(model=panda(), q=READY).activate().hold(0.6)
    terms = arm.controller_terms()
    np.testing.assert_allclose(terms[0], arm.gravity(arm.plant.q), atol=1e-9)
    np.testing.assert_allclose(terms.sum(axis=0), arm.controller.torque, atol=1e-9)
    assert np.abs(terms[1:]).max() < 1e-6


def test_optimal_gains_hold_and_move_the_arm() -> None:
    """A linear quadratic regulator holds the arm against a push, and follows a path."""
    arm = PlannedArm(model=panda(), q=READY).activate()
    K = arm.lqr(READY)
    arm.plant.push[:] = [2.0, -2.0, 1.0, 1.0, 0.2, 0.2, 0.1]
    arm.hold(2.0, K)
    expected = np.linalg.solve(K[:, :7] + arm.gravity_slope(READY), arm.plant.push)
    np.testing.assert_allclose(arm.plant.q - READY, expected, rtol=0.05, atol=1e-3)
    arm.plant.push[:] = 0.0
    arm.hold(1.0, K)
    start, frequency = arm.plant.q.copy(), math.pi

    def planned(t: float) -> Control:
        way, speed = 0.1 * (1.0 - math.cos(frequency * t)), 0.1 * math.sin(frequency * t)
        q, v = start + way, np.full(7, frequency * speed)
        a = np.full(7, 0.1 * frequency**2 * math.cos(frequency * t))
        return control(K, arm.torque(q, v, a), q, v)

    arm.plan(planned, 1.0)
    assert arm.mode is Mode.STREAMING
    np.testing.assert_allclose(arm.plant.q, start + 0.2, atol=2e-3)


def moving(arm: PlannedArm, acceleration: float = 8.0, duration: float = 0.1) -> PlannedArm:
    """Accelerates all joints, by the planner's torque alone: without gains, about the present
    state."""
    nv = arm.model.nv
    a, none = np.full(nv, acceleration), np.zeros((nv, 2 * nv))
    return arm.plan(lambda _: control(none, arm.torque(*arm.x, a), *arm.x), duration, 0.005)


def test_arm_brakes_and_holds_when_messages_end() -> None:
    """It moves with 1.2 rad/s after control_timeout, and rests 0.1 s later."""
    arm = moving(PlannedArm(model=panda(), q=READY).activate().hold(0.6))
    assert arm.speed > 0.7
    arm.run(0.046)
    assert arm.mode is Mode.STREAMING
    arm.run(0.003)
    assert arm.mode is Mode.BRAKING and arm.controller.rows.reference == Reference.trajectory
    where = arm.plant.q.copy()
    assert "no message has come for control_timeout" in arm.changes[-1][2]
    arm.run(0.12)
    assert arm.speed < 0.05 and np.abs(arm.plant.q - where).max() < 0.08
    arm.run(0.5)
    assert arm.mode is Mode.HOLDING and arm.speed < 1e-3


def test_torque_of_an_arm_at_rest_blends_when_messages_end() -> None:
    """Held 30 mrad away from the state of the planner by a push; the new law holds it there."""
    arm = PlannedArm(model=panda(), q=READY).activate()
    arm.plant.push[:] = [1.0, -1.0, 0.5, 0.5, 0.1, 0.1, 0.05]
    arm.hold(2.0)
    last, steps = arm.tau.copy(), []
    for _ in range(600):
        arm.tick()
        steps.append(np.abs(arm.tau - last).max())
        last = arm.tau.copy()
    assert arm.mode is Mode.HOLDING and max(steps) < 0.05
    assert np.abs(arm.controller.position_error).max() < 0.03


def test_next_message_goes_on_after_missing_ones() -> None:
    arm = moving(PlannedArm(model=panda(), q=READY).activate().hold(0.6), -4.0)
    arm.run(0.3)
    assert arm.mode is Mode.HOLDING
    arm.hold(0.1)
    assert arm.mode is Mode.STREAMING


def test_timeout_changes_while_messages_come() -> None:
    arm = PlannedArm().activate().hold(0.2)
    settings = arm.controller.settings
    arm.controller.settings = replace(settings, more={**settings.more, "control_timeout": 0.2})
    arm.run(0.19)
    assert arm.mode is Mode.STREAMING
    arm.controller.settings = settings
    arm.run(0.002)
    assert arm.mode is not Mode.STREAMING


@pytest.mark.parametrize("stop", ["hold", "emergency stop", "fault", "trajectory"])
def test_after_a_stop_messages_begin_only_after_a_pause(stop: str) -> None:
    arm = moving(PlannedArm(model=panda(), q=READY).activate().hold(0.6))
    where = arm.plant.q.copy()
    if stop == "hold":
        arm.supervisor.hold()
    elif stop == "emergency stop":
        arm.supervisor.emergency_stop(True)
    elif stop == "fault":
        arm.supervisor.fail("a test", arm.t, *arm.x)
    else:
        arm.follow((2.0, *READY))
    nv = arm.model.nv
    for _ in range(40):
        push = np.full(nv, 5.0)
        message = control(np.zeros((nv, 2 * nv)), arm.torque(*arm.x, push), *arm.x)
        assert arm.hear(message) == stream_intake.NOT_NOW
        arm.run(0.01)
    if stop == "trajectory":
        assert arm.mode is Mode.MOVING
        return
    assert arm.speed < 0.01 and np.abs(arm.plant.q - where).max() < 0.15
    if stop == "emergency stop":
        arm.supervisor.emergency_stop(False)
        arm.supervisor.resume()
    if stop == "fault":
        arm.supervisor.reset_fault()
        arm.run(0.2)
        arm.supervisor.resume()
    arm.run(0.2)
    arm.hold(0.1)
    assert arm.mode is Mode.STREAMING


def test_emergency_stop_brakes_from_where_the_arm_is() -> None:
    """Not from the state of the planner, which is 0.3 rad away."""
    arm = PlannedArm(model=panda(), q=READY).activate().hold(0.6)
    nv = arm.model.nv
    for _ in range(60):
        x_0 = arm.plant.q + 0.3
        gains = np.zeros((nv, 2 * nv))
        arm.hear(control(gains, arm.gravity(arm.plant.q), x_0, np.zeros(nv)))
        arm.run(0.01)
    where = arm.plant.q.copy()
    arm.supervisor.emergency_stop(True)
    arm.run(0.5)
    assert np.abs(arm.plant.q - where).max() < 1e-3


def test_arm_comes_to_rest_while_states_are_missing() -> None:
    arm = moving(PlannedArm(model=panda(), q=READY).activate().hold(0.6))
    where = arm.plant.q.copy()
    arm.lack(0.02)
    fastest = arm.speed
    arm.lack(0.07)
    assert arm.speed < 0.7 * fastest and np.abs(arm.plant.q - where).max() < 0.15
    arm.tick()
    arm.tick()
    assert arm.mode is Mode.BRAKING
    arm.run(0.5)
    assert arm.speed < 0.01


def test_messages_go_on_beside_missing_states() -> None:
    arm = PlannedArm(model=panda(), q=READY).activate()
    arm.hold(0.8)
    K, tau = arm.lqr(arm.plant.q), arm.gravity(arm.plant.q)
    message = control(K, tau, arm.plant.q, np.zeros(7))
    for _ in range(6):
        assert arm.hear(message) == stream_intake.TAKEN
        arm.lack(0.01)
    assert arm.hear(message) == stream_intake.TAKEN
    arm.run(0.03)
    assert arm.mode is Mode.STREAMING and arm.speed < 1e-3


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_soft_limits_and_velocity_limits_hold(way: float) -> None:
    """The planner drives a joint with its torque, about the present state: it knows no limit."""
    arm = PlannedArm(position_margin=np.full(2, 0.1)).activate().hold(0.6)
    model, limit = arm.model, arm.controller.arrays.settings[0]
    fastest, none = 0.0, np.zeros((2, 4))
    for _ in range(400):
        q, v = arm.x
        tau = arm.torque(q, v, np.array([way * 4.0, 0.0]))
        result = arm.hear(control(none, tau, q, v))
        arm.run(0.005)
        fastest = max(fastest, abs(arm.plant.v[0]))
        if result != stream_intake.TAKEN:
            break
    assert model.lower[0] - 1e-3 < arm.plant.q[0] < model.upper[0] + 1e-3
    assert fastest < 1.1 * limit.velocity_limit[0]


def test_second_publisher_is_refused_until_the_first_pauses() -> None:
    arm = PlannedArm().activate().hold(0.2)
    message = control(np.zeros((2, 4)), arm.gravity(arm.plant.q), arm.plant.q, STILL)
    before = arm.controller.rows.copy()
    assert arm.hear(message, OTHER) == stream_intake.FOREIGN
    np.testing.assert_array_equal(arm.controller.rows, before)
    arm.run(0.2)
    assert arm.hear(message, OTHER) == stream_intake.TAKEN


def test_stamp_before_that_of_the_last_message_is_refused() -> None:
    arm = PlannedArm().activate()
    message = control(np.zeros((2, 4)), arm.gravity(arm.plant.q), arm.plant.q, STILL)
    for seconds, result in ((5, stream_intake.TAKEN), (4, stream_intake.BACKWARD)):
        message.header.stamp.sec = seconds
        assert arm.hear(message) == result


def broken(message: Control, which: str) -> Control | bytes:
    """A message that is to be refused."""
    state = message.initial_state.joint_state
    if which == "far":
        state.position[1] += 0.6
    elif which == "not finite":
        message.feedback_gain.data[3] = math.nan
    elif which == "large":
        message.feedforward.data[0] = 1e200
    elif which == "joint":
        state.name = ["shoulder", "gripper"]
    elif which == "transposed":
        dim = message.feedback_gain.layout.dim
        dim[0].size, dim[1].size = dim[1].size, dim[0].size
    elif which == "cut":
        return serialize_message(message)[:150]
    else:
        return bytes(100_000)
    return message


REFUSED = {
    "far": stream_intake.TOO_FAR,
    "not finite": joint_targets.NOT_FINITE,
    "large": feedback_control.TOO_LARGE,
    "joint": joint_targets.UNKNOWN_JOINT,
    "transposed": joint_targets.WRONG_LENGTH,
    "cut": joint_targets.UNREADABLE,
    "long": joint_targets.UNREADABLE,
}


@pytest.mark.parametrize("which", REFUSED)
def test_refused_message_changes_nothing(which: str) -> None:
    arm = PlannedArm().activate()
    for _ in range(2):  # at rest, and beside messages that are taken
        message = control(np.full((2, 4), 7.0), arm.gravity(arm.plant.q), arm.plant.q, STILL)
        before, gains = arm.controller.rows.copy(), arm.controller.planned_gains.copy()
        assert arm.hear(broken(message, which)) == REFUSED[which]
        np.testing.assert_array_equal(arm.controller.rows, before)
        np.testing.assert_array_equal(arm.controller.planned_gains, gains)
        arm.hold(0.2)


@pytest.mark.parametrize("seed", range(6))
def test_no_gains_lead_beyond_the_limits(seed: int) -> None:
    """Random gains, most of which no arm is stable with; torques are checked at each tick."""
    rng = np.random.default_rng(seed)
    arm = PlannedArm(model=panda(), q=READY).activate()
    for _ in range(150):
        K = rng.normal(0.0, 10.0 ** rng.uniform(0.0, 12.0), (7, 14)).clip(-1e12, 1e12)
        tau, v = rng.normal(0.0, 10.0 ** rng.uniform(0.0, 3.0), 7), rng.normal(0.0, 1.0, 7)
        arm.hear(control(K, tau, arm.plant.q + rng.normal(0.0, 0.1, 7), v))
        arm.run(0.01)
        assert np.isfinite(arm.tau).all()
    arm.run(1.0)
    if arm.mode is not Mode.POWERLESS:  # a wrist that swings too fast is let go
        assert arm.mode in (Mode.HOLDING, Mode.FAULT) and arm.speed < 0.05


def test_law_is_no_choice_of_control_law() -> None:
    with pytest.raises(Exception, match="control_law"):
        replace(PlannedArm().controller.settings, control_law=ControlLaw.linear_feedback).check(
            ("shoulder", "elbow")
        )
