"""Sections of YAML parameter files, by node.

The sentinel takes the controller's values where its own section has none. So one file, written for
the controller, serves both. ROS silently ignores a section for another node.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from rnea_control.exceptions import listed, plain

PARAMETERS = "ros__parameters"
LONGEST_PATH = 500  # characters of a file's path that a message repeats


def section_of(node: str, arguments: Sequence[str]) -> dict[str, object]:
    """The parameters of a node in all `--params-file` of a command line; the last file wins.

    Args:
        node: full name of the node.
        arguments: command line of the process.
    """
    values: dict[str, object] = {}
    for _, names, keys, value in _entries(arguments):
        if keys and _matches(names, node):
            values[".".join(keys)] = value
    return values


def missing_section(node: str, arguments: Sequence[str]) -> str:
    """Message that all `--params-file` of a command line are for other nodes; empty if a file has a
    section for this node, or if no file is given.

    Args:
        node: full name of the node.
        arguments: command line of the process.
    """
    files: dict[str, None] = {}
    others: dict[str, None] = {}
    for path, names, _, _ in _entries(arguments):
        if _matches(names, node):
            return ""
        files[path] = others["/" + "/".join(name.strip("/") for name in names)] = None
    if not files:
        return ""
    paths = ", ".join(plain(path, LONGEST_PATH) for path in files)
    return (
        f"{paths} has no parameters for {node}, only for {listed(others)}: give the "
        "section the name and namespace of this node, or /** for any"
    )


def _entries(
    arguments: Sequence[str],
) -> Iterator[tuple[str, Sequence[str], Sequence[str], object]]:
    """The values in all `--params-file` of a command line: path of the file, keys of the section,
    keys of the parameter, value."""
    for flag, path in itertools.pairwise(arguments):
        if flag == "--params-file":
            for keys, value in _leaves(yaml.safe_load(Path(path).read_text(encoding="utf-8"))):
                if PARAMETERS in keys:
                    where = keys.index(PARAMETERS)
                    yield path, keys[:where], keys[where + 1 :], value


def _leaves(
    content: object, keys: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    """The values in nested mappings, each with the keys of its path."""
    if not isinstance(content, dict):
        yield keys, content
        return
    for key, below in content.items():
        yield from _leaves(below, (*keys, str(key)))


def _matches(keys: Sequence[str], node: str) -> bool:
    """True if keys match the name of a node: `*` is one part of the name, `**` any number."""
    parts = [
        "(/[^/]+)*" if part == "**" else "/[^/]+" if part == "*" else "/" + re.escape(part)
        for part in "/".join(key.strip("/") for key in keys).split("/")
    ]
    return re.fullmatch("".join(parts), node) is not None
