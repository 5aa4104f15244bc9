"""`SimulatedArm`: the ROS node that takes the place of ros2_control and a robot.

It publishes what joint_state_broadcaster and robot_state_publisher publish, and takes what a
ForwardCommandController takes. It does not spin: `run_in_real_time` and `run_in_lockstep` do.
"""

from __future__ import annotations

import time
import warnings
from array import array
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
from rclpy.exceptions import InvalidTopicNameException
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from rnea_control.exceptions import ParameterError, SimulationError
from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.model.urdf_text import urdf_text
from rnea_control.ros.node_parameters import NodeParameters
from rnea_control.ros.process import build, ros_process, unblocked_output
from rnea_control.ros.qos import LATCHED
from rnea_control.simulation.hardware import EffortController, SensorNoise
from rnea_control.simulation.mujoco_arm import MujocoArm
from rnea_control.simulation.parameters import INITIAL_POSITION, LOCKED_POSITION, PARAMETERS
from rnea_control.simulation.urdf_for_mujoco import ModelErrors

COMMANDS = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE
)

# How far the arm may fall behind real time before it stops catching up, [s].
LONGEST_DELAY = 0.05

# Lockstep: how long to wait for a command before the state is sent again, at first and later; and
# how long no command may come before all answers to a state that was sent twice are in, [s].
FIRST_RETRY = 0.1
RETRY = 2.0
QUIET = 0.2


class SimulatedArm(Node):
    """A simulated arm with the ROS interface of ros2_control hardware; its parameters are in
    `simulation/parameters.py`.

    Raises:
        RneaControlError: wrong parameters, or a URDF that cannot be simulated.
    """

    def __init__(self, **node_arguments: object) -> None:
        super().__init__(
            "rnea_simulated_arm",
            automatically_declare_parameters_from_overrides=True,
            **node_arguments,
        )
        # All parameters are read here, once.
        parameters = NodeParameters(
            self,
            PARAMETERS,
            in_use=lambda: hasattr(self, "_physics"),
            remedy="start the simulated arm again with it",
        )
        initial_positions = self._positions(parameters, INITIAL_POSITION)
        locked_positions = self._positions(parameters, LOCKED_POSITION)
        for name in parameters.unknown():
            self.get_logger().warning(
                f"parameter {name!r} is not known and has no effect; is it misspelt?"
            )
        xml = _description(parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RobotModelWarning)  # logged below
            self.model = RobotModel.from_urdf_string(
                xml, parameters["joints"] or None, locked_positions, parameters["gravity"]
            )
        for warning in self.model.warnings:
            self.get_logger().warning(warning)
        if self.model.nv == 0:
            raise SimulationError(
                f"{self.model.name!r} has no joint that moves; there is nothing to simulate"
            )
        self.lockstep: bool = parameters["lockstep"]
        self.period = 1.0 / parameters["rate"]
        self.ticks = 0
        self._start = 0
        self.commands_received = 0
        self.torque = np.zeros(self.model.nv)
        self._brakes = parameters["brakes_until_command"]
        self._simulated_time = self.lockstep or parameters["publish_clock"]
        self.effort_controller = EffortController(self.model)
        self._physics = MujocoArm(
            xml,
            self.model,
            self.period,
            initial_positions,
            locked_positions,
            ModelErrors(**{each.name: parameters[each.name] for each in fields(ModelErrors)}),
        )
        noise = [parameters[f"{what}_noise"] for what in ("position", "velocity", "effort")]
        seed = parameters["noise_seed"]
        self._noise = SensorNoise(self.model, *noise, seed) if any(noise) else None
        self._state = JointState(name=list(self.model.joint_names))
        self._state.header.frame_id = "base_link"
        self._time = Clock()
        self._state_publisher = self.create_publisher(JointState, "joint_states", LATCHED)
        self._time_publisher = (
            self.create_publisher(Clock, "/clock", 1) if parameters["publish_clock"] else None
        )
        self._description_publisher = self.create_publisher(String, "robot_description", LATCHED)
        self._description_publisher.publish(String(data=urdf_text(xml)))
        topic = parameters["command_topic"]
        try:
            self.create_subscription(Float64MultiArray, topic, self._receive, COMMANDS)
        except InvalidTopicNameException as error:
            raise ParameterError(
                f"parameter 'command_topic' is {topic!r}; it must be a topic name ({error})"
            ) from error
        self.create_service(Trigger, "~/activate_effort_controller", self._activate)

    @property
    def q(self) -> np.ndarray:
        """Joint positions, shape (nq,)."""
        return self._physics.q

    @property
    def v(self) -> np.ndarray:
        """Joint velocities, shape (nv,)."""
        return self._physics.v

    def stamp(self) -> int:
        """The present time of the clock that stamps the states, [ns]."""
        if self._simulated_time:
            return round((self.ticks + 1) * self.period * 1e9)
        return self._start + round(self.ticks * self.period * 1e9)

    def start_clock(self, ahead: int = 0) -> None:
        """Sets the clock of the states; their stamps say when they are due, not when they are sent.

        Args:
            ahead: how many states after the present one the state that is due now is.
        """
        elapsed = round((self.ticks + ahead) * self.period * 1e9)
        self._start = self.get_clock().now().nanoseconds - elapsed

    def publish_state(self) -> int:
        """Publishes the state, and /clock if asked for; returns the stamp, [ns]."""
        stamp = self.stamp()
        header = self._state.header.stamp
        header.sec, header.nanosec = divmod(stamp, 1_000_000_000)
        q, v, effort = self.q, self.v, self.torque
        if self._noise is not None:
            q, v, effort = self._noise.added(self.ticks, q, v, effort)
        self._state.position = array("d", q)
        self._state.velocity = array("d", v)
        self._state.effort = array("d", effort)
        if self._time_publisher is not None:
            self._time.clock = header
            self._time_publisher.publish(self._time)
        self._state_publisher.publish(self._state)
        return stamp

    def advance(self) -> None:
        """Lets one period pass with the last command, limited as the controller_manager would."""
        self.ticks += 1
        if self._brakes and not self.effort_controller.commanded:
            return
        self.torque = self.effort_controller.limited(self.q, self.v)
        self._physics.step(self.torque)

    def _receive(self, command: Float64MultiArray) -> None:
        self.commands_received += 1
        fault = self.effort_controller.receive(command.data)
        if fault is not None:
            self.get_logger().error(fault)

    def _activate(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self.effort_controller.active = True
        response.success = True
        response.message = "the effort controller is active"
        return response

    @staticmethod
    def _positions(parameters: NodeParameters, parameter) -> dict[str, float]:
        prefix = parameter.name.split(".")[0]
        return {
            name: parameters[f"{prefix}.{name}"] for name in parameters.add_group(prefix, parameter)
        }


def _description(parameters: NodeParameters) -> str | bytes:
    if parameters["robot_description"]:
        return parameters["robot_description"]
    path = parameters["urdf_file"]
    if not path:
        raise ParameterError(
            "parameter 'urdf_file' is not set; it must be the path of the robot's URDF file, "
            "unless the parameter 'robot_description' has the URDF as text"
        )
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ParameterError(
            f"parameter 'urdf_file' is {path!r}, which cannot be read: {error}"
        ) from error


def run_in_real_time(
    arm: SimulatedArm,
    executor: Executor,
    running: Callable[[], bool],
    observe: Callable[[int], None] = lambda stamp: None,
) -> None:
    """Publishes a state and steps the arm once a period of real time.

    Args:
        arm: the arm, added to `executor`.
        executor: takes the commands in between.
        running: asked once a period whether to go on.
        observe: called once a period, after the state was published, with its stamp [ns].
    """
    due = time.monotonic()
    arm.start_clock()
    while running():
        observe(arm.publish_state())
        due += arm.period
        while (left := due - time.monotonic()) > 0.0:
            executor.spin_once(timeout_sec=left)
        if -left > LONGEST_DELAY:
            arm.get_logger().warning(
                f"the simulated arm is {-left:.3f} s behind real time and does not catch up",
                throttle_duration_sec=1.0,
            )
            due = time.monotonic()
            arm.start_clock(1)
        arm.advance()


def run_in_lockstep(
    arm: SimulatedArm,
    executor: Executor,
    running: Callable[[], bool],
    observe: Callable[[int], None] = lambda stamp: None,
) -> None:
    """Publishes a state, waits for the command that answers it, and only then steps the arm.

    Arguments as for `run_in_real_time`.
    """
    while running():
        retry = RETRY if arm.ticks else FIRST_RETRY
        before = arm.commands_received
        observe(arm.publish_state())
        sent, sent_at = 1, time.monotonic()
        while arm.commands_received == before:
            executor.spin_once(timeout_sec=retry)
            if not running():
                return
            if arm.commands_received == before and time.monotonic() - sent_at > retry:
                arm.publish_state()
                sent, sent_at = sent + 1, time.monotonic()
        if sent > 1:
            _await_quiet(arm, executor)
        arm.advance()


def _await_quiet(arm: SimulatedArm, executor: Executor) -> None:
    """A state sent twice may be answered twice: no later state may take that for its answer."""
    received, since = arm.commands_received, time.monotonic()
    while time.monotonic() - since < QUIET:
        executor.spin_once(timeout_sec=QUIET)
        if arm.commands_received != received:
            received, since = arm.commands_received, time.monotonic()


def main() -> int:
    """Runs the simulated arm until SIGINT or SIGTERM; status 0 then, 1 for a wrong parameter."""
    with unblocked_output(), ros_process() as running:
        arm = build(SimulatedArm)
        executor = SingleThreadedExecutor()
        executor.add_node(arm)
        run = run_in_lockstep if arm.lockstep else run_in_real_time
        arm.get_logger().info(
            f"simulating {arm.model.name!r} with {arm.model.nv} joints at {1.0 / arm.period:g} Hz, "
            f"{'in lockstep' if arm.lockstep else 'in real time'}"
        )
        try:
            run(arm, executor, running)
        except SimulationError as error:
            arm.get_logger().fatal(str(error))
            return 1
        finally:
            arm.destroy_node()
    return 0
