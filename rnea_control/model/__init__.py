"""The robot as numbers: URDF in, `RobotModel` out. No ROS, no time, no gains."""

from rnea_control.exceptions import RobotModelError, RobotModelWarning
from rnea_control.model.joints import Joint, Mimic
from rnea_control.model.rigid_body import pseudo_inertia
from rnea_control.model.robot_model import RobotModel

__all__ = ["Joint", "Mimic", "RobotModel", "RobotModelError", "RobotModelWarning", "pseudo_inertia"]
