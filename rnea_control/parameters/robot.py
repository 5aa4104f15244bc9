"""The robot that parameters and a description make."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from rnea_control.exceptions import ParameterError, RobotModelError
from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.parameters.parameter import Parameters, values_in_force
from rnea_control.parameters.table import ROBOT

_OF_JOINTS = [row for row in ROBOT if row.name.startswith(("friction.", "armature."))]


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
        ParameterError: a value that is not allowed, a payload with an impossible inertia, or one on
            a link that does not exist.
    """
    mass = parameters["payload.mass"]
    xx, xy, xz, yy, yz, zz = parameters["payload.inertia"]
    try:
        model.set_payload(
            parameters["payload.link"] or model.child_links[-1],
            mass,
            parameters["payload.center_of_mass"],
            np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) if mass > 0.0 else None,
        )
    except RobotModelError as error:
        raise ParameterError(f"the parameters 'payload.*' do not fit: {error}") from error
    model.gravity = parameters["gravity"]
    given = values_in_force(parameters, _OF_JOINTS, model.joint_names)
    model.armature = given["armature.<joint>"]
    model.torque_offset = given["friction.<joint>.offset"]
    damping, friction = given["friction.<joint>.damping"], given["friction.<joint>.coulomb"]
    model.damping = np.where(np.isnan(damping), model.urdf_damping, damping)
    model.friction = np.where(np.isnan(friction), model.urdf_friction, friction)
