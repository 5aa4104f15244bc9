"""Robot descriptions that differ in what torques depend on, and those that do not."""

from __future__ import annotations

import pytest
from robots import LIMIT, two_link_arm

from rnea_control.parameters.description_difference import description_difference

OWN = two_link_arm()
DIFFERENT = {
    "mass": (
        OWN.replace('mass value="2.0"', 'mass value="3.0"'),
        "they differ in poses of joints or inertias of links (4.5 and 5.5 kg in total)",
    ),
    "pose": (
        OWN.replace('xyz="0.4 0.0 0.0"', 'xyz="0.41 0.0 0.0"'),
        "they differ in poses of joints or inertias of links (4.5 and 4.5 kg in total)",
    ),
    "effort": (
        OWN.replace(LIMIT, LIMIT.replace('effort="100"', 'effort="90"'), 1),
        "they differ in effort limits",
    ),
    "velocity": (
        OWN.replace(LIMIT, LIMIT.replace('velocity="10"', 'velocity="9"'), 1),
        "they differ in velocity limits",
    ),
    "range": (
        OWN.replace(LIMIT, LIMIT.replace('lower="-3" upper="3"', 'lower="-2" upper="2"'), 1),
        "they differ in lower position limits and upper position limits",
    ),
    "joint": (
        OWN.replace('"elbow"', '"other"'),
        "it has the joints shoulder, other, not shoulder, elbow",
    ),
    "link": (
        OWN.replace('"lower"', '"forearm"'),
        "it has the links base, upper, forearm, not base, upper, lower",
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_difference_is_named(what: str) -> None:
    other, words = DIFFERENT[what]
    assert other != OWN
    assert description_difference(OWN, other) == words


def test_what_no_torque_depends_on_is_no_difference() -> None:
    assert description_difference(OWN, OWN) == ""
    for other in (
        OWN.replace("<robot ", "<!-- expanded -->\n<robot "),
        OWN.replace("two_link_arm", "arm"),
        OWN.replace(
            "</inertial></link>",
            '</inertial><visual><geometry><sphere radius="1"/></geometry></visual></link>',
            1,
        ),
    ):
        assert other != OWN and description_difference(OWN, other) == ""


def test_description_that_cannot_be_read_is_told_as_it_is() -> None:
    assert "robot" in description_difference(OWN, "<nothing/>")
    assert description_difference("<nothing/>", OWN) == ""  # which is a finding of its own
    assert description_difference("", OWN) == ""
