"""Arguments that do not fit are refused in words, and nothing is written."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from robots import random_tree, two_link_arm

from rnea_control import dynamics
from rnea_control.dynamics import Workspace, gravity, nonlinear_effects, rnea
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel

MODEL = RobotModel.from_urdf_string(two_link_arm())
OTHER = RobotModel.from_urdf_string(random_tree(1, 5, fixed=False))
GOOD = np.zeros(2)

WRONG = {
    "too short": (np.zeros(1), r"q is of float64 and shape \(1,\); it must be .* shape \(2,\)"),
    "too long": (np.zeros(3), r"q is of float64 and shape \(3,\)"),
    "a matrix": (np.zeros((2, 1)), r"q is of float64 and shape \(2, 1\)"),
    "whole numbers": (np.zeros(2, dtype=int), "q is of int64"),
    "single precision": (np.zeros(2, dtype=np.float32), "q is of float32"),
    "strided": (np.zeros(4)[::2], "q is a read-only or strided view"),
    "a list": ([0.0, 0.0], "q is a list"),
    "None": (None, "q is a NoneType"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("algorithm", [rnea, gravity, nonlinear_effects])
def test_wrong_array_is_named(algorithm, name: str) -> None:
    wrong, words = WRONG[name]
    inputs = {rnea: 2, nonlinear_effects: 1, gravity: 0}[algorithm]
    tau = np.full(2, 7.0)
    with pytest.raises(ArgumentError, match=words):
        algorithm(MODEL, Workspace(MODEL), wrong, *[GOOD] * inputs, tau)
    np.testing.assert_array_equal(tau, 7.0)


def test_each_argument_of_rnea_is_named() -> None:
    ws = Workspace(MODEL)
    for i, name in enumerate(["q", "v", "a", "tau"]):
        arguments = [GOOD.copy() for _ in range(4)]
        arguments[i] = np.zeros(5)
        with pytest.raises(ArgumentError, match=f"{name} is of"):
            rnea(MODEL, ws, *arguments)
    with pytest.raises(ArgumentError, match=r"external_forces .* \(3, 6\)"):
        rnea(MODEL, ws, GOOD, GOOD, GOOD, np.zeros(2), np.zeros((2, 3)))


def test_read_only_output() -> None:
    tau = np.zeros(2)
    tau.flags.writeable = False
    with pytest.raises(ArgumentError, match="tau is a read-only"):
        rnea(MODEL, Workspace(MODEL), GOOD, GOOD, GOOD, tau)


def test_workspace_of_another_model() -> None:
    with pytest.raises(ArgumentError, match="workspace was made for"):
        rnea(MODEL, Workspace(OTHER), GOOD, GOOD, GOOD, np.zeros(2))
    with pytest.raises(ArgumentError, match="RobotModel and a Workspace"):
        gravity("panda", Workspace(MODEL), GOOD, np.zeros(2))
    with pytest.raises(ArgumentError, match="made for a RobotModel, not None"):
        Workspace(None)


def test_output_is_returned() -> None:
    tau = np.zeros(2)
    assert rnea(MODEL, Workspace(MODEL), GOOD, GOOD, GOOD, tau) is tau
    assert gravity(MODEL, Workspace(MODEL), GOOD, tau) is tau
    assert nonlinear_effects(MODEL, Workspace(MODEL), GOOD, GOOD, tau) is tau


SHAPES = {
    **dict.fromkeys(("v", "a", "tau", "v_r", "a_r", "step", "p", "rate"), (2,)),
    **dict.fromkeys(("q", "q0", "q1", "result"), (2,)),
    **dict.fromkeys(("M", "C"), (2, 2)),
    **dict.fromkeys(("world_force", "link_force", "acceleration"), (6,)),
    "com": (3,),
    "J": (6, 2),
    "external_forces": (3, 6),
    "wrenches": (3, 6),
    "poses": (3, 4, 4),
}
ALGORITHMS = sorted(set(dynamics.__all__) - {"Workspace"})


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_array_of_every_algorithm_is_checked(name: str) -> None:
    algorithm = getattr(dynamics, name)
    names = [p for p in inspect.signature(algorithm).parameters if p not in ("model", "ws")]
    good = {p: "lower" if p == "link" else np.zeros(SHAPES[p]) for p in names}
    algorithm(MODEL, Workspace(MODEL), **good)
    for wrong in (p for p in names if p != "link"):
        shape = SHAPES[wrong]
        for array in (np.zeros((shape[0] + 1, *shape[1:])), np.zeros(shape, dtype=int), None):
            if array is None and wrong == "external_forces":
                continue  # there are none
            with pytest.raises(ArgumentError, match=rf"^{wrong} is (of|a) "):
                algorithm(MODEL, Workspace(MODEL), **{**good, wrong: array})
