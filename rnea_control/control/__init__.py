"""Trajectories, control laws, the controller and what keeps it safe; no ROS: arrays and seconds."""

from rnea_control.control.controller import Controller
from rnea_control.control.controller_state import ControllerState
from rnea_control.control.laws import ControlLaw
from rnea_control.control.mode import Event, Mode
from rnea_control.control.motion import (
    Act,
    Ending,
    EndKind,
    GoalTolerances,
    JointTolerance,
    Motion,
    MotionRequest,
    Tolerances,
)
from rnea_control.control.planner import Plan, Situation
from rnea_control.control.settings import (
    ControllerSettings,
    ExcessiveEffort,
    Gains,
    SafetySettings,
    SupervisionSettings,
    TrajectorySettings,
)
from rnea_control.control.supervisor import Supervisor
from rnea_control.control.trajectory import Trajectory
from rnea_control.control.waypoints import Waypoint, Waypoints

__all__ = [
    "Act",
    "ControlLaw",
    "Controller",
    "ControllerSettings",
    "ControllerState",
    "EndKind",
    "Ending",
    "Event",
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
