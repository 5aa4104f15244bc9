"""Rotations against SciPy-free closed facts: they are rotations, and do what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_control.model.rotations import (
    rotation_about_axis,
    rotation_from_rpy,
    rotation_to_z,
    rpy_from_rotation,
)

RNG = np.random.default_rng(5)


def is_rotation(R: np.ndarray) -> bool:
    return np.allclose(R @ R.T, np.eye(3), atol=1e-14) and np.linalg.det(R) > 0


@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3), *RNG.standard_normal((5, 3))])
def test_rotation_to_z_turns_z_into_the_axis(axis: np.ndarray) -> None:
    axis = axis / np.linalg.norm(axis)
    R = rotation_to_z(axis)
    assert is_rotation(R)
    np.testing.assert_allclose(R @ [0, 0, 1], axis, atol=1e-15)
    if np.count_nonzero(axis) == 1:
        assert set(np.abs(R).ravel()) == {0.0, 1.0}


@pytest.mark.parametrize(
    "rpy", [*RNG.uniform(-1.5, 1.5, (5, 3)), (0.3, np.pi / 2, 0.4), (0.3, -np.pi / 2, 0.4)]
)
def test_rpy_there_and_back(rpy) -> None:
    R = rotation_from_rpy(np.array(rpy))
    assert is_rotation(R)
    np.testing.assert_allclose(rotation_from_rpy(rpy_from_rotation(R)), R, atol=1e-15)


def test_rpy_is_about_fixed_axes_roll_first() -> None:
    x, y, z = np.eye(3)
    roll, pitch, yaw = 0.3, -0.8, 1.9
    expected = (
        rotation_about_axis(z, yaw) @ rotation_about_axis(y, pitch) @ rotation_about_axis(x, roll)
    )
    np.testing.assert_allclose(
        rotation_from_rpy(np.array([roll, pitch, yaw])), expected, atol=1e-15
    )
