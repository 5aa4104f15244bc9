"""Breaks arms, wires and models, and holds what comes of it against docs/safety.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from accident_run import Outcome, run
from accident_table import BROKEN, GAINS
from accidents import Accident, When, accidents, healthy
from broken_arm import KINDS, Kind

from rnea_control.control import ControlLaw, Mode

PANDA = KINDS["panda"]
SOFT, STIFF = GAINS
ENDED = (Mode.FAULT, Mode.POWERLESS)


def named(title: str, kind: Kind = PANDA) -> Accident:
    """The accident of this title."""
    (found,) = (each for each in (*accidents(kind), *healthy(kind)) if each.title == title)
    return found


def outcome(title: str, when: When = When.ACTIVATED, **options: object) -> Outcome:
    return run(PANDA, named(title), when, **options)


WIRES = {
    "torque of joint 4 reversed": "the torque of panda_joint4 has the wrong sign",
    "velocity of joint 2 reversed": "the velocity of panda_joint2 has the wrong sign",
    "all torques reversed": "the torques of all joints have the wrong sign",
    "commands of joints 2 and 4 exchanged": "panda_joint2 and panda_joint4 are exchanged",
    "states of joints 6 and 7 exchanged": "panda_joint6 and panda_joint7 are exchanged",
    "torques times 100": "arrive 100 times as large",
    "the arm hangs from the ceiling": "hardware_compensates_gravity|gravity points",
}


@pytest.mark.parametrize("title", WIRES)
def test_a_wrong_wire_ends_commanding_and_is_named(title: str) -> None:
    found = outcome(title)
    assert found.mode in ENDED and not found.broken(), found
    assert found.names, found.said


@pytest.mark.parametrize("title", ["torque of joint 4 reversed", "torques times 100"])
def test_a_wrong_wire_is_refused_before_anything_is_fed_back(title: str) -> None:
    found = outcome(title, check="refuse")
    assert found.refused and found.mode is Mode.POWERLESS and found.names, found
    # The torque that should have carried the arm has driven it, until the brakes closed.
    assert found.stopped_after < 0.05 and found.above == 0.0 and found.off < 0.2, found


def test_a_check_that_warns_names_the_cause_and_goes_on() -> None:
    found = outcome("torque of joint 1 reversed", check="warn")
    assert found.mode in ENDED and found.names and not found.refused


@pytest.mark.parametrize("law", [ControlLaw.pd_gravity, ControlLaw.gravity_compensation])
def test_bounds_count_under_every_law_with_a_model(law: ControlLaw) -> None:
    found = outcome("torque of joint 4 reversed", law=law)
    assert found.mode in ENDED and not found.broken(), found


def test_velocities_that_contradict_positions_are_named() -> None:
    for title, words in (
        ("velocities are zero", "is zero while its position changes"),
        ("velocities are half", "changes 2 times as fast as its velocity says"),
    ):
        found = outcome(title)
        assert found.mode in ENDED and words in " ".join(found.said), found


def test_a_push_is_a_push_and_no_wire() -> None:
    found = outcome("push of 50 N to the side, for 0.2 s", When.RESTING)
    assert found.mode in ENDED and "a person" in found.cause
    assert not any(words in found.cause for words in ("wrong sign (", "exchanged", "zero of"))


def test_a_lasting_push_does_not_walk_the_arm() -> None:
    short = outcome("push of 50 N to the side, for 0.2 s", When.GENTLE)
    long = outcome("push of 50 N to the side, without end", When.GENTLE)
    assert not long.broken() and long.fastest == short.fastest, (short, long)


def test_a_hand_is_let_go_of_as_soon_as_it_is_felt() -> None:
    found = outcome("the tool meets a hand, 75 N/mm", When.GENTLE)
    assert found.stopped_after is not None and found.stopped_after < 0.05 and found.touched < 150.0


def test_a_joint_that_a_brake_holds_is_told_of() -> None:
    found = outcome("brake of joint 2 closes", When.FAST)
    assert found.mode in ENDED
    assert "in the way of panda_joint2" in " ".join(found.said), found


def test_a_motion_that_ends_off_its_goal_says_so() -> None:
    found = outcome("brake of joint 4 closes", When.GENTLE)
    assert found.mode is Mode.HOLDING and "panda_joint4 is" in found.cause, found
    assert "from its goal" in found.cause


def test_a_right_arm_is_left_alone() -> None:
    for title in ("as described", "velocity noise of 0.05 rad/s"):
        found = outcome(title, check="refuse", gains=STIFF)
        assert found.mode is Mode.HOLDING and not found.broken() and found.off < 0.02, found


@pytest.mark.explores
@pytest.mark.parametrize("kind_name", KINDS)
def test_no_right_arm_is_stopped(kind_name: str) -> None:
    kind = KINDS[kind_name]
    for each in healthy(kind):
        found = run(kind, each, When.ACTIVATED, gains=STIFF, check="refuse")
        assert found.mode is Mode.HOLDING and not found.refused, (each.title, found)


@pytest.mark.explores
@pytest.mark.parametrize("gains", GAINS)
@pytest.mark.parametrize("kind_name", BROKEN)
def test_no_accident_goes_on(kind_name: str, gains: tuple[float, float]) -> None:
    kind = KINDS[kind_name]
    told = wires = 0
    for each in accidents(kind):
        for when in each.when:
            found = run(kind, each, when, gains=gains)
            assert found.above <= 0.1, (each.title, found)
            refused = run(kind, each, when, gains=gains, check="refuse")
            # An encoder or a gear of a wrist that carries little is not told by any torque.
            silent = not each.wiring
            broken = [b for b in refused.broken() if not (silent and "without a word" in b)]
            assert not broken, (each.title, refused)
            if each.wiring:
                wires += 1
                told += found.names or refused.names or refused.mode is Mode.WAITING
    assert told >= 0.9 * wires, f"{told} of {wires} named"


def test_every_accident_is_in_the_table_of_the_faults_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "faults.md").read_text()
    groups = {each.group for name in BROKEN for each in accidents(KINDS[name])}
    assert not [group for group in groups if f"| {group} |" not in page], (
        "accidents/accident_table.py"
    )
