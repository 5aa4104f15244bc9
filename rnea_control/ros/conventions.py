"""What nodes agree upon: the QoS of the topics, and how they tell their modes; and what the nodes
beside a process's own have."""

from __future__ import annotations

from typing import Any

from lifecycle_msgs.msg import State, Transition, TransitionEvent
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.time import Time

# The latest message is for those as well who come later.
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# Only the newest counts: with a queue old ones would be answered first.
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# As many as come between two looks; none may be overlooked.
COMMANDS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
# Options of a node that has no services, and no log for others.
QUIET: dict[str, Any] = {
    "enable_rosout": False,
    "start_parameter_services": False,
    "parameter_overrides": [Parameter("start_type_description_service", value=False)],
}
# Of one that only a part of the package uses: no user names or remaps it.
HELPER = {**QUIET, "use_global_arguments": False}


def mode_event(at: Time, before: State, after: State, reason: str) -> TransitionEvent:
    """The message of `~/mode`: the node was in one mode before, and is in another one now."""
    event = TransitionEvent(
        transition=Transition(label=reason), start_state=before, goal_state=after
    )
    if hasattr(event, "stamp"):  # from Lyrical on
        event.stamp = at.to_msg()
    else:
        event.timestamp = at.nanoseconds
    return event
