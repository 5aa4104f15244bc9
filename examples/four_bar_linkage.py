"""A closed loop: the crank torque of a four-bar linkage, with the bearing force of its last pin."""

import math

import numpy as np

from rnea_control.analysis.constraints import (
    Constraint,
    constrained_inverse_dynamics,
    constraint_bias,
    constraint_jacobian,
)
from rnea_control.dynamics import Workspace
from rnea_control.model import Joint, RobotModel, pseudo_inertia

UP = (0, -1, 0)  # positive angles turn x towards z
bar = pseudo_inertia(1.0, np.array([0.15, 0.0, 0.0]), np.diag([0.0, 0.01, 0.01]))
model = RobotModel.from_joints(
    "four_bar",
    [
        Joint("crank", "continuous", "ground", "crank_bar", axis=UP),
        Joint(
            "coupler", "continuous", "crank_bar", "coupler_bar", translation=(0.2, 0, 0), axis=UP
        ),
        Joint("rocker", "continuous", "ground", "rocker_bar", translation=(0.5, 0, 0), axis=UP),
    ],
    {"crank_bar": bar, "coupler_bar": bar, "rocker_bar": bar},
)
ws = Workspace(model)
ends = np.array([0.5, 0, 0]), np.array([0.4, 0, 0])
loop = [Constraint("coupler_bar", ends[0], "rocker_bar", ends[1])]


def closed(angle: float) -> np.ndarray:
    """Coupler and rocker angles by the law of cosines."""
    x, z = 0.5 - 0.2 * math.cos(angle), -0.2 * math.sin(angle)  # from crank pin to rocker pivot
    reach, towards = math.hypot(x, z), math.atan2(z, x)
    at_crank = math.acos((0.5**2 + reach**2 - 0.4**2) / (2 * 0.5 * reach))
    at_rocker = math.acos((0.4**2 + reach**2 - 0.5**2) / (2 * 0.4 * reach))
    return np.array([angle, towards + at_crank - angle, towards + math.pi - at_rocker])


print("crank [deg]   torque [Nm]   pin force [N]")
for degrees in range(0, 360, 45):
    q = closed(math.radians(degrees))
    # The crank turns at 2 rad/s; the loop gives the other rates and accelerations.
    J = constraint_jacobian(model, ws, q, loop)
    v = np.append(2.0, np.linalg.lstsq(J[:, 1:], -2.0 * J[:, 0], rcond=None)[0])
    bias = constraint_bias(model, ws, q, v, loop)
    a = np.append(0.0, np.linalg.lstsq(J[:, 1:], -bias, rcond=None)[0])
    tau, force = constrained_inverse_dynamics(model, ws, q, v, a, loop, ["crank"])
    print(f"{degrees:11} {tau[0]:13.3f} {np.linalg.norm(force):15.2f}")
