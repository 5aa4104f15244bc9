"""Forward dynamics: a double pendulum swings freely, and its energy stays constant."""

import numpy as np

from rnea_control.dynamics import Workspace, aba, integrate, kinetic_energy, potential_energy
from rnea_control.model import Joint, RobotModel, pseudo_inertia

bob = pseudo_inertia(1.0, np.array([0.0, 0.0, -0.5]), np.zeros((3, 3)))
model = RobotModel.from_joints(
    "double_pendulum",
    [
        Joint("ball", "spherical", "ceiling", "upper"),
        Joint("hinge", "continuous", "upper", "lower", translation=(0, 0, -0.5), axis=(0, 1, 0)),
    ],
    {"upper": bob, "lower": bob},
)
# A point mass has no inertia about the line to its pivot: some armature makes up for it.
model.armature = [1e-3, 1e-3, 1e-3, 0.0]
ws, a, middle = Workspace(model), np.zeros(model.nv), np.zeros(model.nq)
no_torque = np.zeros(model.nv)
q = integrate(model, ws, model.neutral(), np.array([1.2, 0.3, 0.0, 0.4]), np.zeros(model.nq))
v = np.zeros(model.nv)

STEP = 1e-3
for k in range(3001):
    if k % 500 == 0:
        energy = kinetic_energy(model, ws, q, v) + potential_energy(model, ws, q)
        print(f"{k * STEP:3.1f} s: quaternion {np.round(q[:4], 3)}, energy {energy:.5f} J")
    # The midpoint rule; quaternions are stepped by `integrate`.
    aba(model, ws, q, v, no_torque, a)
    v_middle = v + 0.5 * STEP * a
    integrate(model, ws, q, 0.5 * STEP * v, middle)
    aba(model, ws, middle, v_middle, no_torque, a)
    integrate(model, ws, q, STEP * v_middle, q)
    v = v + STEP * a
