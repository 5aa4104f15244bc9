"""Trajectories, control laws and the controller. No ROS: plain arrays and seconds."""

from rnea_control.control.controller import Controller
from rnea_control.control.law import ControlLaw
from rnea_control.control.settings import ControllerSettings, Gains
from rnea_control.control.trajectory import Trajectory
from rnea_control.control.waypoints import Waypoint, Waypoints

__all__ = [
    "ControlLaw",
    "Controller",
    "ControllerSettings",
    "Gains",
    "Trajectory",
    "Waypoint",
    "Waypoints",
]
