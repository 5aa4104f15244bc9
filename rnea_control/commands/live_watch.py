"""`LiveWatch`: monitors that effort commands are applied and that no other node commands."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack

from lifecycle_msgs.msg import TransitionEvent
from lifecycle_msgs.srv import GetState
from rclpy.task import Future

from rnea_control.commands.evidence import Evidence
from rnea_control.control import Mode
from rnea_control.exceptions import listed
from rnea_control.ros.arm_node import STEADY
from rnea_control.ros.conventions import LATCHED
from rnea_control.ros.effort_command import EffortCommand
from rnea_control.ros.effort_controller import EffortController
from rnea_control.ros.guarded_executor import GuardedExecutor
from rnea_control.ros.guarded_node import GuardedNode
from rnea_control.ros.publishers import publishers_of

LOOK = 0.02  # longest period of the monitor [s]
PATIENCE = 5.0  # time limit for the answers of all nodes [s]
ANSWER_TIME = 0.3  # usual time of a service call or of the discovery of a change [s]
NOT_ACTIVE = ("unconfigured", "inactive")  # lifecycle states without commands
UNKNOWN_NODE = "a node that is not known yet"


class LiveWatch:
    """Monitors in its own thread until `destroy`.

    Args:
        node: node of this process, spun by the monitor; create its other entities before.
        evidence: earlier observations, with the names of nodes and topics.
        joints: joints in the order of the commands.
        command: publisher of the commands.

    Attributes:
        objection: reason not to command now, with the name of the node; empty if there is none.
    """

    def __init__(
        self, node: GuardedNode, evidence: Evidence, joints: tuple[str, ...], command: EffortCommand
    ) -> None:
        self._node, self._evidence, self._command = node, evidence, command
        self._mode = ""  # mode of the controller; empty while unknown
        self._undo = ExitStack()
        manager, topic = evidence.manager, command.topic
        given = node, topic, joints, manager, lambda: None, self._undo
        self._effort_controller = EffortController(*given)
        mode = TransitionEvent, f"{evidence.controller}/mode", self._note_mode, LATCHED
        node.create_subscription(*mode)
        node.create_timer(1.0, self._effort_controller.look, clock=STEADY)
        self._lifecycle = node.create_client(GetState, f"{evidence.controller}/get_state")
        self._answer: Future | None = None
        self._executor = GuardedExecutor(node)
        self._ending = False
        self.objection = self._look()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def wait(self) -> str:
        """Waits for an objection or for all required answers; returns the reason not to command,
        empty if there is none."""
        deadline, unanswered = time.monotonic() + PATIENCE, ""
        while time.monotonic() < deadline:
            discovering = self.objection.count(UNKNOWN_NODE)
            if self.objection and not discovering:
                break
            unanswered = self._unanswered()
            if not (unanswered or discovering):
                break
            time.sleep(LOOK)
        return self.objection or unanswered

    def look_again(self) -> str:
        """Requests the state of the effort controller again; returns the objection."""
        self._effort_controller.look()
        time.sleep(ANSWER_TIME)
        return self.objection

    def destroy(self) -> None:
        """Ends the watch; the node is no longer spun."""
        self._ending = True
        self._thread.join()
        self._executor.shutdown()
        self._undo.close()

    def _run(self) -> None:
        while not self._ending:
            self._executor.spin_once(LOOK)
            self.objection = self._look()

    def _note_mode(self, event: TransitionEvent) -> None:
        self._mode = event.goal_state.label

    def _unanswered(self) -> str:
        """Missing answer, with the name of its node; empty if none is missing."""
        name, effort_controller = self._evidence.controller, self._effort_controller
        if self._evidence.controllers is not None and not effort_controller.state:
            return (
                f"{self._evidence.manager} does not report whether {effort_controller.name} is "
                "active"
            )
        if not effort_controller.has_told:
            return f"{effort_controller.name} does not report which joints it commands"
        if not self._command.listeners():
            return f"{self._command.topic} has no subscription"
        if self._mode or not self._is_there(name):
            return ""
        if self._answer is None and self._lifecycle.service_is_ready():
            self._answer = self._lifecycle.call_async(GetState.Request())
        if self._answer is None or self._answer.result() is None:
            return f"{name} runs, and does not report whether it is active"
        return ""

    def _look(self) -> str:
        """Current value of `objection`."""
        evidence, taker, topic = self._evidence, self._effort_controller, self._command.topic
        if self._node.count_publishers(f"{evidence.sentinel}/mode"):
            return (
                f"{evidence.sentinel} runs, and would take over the arm when commands end: stop it "
                "first"
            )
        answer = None if self._answer is None else self._answer.result()
        state = self._mode or ("" if answer is None else answer.current_state.label)
        if state not in ("", Mode.INACTIVE.value, *NOT_ACTIVE):
            return (
                f"{evidence.controller} is active, in mode {state}: deactivate it first, "
                f"`ros2 lifecycle set {evidence.controller} deactivate`"
            )
        if rivals := self._rivals():
            return f"{listed(rivals)} also publishes {topic}: stop that node first"
        if not taker.takes_commands:
            return f"{taker} and applies no commands: activate it first"
        return taker.objection

    def _rivals(self) -> list[str]:
        """Full names of nodes, except the controller, that publish commands."""
        own = self._node.get_fully_qualified_name()
        names = sorted(publishers_of(self._node, self._command.topic).values())
        for known in (own, self._evidence.controller):
            if known in names:
                names.remove(known)
        return [name or UNKNOWN_NODE for name in names]

    def _is_there(self, node: str) -> bool:
        """True if a node or a topic of a controller of this full name is discovered."""
        if self._node.count_publishers(f"{node}/mode"):
            return True
        names = self._node.get_node_names_and_namespaces()
        return node in (f"{namespace.rstrip('/')}/{name}" for name, namespace in names)
