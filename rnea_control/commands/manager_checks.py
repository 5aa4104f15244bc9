"""Checks of controller_manager: presence and answers.

A controller_manager that has died publishes no states, has no subscription to the commands and
gives no answer. This is one finding here; the other checks do not report its consequences.
"""

from __future__ import annotations

from collections.abc import Iterator

from rnea_control.commands.evidence import Evidence
from rnea_control.commands.finding import Finding, error, note, warning

# fmt: off
MANAGER_GONE = error("manager-gone",
    "no joint state arrives, and controller_manager does not run or does not answer",
    "Start ros2_control, its broadcaster and the effort controller (or rnea_simulated_arm). If it "
    "was started, read its log, and compare ROS_DOMAIN_ID and --namespace")
MANAGER_ABSENT = note("manager-absent",
    "no controller_manager runs: the receiver of the commands cannot be checked",
    "On a robot start ros2_control, or correct the parameter `controller_manager` or --namespace")
MANAGER_SILENT = warning("manager-silent",
    "controller_manager runs and does not answer",
    "Look into its log; a larger --seconds waits longer. With `controller_manager: \"\"` it is not "
    "used")
MANAGER_MESSAGES = note("manager-messages",
    "controller_manager_msgs is not installed: the effort controller cannot be checked",
    "Install ros-$ROS_DISTRO-controller-manager-msgs")
VELOCITY_LIMITS_ENFORCED = warning("velocity-limits-enforced",
    "controller_manager cuts the torque of a joint to 0 beyond the URDF's velocity limit",
    "Set `enforce_command_limits: false` for controller_manager, as the controller keeps the limits"
    " itself, or `velocity_limit_scale` below 1, so that the controller brakes before")
# fmt: on


def is_gone(evidence: Evidence) -> bool:
    """True if joint states are missing because controller_manager does not run, or is still in the
    graph and does not answer."""
    if not evidence.manager or evidence.states:
        return False
    if evidence.manager not in evidence.nodes:
        return not evidence.states_topic.publishers
    return evidence.controllers is None and evidence.parameters.get(evidence.manager) is None


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings about controller_manager."""
    manager = evidence.manager
    if not manager:
        return
    absent, gone = manager not in evidence.nodes, is_gone(evidence)
    if gone:
        what = "is not there" if absent else f"has answered nothing in {evidence.seconds:g} s"
        yield MANAGER_GONE.found(
            f"{manager} {what}, and nothing came on {evidence.states_topic.name}"
        )
    elif absent:
        yield MANAGER_ABSENT.found(f"{manager} is not there")
    if absent:
        return
    if not evidence.has_manager_messages:
        yield MANAGER_MESSAGES.found(f"{manager} cannot be asked")
    elif evidence.controllers is None and not gone:
        yield MANAGER_SILENT.found(
            f"{manager} has not answered list_controllers in {evidence.seconds:g} s"
        )
    enforced = evidence.parameter(manager, "enforce_command_limits")
    scale = evidence.settings.get("velocity_limit_scale")
    if enforced and scale >= 1.0:
        yield VELOCITY_LIMITS_ENFORCED.found(
            f"{manager} has enforce_command_limits, and velocity_limit_scale is {scale:g}"
        )
