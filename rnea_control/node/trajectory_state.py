"""State of the trajectory in the messages of control_msgs, and the speed scaling factor.

control_msgs may be missing, so nothing here imports it: interfaces.py passes the messages.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import ControllerState
from rnea_control.exceptions import ControllerError, TrajectoryError
from rnea_control.messages.joint_trajectory import FIELDS
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.state_topics import Filled

if TYPE_CHECKING:
    from control_msgs.msg import JointTrajectoryControllerState, SpeedScalingFactor
    from control_msgs.srv import QueryTrajectoryState


def controller_state(message: JointTrajectoryControllerState, loop: ControlLoop) -> Filled:
    """`~/controller_state`: what the controller has done in its last step."""
    message.joint_names = list(loop.controller.model.joint_names)
    return lambda stamp, state: fill_state(message, stamp, state, loop.controller.effort_limit)


def scale(loop: ControlLoop, message: SpeedScalingFactor) -> None:
    """`~/speed_scaling_input`: sets the speed of trajectories, or logs why not."""
    try:
        loop.controller.speed_scaling = message.factor
    except ControllerError as error:
        loop.arm_loop.log.logger.error(f"speed scaling stays as it is: {error}")
        return
    loop.arm_loop.log.logger.info(f"speed scaling factor: {message.factor:g}")


def answer_query(
    loop: ControlLoop,
    request: QueryTrajectoryState.Request,
    response: QueryTrajectoryState.Response,
) -> QueryTrajectoryState.Response:
    """`~/query_state`: the desired state at a time, for a constant speed."""
    try:
        situation = loop.situation()
    except TrajectoryError as error:
        response.success, response.message = False, str(error)
        return response
    time = request.time  # not negative, as rclpy refuses negative times
    t = loop.arm_loop.states.time_of(time.sec * 10**9 + time.nanosec)
    s = situation.trajectory_time(t)
    trajectory = situation.trajectory
    q, v, a = trajectory.at(s)
    response.name = loop.controller.model.joint_names
    response.position, response.velocity, response.acceleration = (
        array("d", row) for row in (q, v * situation.scaling, a * situation.scaling**2)
    )
    response.success = bool(trajectory.starts[0] <= s < trajectory.end_time)
    if not response.success:
        response.message = (
            f"the time is {t - situation.t:+.3f} s from now, outside the trajectory, which is "
            f"known from {trajectory.starts[0] - situation.s:+.3f} to "
            f"{trajectory.end_time - situation.s:+.3f} s from now; the position given is that of "
            "its nearer end"
        )
    return response


def fill_state(
    message: JointTrajectoryControllerState, stamp: int, state: ControllerState, limit: FloatArray
) -> JointTrajectoryControllerState:
    """Writes a state into a message, and returns it.

    Fields that the controller does not know are empty: accelerations and effort of `feedback` and
    `error`, all but the effort of `output`, and joints of several degrees of freedom.

    Args:
        message: message with its joint_names.
        stamp: stamp of the header [ns].
        limit: effort limits, shape (nv,), [Nm] or [N].
    """
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    for point, rows in (
        (message.reference, state.desired),
        (message.feedback, state.measured),
        (message.error, state.errors),
    ):
        for field, row in zip(FIELDS, rows, strict=False):
            setattr(point, field, array("d", row))
    message.output.effort = array("d", np.clip(state.torque, -limit, limit))
    elapsed = divmod(round(1e9 * state.time_from_start), 10**9)
    for point in (message.reference, message.feedback):
        point.time_from_start.sec, point.time_from_start.nanosec = elapsed
    message.speed_scaling_factor = state.speed_scaling
    return message
