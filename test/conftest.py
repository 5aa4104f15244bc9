"""Options and robots that all tests share."""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rnea_control.model import RobotModel

# For robots.py and the others beside this file, and for the counting of allocations.
sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "benchmark")]

from loopback import use_loopback  # noqa: E402

# The tests' own ROS domain, on this machine only, for each of those that run side by side; child
# processes inherit both.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
os.environ.setdefault("ROS_DOMAIN_ID", str(60 + WORKER))
use_loopback()
os.environ.setdefault("AMENT_PREFIX_PATH", sys.prefix)
# Matrices of robots are small: threads of NumPy's would wait for each other on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# What needs a quiet machine: one after the other, also where tests run in parallel.
QUIET = ("sentinel/test_sentinel.py", "faults", "commands/test_doctor.py", "demo/test_demo.py")
# What starts processes: last, so that beside the above others only compute.
PROCESSES = (
    "node", "client", "panel", "commands", "ros", "simulation", "interfaces", "demo",
    "sentinel/test_identity.py",
)  # fmt: skip
COMPUTES = 1
FIGURE = "figure"


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0].partition("/")[2]


def _needs_quiet(nodeid: str) -> bool:
    return _file(nodeid).startswith(QUIET)


def _turn(item: pytest.Item) -> int:
    if _needs_quiet(item.nodeid):
        return 0
    return 2 if _file(item.nodeid).startswith(PROCESSES) else COMPUTES


def _forked(test: Callable[..., None]) -> Callable[..., None]:
    """The test in a child process: its one thread is all whose memory is counted there."""

    @functools.wraps(test)
    def forked(**arguments: object) -> None:
        fork = multiprocessing.get_context("fork")
        receiver, sender = fork.Pipe(duplex=False)

        def run() -> None:
            gc.collect()
            gc.disable()
            try:
                test(**arguments)
            except BaseException:
                sender.send(traceback.format_exc())
            else:
                sender.send("")

        process = fork.Process(target=run)
        process.start()
        sender.close()
        failure = receiver.recv()
        process.join()
        if failure:
            pytest.fail(failure, pytrace=False)

    return forked


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest work comes first. Processes go against the clock: a computer that stood still
    meanwhile gives them a second attempt, of which the summary tells."""
    items.sort(key=_turn)
    again = config.pluginmanager.hasplugin("rerunfailures")
    for item in items:
        if _turn(item) != COMPUTES:
            item.add_marker(pytest.mark.real_time)
            if again:
                item.add_marker(pytest.mark.flaky(reruns=1))
        if isinstance(item, pytest.Function) and item.get_closest_marker("one_thread"):
            item.obj = _forked(item.obj)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """What needs a quiet machine is one piece of work, and every other file is one."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "quiet" if _needs_quiet(nodeid) else nodeid.partition("::")[0]

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.fixture(autouse=True)
def _handlers_of_signals() -> Iterator[None]:
    """A command in the tests' own process ignores signals after one has ended it, and so would
    each process that a later test starts."""
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.fixture
def report(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Takes lines that are printed at the end of the run."""
    return lambda line: record_property(FIGURE, line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    stats = terminalreporter.stats
    reports = [each for key in ("passed", "failed") for each in stats.get(key, [])]
    reports = [each for each in reports if each.when == "call"]
    lines = [line for report in reports for key, line in report.user_properties if key == FIGURE]
    if lines:
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(str(line))
    if "rerun" in stats:
        terminalreporter.section("failed at first, and ran again")
        for report in stats["rerun"]:
            terminalreporter.write_line(f"{report.nodeid}\n{report.longreprtext}")


@pytest.fixture(scope="session")
def publishers_are_known() -> None:
    """Skips a test where messages do not tell who has published them (docs/middleware.md). With
    Fast DDS they must, but for ticks in Python."""
    from rnea_control.ros.middleware import transports  # noqa: PLC0415

    if os.environ.get("PYTHON_TICKS") or transports() is None:
        pytest.skip("messages do not tell their publisher here")


@pytest.fixture
def panda() -> RobotModel:
    """See robots.py."""
    import robots  # noqa: PLC0415

    return robots.panda()
