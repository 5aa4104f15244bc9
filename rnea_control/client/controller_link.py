"""`ControllerLink`: connection to a running controller: its settings, mode and states, the position
at which it holds the arm, and the goals sent to it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from lifecycle_msgs.msg import TransitionEvent
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_control.array_types import FloatArray
from rnea_control.client.configuration import Configuration
from rnea_control.client.connection import LOOK, Connection, Running, always
from rnea_control.client.profile import NANOSECONDS, Profile
from rnea_control.control import Mode
from rnea_control.control.mode import STOPPED
from rnea_control.exceptions import (
    CdrError,
    JointStateError,
    NotThere,
    ParameterError,
    Refused,
    listed,
    plain,
)
from rnea_control.messages.joint_state import JointStateFields
from rnea_control.model import RobotModel
from rnea_control.node.parameters import InForce, in_force
from rnea_control.ros.conventions import LATCHED, NEWEST
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.trajectory_client import FollowJointTrajectory, TrajectoryClient

try:
    from control_msgs.srv import QueryTrajectoryState
except ImportError:  # newer than the action
    QueryTrajectoryState = None

FRESH = 5.0  # time limit for a joint state and for an answer [s]
READY = 3.0  # time limit for the end of a transient state of the controller [s]
ABSENCE = 5.0  # time after which an undiscovered controller counts as ended [s]
# Time after the motion until its result counts as lost [s]. A message that a busy machine loses is
# sent again after 3 s.
LONGEST_RESULT = 15.0
LONGEST_BLINK = 1.0  # time between two looks at a goal after which nothing is known [s]
STANDS = 0.3  # time in a mode at rest after which the arm has stopped [s]
IN_MOTION = (Mode.MOVING.value, Mode.STREAMING.value, Mode.BRAKING.value)
# Modes without goals that only a request ends.
LASTING = tuple(mode.value for mode in (Mode.GRAVITY_COMPENSATION, *STOPPED, Mode.POWERLESS))
LONGEST_REASON = 1000  # characters of a reason of the controller
MESSAGES = (
    "control_msgs is not installed, and goals are sent by the action. Install "
    "ros-$ROS_DISTRO-control-msgs"
)


class ControllerLink:
    """Connection to a running controller.

    Args:
        controller: full name of the controller's node; joint_states and robot_description are
            relative to its namespace.
        running: False after the given number of signals, 1 by default.
        program: first part of the node's name.
        own_context: True for a ROS context beside that of the process.

    Attributes:
        controller: full name of the controller's node.
        connection: the node, and the thread of its callbacks.
        client: client of the action; `another` of it sends a goal.
        mode: mode of the controller; empty while unknown.
        reason: reason of the mode.
        moved_at: last time when the mode became `moving`, by the steady clock [s].
        given: model and settings in force; set by `observe`.
        description: URDF of the robot; set by `observe`.
    """

    given: InForce

    def __init__(
        self,
        controller: str,
        running: Running = always,
        program: str = "rnea_move",
        own_context: bool = False,
    ) -> None:
        self.controller, self._running = controller, running
        self.mode = self.reason = self.description = ""
        self.moved_at = -math.inf
        self._state: JointStateFields | None = None  # the newest one that names the arm's joints
        self._joints: tuple[str, ...] = ()
        self._lock = threading.Lock()  # several threads may take states
        self._is_open = False
        namespace = controller.rpartition("/")[0]
        self.connection = Connection(program, namespace, own_context, running)
        try:
            self.connection.run(self._open)
        except BaseException:
            self.connection.close()
            raise

    def _open(self) -> None:
        node, name = self.connection.node, self.controller
        self.client = TrajectoryClient(node, name)
        node.create_subscription(TransitionEvent, f"{name}/mode", self._note_mode, LATCHED)
        node.create_subscription(String, "robot_description", self._note_description, LATCHED)
        # No callback takes the states, which arrive at a high rate: `newest` does.
        self._states = RawSubscription(node, JointState, "joint_states", NEWEST, own_context=False)
        self._is_open = True

    def observe(self, seconds: float, acts: bool = True) -> None:
        """Finds the controller, its settings and the arm.

        Args:
            seconds: time limit [s].
            acts: True if goals will be sent.

        Raises:
            NotThere: the controller does not run, or does not serve the action; or no joint state
                is received.
            ParameterError: parameters or robot description are unknown or not allowed.
            RobotModelError: the robot description does not describe a robot with these joints.
        """
        if acts:
            self.check_messages()
        deadline = time.monotonic() + seconds
        looked = f"within {seconds:g} s"
        values = self._parameters(deadline, looked)
        described, states = values.get("robot_description"), self._resolved("joint_states")
        if values.get("use_sim_time"):
            simulated = [Parameter("use_sim_time", value=True)]
            self.connection.run(lambda: self.connection.node.set_parameters(simulated))
        needed: list[tuple[Callable[[], Any], Exception]] = [
            (
                self.newest,
                NotThere(
                    f"no joint state on {states} {looked}: activate joint_state_broadcaster, or "
                    "give its topic, --ros-args -r joint_states:=TOPIC"
                ),
            ),
            (lambda: not acts or self._serves_action, NotThere(self._no_action)),
            (lambda: self.mode, NotThere(f"{self.controller}/mode has no message {looked}")),
            (
                lambda: described or self.description,
                ParameterError(
                    f"no robot description on {self._resolved('robot_description')} {looked}: "
                    "start robot_state_publisher"
                ),
            ),
        ]
        for is_known, error in needed:
            if not self.until(is_known, deadline - time.monotonic()):
                raise error
        settings = Configuration(values, self.controller, self.description)
        if not isinstance(settings.robot, RobotModel):
            raise settings.robot or ParameterError(f"{self.controller} has no `joints`")
        self.given, self.description = in_force(settings, settings.robot), settings.description
        self._joints = self.given.model.joint_names

    def check_messages(self) -> None:
        """Raises NotThere if goals cannot be sent as their messages are not installed."""
        if FollowJointTrajectory is None or QueryTrajectoryState is None:
            raise NotThere(MESSAGES)

    @property
    def _serves_action(self) -> bool:
        return self.client.is_there and self.client.by_action

    @property
    def _no_action(self) -> str:
        return (
            f"{self.controller} serves no action {self.controller}/follow_joint_trajectory; "
            "install ros-$ROS_DISTRO-control-msgs where the controller runs"
        )

    def _resolved(self, topic: str) -> str:
        return self.connection.node.resolve_topic_name(topic)

    def _parameters(self, deadline: float, looked: str) -> dict[str, Any]:
        """Parameters of the controller."""
        name, call = self.controller, self.connection.call
        try:
            left = deadline - time.monotonic()
            answer = call(ListParameters, f"{name}/list_parameters", ListParameters.Request(), left)
            names = list(answer.result.names)
            request, left = GetParameters.Request(names=names), deadline - time.monotonic()
            values = call(GetParameters, f"{name}/get_parameters", request, left).values
        except NotThere:
            node = self.connection.node
            nodes = [
                f"{at.rstrip('/')}/{each}" for each, at in node.get_node_names_and_namespaces()
            ]
            found = sorted(set(self._others()) - {name})
            others = f"; {listed(found)} runs, give its name" if found else ""
            raise NotThere(
                f"{name} does not answer {looked}; look at its log"
                if name in nodes
                else f"there is no controller {name} {looked}; start it, or compare "
                f"ROS_DOMAIN_ID{others}"
            ) from None
        return dict(zip(names, map(parameter_value_to_python, values), strict=False))

    def _others(self) -> list[str]:
        """Full names of nodes with a trajectory topic."""
        end = "/joint_trajectory"
        return [
            name.removesuffix(end)
            for name, types in self.connection.node.get_topic_names_and_types()
            if name.endswith(end) and "trajectory_msgs/msg/JointTrajectory" in types
        ]

    def names_of_nodes(self) -> list[str]:
        """Names of the nodes in the namespace of the controller."""
        node = self.connection.node
        found = node.get_node_names_and_namespaces()
        return [name for name, namespace in found if namespace == node.get_namespace()]

    def where(self) -> tuple[FloatArray, FloatArray]:
        """Position at which the controller holds the arm, and measured position, shape (nv,) each,
        [rad] or [m].

        Raises:
            Refused: the controller accepts no goal before a request, or moves the arm or is not
                ready for longer than READY.
            NotThere: no joint state is received, or the controller serves no action.
            JointStateError: the joint states lack a position.
        """
        self.check_messages()
        if not self.until(lambda: self._serves_action, FRESH):
            raise NotThere(self._no_action)
        deadline = time.monotonic() + READY
        while True:
            state = self._next()
            measured = self.column(state, "positions")
            if not np.isfinite(measured).all():
                raise JointStateError(f"joint_states have positions {measured.tolist()}")
            held, reason = self._held(Time(seconds=state.seconds, nanoseconds=state.nanoseconds))
            if held is not None:
                return held, measured
            lasts = self.mode in LASTING or time.monotonic() > deadline
            if lasts or not self._running():
                raise Refused(f"{self.controller} accepts no goal: {reason}")
            self._pause()

    def newest(self) -> JointStateFields | None:
        """Newest joint state that names the arm's joints; None before the first one."""
        with self._lock:
            while self._is_open and (taken := self._states.poll()) is not None:
                self._note_state(taken.data)
            return self._state

    def _next(self) -> JointStateFields:
        """A joint state that is received after the call."""
        before, deadline = self.newest(), time.monotonic() + FRESH
        while self._is_open and self._state is before and self._running():
            if time.monotonic() > deadline:
                break
            with self._lock:
                if self._is_open and (taken := self._states.take(LOOK)) is not None:
                    self._note_state(taken.data)
        if self._state is None or self._state is before:
            lacking = f" with {listed(self._joints)}" if self._joints else ""
            topic = self._resolved("joint_states")
            raise NotThere(f"no joint state{lacking} on {topic} for {FRESH:g} s")
        return self._state

    def _note_state(self, data: bytes) -> None:
        try:
            state = JointStateFields(data)
        except CdrError:  # another program's mistake
            return
        if set(self._joints) <= set(state.names):  # not that of a gripper
            self._state = state

    def column(self, state: JointStateFields, quantity: str) -> FloatArray:
        """A field of a joint state in the order of the joints, shape (nv,); NaN if the message has
        none.

        Args:
            state: the joint state.
            quantity: "positions", "velocities" or "efforts".
        """
        values = state.reader.numbers(getattr(state, quantity))
        if len(values) != len(state.names):
            return np.full(len(self._joints), math.nan)
        return np.array([values[state.names.index(name)] for name in self._joints])

    def _held(self, stamp: Time) -> tuple[FloatArray | None, str]:
        """Position at which the controller holds the arm, shape (nv,); None and the reason if it
        does not hold the arm."""
        request = QueryTrajectoryState.Request(time=stamp.to_msg())
        response = self.connection.call(
            QueryTrajectoryState, f"{self.controller}/query_state", request, FRESH
        )
        joints = list(self._joints)
        if list(response.name) != joints or len(response.position) != len(joints):
            reason = getattr(response, "message", "") or "it receives no joint states"
            return None, plain(reason, LONGEST_REASON)
        if response.success or self.mode in IN_MOTION:
            stop = f"ros2 service call {self.controller}/hold std_srvs/srv/Trigger"
            return (
                None,
                f"it follows a trajectory of another client; wait for its end, or stop it: {stop}",
            )
        return np.array(response.position), ""

    def send(
        self, profile: Profile, on_feedback: Callable[[Any], None], client: TrajectoryClient
    ) -> None:
        """Sends the motion as a goal that starts at once.

        Args:
            profile: the motion.
            on_feedback: called with each feedback, in the thread of the callbacks.
            client: client for this goal.
        """
        message = JointTrajectory(joint_names=list(self._joints))
        rows = profile.positions, profile.velocities, profile.accelerations
        count = len(profile.times)
        efforts = [()] * count if profile.efforts is None else profile.efforts.tolist()
        for moment, q, v, a, effort in zip(profile.times, *rows, efforts, strict=True):
            point = JointTrajectoryPoint(
                positions=q.tolist(),
                velocities=v.tolist(),
                accelerations=a.tolist(),
                effort=effort,
            )
            seconds, nanoseconds = divmod(round(moment * NANOSECONDS), round(NANOSECONDS))
            point.time_from_start.sec, point.time_from_start.nanosec = seconds, nanoseconds
            message.points.append(point)
        self.connection.run(lambda: client.send(message, lambda given: on_feedback(given.feedback)))

    def follow(self, watch: GoalWatch, show: Callable[[], None], signals: int = 1) -> None:
        """Waits until a goal has ended, a number of signals was received, or the controller has
        ended; calls `show` repeatedly."""
        while self._running(signals) and not watch.has_ended():
            self.connection.wait(lambda: watch.client.ended, LOOK, signals)
            show()

    def await_rest(self, seconds: float) -> bool:
        """Waits until the arm has stopped; False after `seconds` or a second signal."""
        since = time.monotonic()
        deadline = since + seconds
        while (now := time.monotonic()) < deadline and self._running(2):
            if self.mode in IN_MOTION:
                since = now
            elif now - since > STANDS:
                return True
            self._pause(2)
        return False

    def until(self, condition: Callable[[], Any], seconds: float) -> bool:
        """Waits for a condition; False if it does not hold after `seconds` or a signal."""
        return self.connection.wait(condition, seconds)

    def destroy(self) -> None:
        """Closes the connection."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                self._states.destroy()
        self.connection.close()

    def _pause(self, signals: int = 1) -> None:
        self.connection.wait(lambda: False, LOOK, signals)

    def _note_mode(self, event: TransitionEvent) -> None:
        self.reason = plain(event.transition.label, LONGEST_REASON)
        self.mode = plain(event.goal_state.label)
        if self.mode == Mode.MOVING.value:
            self.moved_at = time.monotonic()

    def _note_description(self, message: String) -> None:
        self.description = self.description or message.data


class GoalWatch:
    """Notices that a goal has ended, also if no result is received.

    Args:
        link: connection to the controller.
        client: client that has sent the goal.

    Attributes:
        is_lost: True if the goal has ended as no result is to be expected.
    """

    is_lost = False

    def __init__(self, link: ControllerLink, client: TrajectoryClient) -> None:
        self._link, self.client = link, client
        self._seen = self._resting = self._looked = time.monotonic()

    def has_ended(self) -> bool:
        """True if the goal has ended; call it repeatedly."""
        link, client = self._link, self.client
        if client.ended:
            return True
        now = time.monotonic()
        if now - self._looked > LONGEST_BLINK:
            self._seen = self._resting = now
        self._looked = now
        is_there = link.connection.asks(lambda: client.is_there)
        self._seen = now if is_there else self._seen
        # Before it accepts the goal, the controller plans; afterwards it moves the arm.
        follows = not client.accepted or link.mode in IN_MOTION
        self._resting = now if follows else self._resting
        lost = ""
        if link.connection.has_ended:
            lost = "the connection to ROS is closed; the result of the goal is not known"
        elif now - self._seen > ABSENCE:
            lost = f"{link.controller} is gone; see its log"
        elif now - self._resting > LONGEST_RESULT:
            lost = (
                f"{link.controller} is in mode {link.mode} and has not reported the result of "
                "the goal; see its log"
            )
        if lost:
            self.is_lost = True
            client.end(lost)
        return client.ended
