"""Trajectories that run slower, by `~/speed_scaling_input`."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")

from control_msgs.msg import SpeedScalingFactor
from trajectory_bench import CANCELED, RATE, START, STILL, SUCCEEDED, TrajectoryBench

DOMAIN = 95
SWING = np.array([0.6, -0.4])
TARGET = START + SWING
TIME = 0.6
POINTS = [(TIME, TARGET, STILL, STILL)]
REACHED = (*SUCCEEDED, "the goal is reached")
# After this the factor that was asked for is in force, [s].
SETTLED = 2.4


def quintic(x: float) -> np.ndarray:
    """Position and its first two derivatives on the way of POINTS, 0 to 1; shape (3, 2)."""
    x = min(max(x, 0.0), 1.0)
    return np.outer(
        [
            x**3 * (10.0 - 15.0 * x + 6.0 * x**2),
            30.0 * x**2 * (1.0 - x) ** 2 / TIME,
            60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / TIME**2,
        ],
        SWING,
    )


def assert_smooth(reference: np.ndarray) -> None:
    """Neither position nor velocity of the reference jump; it stays on the straight way."""
    position, velocity, acceleration = reference[:, 0], reference[:, 1], reference[:, 2]
    assert np.abs(np.diff(velocity, axis=0)).max() < 0.12
    for values, slope in ((position, velocity), (velocity, acceleration)):
        moved = np.diff(values, axis=0)
        np.testing.assert_allclose(moved, 0.5 / RATE * (slope[1:] + slope[:-1]), atol=2e-3)
    np.testing.assert_allclose((position - START) @ [SWING[1], -SWING[0]], 0.0, atol=1e-9)


def test_half_speed_takes_twice_as_long(bench: TrajectoryBench) -> None:
    bench.scale(0.5)
    bench.run(SETTLED)
    before = bench.now
    assert bench.end(bench.follow(POINTS)) == REACHED
    assert bench.now - before == pytest.approx(2.0 * TIME, abs=0.05)


def test_reference_is_that_of_the_slower_motion(bench: TrajectoryBench) -> None:
    bench.scale(0.5)
    bench.run(SETTLED)
    begin = bench.now + 5 / RATE
    bench.follow(POINTS, start=begin)
    for row in range(1, 300, 25):
        reference = bench.recorded(25 / RATE)[-1]
        x = 0.5 * (bench.now - begin) / TIME
        expected = quintic(x) * [[1.0], [0.5], [0.25]]
        expected[0] += START
        np.testing.assert_allclose(reference, expected, atol=1e-6, err_msg=str(row))


def test_change_on_the_way_is_smooth(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    parts = [bench.recorded(0.2)]
    for factor in (0.3, 1.0, 0.6):
        bench.scale(factor)
        parts.append(bench.recorded(0.2))
    assert_smooth(np.concatenate([*parts, bench.recorded(0.5)]))
    assert bench.end(sent) == REACHED


def test_factor_of_0_pauses_and_1_goes_on(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    before = bench.recorded(0.2)
    bench.scale(0.0)
    parts = [before, bench.recorded(SETTLED)]
    pause = bench.recorded(0.2)
    np.testing.assert_allclose(pause[:, 1], 0.0, atol=1e-8)
    np.testing.assert_allclose(pause[-1, 0], pause[0, 0], atol=1e-9)
    assert 0.1 < abs(pause[-1, 0] - START)[0] < 0.5
    np.testing.assert_allclose(bench.arm.v[-1], 0.0, atol=1e-3)
    assert not sent.ended
    bench.scale(1.0)
    assert_smooth(np.concatenate([*parts, pause, bench.recorded(0.5)]))
    assert bench.end(sent) == REACHED
    np.testing.assert_allclose(bench.observed().reference.positions, TARGET, atol=1e-9)


def test_goal_that_comes_in_a_pause_waits(bench: TrajectoryBench) -> None:
    bench.scale(0.0)
    bench.run(SETTLED)
    sent = bench.follow(POINTS)
    np.testing.assert_allclose(bench.recorded(0.3)[-1, 0], START, atol=1e-9)
    assert not sent.ended
    bench.scale(1.0)
    assert bench.end(sent) == REACHED


@pytest.mark.parametrize("factor", [1.5, -0.1, math.nan])
def test_factor_out_of_range_is_refused(bench: TrajectoryBench, factor: float) -> None:
    bench.scale(0.5)
    bench.run(SETTLED)
    line = bench.said_after(
        "speed scaling", lambda: bench.scaling.publish(SpeedScalingFactor(factor=factor))
    )
    assert f"speed scaling stays as it is: the speed scaling factor is {factor}; it must be" in line
    bench.run(0.5)
    assert bench.observed().speed_scaling_factor == pytest.approx(0.5, abs=1e-6)


def test_controller_state_tells_the_factor_in_force(bench: TrajectoryBench) -> None:
    assert bench.observed().speed_scaling_factor == 1.0
    bench.scale(0.5)
    bench.run(0.1)
    assert 0.5 < bench.observed().speed_scaling_factor < 1.0  # on its way
    bench.run(SETTLED)
    assert bench.observed().speed_scaling_factor == pytest.approx(0.5, abs=1e-6)


def test_stamp_is_kept_at_half_speed(bench: TrajectoryBench) -> None:
    bench.scale(0.5)
    bench.run(SETTLED)
    begin = bench.now + 0.2
    bench.follow(POINTS, start=begin)
    reference = bench.recorded(0.8)
    x = 0.5 * (0.8 - 0.2) / TIME
    np.testing.assert_allclose(reference[:49, 0], np.broadcast_to(START, (49, 2)), atol=1e-9)
    np.testing.assert_allclose(reference[-1, 0], START + quintic(x)[0], atol=1e-6)


def test_cancel_at_half_speed(bench: TrajectoryBench) -> None:
    bench.scale(0.5)
    bench.run(SETTLED)
    sent = bench.follow(POINTS)
    before = bench.recorded(0.5)
    assert bench.cancel(sent) == (*CANCELED, "cancelled by the client")
    reference = np.concatenate([before, bench.recorded(0.4)])
    assert_smooth(reference)
    fastest = np.abs(before[-1, 1])
    assert (np.abs(reference[len(before) :, 1]) <= fastest + 0.05).all()  # does not speed up
    np.testing.assert_allclose(reference[-20:, 1], 0.0, atol=1e-9)


def test_factor_still_holds_after_a_cancel(bench: TrajectoryBench) -> None:
    bench.scale(0.5)
    bench.run(SETTLED)
    sent = bench.follow(POINTS)
    bench.run(0.3)
    bench.cancel(sent)
    bench.run(2.0)
    before = bench.now
    assert bench.end(bench.follow([(0.4, START, STILL, STILL)])) == REACHED
    assert bench.now - before == pytest.approx(0.8, abs=0.1)


def test_cancel_in_a_pause(bench: TrajectoryBench) -> None:
    sent = bench.follow(POINTS)
    bench.run(0.2)
    bench.scale(0.0)
    bench.run(SETTLED)
    position = bench.observed().reference.positions
    bench.cancel(sent)
    reference = bench.recorded(0.5)
    np.testing.assert_allclose(reference[:, 0], np.broadcast_to(position, (125, 2)), atol=1e-6)


def test_query_state_foresees_the_slower_motion(bench: TrajectoryBench) -> None:
    bench.scale(0.5)
    bench.run(SETTLED)
    sent = bench.follow(POINTS)
    bench.run(0.3)
    answer = bench.query(bench.now + 0.3)
    assert answer.success, answer.message
    foreseen = [answer.position, answer.velocity, answer.acceleration]
    np.testing.assert_allclose(bench.recorded(0.3)[-1], foreseen, atol=1e-5)
    bench.end(sent)  # the controller waits for an arm that moves before it ends
