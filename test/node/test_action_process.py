"""The process that serves the action: it ends with the controller, and is started again."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from dds import action_process, wait_for
from surroundings import no_free_descriptor
from trajectory_bench import (
    START,
    STILL,
    SUCCEEDED,
    Result,
    Sent,
    TrajectoryBench,
    trajectory_bench,
)

DOMAIN = 99
TARGET = START + np.array([0.6, -0.4])
POINTS = [(1.0, TARGET, STILL, STILL)]
# How long a result may take that comes, [s], and how often one may be lost.
LONGEST_RESULT, ATTEMPTS = 5.0, 4
RETRY = 3.0  # [s]


def sent_again(bench: TrajectoryBench) -> Sent:
    """A goal that is sent until it is accepted: the client knows the dead server for a while."""
    sent: list[Sent] = []
    last = -RETRY

    def accepted() -> bool:
        nonlocal last
        if time.monotonic() - last > RETRY:
            last = time.monotonic()
            sent.append(bench.submit(bench.goal(POINTS)))
        return any(each.accepted for each in sent)

    bench.wait(accepted)
    bench.wait(lambda: sent[-1].accepted)
    return sent[-1]


def ending_again(bench: TrajectoryBench) -> tuple[int, int, str]:
    """How a goal of the new server's ends. Until the two have found all of each other's endpoints,
    a goal can be accepted and its result lost: then another one is sent."""
    for _ in range(ATTEMPTS):
        sent = sent_again(bench)
        bench.finish(sent)
        end = time.monotonic() + LONGEST_RESULT
        bench.wait(lambda: sent.ended or time.monotonic() > end)  # noqa: B023
        if sent.ended:
            return sent.ending
    raise AssertionError(bench.process.output)


def gone(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()


@pytest.mark.explores
def test_killed_process_stops_its_goal_and_is_started_again() -> None:
    with trajectory_bench(DOMAIN) as bench:
        bench.follow(POINTS)
        bench.run(0.3)
        assert np.abs(bench.arm.v[-1]).max() > 0.3, bench.process.output
        pid = bench.process.process.pid
        last = action_process(pid)
        os.kill(last, signal.SIGKILL)
        bench.process.said("the process of the action has ended with status -9")
        bench.run(0.5)
        assert np.abs(bench.arm.v[-1]).max() < 0.01
        wait_for(lambda: action_process(pid) not in (0, last))
        ending = ending_again(bench)
        assert ending[:2] == SUCCEEDED, (*ending, bench.process.output)
        child = action_process(pid)
        assert os.sched_getscheduler(child) == os.SCHED_OTHER  # not that of the control loop
        bench.process.process.kill()
        wait_for(lambda: gone(child))


@pytest.mark.explores
def test_goal_of_a_killed_controller_is_aborted_and_its_process_ends() -> None:
    with trajectory_bench(DOMAIN) as bench:
        sent = bench.follow([(60.0, TARGET, STILL, STILL)])
        bench.run(0.3)
        child = action_process(bench.process.process.pid)
        bench.process.process.kill()
        bench.wait(lambda: gone(child))
        bench.wait(lambda: sent.ended)
        assert sent.ending[1:] == (Result.INVALID_GOAL, "the controller's process has ended")


@pytest.mark.explores
def test_one_that_cannot_be_started_is_tried_again_later_and_later() -> None:
    with trajectory_bench(DOMAIN) as bench:
        bench.run(0.3)
        pid = bench.process.process.pid
        last = action_process(pid)
        with no_free_descriptor(pid):
            os.kill(last, signal.SIGKILL)
            for wait in (4, 8):
                words = f"Too many open files; it is started again in {wait} s"
                bench.wait(lambda: words in bench.process.output)  # noqa: B023
        wait_for(lambda: action_process(pid) not in (0, last))
        ending = ending_again(bench)
        assert ending[:2] == SUCCEEDED, (*ending, bench.process.output)


@pytest.mark.explores
def test_one_that_hangs_stops_its_goal_and_is_started_again() -> None:
    with trajectory_bench(DOMAIN, action_monitor_rate=1000.0) as bench:
        pid = bench.process.process.pid
        hanging = action_process(pid)
        bench.follow([(60.0, TARGET, STILL, STILL)])
        os.kill(hanging, signal.SIGSTOP)
        for _ in range(60):
            bench.run(0.1)
            if "it is started again" in bench.process.output:
                break
        bench.process.said("it is started again")
        wait_for(lambda: action_process(pid) not in (0, hanging))
        child = action_process(pid)
        os.kill(child, signal.SIGSTOP)
        assert bench.process.stop() == 0  # it does not keep the controller from ending
        wait_for(lambda: gone(child))
