"""What is said to be wrong between a controller and its arm: a Panda in MuJoCo moves, or is moved
off, and its last 0.4 s are explained."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from miswired_arm import (
    FRICTION,
    JOINTS,
    ORDINARY,
    PERIOD,
    MiswiredArm,
    exchanged,
    reversed_at,
    scaled,
)

from rnea_control.control import Mode, arm_answer, miswiring
from rnea_control.control.arm_answer import Answer, Judge, measured_delay
from rnea_control.control.miswiring import NONE, explain

ENDED = (Mode.FAULT, Mode.POWERLESS)


def moved(seconds: float = 0.9, **wrong) -> MiswiredArm:
    """An arm that follows a trajectory until it has to let go."""
    arm = MiswiredArm(**wrong).run(0.05)
    if "noise" in wrong:
        arm.run(0.5)  # it is caught, as it seems to move
    if arm.mode is Mode.HOLDING:
        arm.follow(1.0)
    for _ in range(round(seconds / PERIOD)):
        arm.tick()
        if arm.mode is Mode.POWERLESS:
            break
    return arm


def pushed(force: tuple[float, float, float], moving: bool, **wrong) -> MiswiredArm:
    """An arm that is right until then, from the beginning of a force on its tool until 50 ms after
    a bound was violated, or for 0.2 s."""
    arm = MiswiredArm(**wrong).run(0.4)
    if moving:
        arm.follow(1.2)
    arm.run(0.4)
    arm.force[:] = force
    for _ in range(200):
        arm.tick()
        if arm.mode in ENDED:
            break
    return arm.run(0.05)


def cause_of(arm: MiswiredArm) -> str:
    return arm.supervisor.cause(arm.rows())


# What is wrong is named.

MISTAKES = {
    "reversed torque of a shoulder": (
        {"torques": reversed_at(1)},
        "the torque of panda_joint2 has the wrong sign",
    ),
    "reversed torque of a wrist": (
        {"torques": reversed_at(5)},
        "the torque of panda_joint6 has the wrong sign",
    ),
    "exchanged commands": (
        {"torques": exchanged(1, 3)},
        "commands of panda_joint2 and panda_joint4 are exchanged: check the order of `joints`",
    ),
    "exchanged states": (
        {"positions": exchanged(4, 6), "velocities": exchanged(4, 6)},
        "of panda_joint5 and panda_joint7 are exchanged",
    ),
    "torques in mNm": (
        {"torques": scaled(0.1)},
        "the torques of all joints arrive 10 times too small, or too late: check the unit",
    ),
    "torques times 10": (
        {"torques": scaled(10.0)},
        "the torques of all joints arrive 10 times as large: check the unit",
    ),
    "torque of a joint times 10": (
        {"torques": scaled(10.0, 3)},
        "the torque of panda_joint4 arrives 10 times as large",
    ),
    "position sign": (
        {"positions": reversed_at(2), "velocities": reversed_at(2)},
        "the position of panda_joint3 has the wrong sign, or its torque",
    ),
    "velocity sign": (
        {"velocities": reversed_at(1)},
        "the velocity of panda_joint2 has the wrong sign",
    ),
    "arm on a wall": ({"gravity": (0.0, 9.81, 0.0)}, "gravity points to ("),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_named(mistake: str) -> None:
    wrong, words = MISTAKES[mistake]
    arm = moved(**wrong)
    assert arm.mode in ENDED, arm.supervisor.reason
    assert words in cause_of(arm)


def test_gravity_of_an_arm_on_a_wall_is_found_by_direction_and_size() -> None:
    arm = moved(gravity=(0.0, 9.81, 0.0))
    found = explain(arm.model, arm.answer())
    assert found.kind == "gravity"
    assert found.gravity[1] > 0.85 * np.linalg.norm(found.gravity)
    assert np.linalg.norm(found.gravity) == pytest.approx(9.8, abs=1.0)
    assert tuple(arm.model.gravity) == (0.0, 0.0, -9.81)  # the model stays as it was


def test_hardware_that_adds_gravity_is_named_though_the_arm_holds() -> None:
    """Off by what it weighs over its gains."""
    arm = moved(adds_gravity=True)
    expected = "the hardware adds the gravity torque itself: set hardware_compensates_gravity to"
    assert explain(arm.model, arm.answer()).words == f"{expected} true"


def test_two_kinds_that_explain_equally_well_are_both_named() -> None:
    """Where all torques arrive ten times as large, an arm that has come to rest does not tell."""
    arm = moved(torques=scaled(10.0))
    assert arm.mode is Mode.FAULT
    words = cause_of(arm)
    assert words.startswith("either the torques of all joints arrive 10 times as large")
    assert "; or the hardware adds the gravity torque itself" in words


# What is right is not called wrong.


@pytest.mark.parametrize(
    "right",
    [
        {},
        {"friction": 10.0 * FRICTION},
        {"errors": replace(ORDINARY, mass_scale=1.1)},
        {"errors": replace(ORDINARY, mass_scale=0.9)},
        {"errors": replace(ORDINARY, joint_damping=0.3)},
        {"noise": 0.02},
        {"late": 2},
    ],
    ids=["exact", "friction", "heavy", "light", "damping", "noise", "late"],
)
def test_right_arm_is_not_called_wrong(right: dict) -> None:
    arm = moved(**right)
    assert arm.mode is Mode.MOVING
    assert explain(arm.model, arm.answer()) is NONE
    assert cause_of(arm) == ""  # which is only asked for after a fault


@pytest.mark.parametrize(
    ("force", "moving"),
    [((60.0, 0.0, 0.0), False), ((0.0, 80.0, 0.0), True), ((0.0, 0.0, -100.0), True)],
    ids=["forward, at rest", "aside, in motion", "down, in motion"],
)
def test_push_from_outside_is_no_wrong_wire(force, moving: bool) -> None:
    arm = pushed(force, moving)
    assert arm.mode in ENDED and cause_of(arm) == ""


def test_without_the_comparison_with_pushes_one_is_called_a_wrong_wire(monkeypatch) -> None:
    arm = pushed((0.0, 0.0, -100.0), moving=True)
    monkeypatch.setattr(miswiring, "_push_score", lambda *_: math.inf)
    assert explain(arm.model, arm.answer()).kind == "sign"


def test_velocity_is_called_wrong_only_where_positions_contradict_it() -> None:
    arm = moved(velocities=reversed_at(1))
    answer = arm.answer()
    assert explain(arm.model, answer).kind == "velocity"
    # The same velocities with positions that go along with them.
    steps = np.diff(answer.t)[:, None] * 0.5 * (answer.v[1:] + answer.v[:-1])
    along = answer.q[0] + np.vstack([np.zeros(7), np.cumsum(steps, axis=0)])
    answer = Answer(answer.t, along, answer.v, answer.tau)
    found = explain(arm.model, answer)
    assert "velocity" not in found.kind and "velocity" not in found.words


def test_few_states_explain_nothing() -> None:
    arm = moved(torques=reversed_at(1))
    assert arm.supervisor.cause(arm.rows(0.005)) == ""


# How well an answer is explained.


def test_score_of_a_joint_tells_the_right_sign_loss_and_factor() -> None:
    arm = moved()
    judge, answer = Judge(arm.model, arm.answer()), arm.answer()
    for j in (1, 3):
        right = judge.fit(j, answer.tau[:, j])
        assert right.score < 1.0 and right.loss < 0.3
        assert abs(right.constant) < 0.02 * judge.limit[j]
        for factor in (-1.0, 10.0):
            assert judge.fit(j, factor * answer.tau[:, j]).score > 50.0


def test_torques_beyond_the_effort_limit_act_as_those_at_it() -> None:
    arm = moved(torques=reversed_at(1))
    judge, tau = Judge(arm.model, arm.answer()), arm.answer().tau[:, 1].copy()
    limit = judge.limit[1]
    assert judge.fit(1, 100.0 * tau) == judge.fit(1, np.clip(100.0 * tau, -limit, limit))


def test_command_acts_until_the_next_one_does() -> None:
    """A delay of a part of a period mixes two commands by their times."""
    t = 0.01 * np.arange(6)
    commands = np.arange(6.0)[:, None]
    q = np.zeros((6, 1))
    now = Answer.of(t, q, q, commands, 0.0, False)
    np.testing.assert_allclose(now.tau[:, 0], [0.0, 1.0, 2.0, 3.0, 4.0])
    late = Answer.of(t, q, q, commands, 0.01, False)
    np.testing.assert_allclose(late.t, t[1:])  # what acted before is not known
    np.testing.assert_allclose(late.tau[:, 0], [0.0, 1.0, 2.0, 3.0])
    between = Answer.of(t, q, q, commands, 0.0025, False)
    np.testing.assert_allclose(between.tau[:, 0], [0.75, 1.75, 2.75, 3.75])


# How late torques are.


@pytest.mark.parametrize("late", [0, 1, 5, 10, 20])
def test_delay_of_the_torques_is_measured_while_the_arm_moves(late: int) -> None:
    """Within half a millisecond for an exact model, and 1.5 ms for one that is 10 % too light; at
    rest it is not known."""
    for errors, within in ((ORDINARY, 0.5), (replace(ORDINARY, mass_scale=1.1), 1.5)):
        arm = MiswiredArm(late=late, errors=errors).run(0.6)
        rest = measured_delay(arm.model, *arm.rows(0.3), False)
        assert math.isnan(rest)
        arm.follow(0.6)
        arm.run(0.5)
        delay = measured_delay(arm.model, *arm.rows(0.5), False)
        assert 1e3 * delay == pytest.approx(late, abs=within)


def test_delay_is_not_told_by_noise() -> None:
    arm = MiswiredArm(late=5, noise=0.05).run(0.6)
    arm.follow(0.8)
    arm.run(0.5)
    assert math.isnan(measured_delay(arm.model, *arm.rows(0.5), False))
    few = tuple(rows[: arm_answer.FEWEST_MOVING - 1] for rows in arm.rows(0.5))
    assert math.isnan(measured_delay(arm.model, *few, False))


@pytest.mark.parametrize("joint", [0, 6])
def test_every_joint_has_its_own_mistakes(joint: int) -> None:
    """Signs, units, gears, the zero of its encoder, and an exchange with each other joint."""
    arm = MiswiredArm()
    own = [each for each in miswiring.mistakes(arm.model) if joint in each.joints]
    kinds = [each.kind for each in own]
    assert kinds.count("order") == 2 * 6 and kinds.count("velocity") == 1
    assert {"sign", "unit", "gear", "encoder"} <= set(kinds)
    assert all(JOINTS[joint] in each.words for each in own)
