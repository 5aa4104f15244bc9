"""`suspicions`: what it takes from reading, what it judges itself, and for which joints."""

from __future__ import annotations

import warnings

import pytest
from robots import joint, link, robot, two_link_arm

from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.parameters.settings import quietly
from rnea_control.plausibility import suspicions

ZERO = '<limit lower="-1" upper="1" effort="{effort}" velocity="{velocity}"/>'
DISSIPATION = '<dynamics damping="2" friction="1"/>'


def test_reading_notes_and_does_not_judge() -> None:
    """A tag that is not read is noted by reading; a limit in degrees loads without a word."""
    urdf = two_link_arm().replace("</robot>", "<custom_tag/></robot>")
    urdf = urdf.replace('lower="-3" upper="3"', 'lower="-170" upper="170"')
    with pytest.warns(RobotModelWarning) as issued:
        model = RobotModel.from_urdf_string(urdf)
    (note,) = model.notes
    assert [str(each.message) for each in issued] == [note]
    assert note == "robot_description: unknown and ignored: tag <custom_tag> in <robot>"
    first, second = suspicions(model)
    assert first == note
    assert second.startswith("robot_description: <limit> lower and upper of shoulder, elbow go to")


def test_suspicious_joint_is_named_once_and_not_if_it_is_locked() -> None:
    """What else is suspicious: test_planted_mistakes.py."""
    for changes, words in (
        ({"limit": ZERO.format(effort=0, velocity=1)}, "joint 'j': <limit effort> is 0"),
        ({"kind": "continuous", "limit": ""}, "j have no <limit>"),
        ({"kind": "planar", "limit": "", "extra": DISSIPATION}, "<dynamics> and <limit> of j"),
        ({"kind": "floating", "limit": "", "extra": DISSIPATION}, "<dynamics> and <limit> of j"),
        ({"extra": '<safety_controller k_velocity="1"/>'}, "j have a <safety_controller>"),
    ):
        urdf = robot(link("base"), link("arm"), joint("j", "base", "arm", **changes))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            (sentence,) = suspicions(RobotModel.from_urdf_string(urdf))
            assert words in sentence
            assert suspicions(RobotModel.from_urdf_string(urdf, joints=[])) == ()


def test_link_without_inertia_may_carry_a_payload() -> None:
    urdf = robot(link("base"), '<link name="flange"/>', joint("j", "base", "flange"))
    model = quietly(RobotModel.from_urdf_string, urdf)
    assert ["has no inertia" in sentence for sentence in suspicions(model)] == [True]
    model.set_payload("flange", 1.0, (0.1, 0.0, 0.0))
    assert suspicions(model) == ()


def test_copies_are_judged_alike() -> None:
    urdf = two_link_arm().replace('upper="3"', 'upper="170"')
    model = RobotModel.from_urdf_string(urdf)
    assert suspicions(model.copy()) == suspicions(model) != ()
