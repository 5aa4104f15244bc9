"""Names of base parameters are long sums; tables and pictures have room for their beginning."""

from __future__ import annotations


def shortened(name: str, longest: int) -> str:
    """The first terms of a sum, as many as fit into so many characters, at least one."""
    if len(name) <= longest:
        return name
    words = name.split(" ")
    ends = [i for i, word in enumerate(words) if word in ("+", "-")]
    fitting = [end for end in ends if len(" ".join(words[:end])) + len(" ...") <= longest]
    end = max(fitting, default=ends[0] if ends else len(words))
    return f"{' '.join(words[:end])} ..." if end < len(words) else name
