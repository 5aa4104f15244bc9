r"""The torques of a motion as linear equations in the base parameters, block by block.

Each joint j has the equations tau_j = Y_j beta + noise, whose normal equations are

.. math:: G_j = \sum_k w_{kj} Y_{kj}^T Y_{kj}, \qquad b_j = \sum_k w_{kj} Y_{kj}^T \tau_{kj}

They are kept apart by joint, so that the joints can be weighted afterwards. Memory is bounded: no
more than one block of regressors is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.compiled import CompiledRobot, compile_robot
from rnea_control.dynamics.regressor import parameter_count
from rnea_control.identification.motion import Motion
from rnea_control.model import RobotModel

# How many samples are taken at a time.
BLOCK = 2048

# More columns for the samples of a range, shape (samples, nv, columns).
MoreColumns = Callable[[slice, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Of each joint apart.

    Attributes:
        G: shape (nv, columns, columns).
        b: shape (nv, columns).
        power: sums of w tau^2, shape (nv,).
        samples: sums of w, shape (nv,).
    """

    G: FloatArray
    b: FloatArray
    power: FloatArray
    samples: FloatArray

    def weighted(self, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Information matrix and vector of all joints, with noise of these variances, shape
        (nv,)."""
        return np.tensordot(1.0 / variance, self.G, 1), (1.0 / variance) @ self.b

    def mean_square(self, beta: FloatArray) -> FloatArray:
        """Mean square of each joint's residual, shape (nv,)."""
        square = self.power - 2.0 * self.b @ beta + (self.G @ beta) @ beta
        return np.maximum(square, 0.0) / np.maximum(self.samples, 1.0)

    def __add__(self, other: NormalEquations) -> NormalEquations:
        names = ("G", "b", "power", "samples")
        return NormalEquations(*(getattr(self, name) + getattr(other, name) for name in names))


class TorqueEquations:
    """The equations of one robot.

    Args:
        model: the robot.
        columns: of the regressor that the equations have, such as those of the base parameters.
    """

    def __init__(self, model: RobotModel, columns: IntArray) -> None:
        self.model = model
        self.columns = columns
        self._robot: CompiledRobot = compile_robot(model)
        self._memory = np.empty((BLOCK, model.nv, parameter_count(model)))

    def normal(
        self,
        motion: Motion,
        weight: FloatArray | None = None,
        more: MoreColumns | None = None,
    ) -> NormalEquations:
        """The normal equations of a motion.

        Args:
            motion: of the robot.
            weight: of each torque, shape (samples, nv); those that `motion.counts` leaves out get
                none. 1 by default.
            more: gives columns after those of the base parameters.
        """
        total: NormalEquations | None = None
        for rows, Y in self._blocks(motion):
            w = motion.counts[rows].astype(np.float64)
            if weight is not None:
                w *= weight[rows]
            base = Y[:, :, self.columns]
            if more is not None:
                base = np.concatenate([base, more(rows, Y)], axis=2)
            block = _equations(base, motion.effort[rows], w)
            total = block if total is None else total + block
        assert total is not None
        return total

    def predicted(
        self, motion: Motion, beta: FloatArray, more: MoreColumns | None = None
    ) -> FloatArray:
        """The torques by base parameters, and those of `more` columns, shape (samples, nv)."""
        phi = np.zeros(self._memory.shape[2])
        rank = len(self.columns)
        phi[self.columns] = beta[:rank]
        tau = np.empty_like(motion.effort)
        for rows, Y in self._blocks(motion):
            np.matmul(Y, phi, out=tau[rows])
            if more is not None:
                tau[rows] += more(rows, Y) @ beta[rank:]
        return tau

    def rows(self, motion: Motion, part: slice, more: MoreColumns | None = None) -> FloatArray:
        """The equations of a range of samples, which may have a step, shape (samples, nv, columns);
        other arguments as of `normal`."""
        blocks = []
        for rows, Y in self._blocks(motion, part):
            base = Y[:, :, self.columns]
            blocks.append(base if more is None else np.concatenate([base, more(rows, Y)], axis=2))
        return np.concatenate(blocks)

    def _blocks(
        self, motion: Motion, part: slice | None = None
    ) -> Iterator[tuple[slice, FloatArray]]:
        every = range(len(motion.time))[part or slice(None)]
        for begin in range(0, len(every), BLOCK):
            block = every[begin : begin + BLOCK]
            rows = slice(block.start, block.stop, block.step)
            arrays = [np.ascontiguousarray(each[rows]) for each in (motion.q, motion.v, motion.a)]
            yield rows, self._robot.batch("regressor", *arrays, out=self._memory[: len(block)])


def _equations(Y: FloatArray, tau: FloatArray, weight: FloatArray) -> NormalEquations:
    _, joints, columns = Y.shape
    G, b = np.zeros((joints, columns, columns)), np.zeros((joints, columns))
    for j in range(joints):
        rows = Y[:, j]
        # A joint feels only what it carries.
        felt = np.flatnonzero(rows.any(axis=0))
        rows = rows[:, felt]
        by_weight = rows * weight[:, j, None]
        G[j][np.ix_(felt, felt)] = rows.T @ by_weight
        b[j, felt] = by_weight.T @ tau[:, j]
    return NormalEquations(G, b, (weight * tau**2).sum(axis=0), weight.sum(axis=0))
