"""Runs one case of the demo, with the arm in this process and the controller in another; its
recording, and the reasons that make it unsuitable for a comparison."""

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
from rnea_control.demo.controller import CONTROLLER, controller, incidents, watched_controller
from rnea_control.demo.robots import DemoRobot, motion
from rnea_control.dynamics import Workspace, crba
from rnea_control.exceptions import RneaControlError, listed
from rnea_control.model import RobotModel
from rnea_control.simulation.executable import in_real_time
from rnea_control.simulation.simulated_arm import SimulatedArm
from rnea_control.trajectory_client import TrajectoryClient

NAMESPACE = "rnea_demo"  # separates the demo from a real robot in the same network

LONGEST_START = 120.0  # time limit for the start of the controller, which may compile first [s]
SETTLING = 0.5  # time for the controller to hold the arm before the trajectory [s]
LONGEST_END = 10.0  # time limit for the end of the controller [s]
AHEAD = 200_000_000  # time from sending the trajectory to its start [ns]
TAIL = 0.3  # recorded time after the trajectory [s]
LONGEST_REPORT = 3.0  # time limit for the controller's last report, published once a second [s]

LONGEST_WAIT = 0.05  # longest time without a command in an undisturbed run [s]
LARGEST_SATURATED_PART = 0.05  # largest share of an undisturbed run at an effort limit
AT_LIMIT = 0.999  # share of the effort limit that counts as at the limit
SMALLEST_MOTION = 1e-3  # displacement below which a robot cannot show a difference [rad] or [m]
SMALLEST_INERTIA = 1e-9  # inertia below which a joint cannot be controlled [kg m^2] or [kg]


@dataclass(frozen=True)
class Recording:
    """Recording of one case in n states, at least two."""

    case: Case
    time: FloatArray  # time since the start of the trajectory, shape (n,), [s]
    desired: FloatArray  # desired positions, shape (n, nv), [rad] or [m]
    measured: FloatArray  # measured positions, shape (n, nv), [rad] or [m]
    torque: FloatArray  # torques applied to the joints, shape (n, nv), [Nm] or [N]
    latency: str  # state-to-command latency as the controller reports it
    commands: FloatArray  # number of commands received before each state, shape (n,)
    sent: str = ""  # action or topic by which the trajectory was sent, and its result
    incidents: tuple[str, ...] = ()  # incidents reported by controller or action, a sentence each

    @property
    def error(self) -> FloatArray:
        """Desired minus measured positions, shape (n, nv)."""
        return self.desired - self.measured

    def rms(self, joints: int | list[int]) -> float:
        """Root mean square of the error of a joint, or of joints with the same unit."""
        return float(np.sqrt(np.mean(self.error[:, joints] ** 2)))

    @property
    def period(self) -> float:
        """Time from one state to the next [s]."""
        return float(np.median(np.diff(self.time)))

    @property
    def longest_wait(self) -> float:
        """Longest time without a command, less one period [s]; also at the end of the run."""
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
        robot: the robot with its waypoints.
        case: the case to run.
        rate: rate of states and commands [Hz].
        running: returns False to end the run with an error.
        progress: called repeatedly with the share done.

    Raises:
        RneaControlError: the controller did not start, or was stopped.
    """
    values = {**robot.simulation(rate), **case.errors}
    overrides = [Parameter(name, value=value) for name, value in values.items()]
    arm = SimulatedArm(namespace=NAMESPACE, parameter_overrides=overrides)
    executor = SingleThreadedExecutor()
    executor.add_node(arm)
    gc.freeze()  # without it, garbage collection would pause the motion for 80 ms
    try:
        with controller(robot, case.law, rate, NAMESPACE) as process:

            def going_on() -> bool:
                if not running():
                    raise RneaControlError("the demo was stopped")
                if process.poll() is not None:
                    raise RneaControlError("the controller has ended; see its output above")
                return True

            recording = _recorded(robot, case, arm, in_real_time(arm, executor, going_on), progress)
            # The arm publishes states until the controller has ended; else it would report a gap.
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
    """Sends the trajectory once the controller holds the arm, and records until the controller's
    report after the end.

    Args:
        robot: the robot with its waypoints.
        case: the case of the run.
        arm: the simulated arm.
        states: yields the stamp of each state after its publication [ns].
        progress: called repeatedly with the share done.
    """
    client = TrajectoryClient(arm, CONTROLLER)
    reports, modes = watched_controller(arm)
    deadline, settled = time.monotonic() + LONGEST_START, math.inf
    for _ in states:
        now = time.monotonic()
        if now > settled and client.is_ready and reports:
            break
        if now > deadline:
            raise RneaControlError("the controller did not start; see its output above")
        if arm.commands_received > 0:
            settled = min(settled, now + SETTLING)

    start, duration = next(states) + AHEAD, robot.waypoints[-1].time
    before = reports[-1]
    modes.clear()
    client.send(_message(robot, start))
    # Stamp, positions, torques, and number of commands received.
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
        found.append("the controller sent no report after the run")
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
    """Why this robot cannot show a difference between control laws; empty if it can."""
    model = robot.model
    M = np.zeros((model.nv, model.nv))
    crba(model, Workspace(model), robot.start, M)
    if massless := [model.joint_names[j] for j in np.flatnonzero(M.diagonal() < SMALLEST_INERTIA)]:
        return (
            f"the links moved by {listed(massless)} have no inertia. Give them an <inertial>, or "
            "choose other joints by --joints"
        )
    reach = max(np.abs(point.position - robot.start).max() for point in robot.waypoints)
    if reach < SMALLEST_MOTION:
        return "no joint has room to move within its limits. Correct <limit> lower and upper"
    return ""


def disturbances(model: RobotModel, recording: Recording, duration: float) -> list[str]:
    """Disturbances of a recording of `duration` [s], a sentence each; empty if there are none."""
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
