"""Names and numbers as they stand in warnings."""

from __future__ import annotations

from collections.abc import Sequence

from rnea_control.exceptions import listed


def named(kind: str, names: Sequence[str]) -> str:
    """Links or joints by name: "link 'a'", "joints 'a', 'b'"."""
    return f"{kind}{'s' if len(names) > 1 else ''} {listed([repr(name) for name in names])}"


def rounded(number: float, digits: int = 3) -> str:
    """With so many digits, and no exponent before it gets long: 87000, 0.0123, 3.8e7."""
    return f"{float(f'{number:.{digits}g}'):g}".replace("e+0", "e").replace("e+", "e")
