"""The simulated hardware goes on while nobody reads its console."""

from __future__ import annotations

import array
import fcntl
import subprocess
import sys
import termios
from collections.abc import Iterator

import pytest
import rclpy
from dds import ros, wait_for
from robots import two_link_arm
from sensor_msgs.msg import JointState

# So many states bring more debug output than the pipes to the console hold.
STATES = 2000


@pytest.fixture(scope="module", autouse=True)
def context() -> Iterator[None]:
    with ros(88):
        yield


@pytest.mark.explores
def test_paused_console_does_not_stop_the_arm(tmp_path) -> None:
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(two_link_arm())
    command = [sys.executable, "-m", "rnea_control.simulation.executable", "--ros-args"]
    command += ["-p", f"urdf_file:={urdf}", "--log-level", "debug"]  # it says a lot then
    node = rclpy.create_node("listener")
    states: list[JointState] = []
    node.create_subscription(JointState, "joint_states", states.append, 10)

    def spin() -> None:
        rclpy.spin_once(node, timeout_sec=0.1)

    def await_states() -> None:
        count = len(states)
        wait_for(lambda: len(states) > count + STATES, spin)

    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            unread = array.array("i", [0])
            before = -1
            while unread[0] != before:  # until the console takes no more
                before = unread[0]
                await_states()
                fcntl.ioctl(process.stderr, termios.FIONREAD, unread)
            assert unread[0] > 0
            await_states()
        finally:
            process.kill()
            node.destroy_node()
