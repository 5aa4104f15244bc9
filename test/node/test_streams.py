"""Streams of trajectories by the topic, as moveit_servo sends them, and refusals at a high rate."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from trajectory_bench import RATE, START, STILL, Result, TrajectoryBench, aborted, trajectory_bench

DOMAIN = 96
SERVO_PERIOD = 0.01  # time between two messages [s]
SERVO_LATENCY = 0.1  # time by which the last point is ahead [s]


@pytest.fixture(scope="module")
def shared_bench() -> Iterator[TrajectoryBench]:
    """On a busy machine the interpreter may stand still for seconds, which would end a motion."""
    with trajectory_bench(DOMAIN, interpreter_timeout=1000.0) as bench:
        yield bench


def servo_message(begin: float, now: float) -> tuple[float, list[tuple]]:
    """What moveit_servo publishes at a time: the last part of the motion so far, until
    SERVO_LATENCY ahead of now, where it does not rest. Its stamp and its points."""
    first = max(now - SERVO_LATENCY, begin) + SERVO_PERIOD
    times = np.arange(first, now + SERVO_LATENCY + 0.5 * SERVO_PERIOD, SERVO_PERIOD)
    points = [(t - first + SERVO_PERIOD, *joystick(t - begin)) for t in times]
    return first - SERVO_PERIOD, points


def joystick(t: float) -> np.ndarray:
    """Position and velocity of a motion from START on by hand, shape (2, 2)."""
    amplitude, frequency = np.array([0.3, -0.2]), 3.0
    shift = amplitude * (1.0 - np.cos(frequency * t))
    return np.array([START + shift, amplitude * frequency * np.sin(frequency * t)])


def test_stream_of_moveit_servo_is_followed_and_settles_where_it_ends(
    bench: TrajectoryBench,
) -> None:
    """At 100 Hz, with the default parameters; none of its messages ends at rest."""
    begin, followed, asked = bench.now, [], []
    for k in range(80):
        stamp, points = servo_message(begin, bench.now)
        bench.publish(points, start=stamp)
        bench.run((3 - k % 2) / RATE)  # by turns 12 and 8 ms
        reference = bench.observed().reference
        followed.append([reference.positions, reference.velocities])
        asked.append(joystick(bench.now - begin))
    assert np.abs(points[-1][2]).max() > 0.3  # the last point moves
    np.testing.assert_allclose(followed[10:], asked[10:], atol=2e-3)
    np.testing.assert_allclose(np.array(followed)[10:, 0], np.array(asked)[10:, 0], atol=2e-5)
    bench.run(SERVO_LATENCY + 0.5)
    reference = bench.observed().reference
    end = points[-1][1]
    np.testing.assert_allclose([reference.positions, reference.velocities], [end, STILL], atol=1e-9)


def test_goal_must_end_at_rest_and_refusals_at_a_high_rate_are_counted(
    bench: TrajectoryBench,
) -> None:
    count, before, begin = 30, len(bench.process.output), time.monotonic()
    moving = bench.goal([(0.4, START, [0.1, 0.0])])
    for _ in range(count):
        status, code, text = bench.refused(moving)
        assert (status, code) == aborted(Result.INVALID_GOAL)
        assert "the last point of a goal must be at rest. Send streams by the topic, or" in text

    def logged() -> tuple[int, int]:
        """Lines about it, and refusals that they stand for."""
        new = bench.process.output[before:]
        lines = [line for line in new.splitlines() if "the controller goes on as before" in line]
        counts = [re.search(r"\((\d+) more of this kind within", line) for line in lines]
        return len(lines), len(lines) + sum(int(each[1]) for each in counts if each)

    bench.wait(lambda: logged()[1] >= count)
    assert logged()[1] == count
    assert logged()[0] <= 2.0 + time.monotonic() - begin  # one a second
