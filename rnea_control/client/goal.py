"""`Goal`: a motion that was sent to the controller, its progress and its end."""

from __future__ import annotations

import math
import time
from contextlib import closing, suppress
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from std_srvs.srv import Trigger

from rnea_control.array_types import FloatArray
from rnea_control.client.connection import GONE, LOOK, Connection
from rnea_control.client.controller_link import ControllerLink, GoalWatch
from rnea_control.client.profile import Profile
from rnea_control.control.motion import OFF_GOAL
from rnea_control.exceptions import Aborted, ArmError, NotThere, Refused, Stopped, TimedOut
from rnea_control.ros.conventions import PROCESS_ENDED

# error_code of control_msgs/action/FollowJointTrajectory
TOLERANCES = (-4, -5)
NANOSECONDS = 1e-9
LONGEST_STOP = 10.0  # time limit for the end of a canceled goal [s]


class Goal:
    """A motion that was sent to the controller.

    Args:
        link: connection to the controller.
        profile: the motion.

    Attributes:
        client: client of the action, for this goal.
        watch: detects the end of this goal.
        target: positions at the end, shape (nv,), [rad] or [m].
        duration: planned duration [s].
        started: stamp of the start of the motion, by the clock of the hardware, from the last
            feedback [s]; NaN before.
        times: time since the start of the motion, for each feedback [s].
        errors: position errors, an array of shape (nv,) for each feedback [rad] or [m].
    """

    def __init__(self, link: ControllerLink, profile: Profile) -> None:
        self._link, self._profile = link, profile
        self.target, self.duration = profile.positions[-1].copy(), profile.duration
        self._sent_at = time.monotonic()
        self.started = math.nan
        self.times: list[float] = []
        self.errors: list[FloatArray] = []
        self.client = link.client.another()
        self._is_canceled = self._is_held = False
        self.watch = GoalWatch(link, self.client)
        if self.duration:
            link.send(profile, self._note, self.client)
        else:
            self.client.result = "the arm is already at its goal"
            self.client.end()

    def _note(self, feedback: Any) -> None:
        """Stores time and errors of a feedback message."""
        since, stamp = feedback.desired.time_from_start, feedback.header.stamp
        self.times.append(since.sec + NANOSECONDS * since.nanosec)
        self.started = stamp.sec + NANOSECONDS * stamp.nanosec - self.times[-1]
        errors = dict(zip(feedback.joint_names, feedback.error.positions, strict=False))
        joints = self._link.given.model.joint_names
        self.errors.append(np.array([errors.get(name, math.nan) for name in joints]))

    @property
    def elapsed(self) -> float:
        """Time since the start of the motion, from the last feedback [s]."""
        return self.times[-1] if self.times else 0.0

    @property
    def has_ended(self) -> bool:
        """True if the motion has ended, or no result is to be expected."""
        return self.watch.has_ended()

    @property
    def progress(self) -> float:
        """Elapsed share of the duration, 0 to 1."""
        if self.client.ended and not self.failure:
            return 1.0
        return min(self.elapsed / self.duration, 1.0) if self.duration else 1.0

    @property
    def words(self) -> str:
        """Progress or result in words."""
        client = self.client
        if self.has_ended:
            return client.failure or client.result or "the goal is reached"
        return f"{self.elapsed:.1f} of {self.duration:.1f} s"

    @property
    def failure(self) -> ArmError | None:
        """Error of an ended motion that has not reached its goal."""
        client, words = self.client, self.client.failure
        if self.watch.is_lost or words.endswith(PROCESS_ENDED):
            return NotThere(words)
        if client.status == GoalStatus.STATUS_CANCELED:
            return Stopped(words or client.result)
        if client.result.startswith(OFF_GOAL):
            return Aborted(client.result)
        if not words:
            return None
        if client.code in TOLERANCES:
            return Aborted(words)
        began = self.errors or self._link.moved_at > self._sent_at
        return Stopped(words) if began else Refused(words)

    def wait(self, seconds: float = math.inf) -> Goal:
        """Waits for the end of the motion; returns this goal. Ctrl-C cancels the motion.

        Raises:
            Refused: the controller did not begin the motion.
            Aborted: a tolerance was violated, or the motion has ended away from its goal.
            Stopped: the motion was canceled, stopped or replaced.
            NotThere: the controller has ended.
            TimedOut: the motion has not ended after `seconds`, and continues.
        """
        try:
            self._await_end(seconds)
        except BaseException:
            self.cancel()
            self._await_end(LONGEST_STOP)
            self.cancel()
            raise
        if self._link.connection.has_ended:
            self.cancel()
        if not self.has_ended:
            raise TimedOut(f"the motion has not ended within {seconds:g} s: {self.words}")
        if self.failure is not None:
            raise self.failure
        return self

    def _await_end(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not self.has_ended and time.monotonic() < deadline:
            self._link.connection.wait(lambda: self.client.ended, LOOK)

    def cancel(self) -> None:
        """Cancels the motion: the arm brakes and holds."""
        link = self._link
        if self.has_ended and not self.watch.is_lost:
            return
        if not self._is_canceled:
            self._is_canceled = True
            with suppress(ArmError, *GONE):
                link.connection.run(self.client.cancel)
        if link.connection.has_ended and not self._is_held:
            # On Ctrl-C, rclpy shuts down all contexts if the program has one, too.
            self._is_held = True
            namespace = link.controller.rpartition("/")[0]
            with suppress(ArmError), closing(Connection("rnea_client", namespace)) as connection:
                connection.call(Trigger, f"{link.controller}/hold", Trigger.Request())
