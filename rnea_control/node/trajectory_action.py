"""`TrajectoryAction`: the controller's side of `~/follow_joint_trajectory`.

It passes goals to `TrajectoryInput`, returns their ends, and starts the process of the action.
"""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack
from socket import socketpair

from rclpy.node import Node

from rnea_control.child_process import command
from rnea_control.control import EndKind, GoalTolerances, JointTolerance, Mode, Motion
from rnea_control.control.mode import REFUSALS
from rnea_control.exceptions import (
    TrajectoryError,
    TrajectoryJointsError,
    TrajectoryModeError,
    TrajectoryMultiDofError,
    TrajectoryPassedError,
)
from rnea_control.loop.loop_records import THROTTLE
from rnea_control.node.message_pipe import MessagePipe
from rnea_control.node.trajectory_input import TrajectoryInput
from rnea_control.ros.arm_node import STEADY
from rnea_control.ros.retry import Retry

MODULE = "rnea_control.node.action_process"
INACTIVE = REFUSALS[Mode.INACTIVE]
# error_code of control_msgs/action/FollowJointTrajectory
SUCCESSFUL = 0
INVALID_GOAL = -1
INVALID_JOINTS = -2
OLD_HEADER_TIMESTAMP = -3
PATH_TOLERANCE_VIOLATED = -4
GOAL_TOLERANCE_VIOLATED = -5
# error_code by the error; INVALID_GOAL for other errors
CODES = {TrajectoryJointsError: INVALID_JOINTS, TrajectoryPassedError: OLD_HEADER_TIMESTAMP}
# Method of the goal handle, and error_code, by the end of the motion.
RESULTS = {
    EndKind.REACHED: ("succeed", SUCCESSFUL),
    EndKind.PATH_TOLERANCE_VIOLATED: ("abort", PATH_TOLERANCE_VIOLATED),
    EndKind.GOAL_TOLERANCE_VIOLATED: ("abort", GOAL_TOLERANCE_VIOLATED),
    EndKind.REPLACED: ("abort", INVALID_GOAL),
    EndKind.CANCELLED: ("canceled", SUCCESSFUL),
    EndKind.DROPPED: ("abort", INVALID_GOAL),
}
WORDS = {"succeed": "succeeded", "canceled": "canceled"}
LONGEST_END = 3.0  # time for the process to end after its pipe was closed [s]
SHORTEST_LIFE = 2.0  # the first process that ends after a longer life is started again at once [s]
FIRST_WAIT = 2.0  # pause before other starts; longer each time [s]
LONGEST_WAIT = 60.0  # longest pause, and the life after which it is the first one again [s]


class TrajectoryAction:
    """Serves the action for the life of the node; goals are accepted while the loop runs.

    A separate process serves it (action_process.py). It is started here, and again whenever it ends
    by itself or could not be started.

    Attributes:
        goals: motions that run, or whose results are still to be sent, by the goals' keys.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._logger = node.get_logger()
        self._input: TrajectoryInput | None = None
        self.goals: dict[bytes, Motion] = {}
        self._ended = node.create_guard_condition(self._report_ended)
        self._feedback = node.create_timer(1.0, self._give_feedback, clock=STEADY)
        self._feedback.cancel()  # until there is a goal
        self._later = node.create_timer(FIRST_WAIT, self._start, clock=STEADY)
        self._retry = Retry(FIRST_WAIT, LONGEST_WAIT)
        self._pipe: MessagePipe | None = None  # while no process runs
        self._start()

    def connect(self, trajectories: TrajectoryInput, rate: float) -> None:
        """Follows goals from now on, and publishes their feedback at `rate` [Hz]."""
        self._input, self._feedback.timer_period_ns = trajectories, 1e9 / rate

    def disconnect(self) -> None:
        """Rejects goals from now on."""
        self._report_ended()
        self._input = None

    def destroy(self) -> None:
        """Takes the action down, once its last results are sent."""
        self._node.destroy_timer(self._later)
        if self._pipe is not None:
            self._pipe.destroy()
            try:
                self._process.wait(LONGEST_END)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._node.destroy_timer(self._feedback)
        self._node.destroy_guard_condition(self._ended)

    def _start(self) -> None:
        self._later.cancel()
        try:
            self._launch()
        except (OSError, RuntimeError) as error:  # no descriptor, memory or thread is free
            self._wait(f"the process of the action cannot be started: {error}")

    def _launch(self) -> None:
        with ExitStack() as undo:
            ours, theirs = socketpair()
            undo.callback(ours.close)
            with theirs:
                name, namespace = self._node.get_name(), self._node.get_namespace()
                # In a session of its own no Ctrl-C ends it before this process.
                self._process = subprocess.Popen(
                    command(MODULE, str(theirs.fileno()), name, namespace),
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            undo.callback(self._process.wait)
            undo.callback(self._process.kill)
            handlers = {"ask": self._answer, "goal": self._follow, "cancel": self._cancel}
            self._pipe = MessagePipe(self._node, ours, handlers, self._restart)
            undo.pop_all()
        self._started = time.monotonic()

    def _wait(self, what: str) -> None:
        """Starts the process later, and logs the reason, `what`."""
        wait = self._retry.failed()
        self._logger.error(f"{what}; it is started again in {wait:g} s")
        self._later.timer_period_ns = 1e9 * wait
        self._later.reset()

    def _restart(self) -> None:
        """Ends the goals of a process that has ended, as no client can cancel them any more, and
        starts another process."""
        for key in list(self.goals):
            self._cancel(key)
        self.goals.clear()
        self._feedback.cancel()
        lived = time.monotonic() - self._started
        self._process.kill()  # a hanging process does not end by itself
        ended = f"the process of the action has ended with status {self._process.wait()}"
        self._pipe.destroy()
        self._pipe = None
        if lived > LONGEST_WAIT:
            self._retry.succeeded()
        if self._retry.wait > 0.0 or lived < SHORTEST_LIFE:
            self._wait(ended)
            return
        self._retry.failed()
        self._logger.error(f"{ended}; it is started again")
        self._start()

    def _answer(self) -> None:
        """Rejects goals while the controller follows none. An invalid goal is accepted, as only a
        result has the reason of its refusal."""
        try:
            if self._input is None:
                raise TrajectoryModeError(INACTIVE)
            self._input.loop.situation()
        except TrajectoryError as error:
            self._complain(f"rejected: {error.code}", f"goal rejected: {error}")
            self._pipe.send("answer", False)
        else:
            self._pipe.send("answer", True)

    def _follow(
        self,
        key: bytes,
        trajectory: bytes,
        path: list[tuple[str, float, float]],
        goal: list[tuple[str, float, float]],
        goal_time: float,
        multi_dof_points: int,
    ) -> None:
        """Follows a goal.

        Args:
            key: key of the goal.
            trajectory: serialized JointTrajectory.
            path, goal: name, position and velocity of each tolerance.
            goal_time: goal_time_tolerance [s].
            multi_dof_points: number of points of multi_dof_trajectory.
        """
        try:
            if self._input is None:
                raise TrajectoryModeError(INACTIVE)
            if multi_dof_points:
                raise TrajectoryMultiDofError(
                    "multi_dof_trajectory has points, which this controller does not follow; leave "
                    "it empty"
                )
            tolerances = GoalTolerances(
                *(tuple(JointTolerance(*each) for each in some) for some in (path, goal)), goal_time
            )
            motion = self._input.follow(
                trajectory, tolerances, on_end=lambda _: self._ended.trigger()
            )
        except TrajectoryError as error:
            text = f"goal aborted, the controller goes on as before: {error}"
            self._complain(f"goal: {error.code}", text)
            self._pipe.send("ended", key, "abort", CODES.get(type(error), INVALID_GOAL), str(error))
            return
        self.goals[key] = motion
        if self._feedback.is_canceled():
            self._feedback.reset()

    def _complain(self, kind: str, text: str) -> None:
        """Logs why a goal is refused, throttled: a client may send goals at a high rate."""
        if self._input is None:
            self._logger.error(text, throttle_duration_sec=THROTTLE)
        else:
            self._input.loop.arm_loop.log.say("error", kind, text)

    def _cancel(self, key: bytes) -> None:
        motion = self.goals.get(key)
        if motion is not None and self._input is not None:
            self._input.loop.call(lambda supervisor: supervisor.cancel(motion))

    def _report_ended(self) -> None:
        for key, motion in list(self.goals.items()):
            if motion.ending is None:
                continue
            del self.goals[key]
            outcome, code = RESULTS[motion.ending.kind]
            text = motion.ending.text
            if outcome == "abort":
                self._logger.warning(f"goal aborted: {text}")
            else:
                self._logger.info(f"goal {WORDS[outcome]}: {text}")
            self._pipe.send("ended", key, outcome, code, text)
        if not self.goals:
            self._feedback.cancel()

    def _give_feedback(self) -> None:
        loop = None if self._input is None else self._input.loop
        if loop is None or (snapshot := loop.snapshot()) is None:
            return
        stamp, state = snapshot
        for key, motion in self.goals.items():
            if motion is state.motion:
                index, elapsed = motion.index(state.trajectory_time), state.time_from_start
                names = loop.controller.model.joint_names
                points = state.desired, state.measured, state.errors
                self._pipe.send("feedback", key, stamp, elapsed, index, names, points)
