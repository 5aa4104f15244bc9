"""What the controller tells of its trajectory by the messages of control_msgs, and the speed
scaling that it is given."""

from __future__ import annotations

from array import array
from contextlib import ExitStack

import numpy as np
from control_msgs.msg import JointTrajectoryControllerState, SpeedScalingFactor
from control_msgs.srv import QueryTrajectoryState

from rnea_control.array_types import FloatArray
from rnea_control.control import ControllerState
from rnea_control.exceptions import ControllerError, TrajectoryError
from rnea_control.messages.joint_trajectory import FIELDS
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.state_topics import StateTopics
from rnea_control.ros.conventions import LATCHED
from rnea_control.ros.guarded_node import GuardedNode


class TrajectoryState:
    """`~/controller_state`, `~/query_state` and `~/speed_scaling_input`.

    Args:
        node, loop: of the controller.
        topics: publishes the state.
        undo: takes all down again.
    """

    def __init__(
        self, node: GuardedNode, loop: ControlLoop, topics: StateTopics, undo: ExitStack
    ) -> None:
        self._logger = loop.log.logger
        self._loop = loop
        names = loop.controller.model.joint_names
        self._state = JointTrajectoryControllerState(joint_names=list(names))
        topics.add(JointTrajectoryControllerState, "~/controller_state", self._filled_state)
        # As joint_trajectory_controller: a factor from before the controller started holds.
        scaling = SpeedScalingFactor, "~/speed_scaling_input", self._scale, LATCHED
        node.until(undo, "subscription", *scaling)
        node.until(undo, "service", QueryTrajectoryState, "~/query_state", self._answer)

    def _filled_state(self, stamp: int, state: ControllerState) -> JointTrajectoryControllerState:
        return fill_state(self._state, stamp, state, self._loop.controller.effort_limit)

    def _scale(self, message: SpeedScalingFactor) -> None:
        try:
            self._loop.controller.speed_scaling = message.factor
        except ControllerError as error:
            self._logger.error(f"speed scaling stays as it is: {error}")
            return
        self._logger.info(f"speed scaling factor: {message.factor:g}")

    def _answer(
        self, request: QueryTrajectoryState.Request, response: QueryTrajectoryState.Response
    ) -> QueryTrajectoryState.Response:
        try:
            situation = self._loop.situation()
        except TrajectoryError as error:
            response.success, response.message = False, str(error)
            return response
        time = request.time  # rclpy's Time takes none that is negative
        t = self._loop.states.time_of(time.sec * 10**9 + time.nanosec)
        s = situation.trajectory_time(t)
        trajectory = situation.trajectory
        q, v, a = trajectory.at(s)
        response.name = self._loop.controller.model.joint_names
        response.position, response.velocity, response.acceleration = (
            array("d", row) for row in (q, v * situation.scaling, a * situation.scaling**2)
        )
        response.success = bool(trajectory.starts[0] <= s < trajectory.end_time)
        if not response.success:
            response.message = (
                f"the time is {t - situation.t:+.3f} s from now, outside the trajectory, which is "
                f"known from {trajectory.starts[0] - situation.s:+.3f} to "
                f"{trajectory.end_time - situation.s:+.3f} s from now; the position given is that "
                "of its nearer end"
            )
        return response


def fill_state(
    message: JointTrajectoryControllerState, stamp: int, state: ControllerState, limit: FloatArray
) -> JointTrajectoryControllerState:
    """Writes a state into a message, and returns it.

    Empty are the fields that the controller does not know: accelerations and effort of `feedback`
    and `error`, all but the effort of `output`, and the joints of several degrees of freedom.

    Args:
        message: with its joint_names.
        stamp: of the header, [ns].
        limit: of the efforts, shape (nv,), [Nm] or [N].
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
