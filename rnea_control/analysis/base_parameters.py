r"""Base parameters: the combinations of a robot's parameters that its torques depend on.

Some parameters have no effect on the torques, others only in combination. With independent columns
Y_b of the regressor chosen so that the dependent ones are Y_d = Y_b K for every motion [Gautier
1991],

.. math:: \tau = Y \varphi = Y_b \beta, \qquad \beta = \varphi_b + K \varphi_d
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.dynamics.regressor import parameter_count, parameter_names, regressor
from rnea_control.dynamics.workspace import Workspace
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel

# The next column taken is the first one with at least this share of the largest remainder, so that
# a parameter is grouped with links nearer the root.
_PIVOT = 0.1


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """How the parameters phi of a robot group; indices are columns of its regressor.

    Attributes:
        independent: columns Y_b, ascending, shape (rank,).
        dependent: columns that are combinations of these, Y_d = Y_b K, ascending.
        unidentifiable: columns that are zero for every motion.
        K: shape (rank, number of dependent columns).
        names: of the base parameters as sums, such as "upper.mcx + 0.4 lower.m".
    """

    independent: IntArray
    dependent: IntArray
    unidentifiable: IntArray
    K: FloatArray
    names: tuple[str, ...]

    @property
    def rank(self) -> int:
        """How many base parameters there are."""
        return len(self.independent)

    def values(self, phi: FloatArray) -> FloatArray:
        """The base parameters beta of parameters `phi` ordered as `parameter_names`, shape
        (rank,)."""
        return phi[self.independent] + self.K @ phi[self.dependent]


def base_parameters(
    model: RobotModel,
    samples: int = 100,
    rng: np.random.Generator | None = None,
    tolerance: float = 1e-6,
) -> BaseParameters:
    """The base parameters of a robot, by a QR decomposition with pivoting of its regressor at
    random states.

    How parameters group depends on the kinematics, gravity and the position limits, not on the
    values of the parameters. Takes a second for a humanoid of 40 joints.

    Args:
        model: the robot.
        samples: number of states; they must give at least as many torques as there are parameters.
        rng: draws the states; seeded by default, so that the same robot gives the same answer.
        tolerance: how far a column may be from a combination of others, relative to its norm, and
            still count as dependent. Angles rounded in a URDF, such as 1.5708, make differences of
            that rounding's size.

    Raises:
        ArgumentError: too few samples, or a tolerance outside (0, 1).
    """
    if samples * model.nv < parameter_count(model) or not 0.0 < tolerance < 1.0:
        raise ArgumentError(
            f"samples is {samples} and tolerance {tolerance}; there must be at least "
            f"{-(-parameter_count(model) // max(model.nv, 1))} samples, and a tolerance between 0 "
            "and 1"
        )
    stacked = _stacked_regressor(model, samples, np.random.default_rng(0) if rng is None else rng)
    norms = np.linalg.norm(stacked, axis=0)
    moves = norms > tolerance * norms.max(initial=0.0)
    columns = np.flatnonzero(moves)
    scaled = stacked[:, columns] / norms[columns]
    chosen = _independent_columns(scaled, tolerance)
    rest = np.setdiff1d(np.arange(len(columns)), chosen)
    Q, R = np.linalg.qr(scaled[:, chosen])
    shares = np.linalg.solve(R, Q.T @ scaled[:, rest])
    independent, dependent = columns[chosen], columns[rest]
    K = shares * norms[dependent] / norms[independent, None]
    names = parameter_names(model)
    expressions = []
    for column, factors, share in zip(independent, K, shares, strict=True):
        terms = np.flatnonzero(np.abs(share) > tolerance)
        others = [names[dependent[k]] for k in terms]
        expressions.append(_sum(names[column], zip(factors[terms], others, strict=True)))
    return BaseParameters(independent, dependent, np.flatnonzero(~moves), K, tuple(expressions))


def _stacked_regressor(model: RobotModel, samples: int, rng: np.random.Generator) -> FloatArray:
    """The triangle R of a QR decomposition of regressors at random states, one above the other; its
    columns depend on each other in the same way."""
    ws = Workspace(model)
    count = parameter_count(model)
    regressors = np.zeros((samples, model.nv, count))
    for Y in regressors:
        v, a = rng.standard_normal((2, model.nv))
        regressor(model, ws, model.random(rng), v, a, Y)
    _, R = np.linalg.qr(regressors.reshape(samples * model.nv, count))
    return R


def _independent_columns(matrix: FloatArray, tolerance: float) -> IntArray:
    """Columns that span all others, ascending, by Gram-Schmidt with pivoting. The columns of
    `matrix` have length 1."""
    remainders = matrix.T.copy()  # of each column, less its share along those chosen
    chosen: list[int] = []
    while len(chosen) < len(remainders):
        lengths = np.linalg.norm(remainders, axis=1)
        if lengths.max() < tolerance:
            break
        pivot = int(np.argmax(lengths >= _PIVOT * lengths.max()))
        direction = remainders[pivot] / lengths[pivot]
        remainders -= np.outer(remainders @ direction, direction)
        chosen.append(pivot)
    return np.array(sorted(chosen), dtype=np.int64)


def _sum(first: str, terms: Iterable[tuple[float, str]]) -> str:
    text = first
    for factor, name in terms:
        size = f"{abs(factor):.4g} "
        text += f" {'-' if factor < 0.0 else '+'} {'' if size == '1 ' else size}{name}"
    return text
