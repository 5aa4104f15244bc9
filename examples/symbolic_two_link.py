"""The equations of motion of a planar arm of two links as formulas, in symbols and in numbers."""

import numpy as np
import sympy

from rnea_control.analysis.symbolic import symbolic_dynamics
from rnea_control.dynamics import Workspace, rnea
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

# Masses, lengths and inertias about the mass centers as symbols; Ixx and Izz do not matter here.
m1, m2, r1, r2, l1, I1, I2, g = sympy.symbols("m1 m2 r1 r2 l1 I1 I2 g", positive=True)
s = symbolic_dynamics(
    model,
    parameters={
        "upper": [m1, m1 * r1, 0, 0, 0, 0, 0, I1 + m1 * r1**2, 0, 0],
        "lower": [m2, m2 * r2, 0, 0, 0, 0, 0, I2 + m2 * r2**2, 0, 0],
    },
    translations={"elbow": [l1, 0, 0]},
    gravity=[0, 0, -g],
)
for name, matrix in (("M(q)", s.M), ("C(q, v)", s.C), ("g(q)", s.g)):
    print(f"{name} =")
    sympy.pprint(matrix, use_unicode=False, wrap_line=False)

# The same with the model's numbers, as a function of arrays, beside the recursion.
in_numbers = symbolic_dynamics(model)
print("\ng(q) in numbers:", list(sympy.N(in_numbers.g, 5)))
torque = sympy.lambdify((in_numbers.q, in_numbers.v, in_numbers.a), in_numbers.tau, cse=True)
q, v, a = np.array([0.3, 0.8]), np.array([1.0, -0.5]), np.array([2.0, 0.0])
print("formula:  ", torque(q, v, a).ravel())
print("recursion:", rnea(model, Workspace(model), q, v, a, np.zeros(2)))
