"""Arms that are being arrested: which are let go, and when. Speeds are parts of the velocity limit,
times are counted from the beginning of the arrest."""

from __future__ import annotations

import numpy as np
import pytest
from watched_motion import ELBOW, SHOULDER, SPEED, Found, WatchedMotion, at_elbow

from rnea_control.control import arrest, layout
from rnea_control.control.motion import Act
from rnea_control.control.motion_watch import UNWATCHED

Speeds = "Callable[[float], object]"


def moving(speeds: Speeds) -> WatchedMotion:
    """An arm with the first of these speeds."""
    arm = WatchedMotion()
    arm.run(0.1, SPEED * np.array(speeds(0.0)))
    return arm


def arrested(speeds: Speeds, seconds: float = 0.8) -> tuple[WatchedMotion, Found]:
    """An arm that has these speeds during its arrest, and what is found."""
    arm = moving(speeds)
    arrest.begin(arm.settings[0], arm.rows, arm.t)
    return arm, arm.run(seconds, lambda t: SPEED * np.array(speeds(t)))


def caught(speeds: Speeds, seconds: float = 0.8) -> tuple[WatchedMotion, Found]:
    """The same of an arm that was taken over."""
    arm = moving(speeds)
    arm.controller.hold(arm.t, arm.q)
    arm.controller.finish("caught", Act.IS_CAUGHT, state=(arm.t, arm.q, arm.v))
    return arm, arm.run(seconds, lambda t: SPEED * np.array(speeds(t)))


def elbow(*points: tuple[float, float]) -> Speeds:
    """Speeds of the elbow on lines between (time, speed), while the shoulder stands."""
    times, speeds = zip(*points, strict=True)
    return lambda t: at_elbow(float(np.interp(t, times, speeds)))


def both(shoulder: Speeds, elbow: Speeds) -> Speeds:
    """The speeds of the one function for the shoulder, of the other for the elbow."""
    return lambda t: np.array([shoulder(t)[ELBOW], elbow(t)[ELBOW]])


BRAKES = (0.03, 0.8), (0.2, 0.0)


@pytest.mark.parametrize("begin", [arrested, caught])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_arrest_is_over_once_all_joints_are_slow(begin, side: float) -> None:
    brakes, slowly = elbow((0.0, 0.8), *BRAKES), elbow((0.0, 0.15), (0.4, 0.15), (0.6, 0.05))
    speeds = both(slowly, brakes)
    arm, found = begin(lambda t: side * speeds(t), 0.45)
    assert found.kind == layout.UNDER_WAY and arm.arresting  # the shoulder is at 0.12
    assert arm.run(0.05, np.array([side * 0.11 * SPEED, 0.0])).kind == layout.UNDER_WAY
    assert arm.arresting
    arm.run(0.002, np.array([side * 0.09 * SPEED, 0.0]))
    assert not arm.arresting
    # From then on the bounds hold again.
    arm.expect_noise(0.0)
    assert arm.run(0.1, at_elbow(side * 1.3 * SPEED)).kind == layout.TOO_FAST and arm.arresting


def test_violated_bound_begins_an_arrest_that_no_other_violation_ends() -> None:
    arm = WatchedMotion()
    zero = np.zeros(2)
    assert arm.run(0.1, at_elbow(0.9 * SPEED), desired=zero).kind == layout.RUNAWAY
    speeds = elbow((0.0, 0.9), (0.1, 0.75))  # beyond the bound all the while
    found = arm.run(0.1, lambda t: SPEED * speeds(t), desired=zero)
    assert found.kind == layout.UNDER_WAY and arm.arresting


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_joint_that_gets_faster_is_let_go(side: float) -> None:
    """Than it was, and than 0.3."""
    for before, again, most in ((0.5, 0.4, 0.5), (0.15, 0.12, 0.3)):
        speeds = elbow((0.0, before), (0.04, again), (0.08, 0.7))
        _, found = arrested(lambda t, speeds=speeds: side * speeds(t))
        assert found.kind == layout.LET_GO and found.joint == ELBOW
        assert found.value == pytest.approx(most, abs=0.02) and found.bound == before
        assert found.after < 0.08


def test_lively_joint_that_is_not_slower_in_time_is_let_go() -> None:
    """0.07 s after braking acts, which is after 0.03 s."""
    _, found = arrested(elbow((0.0, 0.5)))
    assert found.kind == layout.LET_GO and found.joint == ELBOW
    assert found.after == pytest.approx(0.101, abs=0.0015)
    assert found.value == pytest.approx(0.5) and found.bound == pytest.approx(0.5)


@pytest.mark.parametrize(
    "speeds",
    [elbow((0.0, 0.5), (0.1, 0.49)), elbow((0.0, 0.19))],
    ids=["a little slower", "unhurried"],
)
def test_joint_that_is_slower_or_slow_anyway_is_arrested_on(speeds: Speeds) -> None:
    arm, found = arrested(speeds, 0.5)
    assert found.kind == layout.UNDER_WAY and arm.arresting


def test_until_braking_acts_a_joint_may_gain_speed() -> None:
    """By 0.4 of its limit, and what it has then is what it must be slower than."""
    gains = elbow((0.0, 0.5), (0.025, 0.88), (0.06, 0.85), (0.2, 0.0))
    assert arrested(gains)[1].kind == layout.UNDER_WAY
    _, found = arrested(elbow((0.0, 0.5), (0.025, 0.95)))
    assert found.kind == layout.LET_GO and found.after < 0.026
    _, found = arrested(elbow((0.0, 0.5), (0.025, 0.8), (0.05, 0.7), (0.08, 0.9)))
    assert found.kind == layout.LET_GO and found.value == pytest.approx(0.8, abs=0.01)


def test_after_long_no_joint_may_be_lively() -> None:
    """Half a second after braking acts."""
    arm, found = arrested(elbow((0.0, 1.0), (0.15, 0.35)))
    assert found.kind == layout.LET_GO and found.after == pytest.approx(0.531, abs=0.0015)
    arm, found = arrested(elbow((0.0, 1.0), (0.15, 0.28)), 1.5)
    assert found.kind == layout.UNDER_WAY and arm.arresting


def test_joint_that_the_braking_of_a_faster_one_moves_is_not_let_go() -> None:
    """Up to half of the most that the faster one had."""
    shoulder = elbow((0.0, 1.0), (0.03, 1.0), (0.3, 0.0))
    for most, kind in ((0.47, layout.UNDER_WAY), (0.54, layout.LET_GO)):
        follows = elbow((0.0, 0.0), (0.06, most), (0.12, most), (0.3, 0.0))
        _, found = arrested(both(shoulder, follows))
        assert found.kind == kind
        assert kind == layout.UNDER_WAY or found.joint == ELBOW
    # Beside a slower one it is.
    slow = elbow((0.0, 0.3), (0.3, 0.15))
    alone = elbow((0.0, 0.0), (0.06, 0.47), (0.12, 0.47), (0.3, 0.0))
    assert arrested(both(slow, alone))[1].kind == layout.LET_GO


def test_arm_that_is_caught_has_longer_to_react() -> None:
    """A tenth of a second or two: the first commands may be on their way."""
    _, found = caught(elbow((0.0, 0.5)))
    latest = arrest.FIRST_REACTION + arrest.EFFECT
    assert found.kind == layout.LET_GO
    assert found.after == pytest.approx(latest + 0.001, abs=0.0015) and 0.15 < latest < 0.3
    falls = elbow((0.0, 0.5), (0.08, 0.85), (0.3, 0.0))
    assert caught(falls)[1].kind == layout.UNDER_WAY
    assert arrested(falls)[1].kind == layout.LET_GO


def test_speed_that_may_be_noise_is_none() -> None:
    """Two standard deviations of what was measured."""
    for noise, over in ((0.0, False), (0.4, True), (0.2, False)):
        arm = WatchedMotion()
        arm.run(0.1, at_elbow(0.17 * SPEED))
        arm.expect_noise(noise)
        arrest.begin(arm.settings[0], arm.rows, arm.t)
        arm.run(0.01, at_elbow(0.17 * SPEED))
        assert arm.arresting != over


def test_positions_tell_the_speed_of_a_joint_whose_velocities_contradict_them() -> None:
    """A velocity that reads zero would end the arrest, and the joint would be driven on."""
    arm = WatchedMotion()
    zero = {"measured": lambda k, q, v: (q, v * np.array([1.0, 0.0])), "desired": np.zeros(2)}
    assert arm.run(0.2, at_elbow(0.2 * SPEED), **zero).kind == layout.CONTRADICTED
    speeds = elbow((0.0, 0.2), (0.1, 0.6))
    found = arm.run(0.2, lambda t: SPEED * speeds(t), **zero)
    assert found.kind == layout.LET_GO and found.joint == ELBOW
    assert 0.3 < found.value < 0.4


def test_arrest_of_an_arm_that_nobody_commands_any_more_is_forgotten() -> None:
    arm, _ = arrested(elbow((0.0, 0.5)), 0.05)
    assert arm.arresting
    arm.arm.watch = UNWATCHED
    assert arm.run(0.3, at_elbow(0.5 * SPEED)).kind == layout.UNDER_WAY and not arm.arresting


def test_joint_that_is_let_go_is_the_one_that_braking_does_not_help() -> None:
    """Not the fastest one, which is braked."""
    shoulder, drives = elbow((0.0, 0.9), (0.3, 0.0)), elbow((0.0, 0.2), (0.1, 0.6))
    _, found = arrested(both(shoulder, drives))
    assert found.kind == layout.LET_GO and found.joint == ELBOW != SHOULDER
