"""`rnea_move` as a process, beside a controller and a simulated arm in lockstep."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from action_msgs.srv import CancelGoal
from dds import JOINTS, PATIENCE, ask, trajectory
from trajectory_bench import START, STILL, TrajectoryBench, trajectory_bench

from rnea_control.trajectory_client import TrajectoryClient

DOMAIN = 94
TARGET = np.array([0.9, 0.2])
TO = ["--to", *map(str, TARGET)]
SPEED = 0.04  # of 10 rad/s
FAST = ["--speed", str(SPEED)]


@pytest.fixture(scope="module")
def shared_bench() -> Iterator[TrajectoryBench]:
    # On a busy machine the interpreter may stand still for seconds, which would end a motion.
    with trajectory_bench(DOMAIN, interpreter_timeout=1000.0) as bench:
        yield bench


@pytest.fixture
def bench(shared_bench: TrajectoryBench, tmp_path: Path, monkeypatch) -> TrajectoryBench:
    monkeypatch.setenv("ROS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path / "log"))
    shared_bench.reset()
    return shared_bench


class Move:
    """A process of rnea_move, while which the arm is stepped."""

    def __init__(self, bench: TrajectoryBench, *options: str, stdin=subprocess.DEVNULL) -> None:
        module = "rnea_control.commands.move.executable"
        program = [sys.executable, "-m", module, "--wait", str(PATIENCE), *options]
        self._bench, self._output = bench, Path(os.environ["ROS_HOME"]).with_name("output")
        self._file = self._output.open("wb")  # what the process before has said is gone
        self.process = subprocess.Popen(
            program,
            cwd=self._output.parent,
            stdin=stdin,
            stdout=self._file,
            stderr=subprocess.STDOUT,
        )

    @property
    def output(self) -> str:
        return self._output.read_text()

    def until(self, condition: Callable[[], object]) -> None:
        """Steps the arm until a condition holds, or the process has ended."""
        while not condition() and self.process.poll() is None:
            self._bench.arm.run(2)

    def end(self) -> int:
        """Steps until the process has ended; its exit status."""
        self.until(lambda: False)
        self._file.close()
        return self.process.returncode


def position(bench: TrajectoryBench) -> np.ndarray:
    return np.array(bench.observed().reference.positions)


@pytest.mark.explores
def test_pose_by_a_killed_process_and_back_after_a_question(bench: TrajectoryBench) -> None:
    """A goal outlives the process that sent it, and that has remembered where the arm was."""
    move, first = Move(bench, *TO, *FAST, "--yes"), len(bench.arm.v)
    move.until(lambda: np.abs(position(bench) - START).max() > 0.1)
    move.process.kill()
    assert move.end() == -signal.SIGKILL, move.output
    while np.abs(position(bench) - TARGET).max() > 1e-9:
        bench.arm.run(20)
    assert np.abs(bench.arm.v[first:]).max() <= 10.0 * SPEED * 1.001
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", buffering=0) as keyboard, os.fdopen(theirs) as terminal:
        move = Move(bench, "--back", *FAST, stdin=terminal.fileno())
        move.until(lambda: "Move the arm? [y/N]" in move.output)
        keyboard.write(b"y\n")
        assert move.end() == 0, move.output
    np.testing.assert_allclose(position(bench), START, atol=1e-9)
    assert "  shoulder  from 0.900 to 0.300 rad (-0.600), at most" in move.output
    assert "tracking error, from" in move.output and "the goal is reached" in move.output


@pytest.mark.explores
def test_signal_stops_the_arm_and_a_goal_of_another_is_left_alone(bench: TrajectoryBench) -> None:
    move = Move(bench, *TO, "--speed", "0.01", "--yes")
    move.until(lambda: np.abs(position(bench) - START).max() > 0.05)
    move.process.send_signal(signal.SIGINT)
    assert move.end() == 130, move.output
    assert "interrupted: stopping the arm" in move.output and "the arm has stopped" in move.output
    there = position(bench)
    assert np.abs(there - TARGET).max() > 0.1
    bench.run(0.5)
    np.testing.assert_array_equal(position(bench), there)
    sent = bench.follow([(100.0, TARGET, [0.0, 0.0])])
    move = Move(bench, "--joint", "elbow", "--by", "0.1", "--yes")
    assert move.end() == 1
    assert "accepts no goal: it follows a trajectory of another client" in move.output
    assert not sent.ended
    bench.cancel(sent)


def test_goal_is_canceled_before_it_is_accepted_and_by_another(bench: TrajectoryBench) -> None:
    message = trajectory(JOINTS, [(50.0, TARGET, STILL)])
    clients = [TrajectoryClient(bench.node, "rnea_controller") for _ in range(2)]
    bench.wait(lambda: all(client.is_there for client in clients))
    clients[0].send(message)
    clients[0].cancel()
    bench.wait(lambda: clients[0].ended)
    assert (clients[0].result, clients[0].failure) == ("canceled by the client", "")
    clients[1].send(message)
    bench.wait(lambda: clients[1].accepted)
    action = "rnea_controller/follow_joint_trajectory/_action/cancel_goal"
    ask(bench.node, bench._spin, CancelGoal, action)  # of all goals
    bench.wait(lambda: clients[1].ended)
    assert (clients[1].result, clients[1].failure) == ("", "another client canceled the goal")


@pytest.mark.explores
def test_goal_that_the_controller_aborts(bench: TrajectoryBench) -> None:
    bench.set(constraints__shoulder__trajectory=0.01)
    move = Move(bench, *TO, "--speed", "0.01", "--yes")
    move.until(lambda: np.abs(position(bench) - START).max() > 0.05)
    bench.push([-20.0, 0.0])
    assert move.end() == 3, move.output
    assert "the arm is not at its goal: the controller aborted the goal: shoulder" in move.output


@pytest.mark.explores
def test_motion_without_a_tolerance_that_ends_elsewhere_is_no_success(
    bench: TrajectoryBench,
) -> None:
    bench.set(disturbance_observer__bandwidth=0.0)  # which would compensate the push
    move = Move(bench, *TO, *FAST, "--yes")
    move.until(lambda: np.abs(position(bench) - START).max() > 0.05)
    bench.push([-8.0, 0.0])
    assert move.end() == 3, move.output
    assert "the arm is not at its goal: the motion has ended, but " in move.output
    assert "rad from its goal, without a tolerance there" in move.output


@pytest.mark.explores
def test_signal_at_any_moment_leaves_the_arm_at_rest(bench: TrajectoryBench) -> None:
    for k, words in enumerate(("", "from", "shoulder")):
        move = Move(bench, *TO, "--speed", "0.01", "--yes")
        steps = iter(range(200 * k))
        move.until(lambda: (not words or words in move.output) and next(steps, None) is None)  # noqa: B023
        move.process.send_signal(signal.SIGTERM)
        status = move.end()
        # Before the program has begun, the signal ends it.
        assert status == 130 or (k == 0 and status == -signal.SIGTERM), (status, move.output)
        bench.run(1.0)
        before = position(bench)
        bench.run(0.5)
        np.testing.assert_array_equal(position(bench), before)


@pytest.mark.explores
def test_nothing_moves_without_an_answer_a_controller_or_a_mode(bench: TrajectoryBench) -> None:
    before = position(bench)
    move = Move(bench, *TO, *FAST)
    assert move.end() == 1
    assert "not moved: the question needs a terminal, and stdin is none" in move.output
    move = Move(bench, *TO, "--controller", "other", "--wait", "1", "--yes")
    assert move.end() == 1
    assert "there is no controller /other within 1 s" in move.output
    assert bench.ask("gravity_compensation")[0]
    move = Move(bench, *TO, "--yes")
    assert move.end() == 1
    assert "accepts no goal: a hand guides the arm; call ~/resume first" in move.output
    assert bench.ask("resume")[0]
    np.testing.assert_allclose(position(bench), before, atol=1e-3)
