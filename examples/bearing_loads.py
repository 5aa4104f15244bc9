"""Bearing loads of an arm: the largest force and moment at each joint in a fast motion."""

import math
from pathlib import Path

import numpy as np

from rnea_control.dynamics import Workspace, joint_wrenches
from rnea_control.model import RobotModel

URDF = Path(__file__).parents[1] / "urdf" / "seven_axis_arm.urdf"
model = RobotModel.from_urdf_file(URDF)
model.set_payload(model.child_links[-1], 3.0, (0.0, 0.0, 0.1))
ws = Workspace(model)
wrenches = np.zeros((1 + len(model.joint_names), 6))
largest = np.zeros((len(wrenches), 2))

# Every joint swings 0.5 rad to both sides of the middle of its range, once a second.
middle = 0.5 * (np.maximum(model.lower, -math.pi) + np.minimum(model.upper, math.pi))
rate = 2.0 * math.pi
for t in np.linspace(0.0, 1.0, 201):
    q = middle + 0.5 * math.sin(rate * t)
    v = np.full(model.nv, 0.5 * rate * math.cos(rate * t))
    a = np.full(model.nv, -0.5 * rate**2 * math.sin(rate * t))
    joint_wrenches(model, ws, q, v, a, wrenches)
    sizes = np.linalg.norm(wrenches.reshape(-1, 2, 3), axis=2)
    np.maximum(largest, sizes, out=largest)

print(f"{'':12} force [N]  moment [Nm]   in the link's frame, about its origin")
for name, (force, moment) in zip(("base", *model.joint_names), largest, strict=True):
    print(f"{name:12} {force:9.1f}  {moment:11.1f}")
