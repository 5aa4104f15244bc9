"""Judges a URDF by known robots, and a model by the torques that hold the arm; no ROS."""

from rnea_control.plausibility.suspicions import suspicions

__all__ = ["suspicions"]
