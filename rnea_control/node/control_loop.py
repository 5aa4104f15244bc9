"""`ControlLoop`: answers every joint state with an effort command, and logs those it refuses.

All time is that of the states' stamps, counted from the first one: the code is the same for
simulated and real time. Only the watchdog for missing states goes by the steady clock.
"""

from __future__ import annotations

import math
import threading
import time

import numpy as np
from rclpy.clock import Clock

from rnea_control.control import (
    Controller,
    ControllerState,
    EndKind,
    Motion,
    Plan,
    Situation,
)
from rnea_control.exceptions import ControllerError, TrajectoryError
from rnea_control.messages.cdr import CdrError
from rnea_control.messages.joint_state import JointStateDecoder, JointStateError, OtherJoints
from rnea_control.node.statistics import LoopStatistics
from rnea_control.ros.deferred_log import DeferredLog, Logger
from rnea_control.ros.effort_command import Command

# An arm slower than this is at rest, [rad/s] or [m/s].
STILL = 0.05
# States that seem to be older than this were stamped by another clock, [s].
LONGEST_AGE = 1.0


class ControlLoop:
    """What runs between activation and deactivation.

    One thread calls `tick` and `watch`, another one may call everything else.

    Args:
        controller: computes the torques.
        command: publishes them.
        timeout: how long states may be missing, [s].
        logger, clock: of the node.

    Attributes:
        running: whether states are answered.
        now: stamp of the last state since that of the first, [s]; None before there is one.
        fault: what is wrong now; empty if nothing is.
        statistics: of the ticks since activation.
        publishers: how many publishers of states there are; with more than one, missed states are
            not counted.
        log: what the ticks say.
    """

    def __init__(
        self,
        controller: Controller,
        command: Command,
        timeout: float,
        logger: Logger,
        clock: Clock,
    ) -> None:
        self.controller = controller
        self.command = command
        self.timeout = timeout
        self.statistics = LoopStatistics()
        self.publishers = 1
        self.running = False
        self.now: float | None = None
        self.fault = ""
        self.log = DeferredLog(logger)
        self._logger = logger
        self._clock = clock
        self._system_time = True
        # Held through every tick; elsewhere only to read, or to swap one object for another.
        self._lock = threading.Lock()
        self._decoder = JointStateDecoder(controller.model.joint_names)
        self._origin = 0  # stamp of the first state, [ns]
        self._stamp = 0  # of the last one, [ns]
        self._taken_at = 0.0  # when the loop took it, by the steady clock, [s]
        self._count: int | None = None  # its publisher's count of it
        self._received_at = 0.0  # when the last state with a new stamp came, by the steady clock
        self._stale = False
        self._halting = False

    def like(self, controller: Controller, command: Command) -> ControlLoop:
        """A new loop with this controller and command."""
        return ControlLoop(controller, command, self.timeout, self._logger, self._clock)

    def start(self) -> None:
        """Answers states from now on; holds the position of the first one."""
        self.now = self._count = None
        self.fault = ""
        self._stale = self._halting = False
        self.statistics = LoopStatistics()
        self.housekeeping()
        self.running = True

    def stop(self) -> None:
        """Ends with the gravity torque: the hardware applies the last command for ever."""
        with self._lock:
            was_holding = self.running and self.now is not None
            self.running = False
            self.now = None
            self.fault = ""
            self.controller.drop("the controller was deactivated")
            if was_holding:
                self._publish_gravity_torque()
        self.log.flush()
        if not was_holding:
            return
        self._logger.info("stopped: the last command holds the arm against gravity")
        speed = float(np.abs(self._decoder.v).max())
        if speed > STILL:
            self._logger.warning(
                f"the arm was still moving, at up to {speed:.2g} rad/s or m/s, and nothing brakes "
                "it now; bring it to rest before you deactivate the controller"
            )
        self._logger.info(f"since activation: {self.statistics}")

    def fail(self, reason: str) -> None:
        """Ends for good after a bug in this program, with the gravity torque."""
        with self._lock:
            self.running = False
            self.fault = reason
            self.controller.drop("the controller has failed")
            if self.now is not None:
                self._publish_gravity_torque()
        self.log.say(
            "fatal", "failure", f"{reason}\nthe last command holds the arm against gravity"
        )

    def halt(self) -> bool:
        """Starts to bring a moving arm to rest; returns whether it still moves."""
        with self._lock:
            if not self.running or self.now is None:
                return False
            if not self._halting:
                self._halting = self.controller.is_moving
                self.controller.stop(EndKind.DROPPED, "the controller is about to end")
            return self.controller.is_moving

    def cancel(self, motion: Motion) -> None:
        """Brings the arm to rest if it still follows this motion."""
        with self._lock:
            if motion is self.controller.motion:
                self.controller.stop(EndKind.CANCELLED, "cancelled by the client")

    def situation(self) -> Situation:
        """What a new trajectory starts from.

        Raises:
            TrajectoryError: none may be followed now.
        """
        with self._lock:
            if self.now is None:
                raise TrajectoryError(
                    "the controller is not active or has no joint_states yet; send it again later"
                )
            if self._halting:
                raise TrajectoryError("the controller is bringing the arm to rest, to stop")
            if self._stale:
                raise TrajectoryError("joint_states are missing; send it again when they are back")
            return self.controller.situation(self.now)

    def adopt(self, plan: Plan) -> bool:
        """Changes to a plan, unless it is too late for it."""
        with self._lock:
            if self.now is None or self._stale or self._halting:
                return False
            return self.controller.adopt(plan)

    def time_of(self, stamp: int) -> float:
        """The controller's time of a stamp [ns], [s]."""
        return (stamp - self._origin) * 1e-9

    def snapshot(self) -> tuple[int, ControllerState] | None:
        """Stamp of the last state [ns], and the controller's state then; None before there is
        one."""
        with self._lock:
            return None if self.now is None else (self._stamp, self.controller.snapshot())

    def housekeeping(self) -> None:
        """Work beside the ticks, once a second and when log messages wait."""
        self._system_time = not self._clock.ros_time_is_active
        self.log.flush()

    def tick(self, state: bytes, count: int | None = None) -> None:
        """Answers one state.

        Args:
            state: a serialised JointState.
            count: its publisher's count of it.
        """
        taken_at = time.monotonic()
        with self._lock:
            if not self.running:
                return
            self._count_missed(count)
            try:
                self._answer(self._decoder.decode(state), taken_at)
            except OtherJoints as error:
                self.log.say("info", "others", f"{error}; such messages are ignored")
            except (CdrError, JointStateError, ControllerError) as error:
                self.fault = str(error)
                self.log.say("error", "state", f"{error}; the last command stays in force")

    def watch(self) -> None:
        """Without states there is no feedback: commands the gravity torque, once."""
        if self.now is None or self._stale or self.state_age() <= self.timeout:
            return
        with self._lock:
            if not self.running:
                return
            self._stale = True
            self.fault = f"no joint_states with a new stamp for {self.state_age():.3g} s"
            self.controller.drop(self.fault)
            self._publish_gravity_torque()
        self.log.say(
            "error",
            "stale",
            f"{self.fault}: trajectory dropped; the last command holds the arm against gravity and "
            "stays in force",
        )

    def state_age(self) -> float:
        """Time since the last usable state with a new stamp, by the steady clock, [s]."""
        return time.monotonic() - self._received_at

    def _count_missed(self, count: int | None) -> None:
        if count is None or self.publishers > 1:  # each counts its own
            self._count = None
            return
        if self._count is not None and count > self._count:
            self.statistics.missed += count - self._count - 1
        self._count = count

    def _answer(self, stamp: int, taken_at: float) -> None:
        """Publishes the command for the state just decoded."""
        clock = time.time_ns() if self._system_time else self._clock.now().nanoseconds
        age = (clock - stamp) * 1e-9
        if stamp == 0:  # some hardware does not set it
            stamp, age = clock, math.nan
        q, controller = self._decoder.q, self.controller
        if self.now is None:
            self._origin = self._stamp = stamp
            self.now, self._taken_at, self._received_at = 0.0, math.nan, taken_at
            controller.hold(0.0, q)
            self.log.say("info", "holding", "holding the measured position")
        now = (stamp - self._origin) * 1e-9
        gap = now - self.now
        if gap < 0.0 or gap > self.timeout or self._stale:
            self._stale = False
            self.statistics.dropped += 1
            controller.hold(now, q, True, f"the stamps of joint_states jumped by {gap:+.3f} s")
            self.log.say(
                "error",
                "gap",
                f"joint_states are back, with a stamp {gap:+.3f} s after the last: trajectory "
                "dropped, holding the measured position",
            )
        if gap != 0.0:
            self._received_at = taken_at
        self.now = now
        controller.step(now, q, self._decoder.v, self.command.torque)
        self.fault = ""
        self.command.publish()
        self._record(stamp, taken_at, age)

    def _record(self, stamp: int, taken_at: float, age: float) -> None:
        statistics, period = self.statistics, (stamp - self._stamp) * 1e-9
        interval = taken_at - self._taken_at
        statistics.ticks += 1
        if interval > 1.5 * period > 0.0:
            statistics.late += 1
        self._stamp, self._taken_at = stamp, taken_at
        duration = time.monotonic() - taken_at
        if not 0.0 <= age < LONGEST_AGE:
            age = math.nan  # the stamps are of another clock
        statistics.record(duration, age + duration, abs(interval - period))

    def _publish_gravity_torque(self) -> None:
        try:
            self.controller.holding_torque(self._decoder.q, self.command.torque)
        except ControllerError as error:
            self.log.say("error", "holding torque", f"{error}; the last command stays in force")
            return
        self.command.publish()
