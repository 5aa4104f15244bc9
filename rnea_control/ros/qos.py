"""The QoS of the topics, which publishers and subscribers must agree upon."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# The latest message is for those as well who come later.
LATCHED = QoSProfile(
    depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
# Only the newest counts: with a queue old ones would be answered first.
STATES = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# As many as come between two looks; none may be overlooked.
COMMANDS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
