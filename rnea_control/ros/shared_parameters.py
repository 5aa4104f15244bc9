"""The values in force in the controller, for the sentinel: parameters of the robot, of its limits
and of the hand-over.

The controller publishes them all, latched, when it is configured and at every change, so that a
sentinel that starts later knows them too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import ParameterEvent
from rclpy.parameter import Parameter

from rnea_control.exceptions import ParameterError
from rnea_control.parameters import table
from rnea_control.parameters.parameter import Parameters, expand

# Parameters that must be equal on both sides, whatever the sentinel's own section says.
HANDOVER = tuple(row.name for row in table.HANDOVER)
# Of the controller's node.
TOPIC = "parameters_in_force"
# How long a controller may be away, on hardware and in simulated time, [s]; and how many times
# longer commands may be missing.
LEASE, SIMULATED_LEASE, TIMEOUT_SHARE = 0.01, 0.1, 1.5


def handover_times(parameters: Parameters, simulated: bool) -> tuple[float, float]:
    """`command_lease` and `command_timeout`, [s], with the defaults in place of -1.

    Args:
        parameters: of the node.
        simulated: whether time is simulated.

    Raises:
        ParameterError: a value that is not allowed, or a lease that is not the shorter one.
    """
    lease, timeout = parameters["command_lease"], parameters["command_timeout"]
    if lease == table.DEFAULT:
        lease = SIMULATED_LEASE if simulated else LEASE
    if timeout == table.DEFAULT:
        timeout = TIMEOUT_SHARE * lease
    if lease >= timeout:
        raise ParameterError(
            f"parameter 'command_lease' is {lease} s; it must be shorter than command_timeout, "
            f"{timeout} s: else two nodes could command the arm at once"
        )
    return lease, timeout


def shared_names(joints: Sequence[str]) -> list[str]:
    """The full names of the parameters."""
    rows = expand((*table.ROBOT, *table.LIMITS, *table.HANDOVER), joints)
    return [name for name in rows if name != "robot_description"]


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
