"""`ParameterClient`: sets parameters of a running controller, and sets them back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
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
        self._before: dict[str, Any] = {}  # old values of the parameters that were set

    def get(self, names: Sequence[str]) -> dict[str, Any]:
        """Present values.

        Raises:
            ParameterError: the controller does not answer.
        """
        answer = self._call(self._get, GetParameters.Request(names=list(names)))
        found = map(parameter_value_to_python, answer.values)
        return dict(zip(names, found, strict=True))

    def set(self, values: Mapping[str, Any]) -> None:
        """Like `attempt`; raises ParameterError also if the controller refuses the values."""
        if refusal := self.attempt(values):
            raise ParameterError(refusal)

    def attempt(self, values: Mapping[str, Any]) -> str:
        """Sets all of the parameters or none; why the controller refuses them, else empty. The old
        values are kept for `restore`.

        Raises:
            ParameterError: the controller does not answer.
        """
        if unknown := [name for name in values if name not in self._before]:
            self._before.update(self.get(unknown))
        return self._put(values)

    def restore(self) -> None:
        """Sets the old values again: all at once, or one by one if the controller refuses that.

        Raises:
            ParameterError: the controller refuses some, or does not answer.
        """
        if self._before and self._put(self._before):
            refusals = [self._put({name: value}) for name, value in self._before.items()]
            if refusal := next(filter(None, refusals), ""):
                raise ParameterError(refusal)
        self._before.clear()

    def keep(self, names: Iterable[str]) -> None:
        """Forgets the old values of these parameters."""
        for name in names:
            self._before.pop(name, None)

    def _put(self, values: Mapping[str, Any]) -> str:
        """Sets all of the parameters or none; why the controller refuses them, else empty."""
        given = [Parameter(name, value=value) for name, value in values.items()]
        request = SetParametersAtomically.Request(
            parameters=[each.to_parameter_msg() for each in given]
        )
        result = self._call(self._set, request).result
        refusal = f"{self._controller} refuses parameters: {result.reason}"
        return "" if result.successful else refusal

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
