"""Gait analysis: forces and moments of ankle and knee from motion and ground reaction."""

import numpy as np

from rnea_control.dynamics import Workspace, joint_wrenches, world_to_link_force
from rnea_control.model import Joint, RobotModel, pseudo_inertia

# A shank that moves freely in the laboratory, and a foot on it; lengths and masses of an adult.
model = RobotModel.from_joints(
    "leg",
    [
        Joint("knee", "floating", "laboratory", "shank"),
        Joint("ankle", "spherical", "shank", "foot", translation=(0, 0, -0.42)),
    ],
    {
        "shank": pseudo_inertia(3.5, np.array([0, 0, -0.18]), np.diag([0.05, 0.05, 0.006])),
        "foot": pseudo_inertia(1.1, np.array([0.06, 0, -0.04]), np.diag([0.002, 0.005, 0.005])),
    },
)
ws = Workspace(model)

# One instant of stance: pose, velocities and accelerations as motion capture gives them.
q = model.neutral()
q[:3] = 0.05, 0.0, 0.50  # the knee
v = np.zeros(model.nv)
a = np.zeros(model.nv)
v[4], a[4] = 1.5, 4.0  # the shank pitches forward, about its y axis
v[7] = -1.5  # and the foot stays flat
a[7] = -4.0

# The force plate: a force at the center of pressure, in the laboratory.
force, pressure = np.array([60.0, -15.0, 780.0]), np.array([0.12, 0.01, 0.0])
plate = np.concatenate([force, np.cross(pressure, force)])
external = np.zeros((len(model.link_names), 6))
foot = external[model.link_names.index("foot")]
world_to_link_force(model, ws, q, "foot", plate, foot)

wrenches = joint_wrenches(model, ws, q, v, a, np.zeros((3, 6)), external)
print("on the distal segment, in its axes     force x, y, z [N]         moment x, y, z [Nm]")
for name, wrench in (("ankle", wrenches[2]), ("knee", wrenches[1])):
    print(f"{name:6}", " " * 27, np.round(wrench[:3], 1), np.round(wrench[3:], 2))
