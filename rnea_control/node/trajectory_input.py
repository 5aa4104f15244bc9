"""`TrajectoryInput`: the one way of trajectories, from serialized messages to the control loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rnea_control.control import (
    Ending,
    EndKind,
    GoalTolerances,
    Motion,
    MotionRequest,
    Waypoints,
)
from rnea_control.control.motion import NOTABLE_DELAY, lateness
from rnea_control.control.planner import Plan, Situation
from rnea_control.exceptions import (
    TrajectoryError,
    TrajectoryPlanningError,
    TrajectoryTimesError,
)
from rnea_control.messages.joint_trajectory import decode_trajectory
from rnea_control.node.control_loop import ControlLoop

FARTHEST_START = 3600.0  # a trajectory that starts later was stamped by another clock [s]
FIRST_LEAD = 0.005  # time from now until a new trajectory takes over, for its planning [s]
MOST_ATTEMPTS = 4  # attempts to plan a trajectory in time
LONGER = 4.0  # lead of the next attempt, over the last lead
MARGIN = 2.0  # lead of the next attempt, over the duration of the last attempt
LONGEST_PAUSE = 1.0  # between trajectories of a stream, of which the first is logged [s]


class TrajectoryInput:
    """Plans trajectories and passes them to the control loop, which another thread runs.

    Attributes:
        loop: follows the trajectories.
        received: number of trajectories, with the refused ones.
    """

    def __init__(self, loop: ControlLoop) -> None:
        self.loop = loop
        self.received, self._last = 0, -LONGEST_PAUSE
        self._told_delay = 0.0  # logged delay of the motion that is followed [s]
        self._logger = loop.arm_loop.log.logger

    def receive(self, trajectory: bytes) -> None:
        """Follows a serialized JointTrajectory of the topic, or logs the refusal."""
        try:
            self.follow(trajectory, is_stream=True, on_end=self._note_ending)
        except TrajectoryError as error:
            text = f"trajectory refused, the controller goes on as before: {error}"
            self.loop.arm_loop.log.say("error", f"trajectory: {error.code}", text)

    def follow(
        self,
        trajectory: bytes,
        tolerances: GoalTolerances | None = None,
        is_stream: bool = False,
        on_end: Callable[[Ending], None] = lambda ending: None,
    ) -> Motion:
        """Follows a serialized JointTrajectory.

        Args:
            trajectory: the message.
            tolerances, is_stream, on_end: see `MotionRequest`.

        Raises:
            TrajectoryError: the trajectory is refused; the arm continues as before.
        """
        self.received += 1
        controller = self.loop.controller
        rules = controller.settings.rules
        message = decode_trajectory(controller.model.joint_names, trajectory, rules.allow_partial)
        points = Waypoints(message.times, message.fields, message.has, message.joints)
        frequency = rules.policy_frequency
        if frequency > 0.0 and points.has_only_positions and not points.times.any():
            points = replace(points, times=np.arange(1, len(points) + 1) / frequency)
        start = self.loop.arm_loop.states.time_of(message.stamp) if message.stamp else None
        request = MotionRequest(points, start, tolerances or GoalTolerances(), is_stream, on_end)
        lead = FIRST_LEAD
        if controller.streams:  # a trajectory that is refused ends no stream
            self._plan(request, lead, ends_stream=False)
        for _ in range(MOST_ATTEMPTS):
            situation, plan = self._plan(request, lead)
            ahead = 0.0 if start is None else start - situation.t
            if self.loop.call(lambda supervisor, plan=plan: supervisor.adopt(plan)):
                self._report(plan.motion, len(points), ahead, is_stream)
                return plan.motion
            lead = max(LONGER * lead, MARGIN * (self.loop.arm_loop.states.time - situation.t))
        raise TrajectoryPlanningError(
            "it was not planned in time, as another trajectory took over or the computer is too "
            "busy; send it again"
        )

    def _plan(
        self, request: MotionRequest, lead: float, ends_stream: bool = True
    ) -> tuple[Situation, Plan]:
        """The plan for a request, and the situation that it starts from; see
        `Supervisor.situation`."""
        situation = self.loop.situation(ends_stream)
        if request.start is not None and (ahead := request.start - situation.t) > FARTHEST_START:
            raise TrajectoryTimesError(
                f"its stamp is {ahead:.0f} s ahead of that of joint_states; do both use the "
                "same clock (use_sim_time)?"
            )
        # The interpreter does not hang while it plans.
        return situation, self.loop.controller.plan(request, situation, lead, self.loop.attend)

    def look_for_delay(self) -> None:
        """Logs once that a pause of the states has delayed the motion, which catches up if
        `trajectory.catch_up` is set. Call a few times a second."""
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
        """Logs the violation of a tolerance, as the topic has no result; called in a tick."""
        if ending.kind in (EndKind.PATH_TOLERANCE_VIOLATED, EndKind.GOAL_TOLERANCE_VIOLATED):
            self.loop.arm_loop.log.say(
                "error", ending.kind.name, f"trajectory stopped: {ending.text}"
            )

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
