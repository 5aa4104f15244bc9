"""Options and robots that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# For robots.py and the others beside this file, and for the counting of allocations.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "benchmark")]

from loopback import use_loopback  # noqa: E402

# The tests' own ROS domain, on this machine only; child processes inherit both.
os.environ.setdefault("ROS_DOMAIN_ID", "73")
use_loopback()
os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
# Matrices of robots are small: threads of NumPy's would wait for each other on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What runs real processes against the clock: one after the other, also where tests run in parallel.
# The most sensitive comes first, while the other worker only computes.
AGAINST_THE_CLOCK = (
    "sentinel",
    "faults",
    "demo",
    "commands",
    "ros",
    "interfaces",
    "simulation",
    "node",
)
# What only computes in the same folders.
COMPUTES = (
    "commands/test_checks.py",
    "commands/test_identify_fit.py",
    "commands/test_identify_plan.py",
    "commands/test_live_checks.py",
    "demo/test_film.py",
    "faults/test_handover_history.py",
    "faults/test_measures.py",
    "interfaces/test_controller_manager_msgs.py",
    "node/test_applied_torque.py",
    "node/test_statistics.py",
    "ros/test_parameter_table.py",
    "sentinel/test_command_watch.py",
    "simulation/test_coupled_joints.py",
    "simulation/test_gazebo.py",
    "simulation/test_mujoco_arm.py",
    "simulation/test_sensor_noise.py",
)
# What steps an arm in lockstep with a controller, each file in a ROS domain of its own.
LOCKSTEP = (
    "node/test_follow_joint_trajectory.py",
    "node/test_goal_endings.py",
    "node/test_identified_arm.py",
    "node/test_lockstep.py",
    "node/test_refused_goals.py",
    "node/test_speed_scaling.py",
    "node/test_state_topics.py",
    "node/test_trajectory_content.py",
    "node/test_trajectory_tolerances.py",
    "node/test_trajectory_topic.py",
)
FIGURE = "figure"


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0].partition("/")[2]


def _is_against_the_clock(nodeid: str) -> bool:
    file = _file(nodeid)
    return file.partition("/")[0] in AGAINST_THE_CLOCK and file not in COMPUTES + LOCKSTEP


def _turn(item: pytest.Item) -> tuple[int, int]:
    file = _file(item.nodeid)
    if _is_against_the_clock(item.nodeid):
        return 0, AGAINST_THE_CLOCK.index(file.partition("/")[0])
    if file in LOCKSTEP:
        return 3, 0
    return (1 if file == "test_allocation.py" else 2), 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest work comes first, and what counts allocations before what starts ROS: its threads
    stay, and allocate."""
    items.sort(key=_turn)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """What runs against the clock is one piece of work, and every other file is one."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "clock" if _is_against_the_clock(nodeid) else nodeid.partition("::")[0]

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Takes lines that are printed at the end of the run."""
    return lambda line: record_property(FIGURE, line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [
        report
        for key in ("passed", "failed")
        for report in terminalreporter.stats.get(key, [])
        if report.when == "call"
    ]
    lines = [line for report in reports for key, line in report.user_properties if key == FIGURE]
    if lines:
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(str(line))


@pytest.fixture(scope="session")
def panda_urdf() -> Path:
    """The Panda arm of example-robot-data."""
    from robots import example_robot  # noqa: PLC0415

    return example_robot("panda")
