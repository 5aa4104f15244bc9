"""The recursions and terms of rigid-body dynamics, for control ticks and simulators.

Every algorithm has the same signature: model, workspace, inputs, output last. It fills and returns
the output and allocates nothing. `rnea` without external forces, `gravity` and `nonlinear_effects`
are ready after import; other algorithms compile, or load from disk, at their first call.

**Friction** is in `friction`, `inverse_dynamics` and `forward_dynamics` only. The other algorithms
are for rigid bodies and rotors without friction.
"""

from rnea_control.dynamics.aba import aba
from rnea_control.dynamics.coriolis import coriolis_matrix, passivity_torque
from rnea_control.dynamics.crba import crba
from rnea_control.dynamics.energy_and_momentum import (
    center_of_mass,
    generalized_momentum,
    kinetic_energy,
    potential_energy,
)
from rnea_control.dynamics.friction import forward_dynamics, friction, inverse_dynamics
from rnea_control.dynamics.joint import difference, integrate
from rnea_control.dynamics.kinematics import (
    forward_kinematics,
    jacobian,
    link_acceleration,
    world_to_link_force,
)
from rnea_control.dynamics.rnea import (
    gravity,
    joint_wrenches,
    nonlinear_effects,
    rnea,
    static_torque,
)
from rnea_control.dynamics.workspace import Workspace

__all__ = [
    "Workspace",
    "aba",
    "center_of_mass",
    "coriolis_matrix",
    "crba",
    "difference",
    "forward_dynamics",
    "forward_kinematics",
    "friction",
    "generalized_momentum",
    "gravity",
    "integrate",
    "inverse_dynamics",
    "jacobian",
    "joint_wrenches",
    "kinetic_energy",
    "link_acceleration",
    "nonlinear_effects",
    "passivity_torque",
    "potential_energy",
    "rnea",
    "static_torque",
    "world_to_link_force",
]
