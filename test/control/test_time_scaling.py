"""Speed scaling: trajectory time slows down smoothly, and the arm stays on its path."""

from __future__ import annotations

import math

import numpy as np
import pytest
from controllers import ask, following, run, step, to

from rnea_control.control import Act, EndKind
from rnea_control.control.trajectory import LAG_TIME
from rnea_control.exceptions import ControllerError

FAR = [to(2.0, 0.8, -0.6, velocity=0.3), to(6.0, -0.5, 0.9)]


def moving(scaling: float = 1.0, until: float = 1.0, **settings):
    """Has been on the way for so long, with the scaling set from the start."""
    c = following(**settings)
    c.speed_scaling = scaling
    c.hold(0.0, np.zeros(2))
    c.follow(0.0, FAR, 0.0)
    run(c, 0.0, until, 0.01)
    return c


def paused():
    """Stands in the middle of its motion, at 6 s."""
    c = moving()
    c.speed_scaling = 0.0
    run(c, 1.0, 6.0, 0.01)
    return c


@pytest.mark.parametrize("target", [0.0, 0.3, 1.0])
def test_it_goes_to_its_target_without_overshoot(target: float) -> None:
    c = moving(0.6)
    c.speed_scaling = target
    scalings = [0.6]
    for k in range(3000):
        step(c, 1.0 + 0.001 * (k + 1))
        scalings.append(c.speed_scaling)
    changes = np.diff(scalings) * math.copysign(1.0, target - 0.6)
    assert (changes >= 0.0).all() and changes[:1500].min() > 0.0
    assert scalings[-1] == target
    done = (scalings[500] - 0.6) / (target - 0.6)
    x = 0.5 / LAG_TIME
    assert done == pytest.approx(1.0 - (1.0 + x) * math.exp(-x), rel=1e-9)


def test_steps_are_exact_whatever_their_length() -> None:
    """So trajectory time is the integral of the scaling; its law is that of the test above."""
    coarse, fine = moving(), moving()
    for c in (coarse, fine):
        c.speed_scaling = 0.2
    step(coarse, 1.25)
    run(fine, 1.0, 1.25, 0.25 / 4096)
    assert coarse.speed_scaling == pytest.approx(fine.speed_scaling, rel=1e-12)
    assert coarse.trajectory_time == pytest.approx(fine.trajectory_time, abs=1e-12)


@pytest.mark.parametrize("factor", [-0.1, 1.001, math.nan, math.inf])
def test_factor_outside_0_to_1_is_refused(factor: float) -> None:
    c = moving(0.5)
    with pytest.raises(ControllerError, match="it must be 0 to 1"):
        c.speed_scaling = factor
    run(c, 1.0, 2.0, 0.01)
    assert c.speed_scaling == 0.5


def test_future_start_is_an_instant_of_time_not_of_trajectory_time() -> None:
    c = moving(0.25)
    motion = ask(c, 1.0, [to(1.0, 0.2, 0.2)], start=3.0)
    run(c, 1.0, 3.0, 0.01)
    assert c.trajectory_time == pytest.approx(motion.start, abs=1e-9)
    assert c.snapshot().time_from_start == pytest.approx(0.0, abs=1e-9)


def test_past_start_counts_in_full() -> None:
    """Its waypoints were due then, whatever the speed."""
    c = moving(0.25)
    motion = ask(c, 1.0, [to(0.3, 0.1, 0.0), to(1.5, 0.2, 0.2)], start=0.5)
    assert motion.start == pytest.approx(c.trajectory_time - 0.5)
    assert motion.index(c.trajectory_time) == 1


def test_paused_arm_stands_and_goes_on() -> None:
    c = paused()
    rows = run(c, 6.0, 8.0, 0.01)
    np.testing.assert_allclose(np.ptp(rows[:, 0], axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(rows[:, 1:3], 0.0, atol=1e-7)
    assert c.motion is not None and c.is_moving
    c.speed_scaling = 1.0
    run(c, 8.0, 14.0, 0.01)
    assert c.motion is None
    np.testing.assert_allclose(c.desired[0], FAR[-1].position)


def test_stop_is_not_slowed_by_the_scaling() -> None:
    """It takes as long as it does at full speed at most, and keeps the velocity at its start."""
    c = moving(0.3, 2.0, max_deceleration=np.full(2, 0.5))
    before = c.snapshot().desired
    c.finish("stop", Act.BRAKES, EndKind.CANCELLED)
    assert c.speed_scaling == 1.0
    np.testing.assert_allclose(c.trajectory.sampled(c.trajectory_time), before, atol=1e-12)
    end = 2.0 + c.trajectory.end_time - c.trajectory_time
    rows = run(c, 2.0, end + 0.01)
    assert not c.is_moving and end < 3.5
    np.testing.assert_allclose(np.diff(rows[:, 0], axis=0), 1e-3 * rows[1:, 1], atol=2e-6)
    run(c, end + 0.01, end + 2.0)
    assert c.speed_scaling == pytest.approx(0.3)


@pytest.mark.parametrize("wait", [0.0, 0.05, 3.0])
def test_goal_after_a_stop_while_paused_stays_paused(wait: float) -> None:
    """The stop runs at full speed, but nothing may move before the pause is over."""
    c = paused()
    held, motion, t = c.desired[0].copy(), c.motion, 6.0 + wait
    c.finish("canceled by the client", Act.BRAKES, EndKind.CANCELLED)
    assert motion.ending.kind == EndKind.CANCELLED and not c.is_moving
    if wait:
        rows = run(c, 6.0, t, 0.01)
        np.testing.assert_array_equal(rows[:, 0], np.broadcast_to(held, rows[:, 0].shape))
        assert not rows[:, 1:3].any()
    else:  # an instant that does not come while it is paused
        later = ask(c, t, [to(1.0, 0.2, 0.2)], start=9.0)
        assert later.start == pytest.approx(c.trajectory_time)
    ask(c, t, [to(1.0, 0.0, 0.0)])
    rows = run(c, t, t + 3.0, 0.01)
    np.testing.assert_allclose(rows[:, 0], np.broadcast_to(held, rows[:, 0].shape), atol=1e-12)
    c.speed_scaling = 1.0
    run(c, t + 3.0, t + 5.5, 0.01)
    np.testing.assert_allclose(c.desired[0], 0.0, atol=1e-12)


def test_start_after_a_stop_is_by_the_scaling_that_is_set() -> None:
    c = moving(0.25, 2.0)
    c.finish("canceled by the client", Act.BRAKES, EndKind.CANCELLED)
    run(c, 2.0, 3.0, 0.01)
    c.finish("stands already", Act.BRAKES, EndKind.CANCELLED)
    assert not c.is_moving
    motion = ask(c, 3.0, [to(1.0, 0.2, 0.2)], start=7.0)
    run(c, 3.0, 7.0, 0.01)
    assert c.trajectory_time == pytest.approx(motion.start, abs=1e-9)
