"""Runs what a tick runs, without effect, so that the first real one finds code and memory ready."""

from __future__ import annotations

from array import array

from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from rnea_control.control import Controller
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.effort_command import CommandMessage

TIMES = 10


class Unsent(CommandMessage):
    """A command that is made and not sent."""

    def publish(self) -> None:
        bytes(self)


def rehearse(loop: ControlLoop) -> None:
    """Answers a few states by a loop like this one whose commands go nowhere."""
    model = loop.controller.model
    rehearsal = loop.like(Controller(model, loop.controller.settings), Unsent(model.nv))
    zeros = array("d", bytes(8 * model.nv))
    state = JointState(name=list(model.joint_names), position=zeros, velocity=zeros)
    rehearsal.start()
    for i in range(TIMES):
        state.header.stamp.nanosec = 1 + i
        rehearsal.tick(serialize_message(state), i)
