"""Publication of the tip in task space: `current_pose` and `current_twist`."""

from __future__ import annotations

from typing import Any

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import ControllerState
from rnea_control.dynamics import Workspace, forward_kinematics, jacobian
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.state_topics import Filled
from rnea_control.spatial.rotation import quaternion_of_rotation


def current_pose(message: Any, loop: ControlLoop) -> Filled:
    """`current_pose`: measured pose of `task.tip` in the root link's frame."""
    model, workspace = loop.controller.model, Workspace(loop.controller.model)
    poses = np.zeros((len(model.link_names), 4, 4))
    message.header.frame_id = model.root_link

    def filled(stamp: int, state: ControllerState) -> Any:
        q = state.last_state[0].copy()
        X = forward_kinematics(model, workspace, q, poses)[_tip(loop)]
        rotation = quaternion_of_rotation(tuple(X[:3, :3].ravel().tolist()))
        _stamp(message, stamp)
        _fill(message.pose.position, X[:3, 3])
        orientation = message.pose.orientation
        orientation.x, orientation.y, orientation.z, orientation.w = rotation
        return message

    return filled


def current_twist(message: Any, loop: ControlLoop) -> Filled:
    """`current_twist`: measured velocity of `task.tip` in axes of the root link's frame."""
    model, workspace = loop.controller.model, Workspace(loop.controller.model)
    J = np.zeros((6, model.nv))
    message.header.frame_id = model.root_link

    def filled(stamp: int, state: ControllerState) -> Any:
        q, v = state.last_state.copy()
        twist = jacobian(model, workspace, q, model.link_names[_tip(loop)], J) @ v
        _stamp(message, stamp)
        _fill(message.twist.linear, twist[:3])
        _fill(message.twist.angular, twist[3:])
        return message

    return filled


def _tip(loop: ControlLoop) -> int:
    """Row of the tip among the links."""
    return int(loop.controller.arrays.settings[0].task_link)


def _stamp(message: Any, stamp: int) -> None:
    """Writes a stamp [ns]."""
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)


def _fill(vector: Any, numbers: FloatArray) -> None:
    """Writes a Vector3 or a Point."""
    vector.x, vector.y, vector.z = numbers.tolist()
