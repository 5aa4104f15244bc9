"""How a ForwardCommandController with effort interfaces, under a real controller_manager, treats
command messages.

Measured: an empty message changes nothing; one with a number that is not finite is
dropped; one of the wrong length deactivates the controller until somebody activates it again;
without commands the last torque is held for ever. The controller_manager then limits the
effort: to the URDF's limit, and beyond a position or velocity limit to the direction that leads
back. Unlike there a velocity limit of 0 is none, as for the controller and its model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.model import RobotModel


class EffortController:
    """Holds the last commanded torque of each joint of `model`, zero at first.

    Attributes:
        active: whether commands are taken.
        commanded: whether any was taken so far.
    """

    def __init__(self, model: RobotModel) -> None:
        self.active = True
        self.commanded = False
        self._model = model
        self._command = np.zeros(model.nv)

    def receive(self, values: Sequence[float]) -> str | None:
        """Takes one command message; returns what is wrong with it, or None."""
        nv = self._model.nv
        if not self.active or len(values) == 0:
            return None
        if len(values) != nv:
            self.active = False
            return (
                f"a command has {len(values)} numbers for {nv} joints; the effort controller is "
                "deactivated and holds its last torque until it is activated again"
            )
        for name, value in zip(self._model.joint_names, values, strict=True):
            if not math.isfinite(value):
                return f"a command with {value} for joint {name!r} is dropped"
        self._command[:] = values
        self.commanded = True
        return None

    def limited(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """The torque that reaches the motors at positions `q` and velocities `v`."""
        model = self._model
        low, high = -model.effort_limit, model.effort_limit.copy()
        low[((q <= model.lower) & (v <= 0.0)) | (v < -model.velocity_limit)] = 0.0
        high[((q >= model.upper) & (v >= 0.0)) | (v > model.velocity_limit)] = 0.0
        return np.clip(self._command, low, high)
