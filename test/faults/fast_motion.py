"""The motion that the faults break into: the Panda goes there and back, at up to 70 % of its
velocity limits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np

from rnea_control.control import Waypoint
from rnea_control.demo.robots import DemoRobot, load_robot, motion
from rnea_control.model import RobotModelWarning

# How far each joint goes from the demo's start posture [rad], and how long that takes [s]. The
# speeds are 1.7 times the largest of `rnea_demo`.
WAY = np.array([0.8, 0.7, -0.8, 0.7, 0.9, -0.9, -0.9])
LEG = 1.0
# A posture away from singularities, and the tip, for streams of poses.
READY = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
TIP = "panda_link8"
# Between points of a sampled path, [s].
SAMPLE = 1e-3


@dataclass(frozen=True)
class Path:
    """A path as desired positions, shape (n, nv), `SAMPLE` apart, and its waypoints."""

    waypoints: list[Waypoint]
    positions: np.ndarray


@cache
def panda() -> DemoRobot:
    """The Panda of `rnea_demo`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        return load_robot("panda")


@cache
def there_and_back() -> Path:
    """At the start posture again after two legs, at rest at both ends of each."""
    robot, zero = panda(), np.zeros(7)
    there = Waypoint(LEG, robot.start + WAY, zero, zero)
    return path([there, Waypoint(2.0 * LEG, robot.start, zero, zero)])


def path(waypoints: list[Waypoint]) -> Path:
    """What the controller makes of waypoints that it gets at the start posture."""
    robot = panda()
    trajectory = motion(robot.model, robot.start, waypoints)
    times = np.arange(0.0, trajectory.end_time + SAMPLE / 2, SAMPLE)
    return Path(waypoints, np.array([trajectory.at(t)[0] for t in times]))
