"""The control loop by itself: bytes in, torques out, no middleware."""

from __future__ import annotations

import time
from array import array
from collections import deque

import numpy as np
import pytest
from dds import ros
from rclpy.clock import ROSClock
from rclpy.logging import get_logger
from rclpy.serialization import serialize_message
from robots import two_link_arm
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_control.control import (
    Controller,
    ControllerSettings,
    Gains,
    Mode,
    SafetySettings,
    SupervisionSettings,
)
from rnea_control.control.handover import Handover, HandoverTimes
from rnea_control.control.output_stage import LATENESS
from rnea_control.model import RobotModel
from rnea_control.node.control_loop import ControlLoop, LoopSettings

RATE = 1000.0
AHEAD = 0.004
LEASE = 0.5


class Command:
    """Keeps what was published."""

    def __init__(self) -> None:
        self.torque = np.zeros(2)
        self.sent: list[np.ndarray] = []

    def publish(self) -> None:
        self.sent.append(self.torque.copy())


class SimulatedClock:
    """Time as a simulation tells it."""

    ros_time_is_active = True

    def now(self) -> object:
        return ROSClock().now()


def state(nanoseconds: int, q: list[float]) -> bytes:
    message = JointState(name=["shoulder", "elbow"], position=array("d", q))
    message.velocity = array("d", [0.0, 0.0])
    message.header.stamp.sec, message.header.stamp.nanosec = 1000, nanoseconds
    return serialize_message(message)


def control_loop(command: Command, clock: object, settings: ControllerSettings) -> ControlLoop:
    return ControlLoop(
        Controller(RobotModel.from_urdf_string(two_link_arm()), settings),
        command,
        Handover(HandoverTimes.of_controller(LEASE, 1.5 * LEASE)),
        LoopSettings(SupervisionSettings(1.0, 1.0)),
        get_logger("test"),
        clock,
    )


@pytest.mark.parametrize("simulated", [False, True])
def test_rate_limit_goes_by_the_steady_clock_where_a_stamp_is_ahead(simulated: bool) -> None:
    safety = SafetySettings.none(2).changed(torque_rate_limit=np.full(2, RATE))
    settings = ControllerSettings(Gains.uniform(2, 1e5, 10.0), safety=safety)
    command = Command()
    clock = SimulatedClock() if simulated else ROSClock()
    loop = control_loop(command, clock, settings)
    with ros(94):
        loop.start()
        for k in range(5):  # the first ticks take longer
            begin = time.monotonic()
            loop.tick(state(k, [0.3, -0.4]))
        # Further from its desired position than any torque within the rate mends.
        loop.tick(state(4 + round(AHEAD * 1e9), [0.32, -0.42]))
        passed = time.monotonic() - begin
        loop.stop()
    first, second = command.sent[4:6]
    changed = np.abs(second - first).max()
    assert changed > 0.0
    if simulated:
        assert changed == pytest.approx(RATE * AHEAD)
    else:
        assert changed <= RATE * (passed + LATENESS)


def test_torque_of_the_sentinel_is_known_before_the_arm_is_taken_back() -> None:
    loop = control_loop(Command(), ROSClock(), ControllerSettings(Gains.uniform(2, 100.0, 20.0)))
    commands: deque[tuple[bytes, None]] = deque()
    loop.listen(lambda: commands.popleft() if commands else None)
    with ros(94):
        loop.start("commanding")
        loop.tick(state(0, [0.3, -0.4]))
        assert not loop.knows_torque()
        torques = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        first, *others = (
            (serialize_message(Float64MultiArray(data=torque)), None) for torque in torques
        )
        commands.append(first)
        assert loop.knows_torque()
        commands.extend(others)  # on their way when the arm was given
        assert loop.receive(time.monotonic())
        np.testing.assert_array_equal(loop.controller.in_force, torques[-1])
        loop.stop()


def test_torque_that_does_not_leave_is_not_in_force() -> None:
    safety = SafetySettings.none(2).changed(torque_rate_limit=np.full(2, RATE))
    settings = ControllerSettings(Gains.uniform(2, 100.0, 20.0), safety=safety)
    command = Command()
    loop = control_loop(command, ROSClock(), settings)
    with ros(94):
        loop.start("commanding")
        loop.tick(state(0, [0.3, -0.4]))
        loop.hear_command(serialize_message(Float64MultiArray(data=[50.0, 50.0])))
        assert loop.receive(time.monotonic())
        assert loop.tick(state(1_000_000, [0.3, -0.4]))
        time.sleep(1.2)  # away, and without states
        for _ in range(3):
            time.sleep(0.002)
            assert loop.watch()
        np.testing.assert_array_equal(loop.controller.in_force, command.sent[-1])
        assert loop.supervisor.mode is Mode.BLIND
        assert len(command.sent) == 1
        loop.stop()
