"""Identification: the parameters of an arm from states and torques, by least squares."""

from pathlib import Path

import numpy as np

from rnea_control.analysis import inertial_parameters, inverse_dynamics_batch, regressor
from rnea_control.analysis.base_parameters import base_parameters
from rnea_control.dynamics import Workspace
from rnea_control.model import RobotModel

URDF = Path(__file__).parents[1] / "urdf" / "seven_axis_arm.urdf"
model = RobotModel.from_urdf_file(URDF)
rng = np.random.default_rng(0)

# The "measured" robot has friction, carries a load, and its torque sensors are noisy.
real = RobotModel.from_urdf_file(URDF)
real.damping, real.friction = np.full(7, 0.4), np.full(7, 0.8)
real.set_payload(real.child_links[-1], 2.0, (0.0, 0.02, 0.1))
N = 2000
q = np.array([model.random(rng) for _ in range(N)])
v, a = rng.standard_normal((2, N, model.nv))
tau = inverse_dynamics_batch(real, q, v, a) + 0.05 * rng.standard_normal((N, model.nv))

# The torques depend only on certain combinations of the parameters: the base parameters.
base = base_parameters(model)
ws, phi = Workspace(model), inertial_parameters(model)
rows = [
    regressor(model, ws, *row, np.zeros((model.nv, len(phi)))) for row in zip(q, v, a, strict=True)
]
Y = np.concatenate(rows)[:, base.independent]
beta = np.linalg.lstsq(Y, tau.ravel(), rcond=None)[0]
truth = base.values(inertial_parameters(real))

print(f"{base.rank} base parameters of {len(phi)}; the six that differ most from the model:")
before = base.values(phi)
for k in np.argsort(-np.abs(truth - before))[:6]:
    print(f"  model {before[k]:8.4f}  found {beta[k]:8.4f}  true {truth[k]:8.4f}  {base.names[k]}")
residual = Y @ beta - tau.ravel()
print(f"root mean square of what is left: {np.sqrt(np.mean(residual**2)):.4f} Nm, noise 0.05 Nm")
