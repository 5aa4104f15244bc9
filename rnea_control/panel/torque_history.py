"""`TorqueHistory`: torques and errors of the last minutes, in memory of a fixed size."""

from __future__ import annotations

import math

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.controller_state import TERMS
from rnea_control.model import RobotModel
from rnea_control.panel.moment import Moment

GAP = 0.5  # time between two moments after which a line is broken [s]
QUANTITIES = (
    len(TERMS) + 4
)  # numbers of a joint: terms, effort, error, velocity, unexplained torque
ROWS = {name: k for k, name in enumerate(TERMS)}


def unexplained(terms: FloatArray, external: FloatArray) -> FloatArray:
    """Torque that no term of the model explains, [Nm] or [N], shape (..., nv): feedback and
    disturbance observer; where they are not known, the external torque of the momentum observer
    with the other sign. At rest it holds what the model lacks.

    Args:
        terms: shape (..., len(TERMS), nv), [Nm] or [N].
        external: external torques, shape (..., nv), [Nm] or [N].
    """
    found = terms[..., ROWS["feedback"], :] + terms[..., ROWS["disturbance"], :]
    return np.where(np.isfinite(found), found, -external)


def total_torque(terms: FloatArray) -> FloatArray:
    """Sum of the terms that are known, shape (..., nv), [Nm] or [N]; NaN if none is.

    Args:
        terms: shape (..., len(TERMS), nv), [Nm] or [N].
    """
    known = np.isfinite(terms)
    total = np.where(known, terms, 0.0).sum(axis=-2)
    return np.where(known.any(axis=-2), total, math.nan)


def position_error(model: RobotModel, moment: Moment) -> FloatArray:
    """Desired minus measured position, for continuous joints the shortest way, shape (nv,), [rad]
    or [m]."""
    error = moment.desired - moment.positions
    turning = [kind == "continuous" for kind in model.joint_types]
    return np.where(turning, (error + math.pi) % (2.0 * math.pi) - math.pi, error)


class TorqueHistory:
    """Torques and errors of the last minutes.

    Args:
        model: model of the arm.
        samples: number of moments that are kept.

    Attributes:
        newest: time of the newest moment, by the clock of the hardware [s]; NaN before the first.
    """

    def __init__(self, model: RobotModel, samples: int) -> None:
        self._model = model
        self._rows = np.full((samples, 1 + QUANTITIES * model.nv), math.nan)  # time first
        self._count = 0  # number of rows that were ever written
        self.newest = math.nan

    def add(self, moment: Moment) -> bool:
        """Keeps a moment; returns False for a moment that is known already. A time before the
        newest one begins anew."""
        if moment.time == self.newest:
            return False
        if moment.time < self.newest:
            self._rows[:], self._count = math.nan, 0
        elif moment.time - self.newest > GAP:
            self._append(0.5 * (moment.time + self.newest), math.nan)
        self.newest = moment.time
        error = position_error(self._model, moment)
        lacking = unexplained(moment.torque_terms, moment.external_torques)
        quantities = (moment.torque_terms, moment.efforts, error, moment.velocities, lacking)
        self._append(moment.time, np.vstack(quantities).ravel())
        return True

    def _append(self, time: float, numbers: FloatArray | float) -> None:
        row = self._rows[self._count % len(self._rows)]
        row[0], row[1:] = time, numbers
        self._count += 1

    def window(self, end: float, seconds: float) -> Window:
        """Moments of the last `seconds` before `end` [s], oldest first."""
        size = len(self._rows)
        rows = np.roll(self._rows, -(self._count % size), axis=0)[size - min(self._count, size) :]
        first, last = np.searchsorted(rows[:, 0], (end - seconds, end), side="right")
        return Window(rows[first:last])


class Window:
    """Moments of a period, oldest first; NaN where the period has a gap.

    Attributes:
        time: by the clock of the hardware, shape (n,), [s].
        terms: shape (n, len(TERMS), nv), [Nm] or [N].
        efforts: measured, shape (n, nv), [Nm] or [N].
        errors: desired minus measured position, shape (n, nv), [rad] or [m].
        velocities: shape (n, nv), [rad/s] or [m/s].
        lacking: torque that no term of the model explains, shape (n, nv), [Nm] or [N].
    """

    def __init__(self, rows: FloatArray) -> None:
        self.time = rows[:, 0]
        blocks = rows[:, 1:].reshape(len(rows), QUANTITIES, -1)
        self.terms, rest = blocks[:, : len(TERMS)], blocks[:, len(TERMS) :]
        self.efforts, self.errors, self.velocities, self.lacking = (rest[:, k] for k in range(4))
