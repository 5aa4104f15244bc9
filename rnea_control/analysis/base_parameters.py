r"""Base parameters: the combinations of a robot's parameters that its torques depend on.

Some parameters have no effect on the torques, others only in combination. With independent columns
Y_b of the regressor chosen so that the dependent ones are Y_d = Y_b K for every motion [Gautier
1991],

.. math:: \tau = Y \varphi = Y_b \beta, \qquad \beta = \varphi_b + K \varphi_d

A URDF in which 1.5708 stands for pi/2 has axes that are not quite parallel or at right angles, so
that more columns are independent, by as little as that rounding; no motion tells these apart. So
the columns are those of the robot that the file means, with the angles put right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.dynamics.regressor import parameter_count, parameter_names, regressor
from rnea_control.dynamics.workspace import Workspace
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

# Random states of which the torques are looked at, at least.
_STATES = 100
# How far a column may be from a combination of others, relative to its norm, and still count as
# dependent.
_TOLERANCE = 1e-6
# The next column taken is the first one with at least this share of the largest remainder, so that
# a parameter is grouped with links nearer the root.
_PIVOT = 0.1
# Angles that are meant are multiples of this, [rad].
_MEANT = math.pi / 4.0
# They are off by so many units of the last digit that is written, as some are cut off and not
# rounded; by no more than 3.14 is, [rad]; and by more than what makes no column independent.
_UNITS, _FARTHEST, _NONE = 2.0, 2e-3, 1e-8
# The errors of several angles between two joints add up to so many of the largest one.
_ADDED = 4.0


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """How the parameters phi of a robot group; indices are columns of its regressor.

    Attributes:
        independent: columns Y_b, ascending, shape (rank,).
        dependent: columns that are combinations of these, Y_d = Y_b K, ascending.
        unidentifiable: columns that are zero for every motion.
        K: shape (rank, number of dependent columns).
        names: of the base parameters as sums, such as "upper.mcx + 0.4 lower.m".
        rounding: how far a rounded angle of the URDF is from the one that is meant, at most, [rad];
            0 if none is.
        hidden: names of the parameters that are independent by this rounding alone.
    """

    independent: IntArray
    dependent: IntArray
    unidentifiable: IntArray
    K: FloatArray
    names: tuple[str, ...]
    rounding: float
    hidden: tuple[str, ...]

    @property
    def rank(self) -> int:
        """How many base parameters there are."""
        return len(self.independent)

    def values(self, phi: FloatArray) -> FloatArray:
        """The base parameters beta of parameters `phi` ordered as `parameter_names`, shape
        (rank,)."""
        return phi[self.independent] + self.K @ phi[self.dependent]


def base_parameters(model: RobotModel) -> BaseParameters:
    """The base parameters of a robot, by a QR decomposition with pivoting of its regressor at
    random states.

    How parameters group depends on the kinematics, gravity and the position limits, not on the
    values of the parameters. Angles of a URDF that are multiples of 45 degrees but for their last
    digits count as these. Takes a second for a humanoid of 40 joints.
    """
    names, rounding = parameter_names(model), _rounding(model.urdf_angles)
    stacked = _stacked_regressor(model)
    columns, independent = as_written = _independent_columns(stacked)
    if rounding:
        stacked = _stacked_regressor(_as_meant(model, _ADDED * rounding))
        columns, independent = _independent_columns(stacked)
    hidden = tuple(names[k] for k in np.setdiff1d(as_written[1], independent))
    dependent = np.setdiff1d(columns, independent)
    norms = np.linalg.norm(stacked, axis=0)
    Q, R = np.linalg.qr(stacked[:, independent] / norms[independent])
    shares = np.linalg.solve(R, Q.T @ (stacked[:, dependent] / norms[dependent]))
    K = shares * norms[dependent] / norms[independent, None]
    sums = [names[column] for column in independent]
    for row, k in np.argwhere(np.abs(shares) > _TOLERANCE).tolist():
        size, sign = f"{abs(K[row, k]):.4g} ", "-" if K[row, k] < 0.0 else "+"
        sums[row] += f" {sign} {'' if size == '1 ' else size}{names[dependent[k]]}"
    zero = np.setdiff1d(np.arange(len(names)), columns)
    return BaseParameters(independent, dependent, zero, K, tuple(sums), rounding, hidden)


def _rounding(angles: Iterable[float]) -> float:
    """How far those that are rounded multiples of `_MEANT` are from these, at most."""
    largest = 0.0
    for angle in angles:
        last_digit = 10.0 ** int(Decimal(repr(angle)).as_tuple().exponent)
        meant = _MEANT * round(angle / _MEANT)
        error = abs(angle - meant)
        if meant and _NONE < error <= min(_UNITS * last_digit, _FARTHEST):
            largest = max(largest, error)
    return largest


def _as_meant(model: RobotModel, slack: float) -> RobotModel:
    """The robot without components of axes and offsets that are smaller than `slack`."""
    meant = model.copy()
    for row in meant.bodies[1:]:
        R = row[layout.ROTATION : layout.ROTATION + 9].reshape(3, 3)
        p = row[layout.TRANSLATION : layout.TRANSLATION + 3]
        R[np.abs(R) < slack] = 0.0
        U, _, VT = np.linalg.svd(R)
        R[:] = U @ VT
        p[np.abs(p) < slack * np.linalg.norm(p)] = 0.0
    return meant


def _stacked_regressor(model: RobotModel) -> FloatArray:
    """The triangle R of a QR decomposition of regressors at random states, one above the other; its
    columns depend on each other in the same way. The states are always the same."""
    ws, count, rng = Workspace(model), parameter_count(model), np.random.default_rng(0)
    regressors = np.zeros((max(_STATES, -(-count // max(model.nv, 1))), model.nv, count))
    for Y in regressors:
        v, a = rng.standard_normal((2, model.nv))
        regressor(model, ws, model.random(rng), v, a, Y)
    _, R = np.linalg.qr(regressors.reshape(len(regressors) * model.nv, count))
    return R


def _independent_columns(matrix: FloatArray) -> tuple[IntArray, IntArray]:
    """The columns that are not 0, and those of them that span all others, by Gram-Schmidt with
    pivoting; both ascending."""
    norms = np.linalg.norm(matrix, axis=0)
    columns = np.flatnonzero(norms > _TOLERANCE * norms.max(initial=0.0))
    # Of each column, scaled to length 1, less its share along those chosen.
    remainders = (matrix[:, columns] / norms[columns]).T.copy()
    chosen: list[int] = []
    while len(chosen) < len(remainders):
        lengths = np.linalg.norm(remainders, axis=1)
        if lengths.max() < _TOLERANCE:
            break
        pivot = int(np.argmax(lengths >= _PIVOT * lengths.max()))
        direction = remainders[pivot] / lengths[pivot]
        remainders -= np.outer(remainders @ direction, direction)
        chosen.append(pivot)
    return columns, columns[np.array(sorted(chosen), dtype=np.int64)]
