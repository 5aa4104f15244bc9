"""The interpreter stands still in a call that keeps its lock, and the arm is held all the same."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from dds import ARM, JOINTS, PATIENT, LockstepArm, Process, controller, ros, trajectory, wait_for
from rclpy.qos import QoSProfile
from std_msgs.msg import Bool

DOMAIN = 64
START, STILL, CRUISE = np.array([0.3, -0.4]), [0.0, 0.0], [0.3, 0.3]
# At SIGUSR1 it stands still for so long, [s].
HANG = 3.0
HANGS = f"""
import ctypes, signal
sleep = ctypes.PyDLL(None).usleep
signal.signal(signal.SIGUSR1, lambda *_: (print("hangs", flush=True), sleep(round({HANG} * 1e6))))
"""
# From one place to another at a constant velocity, but for its ends.
WAY = [(1.0, START + 0.15, CRUISE, STILL), (8.0, START + 2.25, CRUISE, STILL)]
WAY = trajectory(JOINTS, [*WAY, (9.0, START + 2.4, STILL, STILL)])


class Bench:
    """An arm in motion, and a controller whose interpreter has just stopped."""

    def __init__(self, arm: LockstepArm, process: Process) -> None:
        self.arm, self.process = arm, process
        self.stop = arm.node.create_publisher(
            Bool, "rnea_controller/emergency_stop", QoSProfile(depth=1)
        )
        arm.run(200)
        arm.send(WAY)
        process.said("following a trajectory")
        wait_for(lambda: self.stop.get_subscription_count() >= 2, arm.spin)
        arm.run(750)
        assert arm.node.v == pytest.approx(CRUISE, abs=1e-3)
        process.process.send_signal(signal.SIGUSR1)
        process.said("hangs")
        self.begin = time.monotonic()

    @property
    def hangs(self) -> bool:
        return time.monotonic() < self.begin + HANG - 0.1


@contextmanager
def hanging() -> Iterator[Bench]:
    with ros(DOMAIN):
        arm = LockstepArm(rate=500.0, **ARM)
        try:
            with controller({**PATIENT, "interpreter_timeout": 1.0}, before=HANGS) as process:
                yield Bench(arm, process)
        finally:
            arm.destroy()


@pytest.mark.explores
def test_motion_goes_on_and_ends_when_the_interpreter_stands_still_for_long() -> None:
    with hanging() as bench:
        arm = bench.arm
        arm.run(50)
        assert arm.node.v == pytest.approx(CRUISE, abs=1e-3)
        speeds = [0.3]
        while bench.hangs and speeds[-1] > 1e-3:
            arm.run(1)
            speeds.append(np.abs(arm.node.v).max())
            time.sleep(0.001)
        arm.run(100)
        assert bench.hangs
        assert max(speeds) < 0.31
        bench.process.said("the interpreter stood still for 3.")
        bench.process.said("holding: the motion has ended")
        arm.run(100)
        assert np.abs(arm.node.v).max() < 1e-3


def test_emergency_stop_brakes_within_two_states_whatever_the_interpreter_does() -> None:
    with hanging() as bench:
        arm = bench.arm
        arm.run(5)
        cruising = arm.torque[-1]
        bench.stop.publish(Bool(data=True))
        time.sleep(0.1)  # it has arrived
        arm.run(2)
        assert bench.hangs
        # The deceleration rises to some 10 rad/s^2 within 30 ms.
        assert np.abs(arm.torque[-1] - cruising).max() > 0.02
        arm.run(200)
        assert bench.hangs
        assert np.abs(arm.node.v).max() < 1e-3
        bench.process.said("emergency_stop: emergency stop")
