"""`ControlLoop`: answers every joint state with an effort command, and says what it cannot answer.

All time is that of the states' stamps, counted from the first one, so that simulated and real time
need no difference in code; only whether states come at all goes by the steady clock.
"""

from __future__ import annotations

import time

import numpy as np
from rclpy.clock import Clock
from rclpy.impl.rcutils_logger import RcutilsLogger
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from rnea_control.control import Controller
from rnea_control.exceptions import ControllerError, TrajectoryError
from rnea_control.node.effort_command import EffortCommand
from rnea_control.node.joint_state_reader import JointStateError, JointStateReader
from rnea_control.node.statistics import LatencyStatistics
from rnea_control.node.trajectory_message import waypoints_from_message

# An arm slower than this stands still, [rad/s] or [m/s].
STILL = 0.05
# A trajectory that starts later than this has its stamp from another clock, as have states that
# seem to have come this late, [s].
FARTHEST_START = 3600.0
LONGEST_LATENCY = 1.0


class ControlLoop:
    """What runs between activation and deactivation.

    Args:
        controller: computes the torques.
        command: publishes them.
        timeout: how long states may stay away, [s].
        logger, clock: of the node.

    Attributes:
        running: whether states are answered.
        now: stamp of the last state since that of the first, [s]; None before there is one.
        fault: what is wrong at present, in words; empty if nothing is.
        ticks: how many states were answered.
        trajectories_received: how many came, good or bad.
    """

    def __init__(
        self,
        controller: Controller,
        command: EffortCommand,
        timeout: float,
        logger: RcutilsLogger,
        clock: Clock,
    ) -> None:
        self.controller = controller
        self.command = command
        self.timeout = timeout
        self.statistics = LatencyStatistics()
        self.running = False
        self.now: float | None = None
        self.fault = ""
        self.ticks = 0
        self.trajectories_received = 0
        self._logger = logger
        self._clock = clock
        self._reader = JointStateReader(controller.model.joint_names)
        self._origin = 0  # stamp of the first state, [ns]
        self._received_at = 0.0  # when the last state with a new stamp came, by the steady clock
        self._stale = False
        self._halting = False
        self._busy = 0.0  # time that this loop itself spent beside the ticks since the last, [s]

    def start(self) -> None:
        """From now on states are answered; the position of the first one is held."""
        self.now = None
        self.fault = ""
        self._stale = self._halting = False
        self.running = True

    def stop(self) -> None:
        """Leaves a torque that carries the arm: the hardware keeps the last command for ever."""
        was_holding = self.running and self.now is not None
        self.running = False
        self.now = None
        self.fault = ""
        if not was_holding:
            return
        self._publish_holding_torque()
        self._logger.info("stopped: the last command carries the arm's weight")
        speed = float(np.abs(self._reader.v).max())
        if speed > STILL:
            self._logger.warning(
                f"the arm was still moving, at up to {speed:.2g} rad/s or m/s, and is not braked "
                "any more; stop the motion first"
            )

    def halt(self) -> bool:
        """Begins to bring a moving arm to rest; whether it is under way to it."""
        moving = self.now is not None and self.controller.is_moving(self.now)
        if moving and not self._halting:
            self._halting = True
            self.controller.halt(self.now)
        return moving

    def tick(self, message: JointState) -> None:
        """Answers one state."""
        if not self.running:
            return
        try:
            self._reader.read(message)
            self._answer(message)
        except (JointStateError, ControllerError) as error:
            self.fault = str(error)
            self._logger.error(
                f"{error}; the last command stays in force", throttle_duration_sec=1.0
            )

    def follow(self, message: JointTrajectory) -> None:
        """Replaces the motion by that of the message, or says why not."""
        self.trajectories_received += 1
        began = time.monotonic()
        try:
            self._follow(message)
        except TrajectoryError as error:
            self._logger.error(f"trajectory refused, the motion goes on as it was: {error}")
        self._busy += time.monotonic() - began

    def watch(self) -> None:
        """Without states there is no feedback: leaves the torque that carries the arm, once."""
        if self.now is None or self._stale or self.state_age() <= self.timeout + self._busy:
            return
        self._stale = True
        self.fault = f"no joint_states with a new stamp for {self.state_age():.3g} s"
        self._publish_holding_torque()
        self._logger.error(
            f"{self.fault}: the motion is dropped; the last command carries the arm's weight and "
            "stays in force"
        )

    def state_age(self) -> float:
        """Time since the last usable state with a new stamp, by the steady clock, [s]."""
        return time.monotonic() - self._received_at

    def _answer(self, message: JointState) -> None:
        """Publishes the command for the state just read."""
        stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        if stamp == 0:  # some hardware leaves it empty
            stamp = self._clock.now().nanoseconds
        q, controller = self._reader.q, self.controller
        if self.now is None:
            self._origin, self.now = stamp, 0.0
            self._received_at = time.monotonic()
            controller.hold(0.0, q)
            self._logger.info("holding the measured position")
        now = (stamp - self._origin) * 1e-9
        gap = now - self.now
        if gap < 0.0 or gap > self.timeout + self._busy or self._stale:
            self._stale = False
            controller.hold(now, q, keep_integral=True)
            self._logger.error(
                f"joint_states are back, {gap:+.3f} s after the last in their own time: the motion "
                "was dropped, holding the measured position",
                throttle_duration_sec=1.0,
            )
        if gap != 0.0:
            self._received_at = time.monotonic()
        self.now = now
        self._busy = 0.0
        controller.step(now, q, self._reader.v, self.command.torque)
        self.command.publish()
        self.ticks += 1
        self.fault = ""
        latency = (self._clock.now().nanoseconds - stamp) * 1e-9
        if 0.0 <= latency < LONGEST_LATENCY:  # else the stamps are of another clock
            self.statistics.add(latency)

    def _follow(self, message: JointTrajectory) -> None:
        if self.now is None:
            raise TrajectoryError(
                "the controller is not active or has no joint_states yet; send it again later"
            )
        if self._stale or self._halting:
            raise TrajectoryError(
                "the controller is stopping" if self._halting else "there are no joint_states now"
            )
        waypoints = waypoints_from_message(message, self.controller.model.joint_names)
        stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
        start = (stamp - self._origin) * 1e-9 if stamp else self.now
        ahead = start - self.now
        if ahead > FARTHEST_START:
            raise TrajectoryError(
                f"its stamp is {ahead:.0f} s ahead of that of joint_states; do both go by the same "
                "clock (use_sim_time)?"
            )
        self.controller.follow(self.now, waypoints, start)
        self._logger.info(
            f"following {len(waypoints)} points from {ahead:+.3f} s on, for "
            f"{waypoints[-1].time:.3f} s"
        )

    def _publish_holding_torque(self) -> None:
        try:
            self.controller.holding_torque(self._reader.q, self.command.torque)
        except ControllerError as error:
            self._logger.error(f"{error}; the last command stays in force")
            return
        self.command.publish()
