"""What a run of the demo is worth: a comparison, or the reasons why it is none."""

from __future__ import annotations

import numpy as np

from rnea_control.demo.recording import Recording
from rnea_control.demo.robots import DemoRobot
from rnea_control.dynamics import Workspace, crba
from rnea_control.model import RobotModel

# A run in which no command came for longer was disturbed, [s].
LONGEST_WAIT = 0.05

# A run with a joint at its effort limit for a larger part was disturbed; and what counts as there.
LARGEST_SATURATED_PART = 0.05
AT_LIMIT = 0.999

# Less than this is no motion, [rad] or [m], and no inertia, [kg m^2] or [kg].
SMALLEST_MOTION = 1e-3
SMALLEST_INERTIA = 1e-9


def void(robot: DemoRobot) -> str:
    """Why a run with this robot would compare nothing; empty if it would not."""
    model = robot.model
    M = np.zeros((model.nv, model.nv))
    crba(model, Workspace(model), robot.start, M)
    massless = np.flatnonzero(M.diagonal() < SMALLEST_INERTIA)
    if len(massless) == model.nv:
        return (
            "no link that moves has an inertia, so no torque moves or holds the robot by the laws "
            "of mechanics. Give the links an <inertial>"
        )
    if len(massless):
        names = ", ".join(model.joint_names[j] for j in massless)
        return (
            f"the links that {names} move have no inertia, so these joints would move without a "
            "law. Give them an <inertial>, or choose other joints by --joints"
        )
    reach = max(np.abs(point.position - robot.start).max() for point in robot.waypoints)
    if reach < SMALLEST_MOTION:
        return "no joint has room to move within its limits. Correct <limit> lower and upper"
    return ""


def disturbances(model: RobotModel, recording: Recording, duration: float) -> list[str]:
    """Why a recording shows more than the control law, a sentence each; none if it does not.

    Args:
        model: the robot.
        recording: the run.
        duration: of the trajectory, [s].
    """
    found = list(recording.incidents)
    if len(recording.time) < 2 or recording.time[-1] < duration - recording.period:
        end = recording.time[-1] if len(recording.time) else 0.0
        found.append(f"the recording ends after {max(end, 0.0):.2f} of {duration:g} s")
    steps = np.diff(recording.time)
    jumps = steps[steps > 1.5 * recording.period] - recording.period
    if len(jumps):
        found.append(
            f"the simulated arm fell behind real time {_times(len(jumps))}, by "
            f"{1e3 * jumps.sum():.0f} ms in all"
        )
    wait = recording.waits().max(initial=0.0)
    if wait > LONGEST_WAIT:
        found.append(f"no command came for {1e3 * wait:.0f} ms")
    with np.errstate(invalid="ignore"):
        at_limit = np.abs(recording.torque) >= AT_LIMIT * model.effort_limit
    saturated = at_limit.mean(axis=0) if len(at_limit) else np.zeros(model.nv)
    for j in np.flatnonzero(saturated > LARGEST_SATURATED_PART):
        found.append(
            f"the torque of {model.joint_names[j]} was at its limit, {model.effort_limit[j]:g}, in "
            f"{saturated[j]:.0%} of the run"
        )
    return found


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
