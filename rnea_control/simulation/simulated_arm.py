"""`SimulatedArm`: ROS node that replaces ros2_control and a robot: effort controller, physics, and
sensor noise.

It publishes the topics of joint_state_broadcaster and robot_state_publisher, and takes the commands
of a ForwardCommandController. It does not spin: the loops of `executable.py` do.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from rclpy.exceptions import InvalidTopicNameException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import ParameterError, SimulationError, errors_of
from rnea_control.model import RobotModel
from rnea_control.model.urdf_text import read_urdf_file, urdf_text
from rnea_control.parameters.settings import quietly
from rnea_control.plausibility import suspicions
from rnea_control.ros.conventions import LATCHED
from rnea_control.ros.node_parameters import NodeParameters
from rnea_control.simulation.mujoco_arm import MujocoArm
from rnea_control.simulation.parameters import PARAMETER_GROUPS, PARAMETERS
from rnea_control.simulation.urdf_for_mujoco import ModelErrors

COMMANDS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


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
        initial, locked = (
            {name: parameters[f"{group}.{name}"] for name in parameters.add_group(group, row)}
            for group, row in PARAMETER_GROUPS.items()
        )
        for name in parameters.unknown():
            self.get_logger().warning(
                f"parameter {name!r} is not known and has no effect; is it misspelled?"
            )
        xml = _description(parameters)
        given = parameters["joints"] or None, locked, parameters["gravity"]
        self.model = quietly(RobotModel.from_urdf_string, xml, *given)
        for warning in suspicions(self.model):
            self.get_logger().warning(warning)
        if self.model.nv == 0:
            raise SimulationError(
                f"{self.model.name!r} has no joint that moves; there is nothing to simulate"
            )
        self.lockstep: bool = parameters["lockstep"]
        self.waits_for_commands: bool = parameters["waits_for_commands"]
        self.period = 1.0 / parameters["rate"]
        self.ticks = 0
        self._start = 0
        self.commands_received = 0
        self.torque = np.zeros(self.model.nv)
        self._brakes = parameters["brakes_until_command"]
        self._simulated_time = self.lockstep or parameters["publish_clock"]
        self.effort_controller = EffortController(self.model)
        errors = ModelErrors(**{each.name: parameters[each.name] for each in fields(ModelErrors)})
        self._physics = MujocoArm(xml, self.model, self.period, initial, errors)
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
    def q(self) -> FloatArray:
        """Joint positions, shape (nq,)."""
        return self._physics.q

    @property
    def v(self) -> FloatArray:
        """Joint velocities, shape (nv,)."""
        return self._physics.v

    def stamp(self) -> int:
        """Present time of the clock that stamps the states, [ns]."""
        if self._simulated_time:
            return round((self.ticks + 1) * self.period * 1e9)
        return self._start + round(self.ticks * self.period * 1e9)

    def start_clock(self) -> None:
        """Sets the clock of the states so that the present state is due now. Stamps are the times
        at which states are due, not at which they are sent."""
        elapsed = round(self.ticks * self.period * 1e9)
        self._start = self.get_clock().now().nanoseconds - elapsed

    def publish_state(self) -> int:
        """Publishes the state, and /clock if enabled; returns the stamp, [ns]."""
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
        """Simulates one period with the last command, limited as by the controller_manager."""
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
        response.success, response.message = True, "the effort controller is active"
        return response


def _description(parameters: NodeParameters) -> str | bytes:
    if parameters["robot_description"]:
        return parameters["robot_description"]
    path = parameters["urdf_file"]
    if not path:
        raise ParameterError(
            "parameter 'urdf_file' is not set; it must be the path of the robot's URDF file, "
            "unless the parameter 'robot_description' has the URDF as text"
        )
    with errors_of("parameter 'urdf_file'"):
        return read_urdf_file(path)


class EffortController:
    """Holds the last commanded torque of each joint of `model`, zero at first.

    Behaves like a ForwardCommandController with effort interfaces under a real controller_manager,
    as measured:

    - an empty message changes nothing;
    - a message with a number that is not finite is dropped;
    - a message of the wrong length deactivates the controller until it is activated again;
    - without commands the last torque is held for ever;
    - the controller_manager limits the effort to the URDF's limit, and beyond a position or
      velocity limit to the direction that leads back.

    Unlike there, a velocity limit of 0 means no limit, as for the controller and its model.

    Attributes:
        active: True if commands are taken.
        commanded: True after the first accepted command.
    """

    def __init__(self, model: RobotModel) -> None:
        self.active = True
        self.commanded = False
        self._model = model
        self._command = np.zeros(model.nv)

    def receive(self, values: Sequence[float]) -> str | None:
        """Takes a command message; returns its fault in words, or None."""
        nv = self._model.nv
        if not self.active or len(values) == 0:
            return None
        if len(values) != nv:
            self.active = False
            return (
                f"a command has {len(values)} numbers for {nv} joints; the effort controller is "
                "deactivated and holds its last torque until it is activated again"
            )
        for name, value in zip(self._model.joint_names, values, strict=True):
            if not math.isfinite(value):
                return f"a command with {value} for joint {name!r} is dropped"
        self._command[:] = values
        self.commanded = True
        return None

    def limited(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Torque that reaches the motors at positions `q` and velocities `v`."""
        model = self._model
        low, high = -model.effort_limit, model.effort_limit.copy()
        low[((q <= model.lower) & (v <= 0.0)) | (v < -model.velocity_limit)] = 0.0
        high[((q >= model.upper) & (v >= 0.0)) | (v > model.velocity_limit)] = 0.0
        return np.clip(self._command, low, high)


class SensorNoise:
    """White Gaussian noise on positions, velocities and efforts, each from a separate generator:
    with the same seed the noise of each does not depend on the noise of the others.

    Args:
        position, velocity: standard deviations, [rad] and [rad/s], or [m] and [m/s].
        effort: standard deviation as a fraction of each joint's effort limit.
        seed: seed of the generators, not negative.

    Raises:
        SimulationError: noise of the effort of a joint that has no effort limit.
    """

    def __init__(
        self, model: RobotModel, position: float, velocity: float, effort: float, seed: int
    ) -> None:
        unlimited = np.flatnonzero(np.isinf(model.effort_limit)) if effort else ()
        if len(unlimited):
            raise SimulationError(
                f"effort_noise is {effort:g} of the effort limit, and joint "
                f"{model.joint_names[unlimited[0]]!r} has none; give it one in the URDF, <limit "
                "effort=...>, or leave effort_noise at 0"
            )
        one, share = np.ones(model.nv), model.effort_limit if effort else np.zeros(model.nv)
        self._deviations = (position * one, velocity * one, effort * share)
        seeds = np.random.SeedSequence(seed).spawn(len(self._deviations))
        self._generators = [np.random.default_rng(child) for child in seeds]
        self._noise: list[FloatArray] = []
        self._state = -1

    def added(self, state: int, *values: FloatArray) -> list[FloatArray]:
        """Adds noise to positions, velocities and efforts, shape (nv,) each. `state` is the number
        of the state; the same number gives the same noise."""
        if state != self._state:
            self._state = state
            normal = [each.standard_normal(len(values[0])) for each in self._generators]
            self._noise = list(map(np.multiply, self._deviations, normal))
        return list(map(np.add, values, self._noise))
