"""What lies between physics and ROS interface: ros2_control's effort controller, sensor noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import SimulationError
from rnea_control.model import RobotModel


class EffortController:
    """Holds the last commanded torque of each joint of `model`, zero at first.

    As a ForwardCommandController with effort interfaces under a real controller_manager.
    Measured: an empty message changes nothing; one with a number that is not finite is dropped;
    one of the wrong length deactivates the controller until somebody activates it again;
    without commands the last torque is held for ever. The controller_manager then limits the
    effort: to the URDF's limit, and beyond a position or velocity limit to the direction that
    leads back. Unlike there a velocity limit of 0 is none, as for the controller and its model.

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


class SensorNoise:
    """White Gaussian noise on positions, velocities and efforts, each from a generator of its own:
    the same seed gives the same noise of one, whatever the others are.

    Args:
        model: the robot.
        position: standard deviation, [rad] or [m].
        velocity: standard deviation, [rad/s] or [m/s].
        effort: standard deviation as a share of each joint's effort limit.
        seed: of the generators, not negative.

    Raises:
        SimulationError: noise of the effort of a joint that has no effort limit.
    """

    def __init__(
        self, model: RobotModel, position: float, velocity: float, effort: float, seed: int
    ) -> None:
        unlimited = np.flatnonzero(np.isinf(model.effort_limit)) if effort else ()
        if len(unlimited):
            raise SimulationError(
                f"effort_noise is {effort:g} of the effort limit, and joint "
                f"{model.joint_names[unlimited[0]]!r} has none; give it one in the URDF, <limit "
                "effort=...>, or leave effort_noise at 0"
            )
        share = model.effort_limit if effort else np.zeros(model.nv)
        one = np.ones(model.nv)
        self._deviations = (position * one, velocity * one, effort * share)
        seeds = np.random.SeedSequence(seed).spawn(len(self._deviations))
        self._generators = [np.random.default_rng(child) for child in seeds]
        self._noise = tuple(np.zeros(model.nv) for _ in seeds)
        self._state = -1

    def added(
        self, state: int, q: FloatArray, v: FloatArray, effort: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The state as measured.

        Args:
            state: its number; a state that is measured again has the same noise.
            q, v, effort: as they are, shape (nv,).
        """
        if state != self._state:
            self._state = state
            self._noise = tuple(
                deviation * generator.standard_normal(len(deviation))
                for deviation, generator in zip(self._deviations, self._generators, strict=True)
            )
        of_position, of_velocity, of_effort = self._noise
        return q + of_position, v + of_velocity, effort + of_effort
