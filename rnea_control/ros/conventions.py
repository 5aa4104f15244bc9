"""What nodes agree upon: the QoS of the topics; and what the nodes beside a process's own have."""

from __future__ import annotations

from typing import Any

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# The latest message is for those as well who come later.
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# Only the newest counts: with a queue old ones would be answered first.
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# As many as come between two looks; none may be overlooked.
COMMANDS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
# Options of a node that only a part of the package uses: no user names or remaps it.
HELPER: dict[str, Any] = {
    "use_global_arguments": False,
    "enable_rosout": False,
    "start_parameter_services": False,
}
