"""The algorithms of rigid-body dynamics over a `RobotModel` and a `Workspace`. No ROS, no time, no
gains.

Every algorithm has one shape: model, workspace, inputs, output last; the output is filled and
returned, and nothing is allocated.
"""

from rnea_control.dynamics.gravity import gravity
from rnea_control.dynamics.nonlinear_effects import nonlinear_effects
from rnea_control.dynamics.rnea import rnea
from rnea_control.dynamics.workspace import Workspace

__all__ = ["Workspace", "gravity", "nonlinear_effects", "rnea"]
