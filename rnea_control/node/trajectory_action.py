"""The controller's side of the action `~/follow_joint_trajectory`: goals to motions and back."""

from __future__ import annotations

import subprocess
import time
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
from rnea_control.node.message_pipe import MessagePipe
from rnea_control.node.trajectory_input import TrajectoryInput
from rnea_control.ros.arm_node import STEADY

MODULE = "rnea_control.node.action_process"
INACTIVE = REFUSALS[Mode.INACTIVE]
# error_code of control_msgs/action/FollowJointTrajectory.
SUCCESSFUL, INVALID_GOAL, INVALID_JOINTS, OLD_HEADER_TIMESTAMP = 0, -1, -2, -3
PATH_TOLERANCE_VIOLATED, GOAL_TOLERANCE_VIOLATED = -4, -5
# Of a goal that is refused for another reason than `INVALID_GOAL`.
CODES = {TrajectoryJointsError: INVALID_JOINTS, TrajectoryPassedError: OLD_HEADER_TIMESTAMP}
# By the goal handle's method that says how a goal ended.
RESULTS = {
    EndKind.REACHED: ("succeed", SUCCESSFUL),
    EndKind.PATH_TOLERANCE_VIOLATED: ("abort", PATH_TOLERANCE_VIOLATED),
    EndKind.GOAL_TOLERANCE_VIOLATED: ("abort", GOAL_TOLERANCE_VIOLATED),
    EndKind.REPLACED: ("abort", INVALID_GOAL),
    EndKind.CANCELLED: ("canceled", SUCCESSFUL),
    EndKind.DROPPED: ("abort", INVALID_GOAL),
}
WORDS = {"succeed": "succeeded", "canceled": "canceled"}
# How long the action's process may take to end, when it is told to, [s].
LONGEST_END = 3.0
# A process that has lived for less than this is started again after as long, [s].
SHORTEST_LIFE = 2.0


class TrajectoryAction:
    """Has the action served as long as the node lives; goals are accepted while the loop runs.

    A process of its own serves it (action_process.py), which is started here, and once more
    whenever it ends by itself.

    Attributes:
        goals: those that run, or have results that are still to be sent, by their keys.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._logger = node.get_logger()
        self._input: TrajectoryInput | None = None
        self.goals: dict[bytes, Motion] = {}
        self._ended = node.create_guard_condition(self._report_ended)
        self._feedback = node.create_timer(1.0, self._give_feedback, clock=STEADY)
        self._feedback.cancel()  # until there is a goal
        self._later = node.create_timer(SHORTEST_LIFE, self._start, clock=STEADY)
        self._start()

    def connect(self, trajectories: TrajectoryInput, rate: float) -> None:
        """Has goals followed from now on, and their feedback published at `rate` [Hz]."""
        self._input, self._feedback.timer_period_ns = trajectories, 1e9 / rate

    def disconnect(self) -> None:
        """Rejects goals from now on."""
        self._report_ended()
        self._input = None

    def destroy(self) -> None:
        """Takes the action down, once its last results are sent."""
        self._node.destroy_timer(self._later)
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
        ours, theirs = socketpair()
        name, namespace = self._node.get_name(), self._node.get_namespace()
        # In a session of its own no Ctrl-C ends it before this process.
        self._process = subprocess.Popen(
            command(MODULE, str(theirs.fileno()), name, namespace),
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._started = time.monotonic()
        handlers = {"ask": self._answer, "goal": self._follow, "cancel": self._cancel}
        self._pipe = MessagePipe(self._node, ours, handlers, self._restart)

    def _restart(self) -> None:
        """The process has ended by itself: nobody can cancel its goals any more."""
        for key in list(self.goals):
            self._cancel(key)
        self.goals.clear()
        self._feedback.cancel()
        lived = time.monotonic() - self._started
        self._process.kill()  # one that hangs does not end by itself
        ended = f"the process of the action has ended with status {self._process.wait()}"
        self._pipe.destroy()
        if lived < SHORTEST_LIFE:
            self._logger.error(f"{ended}; it is started again in {SHORTEST_LIFE:g} s")
            self._later.reset()
            return
        self._logger.error(f"{ended}; it is started again")
        self._start()

    def _answer(self) -> None:
        """Rejects goals while none could be followed; a goal that is wrong in itself is accepted,
        as its result can say why."""
        try:
            if self._input is None:
                raise TrajectoryModeError(INACTIVE)
            self._input.loop.situation()
        except TrajectoryError as error:
            self._logger.error(f"goal rejected: {error}")
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
        """Has a goal followed: its serialized JointTrajectory; name, position and velocity of each
        tolerance; goal_time_tolerance, [s]; and how many points multi_dof_trajectory has."""
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
            self._logger.error(f"goal aborted, the controller goes on as before: {error}")
            self._pipe.send("ended", key, "abort", CODES.get(type(error), INVALID_GOAL), str(error))
            return
        self.goals[key] = motion
        if self._feedback.is_canceled():
            self._feedback.reset()

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
