"""The guard by itself, where a simulated arm cannot show it: states whose stamps stand still."""

from __future__ import annotations

import time

import numpy as np
from dds import wait_for
from rclpy.clock import ROSClock
from rclpy.logging import get_logger
from rclpy.serialization import serialize_message
from robots import two_link_arm
from sensor_msgs.msg import JointState

from rnea_control.control import Controller, ControllerSettings, Gains
from rnea_control.control.handover import Handover, HandoverTimes
from rnea_control.messages.float64_multi_array import Float64MultiArrayEncoder
from rnea_control.model import RobotModel
from rnea_control.ros.deferred_log import DeferredLog
from rnea_control.ros.rcl_calls import Taken
from rnea_control.ros.real_time import RealTime, RealTimeSettings
from rnea_control.sentinel.command_watch import CommandWatch
from rnea_control.sentinel.guard import Guard, GuardSettings

MODEL = RobotModel.from_urdf_string(two_link_arm())
GAP = 0.05


class Repeated:
    """A topic on which the same message comes each millisecond; none without one."""

    def __init__(self, message: bytes | None) -> None:
        self._message = message

    def take(self, timeout: float) -> Taken | None:
        time.sleep(0.001 if self._message else timeout)
        return self.poll()

    def poll(self) -> Taken | None:
        return None if self._message is None else Taken(self._message)

    def stranger(self, publisher: bytes | None) -> str:
        return ""


class Commands:
    """Keeps what would be published."""

    def __init__(self) -> None:
        self._encoder = Float64MultiArrayEncoder(MODEL.nv)
        self.torque = self._encoder.values
        self.sent: list[np.ndarray] = []

    def publish(self) -> bytes:
        self.sent.append(self.torque.copy())
        return self._encoder.encode()


def test_states_with_the_same_stamp_are_as_none() -> None:
    state = JointState(name=list(MODEL.joint_names), position=[0.3, -0.4], velocity=[1.0, 0.0])
    state.header.stamp.sec = 7
    settings = ControllerSettings(Gains.uniform(MODEL.nv, 100.0, 20.0))
    controller, commands = Controller(MODEL, settings), Commands()
    handover = Handover(HandoverTimes.of_sentinel(0.5, 0.8))
    guard = Guard(
        controller,
        commands,
        Repeated(serialize_message(state)),
        Repeated(None),
        handover,
        CommandWatch(MODEL.joint_names, MODEL.effort_limit),
        GuardSettings(1.5, GAP),
        ROSClock(),
        DeferredLog(get_logger("guard")),
        lambda label: None,
    )
    now = time.monotonic()
    controller.hold(0.0, np.array([0.3, -0.4]))
    handover.guard(now)
    assert handover.receive(now, now)
    guard.start(RealTime(RealTimeSettings()))
    try:
        wait_for(lambda: guard.holds and controller.time > 3.0 * GAP, lambda: time.sleep(0.01))
    finally:
        guard.stop()
    assert not guard.failure
    # The model brakes it: the torque is not the one for the state that is told again and again.
    assert not np.allclose(commands.sent[-2], commands.sent[0], rtol=1e-3)
