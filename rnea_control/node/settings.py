"""What the values of the node's parameters make of model, controller and process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import ControlLaw, ControllerSettings, Gains
from rnea_control.model import RobotModel
from rnea_control.node.real_time import RealTimeSettings
from rnea_control.ros.node_parameters import NodeParameters


def controller_settings(parameters: NodeParameters, joints: Sequence[str]) -> ControllerSettings:
    """The controller's tuning from the node's parameters.

    Raises:
        ParameterError: a value that is not allowed, or missing.
    """
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
    )


def tune_model(parameters: NodeParameters, model: RobotModel) -> None:
    """Brings gravity, payload, friction and armature from the node's parameters into the model.

    Raises:
        ParameterError: a value that is not allowed.
        RobotModelError: a payload that no body could be, or on a link that is not there.
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
