"""The action `~/follow_joint_trajectory`."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance as JointToleranceMessage
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.task import Future
from rclpy.time import Time

from rnea_control.array_types import FloatArray
from rnea_control.control import EndKind, GoalTolerances, JointTolerance, Motion
from rnea_control.exceptions import (
    TrajectoryError,
    TrajectoryJointsError,
    TrajectoryPassedError,
)
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.trajectory_input import TrajectoryInput

Feedback, Result = FollowJointTrajectory.Feedback, FollowJointTrajectory.Result
CODES = {
    EndKind.REACHED: Result.SUCCESSFUL,
    EndKind.PATH_TOLERANCE_VIOLATED: Result.PATH_TOLERANCE_VIOLATED,
    EndKind.GOAL_TOLERANCE_VIOLATED: Result.GOAL_TOLERANCE_VIOLATED,
    EndKind.CANCELLED: Result.SUCCESSFUL,  # as joint_trajectory_controller: the status says it
}


class TrajectoryAction:
    """Serves the action as long as the node lives; goals are accepted while the loop runs.

    Args:
        node: the node.

    Attributes:
        running: the goals that have not ended.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._logger = node.get_logger()
        self._input: TrajectoryInput | None = None
        self._loop: ControlLoop | None = None
        self._joints: tuple[str, ...] = ()
        self._period = 0.0
        self.running: dict[bytes, Goal] = {}
        self._ended = node.create_guard_condition(self._report_ended)
        self._timer = None
        self._server = ActionServer(
            node,
            FollowJointTrajectory,
            "~/follow_joint_trajectory",
            self._execute,
            goal_callback=self._decide,
            cancel_callback=self._cancel,
        )

    def connect(self, trajectories: TrajectoryInput, loop: ControlLoop, rate: float) -> None:
        """Has goals followed from now on, and their feedback published at `rate` [Hz]."""
        self._input, self._loop = trajectories, loop
        self._joints = loop.controller.model.joint_names
        self._period = 1.0 / rate

    def disconnect(self) -> None:
        """Rejects goals from now on."""
        self._input = self._loop = None

    def destroy(self) -> None:
        """Takes the action down."""
        self._server.destroy()
        self._stop_feedback()
        self._node.destroy_guard_condition(self._ended)

    def _decide(self, request: FollowJointTrajectory.Goal) -> GoalResponse:
        """Rejects what no goal can change; what is wrong with a goal is in its result."""
        reason = "the controller is not active; activate it first"
        if self._loop is not None and self._loop.running:
            try:
                self._loop.situation()
                return GoalResponse.ACCEPT
            except TrajectoryError as error:
                reason = str(error)
        self._logger.error(f"goal rejected: {reason}")
        return GoalResponse.REJECT

    async def _execute(self, handle: ServerGoalHandle) -> Result:
        goal = Goal(handle)
        if handle.is_cancel_requested:
            handle.canceled()
            return Result(error_string="cancelled by the client")
        try:
            self._start(goal)
        except TrajectoryError as error:
            self._logger.error(f"goal aborted, the controller goes on as before: {error}")
            handle.abort()
            return Result(error_code=_code(error), error_string=str(error))
        await goal.ended
        return self._result(goal)

    def _start(self, goal: Goal) -> None:
        if self._input is None:
            raise TrajectoryError("the controller is not active; activate it first")
        request = goal.handle.request
        if request.multi_dof_trajectory.points:
            raise TrajectoryError(
                "multi_dof_trajectory has points, which this controller does not follow; leave it "
                "empty"
            )
        goal.motion = self._input.follow(
            serialize_message(request.trajectory), _tolerances(request), on_end=self._ended.trigger
        )
        self.running[goal.key] = goal
        if self._timer is None:
            self._timer = self._node.create_timer(
                self._period, self._publish_feedback, clock=Clock(clock_type=ClockType.STEADY_TIME)
            )
        self._report_ended()  # it may have ended already

    def _cancel(self, handle: ServerGoalHandle) -> CancelResponse:
        goal = self.running.get(bytes(handle.goal_id.uuid))
        if goal is not None and self._loop is not None:
            self._loop.cancel(goal.motion)
        return CancelResponse.ACCEPT

    def _report_ended(self) -> None:
        for goal in list(self.running.values()):
            if goal.motion.ending is not None and not goal.ended.done():
                goal.ended.set_result(None)

    def _result(self, goal: Goal) -> Result:
        del self.running[goal.key]
        if not self.running:
            self._stop_feedback()
        handle, ending = goal.handle, goal.motion.ending
        if ending.kind == EndKind.REACHED:
            handle.succeed()
            self._logger.info(ending.text)
        elif ending.kind == EndKind.CANCELLED and handle.is_cancel_requested:
            handle.canceled()
            self._logger.info(f"goal {ending.text}")
        else:
            handle.abort()
            self._logger.warning(f"goal aborted: {ending.text}")
        code = CODES.get(ending.kind, Result.INVALID_GOAL)
        return Result(error_code=code, error_string=ending.text)

    def _stop_feedback(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def _publish_feedback(self) -> None:
        snapshot = None if self._loop is None else self._loop.snapshot()
        if snapshot is None:
            return
        stamp, state = snapshot
        for goal in self.running.values():
            if goal.motion is not state.motion:
                continue
            feedback = Feedback(joint_names=self._joints)
            feedback.header.stamp = Time(nanoseconds=stamp).to_msg()
            if hasattr(feedback, "index"):  # from kilted on
                feedback.index = goal.motion.index(state.trajectory_time)
            _fill(feedback.desired, state.desired)
            _fill(feedback.actual, state.measured)
            _fill(feedback.error, state.errors)
            elapsed = Duration(seconds=state.time_from_start).to_msg()
            feedback.desired.time_from_start = feedback.actual.time_from_start = elapsed
            goal.handle.publish_feedback(feedback)


class Goal:
    """A goal and its motion.

    Attributes:
        handle: of the action server.
        motion: that follows it.
        ended: done when the motion has ended.
    """

    motion: Motion

    def __init__(self, handle: ServerGoalHandle) -> None:
        self.handle = handle
        self.key = bytes(handle.goal_id.uuid)
        self.ended = Future()


def _fill(point: object, rows: FloatArray) -> None:
    names = ("positions", "velocities", "accelerations", "effort")
    for name, row in zip(names, rows, strict=False):
        setattr(point, name, array("d", row))


def _code(error: TrajectoryError) -> int:
    if isinstance(error, TrajectoryJointsError):
        return Result.INVALID_JOINTS
    if isinstance(error, TrajectoryPassedError):
        return Result.OLD_HEADER_TIMESTAMP
    return Result.INVALID_GOAL


def _tolerances(request: FollowJointTrajectory.Goal) -> GoalTolerances:
    time = Duration.from_msg(request.goal_time_tolerance).nanoseconds * 1e-9
    return GoalTolerances(_of(request.path_tolerance), _of(request.goal_tolerance), time)


def _of(tolerances: Iterable[JointToleranceMessage]) -> tuple[JointTolerance, ...]:
    return tuple(JointTolerance(each.name, each.position, each.velocity) for each in tolerances)
