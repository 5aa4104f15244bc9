"""Runs one trajectory in one of the demo's cases, the arm in this process, the controller in
another; the recording of it, and the reasons why that is no comparison."""

from __future__ import annotations

import gc
import math
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.time import Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_control.array_types import FloatArray
from rnea_control.demo.cases import Case
from rnea_control.demo.controller import CONTROLLER, controller, heard_of_controller, incidents
from rnea_control.demo.robots import DemoRobot, motion
from rnea_control.dynamics import Workspace, crba
from rnea_control.exceptions import RneaControlError, listed
from rnea_control.model import RobotModel
from rnea_control.simulation.executable import in_real_time
from rnea_control.simulation.simulated_arm import SimulatedArm
from rnea_control.trajectory_client import TrajectoryClient

# Apart from any real robot in the same network.
NAMESPACE = "rnea_demo"

# Time for the controller to start, which may compile first, and to settle before it moves, [s]; and
# from sending the trajectory to its start, [ns].
LONGEST_START, SETTLING = 120.0, 0.5
LONGEST_END = 10.0  # for the controller to end [s]
AHEAD = 200_000_000

# After the trajectory: how much is recorded, and how long the controller has for its last report,
# which comes once a second, [s].
TAIL, LONGEST_REPORT = 0.3, 3.0

# A run in which no command came for longer was disturbed, [s].
LONGEST_WAIT = 0.05

# A run with a joint at its effort limit for a larger part was disturbed; and what counts as there.
LARGEST_SATURATED_PART, AT_LIMIT = 0.05, 0.999

# Less than this is no motion, [rad] or [m], and no inertia, [kg m^2] or [kg].
SMALLEST_MOTION, SMALLEST_INERTIA = 1e-3, 1e-9


@dataclass(frozen=True)
class Recording:
    """One trajectory in one of the cases, in n states, at least two."""

    case: Case
    time: FloatArray  # since the start of the trajectory, shape (n,), [s]
    desired: FloatArray  # positions, shape (n, nv), [rad] or [m]
    measured: FloatArray
    torque: FloatArray  # that reached the joints, shape (n, nv), [Nm] or [N]
    latency: str  # state-to-command latency as the controller reports it
    commands: FloatArray  # how many had come when each state was sent, shape (n,)
    sent: str = ""  # how the trajectory was sent
    incidents: tuple[str, ...] = ()  # that the controller or its action reported, a sentence each

    @property
    def error(self) -> FloatArray:
        """Desired minus measured positions, shape (n, nv)."""
        return self.desired - self.measured

    def rms(self, joints: int | list[int]) -> float:
        """Root mean square of the error of a joint, or over joints of one unit."""
        return float(np.sqrt(np.mean(self.error[:, joints] ** 2)))

    @property
    def period(self) -> float:
        """From one state to the next, [s]."""
        return float(np.median(np.diff(self.time)))

    @property
    def longest_wait(self) -> float:
        """For how long no command came, beyond a period, [s]; also at the end."""
        came = np.flatnonzero(np.diff(self.commands) > 0) + 1
        edges = np.concatenate([[0], came, [len(self.commands) - 1]])
        return max(float(np.diff(self.time[edges]).max()) - self.period, 0.0)


def run(
    robot: DemoRobot,
    case: Case,
    rate: float,
    running: Callable[[], bool],
    progress: Callable[[float], None],
) -> Recording:
    """Moves the simulated arm through the robot's waypoints in real time.

    Args:
        rate: control ticks a second [Hz].
        running: False ends the run with an error.
        progress: called now and then with the fraction done.

    Raises:
        RneaControlError: the controller did not start, or was stopped.
    """
    joints = list(robot.model.joint_names)
    start = zip(joints, robot.start.tolist(), strict=True)
    locked = robot.parameters.get("locked_positions", {})
    values = {
        "robot_description": robot.urdf,
        "joints": joints,
        "rate": rate,
        **{f"initial_positions.{joint}": position for joint, position in start},
        **{f"locked_positions.{joint}": position for joint, position in locked.items()},
        **case.errors,
    }
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    arm = SimulatedArm(namespace=NAMESPACE, parameter_overrides=overrides)
    executor = SingleThreadedExecutor()
    executor.add_node(arm)
    gc.freeze()  # what was loaded before would be looked through in mid-motion, for 80 ms
    try:
        with controller(robot, case.law, rate, NAMESPACE) as process:

            def going_on() -> bool:
                if not running():
                    raise RneaControlError("the demo was stopped")
                if process.poll() is not None:
                    raise RneaControlError("the controller has ended; its output above says why")
                return True

            recording = _recorded(robot, case, arm, in_real_time(arm, executor, going_on), progress)
            # The arm goes on until the controller has ended, which would report missing states.
            deadline = time.monotonic() + LONGEST_END
            process.send_signal(signal.SIGINT)

            def ending() -> bool:
                return process.poll() is None and time.monotonic() < deadline

            for _ in in_real_time(arm, executor, ending):
                pass
            return recording
    finally:
        executor.shutdown()
        arm.destroy_node()


def _recorded(
    robot: DemoRobot,
    case: Case,
    arm: SimulatedArm,
    states: Iterator[int],
    progress: Callable[[float], None],
) -> Recording:
    """Sends the trajectory once the controller holds the arm, and records until its report after
    the end; `states` has the stamp of each, just published."""
    client = TrajectoryClient(arm, CONTROLLER)
    reports, modes = heard_of_controller(arm)
    deadline, settled = time.monotonic() + LONGEST_START, math.inf
    for _ in states:
        now = time.monotonic()
        if now > settled and client.is_ready and reports:
            break
        if now > deadline:
            raise RneaControlError("the controller did not start; its output above says why")
        if arm.commands_received > 0:
            settled = min(settled, now + SETTLING)

    start, duration = next(states) + AHEAD, robot.waypoints[-1].time
    before = reports[-1]
    modes.clear()
    client.send(_message(robot, start))
    # Stamp, positions, torques, and how many commands had come.
    rows: list[tuple[int, FloatArray, FloatArray, int]] = []
    for stamp in states:
        if client.rejected:
            raise RneaControlError(f"{client.way}: {client.failure}")
        passed = 1e-9 * (stamp - start)
        if stamp >= start:
            if len(rows) % 64 == 0:
                progress(min(passed / duration, 1.0))
            rows.append((stamp, arm.q, arm.torque, arm.commands_received))
        if len(rows) > 1 and (passed > duration + TAIL or client.failure):
            break

    count, deadline = len(reports), time.monotonic() + LONGEST_REPORT
    for _ in states:
        if len(reports) > count or time.monotonic() > deadline:
            break
    found = [*filter(None, [client.failure]), *incidents(before, reports[-1], modes)]
    if len(reports) == count:
        found.append("the controller did not report how the run went")
    stamps, measured, torque, commands = map(np.array, zip(*rows, strict=True))
    times = 1e-9 * (stamps - start)
    trajectory = motion(robot.model, robot.start, robot.waypoints)
    desired = np.array([trajectory.at(t)[0] for t in times])
    return Recording(
        case=case,
        time=times,
        desired=desired,
        measured=measured,
        torque=torque,
        latency=reports[-1].get("state age, since activation", "not reported"),
        commands=commands,
        sent=f"{client.way}, which reports: {client.result or 'nothing'}",
        incidents=tuple(found),
    )


def _message(robot: DemoRobot, start: int) -> JointTrajectory:
    """The robot's trajectory; `start` is the stamp at which it begins, [ns]."""
    message = JointTrajectory(joint_names=list(robot.model.joint_names))
    message.header.stamp = Time(nanoseconds=start).to_msg()
    for point in robot.waypoints:
        numbers = {
            "positions": point.position.tolist(),
            "velocities": point.velocity.tolist(),
            "accelerations": point.acceleration.tolist(),
        }
        at = Duration(nanoseconds=round(1e9 * point.time)).to_msg()
        message.points.append(JointTrajectoryPoint(**numbers, time_from_start=at))
    return message


def void(robot: DemoRobot) -> str:
    """Why a run with this robot would compare nothing; empty if it would not."""
    model = robot.model
    M = np.zeros((model.nv, model.nv))
    crba(model, Workspace(model), robot.start, M)
    if massless := [model.joint_names[j] for j in np.flatnonzero(M.diagonal() < SMALLEST_INERTIA)]:
        return (
            f"what {listed(massless)} moves has no inertia, so no torque moves or holds it by the "
            "laws of mechanics. Give its links an <inertial>, or choose other joints by --joints"
        )
    reach = max(np.abs(point.position - robot.start).max() for point in robot.waypoints)
    if reach < SMALLEST_MOTION:
        return "no joint has room to move within its limits. Correct <limit> lower and upper"
    return ""


def disturbances(model: RobotModel, recording: Recording, duration: float) -> list[str]:
    """Why a recording shows more than the control law, a sentence each; none if it does not. The
    trajectory takes `duration`, [s]."""
    found = list(recording.incidents)
    end = recording.time[-1]
    if end < duration - recording.period:
        found.append(f"the recording ends after {end:.2f} of {duration:g} s")
    steps = np.diff(recording.time)
    jumps = steps[steps > 1.5 * recording.period] - recording.period
    if len(jumps):
        times = "once" if len(jumps) == 1 else f"{len(jumps)} times"
        by = f"{1e3 * jumps.sum():.0f} ms in all"
        found.append(f"the simulated arm fell behind real time {times}, by {by}")
    if recording.longest_wait > LONGEST_WAIT:
        found.append(f"no command came for {1e3 * recording.longest_wait:.0f} ms")
    with np.errstate(invalid="ignore"):
        at_limit = np.abs(recording.torque) >= AT_LIMIT * model.effort_limit
    saturated = at_limit.mean(axis=0)
    for j in np.flatnonzero(saturated > LARGEST_SATURATED_PART):
        found.append(
            f"the torque of {model.joint_names[j]} was at its limit, {model.effort_limit[j]:g}, in "
            f"{saturated[j]:.0%} of the run"
        )
    return found
