"""RNEA computed-torque control of robot arms over ROS 2."""

__version__ = "0.1.0"
