"""Trajectories by action and by topic: followed, ended, refused, and what is told of them."""

from __future__ import annotations

import re
import time
from collections import defaultdict

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from action_msgs.msg import GoalStatus, GoalStatusArray
from control_msgs.msg import SpeedScalingFactor
from lifecycle_msgs.msg import Transition
from planar_arm import gravity_torque
from rclpy.duration import Duration
from rclpy.qos import QoSProfile
from rclpy.time import Time
from sensor_msgs.msg import JointState
from trajectory_bench import (
    CANCELED,
    JOINTS,
    RATE,
    START,
    STILL,
    SUCCEEDED,
    Result,
    TrajectoryBench,
    aborted,
    tolerance,
)
from trajectory_msgs.msg import MultiDOFJointTrajectoryPoint

from rnea_control.control.controller_state import TERMS
from rnea_control.ros.conventions import NEWEST

DOMAIN = 91
SWING = np.array([0.4, -0.3])
TARGET = START + SWING
TIME = 0.4
POINTS = [(TIME, TARGET, STILL, STILL)]
# From the adoption to the start of a trajectory with stamp 0, [s].
LEAD = 0.005
# After this the speed that was asked for is in force, [s].
SETTLED = 2.4
BACK = [(0.2, START, STILL)]
PUSH = [-12.0, 0.0]  # leads the shoulder by about 0.2 rad off its path
REPLACED = (*aborted(Result.INVALID_GOAL), "a new trajectory has replaced it")
CANCELLED = (*CANCELED, "canceled by the client")
# No velocity here changes by more between two steps but by a jump: that of 1 rad/s would be.
SMOOTH = 0.25


def quintic(t: float) -> np.ndarray:
    """Position, velocity and acceleration of POINTS, shape (3, 2)."""
    x = min(max(t / TIME, 0.0), 1.0)
    p = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
    v, a = 30.0 * x**2 * (1.0 - x) ** 2, 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x)
    return np.outer([1.0, 0.0, 0.0], START) + np.outer([p, v / TIME, a / TIME**2], SWING)


def started(bench: TrajectoryBench) -> float:
    """The next time at which a trajectory may start, a whole number of steps from now, [s]."""
    return bench.now + 5 / RATE


def test_goal_from_its_start_until_the_arm_holds_at_its_end(bench: TrajectoryBench) -> None:
    before = bench.now
    sent = bench.follow([(TIME, TARGET[::-1], STILL, STILL)], joints=JOINTS[::-1])
    bench.run(0.16)
    stamp = round(bench.now * 1e9)
    bench.wait(lambda: Time.from_msg(sent.feedback[-1].header.stamp).nanoseconds == stamp)
    feedback = sent.feedback[-1]
    assert feedback.joint_names == JOINTS
    t = bench.now - before - LEAD
    np.testing.assert_allclose(feedback.desired.positions, quintic(t)[0], atol=1e-9)
    np.testing.assert_allclose(feedback.actual.positions, bench.arm.q[-1], atol=1e-12)
    np.testing.assert_allclose(feedback.actual.velocities, bench.arm.v[-1], atol=1e-12)
    for error, wanted, measured in (
        (feedback.error.positions, feedback.desired.positions, feedback.actual.positions),
        (feedback.error.velocities, feedback.desired.velocities, feedback.actual.velocities),
    ):
        np.testing.assert_allclose(error, np.subtract(wanted, measured), atol=1e-12)
    elapsed = Duration.from_msg(feedback.desired.time_from_start).nanoseconds * 1e-9
    assert elapsed == pytest.approx(t, abs=1e-6)
    count = len(sent.feedback)
    bench.wait(lambda: len(sent.feedback) >= count + 3)  # whether or not the arm moves on
    bench.run(TIME - 0.16)
    bench.observed()
    assert not sent.ended
    assert bench.end(sent)[:2] == SUCCEEDED
    assert bench.now - before < 0.5
    bench.run(0.1)
    bench.observed()
    count = len(sent.feedback)
    for _ in range(3):  # messages of controller_state come after what was sent before
        bench.run(0.02)
        bench.observed()
    assert len(sent.feedback) == count
    bench.run(0.5)
    np.testing.assert_allclose(bench.arm.q[-1], TARGET, atol=1e-4)
    np.testing.assert_allclose(bench.arm.v[-1], 0.0, atol=1e-3)


def test_goal_at_time_0_where_the_arm_rests_succeeds_at_once(bench: TrajectoryBench) -> None:
    before = bench.now
    sent = bench.follow([(0.0, bench.arm.q[-1], STILL, STILL)])
    assert bench.end(sent)[:2] == SUCCEEDED
    assert bench.now - before < 0.1


def test_wrong_goal_says_why_and_the_running_motion_goes_on(bench: TrajectoryBench) -> None:
    """One of each error_code, and what only the node refuses; all else: control/test_planner.py."""
    bench.run(0.4)
    sent = bench.follow(POINTS, start=started(bench))
    bench.run(0.1)
    several = bench.goal(POINTS)
    several.multi_dof_trajectory.points = [MultiDOFJointTrajectoryPoint()]
    passed = "the trajectory ended 0.205 s ago; send it earlier, or with stamp 0 to start now"
    clock = r"its stamp is \d+ s ahead of that of joint_states; do both use the same clock .*"
    dof = "multi_dof_trajectory has points, which this controller does not follow; leave it empty"
    for goal, code, words in (
        (bench.goal([]), Result.INVALID_GOAL, "the trajectory has no points; .*"),
        (bench.goal(POINTS, joints=["wrist"]), Result.INVALID_JOINTS, "joint_names has 'wrist'.*"),
        (bench.goal(POINTS, start=bench.now - 0.6), Result.OLD_HEADER_TIMESTAMP, passed),
        (bench.goal(POINTS, start=time.time()), Result.INVALID_GOAL, clock),
        (several, Result.INVALID_GOAL, dof),
    ):
        status, error_code, text = bench.refused(goal)
        assert (status, error_code) == aborted(code)
        assert re.fullmatch(words, text), text
    assert bench.end(sent)[:2] == SUCCEEDED
    np.testing.assert_allclose(bench.observed().reference.positions, TARGET, atol=1e-9)


def test_partial_goal_moves_its_joints_and_the_others_hold(bench: TrajectoryBench) -> None:
    goal = bench.goal([(0.3, [0.1], [0.0])], joints=["elbow"])
    status, code, text = bench.refused(goal)
    assert (status, code) == aborted(Result.INVALID_JOINTS)
    assert "allow_partial_joints_goal" in text
    bench.set(allow_partial_joints_goal=True)
    sent = bench.send(goal)
    reference = bench.recorded(0.32)
    np.testing.assert_allclose(reference[:, 0, 0], START[0], atol=1e-12)
    np.testing.assert_allclose(reference[-1, 0, 1], 0.1, atol=1e-9)
    assert bench.end(sent)[:2] == SUCCEEDED


# How goals end that are not reached: each once, with a reason, and with an arm that holds.


def test_goals_in_quick_succession(bench: TrajectoryBench) -> None:
    goals = [bench.submit(bench.goal([(0.3, START + 0.1 * k, STILL)])) for k in range(1, 6)]
    bench.wait(lambda: all(goal.ended for goal in goals[:-1]) and goals[-1].feedback)
    assert [goal.ending for goal in goals[:-1]] == [REPLACED] * 4
    goals[0].handle.cancel_goal_async()  # which leaves the others alone
    assert bench.end(goals[-1])[:2] == SUCCEEDED
    np.testing.assert_allclose(bench.observed().reference.positions, START + 0.5, atol=1e-9)
    answer = goals[-1].handle.cancel_goal_async()
    bench.wait(answer.done)
    assert answer.result().goals_canceling == []  # too late
    assert goals[0].ending == REPLACED and goals[-1].ending[:2] == SUCCEEDED


def test_each_goal_ends_once(bench: TrajectoryBench) -> None:
    ends: dict[bytes, set[int]] = defaultdict(set)

    def take(message: GoalStatusArray) -> None:
        for status in message.status_list:
            if status.status > GoalStatus.STATUS_CANCELING:
                ends[bytes(status.goal_info.goal_id.uuid)].add(status.status)

    topic = "rnea_controller/follow_joint_trajectory/_action/status"
    create, qos = bench.node.create_subscription, QoSProfile(depth=50)
    subscription = create(GoalStatusArray, topic, take, qos)
    bench.wait(subscription.get_publisher_count)
    by_goal = bench.follow(POINTS)
    bench.run(0.2)
    by_message = bench.follow([(0.4, START, STILL, STILL)])
    bench.wait(lambda: by_goal.ended)
    bench.publish(POINTS)
    bench.wait(lambda: by_message.ended)
    assert by_goal.ending == by_message.ending == REPLACED
    cancelled = bench.follow(POINTS)
    bench.cancel(cancelled)
    reached = bench.follow(BACK)
    assert bench.end(reached)[:2] == SUCCEEDED
    bench.run(0.2)
    sent = (by_goal, by_message, cancelled, reached)
    keys = [bytes(each.handle.goal_id.uuid) for each in sent]
    bench.wait(lambda: all(ends[key] for key in keys))
    aborted_, canceled = {GoalStatus.STATUS_ABORTED}, {GoalStatus.STATUS_CANCELED}
    expected = [aborted_, aborted_, canceled, {GoalStatus.STATUS_SUCCEEDED}]
    assert [ends[key] for key in keys] == expected
    bench.node.destroy_subscription(subscription)


# Cancel.


def test_cancel_brakes_along_the_path_and_holds(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    before = bench.recorded(0.2)
    assert np.abs(before[-1, 1]).max() > 1.0
    assert bench.cancel(sent) == CANCELLED
    reference = np.concatenate([before, bench.recorded(0.6)])
    assert np.abs(np.diff(reference[:, 1], axis=0)).max() < SMOOTH
    off = (reference[:, 0] - START) @ [SWING[1], -SWING[0]]
    np.testing.assert_allclose(off, 0.0, atol=1e-9)
    np.testing.assert_allclose(reference[-100:, 1], 0.0, atol=1e-9)
    bench.run(0.5)
    np.testing.assert_allclose(bench.arm.q[-1], reference[-1, 0], atol=1e-4)


# The controller itself ends.


def test_deactivation_ends_a_goal(bench: TrajectoryBench, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = bench.follow(POINTS)
    bench.run(0.2)
    advance = bench.arm.node.advance

    def slowly() -> None:
        monkeypatch.undo()
        time.sleep(1.5)  # longer than interpreter_timeout
        advance()

    monkeypatch.setattr(bench.arm.node, "advance", slowly)
    bench.transition(Transition.TRANSITION_DEACTIVATE)
    bench.wait(lambda: sent.ended)
    assert sent.ending == (*aborted(Result.INVALID_GOAL), "the controller was deactivated")
    assert "stood still" not in bench.process.output  # to wait for rest is no hang
    line = bench.rejected(bench.goal(POINTS))
    assert "goal rejected: the controller is not active; activate it first" in line
    bench.transition(Transition.TRANSITION_ACTIVATE)
    line = bench.rejected(bench.goal(POINTS))
    assert "the controller waits, for joint_states" in line
    bench.first_steps()
    assert bench.end(bench.follow(BACK))[:2] == SUCCEEDED


def test_cancel_of_a_waiting_goal_and_cleaning_up_with_one(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS, start=bench.now + 0.2)
    bench.run(0.1)
    assert bench.cancel(sent) == CANCELLED
    reference = bench.recorded(0.2)
    np.testing.assert_allclose(reference[:, 0], np.broadcast_to(START, (50, 2)), atol=1e-12)
    sent = bench.follow(POINTS, start=bench.now + 10.0)
    bench.transition(Transition.TRANSITION_DEACTIVATE)
    bench.transition(Transition.TRANSITION_CLEANUP)
    bench.wait(lambda: sent.ended)
    assert sent.ending[:2] == aborted(Result.INVALID_GOAL)
    bench.transition(Transition.TRANSITION_CONFIGURE)
    bench.transition(Transition.TRANSITION_ACTIVATE)
    bench.first_steps()
    assert bench.end(bench.follow(BACK))[:2] == SUCCEEDED


# Tolerances.


def details(text: str, joint: str, place: str) -> tuple[float, ...]:
    """Error, tolerance and time that an error_string names."""
    number = r"([\d.e-]+)"
    match = re.fullmatch(
        f"{joint} was {number} rad off its {place}, {number} allowed, {number} s into the "
        "trajectory",
        text,
    )
    assert match, text
    return tuple(map(float, match.groups()))


def test_path_tolerance_names_joint_error_tolerance_and_time(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__trajectory=0.001)
    first = len(bench.arm.q)
    # The goal's own in place of the default; another joint's leaves this one alone.
    path = [tolerance("shoulder", 0.05, velocity=-1.0), tolerance("elbow", -1.0)]
    sent = bench.follow(POINTS, path=path)
    bench.run(0.1)
    bench.push(PUSH)
    status, code, text = bench.end(sent)
    assert (status, code) == aborted(Result.PATH_TOLERANCE_VIOLATED)
    error, allowed, time = details(text, "shoulder", "path")
    assert allowed == 0.05 < error
    at = first + round((LEAD + time) * RATE) - 1
    assert error == pytest.approx(abs(quintic(time)[0] - bench.arm.q[at])[0], rel=0.005)
    bench.push(STILL)
    bench.run(1.5)  # the arm comes to rest where it was stopped
    position = bench.observed().reference.positions
    np.testing.assert_allclose(bench.arm.q[-1], position, atol=1e-4)
    assert abs(bench.arm.q[-1][0] - TARGET[0]) > 0.05


def test_goal_tolerance_of_the_goal_overrides_the_default(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__goal=10.0, constraints__goal_time=100.0)
    bench.push([-3.0, 0.0])
    sent = bench.follow(POINTS, goal=[tolerance("shoulder", 0.005)], goal_time=0.2)
    bench.run(TIME + 0.1)
    bench.observed()
    assert not sent.ended
    status, code, text = bench.end(sent)
    assert (status, code) == aborted(Result.GOAL_TOLERANCE_VIOLATED)
    _, allowed, time = details(text, "shoulder", "goal")
    assert allowed == 0.005
    assert TIME + 0.2 < time <= TIME + 0.2 + 1.001 / RATE


# What is told and asked of them.


def test_controller_state_of_a_motion(bench: TrajectoryBench) -> None:
    reference = bench.observed().reference  # while it holds
    np.testing.assert_array_equal(reference.positions, START)
    np.testing.assert_array_equal(reference.velocities, STILL)
    answer = bench.query(bench.now + 1.0)
    assert not answer.success
    np.testing.assert_allclose(answer.position, START, atol=1e-12)
    bench.push([-6.0, 0.0])
    begin = bench.now + LEAD
    sent = bench.follow(POINTS)
    for _ in range(5):
        bench.run(0.06)
        state = bench.observed()
        assert state.joint_names == JOINTS
        reference, feedback, output = state.reference, state.feedback, state.output
        found = [reference.positions, reference.velocities, reference.accelerations]
        np.testing.assert_allclose(found, quintic(bench.now - begin), atol=1e-8)
        np.testing.assert_allclose(reference.effort, 0.0)
        elapsed = Duration.from_msg(reference.time_from_start).nanoseconds
        assert elapsed == pytest.approx(1e9 * (bench.now - begin), abs=10.0)
        np.testing.assert_allclose(feedback.positions, bench.arm.q[-1], atol=1e-15)
        np.testing.assert_allclose(feedback.velocities, bench.arm.v[-1], atol=1e-15)
        assert len(feedback.accelerations) == len(feedback.effort) == 0
        for field in ("positions", "velocities"):
            error = np.subtract(getattr(reference, field), getattr(feedback, field))
            np.testing.assert_allclose(getattr(state.error, field), error, atol=1e-15)
        np.testing.assert_array_equal(output.effort, bench.arm.node.torque)
        assert len(output.positions) == len(output.velocities) == 0
    assert abs(state.error.positions[0]) > 0.02
    bench.push(STILL)
    bench.end(sent)
    bench.run(0.1)
    elapsed = bench.observed().reference.time_from_start
    assert Duration.from_msg(elapsed).nanoseconds == 0


def test_nothing_is_told_while_inactive(bench: TrajectoryBench) -> None:
    bench.transition(Transition.TRANSITION_DEACTIVATE)
    answer = bench.query(0.0)  # what was sent before it is here
    assert not answer.success
    assert "the controller is not active" in answer.message
    stamp = Time.from_msg(bench.state.header.stamp).nanoseconds
    bench.arm.node.ticks += 10
    for _ in range(3):
        bench.arm.node.publish_state()
        bench.query(0.0)
    assert Time.from_msg(bench.state.header.stamp).nanoseconds == stamp
    bench.transition(Transition.TRANSITION_ACTIVATE)


def test_terms_add_up_to_the_commanded_torque(bench: TrajectoryBench) -> None:
    """Each by its formula: control/test_torque_terms.py."""
    messages: list[JointState] = []
    topic = "rnea_controller/torque_terms"
    subscription = bench.node.create_subscription(JointState, topic, messages.append, 1)
    bench.push([-6.0, 0.0])
    bench.follow(POINTS)
    bench.run(0.3)
    stamp = round(bench.now * 1e9)
    bench.wait(lambda: messages and Time.from_msg(messages[-1].header.stamp).nanoseconds == stamp)
    assert messages[-1].name == [f"{joint}/{term}" for joint in JOINTS for term in TERMS]
    terms = np.array(messages[-1].effort).reshape(2, -1)
    np.testing.assert_allclose(terms.sum(axis=1), bench.arm.node.torque, atol=1e-12)
    np.testing.assert_allclose(terms[:, 0], gravity_torque(bench.arm.q[-1]), atol=1e-9)
    bench.node.destroy_subscription(subscription)


def test_query_within_the_trajectory_and_outside(bench: TrajectoryBench) -> None:
    begin = bench.now + LEAD
    bench.follow(POINTS)
    answer = bench.query(bench.now + 1.0)
    assert not answer.success
    assert re.fullmatch(
        r"the time is \+1.000 s from now, outside the trajectory, which is known from "
        r"-0.00\d to \+0.405 s from now; the position given is that of its nearer end",
        answer.message,
    )
    np.testing.assert_allclose(answer.position, TARGET, atol=1e-12)
    bench.run(0.1)
    for t in (-0.05, 0.0, 0.2):
        answer = bench.query(bench.now + t)
        assert (answer.success, answer.message, answer.name) == (True, "", JOINTS)
        found = [answer.position, answer.velocity, answer.acceleration]
        np.testing.assert_allclose(found, quintic(bench.now + t - begin), atol=1e-7)
    answer = bench.query(0.001)  # before the controller was activated
    assert not answer.success
    assert re.match(r"the time is -[\d.]+ s from now, outside the trajectory", answer.message)
    np.testing.assert_allclose(answer.position, START, atol=1e-12)
    np.testing.assert_allclose(answer.velocity, 0.0, atol=1e-12)


def test_half_speed_takes_twice_as_long(bench: TrajectoryBench) -> None:
    assert bench.observed().speed_scaling_factor == 1.0
    bench.scale(0.5)
    bench.run(SETTLED)
    wrong = SpeedScalingFactor(factor=1.5)
    line = bench.said_after("speed scaling", lambda: bench.scaling.publish(wrong))
    assert "speed scaling stays as it is: the speed scaling factor is 1.5" in line
    begin = bench.now + 0.2  # a stamp is kept at any speed
    sent = bench.follow(POINTS, start=begin)
    bench.run(0.6)
    answer = bench.query(bench.now + 0.3)
    assert answer.success, answer.message
    bench.run(0.3)
    reference = bench.observed().reference
    found = [reference.positions, reference.velocities, reference.accelerations]
    expected = quintic(0.5 * (bench.now - begin)) * [[1.0], [0.5], [0.25]]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    foreseen = [answer.position, answer.velocity, answer.acceleration]
    np.testing.assert_allclose(found, foreseen, atol=1e-5)
    assert bench.end(sent)[:2] == SUCCEEDED
    assert bench.now - begin == pytest.approx(2.0 * TIME, abs=0.05)
    assert bench.observed().speed_scaling_factor == pytest.approx(0.5, abs=1e-6)
    bench.scale(1.0)


# By topic.


def test_wrong_message_is_refused_and_the_goal_goes_on(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    bench.run(0.2)
    line = bench.publish([], words="trajectory refused")
    assert "refused, the controller goes on as before: the trajectory has no" in line
    assert bench.end(sent)[:2] == SUCCEEDED


def test_violated_path_tolerance_stops_the_arm_and_is_logged(bench: TrajectoryBench) -> None:
    def push() -> None:
        bench.push([-15.0, 0.0])
        bench.run(0.2)

    bench.set(constraints__shoulder__trajectory=0.05)
    bench.publish([(1.0, TARGET, STILL, STILL)])
    bench.run(0.2)
    line = bench.said_after("trajectory stopped", push)
    assert re.search(r"shoulder was 0\.05\d* rad off its path, 0\.05 allowed, 0\.\d+ s into", line)


def test_points_without_times_are_those_of_a_policy(bench: TrajectoryBench) -> None:
    """A goal rests at its last point; a message is a part of a stream, and passes it."""
    bench.set(positions_upsampling__enable=True, positions_upsampling__policy_frequency=20.0)
    points = [(0.0, START + SWING * k / 8) for k in range(1, 9)]
    sent = bench.follow(points, start=started(bench))
    reference = bench.recorded(TIME + 5 / RATE)[4:]
    np.testing.assert_allclose(reference[50, 0], START + SWING / 2, atol=1e-9)
    np.testing.assert_allclose(reference[100, 0], TARGET, atol=1e-9)
    assert bench.end(sent)[:2] == SUCCEEDED
    bench.publish([(0.0, TARGET - SWING * k / 8) for k in range(1, 9)], start=started(bench))
    last = bench.recorded(TIME + 5 / RATE)[-1]
    np.testing.assert_allclose(last[0], START, atol=1e-9)
    assert np.abs(last[1]).max() > 0.3
    bench.run(1.0)
    np.testing.assert_allclose(bench.arm.q[-1], START, atol=1e-3)


# Streams of joint targets.

RATE_LIMIT = 2000.0  # limit of the torques' rate [Nm/s]
TARGET_PERIOD = 0.02  # period of the targets [s]
# The rate limit counts no more than real time, and the arm is stepped faster than that.
MOST_ACCELERATION = 5.0  # [rad/s^2]
LONGEST_STALL = 1.0  # longest time for which this machine stands still in a stream [s]
MOST_TARGETS = 500  # targets until a stream has begun
FOLLOWED = 1e-3  # distance from the last target or the goal [rad]
REPLACED_BY_STREAM = (*aborted(Result.INVALID_GOAL), "a stream of targets has replaced it")


class Joystick:
    """Sends targets, whatever the arm does.

    Args:
        bench: the bench; its targets time out late, as this machine may stand still.
    """

    def __init__(self, bench: TrajectoryBench) -> None:
        self._bench = bench
        limits = {f"torque_rate_limits__{joint}": RATE_LIMIT for joint in JOINTS}
        limits |= {f"stream__max_acceleration__{joint}": MOST_ACCELERATION for joint in JOINTS}
        bench.set(stream__target_timeout=LONGEST_STALL, **limits)
        self._publisher = bench.node.create_publisher(JointState, "target_joint", NEWEST)
        bench.wait(self._publisher.get_subscription_count)
        # Where messages do not tell their publisher, this is the joystick of the test before, whose
        # stream begins after a pause only.
        self.send(bench.arm.q[-1], TARGET_PERIOD)
        bench.run(1.5 * LONGEST_STALL)
        self._first = len(bench.arm.torque)

    def send(self, target: np.ndarray, duration: float) -> None:
        """Sends a target again and again."""
        for _ in range(round(duration / TARGET_PERIOD)):
            self._publisher.publish(JointState(name=JOINTS, position=target.tolist()))
            self._bench.run(TARGET_PERIOD)

    def begin(self, target: np.ndarray) -> None:
        """Sends a target until the arm follows it."""
        before = len(self._bench.process.output)
        for _ in range(MOST_TARGETS):
            if "streaming: following a stream" in self._bench.process.output[before:]:
                return
            self.send(target, TARGET_PERIOD)
        pytest.fail(f"no stream has begun: {self._bench.process.output[before:]}")

    def end(self) -> None:
        """Sends no more; the torques since the begin have no step beyond their limit."""
        self._bench.node.destroy_publisher(self._publisher)
        steps = np.abs(np.diff(self._bench.arm.torque[self._first - 1 :], axis=0))
        assert 0.0 < steps.max() <= 1.001 * RATE_LIMIT / RATE


def test_stream_of_targets_replaces_a_goal(bench: TrajectoryBench) -> None:
    joystick = Joystick(bench)
    sent = bench.follow([(3.0, TARGET, STILL, STILL)])
    bench.run(0.3)
    target = bench.arm.q[-1] + np.array([-0.1, 0.1])
    joystick.begin(target)
    bench.wait(lambda: sent.ended)
    assert sent.ending == REPLACED_BY_STREAM
    joystick.send(target, 1.0)
    np.testing.assert_allclose(bench.arm.q[-1], target, atol=FOLLOWED)
    joystick.end()


def test_goal_ends_a_stream_that_goes_on(bench: TrajectoryBench) -> None:
    """The stream does not take the arm back, also after the goal, until the operator resumes."""
    joystick = Joystick(bench)
    away = bench.arm.q[-1] + np.array([-0.2, 0.3])
    joystick.begin(away)
    away = bench.arm.q[-1] + np.array([0.2, -0.3])
    for _ in range(MOST_TARGETS):
        if np.abs(bench.arm.v[-1]).max() >= 0.2:
            break  # the goal begins in motion
        joystick.send(away, TARGET_PERIOD)
    sent = bench.follow(POINTS)
    joystick.send(away, TIME + 0.1)
    bench.wait(lambda: sent.ended)
    assert sent.ending[:2] == SUCCEEDED
    for _ in range(5):
        joystick.send(away, 0.1)
        np.testing.assert_allclose(bench.arm.q[-1], TARGET, atol=FOLLOWED)
    assert bench.ask("resume")[0]
    near = TARGET + 0.1
    joystick.begin(near)
    joystick.send(near, 1.0)
    np.testing.assert_allclose(bench.arm.q[-1], near, atol=FOLLOWED)
    joystick.end()
