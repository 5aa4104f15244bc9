r"""Torques of a motion as linear equations in the base parameters, block by block.

Each joint j has the equations tau_j = Y_j beta + noise, whose normal equations are

.. math:: G_j = \sum_k w_{kj} Y_{kj}^T Y_{kj}, \qquad b_j = \sum_k w_{kj} Y_{kj}^T \tau_{kj}

They are kept separately for each joint, so that the joints can be weighted afterwards. Memory is
bounded: at most one block of regressors is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.compiled import CompiledRobot, compile_robot
from rnea_control.dynamics.regressor import parameter_count
from rnea_control.identification.motion import Motion
from rnea_control.model import RobotModel

BLOCK = 2048  # number of samples in a block

# Function for additional columns, shape (samples, nv, columns), from a range of samples and their
# regressors.
MoreColumns = Callable[[slice, FloatArray], FloatArray]
EVERY = (slice(None),)


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Normal equations of each joint."""

    G: FloatArray  # shape (nv, columns, columns)
    b: FloatArray  # shape (nv, columns)
    power: FloatArray  # sums of w tau^2, shape (nv,)
    samples: FloatArray  # sums of w, shape (nv,)

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
    """Equations of a robot along a motion."""

    robot: CompiledRobot  # the robot by `identified_robot`
    columns: IntArray  # unknown columns of its regressor, such as those of the base parameters
    motion: Motion
    more: tuple[MoreColumns, ...] = ()  # functions for the columns that follow

    def normal(
        self, parts: Iterable[slice] = EVERY, outlying: tuple[FloatArray, FloatArray] | None = None
    ) -> NormalEquations:
        """Normal equations of the torques that are True in `motion.counts`.

        Args:
            parts: ranges of samples.
            outlying: parameters, and the size of each joint's residual by these parameters, shape
                (nv,), beyond which a torque has less weight by Huber's function.
        """
        joints, total = self.rows(slice(1)).shape[1:]
        G, b, felt = np.zeros((joints, total, total)), np.zeros((joints, total)), self._felt(total)
        power, samples = np.zeros((2, joints))
        for rows, Y in self._blocks(parts):
            tau, w = self.motion.effort[rows], self.motion.counts[rows].astype(np.float64)
            if outlying is not None:
                beta, usual = outlying
                w *= np.minimum(usual / np.maximum(np.abs(tau - Y @ beta), 1e-300), 1.0)
            root = np.sqrt(w)
            for j, columns in enumerate(felt):
                own = Y[:, j, columns] * root[:, j, None]
                G[j][np.ix_(columns, columns)] += own.T @ own
                b[j, columns] += (root[:, j] * tau[:, j]) @ own
            power += (w * tau**2).sum(axis=0)
            samples += w.sum(axis=0)
        return NormalEquations(G, b, power, samples)

    def predicted(self, beta: FloatArray, parts: Iterable[slice] = EVERY) -> FloatArray:
        """Torques by parameters of all columns, shape (samples, nv)."""
        return np.concatenate([Y @ beta for _, Y in self._blocks(parts)])

    def rows(self, part: slice) -> FloatArray:
        """Equations of a range of samples, shape (samples, nv, columns); the range may have a
        step."""
        return np.concatenate([Y for _, Y in self._blocks((part,))])

    def _felt(self, total: int) -> list[IntArray]:
        """Columns that affect each joint, by a random state: the columns of the bodies that the
        joint carries, and all columns after those of the regressor."""
        model = self.robot.model
        state = np.random.default_rng(0).standard_normal((3, 1, model.nv))
        (Y,) = self.robot.batch("regressor", *state)
        beside = np.arange(len(self.columns), total)
        return [np.append(np.flatnonzero(row[self.columns]), beside) for row in Y]

    def _blocks(self, parts: Iterable[slice]) -> Iterator[tuple[slice, FloatArray]]:
        """Ranges of samples with their equations."""
        motion, model = self.motion, self.robot.model
        memory = np.empty((BLOCK, model.nv, parameter_count(model)))
        for part in parts:
            every = range(len(motion.time))[part]
            for begin in range(0, len(every), BLOCK):
                block = every[begin : begin + BLOCK]
                rows = slice(block.start, block.stop, block.step)
                arrays = (np.ascontiguousarray(x[rows]) for x in (motion.q, motion.v, motion.a))
                Y = self.robot.batch("regressor", *arrays, out=memory[: len(block)])
                more = [columns(rows, Y) for columns in self.more]
                yield rows, np.concatenate([Y[:, :, self.columns], *more], axis=2)


def identified_robot(model: RobotModel) -> CompiledRobot:
    """Compiled regressor of a copy of the robot; the copy's gravity may be changed."""
    return compile_robot(model.copy(), variable=("gravity",))
