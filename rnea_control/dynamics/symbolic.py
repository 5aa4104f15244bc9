r"""The equations of motion of small robots as formulas: to read, to print, to differentiate.

They come from the energies, not from the recursions of the other files. With X_i the placement of
body i in the root link's frame, J_i its pseudo-inertia (model/inertia.py), and T_ij the twist that
a rate of 1 of q_j gives it, all 4x4 matrices [Murray, Li, Sastry 1994, sec. 4.2 and 4.3]:

.. math::

    T_{ij} &= X_i^{-1} \frac{\partial X_i}{\partial q_j}, \qquad
    M_{jk} = \sum_i \mathrm{tr}(T_{ij} J_i T_{ik}^T) \\
    C_{jk} &= \sum_l \frac{1}{2} \left( \frac{\partial M_{jk}}{\partial q_l} +
    \frac{\partial M_{jl}}{\partial q_k} - \frac{\partial M_{kl}}{\partial q_j} \right) v_l \\
    g_j &= \frac{\partial U}{\partial q_j}, \qquad
    U = -\sum_i [\text{gravity}^T, 0] \, X_i J_i \, [0, 0, 0, 1]^T

This file alone needs SymPy: `pip install rnea_control[symbolic]`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout
from rnea_control.model.rotations import FloatArray

try:
    import sympy
except ImportError as error:
    raise ImportError(
        "rnea_control.dynamics.symbolic needs SymPy: pip install rnea_control[symbolic]"
    ) from error

_SCALARS = layout.ANGULAR, layout.LINEAR, layout.RATIO, layout.OFFSET, layout.ARMATURE


@dataclass(frozen=True)
class SymbolicDynamics:
    """tau = M(q) a + C(q, v) v + g(q), in the order and units of `rnea`; armature is part of M.

    The symbols are plain ones: `sympy.lambdify((s.q, s.v, s.a), s.tau, cse=True)` is a function of
    three arrays. Numbers of the model are exact: `sympy.N(s.M, 4)` is for printing.

    Attributes:
        q, v, a: the symbols q1.., v1.. and a1.., nv of each.
        M: mass matrix, shape (nv, nv).
        C: Coriolis matrix of Christoffel symbols, shape (nv, nv): dM/dt - 2 C is skew.
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
        """The inverse dynamics M a + C v + g, shape (nv, 1)."""
        return self.M * sympy.Matrix(self.a) + self.C * sympy.Matrix(self.v) + self.g


def symbolic_dynamics(
    model: RobotModel,
    parameters: Mapping[str, Sequence[Any]] | None = None,
    translations: Mapping[str, Sequence[Any]] | None = None,
    gravity: Sequence[Any] | None = None,
    limit: int = 6,
) -> SymbolicDynamics:
    """Derives the equations of motion of a robot whose joints turn and slide about axes.

    The numbers are those of the model as it is now, payloads and armature included; one within
    1e-12 of a fraction, of the root of one or of a short decimal is taken as that. The other
    arguments put symbols, or any expressions, in the place of numbers.

    Args:
        model: the robot.
        parameters: by the name of a link, [m, mcx, mcy, mcz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz] of it
            and all that is fixed to it, about its frame's origin, [kg], [kg m] and [kg m^2].
        translations: by the name of a joint, its origin in the frame of its parent link (of the
            first of them, where several links are fixed together), [m].
        gravity: its acceleration in the root link's frame, [m/s^2].
        limit: how many velocities a model may have; the formulas soon grow beyond use.

    Raises:
        ArgumentError: a spherical or floating joint, too many velocities, an unknown link or joint,
            or not ten, three and three values.
    """
    refused = [kind for kind in model.joint_types if kind in ("spherical", "floating")]
    if refused or model.nv > limit:
        raise ArgumentError(
            f"{model.name!r} has {f'a {refused[0]} joint' if refused else f'{model.nv} velocities'}"
            f"; formulas are for joints about and along axes with at most {limit} velocities. Name "
            "fewer in `joints`, or raise `limit`"
        )
    inertias = [_pseudo_inertia(_ten_parameters(row)) for row in model._bodies]
    for name, values in (parameters or {}).items():
        _check(name, model.link_names, values, 10)
        link = model._links[model.link_names.index(name)]
        X = _link_placement(link)
        inertias[int(link[layout.LINK_BODY])] = X * _pseudo_inertia(values) * X.T
    origins = [_exact(row[layout.TRANSLATION : layout.TRANSLATION + 3]) for row in model._bodies]
    for name, values in (translations or {}).items():
        _check(name, model._joint_rows, values, 3)
        freedoms = model.v_slices.get(name, slice(0, 1))  # a joint that mimics another has one
        first = model._joint_rows[name] - (freedoms.stop - freedoms.start) + 1
        on_parent = model._links[:, layout.LINK_BODY] == model._bodies[first, layout.PARENT]
        R = _link_placement(model._links[np.argmax(on_parent)])[:3, :3]
        origins[first] = R * sympy.Matrix(values)
    down = _exact(model.gravity) if gravity is None else gravity
    _check("gravity", ["gravity"], down, 3)

    q, v, a = (sympy.symbols(f"{letter}1:{model.nv + 1}", real=True) for letter in "qva")
    M, U = _mass_matrix_and_potential(model._bodies, q, origins, inertias, down)

    def coriolis(j: int, k: int) -> sympy.Expr:
        terms = [
            (M[j, k].diff(q[i]) + M[j, i].diff(q[k]) - M[k, i].diff(q[j])) * v[i] / 2
            for i in range(len(q))
        ]
        return sympy.expand(sympy.Add(*terms))

    C = sympy.ImmutableMatrix(len(q), len(q), coriolis)
    return SymbolicDynamics(q, v, a, M, C, sympy.ImmutableMatrix([U.diff(q_j) for q_j in q]))


def _mass_matrix_and_potential(
    bodies: FloatArray,
    q: Sequence[sympy.Symbol],
    origins: Sequence[Any],
    inertias: Sequence[sympy.Matrix],
    gravity: Sequence[Any],
) -> tuple[sympy.ImmutableMatrix, sympy.Expr]:
    """`origins` and `inertias` are p_PB and pseudo-inertia of each row, in the place of its own."""
    M, U = sympy.zeros(len(q)), sympy.Integer(0)
    twists = [[sympy.zeros(4)] * len(q)]
    downs = [sympy.Matrix([[*gravity, 0]])]  # [gravity^T, 0] X_i
    for row, origin, J in list(zip(bodies, origins, inertias, strict=True))[1:]:
        parent, own = int(row[layout.PARENT]), int(row[layout.Q])
        angular, linear, ratio, offset, armature = (_exact([row[column]])[0] for column in _SCALARS)
        position = ratio * q[own] + offset
        c, s = sympy.cos(angular * position), sympy.sin(angular * position)
        turn = sympy.Matrix([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        at_zero = _homogeneous(_exact(row[layout.ROTATION : layout.ROTATION + 9]), origin)
        X = at_zero * _homogeneous(turn, [0, 0, linear * position])
        inverse = _homogeneous(X[:3, :3].T, -X[:3, :3].T * X[:3, 3])
        T = [
            (inverse * (T_P * X + X.diff(q_j))).applyfunc(_harmonics)
            for T_P, q_j in zip(twists[parent], q, strict=True)
        ]
        twists.append(T)
        downs.append((downs[parent] * X).applyfunc(_harmonics))
        U -= (downs[-1] * J)[3]
        M[own, own] += ratio**2 * armature
        for j, T_j in enumerate(T):
            for k in range(j + 1):
                M[j, k] += (T_j * J * T[k].T).trace()
    lower = M.applyfunc(_harmonics)
    M = sympy.ImmutableMatrix(*M.shape, lambda j, k: lower[max(j, k), min(j, k)])
    return M, _harmonics(U)


def _harmonics(expression: sympy.Expr) -> sympy.Expr:
    """The same with sines and cosines of sums in place of products; what cancels is then gone.

    They are multiplied as polynomials in exp(i angle) and exp(-i angle).
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
    """Numbers of one kind; near a simple one is within 1e-12 of the largest."""
    numbers = [float(value) for value in values]
    tolerance = 1e-12 * max(map(abs, numbers))
    result = []
    for number in numbers:
        square, decimal = Fraction(number**2).limit_denominator(100), round(number, 9)
        if abs(math.sqrt(square) - abs(number)) <= tolerance:
            root = sympy.sqrt(sympy.Rational(square))
            result.append(root if number > 0.0 else -root)
        else:
            near = abs(decimal - number) <= tolerance
            result.append(sympy.Rational(str(decimal if near else number)))
    return result


def _homogeneous(R: Any, p: Any) -> sympy.Matrix:
    upper = sympy.Matrix(3, 3, list(R)).row_join(sympy.Matrix(3, 1, list(p)))
    return upper.col_join(sympy.Matrix([[0, 0, 0, 1]]))


def _link_placement(link: FloatArray) -> sympy.Matrix:
    """X_BL of a row of the links array."""
    R = _exact(link[layout.LINK_ROTATION : layout.LINK_ROTATION + 9])
    return _homogeneous(R, _exact(link[layout.LINK_TRANSLATION : layout.LINK_TRANSLATION + 3]))


def _ten_parameters(row: FloatArray) -> list[sympy.Expr]:
    m, mc, inertia = np.split(row[layout.INERTIA : layout.INERTIA + 10], [1, 4])
    return [*_exact(m), *_exact(mc), *_exact(inertia)]


def _pseudo_inertia(parameters: Sequence[Any]) -> sympy.Matrix:
    m, x, y, z, xx, xy, xz, yy, yz, zz = parameters
    h = (xx + yy + zz) / sympy.Integer(2)
    return sympy.Matrix(
        [[h - xx, -xy, -xz, x], [-xy, h - yy, -yz, y], [-xz, -yz, h - zz, z], [x, y, z, m]]
    )


def _check(name: str, names: Iterable[str], values: Sequence[Any], count: int) -> None:
    if name not in names or len(values) != count:
        raise ArgumentError(
            f"{len(values)} values for {name!r}; it must be {count}, for one of {', '.join(names)}"
        )
