"""Compiled robots: a control tick, a million poses, and a loop of one's own in Numba."""

import time
from pathlib import Path

import numba
import numpy as np

from rnea_control.compiled import Order, compile_robot
from rnea_control.model import RobotModel

model = RobotModel.from_urdf_file(Path(__file__).parents[1] / "urdf" / "seven_axis_arm.urdf")
compiled = compile_robot(model, base_parameters=True)
rng = np.random.default_rng(0)

# In a control loop: arrays that stay, a call without arguments.
q, v, a, tau = np.full(7, 0.5), np.ones(7), np.zeros(7), np.zeros(7)
torque = compiled.bind("rnea", q, v, a, tau)
print("torques:", " ".join(f"{each:.4f}" for each in torque()))

# In bulk: the largest holding torque of each joint over a million poses.
N = 1_000_000
poses = rng.uniform(model.lower[:, None], model.upper[:, None], (7, N))
holding = compiled.batch("gravity", poses, order=Order.entry_major)
begin = time.perf_counter()
compiled.batch("gravity", poses, out=holding, order=Order.entry_major)
elapsed = time.perf_counter() - begin
print("most to hold:", " ".join(f"{each:.1f}" for each in np.abs(holding).max(axis=1)))
print(f"{N / elapsed / 1e6:.0f} million poses a second")

# In Numba: how far joint 2 leans, arm stretched, before it takes 40 Nm to hold.
gravity = compiled.function("gravity")


@numba.njit
def lean(q, tau, bodies):
    while abs(tau[1]) < 40.0 and q[1] < 2.0:
        q[1] += 1e-3
        gravity(q.ctypes, bodies.ctypes, tau.ctypes)
    return q[1]


print(f"joint 2 leans by {lean(np.zeros(7), np.zeros(7), model.bodies):.3f} rad")
