"""Base parameters: how many there are, how they group, and that they tell all torques."""

from __future__ import annotations

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
from rnea_control.model import RobotModel

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


def test_base_of_a_robot_tells_all_torques_whatever_states_it_comes_from() -> None:
    model = robot("panda")
    assert_base_tells_all_torques(model)
    base, other = base_parameters(model), base_parameters(model, 150, np.random.default_rng(7))
    assert base.names == other.names
    np.testing.assert_allclose(base.K, other.K, rtol=0.0, atol=1e-10)


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


def test_robot_that_cannot_move_has_none() -> None:
    base = base_parameters(load_quietly(example_robot("panda"), ()))
    assert base.rank == 0 and base.names == ()
