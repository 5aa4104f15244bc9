"""The parameters that a YAML file has in the section of another node.

The sentinel takes the controller's values where it has none of its own, so that one file, written
for the controller, serves both.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

PARAMETERS = "ros__parameters"


def section_of(node: str, arguments: Sequence[str]) -> dict[str, object]:
    """The parameters of a node in all `--params-file` of a command line, the last one wins.

    Args:
        node: its full name.
        arguments: of the process.
    """
    values: dict[str, object] = {}
    for flag, path in itertools.pairwise(arguments):
        if flag == "--params-file":
            for keys, value in _leaves(yaml.safe_load(Path(path).read_text(encoding="utf-8"))):
                if PARAMETERS in keys[:-1]:
                    where = keys.index(PARAMETERS)
                    if _matches(keys[:where], node):
                        values[".".join(keys[where + 1 :])] = value
    return values


def _leaves(
    content: object, keys: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    """What is in nested mappings, with the keys that lead there."""
    if not isinstance(content, dict):
        yield keys, content
        return
    for key, below in content.items():
        yield from _leaves(below, (*keys, str(key)))


def _matches(keys: Sequence[str], node: str) -> bool:
    """Whether keys stand for a node: `*` is one part of its name, `**` any number."""
    parts = [
        "(/[^/]+)*" if part == "**" else "/[^/]+" if part == "*" else "/" + re.escape(part)
        for part in "/".join(key.strip("/") for key in keys).split("/")
    ]
    return re.fullmatch("".join(parts), node) is not None
