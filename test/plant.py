"""An arm that obeys forward dynamics, for closed loops without ROS and without MuJoCo."""

from __future__ import annotations

import numpy as np

from rnea_control.dynamics import Workspace, forward_dynamics
from rnea_control.model import RobotModel

# Of hard stops: how far an arm dents them by its own weight and how long they ring is no matter.
STOP_STIFFNESS, STOP_DAMPING = 2.0e4, 1.0e2


class Plant:
    """An arm of which all is known.

    Args:
        model: the robot as it is, whatever its controller takes it for.
        q: where it begins, at rest.

    Attributes:
        q, v: its state.
        push: external torques, [Nm] or [N].
        lower, upper: where hard stops stand, [rad] or [m].
    """

    def __init__(self, model: RobotModel, q: np.ndarray) -> None:
        self.q, self.v = np.array(q, dtype=float), np.zeros(model.nv)
        self.push = np.zeros(model.nv)
        self.lower, self.upper = np.full(model.nv, -np.inf), np.full(model.nv, np.inf)
        self.become(model)

    def become(self, model: RobotModel) -> None:
        """Goes on as another robot from the same state: it picks up, or drops, a payload."""
        self._model, self._workspace = model, Workspace(model)

    def step(self, tau: np.ndarray, dt: float = 0.001) -> None:
        """Lets `dt` pass with the torques `tau`, by the midpoint method."""
        middle = self.v + 0.5 * dt * self._acceleration(self.q, self.v, tau)
        a = self._acceleration(self.q + 0.5 * dt * self.v, middle, tau)
        self.q, self.v = self.q + dt * middle, self.v + dt * a

    def _acceleration(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        torque = tau + self.push
        if (q > self.upper).any() or (q < self.lower).any():
            dent = np.maximum(q - self.upper, 0.0) - np.maximum(self.lower - q, 0.0)
            torque -= STOP_STIFFNESS * dent + STOP_DAMPING * v * (dent != 0.0)
        return forward_dynamics(self._model, self._workspace, q, v, torque, np.zeros(len(v)))
