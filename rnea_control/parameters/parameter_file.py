"""Parameter files for `--params-file`, with the values that differ from their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from rnea_control.parameters.parameter import Parameter

WIDTH = 90  # characters of a line


class _WithoutAliases(yaml.SafeDumper):
    """Writes equal values again: ROS reads no anchors and aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def differing(values: Mapping[str, Any], known: Mapping[str, Parameter]) -> dict[str, Any]:
    """Values that are set and differ from the defaults, or whose defaults are not known.

    Args:
        values: values by full name; None for a parameter that is not set.
        known: rows by full name, from `expand`.
    """
    return {
        name: value
        for name, value in values.items()
        if value is not None and (name not in known or value != known[name].default)
    }


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by full name, with dots between its parts, as nested mappings."""
    content: dict[str, Any] = {}
    for full_name, value in values.items():
        *parents, last = full_name.split(".")
        place = content
        for part in parents:
            place = place.setdefault(part, {})
        place[last] = value
    return content


def parameter_file(node: str, values: Mapping[str, Any], comment: str = "") -> str:
    """Parameter file of one node.

    Args:
        node: full name of the node; without a namespace, the file is for any namespace.
        values: values by full name, with dots between its parts.
        comment: comment at the beginning of the file.
    """
    content = nested(values)
    namespace, _, name = node.rpartition("/")
    section = {namespace or "/**": {name: {"ros__parameters": content}}}
    lines = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
    # Lists and the innermost maps are written in one line.
    return lines + yaml.dump(
        section,
        Dumper=_WithoutAliases,
        default_flow_style=None,
        sort_keys=False,
        allow_unicode=True,
        width=WIDTH,
    )
