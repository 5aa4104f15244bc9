"""Turns JointTrajectory messages into waypoints in the controller's joint order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from trajectory_msgs.msg import JointTrajectory

from rnea_control.control import Waypoint
from rnea_control.exceptions import TrajectoryError


def waypoints_from_message(message: JointTrajectory, joints: Sequence[str]) -> list[Waypoint]:
    """The waypoints of a message, their times counted from its start.

    Raises:
        TrajectoryError: joints that are unknown, missing or given twice, fields of the wrong size.
            What the numbers themselves must satisfy is checked where the trajectory is made.
    """
    names = list(message.joint_names)
    unknown = [name for name in names if name not in joints]
    missing = [name for name in joints if name not in names]
    if unknown:
        raise TrajectoryError(
            f"joint_names has {', '.join(map(repr, unknown))}, not controlled here; the joints "
            f"are {', '.join(joints)}"
        )
    if missing:
        raise TrajectoryError(
            f"joint_names lacks {', '.join(missing)}; a trajectory must name every controlled joint"
        )
    if len(names) != len(joints):
        raise TrajectoryError(f"joint_names names a joint twice: {', '.join(names)}")
    order = [names.index(joint) for joint in joints]
    waypoints = []
    for i, point in enumerate(message.points):
        if len(point.effort) > 0:
            raise TrajectoryError(
                f"point {i}: has effort values, which are not supported; leave effort empty"
            )
        fields = []
        for field in ("positions", "velocities", "accelerations"):
            values = np.array(getattr(point, field), dtype=np.float64)
            if values.size == 0 and field != "positions":
                fields.append(None)
                continue
            if values.size != len(names):
                raise TrajectoryError(
                    f"point {i}: has {values.size} {field} for {len(names)} joint_names; it must "
                    "have one for each"
                )
            fields.append(values[order])
        time = point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
        waypoints.append(Waypoint(time, *fields))
    return waypoints
