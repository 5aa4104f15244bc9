"""Search for an allowed value of a parameter, after a wanted value was refused for its effect."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any

from rnea_control.parameters.parameter import Parameter

HALVINGS = 8  # number of bisections between the wanted and the present value
DOUBLINGS = 20  # largest number of doublings, if the present value is special


def allowed_values(
    present: Mapping[str, Any],
    wanted: Mapping[str, Any],
    known: Mapping[str, Parameter],
    allows: Callable[[Mapping[str, Any]], bool],
) -> str:
    """Allowed values nearest to the wanted values, for the single row of the table that causes the
    refusal, in words; empty if no single row does.

    Args:
        present: present values by full names; they are allowed.
        wanted: wanted values by full names; they are not allowed.
        known: parameters by full names.
        allows: returns True if a complete set of values is allowed.
    """
    numbers = [name for name in known if name in wanted and _is_number(wanted[name])]
    changed = [name for name in numbers if wanted[name] != present[name]]
    for _, names in groupby(changed, lambda name: known[name].name):
        group = list(names)
        without = {**wanted, **{name: present[name] for name in group}}
        if not allows(without):
            continue

        def nearer(share: float, group: list[str] = group) -> dict[str, Any]:
            return {name: _between(present, wanted, known, name, share) for name in group}

        share = _least_share(partial(_allows, allows, wanted, nearer))
        if share is not None:
            return "; ".join(_words(nearer(share), wanted))
    return ""


def _allows(
    allows: Callable[[Mapping[str, Any]], bool],
    wanted: Mapping[str, Any],
    nearer: Callable[[float], dict[str, Any]],
    share: float,
) -> bool:
    return allows({**wanted, **nearer(share)})


def _is_number(value: Any) -> bool:
    numbers = [value] if isinstance(value, (bool, int, float)) else list(value)
    return bool(numbers) and all(type(each) in (int, float) for each in numbers)


def _least_share(allows: Callable[[float], bool]) -> float | None:
    """Smallest allowed fraction of the way to the present values; None if none is allowed."""
    refused, allowed = 0.0, 1.0
    if not allows(allowed):
        return None
    for _ in range(HALVINGS):
        middle = 0.5 * (refused + allowed)
        if allows(middle):
            allowed = middle
        else:
            refused = middle
    return allowed


def _between(
    present: Mapping[str, Any],
    wanted: Mapping[str, Any],
    known: Mapping[str, Parameter],
    name: str,
    share: float,
) -> Any:
    """Value on the way from the wanted to the present value; if the present value is special,
    beyond every bound."""
    special, before, after = known[name].special, present[name], wanted[name]
    if not isinstance(after, (int, float)):
        return [a + share * (b - a) for a, b in zip(after, before, strict=True)]
    if special is not None and before == special[0]:
        return _outward(after * 2.0 ** (share * DOUBLINGS), after)
    if before > 0.0 and after > 0.0:
        return _outward(after * (before / after) ** share, after)
    return _outward(after + share * (before - after), after)


def _outward(value: float, wanted: float) -> float:
    """Rounds to three digits, away from the wanted value."""
    if value == 0.0 or not math.isfinite(value):
        return value
    digit = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    rounded = digit * (math.ceil if value > wanted else math.floor)(value / digit)
    return float(f"{rounded:.3g}")


def _words(allowed: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    for name, value in allowed.items():
        if isinstance(value, list):
            yield f"{name}: {[float(f'{each:.3g}') for each in value]} is allowed"
        else:
            bound = "at least" if value > wanted[name] else "at most"
            yield f"{name} is {wanted[name]:g}, {bound} {value:g} is allowed"
