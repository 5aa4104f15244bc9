"""Base parameters: how many there are, how they group, and that they tell all torques."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import PANDA_JOINTS, example_robot, load_quietly, random_mechanism, two_link_arm

from rnea_control.analysis.base_parameters import base_parameters
from rnea_control.dynamics import Workspace
from rnea_control.dynamics.regressor import (
    inertial_parameters,
    parameter_count,
    parameter_names,
    regressor,
)
from rnea_control.model import RobotModel, pseudo_inertia
from rnea_control.model.inertia import ten_parameters

TOLERANCE = 1e-6


def robot(name: str) -> RobotModel:
    return load_quietly(example_robot(name), PANDA_JOINTS if name == "panda" else None)


def regressors(model: RobotModel, samples: int, seed: int = 99) -> np.ndarray:
    ws, rng = Workspace(model), np.random.default_rng(seed)
    result = np.zeros((samples, model.nv, parameter_count(model)))
    for Y in result:
        v, a = rng.standard_normal((2, model.nv))
        regressor(model, ws, model.random(rng), v, a, Y)
    return result.reshape(samples * model.nv, -1)


def rank_by_singular_values(model: RobotModel) -> int:
    W = regressors(model, 60)
    norms = np.linalg.norm(W, axis=0)
    W = W[:, norms > TOLERANCE * norms.max()]
    values = np.linalg.svd(W / np.linalg.norm(W, axis=0), compute_uv=False)
    return int((values > TOLERANCE * values[0]).sum())


def assert_base_tells_all_torques(model: RobotModel) -> None:
    base = base_parameters(model)
    columns = np.concatenate([base.independent, base.dependent, base.unidentifiable])
    np.testing.assert_array_equal(np.sort(columns), np.arange(parameter_count(model)))
    assert base.K.shape == (base.rank, len(base.dependent)) and len(base.names) == base.rank
    phi, W = inertial_parameters(model), regressors(model, 10)
    tau = W @ phi
    error = W[:, base.independent] @ base.values(phi) - tau
    assert np.abs(error).max() <= 1e-10 * np.abs(tau).max()
    dead = np.abs(W[:, base.unidentifiable]).max(initial=0.0)
    assert dead <= 1e-10 * np.abs(W).max()
    assert base.rank == rank_by_singular_values(model)


def test_planar_arm_in_gravity() -> None:
    """Six are of bodies, 7 n - 4 b with b = 2 parallel joints at the root [Mayeda, Yoshida, Osuka
    1990]; the first rotor's inertia cannot be told from the arm's."""
    model = RobotModel.from_urdf_string(two_link_arm())
    base = base_parameters(model)
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
    names = parameter_names(model)
    of_both = ("mcy", "Ixx", "Ixy", "Ixz", "Iyz", "Izz")
    unidentifiable = {f"{link}.{name}" for link in ("upper", "lower") for name in of_both}
    assert {names[k] for k in base.unidentifiable} == unidentifiable | {"upper.m"}


def test_planar_arm_without_gravity_tells_four() -> None:
    model = RobotModel.from_urdf_string(two_link_arm())
    model.gravity = np.zeros(3)
    assert rigid_count(model) == 4


@pytest.mark.parametrize(("name", "count"), [("panda", 43), ("ur5_robot", 36)])
def test_arm_has_the_published_number(name: str, count: int) -> None:
    """7 n - 4 b - 2, with b = 1 joint at the root along gravity [Mayeda, Yoshida, Osuka 1990]; 43
    for the Panda also by [Gaz et al. 2019]."""
    model = robot(name)
    assert count == 7 * model.nv - 6
    assert rigid_count(model) == count


def rigid_count(model: RobotModel) -> int:
    """How many of the base parameters are of bodies."""
    return int((base_parameters(model).independent < 10 * len(model.joint_names)).sum())


@pytest.mark.parametrize("name", ["panda", "ur5_robot", "talos_reduced"])
def test_base_of_a_robot_tells_all_torques(name: str) -> None:
    assert_base_tells_all_torques(robot(name))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_base_of_a_mechanism_tells_all_torques(seed: int, count: int) -> None:
    joints, inertias = random_mechanism(seed, count, mimics=True)
    model = RobotModel.from_joints("mechanism", joints, inertias)
    if model.nv:
        assert_base_tells_all_torques(model)


def test_free_body_tells_all_of_its_ten() -> None:
    """Only one of the rotors that could turn with it cannot be told: three of the same inertia are
    like a sphere's."""
    model = load_quietly(example_robot("panda"), (), floating_base=True)
    base = base_parameters(model)
    assert set(range(10)) < set(base.independent)
    (grouped,) = base.dependent
    assert parameter_names(model)[grouped] == "root_joint[5].armature"
    assert len(base.unidentifiable) == 0


def test_other_states_give_the_same_base() -> None:
    model = robot("panda")
    one, other = base_parameters(model), base_parameters(model, 150, np.random.default_rng(7))
    assert one.names == other.names
    np.testing.assert_allclose(one.K, other.K, rtol=0.0, atol=1e-10)


def test_payload_changes_the_values_only() -> None:
    model = robot("panda")
    before = base_parameters(model)
    beta = before.values(inertial_parameters(model))
    center = np.array([0.0, 0.0, 0.1])
    model.set_payload("panda_link7", 2.0, center)
    after = base_parameters(model)
    assert after.names == before.names
    change = np.zeros(parameter_count(model))
    change[60:70] = ten_parameters(pseudo_inertia(2.0, center, np.zeros((3, 3))))
    found = after.values(inertial_parameters(model)) - beta
    np.testing.assert_allclose(found, before.values(change), rtol=0.0, atol=1e-12)
    assert np.abs(found).max() > 0.2


def test_robot_that_cannot_move_has_none() -> None:
    base = base_parameters(load_quietly(example_robot("panda"), ()))
    assert base.rank == 0 and base.names == ()
