"""How a controller process ends: it brakes first, and what it commands last."""

from __future__ import annotations

import signal
from array import array
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from rclpy.clock import ROSClock
from rclpy.logging import get_logger
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from supervised_arm import ARM
from trajectory_bench import START, STILL, TrajectoryBench, trajectory_bench

from rnea_control.control import Controller, ControllerSettings, Gains
from rnea_control.control.handover import Handover, HandoverTimes
from rnea_control.control.safety_settings import SafetySettings
from rnea_control.control.supervision import SupervisionSettings
from rnea_control.dynamics import Workspace, gravity
from rnea_control.node.control_loop import ControlLoop, LoopSettings

DOMAIN = 76
POINTS = [(0.5, START + 0.5, STILL), (1.0, START, STILL)]


@contextmanager
def moving(**parameters: object) -> Iterator[TrajectoryBench]:
    with trajectory_bench(DOMAIN, **parameters) as bench:
        bench.follow(POINTS)
        bench.run(0.25)
        assert np.abs(bench.arm.node.v).max() > 0.3
        yield bench


def end(bench: TrajectoryBench) -> None:
    """Steps for as long as the controller answers."""
    for _ in range(1000):
        if bench.process.process.poll() is not None or not bench.arm.answers():
            break
    bench.wait(lambda: bench.process.process.poll() is not None)
    assert bench.process.process.poll() == 0


def last_command(bench: TrajectoryBench) -> np.ndarray:
    return bench.arm.node.effort_controller._command


def test_gravity_torque_after_braking() -> None:
    with moving() as bench:
        bench.process.process.send_signal(signal.SIGTERM)
        end(bench)
        assert np.abs(bench.arm.node.v).max() < 0.05
        model = bench.arm.node.model
        expected = gravity(model, Workspace(model), bench.arm.node.q, np.zeros(2))
        np.testing.assert_allclose(last_command(bench), expected, atol=0.02)
        assert "like a pencil on its tip" in bench.process.output


def test_zero_torque_is_the_last() -> None:
    with moving(last_command="zero") as bench:
        bench.process.process.send_signal(signal.SIGTERM)
        end(bench)
        np.testing.assert_array_equal(last_command(bench), 0.0)
        assert "zero torque" in bench.process.output


class Recorder:
    """A command that is kept, and not sent."""

    def __init__(self, joints: int) -> None:
        self.torque = np.zeros(joints)
        self.sent: list[np.ndarray] = []

    def publish(self) -> None:
        self.sent.append(self.torque.copy())


def test_zero_torque_is_approached_within_the_rate() -> None:
    model, rate, command = ARM, np.array([500.0, 200.0]), Recorder(2)
    safety = SafetySettings.none(2).changed(torque_rate_limit=rate)
    controller = Controller(model, ControllerSettings(Gains.uniform(2, 400.0, 40.0), safety=safety))
    handover = Handover(HandoverTimes.of_controller())
    settings = LoopSettings(SupervisionSettings(1.0, 1.0), ends_with_gravity=False)
    loop = ControlLoop(controller, command, handover, settings, get_logger("test"), ROSClock())
    state = JointState(name=list(model.joint_names), position=array("d", START))
    state.velocity = array("d", [0.0, 0.0])
    state.header.stamp.sec = 1000
    loop.start()
    loop.tick(serialize_message(state), 1)
    assert len(command.sent) == 1 and np.abs(command.sent[0]).max() > 1.0
    assert loop.stop()
    np.testing.assert_array_equal(command.sent[-1], 0.0)
    steps = np.abs(np.diff(command.sent, axis=0)) / 0.001
    np.testing.assert_allclose(steps.max(axis=0), rate, rtol=1e-9)


@pytest.mark.explores
def test_holds_on_until_a_second_signal() -> None:
    with moving(hold_on_shutdown=-1.0) as bench:
        process = bench.process.process
        process.send_signal(signal.SIGINT)
        bench.wait(lambda: "until nobody takes the commands" in bench.process.output)
        bench.run(1.5)
        assert process.poll() is None
        assert np.abs(bench.arm.node.v).max() < 1e-3  # braked, and held
        process.send_signal(signal.SIGINT)
        end(bench)
