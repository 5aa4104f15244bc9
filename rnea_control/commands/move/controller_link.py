"""`ControllerLink`: connection of rnea_move to a running controller: its settings, the position at
which it holds the arm, and the goal sent to it."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable

import numpy as np
from lifecycle_msgs.msg import TransitionEvent
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.time import Time
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_control.array_types import FloatArray
from rnea_control.commands.evidence import Evidence, Machine
from rnea_control.commands.move.profile import NANOSECONDS, Profile
from rnea_control.commands.observer import Observer
from rnea_control.control import Mode
from rnea_control.exceptions import (
    JointStateError,
    ParameterError,
    RobotModelError,
    TrajectoryModeError,
    listed,
)
from rnea_control.node.parameters import InForce, in_force
from rnea_control.ros.conventions import LATCHED, NEWEST, QUIET
from rnea_control.trajectory_client import FollowJointTrajectory, TrajectoryClient

try:
    from control_msgs.srv import QueryTrajectoryState
except ImportError:  # newer than the action
    QueryTrajectoryState = None

Running = Callable[..., bool]

LOOK = 0.05  # period at which signals are polled [s]
FRESH = 5.0  # time limit for a joint state and for an answer [s]
READY = 3.0  # time limit for the end of a transient state of the controller [s]
ABSENCE = 5.0  # time after which an undiscovered controller counts as ended [s]
STANDS = 0.3  # time in a mode at rest after which the arm has stopped [s]
IN_MOTION = (Mode.MOVING.value, Mode.STREAMING.value, Mode.BRAKING.value)
NO_MACHINE = Machine(0, False, False, None, (), None)  # placeholder; rnea_move does not use it
MESSAGES = (
    "control_msgs is not installed: rnea_move sends goals by the action. Install "
    "ros-$ROS_DISTRO-control-msgs"
)


class ControllerLink:
    """Connection to a running controller.

    Args:
        controller: full name of the controller's node; joint_states and robot_description are
            relative to its namespace.
        running: False after the given number of signals, 1 by default.
        program: first part of the node's name.

    Attributes:
        controller: full name of the controller's node.
        client: client of the action.
        mode: mode of the controller; empty while unknown.
        given: model and settings in force; set by `observe`.
    """

    given: InForce

    def __init__(self, controller: str, running: Running, program: str = "rnea_move") -> None:
        if FollowJointTrajectory is None or QueryTrajectoryState is None:
            raise TrajectoryModeError(MESSAGES)
        self.controller, self._running = controller, running
        self.mode = ""
        namespace, _, self._name = controller.rpartition("/")
        name = f"{program}_{os.getpid()}"  # several may run
        self._node = Node(name, namespace=namespace, **QUIET)
        # A separate node, spun only when a state is needed: joint states arrive at a high rate.
        self._states = Node(f"{name}_states", namespace=namespace, **QUIET)
        self._executors = []
        for node in (self._node, self._states):
            self._executors.append(SingleThreadedExecutor())
            self._executors[-1].add_node(node)
        self.client = TrajectoryClient(self._node, controller)
        self._query = self._node.create_client(QueryTrajectoryState, f"{controller}/query_state")
        self._node.create_subscription(
            TransitionEvent, f"{controller}/mode", self._note_mode, LATCHED
        )
        self._taken = 0  # number of joint states received
        self._state: JointState | None = None
        self._states.create_subscription(JointState, "joint_states", self._note_state, NEWEST)
        self._observer = Observer(
            namespace, controller, "", math.inf, NO_MACHINE, f"{name}_observer"
        )

    def observe(self, seconds: float) -> None:
        """Finds the controller, its settings and the arm.

        Raises:
            TrajectoryModeError: the controller does not run, or does not serve the action.
            JointStateError: no joint state is received.
            ParameterError: parameters or robot description are unknown or not allowed.
            RobotModelError: the robot description does not describe a robot with these joints.
        """
        deadline = time.monotonic() + seconds

        def goes_on() -> bool:
            known = self._observer.knows_arm and self.client.is_there and self.mode
            self._spin(0.0)
            return self._running() and not known and time.monotonic() < deadline

        evidence = self._observer.observe(goes_on)
        self._observer.destroy()
        if self._running():
            self._check(evidence, seconds)

    def _check(self, evidence: Evidence, seconds: float) -> None:
        name, looked = self.controller, f"within {seconds:g} s"
        if not evidence.parameters.get(name):
            silent = name in evidence.nodes
            found = sorted(set(self._others()) - {name})
            others = f"; {listed(found)} runs, give its name by --controller" if found else ""
            raise TrajectoryModeError(
                f"{name} does not answer {looked}; look at its log"
                if silent
                else f"there is no controller {name} {looked}; start it, or compare "
                f"ROS_DOMAIN_ID{others}"
            )
        if not evidence.states:
            raise JointStateError(
                f"no joint state on {evidence.states_topic.name} {looked}: activate "
                "joint_state_broadcaster, or give its topic, --ros-args -r joint_states:=TOPIC"
            )
        if not (self.client.is_there and self.client.by_action):
            raise TrajectoryModeError(
                f"{name} serves no action {name}/follow_joint_trajectory; install "
                "ros-$ROS_DISTRO-control-msgs where the controller runs"
            )
        robot = evidence.settings.robot
        if robot is None:
            raise ParameterError(
                f"no robot description on {evidence.description_topic.name} {looked}: start "
                "robot_state_publisher"
            )
        if isinstance(robot, RobotModelError | ParameterError):
            raise robot
        self.given = in_force(evidence.settings, evidence.settings.model)

    def _others(self) -> list[str]:
        """Full names of nodes with a trajectory topic."""
        end = "/joint_trajectory"
        return [
            name.removesuffix(end)
            for name, types in self._node.get_topic_names_and_types()
            if name.endswith(end) and "trajectory_msgs/msg/JointTrajectory" in types
        ]

    def look(self) -> str:
        """Mode of the controller by now; empty while unknown."""
        self._spin(0.0)
        return self.mode

    def names_of_nodes(self) -> list[str]:
        """Names of the nodes in the namespace of the controller."""
        found = self._node.get_node_names_and_namespaces()
        return [name for name, namespace in found if namespace == self._node.get_namespace()]

    def where(self) -> tuple[FloatArray, FloatArray]:
        """Position at which the controller holds the arm, and measured position, shape (nv,) each,
        [rad] or [m].

        Raises:
            TrajectoryModeError: the controller accepts no goal or moves the arm, for longer than
                READY.
            JointStateError: no joint state is received, or it lacks a joint.
        """
        deadline = time.monotonic() + READY
        while True:
            stamp, measured = self._measured()
            held, reason = self._held(stamp)
            if held is not None:
                return held, measured
            if not self._running() or time.monotonic() > deadline:
                raise TrajectoryModeError(f"{self.controller} accepts no goal: {reason}")
            self._spin(LOOK)

    def _measured(self) -> tuple[Time, FloatArray]:
        """Stamp and positions of a state received after the call."""
        # The first message may have been in the queue before the call.
        before, deadline = self._taken + 2, time.monotonic() + FRESH
        while self._taken < before and time.monotonic() < deadline and self._running():
            self._executors[1].spin_once(timeout_sec=LOOK)
        if self._state is None or self._taken < before:
            topic = self._states.resolve_topic_name("joint_states")
            raise JointStateError(f"no joint state on {topic} for {FRESH:g} s")
        state, joints = self._state, self.given.model.joint_names
        lacking = [name for name in joints if name not in state.name]
        if lacking or len(state.position) != len(state.name):
            raise JointStateError(f"joint_states lack {listed(lacking or ['positions'])}")
        q = np.array([state.position[state.name.index(name)] for name in joints])
        if not np.isfinite(q).all():
            raise JointStateError(f"joint_states have positions {q.tolist()}; they must be finite")
        return Time.from_msg(state.header.stamp), q

    def _held(self, stamp: Time) -> tuple[FloatArray | None, str]:
        """Position at which the controller holds the arm, shape (nv,); None and the reason if it
        does not hold the arm."""
        answer = self._query.call_async(QueryTrajectoryState.Request(time=stamp.to_msg()))
        if not self.until(answer.done, FRESH):
            return None, f"it does not answer {self.controller}/query_state"
        response, joints = answer.result(), list(self.given.model.joint_names)
        if list(response.name) != joints or len(response.position) != len(joints):
            reason = getattr(response, "message", "") or "it receives no joint states"
            return None, reason
        if response.success or self.mode in IN_MOTION:
            stop = f"ros2 service call {self.controller}/hold std_srvs/srv/Trigger"
            return (
                None,
                f"it follows a trajectory of another client; wait for its end, or stop it: {stop}",
            )
        return np.array(response.position), ""

    def send(self, profile: Profile, on_feedback: Callable[[object], None]) -> None:
        """Sends the motion as a goal that starts at once."""
        message = JointTrajectory(joint_names=list(self.given.model.joint_names))
        rows = profile.positions, profile.velocities, profile.accelerations
        efforts = itertools.repeat(()) if profile.efforts is None else profile.efforts.tolist()
        for moment, q, v, a, effort in zip(profile.times, *rows, efforts, strict=False):
            point = JointTrajectoryPoint(
                positions=q.tolist(),
                velocities=v.tolist(),
                accelerations=a.tolist(),
                effort=effort,
            )
            seconds, nanoseconds = divmod(round(moment * NANOSECONDS), round(NANOSECONDS))
            point.time_from_start.sec, point.time_from_start.nanosec = seconds, nanoseconds
            message.points.append(point)
        self.client.send(message, lambda given: on_feedback(given.feedback))

    def follow(self, show: Callable[[], None], signals: int = 1) -> None:
        """Waits until the goal has ended, a number of signals was received, or the controller has
        ended; calls `show` repeatedly."""
        seen = resting = time.monotonic()
        client = self.client
        while self._running(signals) and not client.ended:
            self._spin(LOOK)
            show()
            now = time.monotonic()
            seen = now if client.is_there else seen
            # Before it accepts the goal, the controller plans; afterwards it moves the arm.
            follows = not client.accepted or self.mode in IN_MOTION
            resting = now if follows else resting
            if now - seen > ABSENCE:
                client.end(f"{self.controller} is gone; see its log")
            elif now - resting > ABSENCE:
                client.end(
                    f"{self.controller} is in mode {self.mode} and has not reported the result of "
                    "the goal; see its log"
                )

    def await_rest(self, seconds: float) -> bool:
        """Waits until the arm has stopped; False after `seconds` or a second signal."""
        since = time.monotonic()
        deadline = since + seconds
        while (now := time.monotonic()) < deadline and self._running(2):
            if self.mode in IN_MOTION:
                since = now
            elif now - since > STANDS:
                return True
            self._spin(LOOK)
        return False

    def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Waits for a condition; False if it does not hold after `seconds` or a signal."""
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline and self._running():
            self._spin(LOOK)
        return condition()

    def destroy(self) -> None:
        """Destroys the nodes."""
        for executor, node in zip(self._executors, (self._node, self._states), strict=True):
            executor.shutdown()
            node.destroy_node()

    def _spin(self, seconds: float) -> None:
        self._executors[0].spin_once(timeout_sec=seconds)

    def _note_mode(self, event: TransitionEvent) -> None:
        self.mode = event.goal_state.label

    def _note_state(self, state: JointState) -> None:
        self._state, self._taken = state, self._taken + 1
