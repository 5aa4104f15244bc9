"""`Arm` beside a controller's process and a simulated arm in real time, one of each a file."""

from __future__ import annotations

from collections.abc import Iterator

import dds
import numpy as np
import pytest
from dds import ARM, PATIENCE, Process, controller, ros
from robots import two_link_arm

from rnea_control.client import Arm

HOME = [0.3, -0.4]
# The clock is real: the arm tolerates the pauses of a busy machine.
PARAMETERS = {
    **dds.PARAMETERS,
    "robot_description": two_link_arm(),
    "joint_state_timeout": 20.0,
    "joint_state_gap": 20.0,
    "interpreter_timeout": 100.0,
    "activation": {"check": "off"},
    "thread_priority": 0,
    "lock_memory": False,
    "stream.target_timeout": 0.5,
    "positions_upsampling.enable": True,
    "disturbance_observer.bandwidth": 0.0,  # a wrong payload has its effect
}
QUICK = 0.1  # speed: 1 rad/s


@pytest.fixture(scope="module")
def processes(request: pytest.FixtureRequest) -> Iterator[Process]:
    """A simulated arm, and the controller, whose process this is."""
    with ros(request.module.DOMAIN):
        simulated = Process("rnea_control.simulation.executable", {**ARM, "rate": 250.0})
        with simulated, controller(PARAMETERS) as process:
            yield process


@pytest.fixture(scope="module")
def shared_arm(processes: Process) -> Iterator[Arm]:
    with Arm(timeout=PATIENCE) as arm:
        yield arm


@pytest.fixture
def arm(shared_arm: Arm) -> Arm:
    """The arm near `HOME`, at rest."""
    shared_arm.wait(seconds=PATIENCE)
    if np.abs(shared_arm.state.positions - HOME).max() > 0.01:
        shared_arm.go_to(HOME, speed=QUICK)
    return shared_arm
