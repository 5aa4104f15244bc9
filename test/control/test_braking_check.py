"""Values with which the arm could not be braked, found by a simulated stop."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from controllers import ARM
from robots import panda
from supervised_arm import SupervisedArm

from rnea_control.control import ControllerSettings, Gains, Mode
from rnea_control.control.braking_check import (
    SHARES,
    Candidate,
    stop_fault,
    swinging,
)
from rnea_control.exceptions import ControllerError, TrajectoryError
from rnea_control.model import RobotModel

HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])


def with_limits(settings: ControllerSettings, rate: float = np.nan, **changes):
    """The settings with a torque rate limit for all joints."""
    rates = np.full(len(settings.gains.p), rate)
    return replace(settings, safety=replace(settings.safety, torque_rate_limit=rates), **changes)


def objection(arm: SupervisedArm, settings: ControllerSettings, model: RobotModel = ARM) -> str:
    return arm.supervisor.braking_check().objection(Candidate(model, settings))


@pytest.fixture(scope="module")
def resting() -> SupervisedArm:
    return SupervisedArm(model=panda(), q=HOME).activate()


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({"rate": 1.0}, False),
        ({"rate": 20.0}, False),
        ({"rate": 1000.0}, True),  # Franka's
        ({"effort_limit_scale": 0.3}, True),
        ({"effort_limit_scale": 0.05}, False),
        ({"rate": 500.0, "gains": Gains.uniform(7, 100.0, 20.0)}, True),
        ({"rate": 150.0, "gains": Gains.uniform(7, 100.0, 20.0)}, False),
        ({"gains": Gains.uniform(7, 0.0, 0.0)}, True),  # the model alone brakes it
        ({"feedback_inertia": np.full(7, 10.0)}, False),
    ],
)
def test_resting_arm_may_have_to_be_braked(resting, changes: dict, allowed: bool) -> None:
    model = resting.controller.model
    words = objection(resting, with_limits(resting.controller.settings, **changes), model)
    assert (words == "") == allowed, words
    if words:
        compared = "of its velocity limits, and from 0.5 with the values in force: in a simulated"
        assert compared in words or "any more: in a simulated stop from here" in words


def test_payload_that_can_be_held_but_not_braked() -> None:
    arm = SupervisedArm(model=panda(), q=HOME).activate()
    heavy = panda()
    heavy.set_payload("panda_link8", 3.0, [0.0, 0.0, 0.1])
    assert objection(arm, arm.controller.settings, heavy) == ""
    heavy.set_payload("panda_link8", 3.0, [0.0, 0.0, 0.1], np.eye(3) * 20.0)
    assert arm.supervisor.objection(heavy, arm.controller.settings) == ""
    assert "could be braked from 0" in objection(arm, arm.controller.settings, heavy)


def test_moving_arm_is_judged_by_its_motion() -> None:
    """What suffices for a part of the velocity limit may not for the present velocity."""
    arm = SupervisedArm().activate()
    arm.follow((0.8, 1.7, -1.9))
    arm.run(0.4)
    settings = with_limits(arm.controller.settings, rate=30.0)
    assert np.abs(arm.plant.v).max() > 2.0
    assert "in a simulated stop from here" in objection(arm, settings)


def test_arm_that_could_be_braked_no_better_before_may_change() -> None:
    arm = SupervisedArm(model=panda(), q=HOME).activate()
    settings = with_limits(arm.controller.settings, rate=1.0)
    arm.controller.settings = settings
    stiffer = replace(settings, gains=Gains.uniform(7, 420.0, 40.0))
    assert objection(arm, stiffer, arm.controller.model) == ""
    better = with_limits(settings, rate=200.0)
    assert objection(arm, better, arm.controller.model) == ""
    arm.controller.settings = better
    assert "from 0 of its velocity" in objection(arm, settings, arm.controller.model)


def test_bounds_of_the_motion_that_are_off_hide_nothing() -> None:
    arm = SupervisedArm(model=panda(), q=HOME, max_velocity=np.inf, max_velocity_error=np.inf)
    arm.activate()
    assert objection(arm, with_limits(arm.controller.settings, rate=1.0), arm.controller.model)


def test_dead_time_and_seen_delay_count(resting: SupervisedArm) -> None:
    check = resting.supervisor.braking_check()
    state = check._now._replace(velocity=0.5 * resting.controller.model.velocity_limit)
    given = Candidate(resting.controller.model, resting.controller.settings)
    assert stop_fault(given, state) == ""
    assert stop_fault(given, state._replace(delay=0.04)) != ""


def test_what_the_arm_was_started_with_is_compared_with_the_default_limits() -> None:
    arm = SupervisedArm(model=panda(), q=HOME, torque_rate_limit=np.full(7, 1.0)).activate()
    check, given = arm.supervisor.braking_to_judge()
    words = check.objection(given)
    assert "from 0.5 with the default limits of the torques" in words
    assert not check.allows_any_motion(given)
    assert arm.supervisor.braking_to_judge() is None  # once
    arm.supervisor.weak_brakes(words, hardly=True)
    assert arm.mode is Mode.FAULT
    with pytest.raises(ControllerError, match="default limits of the torques"):
        arm.supervisor.reset_fault()
    arm.controller.settings = with_limits(arm.controller.settings)
    arm.supervisor.judge_braking_again()
    arm.supervisor.reset_fault()
    assert arm.run(0.1).mode is Mode.HOLDING


def test_start_with_default_limits_and_moderate_gains_has_no_objection() -> None:
    arm = SupervisedArm(model=panda(), q=HOME).activate()
    check, given = arm.supervisor.braking_to_judge()
    assert check.objection(given) == "" and check.allows(given)


def with_bandwidth(settings: ControllerSettings, w: float, **changes) -> ControllerSettings:
    """The settings with critically damped gains for this bandwidth, [rad/s]."""
    return replace(settings, gains=Gains.uniform(len(settings.gains.p), w**2, 2.0 * w), **changes)


def test_gains_are_refused_with_which_a_pushed_arm_swings(resting: SupervisedArm) -> None:
    """By a real push: an arm that moves at these shares of its velocity limits for no reason."""
    model, settings = resting.controller.model, resting.controller.settings
    for w, withstands in ((20.0, 0.25), (50.0, 0.25), (90.0, 0.12), (140.0, 0.03), (160.0, 0.03)):
        words = objection(resting, with_bandwidth(settings, w), model)
        assert (words == "") == (w < 100.0), words
        for share in (withstands, 0.12, 0.25):
            arm = SupervisedArm(model=panda(), q=HOME).activate()
            arm.supervisor.change(model, with_bandwidth(settings, w))
            arm.run(0.05).plant.v[:] = share * model.velocity_limit
            arm.run(1.0)
            assert (arm.mode is Mode.HOLDING and arm.speed < 0.01) == (
                share <= withstands or not words
            )
    assert "pushed to 0.12 of its velocity limits, the arm would swing: panda_joint" in words


def test_bandwidth_that_a_push_allows_falls_with_the_delay(resting: SupervisedArm) -> None:
    now, given = resting.supervisor._arm_state, resting.supervisor._in_force

    def largest(**changes) -> float:
        settings = with_limits(given.settings, **changes)
        tried = (Candidate(given.model, with_bandwidth(settings, w)) for w in (120.0, 90.0, 70.0))
        allowed = (each for each in tried if not swinging(each, now))
        return float(next(allowed).settings.gains.d[0]) / 2.0

    assert largest() == 90.0
    assert largest(dead_time=0.004) < 90.0


def test_gains_that_swing_already_may_change_but_not_to_worse_ones(resting: SupervisedArm) -> None:
    model, settings = resting.controller.model, resting.controller.settings
    arm = SupervisedArm(model=panda(), q=HOME).activate()
    arm.supervisor.change(model, with_bandwidth(settings, 140.0))
    assert objection(arm, with_bandwidth(settings, 141.0), model) == ""
    assert "would swing" in objection(arm, with_bandwidth(settings, 200.0), model)
    assert objection(arm, with_bandwidth(settings, 30.0), model) == ""


def test_start_with_gains_that_swing_is_a_warning(resting: SupervisedArm) -> None:
    arm = SupervisedArm(model=panda(), q=HOME).activate()
    arm.supervisor.change(arm.controller.model, with_bandwidth(arm.controller.settings, 140.0))
    arm.supervisor.judge_braking_again()
    check, given = arm.supervisor.braking_to_judge()
    words = check.objection(given)
    assert words.startswith("pushed to ")
    assert check.allows_any_motion(given)
    arm.supervisor.weak_brakes(words, hardly=False)
    assert arm.run(0.1).mode is Mode.HOLDING
    assert arm.supervisor.weak_braking == words
    position, velocity = arm.plant.q.copy(), arm.plant.v.copy()
    arm.supervisor.fail("for a reason of its own", arm.controller.time, position, velocity)
    assert arm.run(0.1).mode is Mode.FAULT
    arm.supervisor.reset_fault()  # the warning is no reason to refuse it
    assert arm.run(0.1).mode is Mode.HOLDING


def random_change(rng: np.random.Generator, arm: SupervisedArm) -> Candidate:
    """Another model, or other settings, some of them absurd."""
    model, settings = panda(), arm.controller.settings
    what = rng.integers(5)
    if what == 0:
        settings = with_limits(settings, rate=10.0 ** rng.uniform(0.0, 4.0))
    elif what == 1:
        settings = replace(settings, effort_limit_scale=rng.uniform(0.02, 1.0))
    elif what == 2:
        gains = Gains.uniform(7, rng.uniform(0.0, 600.0), rng.uniform(0.0, 60.0))
        settings = replace(settings, gains=gains)
    elif what == 3:
        settings = replace(settings, dead_time=rng.uniform(0.0, 0.02))
    else:
        model.set_payload("panda_link8", rng.uniform(0.0, 3.0), [0.0, 0.0, 0.1])
    return Candidate(model, settings)


@pytest.mark.parametrize("seed", range(3))
def test_storm_of_accepted_changes_lets_no_arm_run_away(seed: int) -> None:
    """31 changes in 10 s; payloads that are told are not there. Without the simulated stops these
    arms reached 24 to 34 times their velocity limits."""
    rng, arm = np.random.default_rng(seed), SupervisedArm(model=panda(), q=HOME)
    arm._note = lambda commanded: None  # the rate limit changes
    limits = arm.controller.model
    arm.activate()
    accepted, fastest = 0, 0.0
    for _ in range(31):
        with suppress(TrajectoryError):
            arm.follow((2.0, *(HOME + rng.uniform(-0.6, 0.6, 7))))
        given = random_change(rng, arm)
        if not arm.supervisor.objection(*given) and not objection(arm, given.settings, given.model):
            arm.controller.change(*given)
            accepted += 1
        for _ in range(320):
            arm.tick()
            fastest = max(fastest, float((np.abs(arm.plant.v) / limits.velocity_limit).max()))
            assert (arm.plant.q > limits.lower).all() and (arm.plant.q < limits.upper).all()
        if arm.mode is Mode.FAULT:
            with suppress(ControllerError):
                arm.supervisor.reset_fault()
    assert accepted >= 10 and fastest < 1.0


def test_shares_fall() -> None:
    assert list(SHARES) == sorted(SHARES, reverse=True)
