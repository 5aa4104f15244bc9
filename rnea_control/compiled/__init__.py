"""Recursions traced into straight-line code for one robot, and compiled."""

from rnea_control.compiled.compiled_robot import CompiledRobot, compile_robot
from rnea_control.compiled.machine_code import Order

__all__ = ["CompiledRobot", "Order", "compile_robot"]
