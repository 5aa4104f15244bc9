"""`Stops`: the trajectories in which a controller brakes, in memory that is allocated once."""

from __future__ import annotations

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.control.stopping import SCRATCH_ROWS, STOP_SEGMENTS, stop_along_path
from rnea_control.control.trajectory import COEFFICIENTS, EFFORT, Trajectory
from rnea_control.dynamics import Workspace
from rnea_control.model import RobotModel

# No arm is faster: a velocity beyond it makes no sense, and makes no stop, [rad/s] or [m/s].
FASTEST = 1e3


class Stops:
    """Makes stops, one at a time. Performs no allocation.

    Args:
        nv: number of velocities of the robot.
        workspace: made for it.
    """

    def __init__(self, nv: int, workspace: Workspace) -> None:
        self._workspace = workspace
        # Two take turns, as a stop may continue another.
        self._latest, self._spare = (
            Trajectory(np.zeros(STOP_SEGMENTS), np.zeros((STOP_SEGMENTS, nv, COEFFICIENTS)))
            for _ in range(2)
        )
        self._line = Trajectory(np.zeros(1), np.zeros((1, nv, COEFFICIENTS)))
        self._no_shift = np.zeros(nv)
        self._scratch = np.zeros((SCRATCH_ROWS, nv))

    def made(self, trajectory: Trajectory) -> bool:
        """Whether this is the latest stop, whose memory a later one will take."""
        return trajectory is self._latest

    def along(
        self,
        model: RobotModel,
        path: Trajectory,
        s: float,
        scaling: float,
        scaling_rate: float,
        settings: FloatArray,
        max_deceleration: FloatArray,
        shift: FloatArray | None = None,
    ) -> Trajectory:
        """A stop along a path; see `stop_along_path`.

        Args:
            model: the robot as it is now.
            path: the running trajectory.
            s: trajectory time now, at which the stop begins, [s].
            scaling, scaling_rate: of trajectory time, [1] and [1/s].
            settings: of the controller; see layout.py.
            max_deceleration: shape (nv,), [rad/s^2] or [m/s^2]; may be infinite.
            shift: added to the positions of the path, shape (nv,), [rad] or [m].
        """
        stop, self._spare = self._spare, self._latest
        self._latest = stop
        stop.end_time = stop_along_path(
            model.bodies,
            self._workspace.memory,
            settings[layout.FRICTION : layout.FRICTION + 3],
            settings[layout.EFFORT_LIMIT],
            max_deceleration,
            self._no_shift if shift is None else shift,
            path.starts,
            path.coefficients,
            s,
            scaling,
            scaling_rate,
            self._scratch,
            stop.starts,
            stop.coefficients,
        )
        return stop

    def straight_on(
        self,
        model: RobotModel,
        s: float,
        q: FloatArray,
        v: FloatArray,
        settings: FloatArray,
        max_deceleration: FloatArray,
    ) -> Trajectory:
        """A stop from position `q` and velocity `v`, shape (nv,), that ends within the position
        limits; other arguments as of `along`."""
        line = self._line
        line.starts[0] = s
        line.coefficients[0, :, 0] = q
        np.clip(v, -FASTEST, FASTEST, out=line.coefficients[0, :, 1])
        stop = self.along(model, line, s, 1.0, 0.0, settings, max_deceleration)
        _keep_within_limits(model, stop.coefficients, q)
        return stop


def _keep_within_limits(model: RobotModel, path: FloatArray, q: FloatArray) -> None:
    """Shortens the way from `q` for joints that it would take out of their limits, so that they
    brake harder."""
    for j in range(model.nv):
        end = path[-1, j, 0]
        bound = min(max(end, model.lower[j]), model.upper[j])
        if bound != end != q[j]:
            path[:, j, 0] -= q[j]
            path[:, j, :EFFORT] *= max((bound - q[j]) / (end - q[j]), 0.0)
            path[:, j, 0] += q[j]
