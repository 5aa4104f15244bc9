"""Binds parameter tables to a ROS node: declares, reads and checks.

The node must be made with `automatically_declare_parameters_from_overrides=True`: that is the
public way to learn of parameters that the user set but no table knows, such as a misspelled one.

The controller publishes its values of the robot, its limits and the hand-over for the sentinel: all
of them, latched, when it is configured and at every change. A sentinel that starts later receives
them too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor, ParameterEvent, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from rnea_control.exceptions import ParameterError, RneaControlError, listed, quoted
from rnea_control.parameters import table
from rnea_control.parameters.allowed_value import allowed_values
from rnea_control.parameters.parameter import GivenParameters, Parameter, Parameters, expand

# Parameters that rclpy itself declares.
BUILT_IN = ("use_sim_time", "start_type_description_service", "qos_overrides.")
# Parameters that must be equal on both sides, even if the sentinel's own section sets them.
HANDOVER = tuple(row.name for row in table.HANDOVER)
# Topic of the controller's node with its parameters in force.
IN_FORCE = "parameters_in_force"
LEASE = 0.01  # default of command_lease on hardware: time that a controller may be absent [s]
SIMULATED_LEASE = 0.1  # default of command_lease in simulated time [s]
TIMEOUT_SHARE = 1.5  # default of command_timeout, as a multiple of command_lease
# Upper bound of the values in a controller's message: a hundred for each of a hundred joints.
MOST_IN_FORCE = 10_000


class NodeParameters:
    """The parameters of one node.

    While they are in use, a change is accepted only after the settings have been made from the
    whole new set: a change that is answered as successful is in force.

    Args:
        node: the node.
        table: its parameters.
        in_use: returns True while the parameters are in use; then only live ones may change.
        remedy: what the user must do to change a parameter that is not live.
        prepare: makes the settings from a set of values, without applying them; its errors refuse
            the set.
        apply: applies the settings, in the same callback of the executor.
    """

    def __init__(
        self,
        node: Node,
        table: Sequence[Parameter],
        in_use: Callable[[], bool] = lambda: False,
        remedy: str = "",
        prepare: Callable[[Parameters], Any] = lambda values: None,
        apply: Callable[[Any], None] = lambda prepared: None,
    ) -> None:
        self._node, self._table = node, table
        self._in_use, self._remedy = in_use, remedy
        self._prepare, self._apply = prepare, apply
        self._prepared: list[Any] = []  # at most one
        self._taking = False
        self._known: dict[str, Parameter] = {}
        self.add_joints(())
        node.add_on_set_parameters_callback(self._refuse_wrong)
        self._told_after = hasattr(node, "add_post_set_parameters_callback")  # Humble has none
        if self._told_after:
            node.add_post_set_parameters_callback(self._put_in_force)

    def add_joints(self, joints: Sequence[str]) -> None:
        """Declares the parameters of these joints."""
        for name, parameter in expand(self._table, joints).items():
            self._declare(name, parameter)

    def add_group(self, prefix: str, parameter: Parameter) -> list[str]:
        """Declares every parameter set under a prefix; returns their names without it."""
        names = list(self._node.get_parameters_by_prefix(prefix))
        for name in names:
            self._declare(f"{prefix}.{name}", parameter)
        return names

    def unknown(self) -> list[str]:
        """Names of parameters that the user set and no table knows, probably misspelled."""
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

    def _declare(self, name: str, parameter: Parameter) -> None:
        if name in self._known:
            return
        unit = f" [{parameter.unit}]" if parameter.unit else ""
        descriptor = ParameterDescriptor(
            description=parameter.meaning + unit,
            additional_constraints=parameter.allowed,
            dynamic_typing=True,  # the table checks types, and takes 400 for 400.0
        )
        if self._node.has_parameter(name):  # from a YAML file, declared without description
            self._node.set_descriptor(name, descriptor)
        else:
            self._node.declare_parameter(name, parameter.default, descriptor)
        self._known[name] = parameter

    def take(self, values: Mapping[str, Any]) -> None:
        """Sets the values in force in another node, also of parameters that are not live.

        Raises:
            ParameterError: they are refused.
        """
        changes = [RosParameter(name, value=value) for name, value in values.items()]
        self._taking = True
        try:
            result = self._node.set_parameters_atomically(changes)
        finally:
            self._taking = False
        if not result.successful:
            raise ParameterError(result.reason)

    def allowed(self, wanted: GivenParameters, allows: Callable[[GivenParameters], bool]) -> str:
        """Beginning of a refusal: the values nearest to the wanted values that `allows` accepts;
        empty if there are none."""

        def is_allowed(values: Mapping[str, Any]) -> bool:
            try:
                return allows(GivenParameters(values, self._known))
            except RneaControlError:
                return False

        present = {name: self._node.get_parameter(name).value for name in self._known}
        found = allowed_values(present, wanted.values, self._known, is_allowed)
        return f"{found}: else " if found else ""

    def _refuse_wrong(self, changes: list[RosParameter]) -> SetParametersResult:
        self._prepared.clear()
        values = {change.name: change.value for change in changes}
        try:
            known = [self._is_known(name, value) for name, value in values.items()]
            if any(known) and self._in_use():
                present = {name: self._node.get_parameter(name).value for name in self._known}
                changed = GivenParameters(present | values, self._known)
                self._prepared.append(self._prepare(changed))
        except RneaControlError as error:
            return SetParametersResult(successful=False, reason=str(error))
        if not self._told_after:
            self._put_in_force(changes)
        return SetParametersResult(successful=True)

    def _is_known(self, name: str, value: Any) -> bool:
        """True if the table has this parameter, after checking that it may take this value now.

        Raises:
            ParameterError: the value is invalid, or may not be set now.
        """
        fixed = self._in_use() and not self._taking
        if name == "use_sim_time" and fixed and value != self._node.get_parameter(name).value:
            raise ParameterError(
                "parameter 'use_sim_time' cannot change now, as the time of the states and of all "
                f"that waits for them would jump; {self._remedy}"
            )
        if name not in self._known:
            return False
        self._known[name].check(name, value)
        if self._known[name].at_start and value != self._node.get_parameter(name).value:
            raise ParameterError(
                f"parameter {quoted(name)} cannot change: it is read when the process starts"
            )
        if fixed and not self._known[name].live:
            raise ParameterError(f"parameter {quoted(name)} cannot change now; {self._remedy}")
        return True

    def _put_in_force(self, changes: list[RosParameter]) -> None:
        while self._prepared:
            self._apply(self._prepared.pop())


def handover_times(parameters: Parameters, simulated: bool) -> tuple[float, float]:
    """`command_lease` and `command_timeout`, [s], with the defaults in place of -1.

    Raises:
        ParameterError: a value that is not allowed, or a lease that is not the shorter one.
    """
    lease, timeout = parameters["command_lease"], parameters["command_timeout"]
    if lease == table.DEFAULT:
        lease = SIMULATED_LEASE if simulated else LEASE
    if timeout == table.DEFAULT:
        timeout = TIMEOUT_SHARE * lease
    if lease >= timeout:
        raise ParameterError(
            f"parameter 'command_lease' is {lease} s; it must be shorter than command_timeout, "
            f"{timeout} s: else two nodes could command the arm at once"
        )
    return lease, timeout


def _shared_names(joints: Sequence[str]) -> list[str]:
    """The parameters that the controller publishes for the sentinel."""
    names = expand((*table.ROBOT, *table.LIMITS, *table.HANDOVER), joints)
    return [name for name in names if name != "robot_description"]


def parameters_in_force(
    node: str, parameters: Parameters, joints: Sequence[str], simulated: bool
) -> ParameterEvent:
    """Message with the parameters in force of a controller.

    Args:
        node: full name of the controller's node.
        parameters: its parameters.
        joints: joint names.
        simulated: True if its time is simulated.
    """
    values = {name: parameters[name] for name in _shared_names(joints)}
    values |= zip(HANDOVER, handover_times(parameters, simulated), strict=True)
    changed = [RosParameter(name, value=value).to_parameter_msg() for name, value in values.items()]
    return ParameterEvent(node=node, changed_parameters=changed)


def values_in_event(event: ParameterEvent, joints: Sequence[str]) -> dict[str, Any]:
    """The values in the message of a controller of these joints, by name, checked by the table.

    Raises:
        ParameterError: the message lacks a parameter, has an unknown parameter, or an invalid
            value.
    """
    count = len(event.changed_parameters)
    if count > MOST_IN_FORCE:
        raise ParameterError(f"it has {count} values; at most {MOST_IN_FORCE} are allowed")
    given: dict[str, Any] = {}
    for each in event.changed_parameters:
        try:
            given[each.name] = RosParameter.from_parameter_msg(each).value
        except (TypeError, ValueError) as error:  # an invalid type
            raise ParameterError(f"its value of {quoted(each.name)} is none: {error}") from error
    if "joints" in given and given["joints"] != list(joints):
        raise ParameterError(f"its joints are {_words(given['joints'])}")
    names = _shared_names(joints)
    if lacking := [name for name in names if name not in given]:
        raise ParameterError(f"it lacks {listed(lacking)}")
    if strange := [name for name in given if name not in names]:
        raise ParameterError(f"it has {listed(strange)}, which are not the sentinel's")
    known = expand((*table.ROBOT, *table.LIMITS, *table.HANDOVER), joints)
    return {name: known[name].check(name, given[name]) for name in names}


def _words(joints: Any) -> str:
    return listed([*map(str, joints)]) if isinstance(joints, (list, tuple)) else quoted(joints)
