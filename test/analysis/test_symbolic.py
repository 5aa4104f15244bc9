"""Formulas of small robots: equal to those of textbooks, and in numbers to the recursions."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import sympy
from planar_arm import NUMBERS, coriolis_matrix, gravity_torque, mass_matrix
from robots import random_mechanism, two_link_arm
from sympy import cos, sin

from rnea_control.analysis.symbolic import SymbolicDynamics, symbolic_dynamics
from rnea_control.dynamics import Workspace, crba, gravity, nonlinear_effects, rnea
from rnea_control.exceptions import ArgumentError
from rnea_control.model import Joint, RobotModel, pseudo_inertia

SYMBOLS = {name: sympy.Symbol(name, positive=True) for name in NUMBERS}
FRACTIONS = {name: sympy.Rational(str(value)) for name, value in NUMBERS.items()}


@pytest.fixture(scope="module")
def planar() -> RobotModel:
    return RobotModel.from_urdf_string(two_link_arm())


@pytest.fixture(scope="module")
def in_symbols(planar: RobotModel) -> SymbolicDynamics:
    """Masses, lengths and gravity as symbols, and two inertias that cannot matter."""
    p, (x, z) = SYMBOLS, sympy.symbols("x z")
    upper = [p["m1"], p["m1"] * p["r1"], 0, 0, x, 0, 0, p["I1"] + p["m1"] * p["r1"] ** 2, 0, z]
    lower = [p["m2"], p["m2"] * p["r2"], 0, 0, x, 0, 0, p["I2"] + p["m2"] * p["r2"] ** 2, 0, z]
    parameters = {"upper": upper, "lower": lower}
    return symbolic_dynamics(planar, parameters, {"elbow": [p["l1"], 0, 0]}, [0, 0, -p["g0"]])


def test_planar_arm_is_that_of_the_textbook(planar, in_symbols) -> None:
    in_numbers = symbolic_dynamics(planar)
    for s, values in ((in_symbols, SYMBOLS), (in_numbers, FRACTIONS)):
        M, g = (formula(s.q, values, cos) for formula in (mass_matrix, gravity_torque))
        by_hand = map(sympy.Matrix, (M, coriolis_matrix(s.q, s.v, values, sin), g))
        for found, expected in zip((s.M, s.C, s.g), by_hand, strict=True):
            assert found.shape == expected.shape
            assert sympy.simplify(found - expected).is_zero_matrix
    # Numbers are short, and what cancels is gone.
    assert str(in_numbers.M[0, 0]) == "51*cos(q2)/250 + 8603/20000"
    assert str(in_numbers.g[1]) == "-50031*cos(q1 + q2)/20000"


@pytest.mark.parametrize(
    "seed, joints, types, mimics",
    [
        (1, 3, ("revolute", "continuous"), False),
        (3, 2, ("revolute", "prismatic"), False),
        (4, 2, ("helical", "revolute"), True),
        (4, 1, ("cylindrical",), False),
        (5, 1, ("universal",), False),
        (6, 1, ("planar",), False),
    ],
)
def test_numbers_agree_with_the_recursions(seed, joints, types, mimics) -> None:
    robot = random_mechanism(seed, joints, types, mimics)
    model = RobotModel.from_joints("random", *robot, gravity=(1.0, -2.0, -9.0))
    agrees(symbolic_dynamics(model), model)


def test_payload_fixed_links_and_skew_axes_are_in_the_numbers() -> None:
    axes = [
        Joint("a", "revolute", "base", "upper", axis=(1, 1, 0), armature=0.2),
        Joint("f", "fixed", "upper", "plate", translation=(1 / 3, 0, 0)),
        Joint("b", "prismatic", "plate", "tool", translation=(0, 0, 0.1), axis=(1, 0, 3**0.5)),
    ]
    body = pseudo_inertia(1.0, np.array([0.1, 0.2, 0.3]), np.diag([0.1, 0.2, 0.25]))
    model = RobotModel.from_joints("skew", axes, {"upper": body, "plate": body, "tool": body})
    model.set_payload("tool", 2.0, (0.0, 0.1, 0.0))
    s = symbolic_dynamics(model)
    agrees(s, model)
    assert s.M[1, 1] == 3
    p = sympy.symbols("p1:4")
    moved = symbolic_dynamics(model, translations={"b": p})
    at = {p[0]: sympy.Rational(1, 3), p[1]: 0, p[2]: sympy.Rational(1, 10)}
    assert sympy.expand(moved.M.subs(at) - s.M).is_zero_matrix


def agrees(s: SymbolicDynamics, model: RobotModel) -> None:
    column = sympy.Matrix(s.v)
    formulas = sympy.lambdify((s.q, s.v, s.a), [s.M, s.C * column, s.g, s.tau], cse=True)
    ws, n, rng = Workspace(model), model.nv, np.random.default_rng(0)
    for _ in range(3):
        q, v, a = rng.uniform(-2.0, 2.0, (3, n))
        M, Cv, g, tau = (np.array(value, dtype=np.float64) for value in formulas(q, v, a))
        held = gravity(model, ws, q, np.zeros(n))
        bias = nonlinear_effects(model, ws, q, v, np.zeros(n))
        for found, expected in (
            (M, crba(model, ws, q, np.zeros((n, n)))),
            (Cv[:, 0], bias - held),
            (g[:, 0], held),
            (tau[:, 0], rnea(model, ws, q, v, a, np.zeros(n))),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_what_has_no_formulas_or_does_not_fit_is_refused(planar: RobotModel) -> None:
    ball = RobotModel.from_joints("ball", *random_mechanism(0, 1, ("spherical",)))
    with pytest.raises(ArgumentError, match="spherical"):
        symbolic_dynamics(ball, limit=6)
    with pytest.raises(ArgumentError, match=r"0 velocities.*for 1 to 5"):
        symbolic_dynamics(RobotModel.from_urdf_string(two_link_arm(), []))
    with pytest.raises(ArgumentError, match="2 velocities"):
        symbolic_dynamics(planar, limit=1)
    for arguments, message in (
        ({"parameters": {"hand": range(10)}}, "'hand'.*upper"),
        ({"parameters": {"upper": range(9)}}, "9 values for 'upper'.*10"),
        ({"translations": {"wrist": range(3)}}, "'wrist'.*elbow"),
        ({"translations": {"elbow": range(2)}}, "2 values for 'elbow'.*3"),
        ({"gravity": [0, 0]}, "2 values for 'gravity'.*3"),
        ({"gravity": 3}, "3 for 'gravity'; it must be a list of 3 values"),
        ({"gravity": [0, 0, float("nan")]}, "'gravity' has nan; it must be finite"),
        ({"parameters": {"upper": [float("inf"), *range(9)]}}, "'upper' has oo"),
    ):
        with pytest.raises(ArgumentError, match=message):
            symbolic_dynamics(planar, **arguments)


def test_without_sympy_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['sympy'] = None; import rnea_control.analysis.symbolic"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "ImportError" in done.stderr
    assert "pip install rnea_control[symbolic]" in done.stderr
