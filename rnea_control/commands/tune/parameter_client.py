"""`ParameterClient`: sets parameters of a running controller, and sets them back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python

from rnea_control.exceptions import ParameterError

FRESH = 5.0  # time limit for an answer [s]
LOOK = 0.1  # time of one spin [s]


class ParameterClient:
    """Parameters of a controller.

    Args:
        node: node of the client.
        executor: executor of the node.
        controller: full name of the controller's node.
    """

    def __init__(self, node: Node, executor: SingleThreadedExecutor, controller: str) -> None:
        self._executor, self._controller = executor, controller
        name = f"{controller}/set_parameters_atomically"
        self._set = node.create_client(SetParametersAtomically, name)
        self._get = node.create_client(GetParameters, f"{controller}/get_parameters")
        self._before: dict[str, Any] = {}  # values before the first change

    def set(self, values: Mapping[str, Any]) -> None:
        """Sets all of the parameters or none.

        Raises:
            ParameterError: the controller refuses them, or does not answer.
        """
        unknown = [name for name in values if name not in self._before]
        if unknown:
            answer = self._call(self._get, GetParameters.Request(names=unknown))
            found = map(parameter_value_to_python, answer.values)
            self._before.update(zip(unknown, found, strict=True))
        self._put(values)

    def restore(self) -> None:
        """Sets all parameters to their values before the first change.

        Raises:
            ParameterError: the controller refuses them, or does not answer.
        """
        if self._before:
            self._put(self._before)
            self._before.clear()

    def keep(self) -> None:
        """Keeps the present values."""
        self._before.clear()

    def _put(self, values: Mapping[str, Any]) -> None:
        given = [Parameter(name, value=value) for name, value in values.items()]
        request = SetParametersAtomically.Request(
            parameters=[each.to_parameter_msg() for each in given]
        )
        result = self._call(self._set, request).result
        if not result.successful:
            raise ParameterError(f"{self._controller} refuses parameters: {result.reason}")

    def _call(self, client: Any, request: Any) -> Any:
        deadline = time.monotonic() + FRESH
        while not client.service_is_ready() and time.monotonic() < deadline:
            self._executor.spin_once(timeout_sec=LOOK)
        answer = client.call_async(request)
        while not answer.done() and time.monotonic() < deadline:
            self._executor.spin_once(timeout_sec=LOOK)
        if not answer.done():
            raise ParameterError(
                f"{self._controller} does not answer {client.srv_name} within {FRESH:g} s"
            )
        return answer.result()
