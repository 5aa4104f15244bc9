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

# More columns for the samples of a range, shape (samples, nv, columns), by these samples and their
# regressors.
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


@dataclass(frozen=True, eq=False)
class TorqueEquations:
    """The equations of a robot along a motion.

    Attributes:
        robot: compiled by `identified_robot`.
        columns: of its regressor that the equations have, such as those of the base parameters.
        motion: of the robot.
        more: what gives the columns after those.
    """

    robot: CompiledRobot
    columns: IntArray
    motion: Motion
    more: tuple[MoreColumns, ...] = ()

    def normal(self, weight: FloatArray | None = None) -> NormalEquations:
        """The normal equations.

        Args:
            weight: of each torque, shape (samples, nv); those that `motion.counts` leaves out get
                none. 1 by default.
        """
        counts = self.motion.counts.astype(np.float64)
        w = counts if weight is None else counts * weight
        tau, (joints, total) = self.motion.effort, self.rows(slice(1)).shape[1:]
        G, b, felt = np.zeros((joints, total, total)), np.zeros((joints, total)), self._felt()
        beside = np.arange(len(self.columns), total)
        for rows, Y, more in self._blocks():
            for j in range(joints):
                own = np.concatenate([Y[:, j, self.columns[felt[j]]], more[:, j]], axis=1)
                by_weight = own * w[rows, j, None]
                where = np.append(felt[j], beside)
                G[j][np.ix_(where, where)] += own.T @ by_weight
                b[j, where] += by_weight.T @ tau[rows, j]
        return NormalEquations(G, b, (w * tau**2).sum(axis=0), w.sum(axis=0))

    def predicted(self, beta: FloatArray) -> FloatArray:
        """The torques by parameters of all columns, shape (samples, nv)."""
        rank = len(self.columns)
        phi = np.zeros(parameter_count(self.robot.model))
        phi[self.columns] = beta[:rank]
        tau = np.empty_like(self.motion.effort)
        for rows, Y, more in self._blocks():
            own = Y.reshape(-1, len(phi)) @ phi  # one product of BLAS
            tau[rows] = own.reshape(Y.shape[:2]) + more @ beta[rank:]
        return tau

    def rows(self, part: slice) -> FloatArray:
        """The equations of a range of samples, which may have a step, shape (samples, nv,
        columns)."""
        blocks = self._blocks(part)
        return np.concatenate(
            [np.concatenate([Y[:, :, self.columns], more], axis=2) for _, Y, more in blocks]
        )

    def _felt(self) -> list[IntArray]:
        """Which of `columns` each joint feels, those of what it carries: by a state at random."""
        model = self.robot.model
        state = np.random.default_rng(0).standard_normal((3, 1, model.nv))
        (Y,) = self.robot.batch("regressor", *state)
        return [np.flatnonzero(row[self.columns]) for row in Y]

    def _blocks(self, part: slice = slice(None)) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Ranges of samples with their regressors, whose memory is used again, and `more`."""
        motion, model = self.motion, self.robot.model
        every = range(len(motion.time))[part]
        memory = np.empty((min(BLOCK, len(every)), model.nv, parameter_count(model)))
        for begin in range(0, len(every), BLOCK):
            block = every[begin : begin + BLOCK]
            rows = slice(block.start, block.stop, block.step)
            arrays = [np.ascontiguousarray(each[rows]) for each in (motion.q, motion.v, motion.a)]
            Y = self.robot.batch("regressor", *arrays, out=memory[: len(block)])
            none = np.empty((len(block), model.nv, 0))
            yield rows, Y, np.concatenate([none, *(more(rows, Y) for more in self.more)], axis=2)


def identified_robot(model: RobotModel) -> CompiledRobot:
    """A robot's code for its regressors. It is of a copy, whose gravity may be changed."""
    return compile_robot(model.copy(), variable=("gravity",))
