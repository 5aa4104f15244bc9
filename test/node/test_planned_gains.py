"""A planner's gains over DDS with the messages of linear_feedback_controller: what moves the arm,
what is refused and logged, and what planners receive; by machine code and by ticks in Python."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("linear_feedback_controller_msgs", reason="the ROS 2 wheels lack it")

from dds import JOINTS, wait_for
from linear_feedback_controller_msgs.msg import Control, Sensor
from planned_arm import control
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from stream_bench import FOREIGN, IGNORED, TAKEN, StreamBench, stream_bench, tells_publishers

from rnea_control.control.references import Reference

DOMAIN = 66
# Of linear_feedback_controller and its planners.
PLANNERS_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
K = np.array([[100.0, 5.0, 20.0, 1.0], [-5.0, 120.0, -1.0, 25.0]])


class PlannedBench(StreamBench):
    """An arm that stays where it is, whatever a planner's torque."""

    def __init__(self) -> None:
        super().__init__()
        self.plans = self.peer.create_publisher(Control, "control", PLANNERS_QOS)
        wait_for(self.plans.get_subscription_count, self.spin)
        self.q = self.desired

    def run(self, states: int = 20) -> None:
        for _ in range(states):
            if not self.follows:
                self.q = self.desired
            self.answer(self.q, np.zeros(2))

    @property
    def follows(self) -> bool:
        reference = Reference(int(self.node.loop.controller.rows.reference))
        return reference is Reference.feedback_gains

    def plan(self, tau: object = (0.0, 0.0), names: object = JOINTS, way: float = 0.0) -> Control:
        return control(K, np.array(tau), self.q + way, np.zeros(2), names)


@pytest.fixture(
    scope="module",
    params=["machine code", pytest.param("python", marks=pytest.mark.explores)],
)
def shared_bench(request: pytest.FixtureRequest) -> Iterator[PlannedBench]:
    with stream_bench(PlannedBench, DOMAIN, request.param) as bench:
        yield bench


@pytest.fixture
def bench(shared_bench: PlannedBench) -> PlannedBench:
    """At rest, and a stream may begin."""
    shared_bench.rest()
    return shared_bench


def test_gains_give_the_torque_and_the_arm_holds_when_they_end(
    bench: PlannedBench, capfd: pytest.CaptureFixture[str]
) -> None:
    bench.stream(lambda: bench.plan((2.0, -1.0), way=0.01), bench.plans, count=40)
    assert bench.mode == "streaming" and bench.follows
    expected = np.array([2.0, -1.0]) + K[:, :2] @ np.full(2, 0.01)
    np.testing.assert_allclose(bench.commands[-1], expected, atol=1e-9)
    bench.node.configured.stream_watch.look()
    bench.rest()
    assert bench.mode == "holding" and not bench.follows
    name = "/peer" if tells_publishers(bench) else "a node"
    bench.until_logged(capfd, f"control: the arm no longer follows the stream of {name}, whose")


def test_names_give_the_order(bench: PlannedBench) -> None:
    message = control(K, np.array([2.0, -1.0]), bench.q[::-1] + 0.01, np.zeros(2), JOINTS[::-1])
    bench.stream(lambda: message, bench.plans, count=40)
    turned = K[::-1][:, [1, 0, 3, 2]]
    expected = np.array([-1.0, 2.0]) + turned[:, :2] @ np.full(2, 0.01)
    np.testing.assert_allclose(bench.commands[-1], expected, atol=1e-9)


REFUSED = {
    "far": (lambda m: m.initial_state.joint_state.position, 1, 3.0, "from its measured position"),
    "not finite": (lambda m: m.feedback_gain.data, 2, math.nan, "a value is not finite"),
    "large": (lambda m: m.feedforward.data, 0, 1e100, "a value is beyond 1e12"),
    "joint": (lambda m: m.initial_state.joint_state.name, 0, "gripper", "it names a joint that is"),
    "size": (
        lambda m: m.feedback_gain.layout.dim,
        slice(None, None, -1),
        None,
        "the number of values differs",
    ),
}


@pytest.mark.parametrize("which", REFUSED)
def test_refused_messages_move_nothing_and_are_logged(
    bench: PlannedBench, which: str, capfd: pytest.CaptureFixture[str]
) -> None:
    part, entry, value, words = REFUSED[which]

    def broken() -> Control:
        message = bench.plan((50.0, 50.0))
        values = part(message)
        if value is None:
            values.reverse()
        else:
            values[entry] = value
        return message

    bench.node.configured.stream_watch._logged.clear()
    for _ in range(3):
        assert bench.send(broken(), bench.plans) == IGNORED
        bench.run(5)
    assert bench.mode == "holding"
    bench.until_logged(capfd, words)
    bench.stream(bench.plan, bench.plans, count=3)
    before = bench.commands[-1].copy()
    assert bench.send(broken(), bench.plans) == IGNORED
    bench.run(1)
    assert np.abs(bench.commands[-1] - before).max() < 3.0 and bench.mode == "streaming"


def test_targets_of_another_publisher_are_refused_meanwhile(bench: PlannedBench) -> None:
    if not tells_publishers(bench):
        pytest.skip("messages do not tell their publisher here")
    bench.stream(bench.plan, bench.plans, count=3)
    message = JointState(name=list(JOINTS), position=(bench.q + 0.05).tolist())
    assert bench.send(message) == FOREIGN
    assert bench.follows


@pytest.mark.parametrize("stop", ["hold", "emergency stop"])
def test_gains_that_go_on_begin_no_motion(bench: PlannedBench, stop: str) -> None:
    loop = bench.node.loop
    bench.stream(bench.plan, bench.plans, count=2)
    bench.until_streaming()
    if stop == "hold":
        loop.call(lambda it: it.hold())
    else:
        loop.call(lambda it: it.emergency_stop(True, "button"))
        loop.call(lambda it: it.emergency_stop(False, "button"))
    for _ in range(10):
        assert bench.send(bench.plan((50.0, 0.0)), bench.plans) == IGNORED
        bench.run()
    assert bench.mode == ("holding" if stop == "hold" else "emergency_stop")
    loop.call(lambda it: it.resume())
    assert bench.send(bench.plan(), bench.plans) == TAKEN


def test_timeout_changes_live(bench: PlannedBench) -> None:
    assert bench.set(control_timeout=0.5) == ""
    bench.stream(bench.plan, bench.plans, count=2)
    bench.run(200)
    bench.spin()
    assert bench.follows
    assert bench.set(control_timeout=0.05) == ""
    bench.run(3)
    assert not bench.follows


def test_planners_receive_the_state(bench: PlannedBench) -> None:
    got: list[Sensor] = []
    bench.peer.create_subscription(Sensor, "sensor", got.append, PLANNERS_QOS)
    wait_for(lambda: bench.state(bench.q, np.zeros(2)) or bench.spin() or got)
    moving = [0.01, -0.02]

    def heard() -> bool:
        bench.answer(bench.q, np.array(moving))
        bench.spin()
        return list(got[-1].joint_state.velocity) == moving

    wait_for(heard)
    state, base = got[-1].joint_state, got[-1].base_pose
    assert list(state.name) == list(JOINTS)
    np.testing.assert_array_equal(state.position, bench.q)
    np.testing.assert_allclose(state.effort, bench.commands[-1], atol=0.5)
    assert base.orientation.w == 1.0 and base.position.x == 0.0 and not got[-1].contacts
    assert got[-1].header.stamp.nanosec == state.header.stamp.nanosec != 0


def test_without_its_messages_the_topics_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a warning: few need them."""
    from rnea_control.node import interfaces  # noqa: PLC0415

    monkeypatch.setattr(interfaces.Package, "is_installed", property(lambda self: False))
    topics, kinds = interfaces.loop_inputs()
    assert "control" not in [name for _, name, _ in topics] and len(kinds) == len(topics) - 1
    assert "linear_feedback" not in interfaces.lacking()
