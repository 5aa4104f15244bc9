"""Unchecked trajectories for the tests, by the functions that the planner uses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnea_control.control import Trajectory, Waypoint, Waypoints
from rnea_control.control.interpolation import segments
from rnea_control.control.splicing import continued
from rnea_control.control.trajectory import rest


def through(points: Sequence[Waypoint]) -> Trajectory:
    """Through these waypoints, then at rest at the last one."""
    arrays = Waypoints.of(points, len(points[0].position))
    last = rest(arrays.positions[-1])
    return Trajectory(arrays.times, np.concatenate([segments(arrays), last[None]]))


def then(
    old: Trajectory,
    points: Sequence[Waypoint],
    now: float,
    begin: float,
    continuous: np.ndarray | None = None,
) -> Trajectory:
    """The old trajectory until `begin`, then through these waypoints."""
    turns = np.zeros(old.nv) if continuous is None else continuous
    return continued(old, now, begin, Waypoints.of(points, old.nv), turns)
