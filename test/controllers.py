"""Controllers of the planar arm for the tests, and what they are asked to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from robots import joint, link, robot, two_link_arm

from rnea_control.control import (
    ControlLaw,
    Controller,
    ControllerSettings,
    Gains,
    Motion,
    MotionRequest,
    TrajectorySettings,
    Waypoint,
    Waypoints,
)
from rnea_control.control.laws import JOINT_LAWS, TASK_LAWS
from rnea_control.model import RobotModel

ARM = RobotModel.from_urdf_string(two_link_arm())
ZERO = np.zeros(2)
# The laws whose gains are those of the joints.
JOINT_SPACE = tuple(law for law in JOINT_LAWS if law not in TASK_LAWS and law is not ControlLaw.own)


def wheel_and_hinge() -> RobotModel:
    """A continuous joint, `wheel`, and one from -1 to 1, `hinge`."""
    limit = '<limit {} effort="100" velocity="10"/>'
    links = link("base"), link("one"), link("two")
    wheel = joint("wheel", "base", "one", "continuous", limit=limit.format(""))
    hinge = joint("hinge", "one", "two", limit=limit.format('lower="-1" upper="1"'))
    return RobotModel.from_urdf_string(robot(*links, wheel, hinge))


def rules(nv: int = 2, tolerances: dict | None = None, **settings) -> TrajectorySettings:
    """The default ones but for these; tolerances may be one number for all joints."""
    values = {
        name: value if name == "goal_time" else np.broadcast_to(np.float64(value), nv)
        for name, value in (tolerances or {}).items()
    }
    default = TrajectorySettings.default(nv)
    return replace(default, tolerances=replace(default.tolerances, **values), **settings)


def following(
    q: Sequence[float] = (0.0, 0.0),
    model: RobotModel = ARM,
    law: ControlLaw = ControlLaw.computed_torque,
    tolerances: dict | None = None,
    friction_compensation: bool = False,
    **settings,
) -> Controller:
    """A controller that holds `q`; `settings` are those of trajectories."""
    gains = Gains.uniform(model.nv, 100.0, 20.0)
    of_trajectories = rules(model.nv, tolerances, **settings)
    options = {"friction_compensation": friction_compensation, "trajectories": of_trajectories}
    all_settings = ControllerSettings(gains, law, **options)
    controller = Controller(model, all_settings)
    controller.hold(0.0, np.array(q, dtype=float))
    return controller


def step(c: Controller, t: float, away: Sequence[float] | float = 0.0, fast=0.0) -> np.ndarray:
    """A step with the arm where it should be but for `away`, and `fast` too fast; its torques."""
    s = t - c.snapshot().rows.behind  # but for the scaling in this step
    q, v, _ = c.trajectory.at(s)
    v = v * c.speed_scaling
    tau = np.zeros(c.model.nv)
    c.step(t, q + np.array(away), v + np.array(fast), tau)
    return tau


def run(c: Controller, begin: float, end: float, dt: float = 0.001, **state) -> np.ndarray:
    """Steps from after `begin` to `end`; rows of the desired position, velocity, acceleration and
    effort after each, shape (n, 4, nv)."""
    rows = []
    for t in np.arange(round((end - begin) / dt)) * dt + begin + dt:
        step(c, float(t), **state)
        rows.append(c.snapshot().desired.copy())
    return np.array(rows)


def ask(
    c: Controller,
    t: float,
    points: Sequence[Waypoint] | Waypoints,
    start: float | None = None,
    lead: float = 0.0,
    **request,
) -> Motion:
    """Has the points followed as a request."""
    arrays = Waypoints.of(points, c.model.nv)
    plan = c.plan(MotionRequest(arrays, start, **request), c.situation(t), lead)
    assert c.adopt(plan)
    return plan.motion


def of_joints(points: Sequence[Waypoint], moved: Sequence[bool]) -> Waypoints:
    """The points for some joints only."""
    joints = np.array(moved)
    arrays = Waypoints.of(points, len(moved))
    return replace(arrays, fields=arrays.fields * joints, joints=joints)


def to(time: float, *position: float, velocity=0.0, acceleration=0.0) -> Waypoint:
    """A point with all fields but the effort; at rest without more."""
    q = np.array(position)
    return Waypoint(time, q, np.zeros(len(q)) + velocity, np.zeros(len(q)) + acceleration)
