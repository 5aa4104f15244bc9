"""`TrajectoryInput`: the one way of trajectories, from serialized messages to the control loop; and
the controller's side of the action `~/follow_joint_trajectory`: goals to motions and back.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from socket import socketpair

import numpy as np
from rclpy.node import Node

from rnea_control.child_process import command
from rnea_control.control import (
    Ending,
    EndKind,
    GoalTolerances,
    JointTolerance,
    Mode,
    Motion,
    MotionRequest,
    Waypoints,
)
from rnea_control.control.mode import REFUSALS
from rnea_control.control.motion import NOTABLE_DELAY, lateness
from rnea_control.exceptions import (
    TrajectoryError,
    TrajectoryJointsError,
    TrajectoryModeError,
    TrajectoryMultiDofError,
    TrajectoryPassedError,
    TrajectoryPlanningError,
    TrajectoryTimesError,
)
from rnea_control.messages.joint_trajectory import decode_trajectory
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.message_pipe import MessagePipe
from rnea_control.ros.arm_node import STEADY
from rnea_control.ros.loop_records import THROTTLE
from rnea_control.ros.retry import Retry

# A trajectory that starts later than this was stamped by another clock, [s].
FARTHEST_START = 3600.0
# How far ahead a new trajectory takes over, so that it is ready by then, [s]. After an attempt that
# was too late the next one has so many times its lead, and so many times what it took.
FIRST_LEAD, MOST_ATTEMPTS = 0.005, 4
LONGER, MARGIN = 4.0, 2.0
# Trajectories of a stream follow each other within this; the first one is logged, [s].
LONGEST_PAUSE = 1.0

# Of the action: its process.
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
# The first one that ends after this time, or later, is started again at once [s].
SHORTEST_LIFE = 2.0
# Else between two starts: longer each time, until one has lived for the longest [s].
FIRST_WAIT, LONGEST_WAIT = 2.0, 60.0


class TrajectoryInput:
    """Has trajectories followed; one thread calls it, while another one runs the loop.

    Attributes:
        loop: follows them.
        received: how many there were, refused ones included.
    """

    def __init__(self, loop: ControlLoop) -> None:
        self.loop = loop
        self.received, self._last = 0, -LONGEST_PAUSE
        self._told_delay = 0.0  # of the motion that is followed [s]
        self._logger = loop.log.logger

    def receive(self, trajectory: bytes) -> None:
        """Has a serialized JointTrajectory of the topic followed, or logs why not."""
        try:
            self.follow(trajectory, is_stream=True, on_end=self._note_ending)
        except TrajectoryError as error:
            text = f"trajectory refused, the controller goes on as before: {error}"
            self.loop.log.say("error", f"trajectory: {error.code}", text)

    def follow(
        self,
        trajectory: bytes,
        tolerances: GoalTolerances | None = None,
        is_stream: bool = False,
        on_end: Callable[[Ending], None] = lambda ending: None,
    ) -> Motion:
        """Has a serialized JointTrajectory followed.

        Args:
            trajectory: the message.
            tolerances, is_stream, on_end: as of `MotionRequest`.

        Raises:
            TrajectoryError: it cannot be followed; the arm goes on as before.
        """
        self.received += 1
        controller = self.loop.controller
        rules = controller.settings.rules
        message = decode_trajectory(controller.model.joint_names, trajectory, rules.allow_partial)
        points = Waypoints(message.times, message.fields, message.has, message.joints)
        frequency = rules.policy_frequency
        if frequency > 0.0 and points.has_only_positions and not points.times.any():
            points = replace(points, times=np.arange(1, len(points) + 1) / frequency)
        start = self.loop.states.time_of(message.stamp) if message.stamp else None
        request = MotionRequest(points, start, tolerances or GoalTolerances(), is_stream, on_end)
        lead = FIRST_LEAD
        for _ in range(MOST_ATTEMPTS):
            situation = self.loop.situation()
            ahead = 0.0 if start is None else start - situation.t
            if ahead > FARTHEST_START:
                raise TrajectoryTimesError(
                    f"its stamp is {ahead:.0f} s ahead of that of joint_states; do both use the "
                    "same clock (use_sim_time)?"
                )
            # Planning is no hang.
            plan = controller.plan(request, situation, lead, self.loop.attend)
            if self.loop.call(lambda supervisor, plan=plan: supervisor.adopt(plan)):
                self._report(plan.motion, len(points), ahead, is_stream)
                return plan.motion
            lead = max(LONGER * lead, MARGIN * (self.loop.states.time - situation.t))
        raise TrajectoryPlanningError(
            "it was not planned in time, as another trajectory took over or the computer is too "
            "busy; send it again"
        )

    def look_for_delay(self) -> None:
        """Beside the ticks: says once if a pause of the states has delayed the motion, and has it
        caught up where `trajectory.catch_up` asks for that."""
        controller = self.loop.controller
        motion, delay = controller.motion, controller.pause_delay
        if motion is None or controller.pause_lasts or not delay > NOTABLE_DELAY:
            self._told_delay = 0.0 if motion is None else self._told_delay
            return
        if abs(delay - self._told_delay) < NOTABLE_DELAY:
            return
        self._told_delay = delay
        text = f"the trajectory is {lateness(delay)}"
        if not controller.settings["trajectory.catch_up"]:
            self._logger.warning(f"{text}, and stays so; set trajectory.catch_up to catch up")
            return
        try:
            caught_up = self._catch_up(motion)
        except TrajectoryError as error:
            self._logger.warning(f"{text}, and stays so: {error}")
            return
        if caught_up:
            self._told_delay = 0.0
            self._logger.warning(f"{text}; it catches up")

    def _catch_up(self, motion: Motion) -> bool:
        controller, at = self.loop.controller, self.loop.situation()
        plan = controller.plan_to_catch_up(motion, at, FIRST_LEAD, self.loop.attend)
        return self.loop.call(lambda supervisor: supervisor.catch_up(plan, motion))

    def _note_ending(self, ending: Ending) -> None:
        """Tells the user, whom no result of a goal tells; called in a tick."""
        if ending.kind in (EndKind.PATH_TOLERANCE_VIOLATED, EndKind.GOAL_TOLERANCE_VIOLATED):
            self.loop.log.say("error", ending.kind.name, f"trajectory stopped: {ending.text}")

    def _report(self, motion: Motion, points: int, ahead: float, is_stream: bool) -> None:
        last, self._last = self._last, time.monotonic()
        text = (
            f"following a trajectory: {points} points, starts in {ahead:.3f} s, takes "
            f"{motion.end - motion.start:.3f} s"
        )
        if is_stream and self._last - last < LONGEST_PAUSE:
            self._logger.debug(text)
            return
        self._logger.info(text)
        if motion.note:
            self._logger.warning(motion.note)


class TrajectoryAction:
    """Has the action served as long as the node lives; goals are accepted while the loop runs.

    A process of its own serves it (action_process.py), which is started here, and again whenever it
    ends by itself or could not be started.

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
        self._later = node.create_timer(FIRST_WAIT, self._start, clock=STEADY)
        self._retry = Retry(FIRST_WAIT, LONGEST_WAIT)
        self._pipe: MessagePipe | None = None  # while no process runs
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
        """Starts the process later; `what` has happened."""
        wait = self._retry.failed()
        self._logger.error(f"{what}; it is started again in {wait:g} s")
        self._later.timer_period_ns = 1e9 * wait
        self._later.reset()

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
        """Rejects goals while none could be followed; a goal that is wrong in itself is accepted,
        as its result can say why."""
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
            self._input.loop.log.say("error", kind, text)

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
