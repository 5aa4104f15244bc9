"""The algorithms of rigid-body dynamics over a `RobotModel` and a `Workspace`. No ROS, no time, no
gains.

Every algorithm has one shape: model, workspace, inputs, output last; the output is filled and
returned, and nothing is allocated.
"""

from rnea_control.dynamics.aba import aba
from rnea_control.dynamics.crba import crba
from rnea_control.dynamics.forward_dynamics import forward_dynamics
from rnea_control.dynamics.friction import friction
from rnea_control.dynamics.gravity import gravity
from rnea_control.dynamics.inverse_dynamics import inverse_dynamics
from rnea_control.dynamics.nonlinear_effects import nonlinear_effects
from rnea_control.dynamics.rnea import rnea
from rnea_control.dynamics.workspace import Workspace

__all__ = [
    "Workspace",
    "aba",
    "crba",
    "forward_dynamics",
    "friction",
    "gravity",
    "inverse_dynamics",
    "nonlinear_effects",
    "rnea",
]
