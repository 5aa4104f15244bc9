"""Streams of joint targets over DDS: which topics move the arm, who is followed, what is refused,
and what the log and /diagnostics say about it; by machine code and by ticks in Python."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from dds import JOINTS, wait_for
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from stream_bench import FOREIGN, IGNORED, TAKEN, StreamBench, stream_bench, tells_publishers

from rnea_control.control import ControlLaw, Supervisor

DOMAIN = 59
RATE_LIMIT = 2000.0  # limit of the torques' rate [Nm/s]
LARGE = 64 * 1024  # [bytes]


def target(
    position: Sequence[float], names: Sequence[str] = JOINTS, stamp: float = 0.0, **fields: object
) -> JointState:
    message = JointState(name=list(names), position=array("d", position))
    seconds, part = divmod(stamp, 1.0)
    message.header.stamp.sec, message.header.stamp.nanosec = int(seconds), int(1e9 * part)
    for name, values in fields.items():
        setattr(message, name, array("d", values))
    return message


@pytest.fixture(
    scope="module",
    params=["machine code", pytest.param("python", marks=pytest.mark.explores)],
)
def shared_bench(request: pytest.FixtureRequest) -> Iterator[StreamBench]:
    with stream_bench(StreamBench, DOMAIN, request.param) as bench:
        yield bench


@pytest.fixture
def bench(shared_bench: StreamBench) -> StreamBench:
    """At rest, and a stream may begin."""
    shared_bench.rest()
    return shared_bench


def jog(names: Sequence[str], velocities: Sequence[float]) -> object:
    messages = pytest.importorskip("control_msgs.msg", reason="the ROS 2 wheels lack it")
    return messages.JointJog(joint_names=list(names), velocities=array("d", velocities))


def test_targets_by_name_move_the_desired_position(bench: StreamBench) -> None:
    begin = bench.desired
    to = begin + np.array([0.05, -0.03])
    bench.stream(lambda: target(to[::-1], JOINTS[::-1]), count=25)
    assert bench.mode == "streaming"
    np.testing.assert_allclose(bench.desired, to, atol=1e-4)
    bench.stream(lambda: target([to[1] + 0.04], JOINTS[1:]), count=25)
    np.testing.assert_allclose(bench.desired, to + np.array([0.0, 0.04]), atol=1e-4)
    assert int(bench.values["stream targets taken"]) >= 50


def test_positions_in_the_order_of_joints_move_the_desired_position(bench: StreamBench) -> None:
    commands = bench.sender(Float64MultiArray, "rnea_controller/commands")
    to = bench.desired + np.array([-0.04, 0.06])
    bench.stream(lambda: Float64MultiArray(data=array("d", to)), commands, count=25)
    np.testing.assert_allclose(bench.desired, to, atol=1e-4)
    bench.peer.destroy_publisher(commands)


def test_jog_moves_one_joint_and_stops(bench: StreamBench) -> None:
    begin, message = bench.desired, jog(JOINTS[1:], [0.2])
    jogs = bench.sender(type(message), "rnea_controller/delta_joint_cmds")
    bench.stream(lambda: message, jogs, count=10)
    moved = bench.desired - begin
    assert moved[0] == 0.0 and 0.02 < moved[1] < 0.05
    bench.rest()
    assert not bench.node.loop.controller.desired[1].any()
    bench.peer.destroy_publisher(jogs)


def test_stale_stream_ends_in_mode_holding_and_is_logged(
    bench: StreamBench, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.stream(lambda: target(bench.desired + 0.02), count=10)
    bench.node.configured.stream_watch.look()
    assert bench.mode == "streaming"
    bench.rest()
    assert bench.mode == "holding" and not bench.node.loop.controller.desired[1].any()
    name = "/peer" if tells_publishers(bench) else "a node"
    bench.until_logged(
        capfd, f"target_joint: the arm no longer follows the stream of {name}, whose"
    )


REFUSED = {
    "not finite": (lambda q: target([q[0], math.nan]), "a value is not finite"),
    "length": (lambda q: target(q[:1]), "the number of values differs"),
    "unknown": (lambda q: target(q, ["shoulder", "wrist"]), "it names a joint that is not in"),
    "twice": (lambda q: target(q, ["elbow", "elbow"]), "it names a joint that is not in"),
    "far": (
        lambda q: target(q + np.array([0.0, 0.7])),
        "elbow is 0.7 rad from its desired position",
    ),
    "empty": (lambda q: JointState(), "it has no position or velocity"),
    "large": (lambda q: target(np.zeros(LARGE // 8)), "its bytes are no message of this type"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_targets_move_nothing_and_are_logged(
    bench: StreamBench, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    make, words = REFUSED[kind]
    begin, refused = bench.desired, int(bench.values["stream targets refused"])
    bench.node.configured.stream_watch._logged.clear()
    for _ in range(3):
        assert bench.send(make(begin)) == IGNORED
        bench.run(5)
    np.testing.assert_array_equal(bench.desired, begin)
    assert bench.mode == "holding"
    assert int(bench.values["stream targets refused"]) == refused + 3
    bench.until_logged(capfd, words)
    # In a stream, too, they move nothing.
    bench.stream(lambda: target(begin), count=3)
    assert bench.send(make(begin)) == IGNORED
    bench.run()
    np.testing.assert_allclose(bench.desired, begin, atol=1e-12)


def test_first_publisher_counts_and_the_second_is_named(
    bench: StreamBench, capfd: pytest.CaptureFixture[str]
) -> None:
    if not tells_publishers(bench):
        pytest.skip("messages do not tell their publisher here")
    other = bench.sender(Float64MultiArray, "rnea_controller/commands")
    begin = bench.desired
    away = Float64MultiArray(data=array("d", begin + 0.1))
    bench.node.configured.stream_watch._logged.clear()
    for _ in range(5):
        assert bench.send(target(begin)) == TAKEN
        bench.run(5)
        assert bench.send(away, other) == FOREIGN
        bench.run(5)
    np.testing.assert_allclose(bench.desired, begin, atol=1e-12)
    bench.until_logged(
        capfd, "of /peer are ignored, as the arm follows target_joint of /peer; stop one of them"
    )
    bench.rest()
    assert bench.send(away, other) == TAKEN  # the first one has paused
    bench.peer.destroy_publisher(other)


def test_stream_replaces_a_motion_and_a_refused_trajectory_ends_no_stream(
    bench: StreamBench,
) -> None:
    to = bench.desired
    assert bench.send_trajectory([(2.0, to + 0.3, [0.0, 0.0])])
    motion = bench.node.loop.controller.motion
    bench.run(50)
    bench.stream(lambda: target(bench.desired), count=2)
    bench.until_streaming()
    assert motion.ending.text == "a stream of targets has replaced it"
    here = bench.desired
    for bad in ([(0.001, here + 1.0, [0.0, 0.0])], [(1.0, here + 100.0, [0.0, 0.0])]):
        assert not bench.send_trajectory(bad)
        assert bench.mode == "streaming"
    assert bench.send(target(here)) == TAKEN
    assert bench.send_trajectory([(0.2, here, [0.0, 0.0])])
    assert bench.send(target(here)) == IGNORED  # the stream must pause first
    wait_for(bench.rests, bench.spin)


@pytest.mark.parametrize("stop", ["hold", "emergency stop", "deactivation", "fault"])
def test_stream_that_goes_on_begins_no_motion(bench: StreamBench, stop: str) -> None:
    bench.stream(lambda: target(bench.desired), count=2)
    bench.until_streaming()
    loop, node, begin = bench.node.loop, bench.node, bench.desired
    if stop == "hold":
        loop.call(Supervisor.hold)
    elif stop == "emergency stop":
        loop.call(lambda it: it.emergency_stop(True, "button"))
        loop.call(lambda it: it.emergency_stop(False, "button"))
    elif stop == "fault":
        state = loop.controller.time, *loop.controller.last_state
        loop.call(lambda it: it.fail("a test", *state))
    else:
        node.trigger_deactivate()
        node.trigger_activate()
        wait_for(lambda: bench.offer(target(begin + 0.1)) == "holding")
    begin = bench.desired
    for k in range(20):
        assert bench.send(target(begin + 0.1)) == IGNORED
        bench.run()
        if stop == "fault" and k == 5:
            loop.call(Supervisor.reset_fault)
    np.testing.assert_allclose(bench.desired, begin, atol=0.01)
    assert bench.mode == ("emergency_stop" if stop == "emergency stop" else "holding")
    loop.call(lambda it: it.resume())
    assert bench.send(target(bench.desired)) == TAKEN


def test_control_law_does_not_change_in_a_stream(bench: StreamBench) -> None:
    bench.stream(lambda: target(bench.desired), count=2)
    bench.until_streaming()
    law = ControlLaw.gravity_compensation.name
    assert "cannot change" in bench.set(control_law=law)
    assert bench.mode == "streaming"
    bench.stream(lambda: target(bench.desired), count=2)


def test_stream_parameters_change_in_a_stream_without_a_jump(bench: StreamBench) -> None:
    limits = {f"torque_rate_limits.{joint}": RATE_LIMIT for joint in JOINTS}
    assert bench.set(**limits) == ""
    begin = bench.desired
    changes = [
        {"stream.bandwidth": 100.0},
        {"stream.max_velocity.shoulder": 0.5, "stream.max_velocity.elbow": 0.5},
        {"stream.max_acceleration.shoulder": 5.0, "stream.max_acceleration.elbow": 5.0},
        {"stream.max_jerk.shoulder": 500.0, "stream.max_jerk.elbow": 500.0},
        {"stream.target_timeout": 0.2},
        {"stream.bandwidth": 5.0, "stream.max_distance": 2.0},
    ]
    sent = len(bench.commands)
    for k, change in enumerate(changes):
        assert bench.set(**change) == ""
        bench.stream(lambda k=k: target(begin + 0.02 * (-1) ** k), count=3)
    steps = np.abs(np.diff(bench.commands[sent - 1 :], axis=0)).max()
    assert 0.0 < steps <= RATE_LIMIT * 0.001 * 1.01
    bench.reset()
    wait_for(lambda: bench.state() or bench.spin() or bench.node.loop.now is not None)


def test_without_control_msgs_the_jog_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from rnea_control.node import interfaces  # noqa: PLC0415

    monkeypatch.setattr(interfaces.Package, "is_installed", property(lambda self: False))
    topics, kinds = interfaces.loop_inputs()
    names = [name for _, name, _ in topics]
    assert "~/delta_joint_cmds" not in names and {"target_joint", "~/commands"} <= set(names)
    assert len(kinds) == len(topics) - 1
    assert "~/delta_joint_cmds" in interfaces.lacking()
