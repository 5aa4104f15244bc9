"""`GuardedNode`: a node that reports its state on /diagnostics, and whose callbacks' exceptions end
no process: each is logged, counted, and answered as a refusal.

rclpy lets an exception out of `spin_once`, and sends no answer then: the program ends, or the
client waits for ever. Its own services raise too, for a parameter of an unknown type. A lifecycle
transition that is not possible in the present state is refused before rclpy sees it, which raises
or refuses it by distribution.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import wraps
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from lifecycle_msgs.msg import Transition as TransitionMessage
from lifecycle_msgs.srv import ChangeState, GetAvailableTransitions
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.service import Service
from rclpy.time import Time
from std_srvs.srv import Trigger

from rnea_control.exceptions import ControllerError, plain, quoted
from rnea_control.ros.rclpy_internals import RCLError, end_type_descriptions

Callback = Callable[[Any, Any], Any]
Transition = Callable[[LifecycleNode, LifecycleState], TransitionCallbackReturn]
# Level and message.
Finding = tuple[bytes, str]
OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR

# Shortest time between two log lines about failures [s].
THROTTLE = 1.0
# Upper bound for one request, more than any robot has; each parameter takes milliseconds to set.
MOST_PARAMETERS = 1000
# Characters of a line of an exception's text that are logged.
LONGEST_FAILURE = 1000


class GuardedNode(Node):
    """A node whose services always answer; a base class to put in front of a node class of rclpy.

    Attributes:
        failures: number of callbacks that have raised.
        refusal: why the process must end before it does anything; empty if it need not.
        reports: publisher on /diagnostics.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.failures, self.refusal = 0, ""
        self._new_failure = ""
        super().__init__(*arguments, **keywords)
        self.reports = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        for service in self.services:  # those of the lifecycle are made in another way
            service.callback = self._answering(service.callback)

    def destroy_node(self) -> None:
        """Like `destroy_node` of `Node`; the node leaves the graph even if it is still
        referenced."""
        super().destroy_node()
        end_type_descriptions(self)

    def create_service(
        self, srv_type: Any, srv_name: str, callback: Callback, **options: Any
    ) -> Service:
        """Like `create_service` of `Node`, but an exception of the callback becomes a refusal."""
        return super().create_service(srv_type, srv_name, self._answering(callback), **options)

    def offer(self, name: str, request: Callable[[], str]) -> Service:
        """Offers a service of type Trigger. `request` returns the message of success, or raises
        ControllerError, whose text is the message of the refusal."""

        def answer(asked: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            try:
                response.message, response.success = request(), True
            except ControllerError as error:
                response.message = str(error)
                self.get_logger().warning(f"{name} refused: {error}")
            return response

        return self.create_service(Trigger, name, answer)

    def until(self, undo: ExitStack, kind: str, *arguments: Any, **options: Any) -> Any:
        """Calls `create_<kind>` of the node with these arguments; `undo` destroys the result."""
        made = getattr(self, f"create_{kind}")(*arguments, **options)
        undo.callback(getattr(self, f"destroy_{kind}"), made)
        return made

    def publish_or_log(self, publisher: Publisher, message: Any) -> bool:
        """Publishes; returns True on success. A failure is counted and logged, and ends nothing."""
        try:
            publisher.publish(message)
        except RCLError as error:
            self.note_failure(f"a {type(message).__name__} was not published: {error}")
            return False
        return True

    def now(self) -> Time:
        """The time of the node."""
        return self.get_clock().now()

    def status(
        self, what: str, findings: Iterable[Finding], values: Mapping[str, str]
    ) -> DiagnosticArray:
        """A message for /diagnostics.

        Args:
            what: part of the node that the message is about.
            findings: levels and messages; the first of the worst is reported.
            values: values to list, beside the number of failed callbacks.
        """
        level, message = max(findings, key=lambda finding: finding[0])
        listed = {"callbacks failed": str(self.failures), **values}
        status = DiagnosticStatus(
            name=f"{self.get_fully_qualified_name().lstrip('/')}: {what}",
            hardware_id=self.get_name(),
            level=level,
            message=message,
            values=[KeyValue(key=key, value=value) for key, value in listed.items()],
        )
        array = DiagnosticArray(status=[status])
        array.header.stamp = self.now().to_msg()
        return array

    def note_failure(self, what: str, details: str = "") -> None:
        """Counts and logs the failure of a callback.

        Args:
            what: a sentence, which may repeat what another process has sent.
            details: lines that are logged after the sentence, also of any origin.
        """
        details = "".join(f"\n    {plain(line, LONGEST_FAILURE)}" for line in details.splitlines())
        self.failures += 1
        self._new_failure = what = plain(what, LONGEST_FAILURE)
        self.get_logger().error(what + details, throttle_duration_sec=THROTTLE)

    def new_failures(self) -> list[Finding]:
        """The latest failure of a callback since the last call, if there is one."""
        text, self._new_failure = self._new_failure, ""
        return [(WARN, text)] if text else []

    def _answering(self, callback: Callback) -> Callback:
        def answer(request: Any, response: Any) -> Any:
            try:
                self._check(request)
                return callback(request, response)
            except Exception as error:
                reason = self._reason(request, error)
                self.note_failure(f"request refused: {reason}")
                return refuse(request, response, reason)

        return answer

    def _check(self, request: Any) -> None:
        """Raises ControllerError for a request that rclpy would refuse late, or without reason."""
        count = len(getattr(request, "parameters", ()))
        if count > MOST_PARAMETERS:
            raise ControllerError(f"{count} parameters at once; send {MOST_PARAMETERS} at most")
        if isinstance(request, ChangeState.Request):
            wanted = plain(request.transition.label) or request.transition.id
            possible = self._transitions()
            if not any(wanted in (each.label, each.id) for each in possible):
                words = ", ".join(f"{each.label} ({each.id})" for each in possible) or "none"
                raise ControllerError(f"transition {wanted} is not possible now, only {words}")

    def _reason(self, request: Any, error: Exception) -> str:
        """Why a request is refused, with what is allowed."""
        if isinstance(error, ControllerError):
            return str(error)
        if isinstance(request, (SetParameters.Request, SetParametersAtomically.Request)):
            types = {each.value: each.name.lower() for each in Parameter.Type}
            wrong = [each for each in request.parameters if each.value.type not in types]
            if wrong:
                allowed = ", ".join(f"{value} ({name})" for value, name in types.items())
                return (
                    f"parameter {quoted(wrong[0].name)} has a value of type "
                    f"{wrong[0].value.type}; it must be one of {allowed}"
                )
        return f"{type(error).__name__}: {error}"

    def _transitions(self) -> list[TransitionMessage]:
        """Transitions of the lifecycle that are possible now."""
        name, kind = "/get_available_transitions", GetAvailableTransitions
        service = next(each for each in self.services if each.srv_name.endswith(name))
        found = service.callback(kind.Request(), kind.Response()).available_transitions
        return [each.transition for each in found]


def refuse(request: Any, response: Any, reason: str) -> Any:
    """Fills a response with a refusal, as far as its type has fields for that."""
    refusal = SetParametersResult(successful=False, reason=reason)
    if isinstance(response, SetParameters.Response):
        missing = len(request.parameters) - len(response.results)
        response.results = [*response.results, *[refusal] * missing]
    elif isinstance(response, SetParametersAtomically.Response):
        response.result = refusal
    else:
        for field, value in (("success", False), ("message", reason)):
            if field in response.get_fields_and_field_types():
                setattr(response, field, value)
    return response


def logged(transition: Transition) -> Transition:
    """Decorator: logs what a transition raises; rclpy enters its error state without a log line."""

    @wraps(transition)
    def logging_transition(node: LifecycleNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception:
            node.get_logger().fatal(f"{transition.__name__} failed:\n{traceback.format_exc()}")
            raise

    return logging_transition
