"""`SensorNoise`: what the simulated arm's sensors add to the state that they measure."""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import SimulationError
from rnea_control.model import RobotModel


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
