"""Nodes that differ in what they are started with."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import rclpy
from dds import ros, trajectory, wait_for
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import TransitionEvent
from node_bench import COMMANDS, GOOD, GRAVITY, JOINTS, LATCHED, Bench, Q
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.qos import ReliabilityPolicy
from robots import two_link_arm
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Float64MultiArray, String

from rnea_control.control import Waypoint
from rnea_control.loop.loop_records import PERIOD_JITTER, STATE_INTERVAL
from rnea_control.node import control_loop
from rnea_control.node.configured import NO_CLOCK
from rnea_control.ros import raw_subscription
from rnea_control.ros.rcl_calls import Proof

NUMBERS = itertools.count()
SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
WAY = trajectory(JOINTS, [(1.0, [0.5, -0.5], [0.0, 0.0])])


@pytest.fixture
def make() -> Iterator[Callable[..., Bench]]:
    """Makes a bench whose parameters are those of `GOOD` but for the given ones. Each test has a
    context of its own, for the reason in test_node.py, and a namespace, so that it is not matched
    with what is left of another test."""
    benches: list[Bench] = []

    def made(start: bool = True, namespace: str = "", **changes: object) -> Bench:
        given = {name: value for name, value in (GOOD | changes).items() if value is not None}
        benches.append(Bench(start, namespace or f"n{next(NUMBERS)}", **given))
        return benches[-1]

    with ros(92):
        yield made
        for bench in benches:
            bench.destroy()


def test_states_with_the_same_stamp_do_not_hold_time_back(make) -> None:
    bench = make(joint_state_gap=0.2, **{"speed_scaling.initial_scaling_factor": 0.5})
    bench.answer()
    assert bench.values["speed scaling"] == "0.5"
    loop = bench.node.loop
    wait_for(
        lambda: loop.call(lambda supervisor: supervisor.controller.predicting),
        lambda: bench.state(stamp=bench.time) or bench.spin(),
    )
    assert loop.controller.time - loop.now >= 0.2


def test_simulated_time_needs_a_clock_and_is_never_late(make) -> None:
    bench = make(joint_state_timeout=0.1, joint_state_gap=0.1, use_sim_time=True)
    assert bench.status.level == DiagnosticStatus.ERROR
    assert bench.status.message == NO_CLOCK
    # The executor takes no clock, and the node's clock goes by it.
    assert "/clock" not in [one.topic_name for one in bench.node.subscriptions]
    clock, message = bench.peer.create_publisher(Clock, "/clock", 1), Clock()
    message.clock.sec = int(bench.time)
    wait_for(lambda: clock.publish(message) or bench.status.message != NO_CLOCK, bench.spin)
    assert bench.node.get_clock().now().to_msg().sec == message.clock.sec
    second = bench.peer.create_publisher(Clock, "/clock", 1)
    peer = bench.peer.get_fully_qualified_name()
    words = (
        f"/clock is published by {peer} and {peer}; only one node may publish it: stop the others"
    )
    wait_for(lambda: bench.status.message == words, bench.spin)
    bench.peer.destroy_publisher(second)
    wait_for(lambda: bench.status.message != words, bench.spin)
    for _ in range(3):
        bench.answer()
        time.sleep(0.11)  # a hundred times as long as the stamps say, and longer than the timeout
    message.clock.sec = -1
    for bad in (message, b"", b"\x00\x01\x00\x00\x05"):  # ends no loop, and no time
        refused = bench.node.clock.refused
        clock.publish(bad)
        wait_for(lambda refused=refused: bench.node.clock.refused > refused, bench.answer)
    loop = bench.node.loop
    assert not loop.arm_loop.failure
    assert loop.arm_loop.statistics.counts.late == 0
    assert not loop.arm_loop.statistics.histograms[[PERIOD_JITTER, STATE_INTERVAL]].any()
    # A reset ends no motion.
    target = Waypoint(1.0, np.array(Q) + 0.01, np.zeros(2), np.zeros(2))
    loop.controller.follow(loop.now, [target], 0.0)
    for jump in (-5.0, 10.0):
        before = loop.now
        bench.time += jump
        bench.answer()
        assert before <= loop.now <= before + 0.2
        assert loop.controller.is_moving and not loop.fault
    assert loop.arm_loop.statistics.counts.dropped == loop.supervisor.bad_states == 0


def test_doubtful_values_of_the_urdf_are_logged(make, capfd) -> None:
    make(robot_description=two_link_arm().replace('upper="3"', 'upper="170"'))
    assert "upper of shoulder, elbow go to 170 rad, 27 turns" in capfd.readouterr().err


def test_without_addresses_the_executor_does_it(make, monkeypatch, capfd) -> None:
    monkeypatch.setattr(raw_subscription, "takes_like_rclpy", lambda domain: Proof.NOTHING)
    monkeypatch.setattr(control_loop, "LONGEST_WAIT_FOR_REST", 0.0)
    bench = make(last_command="zero")
    assert "an executor receives joint_states" in capfd.readouterr().err
    np.testing.assert_allclose(bench.answer(), GRAVITY, rtol=1e-12)
    assert bench.send(WAY)
    bench.node.trigger_deactivate()
    wait_for(lambda: not bench.commands[-1].any(), bench.spin)
    assert "The last command is zero torque" in capfd.readouterr().err
    bench.node.trigger_cleanup()
    bench.node.trigger_configure()
    assert "an executor takes" not in capfd.readouterr().err  # once is enough


def test_sentinel_may_be_required(make) -> None:
    bench = make(start=False, require_sentinel=True)
    bench.node.autostart()
    assert not bench.node.active
    modes = bench.peer.create_publisher(TransitionEvent, "rnea_sentinel/mode", LATCHED)
    heard = TransitionEvent()
    heard.goal_state.label = "guarding"
    # It may start later than the controller: two processes of one launch file on a busy computer.
    wait_for(lambda: modes.publish(heard) or bench.node.active, bench.spin)
    assert bench.values["sentinel"] == "guarding"
    bench.node.trigger_deactivate()
    bench.node.publish_diagnostics()
    assert not bench.node.active  # whoever has deactivated it wants that


def test_sentinel_is_known_by_its_ear_on_the_commands(make) -> None:
    """Its mode may be discovered later, and it may have the arm."""
    bench = make(start=False)
    sentinel = rclpy.create_node("rnea_sentinel", namespace=bench.peer.get_namespace())
    sentinel.create_subscription(Float64MultiArray, COMMANDS, print, 10)
    wait_for(lambda: bench.peer.count_subscribers(COMMANDS) == 2, bench.spin)
    bench.node.autostart()
    assert bench.node.active and not bench.node.loop.arm_loop.handover.commanding
    sentinel.destroy_node()


def test_corrected_description_on_the_topic_is_tried_again(make) -> None:
    bench = make(start=False, robot_description="")
    bench.node.autostart()
    assert not bench.node.active and not bench.node.fault
    publisher = bench.peer.create_publisher(String, "robot_description", LATCHED)
    publisher.publish(String(data="nonsense"))
    wait_for(lambda: bench.node.fault, bench.spin)
    assert not bench.node.active
    publisher.publish(String(data=two_link_arm()))
    wait_for(lambda: bench.node.active, bench.spin)
    wait_for(bench.node.loop.arm_loop.heard.publishers, bench.spin)


def test_namespace_and_best_effort_without_autostart(make) -> None:
    settings = {"autostart": False, "command_reliability": "best_effort"}
    bench = make(start=False, namespace="left", **settings)
    bench.node.autostart()
    assert bench.node.loop is None
    assert bench.node.trigger_configure() == SUCCESS
    assert not bench.node.active
    (info,) = bench.node.get_publishers_info_by_topic("/left/effort_controller/commands")
    assert info.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT
    topic = "/left/joint_states"
    wait_for(lambda: bench.node.get_subscriptions_info_by_topic(topic), bench.spin)


# Wrong at the start, in the order in which they are found: what is said of each, and what mends it.
FAULTS = {
    "autostart": (1, "parameter 'autostart' is 1; it must be a boolean", True),
    "robot_description": (7, "parameter 'robot_description' is 7; it must be", two_link_arm()),
    "joints": (None, "parameter 'joints' is not set; it must be a string array", ["shoulder"]),
    "locked_positions.elbow": ("open", "parameter 'locked_positions.elbow' is 'open'", 0.0),
    "control_law": ("magic", "parameter 'control_law' is 'magic'; it must be one of", "pd"),
    "gains.shoulder.p": (-1.0, "parameter 'gains.shoulder.p' is -1.0; it must be a double", 1.0),
    "payload.link": ("tray", "the parameters 'payload.*' do not fit: the payload's link is", ""),
    "command_topic": ("no spaces", "parameter 'command_topic' is 'no spaces'", "commands"),
}


def test_wrong_parameter_stops_configure_with_its_name_until_it_is_mended(make) -> None:
    unknown = {"gain.shoulder.p": 1.0, "gains.wrist.p": 1.0}
    wrong = {name: value for name, (value, _, _) in FAULTS.items()}
    bench = make(start=False, **wrong, **unknown)
    node, left = bench.node, list(FAULTS)
    node.autostart()
    while left:
        name = left.pop(0)
        _, words, right = FAULTS[name]
        assert node.fault.startswith(words)
        assert bench.set(**{name: right}) == ""
        if name == "autostart":
            node.autostart()
        else:
            assert node.trigger_configure() == (FAILURE if left else SUCCESS)
    assert not node.active and node.fault == ""
    of_elbow = (name for name in GOOD if ".elbow" in name)  # which is locked
    assert node.parameters.unknown() == sorted([*unknown, *of_elbow])
