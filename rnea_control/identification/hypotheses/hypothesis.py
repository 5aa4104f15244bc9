"""Kinds of hypotheses about a recording. A hypothesis gets numbers and returns what it proposes and
its words; the search (`readings.py`) and the evidence make the numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from rnea_control.array_types import BoolArray, FloatArray, IntArray
from rnea_control.identification.consistent_parameters import ParameterSpace
from rnea_control.identification.motion import Motion
from rnea_control.identification.reading import Fit, Outlook, Proposal, Reading
from rnea_control.model import RobotModel
from rnea_control.plausibility.causes import Cause, Contribution


class Alternative(ABC):
    """Hypothesis that the efforts are to be read in another way."""

    cause: Cause

    @abstractmethod
    def proposals(self, seen: Outlook) -> Iterator[Proposal]:
        """Readings that differ from the best one so far by this cause."""

    def is_relevant(self, before: Reading, after: Reading) -> bool:
        """True if a fitted reading differs from the reading before by more than errors."""
        return True

    @abstractmethod
    def found(self, seen: Outlook, joints: BoolArray, after: Fit, part: float) -> Contribution:
        """Message of a fitted reading of these joints, which explains a part of the residual."""


class Drift(ABC):
    """Hypothesis about the whole recording, after which no other reading is searched for."""

    cause: Cause

    @abstractmethod
    def gain(self, seen: Outlook) -> float:
        """Gain in evidence; 0 if the hypothesis is not relevant."""

    @abstractmethod
    def drift(self, seen: Outlook) -> Contribution:
        """Message."""


class Signal(ABC):
    """Hypothesis that the efforts show without a model."""

    @abstractmethod
    def signal(self, model: RobotModel, motion: Motion) -> Contribution:
        """Message; without joints if it does not hold."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """Numbers about a recording for `Doubt`, and its defects that show without a model."""

    model: RobotModel
    motion: Motion
    noise: FloatArray  # standard deviation of each effort's noise, shape (nv,)
    gravity_ratio: tuple[int, float, float]  # see `TorqueEvidence.gravity_ratio`
    shown: tuple[Contribution, ...]  # causes that show without a model


class Doubt(ABC):
    """Hypothesis about the size of the efforts, reported where no other cause was found."""

    @abstractmethod
    def doubt(self, recorded: Recorded) -> Contribution:
        """Message; without joints if it does not hold."""


@dataclass(frozen=True, eq=False)
class Change:
    """Fitted change of the parameters of one hypothesis, and its torques."""

    model: RobotModel
    space: ParameterSpace
    theta: FloatArray  # change of theta; 0 for the parameters of other hypotheses
    values: FloatArray  # change of its own parameters, in the order of `columns`
    torque: FloatArray  # root mean square of the torque of the change, shape (nv,)
    joints: BoolArray  # mask of the joints that feel it, shape (nv,)
    part: float  # share of the residual that the change explains


class Difference(ABC):
    """Hypothesis that parameters of the model differ from those of the robot."""

    cause: Cause

    @abstractmethod
    def columns(self, space: ParameterSpace) -> IntArray:
        """Indices of theta."""

    @abstractmethod
    def change(self, change: Change) -> Contribution:
        """Message."""
