"""Causes that a recording shows, one family a file: each file's `HYPOTHESES` are tried."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

T = TypeVar("T")


def hypotheses(kind: type[T]) -> list[T]:
    """All hypotheses of a kind (`hypothesis.py`), in the order of the files' names."""
    names = sorted(found.name for found in iter_modules(__path__))
    modules = (import_module(f"{__name__}.{name}") for name in names)
    every: list[Any] = [each for module in modules for each in getattr(module, "HYPOTHESES", ())]
    return [each for each in every if isinstance(each, kind)]
