"""The simulated arm as a ROS node: what it publishes and takes, and how it starts."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import rclpy
from dds import Process, ask, ros, wait_for
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from robots import robot, two_link_arm
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModel
from rnea_control.simulation.executable import LONGEST_PAUSE, in_real_time
from rnea_control.simulation.simulated_arm import SensorNoise, SimulatedArm

EXECUTABLE = "rnea_control.simulation.executable"
ELBOW = {"initial_positions.elbow": 0.5}
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@pytest.fixture(scope="module", autouse=True)
def context() -> Iterator[None]:
    with ros(84):
        yield


class Bench:
    def __init__(self, **parameters: object) -> None:
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.arm = SimulatedArm(parameter_overrides=overrides)
        self.peer = rclpy.create_node("peer")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.arm)
        self.executor.add_node(self.peer)
        self.states: list[JointState] = []
        self.peer.create_subscription(JointState, "joint_states", self.states.append, 10)
        topic = "effort_controller/commands"
        self.commands = self.peer.create_publisher(Float64MultiArray, topic, 10)
        wait_for(self.commands.get_subscription_count, self.spin)

    def spin(self) -> None:
        self.executor.spin_once(timeout_sec=0.02)

    def command(self, *values: float) -> None:
        received = self.arm.commands_received
        self.commands.publish(Float64MultiArray(data=array("d", values)))
        wait_for(lambda: self.arm.commands_received > received, self.spin)

    def state(self) -> JointState:
        count = len(self.states)
        self.arm.publish_state()
        wait_for(lambda: len(self.states) > count, self.spin)
        return self.states[-1]

    def advance(self, periods: int) -> None:
        for _ in range(periods):
            self.arm.advance()

    def destroy(self) -> None:
        self.executor.shutdown()
        self.arm.destroy_node()
        self.peer.destroy_node()


@contextmanager
def simulated(**parameters: object) -> Iterator[Bench]:
    bench = Bench(**{"robot_description": two_link_arm(), **ELBOW, **parameters})
    try:
        yield bench
    finally:
        bench.destroy()


@pytest.fixture
def bench() -> Iterator[Bench]:
    with simulated() as bench:
        yield bench


def test_state_message_and_the_qos_of_ros2_control(bench: Bench) -> None:
    (states,) = bench.arm.get_publishers_info_by_topic("/joint_states")
    assert states.qos_profile.reliability == ReliabilityPolicy.RELIABLE
    assert states.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
    (commands,) = bench.arm.get_subscriptions_info_by_topic("/effort_controller/commands")
    assert commands.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT
    assert commands.qos_profile.durability == DurabilityPolicy.VOLATILE
    state = bench.state()
    assert state.name == ["shoulder", "elbow"]
    assert state.header.frame_id == "base_link"
    assert list(state.position) == [0.0, 0.5]
    assert list(state.velocity) == list(state.effort) == [0.0, 0.0]


def test_description_is_latched_whatever_encoding_its_file_declares(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    text = '<?xml version="1.0" encoding="latin-1"?>' + two_link_arm("Ärmchen")
    path.write_bytes(text.encode("latin-1"))
    with simulated(robot_description="", urdf_file=str(path)) as bench:
        assert bench.arm.model.name == "Ärmchen"
        received: list[String] = []
        bench.peer.create_subscription(String, "robot_description", received.append, LATCHED)
        wait_for(lambda: received, bench.spin)
        assert RobotModel.from_urdf_string(received[0].data).name == "Ärmchen"


def test_brakes_hold_until_the_first_command(bench: Bench) -> None:
    bench.advance(100)
    bench.command()  # none of these is a torque
    bench.command(math.nan, 0.0)
    bench.advance(100)
    assert list(bench.state().position) == [0.0, 0.5]
    bench.command(0.0, 0.0)
    bench.advance(100)
    assert bench.state().position[0] > 0.01  # it falls


def test_noise_is_in_the_states_and_not_in_the_arm(bench: Bench) -> None:
    noise = {"position_noise": 1e-3, "velocity_noise": 0.01, "effort_noise": 0.02, "noise_seed": 5}
    with simulated(**noise) as noisy:
        for each in (bench, noisy):
            each.arm.effort_controller.receive([3.0, -4.0])
            each.advance(20)
        np.testing.assert_array_equal(noisy.arm.q, bench.arm.q)
        np.testing.assert_array_equal(noisy.arm.v, bench.arm.v)
        state, again = noisy.state(), noisy.state()
        assert state == again  # as lockstep asks for, which publishes a state again
        noise = SensorNoise(noisy.arm.model, 1e-3, 0.01, 0.02, 5)
        expected = noise.added(20, noisy.arm.q, noisy.arm.v, np.array([3.0, -4.0]))
        np.testing.assert_array_equal([state.position, state.velocity, state.effort], expected)
        assert abs(state.effort[0] - 3.0) > 1e-3


def test_commands_act_and_wrong_length_deactivates_until_asked(bench: Bench) -> None:
    bench.command(1e9, -4.0)
    bench.arm.advance()
    assert list(bench.state().effort) == [100.0, -4.0]
    bench.command(1.0)
    bench.command(5.0, 5.0)
    bench.arm.advance()
    assert list(bench.arm.torque) == [100.0, -4.0]
    name = "rnea_simulated_arm/activate_effort_controller"
    ask(bench.peer, bench.spin, Trigger, name)
    bench.command(5.0, 6.0)
    bench.arm.advance()
    assert list(bench.arm.torque) == [5.0, 6.0]


def test_clock_and_stamps_tell_simulated_time() -> None:
    with simulated(publish_clock=True, rate=100.0) as bench:
        clocks: list[Clock] = []
        bench.peer.create_subscription(Clock, "/clock", clocks.append, 10)
        wait_for(lambda: bench.arm.count_subscribers("/clock"), bench.spin)
        wait_for(lambda: bench.arm.publish_state() and clocks, bench.spin)
        bench.arm.advance()
        assert bench.arm.publish_state() == 20_000_000
        wait_for(lambda: clocks[-1].clock.nanosec == 20_000_000, bench.spin)
        wait_for(lambda: bench.states[-1].header.stamp.nanosec == 20_000_000, bench.spin)


def test_real_time_stamps_are_a_period_apart(bench: Bench) -> None:
    states = in_real_time(bench.arm, bench.executor, lambda: True)
    steps = np.diff(list(islice(states, 50)))
    assert np.median(steps) == 1_000_000
    assert (steps >= 999_999).all()


def test_arm_waits_for_a_controller_that_is_late() -> None:
    with simulated(waits_for_commands=True, rate=1000.0) as bench:
        states = in_real_time(bench.arm, bench.executor, lambda: True)
        start = time.monotonic()
        for _ in range(20):
            next(states)  # nobody commands
        assert time.monotonic() - start < LONGEST_PAUSE
        bench.commands.publish(Float64MultiArray(data=array("d", [1.0, 2.0])))
        wait_for(lambda: bench.arm.commands_received, lambda: next(states))
        ticks, start = bench.arm.ticks, time.monotonic()
        next(states)
        assert time.monotonic() - start >= LONGEST_PAUSE and bench.arm.ticks == ticks + 1
        start = time.monotonic()
        for _ in range(20):
            next(states)  # the controller has ended
        assert time.monotonic() - start < LONGEST_PAUSE


def test_commands_are_taken_also_where_the_arm_is_always_late(bench: Bench) -> None:
    bench.arm.period = 0.0
    bench.commands.publish(Float64MultiArray(data=array("d", [1.0, 2.0])))
    states = in_real_time(bench.arm, bench.executor, lambda: True)
    wait_for(lambda: bench.arm.commands_received, lambda: next(states))


WRONG: dict[str, dict[str, object]] = {
    "'urdf_file' is not set": {"robot_description": ""},
    "not well-formed XML": {"robot_description": "hello"},
    "no joint that moves": {"robot_description": robot('<link name="a"/>')},
    "no joint 'wrist'": {"joints": ["wrist"]},
    "'command_topic' is 'bad topic!'": {"command_topic": "bad topic!"},
    "'rate' is 0.0; it must be": {"rate": 0.0},
    "'noise_seed' is -1; it must be an integer, at least 0": {"noise_seed": -1},
}


def test_wrong_parameter_is_named() -> None:
    for words, wrong in WRONG.items():
        parameters = {"robot_description": two_link_arm(), **wrong}
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        with pytest.raises(RneaControlError, match=words):
            SimulatedArm(parameter_overrides=overrides)


def test_executable_runs_ends_on_a_signal_and_says_what_is_wrong() -> None:
    doubtful = two_link_arm().replace('upper="3"', 'upper="170"')
    right = Process(EXECUTABLE, {"robot_description": doubtful})
    with right as process, Process(EXECUTABLE, {"urdf_file": "/no/such.urdf"}) as wrong:
        process.said("upper of shoulder, elbow go to 170 rad, 27 turns")
        process.said("simulating 'two_link_arm' with 2 joints at 1000 Hz, in real time")
        assert process.stop() == 0
        assert wrong.process.wait(timeout=60.0) == 1
        assert "parameter 'urdf_file': /no/such.urdf: cannot be read" in wrong.output
        assert "Traceback" not in process.output + wrong.output
