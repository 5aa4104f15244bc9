r"""Base parameters: the combinations of a robot's parameters on which its torques depend.

Some parameters have no effect on the torques, others only in combination. With independent columns
Y_b of the regressor chosen so that the dependent ones are Y_d = Y_b K for every motion [Gautier
1991],

.. math:: \tau = Y \varphi = Y_b \beta, \qquad \beta = \varphi_b + K \varphi_d

A URDF with 1.5708 in place of pi/2 has axes that are not quite parallel or at right angles. Then
more columns are independent, but only by this rounding; no motion can separate them. Therefore the
columns are computed for the robot with corrected angles.
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

_STATES = 100  # smallest number of random states
# Largest distance of a dependent column from a combination of others, as a fraction of its norm.
_TOLERANCE = 1e-6
# The next column is the first with at least this fraction of the largest remainder, so that a
# parameter is grouped with links nearer the root.
_PIVOT = 0.1
_MEANT = math.pi / 4.0  # intended angles are multiples of this [rad]
_UNITS = 2.0  # largest rounding error in units of the last digit, as some digits are cut off
_FARTHEST = 2e-3  # largest rounding error; that of 3.14 is smaller [rad]
_NONE = 1e-8  # largest error that makes no column independent [rad]
_ADDED = 4.0  # sum of the errors of several angles between two joints, in largest errors


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Grouping of a robot's parameters phi; indices are columns of its regressor.

    Attributes:
        independent: columns Y_b, ascending, shape (rank,).
        dependent: columns Y_d that are combinations of the independent ones, Y_d = Y_b K,
            ascending.
        unidentifiable: columns that are zero for every motion.
        K: coefficients, shape (rank, number of dependent columns).
        names: base parameters as sums, such as "upper.mcx + 0.4 lower.m".
        rounding: largest error of a rounded angle in the URDF, [rad]; 0 without rounded angles.
        hidden: names of the parameters that are independent only because of this rounding.
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
        """Number of base parameters."""
        return len(self.independent)

    def values(self, phi: FloatArray) -> FloatArray:
        """Base parameters beta of the parameters `phi`, shape (rank,); `phi` is ordered as
        `parameter_names`."""
        return phi[self.independent] + self.K @ phi[self.dependent]


def base_parameters(model: RobotModel) -> BaseParameters:
    """Base parameters of a robot, by a QR decomposition with pivoting of its regressor at random
    states.

    The grouping depends on the kinematics, gravity and the position limits, not on the values of
    the parameters. Angles of a URDF that are multiples of 45 degrees except for their last digits
    are taken as these multiples. Takes a second for a humanoid with 40 joints.
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
    """Largest error of the angles that are rounded multiples of `_MEANT`."""
    largest = 0.0
    for angle in angles:
        last_digit = 10.0 ** int(Decimal(repr(angle)).as_tuple().exponent)
        meant = _MEANT * round(angle / _MEANT)
        error = abs(angle - meant)
        if meant and _NONE < error <= min(_UNITS * last_digit, _FARTHEST):
            largest = max(largest, error)
    return largest


def _as_meant(model: RobotModel, slack: float) -> RobotModel:
    """Copy of the robot with components of axes and offsets below `slack` set to 0."""
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
    """Triangle R of a QR decomposition of the stacked regressors at random states; its columns have
    the same linear dependencies. The states are always the same."""
    ws, count, rng = Workspace(model), parameter_count(model), np.random.default_rng(0)
    regressors = np.zeros((max(_STATES, -(-count // max(model.nv, 1))), model.nv, count))
    for Y in regressors:
        v, a = rng.standard_normal((2, model.nv))
        regressor(model, ws, model.random(rng), v, a, Y)
    _, R = np.linalg.qr(regressors.reshape(len(regressors) * model.nv, count))
    return R


def _independent_columns(matrix: FloatArray) -> tuple[IntArray, IntArray]:
    """Columns that are not 0, and a subset of them that spans all others, by Gram-Schmidt with
    pivoting; both ascending."""
    norms = np.linalg.norm(matrix, axis=0)
    columns = np.flatnonzero(norms > _TOLERANCE * norms.max(initial=0.0))
    # Each column, scaled to length 1, minus its projection onto the chosen columns.
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
