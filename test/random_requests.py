"""Random trajectories of every kind that a controller takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from robots import joint, link, robot

from rnea_control.control import GoalTolerances, JointTolerance, MotionRequest, Waypoints
from rnea_control.control.waypoints import ACCELERATION, EFFORT, POSITION, VELOCITY
from rnea_control.model import RobotModel

KINDS = ("lines", "cubics", "quintics", "mixed", "velocities", "accelerations")


def three_joints(limits: Sequence[tuple], last: str = "revolute", axis=(0, 0, 1)) -> RobotModel:
    """An arm with a continuous joint in its middle; `limits` are of efforts and velocities."""
    text = '<limit lower="-3" upper="3" effort="{}" velocity="{}"/>'
    shoulder, wheel, wrist = (text.format(*limit) for limit in limits)
    return RobotModel.from_urdf_string(
        robot(
            link("base"),
            link("one", 1.0, (0.2, 0, 0), (0.02, 0, 0, 0.02, 0, 0.02)),
            link("two", 0.8, (0.1, 0, 0), (0.01, 0, 0, 0.01, 0, 0.01)),
            link("three", 0.5, (0, 0, 0.1), (0.01, 0, 0, 0.01, 0, 0.01)),
            joint("shoulder", "base", "one", axis=(0, 1, 0), limit=shoulder),
            joint("wheel", "one", "two", "continuous", (0, 1, 0), (0.4, 0, 0), limit=wheel),
            joint("wrist", "two", "three", last, axis, (0.2, 0, 0), limit=wrist),
        )
    )


class RandomRequests:
    """Draws requests for an arm of `nv` joints that mostly are within its limits."""

    def __init__(self, rng: np.random.Generator, nv: int) -> None:
        self.rng, self.nv = rng, nv

    def draw(self, t: float, near: np.ndarray) -> MotionRequest:
        """One that starts about time `t` at about the position `near`."""
        rng, nv = self.rng, self.nv
        n = int(rng.choice([1, 1, 2, 5, 20]))
        steps = rng.uniform(0.1, 0.5, n) if n < 20 else np.full(n, 0.02)
        times = np.cumsum(steps) - (steps[0] if n > 1 and rng.random() < 0.1 else 0.0)
        kind = str(rng.choice(KINDS))
        fields, has = np.zeros((4, n, nv)), np.zeros((4, n), dtype=bool)
        towards = np.clip(near, -2.5, 2.5)
        walk = np.cumsum(rng.uniform(-1.5, 1.5, (n, nv)) * steps[:, None], axis=0)
        fields[POSITION] = np.clip(towards + walk, -2.9, 2.9)
        fields[VELOCITY] = rng.uniform(-1.5, 1.5, (n, nv))
        fields[ACCELERATION] = rng.uniform(-3.0, 3.0, (n, nv))
        if rng.random() < 0.8:  # else it is to settle
            fields[VELOCITY:, -1] = 0.0
        has[POSITION] = kind not in ("velocities", "accelerations")
        has[VELOCITY] = kind in ("cubics", "quintics", "velocities")
        has[ACCELERATION] = kind in ("quintics", "accelerations")
        if kind == "mixed":
            has[:ACCELERATION] = rng.random((2, n)) < 0.7
            has[ACCELERATION] = (rng.random(n) < 0.5) & has[VELOCITY]
            has[POSITION] |= ~has[VELOCITY]
        if rng.random() < 0.4:
            has[EFFORT], fields[EFFORT] = rng.random(n) < 0.8, rng.uniform(-3.0, 3.0, (n, nv))
        joints = np.ones(nv, dtype=bool)
        if rng.random() < 0.3:
            joints = rng.permutation(np.arange(nv) < rng.integers(1, nv))
        fields[~has] = 0.0
        fields *= joints
        start = None
        if rng.random() < 0.7:
            start = t + float(rng.choice([0.0, rng.uniform(0.0, 0.3), -rng.uniform(0.0, 0.5)]))
        points, tolerances = Waypoints(times, fields, has, joints), self._tolerances()
        return MotionRequest(points, start, tolerances, is_stream=bool(rng.random() < 0.5))

    def _tolerances(self) -> GoalTolerances:
        rng = self.rng
        if rng.random() < 0.7:
            return GoalTolerances()
        names = ("shoulder", "wheel", "wrist")
        path, goal = (
            tuple(JointTolerance(name, float(rng.choice([0.0, -1.0, 0.02, 0.2]))) for name in names)
            for _ in range(2)
        )
        return GoalTolerances(path, goal, float(rng.choice([0.0, -1.0, 0.05])))
