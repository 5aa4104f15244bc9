"""Watches the controller's own reports while a run is recorded."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import TransitionEvent
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

CONTROLLER = "rnea_controller"
LATCHED = QoSProfile(depth=20, durability=DurabilityPolicy.TRANSIENT_LOCAL)

# The modes of an undisturbed run.
FOLLOWING = "moving"
EXPECTED = {"holding", FOLLOWING}

# Counts in the controller's diagnostics that do not rise in an undisturbed run.
COUNTS = {
    "gave way": "the controller gave way to the arm",
    "gaps in states": "joint states did not come in time",
    "states refused": "the controller refused joint states",
    "trajectories dropped": "the controller dropped the trajectory, as the states' stamps jumped",
}


class ControllerWatch:
    """Collects modes and diagnostics of the controller in a node's namespace.

    Args:
        node: that listens.

    Attributes:
        reports: how many diagnostics have come.
        values: of the last one.
    """

    def __init__(self, node: Node) -> None:
        self.reports = 0
        self.values: dict[str, str] = {}
        self._controller = f"{node.get_namespace()}/{CONTROLLER}".lstrip("/")
        self._before: dict[str, str] = {}
        self._modes: list[TransitionEvent] = []
        node.create_subscription(DiagnosticArray, "/diagnostics", self._note_report, 10)
        node.create_subscription(TransitionEvent, f"{CONTROLLER}/mode", self._modes.append, LATCHED)

    @property
    def latency(self) -> str:
        """From the stamp of a state to the command, in words."""
        return self.values.get("state age, since activation", "not reported")

    def begin(self) -> None:
        """The run begins: what was before does not count."""
        self._before = dict(self.values)
        self._modes.clear()

    def incidents(self) -> tuple[str, ...]:
        """What has happened since `begin`, a sentence each."""
        found = []
        for event in self._modes:
            mode, reason = event.goal_state.label, event.transition.label
            if mode not in EXPECTED:
                found.append(f"the controller's mode became {mode}: {reason}")
        if all(event.goal_state.label != FOLLOWING for event in self._modes):
            found.append("the controller did not follow the trajectory")
        for key, words in COUNTS.items():
            count = self._count(self.values, key) - self._count(self._before, key)
            if count > 0:
                found.append(f"{words} ({count} times)" if count > 1 else words)
        return tuple(found)

    def _note_report(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.startswith(self._controller):
                self.values = {value.key: value.value for value in status.values}
                self.reports += 1

    @staticmethod
    def _count(values: dict[str, str], key: str) -> int:
        return int(values.get(key, "0"))
