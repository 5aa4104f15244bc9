"""Turns the node's parameters into settings of controller, model and process."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import (
    ControlLaw,
    ControllerSettings,
    ExcessiveEffort,
    Gains,
    SafetySettings,
    SupervisionSettings,
    Tolerances,
    TrajectorySettings,
)
from rnea_control.exceptions import ParameterError
from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.node.trajectory_input import InputSettings
from rnea_control.ros.node_parameters import NodeParameters
from rnea_control.ros.real_time import RealTimeSettings

# The default torque rate limit is the effort limit in this time, [s].
DEFAULT_TORQUE_RISE = 0.02


def controller_settings(parameters: NodeParameters, model: RobotModel) -> ControllerSettings:
    """The controller's settings from the node's parameters.

    Raises:
        ParameterError: a value that is not allowed, or missing.
    """
    joints = model.joint_names
    gains = {
        name: np.array([parameters[f"gains.{joint}.{name}"] for joint in joints])
        for name in ("p", "i", "d", "i_clamp_max", "i_clamp_min")
    }
    return ControllerSettings(
        Gains(**gains),
        ControlLaw[parameters["control_law"]],
        parameters["effort_limit_scale"],
        parameters["hardware_compensates_gravity"],
        parameters["friction_compensation"],
        _trajectory_settings(parameters, joints),
        _safety_settings(parameters, model),
    )


def _safety_settings(parameters: NodeParameters, model: RobotModel) -> SafetySettings:
    def of_joints(name: str) -> FloatArray:
        return np.array([parameters[name.replace("<joint>", joint)] for joint in model.joint_names])

    def bounds(values: FloatArray) -> FloatArray:
        return np.where(values > 0.0, values, math.inf)

    effort_limit = of_joints("effort_limits.<joint>")
    effort_limit = np.where(effort_limit > 0.0, effort_limit, model.effort_limit)
    rate = of_joints("torque_rate_limits.<joint>")
    rate = np.where(rate > 0.0, rate, effort_limit / DEFAULT_TORQUE_RISE)
    return SafetySettings(
        effort_limit,
        bounds(rate),
        of_joints("soft_limits.<joint>.margin"),
        bounds(of_joints("max_position_errors.<joint>")),
        parameters["soft_limits.stiffness"],
        parameters["velocity_limit_scale"],
        parameters["saturation_timeout"] or math.inf,
        parameters["activation.blend_time"],
        parameters["gravity_compensation.damping"],
        check_jumps=True,
    )


def supervision_settings(parameters: NodeParameters) -> SupervisionSettings:
    """When the controller starts, and when it does without states.

    Raises:
        ParameterError: a value that is not allowed.
    """
    gap, timeout = parameters["joint_state_gap"], parameters["joint_state_timeout"]
    if gap > timeout:
        raise ParameterError(
            f"parameter 'joint_state_gap' is {gap} s; it must be at most joint_state_timeout, "
            f"{timeout} s"
        )
    return SupervisionSettings(
        gap,
        timeout,
        parameters["max_bad_states"],
        parameters["activation.max_velocity"],
        parameters["activation.position_tolerance"],
    )


def _trajectory_settings(parameters: NodeParameters, joints: Sequence[str]) -> TrajectorySettings:
    """How trajectories are followed, where 0 in a parameter stands for no bound."""

    def bounds(name: str) -> FloatArray:
        values = np.array([parameters[f"constraints.{joint}.{name}"] for joint in joints])
        return np.where(values > 0.0, values, math.inf)

    goal_time = parameters["constraints.goal_time"] or parameters["cmd_timeout"]
    tolerances = Tolerances(
        path_position=bounds("trajectory"),
        path_velocity=np.full(len(joints), math.inf),
        goal_position=bounds("goal"),
        goal_velocity=np.full(
            len(joints), parameters["constraints.stopped_velocity_tolerance"] or math.inf
        ),
        goal_time=goal_time or math.inf,
    )
    deceleration = np.full(len(joints), math.inf)
    if parameters["constraints.decelerate_on_cancel"]:
        deceleration = bounds("max_deceleration_on_cancel")
    return TrajectorySettings(
        tolerances,
        deceleration,
        parameters["allow_nonzero_velocity_at_trajectory_end"],
        parameters["allow_integration_in_goal_trajectories"],
        parameters["interpolate_from_desired_state"],
        parameters["positions_upsampling.enable"],
        ExcessiveEffort(parameters["constraints.excessive_effort"]),
    )


def input_settings(parameters: NodeParameters) -> InputSettings:
    """What is read from trajectory messages.

    Raises:
        ParameterError: a value that is not allowed.
    """
    frequency = parameters["positions_upsampling.policy_frequency"]
    return InputSettings(
        parameters["allow_partial_joints_goal"],
        frequency if parameters["positions_upsampling.enable"] else 0.0,
    )


def load_model(
    parameters: NodeParameters, joints: list[str], locked: Sequence[str], description: str
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


def update_model(parameters: NodeParameters, model: RobotModel) -> None:
    """Sets gravity, payload, friction and armature of the model from the node's parameters.

    Raises:
        ParameterError: a value that is not allowed.
        RobotModelError: a payload with an impossible inertia, or on a link that does not exist.
    """
    xx, xy, xz, yy, yz, zz = parameters["payload.inertia"]
    model.set_payload(
        parameters["payload.link"] or model.child_links[-1],
        parameters["payload.mass"],
        parameters["payload.center_of_mass"],
        np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]),
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


def real_time_settings(parameters: NodeParameters) -> RealTimeSettings:
    """The real-time set-up from the node's parameters.

    Raises:
        ParameterError: a value that is not allowed.
    """
    return RealTimeSettings(
        parameters["thread_priority"],
        tuple(cpu for cpu in parameters["cpu_affinity"] if cpu >= 0),
        parameters["lock_memory"],
        parameters["freeze_garbage_collector"],
        parameters["cpu_dma_latency"],
    )
