"""`MotionSender`: sends the trajectory of a file to a controller, and detects its end."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Callable
from pathlib import Path

import yaml
from rcl_interfaces.msg import Log
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_control.exceptions import TrajectoryError
from rnea_control.trajectory_client import TrajectoryClient

WARNING = 30  # level of a log message, from rcl_interfaces/Log
ERROR = 40  # level of a log message, from rcl_interfaces/Log
ABSENCE = 5.0  # time after which an undiscovered controller counts as ended [s]


def read_trajectory(path: Path) -> JointTrajectory:
    """Trajectory of a file of `rnea_identify plan`, or of any YAML for `ros2 topic pub`. The
    controller decides whether it can follow the trajectory.

    Raises:
        TrajectoryError: the file cannot be read, or is not a JointTrajectory; the message names the
            point.
    """
    where = "it"
    message = JointTrajectory()
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
        names = list(content["joint_names"])
        if not all(isinstance(name, str) for name in names):
            raise TypeError("joint_names must be strings")
        message.joint_names = names
        for i, point in enumerate(content["points"]):
            where = f"points[{i}]"
            numbers = {
                name: list(map(float, point.get(name) or ()))
                for name in ("positions", "velocities", "accelerations")
            }
            start = point["time_from_start"]
            sec, nanosec = (operator.index(start.get(name, 0)) for name in ("sec", "nanosec"))
            at = Duration(seconds=sec, nanoseconds=nanosec).to_msg()
            message.points.append(JointTrajectoryPoint(**numbers, time_from_start=at))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TrajectoryError(f"{path} cannot be read: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TrajectoryError(
            f"{path}: {where} is not as in a JointTrajectory, which `rnea_identify plan` writes "
            f"({type(error).__name__}: {error})"
        ) from error
    if not message.points:
        raise TrajectoryError(f"{path}: points must be a list of at least one point")
    return message


class MotionSender(TrajectoryClient):
    """Sends a trajectory and detects its end, also by the topic, which has no result.

    Args:
        node: node of the client; an executor must spin it.
        controller: name of the controller's node.
        trajectory: trajectory to follow.
        now: returns the time of the motion [s].
        warn: called with each warning and error that the controller logs during the motion.

    Attributes:
        duration: duration of the trajectory [s].
    """

    def __init__(
        self,
        node: Node,
        controller: str,
        trajectory: JointTrajectory,
        now: Callable[[], float],
        warn: Callable[[str], None],
    ) -> None:
        super().__init__(node, controller)
        last = Duration.from_msg(trajectory.points[-1].time_from_start)
        self.duration = 1e-9 * last.nanoseconds
        self._trajectory, self._now, self._warn = trajectory, now, warn
        self._end_at = self._seen = math.inf
        node.create_subscription(Log, "/rosout", self._note_log, QoSProfile(depth=100))

    def start(self) -> None:
        """Sends the trajectory."""
        self._seen, self._end_at = time.monotonic(), self._now() + self.duration
        self.send(self._trajectory)

    def has_ended(self) -> bool:
        """True if the motion has ended; call it repeatedly during the motion."""
        if self.is_there:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > ABSENCE:
            self.end(f"{self.controller} is gone; see its log")
        if not self.by_action and self._now() >= self._end_at:
            self.end()
        return self.ended

    def stop(self) -> str:
        """Ends the motion early; returns an instruction for the user, empty if none is needed."""
        if self.by_action:
            self.cancel()
            return ""
        self.end()
        return (
            "the controller still follows the trajectory, which was sent by the topic; to stop it: "
            f"ros2 service call {self.controller}/hold std_srvs/srv/Trigger"
        )

    def _note_log(self, message: Log) -> None:
        logger = self.controller.strip("/").replace("/", ".")
        if message.name != logger or message.level < WARNING:
            return
        self._warn(f"{self.controller}: {message.msg}")
        # The topic has no result: an error in the log ends the motion.
        if self.way and not self.by_action and message.level >= ERROR:
            self.end(message.msg)
