"""`Moment`: what the page shows of one moment; `Source`: where moments come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from viser import GuiApi

from rnea_control.array_types import FloatArray
from rnea_control.client.arm import ModeAndReason, Report
from rnea_control.model import RobotModel


@dataclass(frozen=True)
class Moment:
    """Content of the page at one moment; arrays in the order of the joints, NaN where a value is
    not known."""

    time: float  # of the measurement, by the clock of the hardware [s]
    age: float  # time since the measurement [s]
    positions: FloatArray  # shape (nv,), [rad] or [m]
    velocities: FloatArray  # shape (nv,), [rad/s] or [m/s]
    efforts: FloatArray  # measured, shape (nv,), [Nm] or [N]
    desired: FloatArray  # desired positions, shape (nv,), [rad] or [m]
    # Rows as `control.controller_state.TERMS`, shape (len(TERMS), nv), [Nm] or [N].
    torque_terms: FloatArray
    external_torques: FloatArray  # shape (nv,), [Nm] or [N]
    mode: ModeAndReason  # of the controller
    report: Report  # of the controller on /diagnostics


class Source(Protocol):
    """Where moments come from: a running controller, or a recording.

    Attributes:
        model: model of the arm.
        description: URDF of the arm.
        joint_names: joints, in the order of all arrays.
    """

    model: RobotModel
    description: str
    joint_names: tuple[str, ...]

    def moment(self) -> Moment | None:
        """The newest moment; None while there is none."""


@runtime_checkable
class Played(Protocol):
    """A source that is played, with elements of its own."""

    def controls(self, gui: GuiApi) -> None:
        """Adds the elements to a page."""
