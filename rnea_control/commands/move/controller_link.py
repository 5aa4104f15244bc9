"""`ControllerLink`: a running controller as rnea_move sees it: its settings, where it holds the
arm, and the goal that it is given."""

from __future__ import annotations

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
except ImportError:  # it came after the action
    QueryTrajectoryState = None

Running = Callable[..., bool]

LOOK = 0.05  # longest time between two looks at signals [s]
FRESH = 5.0  # time in which a joint state and an answer must come [s]
READY = 3.0  # time that a controller gets to end what passes by itself [s]
ABSENCE = 5.0  # time after which a controller that is not seen any more is gone [s]
STANDS = 0.3  # time in a mode at rest after which the arm stands [s]
IN_MOTION = (Mode.MOVING.value, Mode.BRAKING.value)
NO_MACHINE = Machine(0, False, False, None, (), None)  # not looked at
MESSAGES = (
    "control_msgs is not installed: rnea_move sends goals by the action. Install "
    "ros-$ROS_DISTRO-control-msgs"
)


class ControllerLink:
    """See the file.

    Args:
        controller: full name of the controller's node; joint_states and robot_description are
            relative to its namespace.
        running: whether to go on, until a number of signals has come.

    Attributes:
        controller: that.
        client: sends the goal.
        mode: of the controller; empty while it is not known.
        given: model and settings in force, after `observe`.
    """

    given: InForce

    def __init__(self, controller: str, running: Running) -> None:
        if FollowJointTrajectory is None or QueryTrajectoryState is None:
            raise TrajectoryModeError(MESSAGES)
        self.controller, self._running = controller, running
        self.mode = ""
        namespace, _, self._name = controller.rpartition("/")
        name = f"rnea_move_{os.getpid()}"  # several may run
        self._node = Node(name, namespace=namespace, **QUIET)
        # Joint states come often: their node is spun only when one is wanted.
        self._states = Node(f"{name}_states", namespace=namespace, **QUIET)
        self._executors = []
        for node in (self._node, self._states):
            self._executors.append(SingleThreadedExecutor())
            self._executors[-1].add_node(node)
        self.client = TrajectoryClient(self._node, controller)
        self._query = self._node.create_client(QueryTrajectoryState, f"{controller}/query_state")
        self._node.create_subscription(
            TransitionEvent, f"{controller}/mode", self._hear_mode, LATCHED
        )
        self._taken = 0  # joint states
        self._state: JointState | None = None
        self._states.create_subscription(JointState, "joint_states", self._hear_state, NEWEST)
        self._observer = Observer(
            namespace, controller, "", math.inf, NO_MACHINE, f"{name}_observer"
        )

    def observe(self, seconds: float) -> None:
        """Finds the controller, its settings and the arm.

        Raises:
            TrajectoryModeError: there is no controller, or it takes no goals by the action.
            JointStateError: no joint states come.
            ParameterError, RobotModelError: parameters or robot description are not known, or make
                no robot.
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
            others = f"; there is {listed(found)}, give its name by --controller" if found else ""
            raise TrajectoryModeError(
                f"{name} does not answer {looked}; look at its log"
                if silent
                else f"there is no controller {name} {looked}; start it, or compare "
                f"ROS_DOMAIN_ID{others}"
            )
        if not evidence.states:
            raise JointStateError(
                f"no joint state came on {evidence.states_topic.name} {looked}: activate "
                "joint_state_broadcaster, or give its topic, --ros-args -r joint_states:=TOPIC"
            )
        if not (self.client.is_there and self.client.by_action):
            raise TrajectoryModeError(
                f"{name} serves no action {name}/follow_joint_trajectory: is control_msgs "
                "installed where it runs?"
            )
        robot = evidence.settings.robot
        if robot is None:
            raise ParameterError(
                f"the robot is not known: no message on {evidence.description_topic.name} {looked}"
            )
        if isinstance(robot, RobotModelError | ParameterError):
            raise robot
        self.given = in_force(evidence.settings, evidence.settings.model)

    def _others(self) -> list[str]:
        """Full names of what takes trajectories."""
        end = "/joint_trajectory"
        return [
            name.removesuffix(end)
            for name, types in self._node.get_topic_names_and_types()
            if name.endswith(end) and "trajectory_msgs/msg/JointTrajectory" in types
        ]

    def where(self) -> tuple[FloatArray, FloatArray]:
        """Where the controller holds the arm at rest, and where the arm is, shape (nv,) each, [rad]
        or [m].

        Raises:
            TrajectoryModeError: the controller takes no goal, or moves the arm; it was given a
                moment for what passes by itself.
            JointStateError: no joint state comes, or it lacks a joint.
        """
        deadline = time.monotonic() + READY
        while True:
            stamp, measured = self._measured()
            held, reason = self._held(stamp)
            if held is not None:
                return held, measured
            if not self._running() or time.monotonic() > deadline:
                raise TrajectoryModeError(f"{self.controller} takes no goal: {reason}")
            self._spin(LOOK)

    def _measured(self) -> tuple[Time, FloatArray]:
        """Stamp and positions of a state that comes after the call."""
        before, deadline = self._taken + 2, time.monotonic() + FRESH  # one may have waited
        while self._taken < before and time.monotonic() < deadline and self._running():
            self._executors[1].spin_once(timeout_sec=LOOK)
        if self._state is None or self._taken < before:
            topic = self._states.resolve_topic_name("joint_states")
            raise JointStateError(f"no joint state came on {topic} for {FRESH:g} s")
        state, joints = self._state, self.given.model.joint_names
        lacking = [name for name in joints if name not in state.name]
        if lacking or len(state.position) != len(state.name):
            raise JointStateError(f"joint_states lack {listed(lacking or ['positions'])}")
        q = np.array([state.position[state.name.index(name)] for name in joints])
        if not np.isfinite(q).all():
            raise JointStateError(f"joint_states have positions {q.tolist()}; they must be finite")
        return Time.from_msg(state.header.stamp), q

    def _held(self, stamp: Time) -> tuple[FloatArray | None, str]:
        """Where the controller holds the arm, shape (nv,); None with the reason if it does not."""
        answer = self._query.call_async(QueryTrajectoryState.Request(time=stamp.to_msg()))
        if not self.until(answer.done, FRESH):
            return None, f"it does not answer {self.controller}/query_state"
        response, joints = answer.result(), list(self.given.model.joint_names)
        if list(response.name) != joints or len(response.position) != len(joints):
            reason = getattr(response, "message", "") or "it has no joint states"
            return None, reason
        if response.success or self.mode in IN_MOTION:
            stop = f"ros2 service call {self.controller}/hold std_srvs/srv/Trigger"
            return (
                None,
                f"it follows a trajectory of another client; wait for its end, or stop it: {stop}",
            )
        return np.array(response.position), ""

    def send(self, profile: Profile, on_feedback: Callable[[object], None]) -> None:
        """Sends the motion as a goal that starts now."""
        message = JointTrajectory(joint_names=list(self.given.model.joint_names))
        rows = profile.positions, profile.velocities, profile.accelerations
        for moment, q, v, a in zip(profile.times, *rows, strict=True):
            point = JointTrajectoryPoint(
                positions=q.tolist(), velocities=v.tolist(), accelerations=a.tolist()
            )
            seconds, nanoseconds = divmod(round(moment * NANOSECONDS), round(NANOSECONDS))
            point.time_from_start.sec, point.time_from_start.nanosec = seconds, nanoseconds
            message.points.append(point)
        self.client.send(message, lambda given: on_feedback(given.feedback))

    def follow(self, show: Callable[[], None], signals: int = 1) -> None:
        """Until the goal has ended, a number of signals has come, or the controller is gone."""
        seen = resting = time.monotonic()
        client = self.client
        while self._running(signals) and not client.ended:
            self._spin(LOOK)
            show()
            now = time.monotonic()
            seen = now if client.is_there else seen
            # Before the answer the controller plans; later it moves the arm.
            follows = not client.accepted or self.mode in IN_MOTION
            resting = now if follows else resting
            if now - seen > ABSENCE:
                client.end(f"{self.controller} is gone; see its log")
            elif now - resting > ABSENCE:
                client.end(
                    f"{self.controller} is in mode {self.mode} and has not said how the goal "
                    "ended; see its log"
                )

    def await_rest(self, seconds: float) -> bool:
        """Waits until the arm stands; whether it does."""
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
        """Waits for a condition; whether it holds."""
        deadline = time.monotonic() + seconds
        while not condition() and time.monotonic() < deadline and self._running():
            self._spin(LOOK)
        return condition()

    def destroy(self) -> None:
        """Takes the nodes down."""
        for executor, node in zip(self._executors, (self._node, self._states), strict=True):
            executor.shutdown()
            node.destroy_node()

    def _spin(self, seconds: float) -> None:
        self._executors[0].spin_once(timeout_sec=seconds)

    def _hear_mode(self, event: TransitionEvent) -> None:
        self.mode = event.goal_state.label

    def _hear_state(self, state: JointState) -> None:
        self._state, self._taken = state, self._taken + 1
