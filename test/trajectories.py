"""Unchecked trajectories for the tests, by the functions that the planner uses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rnea_control.control import Trajectory, Waypoint, Waypoints
from rnea_control.control.trajectory import EFFORT, segments, spliced
from rnea_control.dynamics import Workspace, friction, gravity, rnea
from rnea_control.model import RobotModel


def through(points: Sequence[Waypoint]) -> Trajectory:
    """Through these waypoints, then at rest at the last one."""
    arrays = Waypoints.of(points, len(points[0].position))
    return Trajectory(arrays.times, segments(arrays))


def then(
    old: Trajectory,
    points: Sequence[Waypoint] | Waypoints,
    now: float,
    begin: float,
    continuous: np.ndarray | None = None,
) -> Trajectory:
    """The old trajectory until `begin`, then through these waypoints."""
    continuous = np.zeros(old.nv) if continuous is None else continuous
    ahead = Waypoints.of(points, old.nv)
    joined, turns = ahead.led_by(begin, old.sampled(begin), continuous)
    return spliced(old, now, turns, joined)


def quintics(positions: ArrayLike, step: float = 1.0) -> Trajectory:
    """Through positions, shape (n, nv), `step` seconds apart, from rest to rest."""
    positions = np.atleast_2d(np.asarray(positions, float))
    velocities = np.gradient(positions, step, axis=0)
    velocities[[0, -1]] = 0.0
    zero = np.zeros(positions.shape[1])
    states = zip(positions, velocities, strict=True)
    return through([Waypoint(step * i, *state, zero) for i, state in enumerate(states)])


def swing(nv: int, seed: int = 0, n: int = 4, step: float = 1.0) -> Trajectory:
    """Quintics through `n` random positions."""
    rng = np.random.default_rng(seed)
    return quintics(np.cumsum(rng.uniform(-0.8, 0.8, (n, nv)), axis=0), step)


def with_effort(path: Trajectory, values: np.ndarray) -> Trajectory:
    """The same with efforts at its points, shape (n, nv), that lines join."""
    c = path.coefficients.copy()
    c[:, :, EFFORT] = values
    c[:-1, :, EFFORT + 1] = np.diff(values, axis=0) / np.diff(path.starts)[:, None]
    return Trajectory(path.starts, c)


def torques(
    model: RobotModel, path: Trajectory, times: ArrayLike, without_gravity: bool = False
) -> np.ndarray:
    """With friction and the path's effort at each time, by the public functions."""
    ws, rows = Workspace(model), []
    for time in np.asarray(times):
        q, v, a, effort = path.sampled(time)
        torque = rnea(model, ws, q, v, a, np.zeros(model.nv)) + effort
        torque += friction(model, ws, v, np.zeros(model.nv))
        if without_gravity:
            torque -= gravity(model, ws, q, np.zeros(model.nv))
        rows.append(torque)
    return np.array(rows)
