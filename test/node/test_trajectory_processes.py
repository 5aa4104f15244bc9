"""Trajectories where the controller process itself begins, ends, or loses its states."""

from __future__ import annotations

import math
import re
import signal
import time

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from trajectory_bench import (
    JOINTS,
    RATE,
    START,
    STILL,
    SUCCEEDED,
    Result,
    aborted,
    trajectory_bench,
)

DOMAIN = 98
TARGET = START + np.array([0.6, -0.4])
POINTS = [(0.6, TARGET, STILL, STILL)]


@pytest.mark.explores
def test_interrupt_ends_a_goal_whose_result_reaches_the_client() -> None:
    with trajectory_bench(DOMAIN) as bench:
        sent = bench.follow(POINTS)
        bench.run(0.3)
        assert np.abs(bench.arm.v[-1]).max() > 1.0
        bench.process.process.send_signal(signal.SIGINT)
        while bench.arm.answers():
            pass
        bench.wait(lambda: sent.ended)
        assert sent.ending == (*aborted(Result.INVALID_GOAL), "the controller ends")
        assert bench.process.stop() == 0, bench.process.output
        assert "Traceback" not in bench.process.output
        assert np.abs(bench.arm.node.v).max() < 0.05
        assert math.dist(bench.arm.node.q, TARGET) > 0.05


@pytest.mark.explores
def test_interrupt_waits_for_the_gentlest_stop_in_a_slow_simulation() -> None:
    """At half the speed it takes longer than a second."""
    constraints = {
        "decelerate_on_cancel": True,
        **{joint: {"max_deceleration_on_cancel": 0.1} for joint in JOINTS},
    }
    with trajectory_bench(DOMAIN, constraints=constraints) as bench:
        bench.follow([(1.0, TARGET, STILL, STILL)])
        bench.run(0.3)
        begin = bench.now
        bench.process.process.send_signal(signal.SIGINT)
        while bench.arm.answers():
            time.sleep(2.0 / RATE)
        assert bench.process.stop() == 0, bench.process.output
        assert bench.now - begin > 0.6
        assert np.abs(bench.arm.node.v).max() < 0.01
        assert "was still moving" not in bench.process.output


def test_interrupt_ends_a_goal_that_waits() -> None:
    with trajectory_bench(DOMAIN) as bench:
        sent = bench.follow(POINTS, start=bench.now + 100.0)
        assert bench.process.stop() == 0, bench.process.output
        bench.wait(lambda: sent.ended)
        assert sent.ending == (*aborted(Result.INVALID_GOAL), "the controller ends")


def test_lost_states_end_a_goal() -> None:
    with trajectory_bench(DOMAIN, joint_state_gap=1.0, joint_state_timeout=1.0) as bench:
        sent = bench.follow(POINTS)
        bench.run(0.2)
        bench.wait(lambda: sent.ended)  # no step: no states
        status, code, text = sent.ending
        assert (status, code) == aborted(Result.INVALID_GOAL)
        silence = re.fullmatch(r"no joint_states with a new stamp for ([\d.]+) s", text)
        assert silence and 1.0 <= float(silence[1]) < 10.0, text
        assert "send it again when states are back" in bench.rejected(bench.goal(POINTS))
        bench.run(0.1)
        assert bench.end(bench.follow([(0.3, START, STILL)]))[:2] == SUCCEEDED


@pytest.mark.explores
def test_speed_scaling_from_before_the_start_is_in_force() -> None:
    with trajectory_bench(DOMAIN, factor=0.25) as bench:
        bench.wait(lambda: "speed scaling factor: 0.25" in bench.process.output)
        bench.run(1.5)
        assert bench.observed().speed_scaling_factor == pytest.approx(0.25, abs=1e-3)
        begin = bench.now
        bench.end(bench.follow([(0.2, START + 0.1, STILL)]))
        assert bench.now - begin == pytest.approx(0.8, abs=0.05)


def test_initial_speed_scaling() -> None:
    scaling = {"initial_scaling_factor": 0.5}
    with trajectory_bench(DOMAIN, speed_scaling=scaling, state_publish_rate=100.0) as bench:
        bench.run(1.5)
        assert bench.observed().speed_scaling_factor == pytest.approx(0.5, abs=1e-3)
