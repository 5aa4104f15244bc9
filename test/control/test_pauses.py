"""A trajectory after a pause of the states: what is said of it, and how it catches up."""

from __future__ import annotations

import numpy as np
import pytest
from supervised_arm import START, SupervisedArm

from rnea_control.control import EndKind, Mode
from rnea_control.exceptions import TrajectoryPassedError

GOAL = np.array([0.8, 0.1])
POINTS = (0.5, 0.5, -0.3), (1.0, *GOAL)


def paused(pause: float = 0.06) -> SupervisedArm:
    """An arm whose states have paused in a motion of 1 s."""
    arm = SupervisedArm().activate()
    arm.began, arm.motion = arm.t, arm.follow(*POINTS)
    arm.run(0.2).lack(pause).run(0.6)
    return arm


def end(arm: SupervisedArm) -> float:
    """Runs to the end of the motion; how long that took in all, [s]."""
    while arm.motion.ending is None:
        arm.tick()
    return arm.t - arm.began


def test_delay_by_a_pause_is_in_the_result() -> None:
    arm = paused()
    delay = arm.controller.pause_delay
    assert 0.005 < delay < 0.06
    assert end(arm) == pytest.approx(1.0 + delay, abs=0.004)
    assert arm.motion.ending.kind is EndKind.REACHED
    late = arm.motion.ending.text.removeprefix("the goal is reached, ")
    milliseconds, _, why = late.partition(" ms late, ")
    assert float(milliseconds) == pytest.approx(1e3 * delay, abs=1.5)
    assert why == "as joint_states paused"


@pytest.mark.parametrize("pause", [0.0, 0.015])
def test_states_that_come_in_time_delay_nothing(pause: float) -> None:
    arm = paused(pause)
    assert arm.controller.pause_delay == 0.0
    assert end(arm) == pytest.approx(1.0, abs=0.003)
    assert arm.motion.ending.text == "the goal is reached"


def test_speed_scaling_is_no_pause() -> None:
    arm = SupervisedArm().activate()
    arm.motion = arm.follow((4.0, *GOAL))
    arm.run(0.1)
    arm.controller.speed_scaling = 0.5
    arm.run(0.4)
    assert arm.controller.pause_delay == 0.0
    arm.lack(0.05).run(2.5)
    before = arm.controller.pause_delay
    assert 0.0 < before < 0.05
    arm.controller.speed_scaling = 1.0
    arm.run(0.5)
    assert arm.controller.pause_delay == before


def test_next_motion_is_not_late() -> None:
    arm = paused()
    end(arm)
    arm.motion, arm.began = arm.follow((0.5, *START)), arm.t
    end(arm)
    assert arm.motion.ending.text == "the goal is reached"


def test_motion_that_catches_up_meets_its_points_at_their_times() -> None:
    """The same motion: who waits for its end is told of one end."""
    arm = paused()
    assert arm.controller.pause_delay > 0.005
    plan = arm.controller.plan_to_catch_up(arm.motion, arm.supervisor.situation(arm.t), 0.005)
    assert arm.supervisor.catch_up(plan, arm.motion)
    assert arm.mode is Mode.MOVING and arm.controller.motion is arm.motion
    before = arm.controller.desired[:2].copy()
    arm.tick()
    assert np.abs(arm.controller.desired[:2] - before).max() < 0.01  # without a jump
    assert end(arm) == pytest.approx(1.0, abs=0.003)
    assert arm.motion.ending.text == "the goal is reached"
    np.testing.assert_allclose(arm.plant.q, GOAL, atol=2e-3)


def test_there_may_be_no_time_to_catch_up() -> None:
    arm = SupervisedArm().activate()
    arm.motion = arm.follow((0.3, 0.4, -0.4))
    arm.run(0.2).lack(0.09).run(0.014)
    situation = arm.supervisor.situation(arm.t)
    with pytest.raises(TrajectoryPassedError):
        arm.controller.plan_to_catch_up(arm.motion, situation, 0.005)
    assert arm.controller.motion is arm.motion


def test_motion_that_has_ended_does_not_catch_up() -> None:
    arm = paused()
    plan = arm.controller.plan_to_catch_up(arm.motion, arm.supervisor.situation(arm.t), 0.005)
    arm.supervisor.hold()
    assert not arm.supervisor.catch_up(plan, arm.motion)
