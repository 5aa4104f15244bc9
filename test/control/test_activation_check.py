"""The check of the wires at activation, with a Panda in MuJoCo: what it finds, what it commands,
and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from ament_index_python.packages import get_package_share_directory
from default_safety import default_safety
from miswired_arm import (
    FRICTION,
    PERIOD,
    START,
    MiswiredArm,
    exchanged,
    reversed_at,
    scaled,
)
from robots import LIMIT, two_link_arm

from rnea_control.control import ControllerSettings, Gains, Mode, activation_check
from rnea_control.control.activation_check import MOST_INTERRUPTIONS, Verdict
from rnea_control.dynamics import Workspace, crba, gravity
from rnea_control.exceptions import ControllerError
from rnea_control.model import RobotModel

QUICK = 0.1  # after which a right arm has been checked [s]


class Checked:
    """An arm after its check.

    Attributes:
        arm: the arm.
        verdict: what was found; None if the check still runs.
        after: how long it took [s].
        moved, fastest: how far each joint went meanwhile [rad], and the largest speed as a part of
            a velocity limit.
        torques: what was commanded, shape (n, 7).
    """

    def __init__(
        self,
        check: str = "refuse",
        seconds: float = 4.0,
        act: Callable[[MiswiredArm, float], None] = lambda arm, t: None,
        **wrong: object,
    ) -> None:
        self.arm = arm = MiswiredArm(check=check, **wrong)
        self.moved, self.fastest, torques = np.zeros(7), 0.0, []
        for k in range(round(seconds / PERIOD)):
            act(arm, k * PERIOD)
            arm.tick()
            torques.append(arm.tau.copy())
            self.moved = np.maximum(self.moved, np.abs(arm.q - START))
            self.fastest = max(self.fastest, (np.abs(arm.v) / arm.model.velocity_limit).max())
            if arm.supervisor.verdict is not None:
                break
        self.after, self.torques = (k + 1) * PERIOD, np.array(torques)

    @property
    def verdict(self) -> Verdict:
        return self.arm.supervisor.verdict

    def likely(self) -> str:
        return self.verdict.likely(self.arm.model)


def held(arm: MiswiredArm) -> np.ndarray:
    return gravity(arm.model, Workspace(arm.model), START, np.zeros(7))


# A right arm.


@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_right_arm_passes_and_stays_about_where_it_is(noise: float) -> None:
    run = Checked(noise=noise)
    assert not run.verdict.wrong and run.verdict.words == "" and run.likely() == ""
    assert run.verdict.verified.all() and run.verdict.delay == 0.0
    assert run.after < QUICK and run.fastest < 0.1 and run.moved.max() < 0.02
    assert not run.arm.supervisor.unexplained
    assert run.arm.run(0.5).mode is Mode.HOLDING
    assert np.abs(run.arm.q - START).max() < 0.02


def test_torques_are_gravity_and_codes_of_three_percent_at_most() -> None:
    run = Checked()
    limit, codes = run.arm.model.effort_limit, run.torques - held(run.arm)
    quiet, asked = codes[:10], codes[12:-2]
    assert (np.abs(quiet) < 0.01 * limit).all()
    assert (np.abs(asked) < 0.031 * limit + 0.1).all()
    assert (np.abs(asked).max(axis=0) > 0.001 * limit).all()
    # Each joint has its own, of zero mean and orthogonal to all others.
    signs = np.sign(asked[:80:10] + 0.0)
    assert len({tuple(column) for column in signs.T}) == 7
    np.testing.assert_allclose(signs.T @ signs, 8.0 * np.eye(7))


@pytest.mark.parametrize(
    "wrong", [{}, {"torques": reversed_at(0)}], ids=["right", "reversed torque"]
)
def test_command_is_the_gravity_torque_when_the_codes_have_ended(wrong: dict) -> None:
    """While the answer is judged, which takes longer than a tick."""
    run = Checked(**wrong)
    before, last = run.torques[-3], run.torques[-2]
    assert np.abs(before - held(run.arm)).max() > 0.3
    np.testing.assert_allclose(last, held(run.arm), atol=0.3)


# Wrong arms.

WRONG = {
    "reversed torque": (
        {"torques": reversed_at(0)},
        "panda_joint1",
        "the torque of panda_joint1 has the wrong sign",
    ),
    "reversed torque of a wrist": (
        {"torques": reversed_at(5)},
        "panda_joint6",
        "the torque of panda_joint6 has the wrong sign",
    ),
    "exchanged joints": (
        {"torques": exchanged(1, 3)},
        "panda_joint",
        "commands of panda_joint2 and panda_joint4 are exchanged",
    ),
    "all torques times 10": (
        {"torques": scaled(10.0)},
        "panda_joint",
        "the torques of all joints arrive 10 times as large",
    ),
    "one torque times 10": (
        {"torques": scaled(10.0, 4)},
        "panda_joint5",
        "the torque of panda_joint5 arrives 10 times as large",
    ),
    "hardware that adds gravity": (
        {"adds_gravity": True},
        "panda_joint",
        "the hardware adds the gravity torque itself",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_wrong_arm_is_let_go_before_anything_is_fed_back(mistake: str) -> None:
    wrong, seen, likely = WRONG[mistake]
    run = Checked(**wrong)
    verdict, arm, found = run.verdict, run.arm, run.likely()
    assert verdict.wrong and seen in verdict.words and likely in found
    assert not verdict.verified.any()
    assert run.after < QUICK and run.moved.max() < 0.05 and run.fastest < 0.7
    assert arm.mode is Mode.POWERLESS and arm.supervisor.unexplained
    assert arm.supervisor.reason == f"found at activation: {verdict.words}"
    assert Mode.HOLDING not in [new for _, new, _ in arm.changes]
    arm.run(0.03)
    np.testing.assert_array_equal(arm.tau, 0.0)
    behind = f"the check of the wires at activation: {verdict.words}"
    assert verdict.explanation(found) == f"{found} ({behind})"
    assert verdict.explanation("") == behind


def test_velocity_of_the_wrong_sign_is_named_by_the_positions() -> None:
    run = Checked(velocities=reversed_at(3))
    assert run.verdict.wrong and run.arm.mode is Mode.POWERLESS
    words = "the velocity of panda_joint4 has the other sign than the change of its position"
    assert run.verdict.words == words
    assert run.verdict.told and run.likely() == ""  # nothing is left to be looked for


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (0.0, "the velocity of panda_joint4 is zero while its position changes"),
        (2.0, "the position of panda_joint4 changes 0.5 times as fast as its velocity says"),
    ],
)
def test_velocity_in_another_unit_is_named(factor: float, words: str) -> None:
    assert Checked(velocities=scaled(factor, 3)).verdict.words.startswith(words)


def test_noisy_arm_is_checked_as_any_other() -> None:
    """Velocities that are never zero are no reason to feed them back unseen."""
    run = Checked(noise=0.03, torques=reversed_at(1))
    assert run.verdict.wrong and run.arm.mode is Mode.POWERLESS
    assert "panda_joint2" in run.verdict.words


def test_wrong_arm_is_held_with_a_warning_where_the_user_wants_that() -> None:
    """A wrist whose torque arrives ten times as large can still be held for a while."""
    run = Checked(check="warn", torques=scaled(10.0, 6))
    arm = run.arm
    assert run.verdict.wrong and run.verdict.words
    assert arm.mode in (Mode.HOLDING, Mode.BRAKING) and arm.supervisor.unexplained
    assert not arm.controller.powerless
    assert arm.supervisor.cause(arm.rows()) == run.likely()


def test_check_that_is_off_asks_nothing() -> None:
    arm = MiswiredArm(check="off")
    arm.tick()
    assert arm.mode is Mode.HOLDING and arm.supervisor.verdict is None


def test_latched_stop_comes_before_the_check() -> None:
    arm = MiswiredArm(check="refuse")
    arm.supervisor.emergency_stop(True)
    arm.run(0.2)
    assert arm.mode is Mode.EMERGENCY_STOP and arm.supervisor.verdict is None


def test_emergency_stop_ends_a_check() -> None:
    arm = MiswiredArm(check="refuse").run(0.05)
    assert arm.mode is Mode.CHECKING
    arm.supervisor.emergency_stop(True)
    arm.run(0.3)
    assert arm.mode is Mode.EMERGENCY_STOP and arm.supervisor.verdict is None
    assert np.abs(arm.q - START).max() < 0.02


# Brakes, friction and late torques.


def test_brakes_may_open_late() -> None:
    def brake(arm: MiswiredArm, t: float) -> None:
        arm.sticks[:] = math.inf if t < 0.5 else 0.0

    run = Checked(act=brake)
    assert not run.verdict.failed and run.verdict.words == ""
    assert run.verdict.verified.all() and 0.5 < run.after < 0.7


def test_brakes_that_stay_closed_are_told_after_two_seconds() -> None:
    def brake(arm: MiswiredArm, t: float) -> None:
        arm.sticks[:] = math.inf

    run = Checked(act=brake)
    assert not run.verdict.wrong and not run.verdict.verified.any() and run.verdict.failed
    assert run.verdict.words.startswith("no joint answers to 25 % of the effort limit: is a brake")
    assert 2.0 < run.after < 3.0
    assert run.arm.mode is Mode.HOLDING and run.arm.supervisor.unexplained


@pytest.mark.parametrize(("sticks", "answers"), [(4.0, True), (12.0, True), (30.0, False)])
def test_joint_that_sticks_is_asked_again_with_more(sticks: float, answers: bool) -> None:
    """From 3 % of its effort limit, 2.6 Nm, to 25 %, 22 Nm, while the others are held."""

    def stick(arm: MiswiredArm, t: float) -> None:
        arm.sticks[2] = sticks

    run = Checked(act=stick)
    assert not run.verdict.wrong and run.after > QUICK
    others = np.arange(7) != 2
    assert run.verdict.verified[others].all() and run.verdict.verified[2] == answers
    assert bool(run.verdict.words) != answers
    if not answers:
        assert run.verdict.words.startswith("panda_joint3 did not answer to 25 % of the effort")
    most = np.abs(run.torques[:, 2] - held(run.arm)[2]).max()
    assert sticks < most if answers else most == pytest.approx(0.25 * 87.0, rel=0.05)
    assert run.moved[others].max() < 0.02


def test_friction_of_a_right_arm_is_no_mistake() -> None:
    run = Checked(friction=5.0 * FRICTION)
    assert not run.verdict.wrong and run.verdict.words == "" and run.verdict.verified.all()


@pytest.mark.parametrize("late", [5, 10, 20])
def test_late_torques_are_told_and_are_no_wrong_wires(late: int) -> None:
    run = Checked(late=late)
    assert not run.verdict.wrong and run.verdict.verified.all()
    assert 1e3 * run.verdict.delay == pytest.approx(late, abs=1.5)
    delay = 1e3 * run.verdict.delay
    assert run.verdict.words.startswith(f"torques act {delay:.0f} ms after the states")
    assert run.arm.supervisor.seen_delay == run.verdict.delay


def test_delay_that_is_known_is_no_finding() -> None:
    run = Checked(late=5, dead_time=0.005)
    assert not run.verdict.wrong and run.verdict.words == "" and run.verdict.delay == 0.005


# States that are missing, or too slow.


def test_missing_states_begin_the_check_anew_and_end_it_in_the_end() -> None:
    arm = MiswiredArm(check="refuse")
    for interruption in range(MOST_INTERRUPTIONS + 1):
        assert arm.supervisor.verdict is None
        arm.run(0.05)
        assert arm.mode is Mode.CHECKING, interruption
        arm.tau[:] = held(arm)  # as while states are predicted
        arm.wait(0.05)
    arm.tick()
    verdict = arm.supervisor.verdict
    assert not verdict.wrong and verdict.answer is None and not verdict.verified.any()
    assert verdict.words == "not checked: states are repeatedly missing or late"
    assert not verdict.failed
    assert arm.run(0.3).mode is Mode.HOLDING and arm.supervisor.unexplained


def test_check_that_was_interrupted_finds_the_same() -> None:
    def pause(arm: MiswiredArm, t: float) -> None:
        if abs(t - 0.06) < 1e-9:
            arm.wait(0.05)

    run = Checked(act=pause, torques=reversed_at(0))
    assert run.verdict.wrong and "panda_joint1" in run.verdict.words
    assert QUICK < run.after + 0.05 < 0.25


def test_states_that_are_too_slow_are_told() -> None:
    arm = MiswiredArm(check="refuse")
    for _ in range(15):
        arm.tick()
        arm.wait(0.009)
    words = "not checked: states come at 100 Hz, and the answer of the arm needs 200 Hz"
    assert arm.supervisor.verdict.words == words and not arm.supervisor.verdict.failed


def test_stamps_that_repeat_are_no_division_by_zero() -> None:
    """A simulation's clock that is late gives every third state the stamp of the one before."""
    arm = MiswiredArm(check="refuse")
    with np.errstate(divide="raise", invalid="raise"):
        for k in range(300):
            now = arm.t
            arm.t -= PERIOD * (k % 3 == 2)
            arm.supervisor.answer(arm.t, *arm.state(), arm.tau)
            arm.t = now
            arm.wait()
    verdict = arm.supervisor.verdict
    assert not verdict.wrong and verdict.verified.all()


@pytest.mark.parametrize(
    ("begin", "states", "again"), [(30, 15, 55), (45, 15, 500), (45, 15, 70), (75, 30, 500)]
)
def test_time_that_stands_still_is_no_wrong_wire(begin: int, states: int, again: int) -> None:
    """While a simulation's clock does not come, the torque in force stays, and leads the arm on."""
    arm, last = MiswiredArm(check="refuse", friction=np.zeros(7)), 0.0
    for k in range(500):
        now = arm.t
        if begin <= k < begin + states or again <= k < again + states:
            arm.t = last
        arm.supervisor.answer(arm.t, *arm.state(), arm.tau)
        last, arm.t = arm.t, now
        arm.wait()
    assert not arm.supervisor.verdict.wrong and arm.mode is Mode.HOLDING


@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("late", [1, 60])
def test_time_that_is_late_and_catches_up_is_no_wrong_wire(late: int, wrong: bool) -> None:
    """Every fourth stamp is one late in a healthy simulation, and a wrong wire is found; in one
    that starves, stamps are late by dozens of states, and catch up while the arm is asked."""
    arm = MiswiredArm(check="refuse", torques=reversed_at(0) if wrong else None)
    last = 0.0
    for k in range(300):
        now = arm.t
        behind = max(0.0, late - 0.7 * max(0, k - 11)) if late > 1 else 0.0
        arm.t = last if k > 11 and k % 4 == 3 else now - PERIOD * behind
        arm.supervisor.answer(arm.t, *arm.state(), arm.tau)
        last, arm.t = arm.t, now
        arm.wait()
    assert arm.supervisor.verdict.wrong == (wrong and late == 1)


def test_upright_arm_whose_joints_do_not_move_each_other_is_no_division_by_zero() -> None:
    path = Path(get_package_share_directory("rnea_control")) / "urdf" / "seven_axis_arm.urdf"
    model = RobotModel.from_urdf_file(path)
    settings = ControllerSettings(Gains.uniform(model.nv, 100.0, 20.0))
    with np.errstate(divide="raise", invalid="raise"):
        activation_check.ActivationCheck(model, settings).torque(
            0.0, np.zeros(model.nv), np.zeros(model.nv), np.zeros(model.nv)
        )


def test_bad_state_in_a_check_is_refused_and_the_check_goes_on() -> None:
    arm = MiswiredArm(check="refuse").run(0.03)
    q, _ = arm.state()
    with pytest.raises(ControllerError, match="not finite"):
        arm.supervisor.answer(arm.t, q, np.full(7, math.nan), arm.tau)
    assert arm.mode is Mode.CHECKING and arm.supervisor.bad_states == 1
    arm.run(0.3)
    assert arm.mode is Mode.HOLDING and arm.supervisor.verdict.words == ""


# Rows of the codes.


@pytest.mark.parametrize("rows", [8, 16])
def test_codes_are_orthogonal_and_have_no_mean(rows: int) -> None:
    codes = activation_check._hadamard(rows)
    np.testing.assert_array_equal(codes @ codes.T, rows * np.eye(rows))
    assert (codes[1:].sum(axis=1) == 0.0).all()


# A light arm behind strong motors.


def first_codes(velocity_limit: float) -> tuple[RobotModel, np.ndarray]:
    """The codes of the first attempt at an arm with motors of a hundred times the torque, by the
    velocity limit of its joints [rad/s]; shape (n, 2)."""
    strong = LIMIT.replace('"100"', '"10000"').replace('"10"', f'"{velocity_limit}"')
    urdf = two_link_arm().replace(LIMIT, strong)
    model = RobotModel.from_urdf_string(urdf)
    settings = ControllerSettings(Gains.uniform(2, 1.0, 1.0), safety=default_safety(model))
    check = activation_check.ActivationCheck(model, settings)
    q, v, tau, rows = np.array([0.3, -0.5]), np.zeros(2), np.zeros(2), []
    for k in range(95):
        assert check.torque(k * PERIOD, q, v, tau)
        check.sent(k * PERIOD, q, v, tau)
        rows.append(tau.copy())
    return model, np.array(rows) - gravity(model, Workspace(model), q, v)


@pytest.mark.parametrize(
    ("velocity_limit", "by_speed"), [(1.0, True), (100.0, False)], ids=["speed", "way"]
)
def test_codes_lead_a_light_joint_neither_fast_nor_far(
    velocity_limit: float, by_speed: bool
) -> None:
    model, codes = first_codes(velocity_limit)
    matrix = crba(model, Workspace(model), np.array([0.3, -0.5]), np.zeros((2, 2)))
    for j in range(2):  # each joint's code by itself
        torque = np.where(np.arange(2) == j, codes, 0.0)
        speeds = PERIOD * np.cumsum(torque @ np.linalg.inv(matrix), axis=0)
        ways = PERIOD * np.cumsum(speeds, axis=0)
        speed, way = np.abs(speeds).max() / velocity_limit, np.abs(ways).max()
        assert 0.0 < speed < 0.115 and 0.0 < way < 0.02
        assert speed > 0.09 if by_speed else way > 0.016


def test_arm_that_creeps_away_moves_off_after_six_hundredths_of_a_radian() -> None:
    arm = MiswiredArm()
    check = activation_check.ActivationCheck(arm.model, arm.controller.settings)
    check.torque(0.0, START, np.zeros(7), np.zeros(7))
    for j in range(7):
        step = np.eye(7)[j]
        assert not check.moves_off(START + 0.058 * step)
        assert check.moves_off(START - 0.062 * step)


def test_one_wrong_velocity_ends_no_check() -> None:
    calls = iter(range(1_000_000))

    def glitch(v: np.ndarray) -> np.ndarray:
        return v + (2.0 if next(calls) == 40 else 0.0)  # rad/s, nearly the velocity limit

    run = Checked(velocities=glitch)
    assert not run.verdict.wrong and run.verdict.words == "" and run.verdict.verified.all()


def test_torque_that_nobody_sent_is_named_before_it_is_called_wrong() -> None:
    pushed = 13.0 * np.eye(7)[1]  # 15 % of the effort limit [Nm]
    run = Checked(torques=lambda torque: torque + pushed)
    assert run.verdict.words == "panda_joint2 is pushed by 12.7 Nm that no command explains"
    assert not run.verdict.wrong and run.arm.mode is Mode.BRAKING


def test_velocities_beyond_all_numbers_are_wrong_and_no_overflow() -> None:
    with np.errstate(over="raise", invalid="raise"):
        run = Checked(velocities=scaled(1e200, 2))
    assert run.verdict.wrong
