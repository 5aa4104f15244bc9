"""Base parameters: how many there are, how they group, and that they tell all torques."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from robots import PANDA_JOINTS, example_robot, load_quietly, two_link_arm
from states import Case, mechanisms

from rnea_control.analysis.base_parameters import base_parameters
from rnea_control.dynamics import Workspace
from rnea_control.dynamics.regressor import (
    inertial_parameters,
    parameter_count,
    parameter_names,
    regressor,
)
from rnea_control.model import RobotModel, RobotModelWarning

TOLERANCE = 1e-6


def robot(name: str) -> RobotModel:
    return load_quietly(example_robot(name), PANDA_JOINTS if name == "panda" else None)


def regressors(model: RobotModel, samples: int) -> np.ndarray:
    ws, rng = Workspace(model), np.random.default_rng(99)
    result = np.zeros((samples, model.nv, parameter_count(model)))
    for Y in result:
        v, a = rng.standard_normal((2, model.nv))
        regressor(model, ws, model.random(rng), v, a, Y)
    return result.reshape(samples * model.nv, -1)


def rank_by_singular_values(W: np.ndarray) -> int:
    norms = np.linalg.norm(W, axis=0)
    W = W[:, norms > TOLERANCE * norms.max()]
    values = np.linalg.svd(W / np.linalg.norm(W, axis=0), compute_uv=False)
    return int((values > TOLERANCE * values[0]).sum())


def assert_base_tells_all_torques(model: RobotModel) -> None:
    base = base_parameters(model)
    columns = np.concatenate([base.independent, base.dependent, base.unidentifiable])
    np.testing.assert_array_equal(np.sort(columns), np.arange(parameter_count(model)))
    assert base.K.shape == (base.rank, len(base.dependent)) and len(base.names) == base.rank
    phi, W = inertial_parameters(model), regressors(model, 60)
    tau = W @ phi
    error = W[:, base.independent] @ base.values(phi) - tau
    assert np.abs(error).max() <= 1e-10 * np.abs(tau).max()
    dead = np.abs(W[:, base.unidentifiable]).max(initial=0.0)
    assert dead <= 1e-10 * np.abs(W).max()
    assert base.rank == rank_by_singular_values(W)


def test_base_of_a_robot_tells_all_torques() -> None:
    assert_base_tells_all_torques(robot("panda"))


@mechanisms(25, joints=6)
def test_base_of_a_mechanism_tells_all_torques(case: Case) -> None:
    assert_base_tells_all_torques(case.model)


def test_planar_arm_in_gravity() -> None:
    """Six are of bodies, 7 n - 4 b with b = 2 parallel joints at the root [Mayeda, Yoshida, Osuka
    1990]; the first rotor's inertia cannot be told from the arm's."""
    arm = RobotModel.from_urdf_string(two_link_arm())
    base = base_parameters(arm)
    assert base.names == (
        "upper.mcx + 0.4 lower.m",
        "upper.mcz",
        "upper.Iyy + 0.16 lower.m + shoulder.armature",
        "lower.mcx",
        "lower.mcz",
        "lower.Iyy",
        "elbow.armature",
        *(
            f"{joint}.{name}"
            for name in ("damping", "friction", "torque_offset")
            for joint in ("shoulder", "elbow")
        ),
    )
    names = parameter_names(arm)
    of_both = ("mcy", "Ixx", "Ixy", "Ixz", "Iyz", "Izz")
    unidentifiable = {f"{link}.{name}" for link in ("upper", "lower") for name in of_both}
    assert {names[k] for k in base.unidentifiable} == unidentifiable | {"upper.m"}


@pytest.mark.parametrize(("name", "count"), [("panda", 43), ("ur5_robot", 36)])
def test_arms_have_the_published_numbers(name: str, count: int) -> None:
    """Of bodies 7 n - 4 b - 2, with b = 1 joint at the root along gravity [Mayeda, Yoshida, Osuka
    1990]; 43 for the Panda also by [Gaz et al. 2019]."""
    model = robot(name)
    assert (base_parameters(model).independent < 10 * model.nv).sum() == count


XARM_JOINTS = tuple(f"joint{i}" for i in range(1, 8))
ROUNDED = 1.5708 - np.pi / 2.0


def described(text: str, joints: tuple[str, ...]) -> RobotModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        return RobotModel.from_urdf_string(text, joints)


def with_angles(text: str, write: Callable[[float], str]) -> str:
    """The URDF with its right angles, which `write` is given to the last bit, written otherwise."""

    def written(found: re.Match[str]) -> str:
        turns = [round(float(word) / (np.pi / 2.0)) for word in found[1].split()]
        return f'rpy="{" ".join(write(np.pi / 2.0 * turn) for turn in turns)}"'

    return re.sub(r'rpy="([^"]*)"', written, text)


@pytest.mark.parametrize(("name", "joints"), [("xarm7", XARM_JOINTS), ("panda", PANDA_JOINTS)])
def test_rounded_right_angles_change_nothing(name: str, joints: tuple[str, ...]) -> None:
    text = example_robot(name).read_text()
    exact = base_parameters(described(with_angles(text, repr), joints))
    assert exact.rank == 69 and exact.rounding == 0.0 and exact.hidden == ()
    for digits in (2, 3, 4):
        urdf = with_angles(text, lambda angle, digits=digits: f"{angle:.{digits}f}")
        base = base_parameters(described(urdf, joints))
        assert base.hidden
        np.testing.assert_array_equal(base.independent, exact.independent)
        np.testing.assert_allclose(base.K, exact.K, rtol=0.0, atol=1e-9)
        assert abs(np.pi / 2.0 - round(np.pi / 2.0, digits)) <= base.rounding < 10.0**-digits


def test_tilt_beyond_the_last_digits_is_meant() -> None:
    text = example_robot("xarm7").read_text()
    assert base_parameters(described(text, XARM_JOINTS)).rank == 69
    for angle in ("-1.5808", "-1.570615"):
        tilted = text.replace('rpy="-1.5708 0 0" xyz="0 0 0"', f'rpy="{angle} 0 0" xyz="0 0 0"')
        base = base_parameters(described(tilted, XARM_JOINTS))
        assert base.rank > 69 and base.rounding == pytest.approx(ROUNDED)


def test_robot_that_cannot_move_has_none() -> None:
    base = base_parameters(load_quietly(example_robot("panda"), ()))
    assert base.rank == 0 and base.names == ()
