"""Runs what a tick runs, without effect, so that the first real one finds code and memory ready."""

from __future__ import annotations

from array import array

import numpy as np
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from rnea_control.control import Controller
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.effort_command import CommandMessage
from rnea_control.node.statistics import LoopStatistics
from rnea_control.ros.joint_state_decoder import JointStateDecoder

TIMES = 10


def rehearse(loop: ControlLoop) -> None:
    """Decodes, steps, encodes and records a few times, all on copies."""
    model = loop.controller.model
    controller = Controller(model, loop.controller.settings)
    zeros = array("d", bytes(8 * model.nv))
    state = serialize_message(
        JointState(name=list(model.joint_names), position=zeros, velocity=zeros)
    )
    decoder, command = JointStateDecoder(model.joint_names), CommandMessage(model.nv)
    statistics = LoopStatistics()
    controller.hold(0.0, np.zeros(model.nv))
    for _ in range(TIMES):
        decoder.decode(state)
        controller.step(0.0, decoder.q, decoder.v, command.torque)
        bytes(command)
        statistics.record(0.0, 0.0, 0.0)
