"""The controller node over real DDS: what it takes, what it refuses, and that it goes on."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator

import numpy as np
import pytest
import rclpy
from dds import ros, trajectory, wait_for
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import TransitionEvent
from node_bench import GOOD, GRAVITY, JOINTS, LATCHED, MODEL, Bench, Q
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import ReliabilityPolicy
from rclpy.serialization import serialize_message
from robots import two_link_arm
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from rnea_control.control import Mode, Waypoint
from rnea_control.dynamics import Workspace, gravity
from rnea_control.model import RobotModel
from rnea_control.node.diagnostics import NO_CLOCK
from rnea_control.node.statistics import PERIOD_JITTER, STATE_INTERVAL, LoopStatistics
from rnea_control.ros import rclpy_internals


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    """One each: of a participant that has seen many nodes come and go, Fast DDS sometimes tells
    another one of the same process no publishers."""
    with ros(82):
        yield


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench(**GOOD)
    yield bench
    bench.destroy()


def test_holds_the_measured_position_at_first(bench: Bench) -> None:
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    np.testing.assert_allclose(bench.node.loop.controller.trajectory.at(0.0)[0], Q)


def test_jumbled_joint_order_and_foreign_joints(bench: Bench) -> None:
    bench.answer()
    expected = bench.answer([0.31, -0.42], [0.1, 0.2])
    names = ["finger", "elbow", "wheel", "shoulder"]
    q, v = [9.0, -0.42, math.nan, 0.31], [9.0, 0.2, math.nan, 0.1]
    np.testing.assert_allclose(bench.answer(q, v, names), expected, rtol=1e-12)
    names = ["elbow", "shoulder"]  # the list of names may change
    np.testing.assert_allclose(bench.answer([-0.42, 0.31], [0.2, 0.1], names), expected, rtol=1e-12)


BAD_STATES = {
    "missing joint": (([0.1], [0.0], ["shoulder"]), "lacks elbow of `joints`; it has shoulder"),
    "no names": (([], [], []), "lacks shoulder, elbow .* it has no names"),
    "name twice": (
        ([0.1, 0.2, 0.3], [0, 0, 0], ["shoulder", "elbow", "elbow"]),
        "names a joint twice",
    ),
    "empty velocity": (([0.1, 0.2], [], JOINTS), "has 0 velocity values for 2 names"),
    "short position": (([0.1], [0.0, 0.0], JOINTS), "has 1 position values for 2 names"),
    "NaN position": (([0.1, math.nan], [0.0, 0.0], JOINTS), "joint 'elbow' has position nan"),
    "infinite velocity": (([0.1, 0.2], [math.inf, 0.0], JOINTS), "joint 'shoulder' .* inf"),
}


@pytest.mark.parametrize("name", BAD_STATES)
def test_bad_state_is_answered_by_the_model(bench: Bench, name: str) -> None:
    state, words = BAD_STATES[name]
    bench.answer()
    count = len(bench.commands)
    assert re.search(words, bench.refusal(*state))
    wait_for(lambda: len(bench.commands) > count + 3, bench.spin)
    np.testing.assert_allclose(bench.commands[count:], np.tile(GRAVITY, (4, 1)), rtol=1e-12)
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    assert bench.node.loop.fault == ""


def test_bad_states_do_not_let_time_run_faster(bench: Bench) -> None:
    bench.answer()
    loop, begin = bench.node.loop, time.monotonic()
    before = loop.now
    for _ in range(10):
        time.sleep(0.02)
        bench.refusal(Q, (5.0, 0.0), stamp=bench.time + 0.02)  # it stands still and moves
    assert loop.now - before == pytest.approx(0.2)
    wait_for(
        lambda: loop.controller.time - before >= 0.2
    )  # a torque is predicted every millisecond
    assert loop.controller.time - before < 1.2 * (time.monotonic() - begin)


def test_states_with_the_same_stamp_do_not_hold_time_back() -> None:
    bench = Bench(**{**GOOD, "joint_state_gap": 0.2})
    try:
        bench.answer()
        loop = bench.node.loop
        while not loop.call(lambda supervisor: supervisor.predicting):
            bench.state(stamp=bench.time)
            bench.spin()
        assert loop.controller.time - loop.now >= 0.2
    finally:
        bench.destroy()


def test_states_of_another_device_are_left_alone(bench: Bench) -> None:
    bench.answer()
    bench.state([0.1], [0.0], ["gripper"])
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    assert bench.node.loop.fault == ""


def test_thresholds_of_diagnostics(bench: Bench) -> None:
    bench.answer()
    slow = LoopStatistics()
    for _ in range(100):
        slow.record(0.001, 0.0, 0.0, 0.0)
    status = bench.node.diagnostics(slow).status[0]
    assert status.level == DiagnosticStatus.WARN
    assert "tick duration 0.001 exceeds the warn threshold, 0.0005" in status.message
    bench.node.set_parameters([Parameter("diagnostics.tick_duration.error", value=0.0009)])
    assert bench.node.diagnostics(slow).status[0].level == DiagnosticStatus.ERROR
    waited = LoopStatistics()
    waited.record(0.0, 0.0, 25.0, 25.0)
    assert "waited 25 s for joint_states" in bench.node.diagnostics(waited).status[0].message
    missed = LoopStatistics()
    for _ in range(95):
        missed.record(0.0, 0.0, 0.0, 0.0)
    missed.missed = 5
    assert "missed states 0.05" in bench.node.diagnostics(missed).status[0].message
    bench.node.set_parameters([Parameter("gains.shoulder.p", value=3e4)])
    bench.answer(Q + np.array([0.045, 0.0]))  # at the effort limit: a warning, which hides no error
    slow.record(0.01, 0.0, 0.0, 0.0)
    assert bench.node.diagnostics(slow).status[0].level == DiagnosticStatus.ERROR
    assert "effort limit" in bench.node.diagnostics(LoopStatistics()).status[0].message


def test_simulated_time_needs_a_clock_and_is_never_late() -> None:
    bench = Bench(**{**GOOD, "use_sim_time": True})
    try:
        assert bench.status.level == DiagnosticStatus.ERROR
        assert bench.status.message == NO_CLOCK
        clock, message = bench.peer.create_publisher(Clock, "/clock", 1), Clock()
        message.clock.sec = int(bench.time)
        wait_for(lambda: clock.publish(message) or bench.status.message != NO_CLOCK, bench.spin)
        for _ in range(3):
            bench.answer()
            time.sleep(0.1)  # a hundred times as long as the stamps say
        statistics = bench.node.loop.statistics
        assert statistics.late == 0
        assert not statistics.counts[[PERIOD_JITTER, STATE_INTERVAL]].any()
    finally:
        bench.destroy()


def test_simulated_time_that_is_reset_ends_no_motion() -> None:
    timeout = {"joint_state_timeout": 0.1, "joint_state_gap": 0.1}
    bench = Bench(**{**GOOD, **timeout, "use_sim_time": True})
    try:
        clock, message = bench.peer.create_publisher(Clock, "/clock", 1), Clock()
        message.clock.sec = int(bench.time)
        wait_for(lambda: clock.publish(message) or bench.status.message != NO_CLOCK, bench.spin)
        bench.answer()
        loop = bench.node.loop
        target = Waypoint(1.0, np.array(Q) + 0.01, np.zeros(2), np.zeros(2))
        loop.controller.follow(loop.now, [target], 0.0)
        for jump in (-5.0, 10.0):
            before = loop.now
            bench.time += jump
            bench.answer()
            assert before <= loop.now <= before + 0.2
            assert loop.controller.is_moving and not loop.fault
        assert loop.statistics.dropped == loop.supervisor.bad_states == 0
    finally:
        bench.destroy()


def test_the_executor_takes_no_clock_and_the_nodes_clock_goes_by_it() -> None:
    bench = Bench(**{**GOOD, "use_sim_time": True})
    try:
        assert "/clock" not in [one.topic_name for one in bench.node.subscriptions]
        clock, message = bench.peer.create_publisher(Clock, "/clock", 1), Clock()
        message.clock.sec = 1234

        def stamp() -> int:
            clock.publish(message)
            return bench.node.diagnostics(LoopStatistics()).header.stamp.sec

        wait_for(lambda: stamp() == 1234, bench.spin)
        assert bench.node.get_clock().now().to_msg().sec == 1234
    finally:
        bench.destroy()


def test_refused_states_are_not_missed(bench: Bench) -> None:
    bench.answer()
    for _ in range(5):
        bench.refusal([math.nan, 0.0])
    bench.answer()
    assert bench.node.loop.statistics.missed == 0


def test_states_of_a_second_publisher_are_ignored_while_the_first_goes_on(bench: Bench) -> None:
    for _ in range(30):
        bench.answer()
    loop, count = bench.node.loop, len(bench.commands)
    other = bench.peer.create_publisher(JointState, "joint_states", LATCHED)
    wait_for(lambda: bench.node.publishers() == 2, bench.spin)
    bench.answer()
    other.publish(bench.message([0.7, 0.7]))
    wait_for(lambda: loop.statistics.foreign == 1)
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    assert len(bench.commands) == count + 2
    assert loop.statistics.missed == 0
    assert bench.values["publishers of joint_states"] == "2"


def test_two_publishers_are_named(bench: Bench) -> None:
    other = rclpy.create_node("other")
    try:
        for kind, topic in (
            (JointState, "joint_states"),
            (Float64MultiArray, "effort_controller/commands"),
        ):
            publisher = other.create_publisher(kind, topic, 1)
            wait_for(lambda topic=topic: bench.node.count_publishers(topic) == 2, bench.spin)
            own = "/peer" if topic == "joint_states" else "/rnea_controller"
            names = " and ".join(sorted(("/other", own)))
            words = f"/{topic} is published by {names}; only one of them may"
            wait_for(lambda words=words: words in bench.status.message, bench.spin)
            assert bench.status.level == DiagnosticStatus.ERROR
            other.destroy_publisher(publisher)
            wait_for(lambda topic=topic: bench.node.count_publishers(topic) == 1, bench.spin)
    finally:
        other.destroy_node()


def test_interleaved_counts_are_an_error(bench: Bench) -> None:
    bench.answer()
    loop = bench.node.loop
    loop.start()
    for numbers, level in (((7, 8, 9), DiagnosticStatus.OK), ((10, 3, 11, 4), b"\x02")):
        before = loop.statistics.copy()
        for count in numbers:
            loop.tick(serialize_message(bench.message()), count)
        recent = loop.statistics.since(before)
        recent.missed = recent.late = 0
        recent.counts[:] = 0
        status = bench.node.diagnostics(recent).status[0]
        assert status.level == level, status.message
    assert "2 joint_states of another publisher were ignored" in status.message


def test_sentinel_may_be_required() -> None:
    bench = Bench(start=False, **GOOD, require_sentinel=True)
    try:
        bench.node.autostart()
        assert not bench.node.active
        modes = bench.peer.create_publisher(TransitionEvent, "rnea_sentinel/mode", LATCHED)
        heard = TransitionEvent()
        heard.goal_state.label = "guarding"
        wait_for(lambda: modes.publish(heard) or bench.values["sentinel"] == "guarding", bench.spin)
        assert bench.node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        assert bench.node.active
    finally:
        bench.destroy()


def test_dropped_motion_shows_in_diagnostics(bench: Bench) -> None:
    bench.answer()
    bench.answer(stamp=bench.time + 30.0)
    status = bench.node.diagnostics(bench.node.loop.statistics.copy()).status[0]
    assert status.level == DiagnosticStatus.WARN
    assert "trajectory dropped 1 times" in status.message
    assert "joint_states has 1 publisher(s)" in status.message


def test_states_of_before_activation_are_not_answered(bench: Bench) -> None:
    bench.answer()
    bench.node.trigger_deactivate()
    for _ in range(5):
        bench.state()
    for _ in range(5):
        bench.spin()
    count = len(bench.commands)
    bench.node.trigger_activate()
    for _ in range(5):
        bench.spin()
    assert len(bench.commands) == count and bench.node.loop.now is None


def test_failure_of_the_loop_leaves_the_gravity_torque(bench: Bench, monkeypatch) -> None:
    bench.answer()
    assert not np.allclose(bench.answer(v=[1.0, 1.0]), GRAVITY, rtol=1e-3)

    def broken(*arguments) -> None:
        raise RuntimeError("a fault of the program")

    monkeypatch.setattr(LoopStatistics, "record", broken)
    bench.state(v=[1.0, 1.0])
    # The queue of one may drop the answer that comes right before.
    wait_for(lambda: np.allclose(bench.commands[-1], GRAVITY, rtol=1e-12, atol=0.0), bench.spin)
    status = bench.node.diagnostics(LoopStatistics()).status[0]
    assert status.level == DiagnosticStatus.ERROR
    assert "a fault of the program" in status.message


def test_without_a_wait_set_the_executor_does_it(monkeypatch, capfd) -> None:
    monkeypatch.setattr(rclpy_internals, "WaitSet", None)
    bench = Bench(**GOOD)
    try:
        assert "the executor takes the joint states" in capfd.readouterr().err
        np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
        assert bench.send(trajectory(JOINTS, [(1.0, GOAL, ZERO)]))
        bench.node.trigger_deactivate()
        bench.node.trigger_cleanup()
        bench.node.trigger_configure()
        assert "the executor takes" not in capfd.readouterr().err  # once is enough
    finally:
        bench.destroy()


def test_bad_first_state_is_not_held(bench: Bench) -> None:
    bench.refusal([math.nan, 0.0])
    assert not bench.commands
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)


ZERO, GOAL = [0.0, 0.0], [0.5, -0.5]
BAD_TRAJECTORIES = {
    "no points": trajectory(JOINTS, []),
    "no joints": trajectory([], [(1.0, [])]),
    "unknown joint": trajectory(["shoulder", "wrist"], [(1.0, GOAL)]),
    "missing joint": trajectory(["shoulder"], [(1.0, [0.5])]),
    "extra joint": trajectory([*JOINTS, "wrist"], [(1.0, [*GOAL, 0.0])]),
    "joint twice": trajectory([*JOINTS, "elbow"], [(1.0, [*GOAL, 0.0])]),
    "no positions": trajectory(JOINTS, [(1.0, [], ZERO)]),
    "short positions": trajectory(JOINTS, [(1.0, [0.5])]),
    "long velocities": trajectory(JOINTS, [(1.0, GOAL, [0.0, 0.0, 0.0])]),
    "NaN": trajectory(JOINTS, [(1.0, [0.5, math.nan])]),
    "infinite velocity": trajectory(JOINTS, [(1.0, GOAL, [math.inf, 0.0]), (2.0, GOAL, ZERO)]),
    "times that fall": trajectory(JOINTS, [(2.0, GOAL), (1.0, GOAL)]),
    "times that repeat": trajectory(JOINTS, [(1.0, GOAL), (1.0, ZERO)]),
    "time zero": trajectory(JOINTS, [(0.0, GOAL)]),
    "beyond a limit": trajectory(JOINTS, [(1.0, [0.5, 4.0])]),
    "moving at the end": trajectory(JOINTS, [(1.0, GOAL, [0.1, 0.0])]),
    "over already": trajectory(JOINTS, [(1.0, GOAL)], start=900.0),
    "a leap": trajectory(JOINTS, [(0.001, GOAL)]),
}


def test_bad_trajectories_are_refused_and_the_arm_holds(bench: Bench) -> None:
    bench.answer()
    for name, message in BAD_TRAJECTORIES.items():
        assert not bench.send(message), name
        np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    assert bench.send(trajectory(JOINTS, [(1.0, GOAL, ZERO)]))


def test_negative_time_from_start_is_refused(bench: Bench) -> None:
    bench.answer()
    message = trajectory(JOINTS, [(1.0, GOAL), (2.0, GOAL)])
    message.points[0].time_from_start.sec = -3
    message.points[1].time_from_start.sec = -2
    assert not bench.send(message)


def test_trajectory_in_another_joint_order_is_followed(bench: Bench) -> None:
    bench.answer()
    start = bench.time
    assert bench.send(trajectory(["elbow", "shoulder"], [(0.05, [-0.45, 0.33], ZERO)]))
    for _ in range(60):
        bench.answer()
    np.testing.assert_allclose(bench.node.loop.controller.desired[0], [0.33, -0.45], rtol=1e-12)
    assert bench.time - start == pytest.approx(0.06)


def test_trajectory_with_a_stamp_starts_then(bench: Bench) -> None:
    bench.answer()
    assert bench.send(trajectory(JOINTS, [(0.01, [0.31, -0.4], ZERO)], start=bench.time + 0.02))
    for _ in range(19):
        bench.answer()
    np.testing.assert_allclose(bench.node.loop.controller.desired[0], Q)
    for _ in range(15):
        bench.answer()
    np.testing.assert_allclose(bench.node.loop.controller.desired[0], [0.31, -0.4])


def test_new_trajectory_replaces_the_old_without_a_jump(bench: Bench) -> None:
    bench.answer()
    assert bench.send(trajectory(JOINTS, [(0.1, [0.4, -0.3], ZERO)]))
    previous = Q
    for k in range(60):
        if k == 30:
            assert bench.send(trajectory(JOINTS, [(0.1, [0.2, -0.4], ZERO)]))
        bench.answer()
        desired = bench.node.loop.controller.desired[0].copy()
        assert np.abs(desired - previous).max() < 0.003
        previous = desired


def test_gap_in_time_drops_the_motion(bench: Bench) -> None:
    bench.answer()
    assert bench.send(trajectory(JOINTS, [(1.0, GOAL, ZERO)]))
    bench.answer()
    moved = Q + 0.01
    expected = gravity(MODEL, Workspace(MODEL), moved, np.zeros(2))
    before = bench.commands[-1]
    # No time passes for the controller: the torque stays for a state.
    np.testing.assert_array_equal(bench.answer(moved, stamp=bench.time + 30.0), before)
    tau = bench.answer(moved)
    np.testing.assert_allclose(tau, expected, rtol=1e-12)
    np.testing.assert_allclose(bench.node.loop.controller.desired[0], moved)


def test_without_states_the_arm_is_braked_by_the_model() -> None:
    bench = Bench(**{**GOOD, "joint_state_timeout": 0.3, "joint_state_gap": 0.3})
    try:
        bench.answer()
        assert bench.send(trajectory(JOINTS, [(1.0, GOAL, ZERO)]))
        for _ in range(5):
            moving = bench.answer(v=[1.0, 1.0])
        count = len(bench.commands)
        assert not np.allclose(moving, GRAVITY, rtol=1e-3)
        wait_for(lambda: bench.node.loop.supervisor.mode is Mode.BLIND, bench.spin)
        assert "no joint_states with a new stamp for" in bench.node.loop.fault
        # To rest at where the model puts the arm then: its velocities decay by 10 1/s.
        rest = Q + 0.1
        expected = gravity(MODEL, Workspace(MODEL), rest, np.zeros(2))
        wait_for(lambda: np.allclose(bench.commands[-1], expected, rtol=1e-2), bench.spin)
        assert len(bench.commands) > count + 10
        assert not bench.send(trajectory(JOINTS, [(1.0, GOAL, ZERO)]))
        bench.answer()
        wait_for(lambda: bench.node.loop.supervisor.mode is not Mode.BLIND, bench.spin)
        assert bench.node.loop.fault == ""
        assert bench.node.loop.controller.motion is None
    finally:
        bench.destroy()


def test_stamp_of_another_clock_is_refused(bench: Bench) -> None:
    bench.answer()
    assert not bench.send(trajectory(JOINTS, [(1.0, GOAL, ZERO)], start=1.7e9))


def test_halt_brings_a_motion_to_rest(bench: Bench) -> None:
    bench.answer()
    assert not bench.node.loop.halt("a test")  # at rest already
    bench.node.trigger_deactivate()
    bench.node.trigger_activate()
    bench.state()
    wait_for(lambda: bench.node.loop.supervisor.mode is Mode.HOLDING, bench.spin)
    assert bench.send(trajectory(JOINTS, [(1.0, GOAL, ZERO)]))
    for _ in range(300):
        bench.answer()
    assert bench.node.loop.halt("a test")
    assert not bench.send(trajectory(JOINTS, [(1.0, GOAL, ZERO)]))
    for _ in range(501):
        bench.answer()
    assert not bench.node.loop.halt("a test")
    np.testing.assert_allclose(bench.node.loop.controller.desired[1:], 0.0, atol=1e-9)


def test_corrected_description_on_the_topic_is_tried_again() -> None:
    bench = Bench(start=False, **{**GOOD, "robot_description": ""})
    try:
        publisher = bench.peer.create_publisher(String, "robot_description", LATCHED)
        publisher.publish(String(data="nonsense"))
        wait_for(lambda: bench.node.fault, bench.spin)
        assert not bench.node.active
        publisher.publish(String(data=two_link_arm()))
        wait_for(lambda: bench.node.active, bench.spin)
    finally:
        bench.destroy()


def test_time_that_goes_back_is_ignored_for_a_while_and_drops_the_motion(bench: Bench) -> None:
    bench.answer()
    assert bench.send(trajectory(JOINTS, [(1.0, GOAL, ZERO)]))
    bench.answer()
    bench.time = 5.0
    for _ in range(10):
        assert "the stamps of joint_states jumped by -" in bench.refusal()
    assert bench.node.loop.controller.motion is not None
    bench.answer()
    assert bench.node.loop.controller.motion is None
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    assert bench.node.loop.supervisor.bad_states == 11


def test_states_without_a_stamp_are_timed_by_the_node(bench: Bench) -> None:
    np.testing.assert_allclose(bench.answer(stamp=0.0), GRAVITY, rtol=1e-12)
    np.testing.assert_allclose(bench.answer(stamp=0.0), GRAVITY, rtol=1e-12)
    assert 0.0 < bench.node.loop.now < 100.0


def test_diagnostics_say_what_is_wrong(bench: Bench, monkeypatch) -> None:
    assert bench.node.diagnostics(LoopStatistics()).status[0].message == "waiting for joint_states"
    bench.answer()
    wait_for(lambda: bench.node.loop.statistics.ticks)  # counted after the command was sent
    status = bench.node.diagnostics(LoopStatistics()).status[0]
    assert status.message == "in control"
    values = {value.key: value.value for value in status.values}
    assert values["motion"] == "holding" and values["ticks"] == "1"
    bench.refusal([math.nan, 0.0])
    assert "position nan" in bench.node.diagnostics(LoopStatistics()).status[0].message
    bench.answer()
    later = time.monotonic() + 100.0
    monkeypatch.setattr("time.monotonic", lambda: later)
    bench.node.loop.watch()
    monkeypatch.undo()
    status = bench.node.diagnostics(LoopStatistics()).status[0]
    assert "no joint_states with a new stamp for 100" in status.message


# Lifecycle and start.


def test_lifecycle_there_and_back(bench: Bench) -> None:
    bench.answer()
    bench.node.trigger_deactivate()
    wait_for(lambda: len(bench.commands) == 2, bench.spin)
    np.testing.assert_allclose(bench.commands[-1], GRAVITY, rtol=1e-12)
    bench.state()
    for _ in range(10):
        bench.spin()
    assert len(bench.commands) == 2  # inactive: no command
    bench.node.trigger_activate()
    moved = Q + 0.1
    expected = gravity(MODEL, Workspace(MODEL), moved, np.zeros(2))
    np.testing.assert_allclose(bench.answer(moved), expected, rtol=1e-12)  # holds where it is now
    count = len(bench.commands)
    bench.node.trigger_deactivate()
    wait_for(lambda: len(bench.commands) > count, bench.spin)
    assert bench.node.trigger_cleanup() == TransitionCallbackReturn.SUCCESS
    wait_for(lambda: not bench.states.get_subscription_count(), bench.spin)
    assert bench.node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    bench.node.trigger_activate()
    bench.await_matches()
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    bench.node.trigger_shutdown()
    wait_for(lambda: np.allclose(bench.commands[-1], GRAVITY), bench.spin)


def test_description_by_topic() -> None:
    bench = Bench(start=False, **{**GOOD, "robot_description": ""})
    try:
        bench.node.autostart()
        assert not bench.node.active
        publisher = bench.peer.create_publisher(String, "robot_description", LATCHED)
        publisher.publish(String(data=two_link_arm()))
        wait_for(lambda: bench.node.active, bench.spin)
        wait_for(bench.node.publishers, bench.spin)
    finally:
        bench.destroy()


def test_without_autostart_nothing_happens_by_itself() -> None:
    bench = Bench(start=False, **GOOD, autostart=False)
    try:
        bench.node.autostart()
        assert bench.node.loop is None
        assert bench.node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        assert not bench.node.active
    finally:
        bench.destroy()


def test_namespace_and_best_effort() -> None:
    bench = Bench(start=False, namespace="left", **GOOD, command_reliability="best_effort")
    try:
        bench.node.autostart()
        (info,) = bench.node.get_publishers_info_by_topic("/left/effort_controller/commands")
        assert info.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT
        topic = "/left/joint_states"
        wait_for(lambda: bench.node.get_subscriptions_info_by_topic(topic), bench.spin)
    finally:
        bench.destroy()


WRONG_PARAMETERS = {
    "no joints": ({"joints": None}, "'joints' is not set; it must be a string array"),
    "empty joints": ({"joints": [""]}, "'joints' is .*list of non-empty strings"),
    "joint not in the URDF": (
        {"joints": ["shoulder", "wrist"], "gains.wrist.p": 1.0, "gains.wrist.d": 1.0},
        "no joint 'wrist', which `joints` names; it has shoulder, elbow",
    ),
    "joint twice": ({"joints": ["elbow", "elbow"]}, "twice"),
    "joints not a list": (
        {"joints": "shoulder"},
        "'joints' is 'shoulder'; it must be a string array",
    ),
    "no gain": ({"gains.elbow.p": None}, "'gains.elbow.p' is not set"),
    "negative gain": ({"gains.elbow.p": -1.0}, "'gains.elbow.p' is -1.0; it must be .* at least 0"),
    "gain in words": (
        {"gains.elbow.d": "stiff"},
        "'gains.elbow.d' is 'stiff'; it must be",
    ),
    "NaN gain": ({"gains.elbow.d": math.nan}, "'gains.elbow.d' is nan"),
    "true for a gain": ({"gains.elbow.d": True}, "'gains.elbow.d' is True"),
    "unknown law": (
        {"control_law": "magic"},
        "'control_law' is 'magic'; it must be one of computed_torque, feedforward_pd",
    ),
    "interpolation": (
        {"interpolation_method": "none"},
        "'interpolation_method' is 'none'; it must be one of splines",
    ),
    "scale too large": ({"effort_limit_scale": 1.5}, "'effort_limit_scale' is 1.5; .* at most 1"),
    "scale zero": ({"effort_limit_scale": 0.0}, "'effort_limit_scale' is 0.0; .* above 0"),
    "gravity of two": ({"gravity": [0.0, 1.0]}, "'gravity' .* double array of length 3"),
    "payload on nothing": ({"payload.link": "tray"}, "payload's link is 'tray'; .* has base"),
    "payload of no body": (
        {"payload.mass": 1.0, "payload.inertia": [1.0, 0.0, 0.0, 1.0, 0.0, 9.0]},
        "payload's inertia .* belongs to no real body",
    ),
    "negative friction": (
        {"friction.elbow.coulomb": -0.5},
        "'friction.elbow.coulomb' is -0.5; .* at least 0, or -1.0 for the `friction` of the URDF",
    ),
    "negative damping": ({"friction.elbow.damping": -2.0}, "'friction.elbow.damping' is -2.0"),
    "all CPUs and one": (
        {"cpu_affinity": [-1, 0]},
        r"'cpu_affinity' is .*-1, 0.*; .* at least 0 .*, or \[-1\] for all CPUs",
    ),
    "latency": ({"cpu_dma_latency": -2}, "'cpu_dma_latency' is -2; .*, or -1 for"),
    "threshold": (
        {"diagnostics.tick_duration.warn": 0.0},
        "'diagnostics.tick_duration.warn' is 0.0; .* above 0",
    ),
    "threshold in words": ({"diagnostics.late_states.error": "x"}, "late_states.error' is 'x'"),
    "timeout": ({"joint_state_timeout": 0.0}, "'joint_state_timeout' is 0.0"),
    "reliability": ({"command_reliability": "maybe"}, "'command_reliability' is 'maybe'"),
    "not a URDF": ({"robot_description": "hello"}, "robot_description: this is not well-formed"),
    "broken URDF": (
        {"robot_description": two_link_arm().replace('value="2.0"', 'value="-2.0"')},
        "link 'upper': <mass value> is -2",
    ),
    "locked joint that is not there": (
        {"locked_positions.finger": 0.1},
        "`locked_positions` names 'finger'",
    ),
    "locked in words": ({"locked_positions.finger": "open"}, "'locked_positions.finger' is 'open'"),
    "bad topic": ({"command_topic": "no spaces please"}, "'command_topic' is 'no spaces please'"),
}


@pytest.mark.parametrize("name", WRONG_PARAMETERS)
def test_wrong_parameter_stops_configure_with_its_name(name: str) -> None:
    changes, words = WRONG_PARAMETERS[name]
    parameters = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    bench = Bench(start=False, **parameters)
    try:
        bench.node.autostart()
        assert not bench.node.active
        assert re.search(words, bench.node.fault), bench.node.fault
        for parameter, value in GOOD.items():  # mended by `ros2 param set`, it configures
            bench.node.set_parameters([Parameter(parameter, value=value)])
        if changes.keys() <= GOOD.keys():
            assert bench.node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    finally:
        bench.destroy()


def test_unknown_parameter_is_found() -> None:
    bench = Bench(start=False, **GOOD, **{"gain.elbow.p": 1.0, "gains.wrist.p": 1.0})
    try:
        assert bench.node.parameters.unknown() == ["gain.elbow.p", "gains.wrist.p"]
    finally:
        bench.destroy()


def test_model_parameters_count_from_the_start() -> None:
    given = {"offset": 0.7, "damping": 3.0, "coulomb": 0.5}
    friction = {f"friction.elbow.{name}": value for name, value in given.items()}
    bench = Bench(**GOOD, **friction, friction_compensation=True)
    try:
        np.testing.assert_allclose(bench.answer(Q), GRAVITY, rtol=1e-9)
        expected = GRAVITY + np.array([0.0, 0.7])
        np.testing.assert_allclose(bench.answer(Q), expected, rtol=1e-9)
        model = bench.node.loop.controller.model
        assert (model.damping[1], model.friction[1]) == (3.0, 0.5)
    finally:
        bench.destroy()


def test_parameters_while_active(bench: Bench) -> None:
    bench.answer()

    def set_parameter(name: str, value: object) -> str:
        (result,) = bench.node.set_parameters([Parameter(name, value=value)])
        return "" if result.successful else result.reason

    off = Q + np.array([0.01, 0.0])
    soft = bench.answer(off)
    assert set_parameter("gains.shoulder.p", 300) == ""  # an integer will do
    stiff = bench.answer(off)
    assert stiff[0] < soft[0] - 0.1
    assert "'gains.shoulder.p' is -1.0; it must be" in set_parameter("gains.shoulder.p", -1.0)
    np.testing.assert_allclose(bench.answer(off), stiff, rtol=1e-12)
    assert "cannot change now; clean the node up" in set_parameter("control_law", "pd")
    assert "'gravity'" in set_parameter("gravity", [0.0])
    payload = [
        Parameter("payload.mass", value=1.5),
        Parameter("payload.center_of_mass", value=[0.1, 0.0, 0.05]),
    ]
    assert bench.node.set_parameters_atomically(payload).successful
    loaded = RobotModel.from_urdf_string(two_link_arm())
    loaded.set_payload("lower", 1.5, [0.1, 0.0, 0.05])
    expected = gravity(loaded, Workspace(loaded), Q, np.zeros(2))
    np.testing.assert_allclose(bench.answer(Q), expected, rtol=1e-9)
    refused = set_parameter("payload.inertia", [1.0, 0.0, 0.0, 1.0, 0.0, 9.0])
    assert "belongs to no real body" in refused
    assert list(bench.node.get_parameter("payload.inertia").value) == [0.0] * 6
    np.testing.assert_allclose(bench.answer(Q), expected, rtol=1e-9)
    assert set_parameter("payload.inertia", [0.1, 0.0, 0.0, 0.1, 0.0, 0.1]) == ""
    assert set_parameter("payload.mass", 0.0) == ""  # none, whatever its inertia
    np.testing.assert_allclose(bench.answer(Q), GRAVITY, rtol=1e-9)
    assert "cannot change now" in set_parameter("use_sim_time", True)
    assert set_parameter("use_sim_time", False) == ""  # as it is
    assert set_parameter("gravity", [0.0, 0.0, 0.0]) == ""
    np.testing.assert_allclose(bench.answer(Q), 0.0, atol=1e-12)
    assert set_parameter("effort_limit_scale", 0.01) == ""
    assert np.abs(bench.answer(off)).max() == pytest.approx(1.0)
    assert "to be held, and its effort limit is 1" in set_parameter("gravity", [0.0, 0.0, -9.81])
    assert "'gravity' is [0.0, 0.0, -981.0]" in set_parameter("gravity", [0.0, 0.0, -981.0])
    for _ in range(12):
        bench.answer(off)
    assert "states at 1000 Hz" in set_parameter("gains.elbow.d", 2000.0)
    assert set_parameter("gains.elbow.d", 25.0) == ""
