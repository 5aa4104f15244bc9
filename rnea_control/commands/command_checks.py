"""Checks of the effort commands: their subscriptions and publishers, and ros2_control."""

from __future__ import annotations

from collections.abc import Iterator

from rnea_control.commands.evidence import Evidence, LoadedController
from rnea_control.commands.finding import Finding, error, note, warning
from rnea_control.commands.manager_checks import is_gone
from rnea_control.exceptions import listed

# fmt: off
EFFORT_CONTROLLER_MISSING = error("effort-controller-missing",
    "controller_manager has not loaded the controller that `command_topic` belongs to",
    "Load it: `ros2 run controller_manager spawner --inactive NAME`, or correct `command_topic`")
EFFORT_CONTROLLER_UNCONFIGURED = error("effort-controller-unconfigured",
    "the effort controller is neither active nor inactive",
    "Look into the log of controller_manager for why it was not configured, and load it anew")
EFFORT_CONTROLLER_INACTIVE = note("effort-controller-inactive",
    "the effort controller is loaded and inactive: it drops all commands",
    "This is right before torque is on. To activate it: `ros2 control switch_controllers "
    "--activate NAME`, or set `activate_effort_controller`")
EFFORT_CONTROLLER_TYPE = error("effort-controller-type",
    "the controller that subscribes to the commands does not accept one torque per joint",
    "Use a forward_command_controller/ForwardCommandController with `interface_name: effort`")
EFFORT_CONTROLLER_DEPRECATED = warning("effort-controller-deprecated",
    "effort_controllers/JointGroupEffortController is deprecated",
    "Use a forward_command_controller/ForwardCommandController with `interface_name: effort`")
INTERFACE_NOT_EFFORT = error("interface-not-effort",
    "the controller that subscribes to the commands writes them to another interface than effort: "
    "the hardware would apply torques as positions or velocities",
    "Set its `interface_name: effort`")
JOINTS_DIFFER = error("joints-differ",
    "the effort controller has other joints than the controller; the first command would "
    "deactivate it",
    "Give both the same `joints`, in the same order")
JOINTS_ORDER = error("joints-order",
    "the effort controller has the joints in another order: torques would go to the wrong joints",
    "Write `joints` of rnea_controller in the order of the effort controller's `joints`")
INTERFACES_CLAIMED = error("interfaces-claimed",
    "another active controller holds interfaces of the joints",
    "`ros2 control switch_controllers --deactivate OTHER --activate NAME`")
COMMANDS_UNHEARD = error("commands-unheard",
    "the commands have no subscriber",
    "Load the effort controller, or correct `command_topic`, --namespace or ROS_DOMAIN_ID")
COMMANDS_TYPE = error("commands-type",
    "the topic of the commands has a subscription of another type, which receives no command",
    "Set `command_topic` to the topic of a ForwardCommandController, NAME/commands")
COMMANDS_QOS = error("commands-qos",
    "commands are published BEST_EFFORT, and a subscription requests RELIABLE: it receives no "
    "command",
    "Set `command_reliability: reliable`")
COMMANDS_SECOND_PUBLISHER = error("commands-second-publisher",
    "other nodes than the controller and its sentinel publish commands; the torques would "
    "alternate",
    "Stop the other publishers")
# fmt: on

FORWARD = "forward_command_controller/ForwardCommandController"
DEPRECATED = "effort_controllers/JointGroupEffortController"
COMMAND_TYPE = "std_msgs/msg/Float64MultiArray"


def effort_controller(evidence: Evidence) -> LoadedController | None:
    """Controller that subscribes to the commands; None if controller_manager has not loaded it."""
    name = evidence.effort_controller.rpartition("/")[2]
    return next((each for each in evidence.controllers or () if each.name == name), None)


def check(evidence: Evidence) -> Iterator[Finding]:
    """Findings about the path of the commands."""
    yield from _topic(evidence)
    if evidence.controllers is not None and evidence.effort_controller:
        yield from _loaded(evidence)


def _topic(evidence: Evidence) -> Iterator[Finding]:
    topic = evidence.commands_topic
    own = evidence.controller, evidence.sentinel
    hidden = tuple(node.rpartition("/")[2] for node in own)  # some begin with an underscore
    others = [
        one
        for one in topic.subscriptions
        if not one.node.rpartition("/")[2].lstrip("_").startswith(hidden)
    ]
    if not others and not is_gone(evidence):
        yield COMMANDS_UNHEARD.found(f"{topic.name} has no subscription")
    if wrong := [f"{one.node} ({one.type})" for one in others if one.type != COMMAND_TYPE]:
        yield COMMANDS_TYPE.found(f"{topic.name}: {listed(wrong)}; commands are {COMMAND_TYPE}")
    # Reliability of the running controller's publisher, or of the parameter if none runs.
    offered = [one.reliable for one in topic.publishers if one.node == evidence.controller]
    offered = offered or [evidence.settings.get("command_reliability") == "reliable"]
    strict = [one.node for one in others if one.reliable and one.type == COMMAND_TYPE]
    if strict and not all(offered):
        yield COMMANDS_QOS.found(f"{topic.name}: {listed(strict)}")
    if rivals := sorted(one.node for one in topic.publishers if one.node not in own):
        yield COMMANDS_SECOND_PUBLISHER.found(f"{topic.name}: {listed(rivals)}")


def _loaded(evidence: Evidence) -> Iterator[Finding]:
    name, own = evidence.effort_controller, effort_controller(evidence)
    short = name.rpartition("/")[2]
    if own is None:
        loaded = listed([each.name for each in evidence.controllers or ()]) or "none"
        yield EFFORT_CONTROLLER_MISSING.found(
            f"{evidence.manager} has no controller {short}; it has {loaded}", NAME=short
        )
    else:
        if own.state == "inactive":
            yield EFFORT_CONTROLLER_INACTIVE.found(f"{name} is inactive", NAME=short)
        elif own.state != "active":
            yield EFFORT_CONTROLLER_UNCONFIGURED.found(f"{name} is {own.state}")
        if own.type == DEPRECATED:
            yield EFFORT_CONTROLLER_DEPRECATED.found(f"{name} is a {own.type}")
        elif own.type != FORWARD:
            yield EFFORT_CONTROLLER_TYPE.found(f"{name} is a {own.type}")
        yield from _parameters(evidence)
    prefixes = tuple(f"{joint}/" for joint in evidence.settings.joints)
    for each in evidence.controllers or ():
        claimed = [interface for interface in each.claimed if interface.startswith(prefixes)]
        if prefixes and claimed and each is not own and each.state == "active":
            yield INTERFACES_CLAIMED.found(
                f"{each.name} is active and holds {listed(claimed)}", OTHER=each.name, NAME=short
            )


def _parameters(evidence: Evidence) -> Iterator[Finding]:
    name, settings = evidence.effort_controller, evidence.settings
    interface = evidence.parameter(name, "interface_name")
    if interface is not None and interface != "effort":
        yield INTERFACE_NOT_EFFORT.found(f"{name} has interface_name {interface!r}")
    joints = evidence.parameter(name, "joints")
    if not joints or not settings.joints or tuple(joints) == settings.joints:
        return
    code = JOINTS_ORDER if sorted(joints) == sorted(settings.joints) else JOINTS_DIFFER
    yield code.found(
        f"{name} has {listed(joints)}, and {settings.where} has {listed(settings.joints)}"
    )
