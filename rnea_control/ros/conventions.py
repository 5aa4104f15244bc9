"""Conventions among the nodes: QoS of the topics, the message of a mode, and the options of helper
nodes that a process has beside its own."""

from __future__ import annotations

from typing import Any

from lifecycle_msgs.msg import State, Transition, TransitionEvent
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.time import Time

# Latched: late joiners receive the last message.
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# Only the newest message counts: with a queue, old messages would be answered first.
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# A single message counts, and must not be lost.
SINGLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
# Depth for all commands that arrive between two looks; none may be overlooked.
COMMANDS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
# Result of the goals of a controller whose process has ended.
PROCESS_ENDED = "the controller's process has ended"
# Keys of the controller's report on /diagnostics that other programs of this package read.
STOP_HOLDERS = "emergency stop held by"
STREAM_REFUSAL = "stream refusal"
# Options of a node that has no services, and does not publish its log.
QUIET: dict[str, Any] = {
    "enable_rosout": False,
    "start_parameter_services": False,
    "parameter_overrides": [Parameter("start_type_description_service", value=False)],
}
# Options of a node for a part of the package only: users neither name nor remap it.
HELPER = {**QUIET, "use_global_arguments": False}


def mode_event(at: Time, before: State, after: State, reason: str) -> TransitionEvent:
    """Message of `~/mode`: a change of the node's mode, with the reason."""
    event = TransitionEvent(
        transition=Transition(label=reason), start_state=before, goal_state=after
    )
    if hasattr(event, "stamp"):  # from Lyrical on
        event.stamp = at.to_msg()
    else:
        event.timestamp = at.nanoseconds
    return event
