r"""Equations of motion of small robots as formulas: to read, to print, to differentiate.

They are derived from the energies, not by recursions. With X_i the placement of
body i in the root link's frame, J_i its pseudo-inertia (model/rigid_body.py), and T_ij the twist
that a rate of 1 of q_j gives it, all 4x4 matrices [Murray, Li, Sastry 1994, sec. 4.2 and 4.3]:

.. math::

    T_{ij} &= X_i^{-1} \frac{\partial X_i}{\partial q_j}, \qquad
    M_{jk} = \sum_i \mathrm{tr}(T_{ij} J_i T_{ik}^T) \\
    C &= \tfrac{1}{2} (\dot M + D - D^T), \qquad D = \frac{\partial (M v)}{\partial q} \\
    g &= \frac{\partial U}{\partial q}, \qquad
    U = -\sum_i [\text{gravity}^T, 0] \, X_i J_i \, [0, 0, 0, 1]^T

C has the Christoffel symbols as its coefficients. Needs SymPy: `pip install
rnea_control[symbolic]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

try:
    import sympy
except ImportError as error:
    raise ImportError("formulas need SymPy: pip install rnea_control[symbolic]") from error

_SCALARS = [layout.S_ANGULAR, layout.S_LINEAR, layout.RATIO, layout.OFFSET, layout.ARMATURE]


@dataclass(frozen=True)
class SymbolicDynamics:
    """tau = M(q) a + C(q, v) v + g(q), in the order and units of `rnea`; armature is part of M.

    `sympy.lambdify((s.q, s.v, s.a), s.tau, cse=True)` is a function of three arrays. Numbers of the
    model are exact: print `sympy.N(s.M, 4)`.

    Attributes:
        q, v, a: the symbols q1.., v1.. and a1.., nv of each.
        M: mass matrix, shape (nv, nv).
        C: Coriolis matrix of Christoffel symbols, shape (nv, nv): dM/dt - 2 C is skew-symmetric.
        g: gravity torques, shape (nv, 1).
    """

    q: tuple[sympy.Symbol, ...]
    v: tuple[sympy.Symbol, ...]
    a: tuple[sympy.Symbol, ...]
    M: sympy.ImmutableMatrix
    C: sympy.ImmutableMatrix
    g: sympy.ImmutableMatrix

    @property
    def tau(self) -> sympy.ImmutableMatrix:
        """Inverse dynamics M a + C v + g, shape (nv, 1)."""
        return self.M * sympy.Matrix(self.a) + self.C * sympy.Matrix(self.v) + self.g


def symbolic_dynamics(
    model: RobotModel,
    parameters: Mapping[str, Sequence[Any]] | None = None,
    translations: Mapping[str, Sequence[Any]] | None = None,
    gravity: Sequence[Any] | None = None,
    limit: int = 5,
) -> SymbolicDynamics:
    """Derives the equations of motion of a robot without spherical and floating joints.

    Numbers come from the present state of the model, payloads and armature included. A number
    within 1e-12 of a fraction, its square root or a short decimal is replaced by that. The other
    arguments replace numbers by symbols or expressions.

    Args:
        model: the robot.
        parameters: inertial parameters [m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz] of a link
            and all links fixed to it, about its frame's origin, by the link's name, [kg], [kg m]
            and [kg m^2].
        translations: origin of a joint in the frame of its parent link, by the joint's name, [m].
            If several links are fixed together, the frame of the first of them.
        gravity: acceleration of gravity in the root link's frame, [m/s^2].
        limit: largest number of velocities of the model. Formulas take a second for two joints, ten
            seconds for the six of the UR5, and minutes for the first six of the Panda, which are
            too long to use.

    Raises:
        ArgumentError: a spherical or floating joint, too many velocities, an unknown link or joint,
            or a wrong number of values (ten, three and three).
    """
    if not 1 <= model.nv <= limit or {"spherical", "floating"} & set(model.joint_types):
        raise ArgumentError(
            f"{model.name!r} has {model.nv} velocities, of {', '.join(model.joint_types)} joints; "
            f"formulas are for 1 to {limit} (`limit`), none of spherical or floating joints"
        )
    bodies, links = model.bodies, model.links
    at_zero = [_homogeneous(row) for row in bodies]
    links_at = [_homogeneous(link[layout.LINK_ROTATION :]) for link in links]
    kinds = [np.split(row[layout.PARAMETERS], [1, 4]) for row in bodies]
    inertias = [_pseudo_inertia([x for kind in row for x in _exact(kind)]) for row in kinds]
    for name, values in (parameters or {}).items():
        _check(name, model.link_names, values, 10)
        k = model.link_names.index(name)
        body = int(links[k, layout.LINK_BODY])
        inertias[body] = links_at[k] * _pseudo_inertia(values) * links_at[k].T
    for name, values in (translations or {}).items():
        _check(name, model.joint_rows, values, 3)
        part = model.v_slices.get(name, slice(0, 1))  # a mimic joint has one
        first = model.joint_rows[name] - (part.stop - part.start) + 1
        k = links[:, layout.LINK_BODY].tolist().index(bodies[first, layout.PARENT])
        at_zero[first][:3, 3] = links_at[k][:3, :3] * sympy.Matrix(values)
    down = _exact(model.gravity) if gravity is None else gravity
    _check("gravity", ["gravity"], down, 3)

    q, v, a = (sympy.symbols(f"{letter}1:{model.nv + 1}", real=True) for letter in "qva")
    M, U = _mass_matrix_and_potential(bodies, q, at_zero, inertias, down)
    D = (M * sympy.Matrix(v)).jacobian(q)
    M_rate = sum((M.diff(q_j) * v_j for q_j, v_j in zip(q, v, strict=True)), sympy.zeros(model.nv))
    C = sympy.ImmutableMatrix(M_rate + D - D.T).applyfunc(lambda entry: sympy.expand(entry / 2))
    return SymbolicDynamics(q, v, a, M, C, sympy.ImmutableMatrix([U]).jacobian(q).T)


def _mass_matrix_and_potential(
    bodies: FloatArray, q: Any, at_zero: Any, inertias: Any, gravity: Any
) -> tuple[sympy.ImmutableMatrix, sympy.Expr]:
    """Mass matrix M and potential energy U; `at_zero` and `inertias` replace the X_PB and the
    pseudo-inertias of `bodies`."""
    M, U = sympy.zeros(len(q)), sympy.Integer(0)
    twists = [[sympy.zeros(3, 4)] * len(q)]  # without the last rows, which are zero
    downs = [sympy.Matrix([[*gravity, 0]])]  # [gravity^T, 0] X_i
    for row, X, J in list(zip(bodies, at_zero, inertias, strict=True))[1:]:
        parent, own = int(row[layout.PARENT]), int(row[layout.Q])
        angular, linear, ratio, offset, armature = (_exact([x])[0] for x in row[_SCALARS])
        position = ratio * q[own] + offset
        c, s = sympy.cos(angular * position), sympy.sin(angular * position)
        motion = [[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, linear * position], [0, 0, 0, 1]]
        X_PB = X * sympy.Matrix(motion)
        T = [
            (X_PB[:3, :3].T * (T_P * X_PB + X_PB[:3, :].diff(q_j))).applyfunc(_harmonics)
            for T_P, q_j in zip(twists[parent], q, strict=True)
        ]
        twists.append(T)
        downs.append((downs[parent] * X_PB).applyfunc(_harmonics))
        U -= (downs[-1] * J)[3]
        M[own, own] += ratio**2 * armature
        for j, T_j in enumerate(T):
            for k in range(j + 1):
                M[j, k] += (T_j * J * T[k].T).trace()
    lower = M.applyfunc(_harmonics)
    return sympy.ImmutableMatrix(*M.shape, lambda j, k: lower[max(j, k), min(j, k)]), _harmonics(U)


def _harmonics(expression: sympy.Expr) -> sympy.Expr:
    """Replaces products of sines and cosines by sines and cosines of sums; terms then cancel.

    The products are multiplied out as polynomials in exp(i angle) and exp(-i angle).
    """
    exponents, waves = {}, {}
    for angle in {function.args[0] for function in expression.atoms(sympy.cos, sympy.sin)}:
        plus, minus = sympy.Dummy(), sympy.Dummy()
        exponents[plus], exponents[minus] = angle, -angle
        waves[sympy.cos(angle)] = (plus + minus) / 2
        waves[sympy.sin(angle)] = (plus - minus) / (2 * sympy.I)
    if not waves:
        return sympy.expand(expression)
    terms = []
    for powers, factor in sympy.Poly(expression.xreplace(waves), *exponents).terms():
        angle = sympy.expand(sympy.Add(*map(sympy.Mul, powers, exponents.values())))
        terms.append(factor * (sympy.cos(angle) + sympy.I * sympy.sin(angle)))
    return sympy.expand(sympy.Add(*terms))


def _exact(values: Iterable[float]) -> list[sympy.Expr]:
    """Replaces each number by a simple expression within 1e-12 of the largest number, if there is
    one."""
    tolerance, result = 1e-12 * max(map(abs, values)), []
    for number in map(float, values):
        root = sympy.sqrt(sympy.Rational(Fraction(number**2).limit_denominator(100)))
        simple = [root if number > 0.0 else -root, sympy.Rational(str(round(number, 9)))]
        near = (x for x in simple if abs(float(x) - number) <= tolerance)
        result.append(next(near, sympy.Rational(str(number))))
    return result


def _homogeneous(row: FloatArray) -> sympy.Matrix:
    R, p = sympy.Matrix(3, 3, _exact(row[:9])), sympy.Matrix(_exact(row[9:12]))
    return R.row_join(p).col_join(sympy.Matrix([[0, 0, 0, 1]]))


def _pseudo_inertia(parameters: Sequence[Any]) -> sympy.Matrix:
    m, x, y, z, xx, xy, xz, yy, yz, zz = parameters
    h = (xx + yy + zz) / sympy.Integer(2)
    second_moment = [[h - xx, -xy, -xz, x], [-xy, h - yy, -yz, y], [-xz, -yz, h - zz, z]]
    return sympy.Matrix([*second_moment, [x, y, z, m]])


def _check(name: str, names: Iterable[str], values: Sequence[Any], count: int) -> None:
    if not isinstance(values, (Sequence, np.ndarray, sympy.MatrixBase)):
        raise ArgumentError(f"{values!r} for {name!r}; it must be a list of {count} values")
    if name not in names or len(values) != count:
        allowed = f"{count} values for one of {', '.join(names)}"
        raise ArgumentError(f"{len(values)} values for {name!r}; they must be {allowed}")
    for value in map(sympy.sympify, values):
        if value.is_number and not value.is_finite:
            raise ArgumentError(f"{name!r} has {value}; it must be finite, or a symbol")
