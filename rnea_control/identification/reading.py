"""Readings of efforts, and what the evidence (`torque_evidence.py`) says about them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray, IntArray
from rnea_control.model import RobotModel


@dataclass(frozen=True, eq=False)
class Reading:
    """Hypothesis how measured efforts result from torques."""

    gravity: FloatArray  # gravity in the efforts, in the root link's frame, shape (3,), [m/s^2]
    order: IntArray  # column of the efforts that has the torque of each joint, shape (nv,)
    scale: FloatArray  # effort for a torque of 1 of each joint, shape (nv,)


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of fitting the parameters with a reading."""

    reading: Reading  # with the fitted scales
    cost: float  # cost of the module's docstring; only differences have a meaning
    theta: FloatArray  # parameters in the order of `ParameterSpace`, then a 1
    variance: FloatArray  # mean square of each joint's residual, shape (nv,)


@dataclass(frozen=True, eq=False)
class Proposal:
    """Another reading of the efforts."""

    joints: BoolArray  # mask of the joints concerned, shape (nv,)
    price: float  # cost of the choice among other readings, and of its numbers
    # One reading, or the same reading with other initial scales.
    starts: tuple[Reading, ...]
    # Number of each joint's group, shape (nv,), see `TorqueEvidence.fit`; None without scales.
    groups: IntArray | None = None
    slack: float = 0.0  # the first start whose cost is this close to the least one is used


@dataclass(frozen=True, eq=False)
class Trial:
    """A proposal with its fit."""

    joints: BoolArray  # mask of the joints concerned, shape (nv,)
    cost: float  # cost of the fit with the price of the proposal
    fit: Fit


@dataclass(frozen=True, eq=False)
class Outlook:
    """Properties of the best fit so far, for hypotheses about other readings."""

    model: RobotModel
    best: Fit
    scales: FloatArray  # see `TorqueEvidence.described`, shape (nv, nv); the same for two more
    left: FloatArray
    certainty: FloatArray
    gravity: FloatArray  # see `TorqueEvidence.gravity_of`; 0 for a reading with another gravity
    clock: tuple[float, float]  # see `TorqueEvidence.clock`
    independent: FloatArray  # number of independent torques of each joint, shape (nv,)

    @property
    def number(self) -> float:
        """Cost of one number that a hypothesis fits."""
        return 0.5 * math.log(max(self.independent.sum(), 1.0))

    def certainty_of(self, reading: Reading) -> FloatArray:
        """Certainty of each joint's own scale, shape (nv,)."""
        return np.asarray(self.certainty[np.arange(self.model.nv), reading.order])
