"""Computes a few torques without effect, so that the first real one finds code and memory ready."""

from __future__ import annotations

import numpy as np

from rnea_control.control import Controller

TICKS = 10


def warm_up(controller: Controller) -> None:
    """Steps a controller like this one from a place within its limits."""
    model = controller.model
    idle = Controller(model, controller.settings)
    position = np.clip(0.0, model.lower, model.upper)
    velocity, torque = np.zeros((2, model.nv))
    for i in range(TICKS):
        idle.start(i * 1e-3, position)
        idle.catch(i * 1e-3, position, velocity, "")
        idle.step(i * 1e-3, position, velocity, torque)
        idle.predict(i * 1e-3, torque)
        idle.holding_torque(position, torque)
