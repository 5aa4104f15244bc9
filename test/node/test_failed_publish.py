"""rcl refuses to publish or to take, and no loop ends: neither the controller's nor the
sentinel's."""

from __future__ import annotations

import ctypes
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import rclpy
from dds import JOINTS, LATCHED, ros, wait_for
from lifecycle_msgs.msg import TransitionEvent
from node_bench import COMMANDS, GOOD, LEASE, Bench, Q, joint_state
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription
from robots import two_link_arm
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_control.control import Supervisor
from rnea_control.loop.arm_loop import ArmLoop
from rnea_control.ros import raw_subscription
from rnea_control.ros.rcl_calls import Proof
from rnea_control.sentinel.sentinel_node import SentinelNode

DOMAIN = 58
RATE = 1.0  # limit of the torques' rate [Nm/s]
PAUSE = 0.03  # between two states [s]


@contextmanager
def invalid(end: Publisher | Subscription, loop: ArmLoop) -> Iterator[None]:
    """rcl answers RCL_RET_PUBLISHER_INVALID or RCL_RET_SUBSCRIPTION_INVALID to each call for this
    end of a topic: its structure points nowhere. Between two ticks, as rcl reads that twice."""
    pointer = ctypes.c_void_p.from_address(int(end.handle.pointer))
    with loop.paused():
        before, pointer.value = pointer.value, None
    try:
        yield
    finally:
        with loop.paused():
            pointer.value = before


def unpublished(bench: Bench) -> int:
    """Number of commands that were not published, as /diagnostics says."""
    return int(bench.values.get("commands not published", 0))


@pytest.fixture(params=["machine code", "python"])
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    if request.param == "python":
        monkeypatch.setattr(raw_subscription, "takes_like_rclpy", lambda domain: Proof.NOTHING)
    with ros(DOMAIN):
        bench = Bench(**{**GOOD, **{f"torque_rate_limits.{joint}": RATE for joint in JOINTS}})
        try:
            for _ in range(60):  # the first fifty are Python's
                bench.answer()
            natively = bench.node.loop.arm_loop.shared.ticks > 0
            assert natively == (request.param == "machine code")
            yield bench
        finally:
            bench.destroy()


def test_command_that_is_not_published_is_followed_by_the_next_one(bench: Bench) -> None:
    loop = bench.node.loop
    last = bench.commands[-1]
    with invalid(loop.arm_loop.command.publisher, loop.arm_loop):
        for attempts in range(1, 20):
            bench.state(q=Q + 0.05)  # it is pushed, and the controller pulls it back
            wait_for(
                lambda n=attempts: loop.arm_loop.failure or unpublished(bench) >= n, bench.spin
            )
        wait_for(lambda: not loop.arm_loop.runs_natively or loop.arm_loop.shared.sequence % 2 == 0)
        # The hardware keeps the last torque, and what follows starts from that.
        np.testing.assert_array_equal(loop.controller.in_force, last)
    assert not loop.arm_loop.failure and bench.values["mode"] == "holding"
    assert unpublished(bench) >= 19
    step = np.abs(bench.answer(q=Q + 0.05) - last)
    assert 0.0 < step.max() < 0.006 * RATE


@pytest.mark.explores
@pytest.mark.parametrize("bench", ["machine code"], indirect=True)  # it takes by address
def test_emergency_stop_that_is_not_taken_is_logged_and_the_arm_is_held(
    bench: Bench, capfd: pytest.CaptureFixture[str]
) -> None:
    loop = bench.node.loop

    def logged() -> bool:
        bench.answer()
        time.sleep(PAUSE)  # the loop looks at the other messages meanwhile
        return "a message was not taken" in capfd.readouterr().err

    with invalid(loop.arm_loop.heard._subscriptions[1], loop.arm_loop):
        ticks = loop.arm_loop.shared.ticks
        for _ in range(4):  # again and again
            wait_for(logged, bench.spin)
        assert loop.arm_loop.shared.ticks > ticks
    assert not loop.arm_loop.failure and bench.values["mode"] == "holding"


def test_mode_that_is_not_published_is_published_later(bench: Bench) -> None:
    node, loop, modes = bench.node, bench.node.loop, []
    bench.peer.create_subscription(
        TransitionEvent, "rnea_controller/mode", lambda m: modes.append(m.goal_state.label), LATCHED
    )
    wait_for(lambda: modes, bench.spin)
    failures = node.failures
    with invalid(node.configured._modes, loop.arm_loop):
        loop.call(Supervisor.guide)
        wait_for(lambda: loop.arm_loop.failure or node.failures > failures, bench.spin)
        bench.answer()
    wait_for(lambda: modes[-1] == "gravity_compensation", bench.spin)
    assert not loop.arm_loop.failure


def test_sentinel_takes_the_arm_though_its_mode_and_a_command_are_not_published() -> None:
    parameters = {
        "joints": JOINTS,
        "robot_description": two_link_arm(),
        "command_topic": COMMANDS,
        "command_lease": LEASE,
        "command_timeout": 1.5 * LEASE,
        "thread_priority": 0,
        "lock_memory": False,
    }
    with ros(DOMAIN + 1):
        node = SentinelNode(
            parameter_overrides=[Parameter(name, value=value) for name, value in parameters.items()]
        )
        peer, executor = rclpy.create_node("rnea_controller"), SingleThreadedExecutor()
        for each in (node, peer):
            executor.add_node(each)
        node.begin()
        guard, modes, stamp = node.guard, [], 10**12
        states = peer.create_publisher(JointState, "joint_states", 1)
        commands = peer.create_publisher(Float64MultiArray, COMMANDS, 1)
        topic = TransitionEvent, "rnea_sentinel/mode"
        peer.create_subscription(*topic, lambda m: modes.append(m.goal_state.label), LATCHED)

        def spin(commanding: bool = False) -> None:
            nonlocal stamp
            stamp += 2 * 10**6
            states.publish(joint_state(stamp, Q))
            if commanding:
                commands.publish(Float64MultiArray(data=array("d", [0.5, 0.0])))
            executor.spin_once(timeout_sec=0.002)

        try:
            wait_for(lambda: guard.handover._armed, lambda: spin(commanding=True))
            with invalid(node._mode, guard.loop):
                wait_for(lambda: guard.loop.failure or guard.holds, spin)
                with invalid(guard.loop.command.publisher, guard.loop):
                    wait_for(lambda: guard.loop.failure or guard.loop.unpublished > 20, spin)
            assert guard.holds and not guard.loop.failure
            sent = guard.commands_sent
            wait_for(lambda: modes[-1:] == ["commanding"] and guard.commands_sent > sent, spin)
        finally:
            executor.shutdown()
            node.destroy_node()
            peer.destroy_node()
