"""`LiveParameters`: the parameters of the running controller."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    ListParameters,
    SetParametersAtomically,
)
from rclpy.parameter import Parameter, parameter_value_to_python

from rnea_control.client.connection import Connection
from rnea_control.exceptions import Refused, listed


@dataclass(frozen=True)
class Description:
    """A parameter in the words of the controller."""

    meaning: str  # with the unit in brackets, if it has one
    allowed: str  # allowed values


class LiveParameters:
    """The parameters of the running controller, by full name.

    Args:
        connection: connection to ROS.
        controller: full name of the controller's node.
        signals: number of signals that end a call, where the connection knows of signals.
    """

    def __init__(self, connection: Connection, controller: str, signals: int = 1) -> None:
        self._connection, self._controller, self._signals = connection, controller, signals

    def __iter__(self) -> Iterator[str]:
        """Names of all parameters."""
        answer = self._call(ListParameters, "list_parameters", ListParameters.Request())
        return iter(answer.result.names)

    def get(self, names: Iterable[str]) -> dict[str, Any]:
        """Values by name; None for a parameter that is not set.

        Raises:
            KeyError: the controller lacks one of the parameters.
        """
        names = list(names)
        answer = self._call(GetParameters, "get_parameters", GetParameters.Request(names=names))
        self._check(names, answer.values)
        return dict(zip(names, map(parameter_value_to_python, answer.values), strict=True))

    def describe(self, names: Iterable[str]) -> dict[str, Description]:
        """Descriptions by name.

        Raises:
            KeyError: the controller lacks one of the parameters.
        """
        names = list(names)
        request = DescribeParameters.Request(names=names)
        found = self._call(DescribeParameters, "describe_parameters", request).descriptors
        self._check(names, found)
        told = (Description(each.description, each.additional_constraints) for each in found)
        return dict(zip(names, told, strict=True))

    def __getitem__(self, name: str) -> Any:
        """Value of a parameter; None if it is not set. Raises KeyError like `get`."""
        return self.get([name])[name]

    def set(self, values: Mapping[str, Any]) -> None:
        """Sets parameters, all or none.

        Raises:
            Refused: the controller refuses them; the message is its own.
        """
        messages = [
            Parameter(name, value=_plain(value)).to_parameter_msg()
            for name, value in values.items()
        ]
        request = SetParametersAtomically.Request(parameters=messages)
        result = self._call(SetParametersAtomically, "set_parameters_atomically", request).result
        if not result.successful:
            raise Refused(result.reason)

    def __setitem__(self, name: str, value: Any) -> None:
        self.set({name: value})

    def _check(self, names: Collection[str], found: Sized) -> None:
        """Raises KeyError if the controller has not answered for each name."""
        if len(found) != len(names):
            raise KeyError(f"{self._controller} lacks a parameter among {listed(names)}")

    def _call(self, kind: Any, service: str, request: Any) -> Any:
        name = f"{self._controller}/{service}"
        return self._connection.call(kind, name, request, signals=self._signals)


def _plain(value: Any) -> Any:
    """Value as a type of ROS."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
