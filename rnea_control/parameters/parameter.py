"""Declaration of a parameter: type, default, bounds, meaning and special values.

A name may contain the placeholder `<joint>`; the row then declares one parameter for each joint.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from rnea_control.exceptions import ParameterError, quoted

JOINT = "<joint>"

_TYPE_WORDS = {bool: "boolean", int: "integer", float: "double", str: "string"}


@dataclass(frozen=True)
class Parameter:
    """Row of a parameter table."""

    name: str  # full name, with dots between its parts
    # bool, int, float, str, or a list of int, float or str; a float may be given as an integer.
    type: Any
    default: Any  # default value; None makes the parameter mandatory
    meaning: str  # description for the user
    unit: str = ""  # unit of the number, if it has one
    at_least: float = -math.inf  # bounds of a number, or of each number of an array
    above: float = -math.inf
    at_most: float = math.inf
    choices: tuple[str, ...] = ()  # allowed strings
    length: int = 0  # required number of elements of an array; 0 for any
    # A value that is allowed outside the bounds, and its meaning: `(-1.0, "that of the URDF")`.
    # Third, if different, the value in force: NaN for a value from the robot, infinity for no
    # bound.
    special: tuple[Any, str] | tuple[Any, str, Any] | None = None
    zero_is_none: bool = False  # True if 0 means no bound, in addition to `special`
    live: bool = False  # True if it may change while the node runs
    at_start: bool = False  # True if it is read when the process starts, and never changes
    infinite: bool = False  # True if a number may be infinite
    bound: bool = False  # True if infinity, no bound, may be in force, though users give a number
    in_tick: bool = False  # True if the control step reads it, from a row of the step's array

    def names(self, joints: Sequence[str]) -> list[str]:
        """Full names; one for each joint if the name has the placeholder."""
        each_joint = joints if JOINT in self.name else ("",)
        return [self.name.replace(JOINT, joint) for joint in each_joint]

    @property
    def allowed(self) -> str:
        """Allowed values, in ROS's words for types."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        elements = typing.get_args(self.type)
        words = _TYPE_WORDS[elements[0]] + " array" if elements else _TYPE_WORDS[self.type]
        if self.type == list[str]:
            words += " (list of non-empty strings)"
        if self.length:
            words += f" of length {self.length}"
        bounds = {"above": self.above, "at least": self.at_least, "at most": self.at_most}
        given = [f"{name} {bound:g}" for name, bound in bounds.items() if math.isfinite(bound)]
        if given:
            words += f", {'each ' if elements else ''}{' and '.join(given)}"
        if self.infinite:
            words += ", may be infinite"
        if self.special is not None:
            words += f", or {_yaml(self.special[0])} for {self.special[1]}"
        if self.zero_is_none:
            words += ", or 0.0 for no bound"
        return words

    def check(self, name: str, value: Any) -> Any:
        """Converts a value to the parameter's type. Raises ParameterError, which names the full
        name, the value and the allowed values."""
        if value is False and "off" in self.choices:
            value = "off"  # YAML reads off as a boolean
        converted = _converted(value, self.type)
        if isinstance(value, float) and (
            self._is_special(value) or (self.infinite and math.isinf(value))
        ):
            converted = value
        if converted is None or not self._within(converted):
            allowed = self.allowed
            article = "" if self.choices else "an " if allowed.startswith("i") else "a "
            is_, end = ("not set", f": {self.meaning}") if value is None else (quoted(value), "")
            raise ParameterError(
                f"parameter {quoted(name)} is {is_}; it must be {article}{allowed}{end}"
            )
        return converted

    def in_force(self, value: Any) -> Any:
        """Value in force for a checked value, which may be special."""
        if self.zero_is_none and value == 0.0:
            return math.inf
        is_other = len(self.special or ()) == 3 and self._is_special(value)
        return self.special[2] if is_other else value  # type: ignore[misc, index]

    @property
    def once_in_force(self) -> Parameter:
        """Row for values in force, without special values."""
        special = self.special
        if special is not None and len(special) == 3:
            special = (special[2], special[1])
        infinite = self.infinite or self.bound or self.zero_is_none
        return replace(self, special=special, infinite=infinite, zero_is_none=False)

    def _is_special(self, value: Any) -> bool:
        if self.special is None:
            return False
        special = self.special[0]  # NaN in force is special too
        return bool(value == special) or bool(special != special and value != value)  # noqa: PLR0124

    def _within(self, value: Any) -> bool:
        if self._is_special(value) or (self.zero_is_none and value == 0.0):
            return True
        if self.choices and value not in self.choices:
            return False
        if self.length and len(value) != self.length:
            return False
        return all(
            isinstance(number, (str, bool))
            or (self.at_least <= number <= self.at_most and not -math.inf < self.above >= number)
            for number in (value if isinstance(value, list) else [value])
        )


class Parameters(Protocol):
    """Checked parameters by full name, from a node or from plain values. Raises ParameterError for
    a value that is not allowed, or missing."""

    def __getitem__(self, name: str) -> Any: ...


class GivenParameters:
    """Parameters from plain values by full name, such as from a YAML file; `known` rows from
    `expand` give checks and defaults."""

    def __init__(self, values: Mapping[str, Any], known: Mapping[str, Parameter]) -> None:
        self.values = values
        self._known = known

    def __getitem__(self, name: str) -> Any:
        parameter = self._known[name]
        return parameter.check(name, self.values.get(name, parameter.default))

    def faults(self) -> list[str]:
        """Faults of the values, one sentence each."""
        found = []
        for name in self._known:
            try:
                self[name]
            except ParameterError as error:
                found.append(str(error))
        return found

    def unknown(self) -> list[str]:
        """Names without a row, probably misspelled."""
        return sorted(name for name in self.values if name not in self._known)


def expand(table: Iterable[Parameter], joints: Sequence[str]) -> dict[str, Parameter]:
    """Rows by full name; one for each joint if the name has the placeholder.

    Raises:
        ParameterError: two rows have the same name.
    """
    parameters: dict[str, Parameter] = {}
    for parameter in table:
        for name in parameter.names(joints):
            if parameters.setdefault(name, parameter) is not parameter:
                raise ParameterError(f"the table has the parameter {name!r} twice")
    return parameters


def joint_of(name: str, table: Iterable[Parameter]) -> str:
    """Joint in the full name of a parameter, whether or not the robot has it; empty if no row of
    the table has a placeholder that fits."""
    for row in table:
        before, placeholder, after = row.name.partition(JOINT)
        joint = name[len(before) : len(name) - len(after)]
        if placeholder and joint and name == before + joint + after:
            return joint
    return ""


def values_in_force(
    parameters: Parameters, table: Iterable[Parameter], joints: Sequence[str]
) -> dict[str, Any]:
    """Values in force, by the names of their rows; arrays of shape (nv,) for rows with the
    placeholder. Raises ParameterError for a value that is not allowed, or missing."""
    values: dict[str, Any] = {}
    for row in table:
        found = [row.in_force(parameters[name]) for name in row.names(joints)]
        values[row.name] = np.array(found) if JOINT in row.name else found[0]
    return values


def markdown(table: Iterable[Parameter], live: bool = True) -> str:
    """Table as Markdown, for the documentation; `live` adds a column that marks parameters that may
    change while the node is active."""
    rows = [("parameter", "default", "allowed", "unit", "while active", "meaning"), ("---",) * 6]
    for p in table:
        default = "**must be set**" if p.default is None else f"`{_yaml(p.default)}`"
        may_change = "yes" if p.live else "no"
        rows.append((f"`{p.name}`", default, p.allowed, p.unit, may_change, p.meaning))
    shown = rows if live else [(*row[:4], row[5]) for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in shown)


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def _converted(value: Any, kind: Any) -> Any:
    """Converts a value to this type; returns None if it has another type."""
    if typing.get_origin(kind) is list:
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            return None
        (kind,) = typing.get_args(kind)
        elements = [_converted(element, kind) for element in value]
        # A name must not be empty.
        return None if any(each is None or each == "" for each in elements) else elements
    if kind is float:
        if not isinstance(value, (int, float)) or type(value) is bool:
            return None
        try:
            number = float(value)
        except OverflowError:  # an integer with many digits
            return None
        return number if math.isfinite(number) else None
    return value if type(value) is kind else None
