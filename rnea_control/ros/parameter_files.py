"""The parameters that a YAML file has in the section of another node.

The sentinel takes the controller's values where it has none of its own, so that one file, written
for the controller, serves both.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

import yaml


def section_of(node: str, arguments: Sequence[str]) -> dict[str, object]:
    """The parameters of a node in all `--params-file` of a command line, the last one wins.

    Args:
        node: its full name.
        arguments: of the process.
    """
    values: dict[str, object] = {}
    for flag, path in itertools.pairwise(arguments):
        if flag == "--params-file":
            content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
            _collect(content, "", node, values)
    return values


def _collect(content: object, path: str, node: str, values: dict[str, object]) -> None:
    if not isinstance(content, dict):
        return
    for key, below in content.items():
        if key != "ros__parameters":
            _collect(below, f"{path}/{str(key).strip('/')}", node, values)
        elif _matches(path, node):
            _flatten(below, "", values)


def _matches(pattern: str, node: str) -> bool:
    """Whether a path of keys stands for a node: `*` is one part of its name, `**` any number."""
    parts = [
        "(/[^/]+)*" if part == "**" else "/[^/]+" if part == "*" else "/" + re.escape(part)
        for part in pattern.strip("/").split("/")
    ]
    return re.fullmatch("".join(parts), node) is not None


def _flatten(parameters: object, prefix: str, values: dict[str, object]) -> None:
    if not isinstance(parameters, dict):
        return
    for name, value in parameters.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{name}.", values)
        else:
            values[prefix + str(name)] = value
