"""controller_state, torque_terms and query_state."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from control_msgs.msg import JointTrajectoryControllerState
from lifecycle_msgs.msg import Transition
from planar_arm import coriolis_torque, gravity_torque, mass_matrix
from rclpy.duration import Duration
from rclpy.time import Time
from sensor_msgs.msg import JointState
from trajectory_bench import JOINTS, START, STILL, TrajectoryBench

DOMAIN = 96
SWING = np.array([0.6, -0.4])
TARGET = START + SWING
TIME = 0.6
POINTS = [(TIME, TARGET, STILL, STILL)]
EFFORTS = [(0.2, START, STILL, STILL, [4.0, 1.0]), (0.8, TARGET, STILL, STILL, [4.0, 1.0])]
LEAD = 0.005


def quintic(t: float) -> np.ndarray:
    """Position, velocity and acceleration of POINTS, shape (3, 2)."""
    x = min(max(t / TIME, 0.0), 1.0)
    return np.outer([1.0, 0.0, 0.0], START) + np.outer(
        [
            x**3 * (10.0 - 15.0 * x + 6.0 * x**2),
            30.0 * x**2 * (1.0 - x) ** 2 / TIME,
            60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / TIME**2,
        ],
        SWING,
    )


# controller_state.


def test_reference_is_the_desired_state(bench: TrajectoryBench) -> None:
    begin = bench.now + LEAD
    bench.follow(POINTS)
    bench.run(0.2)
    state = bench.observed()
    assert state.joint_names == JOINTS
    expected = quintic(bench.now - begin)
    reference = state.reference
    for values, wanted in zip(
        (reference.positions, reference.velocities, reference.accelerations), expected, strict=True
    ):
        np.testing.assert_allclose(values, wanted, atol=1e-8)
    np.testing.assert_allclose(reference.effort, 0.0)
    elapsed = Duration.from_msg(reference.time_from_start).nanoseconds
    assert elapsed == pytest.approx(1e9 * (bench.now - begin), abs=10.0)


def test_feedback_is_the_measured_state(bench: TrajectoryBench) -> None:
    bench.push([-6.0, 0.0])
    bench.follow(POINTS)
    bench.run(0.2)
    feedback = bench.observed().feedback
    np.testing.assert_allclose(feedback.positions, bench.arm.q[-1], atol=1e-15)
    np.testing.assert_allclose(feedback.velocities, bench.arm.v[-1], atol=1e-15)
    assert len(feedback.accelerations) == len(feedback.effort) == 0


def test_error_is_reference_less_feedback(bench: TrajectoryBench) -> None:
    bench.push([-6.0, 0.0])
    bench.follow(POINTS)
    bench.run(0.2)
    state = bench.observed()
    for field in ("positions", "velocities"):
        error = np.subtract(getattr(state.reference, field), getattr(state.feedback, field))
        np.testing.assert_allclose(getattr(state.error, field), error, atol=1e-15)
    assert abs(state.error.positions[0]) > 0.02


def test_output_is_the_commanded_torque(bench: TrajectoryBench) -> None:
    bench.follow(POINTS)
    for _ in range(5):
        bench.run(0.06)
        output = bench.observed().output
        np.testing.assert_array_equal(output.effort, bench.arm.node.torque)
        assert len(output.positions) == len(output.velocities) == 0


def test_output_is_within_the_effort_limits(bench: TrajectoryBench) -> None:
    bench.set(effort_limit_scale=0.2)
    bench.push([-30.0, 0.0])
    bench.run(0.3)
    assert bench.observed().output.effort[0] == 20.0
    assert bench.arm.node.torque[0] == 20.0


def test_time_from_start_is_0_without_a_goal(bench: TrajectoryBench) -> None:
    bench.end(bench.follow([(0.2, START, STILL)]))
    bench.run(0.1)
    state = bench.observed()
    assert Duration.from_msg(state.reference.time_from_start).nanoseconds == 0


def test_holding_shows_as_a_reference_at_rest(bench: TrajectoryBench) -> None:
    reference = bench.observed().reference
    np.testing.assert_array_equal(reference.positions, START)
    np.testing.assert_array_equal(reference.velocities, STILL)


def test_nothing_is_published_while_inactive(bench: TrajectoryBench) -> None:
    bench.transition(Transition.TRANSITION_DEACTIVATE)
    bench.query(0.0)  # what was sent before it is here
    stamp = Time.from_msg(bench.state.header.stamp).nanoseconds
    bench.arm.node.ticks += 10
    for _ in range(3):
        bench.arm.node.publish_state()
        bench.query(0.0)
    assert Time.from_msg(bench.state.header.stamp).nanoseconds == stamp
    bench.transition(Transition.TRANSITION_ACTIVATE)


def test_controller_state_comes_at_state_publish_rate(bench: TrajectoryBench) -> None:
    count = 0

    def take(message: JointTrajectoryControllerState) -> None:
        nonlocal count
        count += 1

    topic = "rnea_controller/controller_state"
    subscription = bench.node.create_subscription(JointTrajectoryControllerState, topic, take, 1)
    bench.wait(lambda: count > 0)
    begin, count = time.monotonic(), 0
    bench.wait(lambda: count >= 100)
    assert time.monotonic() - begin > 0.15  # 0.2 s, if timers never catch up
    bench.node.destroy_subscription(subscription)


# torque_terms.


@pytest.fixture
def terms(bench: TrajectoryBench):
    """Gives the terms of the last step, by joint and name."""
    messages: list[JointState] = []
    topic = "rnea_controller/torque_terms"
    subscription = bench.node.create_subscription(JointState, topic, messages.append, 1)

    def get() -> dict[str, dict[str, float]]:
        stamp = round(bench.now * 1e9)
        bench.wait(
            lambda: messages and Time.from_msg(messages[-1].header.stamp).nanoseconds == stamp
        )
        found: dict[str, dict[str, float]] = {}
        for name, effort in zip(messages[-1].name, messages[-1].effort, strict=True):
            joint, term = name.split("/")
            found.setdefault(joint, {})[term] = effort
        return found

    yield get
    bench.node.destroy_subscription(subscription)


NAMES = ["gravity", "coriolis", "inertia", "friction", "feedback", "external"]


def test_terms_are_labelled(terms) -> None:
    found = terms()
    assert list(found) == JOINTS
    assert [list(values) for values in found.values()] == [NAMES, NAMES]


def test_terms_add_up_to_the_commanded_torque(bench: TrajectoryBench, terms) -> None:
    bench.push([-6.0, 0.0])
    bench.follow(EFFORTS)
    for _ in range(6):
        bench.run(0.1)
        sums = [sum(values.values()) for values in terms().values()]
        np.testing.assert_allclose(sums, bench.arm.node.torque, atol=1e-12)


def test_terms_are_those_of_the_model(bench: TrajectoryBench, terms) -> None:
    bench.follow(EFFORTS)
    bench.run(0.4)
    found = terms()
    rows = np.array([[found[joint][name] for joint in JOINTS] for name in NAMES])
    state = bench.observed()
    q, v = np.array(state.feedback.positions), np.array(state.feedback.velocities)
    feedback = 100.0 * np.array(state.error.positions) + 20.0 * np.array(state.error.velocities)
    expected = [
        gravity_torque(q),
        coriolis_torque(q, v),
        mass_matrix(q) @ state.reference.accelerations,
        np.zeros(2),
        mass_matrix(q) @ feedback,
        [4.0, 1.0],
    ]
    np.testing.assert_allclose(rows, expected, atol=1e-9)
    assert np.abs(rows[[0, 1, 2, 4]]).max(axis=1).min() > 1e-3  # none of them is nothing


def test_friction_is_a_term(bench: TrajectoryBench, terms) -> None:
    bench.set(friction_compensation=True, friction__elbow__damping=2.0)
    bench.follow(POINTS)
    bench.run(0.3)
    found = terms()
    velocity = bench.observed().reference.velocities[1]
    assert found["elbow"]["friction"] == pytest.approx(2.0 * velocity)
    assert abs(velocity) > 1.0
    assert found["shoulder"]["friction"] == 0.0


# query_state.


def test_query_within_the_trajectory(bench: TrajectoryBench) -> None:
    begin = bench.now + LEAD
    bench.follow(POINTS)
    bench.run(0.1)
    for t in (-0.05, 0.0, 0.2, 0.4):
        answer = bench.query(bench.now + t)
        assert (answer.success, answer.message, answer.name) == (True, "", JOINTS)
        found = [answer.position, answer.velocity, answer.acceleration]
        np.testing.assert_allclose(found, quintic(bench.now + t - begin), atol=1e-7)


def test_query_beyond_the_end(bench: TrajectoryBench) -> None:
    bench.follow(POINTS)
    answer = bench.query(bench.now + 1.0)
    assert not answer.success
    assert re.fullmatch(
        r"the time is \+1.000 s from now, outside the trajectory, which is known from "
        r"-0.00\d to \+0.605 s from now; the position given is that of its nearer end",
        answer.message,
    )
    np.testing.assert_allclose(answer.position, TARGET, atol=1e-12)


def test_query_before_the_trajectory(bench: TrajectoryBench) -> None:
    bench.follow(POINTS)
    bench.run(0.2)
    answer = bench.query(0.001)  # before the controller was activated
    assert not answer.success
    assert re.match(r"the time is -[\d.]+ s from now, outside the trajectory", answer.message)
    np.testing.assert_allclose(answer.position, START, atol=1e-12)
    np.testing.assert_allclose(answer.velocity, 0.0, atol=1e-12)


def test_query_while_the_arm_holds(bench: TrajectoryBench) -> None:
    answer = bench.query(bench.now + 1.0)
    assert not answer.success
    np.testing.assert_allclose(answer.position, START, atol=1e-12)


def test_query_while_inactive(bench: TrajectoryBench) -> None:
    bench.transition(Transition.TRANSITION_DEACTIVATE)
    answer = bench.query(bench.now)
    assert not answer.success
    assert "the controller is not active" in answer.message
    bench.transition(Transition.TRANSITION_ACTIVATE)
