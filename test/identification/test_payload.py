"""What a link carries, from a motion with it and one without."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from identification_bench import hidden_robot, recording_of
from robots import PANDA_JOINTS, example_robot, load_quietly

from rnea_control.exceptions import IdentificationError
from rnea_control.identification.motion import Motion, motion_of
from rnea_control.identification.payload import Payload, identify_payload
from rnea_control.model import RobotModel
from rnea_control.model.bodies import INERTIA

LINK = "panda_link8"
MASS, CENTER = 1.3, np.array([0.02, -0.01, 0.07])
ABOUT_CENTER = np.diag([0.004, 0.003, 0.002])


def panda() -> RobotModel:
    return load_quietly(example_robot("panda"), PANDA_JOINTS)


def loaded(robot: RobotModel) -> RobotModel:
    """The robot with a load, on top of inertias that are not its URDF's."""
    urdf = panda()
    carrying = panda()
    carrying.set_payload(LINK, MASS, CENTER, ABOUT_CENTER)
    result = copy.deepcopy(robot)
    inertia = slice(INERTIA, INERTIA + 10)
    result.bodies[:, inertia] += carrying.bodies[:, inertia] - urdf.bodies[:, inertia]
    return result


def motions(seed: int, wrong_urdf: bool, seconds: float = 12.0) -> tuple[Motion, Motion]:
    robot = hidden_robot(panda(), seed) if wrong_urdf else panda()
    with_load = recording_of(loaded(robot), seconds, seed, delay=0.002)
    return motion_of(with_load), motion_of(recording_of(robot, seconds, seed + 100, delay=0.002))


def assert_within_deviations(found: Payload, times: float = 4.0) -> None:
    assert abs(found.mass - MASS) < times * found.mass_deviation
    assert (np.abs(found.center_of_mass - CENTER) < times * found.center_deviation).all()


def test_load_of_an_arm_that_is_not_as_its_urdf() -> None:
    found = identify_payload(panda(), LINK, *motions(1, wrong_urdf=True))
    assert_within_deviations(found)
    assert found.mass_deviation < 0.02
    assert found.center_deviation.max() < 0.003
    assert np.linalg.eigvalsh(found.inertia)[0] > 0.0
    assert found.notes == ()


def test_load_alone_if_the_urdf_is_right() -> None:
    with_load, _ = motions(2, wrong_urdf=False)
    found = identify_payload(panda(), LINK, with_load)
    assert_within_deviations(found)
    assert found.mass_deviation > 0.01
    assert any("without a motion of the empty arm" in note for note in found.notes)


def test_no_load_is_said() -> None:
    _, empty = motions(3, wrong_urdf=True)
    robot = hidden_robot(panda(), 3)
    again = motion_of(recording_of(robot, 12.0, 900, delay=0.002))
    found = identify_payload(panda(), LINK, again, empty)
    assert found.mass < 0.05
    assert any("may be no load" in note for note in found.notes)


def test_links_that_carry_nothing_to_be_felt_are_refused() -> None:
    with_load, empty = motions(4, wrong_urdf=False, seconds=3.0)
    with pytest.raises(IdentificationError, match=r"no link 'tool'.*panda_link8"):
        identify_payload(panda(), "tool", with_load, empty)
    with pytest.raises(IdentificationError, match="'panda_link0' stands still"):
        identify_payload(panda(), "panda_link0", with_load, empty)
