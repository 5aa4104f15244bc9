"""Requests to services of other nodes, which nobody waits for: they are looked at now and then."""

from __future__ import annotations

from typing import Any

from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.task import Future


class Question:
    """One request, sent as soon as the service is there.

    Args:
        node: that asks; its executor takes the answer.
        service_type: of the service.
        service: its name.
        request: what is asked.
    """

    def __init__(self, node: Node, service_type: Any, service: str, request: Any) -> None:
        self._client = node.create_client(service_type, service)
        self._request = request
        self._future: Future | None = None

    def answer(self) -> Any:
        """The response; None while there is none."""
        if self._future is None and self._client.service_is_ready():
            self._future = self._client.call_async(self._request)
        if self._future is None or not self._future.done():
            return None
        return self._future.result()


class ParameterQuestion:
    """Asks a node for all of its parameters.

    Args:
        node: that asks.
        other: full name of the node that is asked.
    """

    def __init__(self, node: Node, other: str) -> None:
        self._node = node
        self._other = other
        self._names = Question(
            node, ListParameters, f"{other}/list_parameters", ListParameters.Request()
        )
        self._values: Question | None = None
        self._asked: list[str] = []

    def answer(self) -> dict[str, Any] | None:
        """The values by full name, None for those that are not set; None while there are none."""
        if self._values is None:
            names = self._names.answer()
            if names is None:
                return None
            self._asked = list(names.result.names)
            request = GetParameters.Request(names=self._asked)
            self._values = Question(
                self._node, GetParameters, f"{self._other}/get_parameters", request
            )
        values = self._values.answer()
        if values is None:
            return None
        plain = map(parameter_value_to_python, values.values)
        return dict(zip(self._asked, plain, strict=False))
