"""`Arm`: a controller and its arm, from Python."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, TwistStamped
from numpy.typing import ArrayLike
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_control.array_types import FloatArray
from rnea_control.client.controller_link import FRESH, ControllerLink
from rnea_control.client.goal import Goal
from rnea_control.client.live_parameters import LiveParameters
from rnea_control.client.motion import check_duration, motion_limits, motion_to
from rnea_control.client.target_stream import TargetStream
from rnea_control.control import Mode
from rnea_control.exceptions import (
    ArgumentError,
    NotThere,
    Refused,
    TimedOut,
    TrajectoryJointsError,
    listed,
    plain,
    quoted,
)
from rnea_control.model import RobotModel
from rnea_control.ros.conventions import LATCHED

try:
    from control_msgs.msg import SpeedScalingFactor
except ImportError:  # newer than the action
    SpeedScalingFactor = None

if TYPE_CHECKING:
    from rnea_control.client.arm_recording import ArmRecording

NANOSECONDS = 1e-9
LONGEST_TEXT = 1000  # characters of a text of the controller
LONGEST_CANCEL = 1.0  # time limit for the answer to a canceled goal, at the end [s]
STOP_IN_FORCE = 1.0  # time limit until an emergency stop is in force [s]
Positions = ArrayLike | Mapping[str, float]


@dataclass(frozen=True)
class State:
    """A measured state; arrays of shape (nv,), in the order of `Arm.joint_names`."""

    positions: FloatArray  # [rad] or [m]
    velocities: FloatArray  # [rad/s] or [m/s]; NaN where they are not measured
    efforts: FloatArray  # [Nm] or [N]; NaN where they are not measured
    stamp: float  # time of the measurement, by the clock of the hardware [s]
    age: float  # time since the stamp [s]


@dataclass(frozen=True)
class Pose:
    """Pose of the tip (`task.tip`) in the frame of the root link."""

    position: FloatArray  # shape (3,), [m]
    orientation: FloatArray  # quaternion x, y, z, w, shape (4,)
    stamp: float = 0.0  # time of the measurement, by the clock of the hardware [s]
    age: float = 0.0  # time since the stamp [s]


@dataclass(frozen=True)
class ModeAndReason:
    """Mode of the controller (docs/safety.md), and why it has this mode."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass
class Report:
    """Newest report of the controller on /diagnostics."""

    level: int = 0  # 0 OK, 1 warning, 2 error
    message: str = ""
    values: dict[str, str] = field(default_factory=dict)
    age: float = math.inf  # time since it was received; one comes each second [s]


class Arm:
    """A controller and its arm; a context manager. It has a ROS context and a thread of its own,
    beside any of the program. Wherever the program ends, no goal of this arm is left under way, and
    a stream ends by itself.

    Args:
        controller: name of the controller's node.
        namespace: namespace of the controller, which is also that of joint_states.
        timeout: time limit to find controller and arm [s].
        program: first part of the name of this object's node.

    Attributes:
        controller: full name of the controller's node.
        joint_names: joints, in the order of all arrays.
        model: model of the arm, with the values in force when this object was made.
        description: URDF of the arm.
        parameters: parameters of the running controller, by full name.

    Raises:
        NotThere: there is no controller, or no joint state.
        RneaControlError: the controller's parameters or robot description are not valid.
    """

    def __init__(
        self,
        controller: str = "rnea_controller",
        namespace: str = "",
        timeout: float = 10.0,
        program: str = "rnea_client",
    ) -> None:
        name = "/".join(filter(None, ["", namespace.strip("/"), controller.strip("/")]))
        link = ControllerLink(f"/{name}", program=program, own_context=True)
        self._link, self._connection = link, link.connection
        self._goals: list[Goal] = []
        self._recordings: list[ArmRecording] = []
        # Not a method: it would keep this object.
        self._end = weakref.finalize(self, _end, link, self._goals, self._recordings)
        try:
            link.observe(timeout, acts=False)
        except BaseException:
            self.close()
            raise
        self.controller = link.controller
        self.joint_names, self.description = link.given.model.joint_names, link.description
        self.model: RobotModel = link.given.model
        self.parameters = LiveParameters(self._connection, link.controller)
        self._report, self._reported_at = Report(), [-math.inf]  # the latter by the steady clock
        self._newest: dict[str, list[Any]] = {}  # newest message, if any, by topic
        self._streams: dict[str, TargetStream] = {}
        self._scaling: Any = None  # publisher of the factor, once it is needed
        self._connection.run(self._open)

    def _open(self) -> None:
        node, name = self._connection.node, self._link.controller
        prefix, report, at = f"{name.lstrip('/')}: ", self._report, self._reported_at

        def note(message: DiagnosticArray) -> None:
            for status in message.status:
                if status.name.startswith(prefix):
                    at[:] = [time.monotonic()]
                    report.level = int.from_bytes(status.level, "little")
                    report.message = plain(status.message, LONGEST_TEXT)
                    report.values = {item.key: item.value for item in status.values}

        node.create_subscription(DiagnosticArray, "/diagnostics", note, 10)
        self._stop = node.create_publisher(Bool, f"{name}/emergency_stop", LATCHED)

    def __enter__(self) -> Arm:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Cancels goals, ends recordings and leaves ROS. An emergency stop stays in force."""
        self._end()

    # Measurements and reports.

    @property
    def state(self) -> State:
        """Newest measured state.

        Raises:
            NotThere: no joint state was ever received.
        """
        fields = self._link.newest()
        if fields is None:
            raise NotThere("no joint state is received")
        stamp = fields.seconds + NANOSECONDS * fields.nanoseconds
        columns = (
            self._link.column(fields, each) for each in ("positions", "velocities", "efforts")
        )
        return State(*columns, stamp, self._now - stamp)

    @property
    def pose(self) -> Pose:
        """Newest measured pose of the tip; its topic begins at the first call."""
        message = self.newest(PoseStamped, "current_pose")
        p, o = message.pose.position, message.pose.orientation
        stamp = message.header.stamp.sec + NANOSECONDS * message.header.stamp.nanosec
        position, orientation = np.array([p.x, p.y, p.z]), np.array([o.x, o.y, o.z, o.w])
        return Pose(position, orientation, stamp, self._now - stamp)

    @property
    def tip(self) -> str:
        """Link that `pose` measures and `stream_pose` moves."""
        return str(self._link.given.values["task.tip"]) or self.model.child_links[-1]

    @property
    def mode(self) -> ModeAndReason:
        """Mode of the controller, and its reason."""
        return ModeAndReason(self._link.mode, self._link.reason)

    @property
    def diagnostics(self) -> Report:
        """Newest report of the controller, which comes once a second."""
        report, age = self._report, time.monotonic() - self._reported_at[0]
        return Report(report.level, report.message, dict(report.values), age)

    def newest(self, kind: type, topic: str, seconds: float = FRESH) -> Any:
        """Newest message of a topic, which is subscribed to at the first call.

        Args:
            kind: message type.
            topic: name of the topic; ~ is the controller's name.
            seconds: time limit for a first message [s].

        Raises:
            NotThere: no message was received.
        """
        name = topic.replace("~", self._link.controller, 1)
        if name not in self._newest:
            kept = self._newest[name] = []
            node = self._connection.node

            def keep(message: Any) -> None:
                kept[:] = [message]

            self._connection.run(lambda: node.create_subscription(kind, name, keep, 1))
        kept = self._newest[name]
        if not self._link.until(lambda: kept, seconds):
            raise NotThere(f"no message on {name} within {seconds:g} s")
        return kept[0]

    # Motions.

    def go_to(self, target: Positions, speed: float = 0.2, wait: bool = True) -> Goal:
        """Moves the arm to a position, along a straight line of all joints.

        Args:
            target: positions of all joints, or of some by name; the others stay [rad] or [m].
            speed: share of the velocity limits, above 0 and at most 1.
            wait: True to return after the end; Ctrl-C then cancels the motion.

        Raises:
            Refused: the controller accepts no goal now, or refuses this goal.
            TrajectoryError: the target is beyond a limit, or not a position of these joints.
            ArgumentError: the speed is not a share.
            Stopped, Aborted: the motion did not reach its goal; see `Goal.wait`.
            NotThere: no joint state is received, or the controller has ended.
        """
        return self._go(lambda held: self._positions(target, held), speed, wait, turns=False)

    def move_by(self, way: Positions, speed: float = 0.2, wait: bool = True) -> Goal:
        """Moves the arm by displacements of all joints, or of some by name [rad] or [m]. Arguments
        and errors are otherwise those of `go_to`."""
        still = np.zeros(len(self.joint_names))
        return self._go(lambda held: held + self._positions(way, still), speed, wait, turns=True)

    def _go(
        self, target: Callable[[FloatArray], FloatArray], speed: float, wait: bool, turns: bool
    ) -> Goal:
        if not 0.0 < speed <= 1.0:
            raise ArgumentError(f"speed is {speed:g}; it must be above 0 and at most 1")
        link, given = self._link, self._link.given
        held, _ = link.where()
        limits = motion_limits(given, speed)
        profile = motion_to(target(held), held, given.model, limits, turns)
        check_duration(profile)
        goal = Goal(link, profile)
        self._goals[:] = [*(each for each in self._goals if not each.has_ended), goal]
        return goal.wait() if wait else goal

    def _positions(self, given: Positions, others: FloatArray) -> FloatArray:
        """Values of all joints; `others` has those of joints that are not named."""
        values, joints = others.copy(), self.joint_names
        if isinstance(given, Mapping):
            if strange := [name for name in given if name not in joints]:
                raise TrajectoryJointsError(
                    f"{quoted(strange[0])} is not a joint of the controller; its joints are "
                    f"{listed(joints)}"
                )
            for name, value in given.items():
                values[joints.index(name)] = value
        else:
            numbers = np.asarray(given, dtype=float)
            if numbers.shape != values.shape:
                raise TrajectoryJointsError(
                    f"an array of shape {numbers.shape} is given for {len(joints)} joints: "
                    f"{listed(joints)}"
                )
            values[:] = numbers
        if not np.isfinite(values).all():
            raise TrajectoryJointsError(f"{values.tolist()} are not finite")
        return values

    # Streams.

    def stream(self, target: Positions, velocity: Positions | None = None) -> None:
        """Sends a target of a stream of joint positions, and returns at once. Send the next one
        within `stream.target_timeout`; without targets the arm comes to rest.

        Args:
            target: positions of all joints, or of some by name; the others stay [rad] or [m].
            velocity: velocities of the same joints [rad/s] or [m/s].

        Raises:
            Refused: the controller does not follow the targets; known a second later at most.
            Stopped: the controller does not follow the targets any more.
            NotThere: the controller does not receive them.
        """
        still = np.zeros(len(self.joint_names))
        named = [
            name for name in self.joint_names if not isinstance(target, Mapping) or name in target
        ]
        columns = [self.joint_names.index(name) for name in named]
        message = JointState(name=named)
        message.position = self._positions(target, still)[columns].tolist()
        if velocity is not None:
            message.velocity = self._positions(velocity, still)[columns].tolist()
        self._send(JointState, "target_joint", message)

    def stream_pose(self, position: ArrayLike, orientation: ArrayLike, frame: str = "") -> None:
        """Sends a target of a stream of poses of the tip (docs/task_space.md). Errors are those of
        `stream`.

        Args:
            position: shape (3,), [m].
            orientation: quaternion x, y, z, w, shape (4,).
            frame: link in whose frame the pose is; the root link by default.
        """
        message = PoseStamped()
        message.header.frame_id = frame or self.model.root_link
        _fill(message.pose.position, "xyz", position)
        _fill(message.pose.orientation, "xyzw", orientation)
        self._send(PoseStamped, "target_pose", message)

    def stream_twist(
        self, linear: ArrayLike, angular: ArrayLike = (0.0, 0.0, 0.0), frame: str = ""
    ) -> None:
        """Sends a velocity of the tip, of a stream. Errors are those of `stream`.

        Args:
            linear: shape (3,), [m/s].
            angular: shape (3,), [rad/s].
            frame: link in whose axes the velocity is; the root link by default.
        """
        message = TwistStamped()
        message.header.frame_id = frame or self.model.root_link
        _fill(message.twist.linear, "xyz", linear)
        _fill(message.twist.angular, "xyz", angular)
        self._send(TwistStamped, "~/delta_twist_cmds", message)

    def stream_chunk(self, positions: ArrayLike, period: float) -> None:
        """Sends the next points of all joints, as policies predict them; they replace the rest of
        the chunk before. `positions_upsampling` of docs/trajectories.md joins chunks smoothly. The
        log of the controller has the reason of a chunk that a limit forbids.

        Args:
            positions: positions of the points, shape (n, nv), [rad] or [m].
            period: time from point to point, and to the first point [s].

        Raises:
            Refused: the controller is in a mode without trajectories.
            NotThere: the controller does not receive them.
        """
        message = JointTrajectory(joint_names=list(self.joint_names))
        still = np.zeros(len(self.joint_names))
        for k, row in enumerate(np.atleast_2d(np.asarray(positions, dtype=float)), 1):
            at = Duration(nanoseconds=round(k * period / NANOSECONDS)).to_msg()
            values = self._positions(row, still).tolist()
            message.points.append(JointTrajectoryPoint(positions=values, time_from_start=at))
        self._send(JointTrajectory, "~/joint_trajectory", message)

    def _send(self, kind: type, topic: str, message: Any) -> None:
        if topic not in self._streams:
            report = self._report
            self._streams[topic] = TargetStream(self._link, kind, topic, lambda: report.values)
        self._streams[topic].send(message)

    # Requests. Each returns the answer of the controller, or raises Refused with its reason.

    def hold(self) -> str:
        """Ends the motion: the arm brakes and holds."""
        return self._ask("hold")

    def resume(self) -> str:
        """Ends hand guiding and a released emergency stop."""
        return self._ask("resume")

    def guide(self) -> str:
        """Begins hand guiding: gravity torque and damping."""
        return self._ask("gravity_compensation")

    def reset_fault(self) -> str:
        """Ends a fault whose cause has ended."""
        return self._ask("reset_fault")

    def emergency_stop(self, wait: bool = True) -> None:
        """Brakes the arm and holds it, until this object releases the stop, and `resume`.

        Args:
            wait: True to return once the controller has reported the stop.

        Raises:
            TimedOut: the controller has not reported the stop within a second.
        """
        self._stop.publish(Bool(data=True))
        if not wait:
            return
        stopped = Mode.EMERGENCY_STOP.value
        if not self._link.until(lambda: self._link.mode == stopped, STOP_IN_FORCE):
            raise TimedOut(
                f"{self._link.controller} has not reported the emergency stop within "
                f"{STOP_IN_FORCE:g} s; its mode is {self.mode}"
            )

    def release_emergency_stop(self) -> None:
        """Releases the emergency stop of this object; `resume` then ends it."""
        self._stop.publish(Bool(data=False))

    def scale_speed(self, factor: float) -> None:
        """Scales the speed of trajectories, also of one under way, until another factor is set.

        Args:
            factor: 0 to 1; 0 pauses a trajectory.

        Raises:
            ArgumentError: the factor is not 0 to 1.
            NotThere: control_msgs of this ROS distribution has no message for the factor.
        """
        if not 0.0 <= factor <= 1.0:
            raise ArgumentError(f"the factor is {factor:g}; it must be 0 to 1")
        if SpeedScalingFactor is None:
            raise NotThere("control_msgs is missing, or older than Jazzy's: it lacks the factor")
        if self._scaling is None:
            topic = f"{self._link.controller}/speed_scaling_input"
            node = self._connection.node
            self._scaling = self._connection.run(
                lambda: node.create_publisher(SpeedScalingFactor, topic, LATCHED)
            )
        self._scaling.publish(SpeedScalingFactor(factor=float(factor)))

    def payload(
        self,
        mass: float,
        center: ArrayLike = (0.0, 0.0, 0.0),
        inertia: ArrayLike = (0.0,) * 6,
        link: str = "",
    ) -> None:
        """Sets the payload in the controller's model.

        Args:
            mass: [kg]; 0 for none.
            center: center of mass in the frame of the link, shape (3,), [m].
            inertia: xx, xy, xz, yy, yz, zz about the center of mass [kg m^2].
            link: link that carries the payload; the last one by default.

        Raises:
            Refused: the controller refuses the payload.
        """
        values = {"mass": float(mass), "link": link}
        numbers = {"center_of_mass": center, "inertia": inertia}
        values |= {key: np.asarray(each, dtype=float) for key, each in numbers.items()}
        self.parameters.set({f"payload.{key}": value for key, value in values.items()})

    def wait(self, mode: str = Mode.HOLDING.value, seconds: float = 30.0) -> None:
        """Waits until the arm is at rest, or until another mode.

        Raises:
            TimedOut: it is in another mode after `seconds`.
        """
        if not self._link.until(lambda: self._link.mode == mode, seconds):
            raise TimedOut(f"the mode is not {mode} within {seconds:g} s, but {self.mode}")

    def record(self, path: str | Path) -> ArmRecording:
        """Begins to record every joint state and command, for rnea_identify, and in rosbag2 the
        states of the controller with the desired positions.

        Args:
            path: new folder for rosbag2 (MCAP), or new file that ends in .npz.

        Returns:
            The recording; its `stop`, the end of its `with` block, or `close` writes it.

        Raises:
            RecordingError: the path cannot be written.
        """
        # Here, as its packages are an extra.
        from rnea_control.client.arm_recording import ArmRecording  # noqa: PLC0415

        recording = ArmRecording(self._link, Path(path))
        self._recordings.append(recording)
        return recording

    @property
    def _now(self) -> float:
        """Time of the node's clock [s]."""
        return NANOSECONDS * self._connection.node.get_clock().now().nanoseconds

    def _ask(self, service: str) -> str:
        name = f"{self._link.controller}/{service}"
        answer = self._connection.call(Trigger, name, Trigger.Request())
        words = plain(answer.message, LONGEST_TEXT)
        if not answer.success:
            raise Refused(words)
        return words


def _end(link: ControllerLink, goals: Sequence[Goal], recordings: Sequence[ArmRecording]) -> None:
    """Leaves nothing behind."""
    try:
        for goal in goals:
            goal.cancel()
        link.until(lambda: all(goal.has_ended for goal in goals), LONGEST_CANCEL)
        for recording in recordings:
            recording.stop()
    finally:
        link.destroy()


def _fill(vector: Any, names: str, numbers: ArrayLike) -> None:
    """Writes the components of a message."""
    values = np.asarray(numbers, dtype=float)
    if values.shape != (len(names),):
        raise ArgumentError(f"an array of shape {values.shape}; it must have {len(names)} numbers")
    for name, value in zip(names, values.tolist(), strict=True):
        setattr(vector, name, value)
