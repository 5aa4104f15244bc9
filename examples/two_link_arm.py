"""A planar arm of two links, made in Python, and its equations of motion term by term."""

import numpy as np

from rnea_control.dynamics import Workspace, coriolis_matrix, crba, gravity, rnea
from rnea_control.model import Joint, RobotModel, pseudo_inertia

# Two rods along x that swing in the vertical x-z plane: positive angles turn x toward -z.
rod = pseudo_inertia(1.5, np.array([0.2, 0.0, 0.0]), np.diag([0.0, 0.02, 0.02]))
model = RobotModel.from_joints(
    "two_link_arm",
    [
        Joint("shoulder", "revolute", "base", "upper", axis=(0, 1, 0)),
        Joint("elbow", "revolute", "upper", "lower", translation=(0.4, 0, 0), axis=(0, 1, 0)),
    ],
    {"upper": rod, "lower": rod},
)
ws = Workspace(model)
q, v, a = np.array([0.3, 0.8]), np.array([1.0, -0.5]), np.array([2.0, 0.0])

M = crba(model, ws, q, np.zeros((2, 2)))
C = coriolis_matrix(model, ws, q, v, np.zeros((2, 2)))
g = gravity(model, ws, q, np.zeros(2))
tau = rnea(model, ws, q, v, a, np.zeros(2))

print("mass matrix M [kg m^2]\n", M)
print("Coriolis matrix C [kg m^2/s]\n", C)
print("gravity torques g [Nm]    ", g)
print("M a + C v + g             ", M @ a + C @ v + g)
print("rnea(q, v, a)             ", tau)
