"""No byte beyond the end of a message is read: the kernels as Python, whose arrays look out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_control.exceptions import RneaControlError
from rnea_control.messages.joint_state import Layout, decode
from rnea_control.messages.joint_trajectory import decode_trajectory

MUTATIONS = 800
JOINTS = ["a", "bb", "ccc"]


def test_no_byte_beyond_the_end_is_read() -> None:
    options = {"env": {**os.environ, "NUMBA_DISABLE_JIT": "1"}, "cwd": Path(__file__).parent}
    options |= {"capture_output": True, "text": True, "timeout": 300.0}
    done = subprocess.run([sys.executable, __file__], check=False, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["both", "outcomes", "seen"]


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    bytes_ = bytearray(data[: rng.integers(len(data) + 1)] if rng.random() < 0.5 else data)
    for _ in range(rng.integers(3) if bytes_ else 0):
        bytes_[rng.integers(len(bytes_))] = rng.choice([0, 1, 2, 3, 8, 127, 255])
    return bytes(bytes_)


def main() -> None:
    values = [1.0, 2.0, 3.0]
    state = JointState(name=JOINTS, position=values, velocity=values, effort=values)
    point = JointTrajectoryPoint(positions=values, velocities=values, effort=values)
    trajectory = JointTrajectory(joint_names=JOINTS, points=[point, point])
    state_bytes, trajectory_bytes = serialize_message(state), serialize_message(trajectory)
    layout = Layout(state_bytes, tuple(JOINTS))
    rng = np.random.default_rng(0)
    seen: dict[str, set[bool]] = {name: set() for name in ("state", "trajectory")}
    with np.errstate(over="ignore"):
        for _ in range(MUTATIONS):
            data = np.frombuffer(mutated(state_bytes, rng), np.uint8)
            if len(data) > 1:
                bits = np.zeros((2, len(JOINTS)), np.uint64)
                stamp = decode(data, len(data), layout.pattern, layout.indices, bits)
                seen["state"].add(stamp >= 0)
            try:
                decode_trajectory(JOINTS, mutated(trajectory_bytes, rng))
                seen["trajectory"].add(True)
            except RneaControlError:
                seen["trajectory"].add(False)
    both = all(outcomes == {True, False} for outcomes in seen.values())
    print("both outcomes seen" if both else seen)


if __name__ == "__main__":
    main()
