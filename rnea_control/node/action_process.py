"""The process that serves the action `~/follow_joint_trajectory` for the controller's process.

rclpy makes Python objects of every point of a goal and holds the interpreter's lock meanwhile, for
milliseconds; it has no raw mode for actions. In a process of its own, that delays no tick.

The controller's process starts this process, communicates with it through a pipe
(trajectory_action.py), and its end also ends this process. The messages in the pipe are arguments
of the handlers at the other end; goals have the keys of rcl. This file imports nothing that
computes, so that the process starts sooner, and stays small.

    python -m rnea_control.node.action_process <file descriptor> <name> <namespace>
"""

from __future__ import annotations

import os
import sys
import time
from array import array
from collections import deque
from socket import socket

import rclpy
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future
from rclpy.time import Time

from rnea_control.array_types import FloatArray
from rnea_control.node.message_pipe import MessagePipe
from rnea_control.ros.conventions import HELPER, PROCESS_ENDED
from rnea_control.ros.rclpy_internals import RCLError

Goal, Result = FollowJointTrajectory.Goal, FollowJointTrajectory.Result
Feedback = FollowJointTrajectory.Feedback
FIELDS = ("positions", "velocities", "accelerations", "effort")  # fields of a point
LONGEST_END = 1.0  # longest wait for the results of the last goals [s]
END = 0.1  # time to send them once they are known [s]
GONE = "abort", Result.INVALID_GOAL, PROCESS_ENDED


class ActionNode(Node):
    """The action server.

    Args:
        name: name of the controller's node.
        namespace: namespace of the controller's node.
        end: end of the pair of sockets to the controller's process.

    Attributes:
        closed: True if the controller's process has ended.
        running: active goals by key, each with the future of its end.
    """

    def __init__(self, name: str, namespace: str, end: socket) -> None:
        super().__init__(f"{name}_action", namespace=namespace, **HELPER)
        self.closed = False
        self.running: dict[bytes, tuple[ServerGoalHandle, Future]] = {}
        self._questions: deque[Future] = deque()
        handlers = {"answer": self._answer, "feedback": self._publish, "ended": self._finish}
        self._pipe = MessagePipe(self, end, handlers, self._close)
        self._server = ActionServer(
            self,
            FollowJointTrajectory,
            f"{name}/follow_joint_trajectory",
            self._execute,
            goal_callback=self._decide,
            cancel_callback=self._cancel,
        )

    async def _decide(self, request: Goal) -> GoalResponse:
        question = Future()
        self._questions.append(question)
        self._pipe.send("ask")
        return GoalResponse.ACCEPT if await question else GoalResponse.REJECT

    def _answer(self, accepts: bool) -> None:
        self._questions.popleft().set_result(accepts)

    async def _execute(self, handle: ServerGoalHandle) -> Result:
        key, ended = bytes(handle.goal_id.uuid), Future()
        self.running[key] = handle, ended
        request = handle.request
        path, goal = (
            [(each.name, each.position, each.velocity) for each in tolerances]
            for tolerances in (request.path_tolerance, request.goal_tolerance)
        )
        self._pipe.send(
            "goal",
            key,
            serialize_message(request.trajectory),
            path,
            goal,
            Duration.from_msg(request.goal_time_tolerance).nanoseconds * 1e-9,
            len(request.multi_dof_trajectory.points),
        )
        if handle.is_cancel_requested:
            self._pipe.send("cancel", key)
        outcome, code, text = await ended
        del self.running[key]
        if outcome == "canceled" and not handle.is_cancel_requested:
            outcome = "abort"
        getattr(handle, outcome)()
        return Result(error_code=code, error_string=text)

    def _cancel(self, handle: ServerGoalHandle) -> CancelResponse:
        key = bytes(handle.goal_id.uuid)
        if key in self.running:
            self._pipe.send("cancel", key)
        return CancelResponse.ACCEPT

    def _finish(self, key: bytes, outcome: str, code: int, text: str) -> None:
        """Ends a goal.

        Args:
            key: key of the goal.
            outcome: name of the goal handle's method for the outcome.
            code: error_code of the result.
            text: error_string of the result.
        """
        self.running[key][1].set_result((outcome, code, text))

    def _publish(
        self,
        key: bytes,
        stamp: int,
        elapsed: float,
        index: int,
        joint_names: tuple[str, ...],
        points: tuple[FloatArray, FloatArray, FloatArray],
    ) -> None:
        """Publishes a goal's feedback.

        Args:
            key: key of the goal.
            stamp: stamp of the joint states [ns].
            elapsed: time since the trajectory's start [s].
            index: index of the waypoint that is due next.
            joint_names: joint names in the order of the points.
            points: desired position, velocity, acceleration and effort, shape (4, nv); actual
                position and velocity, shape (2, nv); their errors, shape (2, nv).
        """
        if key not in self.running:
            return
        feedback = Feedback(joint_names=joint_names)
        feedback.header.stamp = Time(nanoseconds=stamp).to_msg()
        if hasattr(feedback, "index"):  # from kilted on
            feedback.index = index
        for point, rows in zip(
            (feedback.desired, feedback.actual, feedback.error), points, strict=True
        ):
            for name, row in zip(FIELDS, rows, strict=False):
                setattr(point, name, array("d", row))
        since = Duration(seconds=elapsed).to_msg()
        feedback.desired.time_from_start = feedback.actual.time_from_start = since
        try:
            self.running[key][0].publish_feedback(feedback)
        except RCLError as error:  # the goal continues without feedback
            self.get_logger().warning(
                f"feedback was not published: {error}", throttle_duration_sec=1.0
            )

    def _close(self) -> None:
        while self._questions:
            self._answer(False)
        for _, ended in self.running.values():
            if not ended.done():
                ended.set_result(GONE)
        self.closed = True


def main() -> int:
    """Serves goals until the controller's process closes the pipe, then sends the last results."""
    descriptor, name, namespace = sys.argv[1:]
    # A process that is started again inherits the real-time priority of its parent.
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = ActionNode(name, namespace, socket(fileno=int(descriptor)))
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        while not node.closed:
            executor.spin_once()
        deadline = time.monotonic() + LONGEST_END
        while time.monotonic() < deadline:
            if not node.running:
                deadline = min(deadline, time.monotonic() + END)
            executor.spin_once(timeout_sec=END)
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
