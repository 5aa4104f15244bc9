"""A trajectory from a file as the message that is sent."""

from __future__ import annotations

from array import array

import numpy as np
from builtin_interfaces.msg import Duration
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_control.identification.trajectory_file import TrajectoryFile


def trajectory_message(trajectory: TrajectoryFile) -> JointTrajectory:
    """The message, without a stamp: the motion starts when it comes."""
    message = JointTrajectory(joint_names=list(trajectory.joints))
    for i, seconds in enumerate(trajectory.time.tolist()):
        sec, nanosec = divmod(round(1e9 * seconds), 1_000_000_000)
        point = JointTrajectoryPoint(time_from_start=Duration(sec=sec, nanosec=nanosec))
        point.positions = array("d", trajectory.q[i])
        for field, values in (("velocities", trajectory.v), ("accelerations", trajectory.a)):
            if np.isfinite(values[i]).all():
                setattr(point, field, array("d", values[i]))
        message.points.append(point)
    return message
