"""Binds parameter tables to a ROS node: declares, reads and checks.

The node must be made with `automatically_declare_parameters_from_overrides=True`: that is the
public way to learn of parameters that the user set but no table knows, such as a misspelt one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor, ParameterType, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from rnea_control.exceptions import ParameterError
from rnea_control.ros.parameter_table import Parameter, expand

_ROS_TYPES = {
    bool: ParameterType.PARAMETER_BOOL,
    int: ParameterType.PARAMETER_INTEGER,
    float: ParameterType.PARAMETER_DOUBLE,
    str: ParameterType.PARAMETER_STRING,
    list[str]: ParameterType.PARAMETER_STRING_ARRAY,
    list[int]: ParameterType.PARAMETER_INTEGER_ARRAY,
    list[float]: ParameterType.PARAMETER_DOUBLE_ARRAY,
}
# What rclpy itself declares.
BUILT_IN = ("use_sim_time", "start_type_description_service", "qos_overrides.")


class NodeParameters:
    """The parameters of one node.

    Args:
        node: the node.
        table: its parameters.
        is_fixed: whether only parameters marked live may change now.
        remedy: what the user must do to change any other one.
        on_change: called after parameters have changed, with their names.
    """

    def __init__(
        self,
        node: Node,
        table: Sequence[Parameter],
        is_fixed: Callable[[], bool] = lambda: False,
        remedy: str = "",
        on_change: Callable[[set[str]], None] = lambda names: None,
    ) -> None:
        self._node = node
        self._table = table
        self._is_fixed = is_fixed
        self._remedy = remedy
        self._on_change = on_change
        self._known: dict[str, Parameter] = {}
        self.add_joints(())
        node.add_on_set_parameters_callback(self._refuse_wrong)
        node.add_post_set_parameters_callback(
            lambda parameters: self._on_change({parameter.name for parameter in parameters})
        )

    def add_joints(self, joints: Sequence[str]) -> None:
        """Declares the parameters of these joints."""
        for name, parameter in expand(self._table, joints).items():
            if name not in self._known:
                self._declare(name, parameter)

    def add_group(self, prefix: str, parameter: Parameter) -> list[str]:
        """Declares every parameter set under a prefix; returns their names without it."""
        names = self._node.get_parameters_by_prefix(prefix)
        for name in names:
            full_name = f"{prefix}.{name}"
            if full_name not in self._known:
                self._declare(full_name, parameter)
        return list(names)

    def unknown(self) -> list[str]:
        """Names of parameters that the user set and no table knows, probably misspelt."""
        names = self._node.get_parameters_by_prefix("")
        return sorted(
            name for name in names if name not in self._known and not name.startswith(BUILT_IN)
        )

    def __getitem__(self, name: str) -> Any:
        """The checked value of a parameter.

        Raises:
            ParameterError: the value is not allowed, or missing.
        """
        return self._known[name].check(name, self._node.get_parameter(name).value)

    def check(self) -> None:
        """Checks all values, also those that are read only later.

        Raises:
            ParameterError: the first value that is not allowed, or missing.
        """
        for name in self._known:
            self[name]

    def _declare(self, name: str, parameter: Parameter) -> None:
        value = parameter.default
        if self._node.has_parameter(name):  # from a YAML file, declared without description
            value = self._node.get_parameter(name).value
            self._node.undeclare_parameter(name)
        descriptor = ParameterDescriptor(
            name=name,
            type=_ROS_TYPES[parameter.type],
            description=f"{parameter.meaning} [{parameter.unit}]"
            if parameter.unit
            else parameter.meaning,
            additional_constraints=parameter.allowed,
            # Types are checked by the table, which takes 400 for 400.0.
            dynamic_typing=True,
        )
        self._node.declare_parameter(name, value, descriptor, ignore_override=True)
        self._known[name] = parameter

    def _refuse_wrong(self, changes: list[RosParameter]) -> SetParametersResult:
        for change in changes:
            parameter = self._known.get(change.name)
            if parameter is None:
                continue
            try:
                parameter.check(change.name, change.value)
            except ParameterError as error:
                return SetParametersResult(successful=False, reason=str(error))
            if self._is_fixed() and not parameter.live:
                return SetParametersResult(
                    successful=False,
                    reason=f"parameter {change.name!r} cannot change now; {self._remedy}",
                )
        return SetParametersResult(successful=True)
