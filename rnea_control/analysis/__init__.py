"""Offline work on a `RobotModel`: recorded motions, regressor and base parameters, closed loops,
formulas, consistency of the inertias.

`rnea_control.analysis.symbolic` must be imported by name, as it needs SymPy.
"""

from rnea_control.analysis.base_parameters import BaseParameters, base_parameters
from rnea_control.analysis.batch import inverse_dynamics_batch
from rnea_control.analysis.consistency import physical_consistency
from rnea_control.analysis.constraints import (
    Constraint,
    constrained_forward_dynamics,
    constrained_inverse_dynamics,
    constraint_bias,
    constraint_error,
    constraint_jacobian,
)
from rnea_control.dynamics.regressor import (
    inertial_parameters,
    parameter_count,
    parameter_names,
    regressor,
)

__all__ = [
    "BaseParameters",
    "Constraint",
    "base_parameters",
    "constrained_forward_dynamics",
    "constrained_inverse_dynamics",
    "constraint_bias",
    "constraint_error",
    "constraint_jacobian",
    "inertial_parameters",
    "inverse_dynamics_batch",
    "parameter_count",
    "parameter_names",
    "physical_consistency",
    "regressor",
]
