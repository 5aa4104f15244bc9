"""The algorithms of rigid-body dynamics over a `RobotModel` and a `Workspace`. No ROS, no time, no
gains.

Every algorithm has one shape: model, workspace, inputs, output last; the output is filled and
returned, and nothing is allocated.
"""

from rnea_control.dynamics.aba import aba
from rnea_control.dynamics.batch import inverse_dynamics_batch
from rnea_control.dynamics.configuration import difference, integrate
from rnea_control.dynamics.coriolis import coriolis_matrix, passivity_torque
from rnea_control.dynamics.crba import crba
from rnea_control.dynamics.energy import center_of_mass, kinetic_energy, potential_energy
from rnea_control.dynamics.forward_dynamics import forward_dynamics
from rnea_control.dynamics.forward_kinematics import forward_kinematics
from rnea_control.dynamics.friction import friction
from rnea_control.dynamics.gravity import gravity
from rnea_control.dynamics.inverse_dynamics import inverse_dynamics
from rnea_control.dynamics.jacobian import jacobian, link_acceleration, world_to_link_force
from rnea_control.dynamics.joint_wrenches import joint_wrenches
from rnea_control.dynamics.nonlinear_effects import nonlinear_effects
from rnea_control.dynamics.regressor import inertial_parameters, parameter_names, regressor
from rnea_control.dynamics.rnea import rnea
from rnea_control.dynamics.static_torque import static_torque
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
    "gravity",
    "inertial_parameters",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_batch",
    "jacobian",
    "joint_wrenches",
    "kinetic_energy",
    "link_acceleration",
    "nonlinear_effects",
    "parameter_names",
    "passivity_torque",
    "potential_energy",
    "regressor",
    "rnea",
    "static_torque",
    "world_to_link_force",
]
