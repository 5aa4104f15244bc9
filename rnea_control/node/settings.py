"""Turns the node's parameters into settings of controller, model and process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
from rnea_control.control.momentum_observer import MomentumObserver, default_thresholds
from rnea_control.exceptions import ParameterError
from rnea_control.model import RobotModel
from rnea_control.node.trajectory_input import InputSettings
from rnea_control.ros.parameter_table import Parameters
from rnea_control.ros.robot_settings import limit_settings, update_model


@dataclass(frozen=True)
class InForce:
    """All that parameters decide of a running controller: made of one set of them, and put in force
    as one.

    Attributes:
        model: with its loads, friction and gravity.
        controller: its settings.
        observer: what tells collisions; None if that is not asked for.
        input: what is read from trajectory messages.
    """

    model: RobotModel
    controller: ControllerSettings
    observer: MomentumObserver | None
    input: InputSettings


def in_force(parameters: Parameters, robot: RobotModel) -> InForce:
    """What the parameters decide.

    Args:
        parameters: of the node.
        robot: as in the URDF; it stays as it is.

    Raises:
        ParameterError: a value that is not allowed, or missing.
        RobotModelError: a payload with an impossible inertia, or on a link that does not exist.
        ControllerError: settings that no controller takes.
    """
    model = robot.copy()
    update_model(parameters, model)
    settings = controller_settings(parameters, model)
    settings.check(model.joint_names)
    observer = momentum_observer(parameters, model, settings)
    return InForce(model, settings, observer, input_settings(parameters))


def controller_settings(parameters: Parameters, model: RobotModel) -> ControllerSettings:
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
        safety_settings(parameters, model),
        np.array([parameters[f"feedback_inertia.{joint}"] for joint in joints]),
        parameters["dead_time"],
    )


def safety_settings(parameters: Parameters, model: RobotModel) -> SafetySettings:
    """What every torque keeps.

    Raises:
        ParameterError: a value that is not allowed.
    """
    return limit_settings(parameters, model).changed(
        blend_time=parameters["activation.blend_time"],
        guiding_damping=parameters["gravity_compensation.damping"],
    )


def momentum_observer(
    parameters: Parameters, model: RobotModel, settings: ControllerSettings
) -> MomentumObserver | None:
    """What tells collisions, if that is asked for.

    Raises:
        ParameterError: a value that is not allowed.
    """
    if not parameters["collision_detection.enable"]:
        return None
    thresholds = np.array(
        [parameters[f"collision_detection.threshold.{joint}"] for joint in model.joint_names]
    )
    return MomentumObserver(
        model,
        parameters["collision_detection.gain"],
        np.where(thresholds > 0.0, thresholds, default_thresholds(settings.effort_limit(model))),
        settings.friction_compensation,
        settings.hardware_compensates_gravity,
    )


def supervision_settings(parameters: Parameters, simulated: bool = False) -> SupervisionSettings:
    """When the controller starts, and when it does without states; `simulated` if time is.

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
        simulated,
    )


def _trajectory_settings(parameters: Parameters, joints: Sequence[str]) -> TrajectorySettings:
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


def input_settings(parameters: Parameters) -> InputSettings:
    """What is read from trajectory messages.

    Raises:
        ParameterError: a value that is not allowed.
    """
    frequency = parameters["positions_upsampling.policy_frequency"]
    return InputSettings(
        parameters["allow_partial_joints_goal"],
        frequency if parameters["positions_upsampling.enable"] else 0.0,
    )
