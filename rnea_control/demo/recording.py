"""One run of the demo: desired and measured positions, torques, figures of them, and whether the
run is a comparison, or the reasons why it is none."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.demo.robots import DemoRobot
from rnea_control.dynamics import Workspace, crba
from rnea_control.model import RobotModel

# What comes this late counts as a stall, [s].
STALL = 0.01

# A run in which no command came for longer was disturbed, [s].
LONGEST_WAIT = 0.05

# A run with a joint at its effort limit for a larger part was disturbed; and what counts as there.
LARGEST_SATURATED_PART = 0.05
AT_LIMIT = 0.999

# Less than this is no motion, [rad] or [m], and no inertia, [kg m^2] or [kg].
SMALLEST_MOTION = 1e-3
SMALLEST_INERTIA = 1e-9


@dataclass(frozen=True)
class Recording:
    """One trajectory under one control law.

    Attributes:
        law: name of the control law.
        time: since the start of the trajectory, shape (n,), [s].
        desired, measured: positions, shape (n, nv), [rad] or [m].
        torque: what reached the joints, shape (n, nv), [Nm] or [N].
        latency: state-to-command latency as the controller reports it.
        sent: how the trajectory was sent.
        lateness: how late each state was sent, shape (n,), [s].
        commands: how many commands had come when each state was sent, shape (n,).
        incidents: what the controller or its action reported, a sentence each.
    """

    law: str
    time: FloatArray
    desired: FloatArray
    measured: FloatArray
    torque: FloatArray
    latency: str
    sent: str = ""
    lateness: FloatArray = field(default_factory=lambda: np.zeros(0))
    commands: FloatArray = field(default_factory=lambda: np.zeros(0))
    incidents: tuple[str, ...] = ()

    @property
    def error(self) -> FloatArray:
        """Desired minus measured positions, shape (n, nv)."""
        return self.desired - self.measured

    @property
    def rms(self) -> FloatArray:
        """Root mean square of each joint's error, shape (nv,)."""
        return np.sqrt(np.mean(self.error**2, axis=0))

    def total_rms(self, joints: list[int]) -> float:
        """Root mean square of the error over joints of one unit."""
        return float(np.sqrt(np.mean(self.error[:, joints] ** 2)))

    @property
    def largest(self) -> FloatArray:
        """Each joint's largest error, shape (nv,)."""
        return np.abs(self.error).max(axis=0)

    @property
    def peak_torque(self) -> FloatArray:
        """Each joint's largest torque, shape (nv,)."""
        return np.abs(self.torque).max(axis=0)

    @property
    def period(self) -> float:
        """From one state to the next, [s]."""
        return float(np.median(np.diff(self.time))) if len(self.time) > 1 else 0.0

    def waits(self) -> FloatArray:
        """For how long each command that came had been waited for, beyond a period, [s]; the last
        one is the wait that goes on at the end."""
        if len(self.commands) < 2:
            return np.zeros(0)
        came = np.flatnonzero(np.diff(self.commands) > 0) + 1
        edges = np.concatenate([[0], came, [len(self.commands) - 1]])
        return np.maximum(np.diff(self.time[edges]) - self.period, 0.0)

    def stalls(self) -> tuple[int, float]:
        """How often, and for how long at most [s], a state was sent late or no new command came: by
        more than `STALL`. Late states in a row are one stall."""
        waits = self.waits()
        late = self.lateness > STALL
        begins = np.count_nonzero(late[1:] & ~late[:-1]) + int(late[:1].any())
        count = begins + np.count_nonzero(waits > STALL)
        longest = max(waits.max(initial=0.0), self.lateness.max(initial=0.0))
        return int(count), float(longest) if count else 0.0


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
