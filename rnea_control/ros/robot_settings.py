"""Turns the parameters of robot_parameters.py into the robot and its settings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import SafetySettings
from rnea_control.exceptions import ParameterError
from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.ros.parameter_table import JOINT, Parameters
from rnea_control.ros.real_time import RealTimeSettings

# What stands for the default of a number.
DEFAULT = -1.0
# Of the hand-over: how long a controller may be away, on hardware and in simulated time, [s]; and
# how many times longer commands may be missing.
LEASE, SIMULATED_LEASE, TIMEOUT_SHARE = 0.01, 0.1, 1.5
# The default torque rate limit is the effort limit in this time, [s].
DEFAULT_TORQUE_RISE = 0.02


def load_model(
    parameters: Parameters, joints: list[str], locked: Sequence[str], description: str
) -> RobotModel:
    """The robot of the parameter `robot_description`, or of the topic's `description`.

    Its warnings are in `RobotModel.warnings`; none is issued.

    Args:
        parameters: of the node.
        joints: to control.
        locked: joints with a parameter `locked_positions.<joint>`.
        description: URDF text from the topic, empty without any.

    Raises:
        ParameterError: there is no description, or a value that is not allowed.
        RobotModelError: the description is not that of a robot with these joints.
    """
    description = parameters["robot_description"] or description
    if not description:
        raise ParameterError(
            "there is no robot description yet: set the parameter 'robot_description', or start "
            "robot_state_publisher, which publishes the topic robot_description"
        )
    positions = {name: parameters[f"locked_positions.{name}"] for name in locked}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        return RobotModel.from_urdf_string(description, joints, positions, parameters["gravity"])


def update_model(parameters: Parameters, model: RobotModel) -> None:
    """Sets gravity, payload, friction and armature of the model from the node's parameters. A
    payload without mass is none, whatever its inertia.

    Raises:
        ParameterError: a value that is not allowed.
        RobotModelError: a payload with an impossible inertia, or on a link that does not exist.
    """
    mass = parameters["payload.mass"]
    xx, xy, xz, yy, yz, zz = parameters["payload.inertia"]
    model.set_payload(
        parameters["payload.link"] or model.child_links[-1],
        mass,
        parameters["payload.center_of_mass"],
        np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) if mass > 0.0 else None,
    )
    model.gravity = parameters["gravity"]
    names = model.joint_names
    model.armature = [parameters[f"armature.{name}"] for name in names]
    model.torque_offset = [parameters[f"friction.{name}.offset"] for name in names]
    for attribute, key in (("damping", "damping"), ("friction", "coulomb")):
        values = [parameters[f"friction.{name}.{key}"] for name in names]
        setattr(model, attribute, _or_of_urdf(values, getattr(model, f"urdf_{attribute}")))


def _or_of_urdf(values: list[float], of_urdf: FloatArray) -> list[float]:
    return [own if own >= 0.0 else given for own, given in zip(values, of_urdf, strict=True)]


def real_time_settings(parameters: Parameters) -> RealTimeSettings:
    """The real-time set-up from the node's parameters.

    Raises:
        ParameterError: a value that is not allowed.
    """
    return RealTimeSettings(
        parameters["thread_priority"],
        tuple(cpu for cpu in parameters["cpu_affinity"] if cpu >= 0),
        parameters["lock_memory"],
        parameters["cpu_dma_latency"],
    )


def limit_settings(parameters: Parameters, model: RobotModel) -> SafetySettings:
    """The limits that every torque keeps, of whichever node.

    Raises:
        ParameterError: a value that is not allowed.
    """

    def of_joints(name: str) -> FloatArray:
        return np.array([parameters[name.replace(JOINT, joint)] for joint in model.joint_names])

    effort, rate = of_joints("effort_limits.<joint>"), of_joints("torque_rate_limits.<joint>")
    effort = np.where(effort == DEFAULT, model.effort_limit, effort)
    rate = np.where(rate == DEFAULT, effort / DEFAULT_TORQUE_RISE, rate)
    error = of_joints("max_position_errors.<joint>")
    return SafetySettings.none(model.nv).changed(
        effort_limit=effort,
        torque_rate_limit=rate,
        position_margin=of_joints("soft_limits.<joint>.margin"),
        limit_stiffness=parameters["soft_limits.stiffness"],
        velocity_limit_scale=parameters["velocity_limit_scale"],
        max_position_error=np.where(error > 0.0, error, math.inf),
        saturation_timeout=parameters["saturation_timeout"] or math.inf,
        check_jumps=True,
    )


def handover_times(parameters: Parameters, simulated: bool) -> tuple[float, float]:
    """`command_lease` and `command_timeout`, [s], whatever stands for them.

    Args:
        parameters: of the node.
        simulated: whether time is simulated.

    Raises:
        ParameterError: a value that is not allowed, or a lease that is not the shorter one.
    """
    lease, timeout = parameters["command_lease"], parameters["command_timeout"]
    if lease == DEFAULT:
        lease = SIMULATED_LEASE if simulated else LEASE
    if timeout == DEFAULT:
        timeout = TIMEOUT_SHARE * lease
    if lease >= timeout:
        raise ParameterError(
            f"parameter 'command_lease' is {lease} s; it must be shorter than command_timeout, "
            f"{timeout} s: else two nodes could command the arm at once"
        )
    return lease, timeout
