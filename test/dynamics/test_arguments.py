"""What does not fit, and what no torque accelerates in a certain way, is refused in words."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from robots import random_tree, two_link_arm

from rnea_control import dynamics
from rnea_control.dynamics import Workspace, aba, forward_dynamics, gravity, jacobian, rnea
from rnea_control.dynamics.regressor import regressor
from rnea_control.dynamics.workspace import SHAPES as SHAPES_OF
from rnea_control.exceptions import ArgumentError
from rnea_control.model import Joint, Mimic, RobotModel, pseudo_inertia
from rnea_control.model.rigid_body import rotation_from_rpy

MODEL = RobotModel.from_urdf_string(two_link_arm())
OTHER = RobotModel.from_urdf_string(random_tree(1, 5, fixed=False))
GOOD = np.zeros(2)


SIZES = {"nq": 2, "nv": 2, "links": 3, "wrenches": 3, "parameters": 28}
SHAPES = {name: tuple(SIZES.get(size, size) for size in of) for name, of in SHAPES_OF.items()}
ALGORITHMS = [*(getattr(dynamics, name) for name in sorted(dynamics.__all__)), regressor]
ALGORITHMS.remove(Workspace)
RETURN_NUMBERS = ("kinetic_energy", "potential_energy")


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.__name__)
def test_every_array_of_every_algorithm_is_checked(algorithm) -> None:
    names = [p for p in inspect.signature(algorithm).parameters if p not in ("model", "ws")]
    good = {p: "lower" if p == "link" else np.zeros(SHAPES[p]) for p in names}
    returned = algorithm(MODEL, Workspace(MODEL), **good)
    assert algorithm.__name__ in RETURN_NUMBERS or any(returned is good[p] for p in names)
    before = {p: np.array(good[p]) for p in names if p != "link"}
    for wrong, written in before.items():
        shape = written.shape
        arrays = [
            np.zeros((shape[0] + 1, *shape[1:])),
            np.zeros((*shape[:-1], shape[-1] - 1)),
            np.zeros(shape, dtype=int),
            np.zeros(shape, dtype=np.float32),
            np.zeros((*shape[:-1], 2 * shape[-1]))[..., ::2],
            np.broadcast_to(np.zeros(shape), shape),  # read-only
            np.zeros(shape).tolist(),
            None,
        ]
        for array in arrays:
            if array is None and wrong == "external_forces":
                continue  # there are none
            with pytest.raises(ArgumentError, match=rf"^{wrong} is (of|a) "):
                algorithm(MODEL, Workspace(MODEL), **{**good, wrong: array})
    assert all((good[p] == array).all() for p, array in before.items())


def test_workspace_of_another_model() -> None:
    with pytest.raises(ArgumentError, match="workspace was made for"):
        rnea(MODEL, Workspace(OTHER), GOOD, GOOD, GOOD, np.zeros(2))
    with pytest.raises(ArgumentError, match="RobotModel and a Workspace"):
        gravity("panda", Workspace(MODEL), GOOD, np.zeros(2))
    with pytest.raises(ArgumentError, match="made for a RobotModel, not None"):
        Workspace(None)


def test_unknown_link_is_named() -> None:
    for link in ("hand", "", None, 3):
        with pytest.raises(ArgumentError, match=f"no link {link!r}"):
            jacobian(MODEL, Workspace(MODEL), GOOD, link, np.zeros((6, 2)))


@pytest.mark.parametrize("seed", range(8))
def test_joint_that_moves_nothing_is_refused(seed: int) -> None:
    """A point mass on the last joint's own axis; that the mass matrix is singular shows only within
    rounding."""
    rng = np.random.default_rng(seed)
    axis = rng.standard_normal(3)
    axis /= np.linalg.norm(axis)
    place = {"rotation": rotation_from_rpy(rng.standard_normal(3))}
    joints = [
        Joint("a", "revolute", "ground", "A", axis=(0, 1, 0), **place),
        Joint("b", "revolute", "A", "B", axis=axis, translation=(0.3, 0.1, 0.2), **place),
        Joint("fixed", "fixed", "B", "C", translation=0.2 * axis, **place),
    ]
    inertias = {"A": pseudo_inertia(1.0, np.zeros(3), 0.01 * np.eye(3))}
    inertias["C"] = pseudo_inertia(1.0, np.zeros(3), np.zeros((3, 3)))
    model = RobotModel.from_joints("skew", joints, inertias)
    q, v = rng.standard_normal((2, 2))
    with pytest.raises(ArgumentError, match="the mass matrix is singular"):
        forward_dynamics(model, Workspace(model), q, v, np.ones(2), np.zeros(2))


def test_aba_refuses_joints_that_mimic() -> None:
    leader = Joint("a", "revolute", "ground", "A")
    joints = [leader, Joint("b", "revolute", "A", "B", mimic=Mimic("a", 2.0))]
    model = RobotModel.from_joints("pair", joints, dict.fromkeys("AB", np.eye(4)))
    with pytest.raises(ArgumentError, match=r"joints that mimic others \(b\); .* forward_dynamics"):
        aba(model, Workspace(model), *np.zeros((4, 1)))
