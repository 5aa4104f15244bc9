"""Groups: a named tuple of arrays as one argument of a kernel.

    @group(arm="Arm[::1]", state="State")
    class StepArrays(NamedTuple):
        arm: RecordArray
        state: State

A kernel has the name of the class in its signature, and reads `arrays.state`. The class of the
argument is checked, and each array as an argument of its own would be.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from numba.core import types

C = TypeVar("C", bound=type)


class Group(NamedTuple):
    """A class of named tuples, and the types of its fields in Numba's notation."""

    of: Any
    notation: dict[str, str]


GROUPS: dict[str, Group] = {}  # by the names of the classes


def group(**notation: str) -> Callable[[C], C]:
    """Decorator of a named tuple: the types of its fields, in Numba's notation."""

    def register(of: C) -> C:
        fields: Any = of._fields  # type: ignore[attr-defined]
        if tuple(notation) != fields:
            raise TypeError(f"{of.__name__} has the fields {fields}, not {tuple(notation)}")
        GROUPS[of.__name__] = Group(of, notation)
        return of

    return register


def group_types(names: dict[str, Any]) -> dict[str, types.NamedTuple]:
    """Types by the names of the classes.

    Args:
        names: types that fields may have, by their names.
    """
    return {
        name: types.NamedTuple([eval(each, {}, names) for each in notation.values()], of)
        for name, (of, notation) in GROUPS.items()
    }


def spelled_out(signature: str) -> str:
    """A signature with the types of the fields of its groups."""
    for name, (_, notation) in GROUPS.items():
        fields = ", ".join(f"{field}: {kind}" for field, kind in notation.items())
        signature = re.sub(rf"\b{name}\b", f"{name}({fields})", signature)
    return signature
