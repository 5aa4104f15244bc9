"""`GuardedExecutor`: runs the callbacks of one node, cheaply while only timers are due.

rclpy gathers all that a node waits for anew at each wake, and wakes once more after each callback:
half a millisecond each. A controller at work runs timers and hardly anything else.

`rclpy.experimental.EventsExecutor` of Jazzy costs about as much as this executor, but raises an
error for a node with guard conditions, by which the control loop wakes Python.
"""

from __future__ import annotations

import time
import traceback
from contextlib import ExitStack
from typing import Any

from rclpy.executors import SingleThreadedExecutor

from rnea_control.ros.guarded_node import GuardedNode
from rnea_control.ros.rclpy_internals import RCLError, WaitSet

# Pause after a failure, so that a failure that repeats at once leaves time to other work [s].
PAUSE = 0.01
# Kinds of entities that are waited for by a handle, by rclpy's names.
KINDS = "subscription", "guard_condition", "timer", "client", "service"


class GuardedExecutor(SingleThreadedExecutor):
    """Runs the callbacks of one node; exceptions in callbacks are counted and logged. Timers are
    called from a wait set that is kept; everything else that is ready is left to rclpy. rclpy runs
    all callbacks if its wait set does not have the expected interface."""

    def __init__(self, node: GuardedNode) -> None:
        super().__init__()
        self._node = node
        self._waits_for: list[list[Any]] = []
        self._wait_set: Any = None
        self.add_node(node)
        try:
            self._wait(0.0)
        except (AttributeError, TypeError, RCLError):  # another rclpy's
            self._wait_set = None

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Like `spin_once` of `SingleThreadedExecutor`, but runs all timers that are due, and lets
        no callback's exception out."""
        try:
            if self._wait_set is None:
                super().spin_once(timeout_sec)
            elif self._wait(-1.0 if timeout_sec is None else timeout_sec):
                super().spin_once(0.0)
            else:
                self._run_timers()
        except Exception as error:
            self._node.note_failure(
                f"a callback has failed: {type(error).__name__}: {error}",
                traceback.format_exc(),
            )
            time.sleep(PAUSE)

    def _wait(self, timeout: float) -> bool:
        """Waits until something is ready; returns True if anything but timers is."""
        node, guards = self._node, [*self._node.guards, self._guard]
        kinds = (node.subscriptions, guards, node.timers, node.clients, node.services)
        *by_handle, waitables = waits_for = [list(each) for each in (*kinds, node.waitables)]
        if waits_for != self._waits_for:
            events = sum(each.get_num_entities().num_events for each in waitables)
            self._wait_set = WaitSet(*map(len, by_handle), events, node.context.handle)
            self._waits_for = waits_for
        found = self._wait_set
        found.clear_entities()
        with ExitStack() as in_use:
            in_use.enter_context(node.context.handle)
            for kind, entities in zip(KINDS, by_handle, strict=True):
                add = getattr(found, f"add_{kind}")
                for each in entities:
                    in_use.enter_context(each.handle)
                    add(each.handle)
            for each in waitables:
                in_use.enter_context(each)
                each.add_to_wait_set(found)
            found.wait(round(1e9 * timeout))
            ready = {kind: found.get_ready_entities(kind) for kind in KINDS}
            for guard in node.guards:
                if guard.handle.pointer in ready["guard_condition"]:
                    guard.trigger()  # once more: rclpy has to see it too
            del ready["timer"]
            return any(ready.values()) or any(each.is_ready(found) for each in waitables)

    def _run_timers(self) -> None:
        for timer in self._node.timers:
            with timer.handle:
                if due := timer.handle.is_timer_ready():
                    timer.handle.call_timer()
            if due:
                timer.callback()
