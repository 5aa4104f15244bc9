"""Checks that the published robot description is still that of the controller."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from std_msgs.msg import String

from rnea_control.messages.cdr import CdrError, CdrReader
from rnea_control.parameters.description_difference import description_difference
from rnea_control.ros.arm_node import DESCRIPTION
from rnea_control.ros.conventions import LATCHED
from rnea_control.ros.guarded_node import GuardedNode

LONGEST = 20_000_000  # longest description that is compared [bytes]


class DescriptionWatch:
    """Compares each description on the topic with the description in force.

    Args:
        node: node of the controller.
        in_force: text of the description; empty if a parameter has it, which is not compared.
        on_change: called in the executor when `difference` has changed.
        undo: closes the subscription.

    Attributes:
        difference: differences of the published description that affect torques; empty if none.
    """

    def __init__(
        self, node: GuardedNode, in_force: str, on_change: Callable[[], None], undo: ExitStack
    ) -> None:
        self.difference = ""
        self._node, self._in_force, self._on_change = node, in_force, on_change
        if in_force:  # as bytes: text of some megabytes takes milliseconds to make
            node.until(undo, "subscription", String, DESCRIPTION, self._hear, LATCHED, raw=True)

    def _hear(self, message: bytes) -> None:
        if len(message) > LONGEST:
            self._node.get_logger().error(
                f"a robot description of {len(message)} bytes is ignored; at most {LONGEST} bytes "
                "are read"
            )
            return
        try:
            other = CdrReader(message, DESCRIPTION).string("data")
        except CdrError as error:
            self._node.get_logger().error(f"{DESCRIPTION}: {error}")
            return
        different = description_difference(self._in_force, other)
        words = different and (
            f"the topic {DESCRIPTION} has another robot than the one in force: {different}. Clean "
            "up, configure and activate the controller to take it"
        )
        if words and words != self.difference:
            self._node.get_logger().error(words)
        if words != self.difference:
            self.difference = words
            self._on_change()
