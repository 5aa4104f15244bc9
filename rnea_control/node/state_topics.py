"""The topics of the controller's state, and the speed scaling that it is given."""

from __future__ import annotations

import threading
import time
from array import array
from contextlib import ExitStack

import numpy as np
from control_msgs.msg import JointTrajectoryControllerState, SpeedScalingFactor
from control_msgs.srv import QueryTrajectoryState
from sensor_msgs.msg import JointState

from rnea_control.array_types import FloatArray
from rnea_control.control import ControllerState
from rnea_control.control.controller_state import TERMS, torque_terms
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import ControllerError, TrajectoryError
from rnea_control.messages.joint_trajectory import FIELDS
from rnea_control.node.control_loop import ControlLoop
from rnea_control.ros.conventions import LATCHED
from rnea_control.ros.guarded_node import GuardedNode


class StateTopics:
    """`~/controller_state`, `~/torque_terms`, `~/query_state` and `~/speed_scaling_input`.

    A thread publishes the topics while somebody listens: a timer of rclpy's costs half a
    millisecond of CPU time each time. A tick only waits while the state is copied.

    Args:
        node, loop: of the controller.
        rate: how often the topics are published, [Hz].
        undo: takes all down again.
    """

    def __init__(self, node: GuardedNode, loop: ControlLoop, rate: float, undo: ExitStack) -> None:
        self._logger = loop.log.logger
        self._loop = loop
        self._workspace = Workspace(loop.controller.model)
        names = loop.controller.model.joint_names
        self._state = JointTrajectoryControllerState(joint_names=list(names))
        self._terms = JointState(name=[f"{joint}/{term}" for joint in names for term in TERMS])
        # The publishers, each with what gives its message.
        self._topics = tuple(
            (node.until(undo, "publisher", kind, topic, 1), filled)
            for kind, topic, filled in (
                (JointTrajectoryControllerState, "~/controller_state", self._filled_state),
                (JointState, "~/torque_terms", self._filled_terms),
            )
        )
        # As joint_trajectory_controller: a factor from before the controller started holds.
        scaling = SpeedScalingFactor, "~/speed_scaling_input", self._scale, LATCHED
        node.until(undo, "subscription", *scaling)
        node.until(undo, "service", QueryTrajectoryState, "~/query_state", self._answer)
        self._period = 1.0 / rate
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        undo.callback(self._stop)

    def look_for_listeners(self) -> None:
        """Starts to publish if somebody listens, or stops; to be called now and then."""
        if not any(publisher.get_subscription_count() for publisher, _ in self._topics):
            self._stop()
        elif self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="state topics")
            self._thread.start()

    def _stop(self) -> None:
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping.wait(due - time.monotonic()):
            snapshot = self._loop.snapshot()
            for publisher, filled in self._topics if snapshot else ():
                if publisher.get_subscription_count():
                    publisher.publish(filled(*snapshot))
            due = max(due + self._period, time.monotonic())

    def _filled_terms(self, stamp: int, state: ControllerState) -> JointState:
        model, settings = self._loop.controller.model, self._loop.controller.settings
        terms = torque_terms(model, self._workspace, settings, state)
        return fill_terms(self._terms, stamp, terms)

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


def fill_terms(message: JointState, stamp: int, terms: FloatArray) -> JointState:
    """Writes the terms of each joint into a message, and returns it. Every one is a name,
    `joint1/gravity`, with an effort: so tools that label efforts by their names label the terms.

    Args:
        message: with its names.
        stamp: of the header, [ns].
        terms: shape (len(TERMS), nv), [Nm] or [N].
    """
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    message.effort = array("d", terms.T.ravel())
    return message


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
