"""A quadruped stands on four feet: joint torques and ground forces, computed in two ways."""

import numpy as np

from rnea_control.analysis.constraints import (
    Constraint,
    constrained_inverse_dynamics,
    constraint_jacobian,
)
from rnea_control.dynamics import Workspace, rnea, world_to_link_force
from rnea_control.model import Joint, RobotModel, pseudo_inertia

joints, inertias = [], {"trunk": pseudo_inertia(8.0, np.zeros(3), np.diag([0.05, 0.2, 0.2]))}
leg = pseudo_inertia(0.4, np.array([0.0, 0.0, -0.1]), np.diag([1e-3, 1e-3, 1e-4]))
for name, x, y in (("LF", 0.3, 0.2), ("RF", 0.3, -0.2), ("LH", -0.3, 0.2), ("RH", -0.3, -0.2)):
    hip, thigh, shank, foot = (f"{name}_{part}" for part in ("hip", "thigh", "shank", "foot"))
    joints += [
        Joint(hip, "revolute", "trunk", thigh, translation=(x, y, 0), axis=(0, 1, 0)),
        Joint(f"{name}_knee", "revolute", thigh, shank, translation=(0, 0, -0.2), axis=(0, 1, 0)),
        Joint(f"{name}_tip", "fixed", shank, foot, translation=(0, 0, -0.2)),
    ]
    inertias |= {thigh: leg, shank: leg}
model = RobotModel.from_joints("quadruped", joints, inertias, floating_base=True)
ws, rest = Workspace(model), np.zeros(model.nv)
q = model.neutral()
q[7::2], q[8::2] = 0.6, -1.2  # hips and knees

# The wrench that would have to hold the base if there were no ground forces.
print("base wrench in the air", np.round(rnea(model, ws, q, rest, rest, rest.copy())[:6], 2))

feet = [Constraint(link) for link in model.link_names if link.endswith("foot")]
driven = model.joint_names[1:]
tau, forces = constrained_inverse_dynamics(model, ws, q, rest, rest, feet, driven)
print("hip and knee torques", np.round(tau[6:], 2))
print("ground forces\n", np.round(forces.reshape(4, 3), 2))
print("their sum", np.round(forces.reshape(4, 3).sum(axis=0), 2), "weight", model.total_mass * 9.81)

# The same forces as if measured: the base wrench is then zero.
external = np.zeros((len(model.link_names), 6))
J = constraint_jacobian(model, ws, q, feet)
print("J^T f on the base   ", np.round((J.T @ forces)[:6], 2))
for foot, force in zip(feet, forces.reshape(4, 3), strict=True):
    at_origin = np.zeros(6)
    world_to_link_force(model, ws, q, foot.link, np.array([*force, 0, 0, 0]), at_origin)
    external[model.link_names.index(foot.link), :3] = at_origin[:3]
print("base wrench standing", np.round(rnea(model, ws, q, rest, rest, rest, external)[:6], 10))
