"""URDF 1.1 and 1.2: orientations by quaternions, versions, and attributes of <origin>."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from robots import joint, link, robot

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.dynamics import Workspace, gravity
from rnea_control.identification.urdf_inertials import with_inertials
from rnea_control.model import RobotModel, RobotModelError, RobotModelWarning
from rnea_control.parameters.settings import quietly
from rnea_control.plausibility import suspicions
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, urdf_for_mujoco

HALF = repr(math.sqrt(0.5))
UPRIGHT = f"0 {HALF} 0 {HALF}"  # a quarter turn about y
TURNS = [UPRIGHT, "0 0 0 1", "0 0 0 -1", "0.5 0.5 0.5 0.5", "0.1 -0.7 0.3 0.64", "0 -0.6 0 0.8"]


def arm(orientation: str = f'quat_xyzw="{UPRIGHT}"', version: str = '"1.1"') -> str:
    """Two joints; the frame of the second one is turned."""
    limit = '<limit effort="50" velocity="2" lower="-2" upper="2"/>'
    second = joint("elbow", "upper", "lower", axis=(0, 1, 0), xyz=(0, 0, 0.3), limit=limit)
    second = second.replace('rpy="0.0 0.0 0.0"', orientation)
    links = link("base"), link("upper", 3.0, (0, 0, 0.15)), link("lower", 2.0, (0, 0, 0.2))
    first = joint("shoulder", "base", "upper", axis=(0, 1, 0), limit=limit)
    text = robot(*links, first, second)
    return text.replace("<robot ", f"<robot version={version} ") if version else text


def unit(quaternion: str) -> str:
    numbers = np.array([float(word) for word in quaternion.split()])
    return " ".join(map(repr, (numbers / np.linalg.norm(numbers)).tolist()))


def test_quaternion_is_read() -> None:
    """The elbow's link lies flat: 2 kg at 0.2 m, and nothing of the upper one."""
    model = quietly(RobotModel.from_urdf_string, arm())
    assert suspicions(model) == ()
    torque = gravity(model, Workspace(model), np.zeros(2), np.zeros(2))
    np.testing.assert_allclose(torque, [-3.924, -3.924], atol=1e-12)


@pytest.mark.parametrize("quaternion", [unit(each) for each in TURNS])
def test_quaternion_is_that_of_pinocchio(quaternion: str) -> None:
    pin = pytest.importorskip("pinocchio")
    urdf = arm(f'quat_xyzw="{quaternion}"').replace(
        'xyz="0.0 0.0 0.2" rpy="0.0 0.0 0.0"', f'xyz="0 0 0.2" quat_xyzw="{quaternion}"'
    )
    peer = pin.buildModelFromXML(urdf)
    upright = pin.buildModelFromXML(arm()).jointPlacements[2].rotation
    if np.allclose(upright, np.eye(3)):
        pytest.skip("Pinocchio's urdfdom is older than URDF 1.1")
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 2))
    expected = pin.rnea(peer, peer.createData(), q, v, a)
    model = quietly(RobotModel.from_urdf_string, urdf)
    (torque,) = inverse_dynamics_batch(model, *(each[None] for each in (q, v, a)))
    np.testing.assert_allclose(torque, expected, rtol=1e-10, atol=1e-12)


def test_quaternion_of_few_digits_is_normalized() -> None:
    rough, exact = (
        quietly(RobotModel.from_urdf_string, arm(f'quat_xyzw="{each}"'))
        for each in ("0 0.7071 0 0.7071", UPRIGHT)
    )
    np.testing.assert_allclose(rough.bodies, exact.bodies, atol=1e-14)


BAD = [
    ('quat_xyzw="0 0.7 0 0.7"', '"1.1"', "'elbow': <origin>: quat_xyzw .* norm 0.9899; .* unit"),
    ('quat_xyzw="0 0 0 0"', '"1.1"', "'elbow': <origin>: quat_xyzw .* norm 0; .* unit"),
    ('quat_xyzw="0 0 1"', '"1.1"', "quat_xyzw is '0 0 1'; it must be 4 finite numbers"),
    ('quat_xyzw="0 0 0 1" rpy="0 0 0"', '"1.1"', "both rpy and quat_xyzw are given; keep one"),
    (f'quat_xyzw="{UPRIGHT}"', '"1.0"', "'elbow': .* needs version 1.1 .* write <robot version"),
    (f'quat_xyzw="{UPRIGHT}"', "", "'elbow': .* needs version 1.1 .* write <robot version"),
    ('quat="0 0 0 1"', '"1.1"', "'elbow': <origin>: unknown attribute 'quat' of <origin>, in lin"),
    ('rpy="0 0 0" RPY="0 0 1"', "", "'elbow': .*'RPY' of <origin>: .* write rpy"),
    ('ypr="0 0 1"', "", "'elbow': <origin>: unknown attribute 'ypr'.*<origin> has xyz, rpy, quat"),
]


@pytest.mark.parametrize(("orientation", "version", "words"), BAD)
def test_orientation_that_is_not_sure_is_refused(orientation, version, words) -> None:
    with pytest.raises(RobotModelError, match=words):
        RobotModel.from_urdf_string(arm(orientation, version))


@pytest.mark.parametrize("version", ["1.3", "2.0", "newest", ""])
def test_unknown_version_is_said(version: str) -> None:
    words = re.escape(f"the URDF has the version {version!r}; known are 1.0, 1.1, 1.2")
    with pytest.warns(RobotModelWarning, match=words):
        RobotModel.from_urdf_string(arm(version=f'"{version}"'))


def test_limits_of_version_1_2_are_complete() -> None:
    assert suspicions(quietly(RobotModel.from_urdf_string, arm(version='"1.2"'))) == ()
    urdf = arm(version='"1.2"').replace('lower="-2" ', "", 1)
    with pytest.raises(RobotModelError, match="'shoulder': <limit> needs both lower and upper"):
        RobotModel.from_urdf_string(urdf)


def test_what_is_written_for_others_has_no_quaternion() -> None:
    model = quietly(RobotModel.from_urdf_string, arm())
    assert "quat_xyzw" not in urdf_for_mujoco(arm(), model, ModelErrors())
    urdf = arm().replace('xyz="0.0 0.0 0.2" rpy="0.0 0.0 0.0"', f'quat_xyzw="{UPRIGHT}"')
    inertia = np.diag([0.02, 0.03, 0.04, 2.0])
    written = with_inertials(urdf.encode(), {"lower": inertia}, "arm.urdf")
    read = quietly(RobotModel.from_urdf_string, written)
    np.testing.assert_allclose(read.link_inertias["lower"], inertia, atol=1e-15)
