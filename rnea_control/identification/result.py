"""The results of identification: `Identification`, and its test on a recording, `Residuals`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from rnea_control.analysis import BaseParameters
from rnea_control.array_types import FloatArray
from rnea_control.model import RobotModel


class Certainty(Enum):
    """How well the data determine a parameter."""

    identified = "identified"
    uncertain = "uncertain"
    unidentified = "not identified"


@dataclass(frozen=True)
class Estimate:
    """One base parameter.

    Attributes:
        name: as a sum of the robot's parameters, such as "panda_link3.mcx + 0.08 panda_link4.m".
        unit: such as "kg m".
        prior: by the URDF and the configuration.
        value: by least squares.
        deviation: standard deviation of `value`.
        certainty: in words.
    """

    name: str
    unit: str
    prior: float
    value: float
    deviation: float
    certainty: Certainty


@dataclass(frozen=True, eq=False)
class Identification:
    """The parameters of a robot from recordings.

    Attributes:
        model: the robot as described, before.
        base: how its parameters group.
        beta: base parameters by least squares, shape (base.rank,); NaN where the data say nothing.
        covariance: of `beta`, shape (base.rank, base.rank).
        estimates: the same, one for each base parameter.
        inertias: the physically consistent pseudo-inertia of each link that moves, in the link's
            frame, shape (4, 4), by name.
        armature, damping, friction, torque_offset: shape (nv,), SI units.
        noise: standard deviation of the residual, shape (nv,), [Nm] or [N].
        condition: of the weighted and scaled regressor.
        delay: by which the measured effort is later than the motion, [s].
        cutoff: of the filter, [Hz].
        samples: how many torques were used for each joint, shape (nv,).
        seconds: of motion that were used.
        notes: what was dropped, what is not identified, and what else the user should know.
        doubts: why the parameters may be wrong although they fit.
    """

    model: RobotModel
    base: BaseParameters
    beta: FloatArray
    covariance: FloatArray
    estimates: tuple[Estimate, ...]
    inertias: dict[str, FloatArray]
    armature: FloatArray
    damping: FloatArray
    friction: FloatArray
    torque_offset: FloatArray
    noise: FloatArray
    condition: float
    delay: float
    cutoff: float
    samples: FloatArray
    seconds: float
    notes: tuple[str, ...]
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Residuals:
    """Measured torques beside those of two models, on one recording.

    Attributes:
        source: the recording.
        held_out: whether it was kept from the fit.
        joints: the order of the columns.
        time: shape (samples,), [s].
        measured, before, after: torques as measured, by the robot's description and with the
            identified parameters, shape (samples, joints), [Nm] or [N]; NaN where a joint stands.
        noise: standard deviation of the measured torque about its own smooth course, which no model
            explains, shape (joints,).
    """

    source: str
    held_out: bool
    joints: tuple[str, ...]
    time: FloatArray
    measured: FloatArray
    before: FloatArray
    after: FloatArray
    noise: FloatArray

    @property
    def rms_before(self) -> FloatArray:
        """Root mean square of measured minus `before`, shape (joints,); NaN if a joint stands."""
        return _rms(self.measured - self.before)

    @property
    def rms_after(self) -> FloatArray:
        """The same of `after`."""
        return _rms(self.measured - self.after)


def _rms(differences: FloatArray) -> FloatArray:
    moving = np.isfinite(differences)
    count = moving.sum(axis=0)
    square = np.where(moving, differences, 0.0) ** 2
    return np.asarray(np.sqrt(np.where(count, square.sum(axis=0), np.nan) / np.maximum(count, 1)))
