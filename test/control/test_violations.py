"""The words of each finding: joint, value, unit, bound, and what it may be."""

from __future__ import annotations

import pytest
from controllers import ARM
from robots import joint, link, robot

from rnea_control.control import layout, violations
from rnea_control.control.motion import ending
from rnea_control.model import RobotModel

RAIL = RobotModel.from_urdf_string(
    robot(
        link("base"),
        link("cart"),
        link("pole"),
        joint("rail", "base", "cart", "prismatic"),
        joint("hinge", "cart", "pole"),
    )
)
ELBOW = 1


def finding(
    kind: int,
    joint: int = ELBOW,
    value: float = 0.0,
    bound: float = 0.0,
    velocity: float = 0.0,
    external: float = 0.0,
) -> layout.Finding:
    """What a step may find."""
    found = layout.Finding()
    found.kind, found.joint, found.excess, found.allowed = kind, joint, value, bound
    found.moving_at, found.external_torque = velocity, external
    return found


DRIVER = "a person, a wrong payload, or a torque with the wrong sign?"
SAID = {
    layout.TOO_FAST: "elbow moves at 12.3 rad/s, more than 12 by motion_bounds",
    layout.RUNAWAY: (
        "elbow is 12.3 rad/s off its desired velocity, more than 12: does it obey its torque, and "
        "its velocity come in time?"
    ),
    layout.DRIVEN: f"something drives elbow with 12.3 Nm, more than 12: {DRIVER}",
    layout.POWERED: (
        f"something drives the arm with 12.3 W, more than 12, most of it at elbow: {DRIVER}"
    ),
    layout.COLLIDED: "collision? 12.3 Nm act on elbow from outside, more than 12",
    layout.LET_GO: (
        "braking does not help: elbow moves at 12.34 of its velocity limit, and moved at 12.00 "
        "before; the controller has let go of the arm"
    ),
}


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("kind", SAID)
def test_finding_names_joint_value_unit_and_bound(kind: int, side: float) -> None:
    sign = 1.0 if kind == layout.LET_GO else side
    assert violations.violation(ARM, finding(kind, value=sign * 12.34, bound=12.0)) == SAID[kind]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (layout.TOO_FAST, "rail moves at 0.5 m/s, more than 0.4"),
        (layout.RUNAWAY, "rail is 0.5 m/s off"),
        (layout.DRIVEN, "drives rail with 0.5 N, more than 0.4"),
        (layout.COLLIDED, "0.5 N act on rail"),
    ],
)
def test_sliding_joint_has_its_own_units(kind: int, words: str) -> None:
    assert words in violations.violation(RAIL, finding(kind, joint=0, value=0.5, bound=0.4))


def test_arm_that_was_let_go_as_it_shakes_is_told_of_no_speed() -> None:
    words = "elbow shakes with little feedback as well; the controller has let go of the arm"
    assert violations.violation(ARM, finding(layout.LET_GO, bound=12.0)) == words


@pytest.mark.parametrize(
    ("velocity", "words"),
    [
        (0.0, "it does not move although 30 Nm more than the model asks for were applied"),
        (0.5, "it has slowed down though 30 Nm more than the model asks for were applied"),
    ],
)
def test_blocked_joint_is_told_with_what_it_got(velocity: float, words: str) -> None:
    row = finding(layout.BLOCKED, velocity=velocity, external=-30.0)
    assert violations.violation(ARM, row) == f"something is in the way of elbow: {words}"


@pytest.mark.parametrize(
    ("by_position", "by_velocity", "words"),
    [
        (0.05, 0.0, "the velocity of j is zero while its position changes"),
        (0.05, 0.001, "the velocity of j is zero while its position changes"),
        (0.05, -0.05, "the velocity of j has the other sign than the change of its position"),
        (-0.02, 0.1, "the velocity of j has the other sign than the change of its position"),
        (0.001, 0.0573, "the velocity of j is in degrees, its position in radians"),
        (0.0, 0.05, "the position of j stands still while its velocity says that it moves"),
        (0.05, 0.1, "the position of j changes 0.5 times as fast as its velocity says: is a gear"),
        (0.1, 0.05, "the position of j changes 2 times as fast as its velocity says: is a gear"),
    ],
)
def test_contradiction_says_what_is_wrong_with_the_velocity(
    by_position, by_velocity, words
) -> None:
    assert violations.contradiction("j", by_position, by_velocity).startswith(words)
    row = finding(layout.CONTRADICTED, value=by_position, bound=by_velocity)
    assert violations.violation(ARM, row).startswith(words.replace(" j ", " elbow "))


@pytest.mark.parametrize(
    ("velocity", "external", "words"),
    [
        (0.5, 9.0, ""),  # less than a tenth of the effort limit
        (0.5, -9.0, ""),
        (0.5, 11.0, f"; 11 Nm drive it from outside: {DRIVER}"),
        (-0.5, -11.0, f"; 11 Nm drive it from outside: {DRIVER}"),
        (0.5, -11.0, "; it has slowed down though 11 Nm more than the model asks for were applied"),
        (0.0, -11.0, "; it does not move although 11 Nm more than the model asks for were applied"),
    ],
)
def test_external_torque_is_evidence_where_it_is_not_small(velocity, external, words) -> None:
    row = finding(layout.TORN_AWAY, value=0.31, bound=0.3, velocity=velocity, external=external)
    assert violations.evidence(ARM, row) == words
    text = "elbow was 0.31 rad off its desired position, more than max_position_error, 0.3"
    assert ending(ARM, row, None).text == text + words
    row.kind = layout.PRESSED
    pressed = ending(ARM, row, None)
    why = words or ": does something hold the arm?"
    assert pressed.text == f"the torque of elbow was at its limit for 0.31 s{why}"
    assert pressed.gave_way


@pytest.mark.parametrize("kind", [*layout.VIOLATIONS, layout.BLOCKED, layout.LET_GO])
def test_violation_is_a_fault_a_blocked_arm_gives_way_and_one_that_is_let_go_is_neither(
    kind,
) -> None:
    end = ending(ARM, finding(kind, value=1.0, bound=0.5), None)
    assert end.faulty == (kind in layout.VIOLATIONS)
    assert end.gave_way == (kind == layout.BLOCKED) and end.let_go == (kind == layout.LET_GO)
    assert not end.shaken and "elbow" in end.text
