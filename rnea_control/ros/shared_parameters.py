"""What is in force in the controller, for the sentinel: parameters of the robot, of its limits and
of the hand-over.

The controller publishes them all, latched, when it is configured and at every change, so that a
sentinel that starts later knows them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import ParameterEvent
from rclpy.parameter import Parameter

from rnea_control.ros.parameter_table import Parameters, expand
from rnea_control.ros.robot_parameters import (
    HANDOVER_PARAMETERS,
    LIMIT_PARAMETERS,
    ROBOT_PARAMETERS,
)
from rnea_control.ros.robot_settings import handover_times

# What both sides must have alike, whatever the sentinel's own section says.
HANDOVER = tuple(parameter.name for parameter in HANDOVER_PARAMETERS)
# Of the controller's node.
TOPIC = "parameters_in_force"


def shared_names(joints: Sequence[str]) -> list[str]:
    """The full names of the parameters."""
    table = expand((*ROBOT_PARAMETERS, *LIMIT_PARAMETERS, *HANDOVER_PARAMETERS), joints)
    return [name for name in table if name != "robot_description"]


def parameters_in_force(
    node: str, parameters: Parameters, joints: Sequence[str], simulated: bool
) -> ParameterEvent:
    """The message of a controller.

    Args:
        node: its full name.
        parameters: its own.
        joints: that it controls.
        simulated: whether its time is.
    """
    values = {name: parameters[name] for name in shared_names(joints)}
    values |= zip(HANDOVER, handover_times(parameters, simulated), strict=True)
    return ParameterEvent(
        node=node,
        changed_parameters=[
            Parameter(name, value=value).to_parameter_msg() for name, value in values.items()
        ],
    )


def values_of(event: ParameterEvent) -> dict[str, Any]:
    """The values in a message, by name."""
    changes = map(Parameter.from_parameter_msg, event.changed_parameters)
    return {change.name: change.value for change in changes}
