"""`TrajectoryInput`: the one way of trajectories, from serialized messages to the control loop."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rnea_control.control import Ending, EndKind, GoalTolerances, Motion, MotionRequest, Waypoints
from rnea_control.exceptions import TrajectoryError, TrajectoryPlanningError, TrajectoryTimesError
from rnea_control.messages.joint_trajectory import decode_trajectory
from rnea_control.node.control_loop import ControlLoop
from rnea_control.parameters.settings import Settings, row

# A trajectory that starts later than this was stamped by another clock, [s].
FARTHEST_START = 3600.0
# How far ahead a new trajectory takes over, so that it is ready by then, [s]. After an attempt that
# was too late the next one has so many times its lead, and so many times what it took.
FIRST_LEAD, MOST_ATTEMPTS = 0.005, 4
LONGER, MARGIN = 4.0, 2.0
# Trajectories of a stream follow each other within this; the first one is logged, [s].
LONGEST_PAUSE = 1.0


@dataclass(frozen=True)
class InputSettings(Settings):
    """How messages are read.

    Attributes:
        allow_partial: whether a trajectory may leave joints out.
        policy_frequency: of points that all have time 0, [Hz]; 0 refuses these.
    """

    allow_partial: bool = row("allow_partial_joints_goal", False)
    policy_frequency: float = row("positions_upsampling.policy_frequency", 0.0)

    @classmethod
    def of(cls, values: Mapping[str, Any], **given: Any) -> InputSettings:
        """Those of the controller's parameters."""
        if not values["positions_upsampling.enable"]:
            given["policy_frequency"] = 0.0
        return super().of(values, **given)


class TrajectoryInput:
    """Has trajectories followed; one thread calls it, while another one runs the loop.

    Attributes:
        loop: follows them.
        settings: may be set at any time.
        received: how many there were, refused ones included.
    """

    def __init__(self, loop: ControlLoop, settings: InputSettings) -> None:
        self.loop, self.settings = loop, settings
        self.received, self._last = 0, -LONGEST_PAUSE
        self._logger = loop.log.logger

    def receive(self, trajectory: bytes) -> None:
        """Has a serialized JointTrajectory of the topic followed, or logs why not."""
        try:
            self.follow(trajectory, is_stream=True, on_end=self._note_ending)
        except TrajectoryError as error:
            self._logger.error(f"trajectory refused, the controller goes on as before: {error}")

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
        joints = self.loop.controller.model.joint_names
        message = decode_trajectory(joints, trajectory, self.settings.allow_partial)
        points = Waypoints(message.times, message.fields, message.has, message.joints)
        frequency = self.settings.policy_frequency
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
            plan = self.loop.controller.plan(request, situation, lead, self.loop.attend)
            if self.loop.adopt(plan):
                self._report(plan.motion, len(points), ahead, is_stream)
                return plan.motion
            lead = max(LONGER * lead, MARGIN * (self.loop.states.time - situation.t))
        raise TrajectoryPlanningError(
            "it was not planned in time, as another trajectory took over or the computer is too "
            "busy; send it again"
        )

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
