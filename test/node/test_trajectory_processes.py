"""Trajectories where the controller process itself begins, ends, or loses its states."""

from __future__ import annotations

import math
import re
import signal

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from trajectory_bench import (
    START,
    STILL,
    SUCCEEDED,
    Result,
    Sent,
    TrajectoryBench,
    aborted,
    trajectory_bench,
)

from rnea_control.dynamics import Workspace, gravity

DOMAIN = 98
TARGET = START + np.array([0.6, -0.4])
POINTS = [(0.6, TARGET, STILL, STILL)]


def moving(bench: TrajectoryBench) -> Sent:
    """A goal, half-way."""
    sent = bench.follow(POINTS)
    bench.run(0.3)
    assert np.abs(bench.arm.node.v).max() > 1.0
    return sent


def test_signal_brakes_the_arm_and_leaves_the_gravity_torque() -> None:
    with trajectory_bench(DOMAIN) as bench:
        sent = moving(bench)
        bench.process.process.send_signal(signal.SIGTERM)
        while bench.arm.answers():
            pass
        bench.wait(lambda: sent.ended)
        assert sent.ending == (*aborted(Result.INVALID_GOAL), "the controller ends")
        assert bench.process.stop() == 0, bench.process.output
        node, model = bench.arm.node, bench.arm.node.model
        assert np.abs(node.v).max() < 0.05, bench.process.output
        assert math.dist(node.q, TARGET) > 0.05
        expected = gravity(model, Workspace(model), node.q, np.zeros(2))
        command = node.effort_controller.limited(node.q, node.v)
        np.testing.assert_allclose(command, expected, atol=0.02)
        assert "like a pencil on its tip" in bench.process.output
        assert "Traceback" not in bench.process.output


@pytest.mark.explores
def test_holds_on_until_a_second_signal() -> None:
    with trajectory_bench(DOMAIN, hold_on_shutdown=-1.0) as bench:
        moving(bench)
        process = bench.process.process
        process.send_signal(signal.SIGINT)
        bench.wait(lambda: "until the commands have no subscriber" in bench.process.output)
        bench.run(1.5)
        assert process.poll() is None
        assert np.abs(bench.arm.node.v).max() < 1e-3  # braked, and held
        process.send_signal(signal.SIGINT)
        while bench.arm.answers():
            pass
        assert bench.process.stop() == 0


@pytest.mark.explores
def test_lost_states_end_a_goal() -> None:
    # Nor must states be lost while a goal is sent on a busy machine.
    with trajectory_bench(DOMAIN, joint_state_gap=2.5, joint_state_timeout=2.5) as bench:
        sent = bench.follow(POINTS)
        bench.run(0.2)
        bench.wait(lambda: sent.ended)  # no step: no states
        status, code, text = sent.ending
        assert (status, code) == aborted(Result.INVALID_GOAL)
        silence = re.fullmatch(r"no joint_states with a new stamp for ([\d.]+) s", text)
        assert silence and 2.5 <= float(silence[1]) < 12.0, text
        assert "send it again when states are back" in bench.rejected(bench.goal(POINTS))
        bench.run(0.1)
        assert bench.end(bench.follow([(0.3, START, STILL)]))[:2] == SUCCEEDED


@pytest.mark.explores
def test_speed_scaling_from_before_the_start_and_the_end_of_a_goal_that_waits() -> None:
    with trajectory_bench(DOMAIN, factor=0.25, state_publish_rate=100.0) as bench:
        bench.wait(lambda: "speed scaling factor: 0.25" in bench.process.output)
        bench.run(1.5)
        assert bench.observed().speed_scaling_factor == pytest.approx(0.25, abs=1e-3)
        sent, node = bench.follow(POINTS, start=bench.now + 100.0), bench.arm.node
        bench.process.process.send_signal(signal.SIGINT)
        while bench.process.process.poll() is None:
            node.publish_state()
            bench.arm.spin()
            node.advance()
        assert bench.process.stop() == 0, bench.process.output
        bench.wait(lambda: sent.ended)
        assert sent.ending == (*aborted(Result.INVALID_GOAL), "the controller ends")
