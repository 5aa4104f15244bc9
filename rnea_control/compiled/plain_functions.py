"""The functions of `dynamics/` and `kernels/` as plain Python, to run on recording numbers.

They are the compiled kernels' own sources: copies of their code objects, whose global names lead to
plain functions instead of compiled ones.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

_OURS = __name__.partition(".")[0]


class PlainFunctions:
    """Makes plain functions, each once.

    Args:
        replaced: by the name in the source, what is called in place of a function.
    """

    def __init__(self, replaced: dict[str, Callable[..., Any]]) -> None:
        self._replaced = replaced
        self._made: dict[int, Any] = {}

    def plain(self, thing: Any, name: str = "") -> Any:
        """`thing` as it is, but for functions and modules of this package."""
        if name in self._replaced:
            return self._replaced[name]
        function = getattr(thing, "py_func", thing)
        if isinstance(function, ModuleType) and function.__name__.startswith(_OURS):
            return _PlainModule(self, function)
        if not isinstance(function, FunctionType) or not function.__module__.startswith(_OURS):
            return thing
        made = self._made.get(id(function))
        if made is None:
            names: dict[str, Any] = {"__builtins__": __builtins__}
            made = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
            self._made[id(function)] = made
            known = function.__globals__
            for each in function.__code__.co_names:
                if each in known:
                    names[each] = self.plain(known[each], each)
        return made


class _PlainModule:
    """A module, the functions of which are plain."""

    def __init__(self, functions: PlainFunctions, module: ModuleType) -> None:
        self._functions = functions
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = self._functions.plain(getattr(self._module, name), name)
        setattr(self, name, value)
        return value
