"""Trajectories, control laws, the controller and what keeps it safe; no ROS: arrays and seconds."""

from rnea_control.control.controller import Controller
from rnea_control.control.controller_state import ControllerState
from rnea_control.control.laws import ControlLaw
from rnea_control.control.mode import Mode
from rnea_control.control.motion import Ending, EndKind, Motion, MotionRequest
from rnea_control.control.planner import Plan
from rnea_control.control.settings import (
    ControllerSettings,
    ExcessiveEffort,
    Gains,
    SafetySettings,
    SupervisionSettings,
    TrajectorySettings,
)
from rnea_control.control.splicing import Situation
from rnea_control.control.supervisor import Supervisor
from rnea_control.control.tolerances import GoalTolerances, JointTolerance, Tolerances
from rnea_control.control.trajectory import Trajectory
from rnea_control.control.waypoints import Waypoint, Waypoints

__all__ = [
    "ControlLaw",
    "Controller",
    "ControllerSettings",
    "ControllerState",
    "EndKind",
    "Ending",
    "ExcessiveEffort",
    "Gains",
    "GoalTolerances",
    "JointTolerance",
    "Mode",
    "Motion",
    "MotionRequest",
    "Plan",
    "SafetySettings",
    "Situation",
    "SupervisionSettings",
    "Supervisor",
    "Tolerances",
    "Trajectory",
    "TrajectorySettings",
    "Waypoint",
    "Waypoints",
]
