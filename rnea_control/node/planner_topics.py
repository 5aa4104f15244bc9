"""Publication of the state for planners of gains: `sensor`.

linear_feedback_controller_msgs may be missing, so nothing here imports it: interfaces.py passes the
message.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from rnea_control.control import ControllerState
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.state_topics import Filled


def sensor(message: Any, loop: ControlLoop) -> Filled:
    """`sensor`: measured positions and velocities in the order of `joints`, and the commanded
    efforts, none while the efforts in force are not known. The base does not move."""
    model = loop.controller.model
    message.header.frame_id = model.root_link
    joints = message.joint_state
    joints.name = list(model.joint_names)

    def filled(stamp: int, state: ControllerState) -> Any:
        for header in (message.header, joints.header):
            header.stamp.sec, header.stamp.nanosec = divmod(stamp, 10**9)
        joints.position, joints.velocity = (array("d", each) for each in state.last_state)
        known = np.isfinite(state.in_force).all()
        joints.effort = array("d", state.in_force if known else ())
        return message

    return filled
