"""`MotionSender`: has a controller follow the trajectory of a file, and notices the end."""

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

# Levels of log messages, by rcl_interfaces/Log.
WARNING, ERROR = 30, 40
# So long the controller may be out of sight, [s].
ABSENCE = 5.0


def read_trajectory(path: Path) -> JointTrajectory:
    """A file that `rnea_identify plan` wrote, or another one that `ros2 topic pub` takes. Whether
    the trajectory can be followed is the controller's to say.

    Raises:
        TrajectoryError: the file cannot be read, or is no JointTrajectory; the message names the
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
    """Sends a trajectory and notices its end, also by the topic, which has no answer.

    Args:
        node: that sends; an executor must spin it.
        controller: name of the controller's node.
        trajectory: to follow.
        now: the time by which it moves, [s].
        warn: is given what the controller logs meanwhile, from warnings on.

    Attributes:
        duration: of the trajectory, [s].
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
        node.create_subscription(Log, "/rosout", self._hear, QoSProfile(depth=100))

    def start(self) -> None:
        """Sends the trajectory."""
        self._seen, self._end_at = time.monotonic(), self._now() + self.duration
        self.send(self._trajectory)

    def has_ended(self) -> bool:
        """Looks whether the motion has ended."""
        if self.is_there:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > ABSENCE:
            self.end(f"{self.controller} is gone; see its output")
        if not self.by_action and self._now() >= self._end_at:
            self.end()
        return self.ended

    def stop(self) -> str:
        """Has the motion ended early; returns what is left to do for the user."""
        if self.by_action:
            self.cancel()
            return ""
        self.end()
        return (
            "the controller goes on with the trajectory, which came by the topic; to stop it: ros2 "
            f"service call {self.controller}/hold std_srvs/srv/Trigger"
        )

    def _hear(self, message: Log) -> None:
        logger = self.controller.strip("/").replace("/", ".")
        if message.name != logger or message.level < WARNING:
            return
        self._warn(f"{self.controller}: {message.msg}")
        # The topic has no answer: the log has it.
        if self.way and not self.by_action and message.level >= ERROR:
            self.end(message.msg)
