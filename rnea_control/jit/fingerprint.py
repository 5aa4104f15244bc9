"""Digest of everything that a kernel is compiled from: an equal digest means an equal kernel.

It covers the bytecode and constants of the kernel and of every compiled function that it reaches,
the values of all global names and module attributes in them, options, signature, versions and
processor. It does not cover docstrings, comments, line numbers, and other code of the same files. A
name whose value cannot be stamped is an error, as its change would not be noticed.
"""

from __future__ import annotations

import builtins
import dis
import enum
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np

from rnea_control.exceptions import FingerprintError

# Libraries whose functions and types are stamped by name; their versions are in every fingerprint.
_LIBRARIES = ("builtins", "math", "cmath", "operator", "_operator", "numpy", "numba")
# Settings of Numba that change the machine code.
_SETTINGS = (
    *("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "DISABLE_INTEL_SVML"),
    *("BOUNDSCHECK", "DEBUGINFO_DEFAULT", "CPU_NAME", "CPU_FEATURES"),
)
_PLAIN = (type(None), type(...), bool, int, float, complex, str, bytes)


def fingerprint(function: FunctionType, options: dict[str, Any], *more: Any) -> str:
    """Digest of everything on which the machine code of `function` depends, in hexadecimal digits.

    Args:
        function: Python function to compile.
        options: options of the compilation.
        more: other dependencies of the result, of plain types.

    Raises:
        FingerprintError: a global name whose value cannot be stamped.
    """
    # Functions are numbered in the order of their discovery, so that recursion ends.
    functions: list[Any] = [function]
    stamps: list[Any] = [environment(), _value(options, functions, "options"), more]
    for each in functions:  # grows in the loop
        stamps.append(_function(each, functions))
    return hashlib.sha256(repr(stamps).encode()).hexdigest()


@cache
def environment() -> tuple[str, ...]:
    """Versions, processor and settings on which machine code depends."""
    versions = (sys.version, numba.__version__, llvmlite.__version__, np.__version__)
    settings = (f"{name}={getattr(numba.config, name, None)}" for name in _SETTINGS)
    return (*versions, llvmlite.binding.get_process_triple(), *processor(), *settings)


@cache
def processor() -> tuple[str, str]:
    """Name and features of the processor."""
    try:
        features = llvmlite.binding.get_host_cpu_features().flatten()
    except RuntimeError:  # unknown to LLVM on this architecture; then Numba uses no features either
        features = ""
    return llvmlite.binding.get_host_cpu_name(), features


@cache
def module_digest(name: str) -> str:
    """Digest of the code of a module, without running it."""
    loader: Any = getattr(importlib.util.find_spec(name), "loader", None)
    code = loader.get_code(name)  # from a file, a zip archive or bytecode alone
    return hashlib.sha256(repr(_code(code)).encode()).hexdigest()


def _function(function: FunctionType, functions: list[Any]) -> tuple[Any, ...]:
    where = f"{function.__module__}.{function.__qualname__}"
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return (
        where,  # files on disk are named by the module
        _code(function.__code__, function.__doc__),
        _value(function.__defaults__, functions, where),
        _value(function.__kwdefaults__, functions, where),
        [_value(cell.cell_contents, functions, f"{where}: {name}") for name, cell in cells],
        [
            _reference(path, function.__globals__, functions, where)
            for path in _references(function.__code__)
        ],
    )


@cache
def _code(code: CodeType, docstring: str | None = None) -> tuple[Any, ...]:
    constants = code.co_consts
    if docstring is not None and constants[:1] == (docstring,):
        constants = (None, *constants[1:])
    return (
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
        (code.co_code, getattr(code, "co_exceptiontable", b"")),
        (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
        [
            _code(each) if isinstance(each, CodeType) else _value(each, [], code.co_name)
            for each in constants
        ],
    )


@cache
def _references(code: CodeType) -> tuple[tuple[str, ...], ...]:
    """Global names in a code object, each with the chain of attributes that follows it."""
    paths: dict[tuple[str, ...], None] = {}  # in order, each once
    path: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            paths[path] = None
            path = (instruction.argval,)
        elif path and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            path = (*path, instruction.argval)
        elif path and instruction.opname != "EXTENDED_ARG":
            paths[path] = None
            path = ()
    paths[path] = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            paths.update(dict.fromkeys(_references(constant)))
    return tuple(path for path in paths if path)


def _reference(
    path: tuple[str, ...], names: dict[str, Any], functions: list[Any], where: str
) -> tuple[str, Any]:
    """Global name, or attribute of a module, with the stamp of its value."""
    missing = object()
    value = names.get(path[0], getattr(builtins, path[0], missing))
    name = path[0]
    for attribute in path[1:]:
        if not isinstance(value, ModuleType):
            break  # an attribute of a value is part of the value
        value = getattr(value, attribute, missing)
        name = f"{name}.{attribute}"
    if value is missing:
        raise FingerprintError(f"{where} uses {name}, which is not defined where it is compiled")
    return name, _value(value, functions, f"{where}: {name}")


def _value(value: Any, functions: list[Any], where: str) -> Any:
    """Stamp of a value; compiled functions are added to `functions`."""

    def parts(values: Iterable[Any]) -> list[Any]:
        return [_value(each, functions, where) for each in values]

    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind in _PLAIN:
        return name, repr(value)
    if isinstance(value, (tuple, list)):
        return name, parts(value)
    if isinstance(value, (set, frozenset)):
        return name, sorted(map(repr, parts(value)))
    if isinstance(value, dict):
        return name, sorted(map(repr, zip(parts(value), parts(value.values()), strict=True)))
    if isinstance(value, slice):
        return name, parts((value.start, value.stop, value.step))
    if isinstance(value, enum.Enum):
        return name, value.name, parts([value.value])
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        return name, repr(value.dtype), np.shape(value), value.tobytes()
    if isinstance(value, (np.dtype, np.ufunc, numba.types.Type)):
        return name, str(value)
    if isinstance(getattr(value, "py_func", None), FunctionType):
        if value.py_func not in functions:
            functions.append(value.py_func)
        options = _value(value.targetoptions, functions, f"{where}, options")
        return "function", functions.index(value.py_func), options
    definition = getattr(value, "_defn", None)  # function of an @intrinsic
    if isinstance(definition, FunctionType):
        cells = (each.cell_contents for each in definition.__closure__ or ())
        made_of = [repr(each) for each in cells if isinstance(each, (int, str))]
        return name, definition.__qualname__, module_digest(definition.__module__), made_of
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        return "named tuple", value.__qualname__, repr(value._fields)
    if callable(value) and _library(value):
        return name, value.__module__, value.__qualname__
    raise FingerprintError(
        f"{where} is a {name}. A kernel may use numbers, strings, arrays, tuples of these, "
        "classes of named tuples, functions that are @inlined or an @intrinsic, and attributes of "
        "modules taken as module.NAME: the cache could not detect a change of other values"
    )


def _library(value: Callable[..., Any]) -> bool:
    """True if a function or type belongs to a library whose version is in the fingerprint."""
    module = getattr(value, "__module__", None) or ""
    return module.split(".")[0] in _LIBRARIES and hasattr(value, "__qualname__")
