"""Runs a few ticks without effect, so that the first real one finds code and memory ready."""

from __future__ import annotations

from array import array
from contextlib import suppress

import numpy as np
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from rnea_control.control import Act, Controller, Waypoint
from rnea_control.exceptions import TrajectoryError
from rnea_control.messages.float64_multi_array import Float64MultiArrayEncoder
from rnea_control.node.control_loop import ControlLoop

TICKS = 10


class Unsent:
    """A command that is encoded and not sent."""

    def __init__(self, joints: int) -> None:
        self._message = Float64MultiArrayEncoder(joints)
        self.torque = self._message.values

    def publish(self) -> None:
        """Encodes `torque` as it is now."""
        self._message.encode()


def warm_up(loop: ControlLoop) -> None:
    """Answers a few states by a loop like this one whose commands are not sent."""
    model = loop.controller.model
    idle = loop.like(Controller(model, loop.controller.settings), Unsent(model.nv))
    state = JointState(name=list(model.joint_names))
    # Within the limits: elsewhere a controller does not start.
    state.position = array("d", np.clip(np.zeros(model.nv), model.lower, model.upper))
    state.velocity = array("d", bytes(8 * model.nv))
    idle.start()
    for i in range(TICKS):
        state.header.stamp.nanosec = 1 + i
        idle.tick(serialize_message(state), i)
        if i == TICKS // 2:
            _plan(idle)


def _plan(loop: ControlLoop) -> None:
    """Plans a motion, which touches all code of it, and has it stopped."""
    controller = loop.controller
    position = np.clip(0.0, controller.model.lower, controller.model.upper)
    point = Waypoint(100.0, position, *np.zeros((2, controller.model.nv)))
    with suppress(TrajectoryError):  # none is followed under gravity_compensation
        controller.follow(loop.now, [point], loop.now)
    controller.finish("", Act.BRAKES)
