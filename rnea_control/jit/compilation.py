"""Compiles one function for one signature, or loads its machine code from disk.

A kernel reads its arrays itself (array_argument.py) if this is proven to work (proof.py), else it
is called through Numba's dispatch. Numba's dispatch identifies types by a fingerprint without
alignment and byte order: after one unaligned array it reads byte-swapped numbers as native numbers.
Therefore the arrays are checked in Python first; refusals and their messages are the same.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import sigutils
from numba.np.numpy_support import as_dtype

from rnea_control.jit.disk_cache import keep_on_disk
from rnea_control.jit.fingerprint import fingerprint, module_digest, processor
from rnea_control.jit.group import group_types, spelled_out
from rnea_control.jit.record import RECORDS, layouts, numba_type, record_of
from rnea_control.jit.rows import NamedRows, RowsType, row_layouts, rows_types

# Module with the code by which a kernel reads its arrays itself.
ENTRY_MODULE = "rnea_control.jit.array_argument"
# Modules whose code is a part of every kernel.
_PARTS = ("rnea_control.jit.compilation", "rnea_control.jit.rows", "rnea_control.jit.group")

EntrySignature = Callable[[str], Any]
# Source, owner of the machine code, and address of each kernel, by its Python callable.
_kernels: dict[Any, tuple[Any, Any, int]] = {}
# Arguments for `compiled`, while kernels are only collected; see side_by_side.py.
collected: list[tuple[Any, ...]] | None = None


def _options() -> dict[str, Any]:
    """Options of Numba for all compiled functions."""
    options: dict[str, Any] = {
        "error_model": "numpy",
        "fastmath": {"contract"},
        "no_cfunc_wrapper": True,  # unused: no caller has a C signature
    }
    try:
        known = hasattr(importlib.import_module("numba.core.options").DefaultOptions, "_nrt")
    except (ImportError, AttributeError):
        known = False
    if known:
        # Without the memory manager, the compilation of a kernel that allocates fails.
        return {**options, "_nrt": False}
    warnings.warn(
        f"Numba {numba.__version__} has no option _nrt: a kernel that allocates is not refused",
        RuntimeWarning,
        stacklevel=2,
    )
    # Sets up the memory manager, which kernels from disk may need in this case.
    importlib.import_module("numba.core.registry").cpu_target.target_context.refresh()
    return options


OPTIONS = _options()


def objection(check: Callable[[], str | None], consequence: str) -> str:
    """Runs `check`, which may fail in any way, on private parts of libraries.

    Returns the reason for not using them, and warns with reason and consequence; empty if they can
    be used."""
    try:
        reason = check() or ""
    except Exception as error:  # any change of NumPy, Numba or llvmlite
        reason = f"private parts of a library have changed, {error!r}"
    if reason:
        versions = f"NumPy {np.__version__}, Numba {numba.__version__}"
        text = f"{reason}. {consequence}, nothing else changes ({versions})"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return reason


def compiled(
    function: Any, signature: str, nogil: bool, entry_signature: EntrySignature | None
) -> Any:
    """Compiles `function` for `signature`; arguments of other types raise TypeError.

    Args:
        function: Python function.
        signature: signature in Numba's notation.
        nogil: True if other Python threads may run during a call.
        entry_signature: `entry_signature` of `array_argument`: the kernel reads and checks its
            arrays itself. If None, it is called through Numba's dispatch.
    """
    options = {"nogil": nogil, **OPTIONS}
    dispatcher: Any = numba.njit(**options)(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT
        return function
    of_entry = module_digest(ENTRY_MODULE) if entry_signature else "dispatch"
    parts = [of_entry, *map(module_digest, _PARTS)]
    variant = (signature, entry_signature is None, sys.implementation.cache_tag, processor()[0])
    whole = spelled_out(signature)
    of_names = whole, layouts(whole), row_layouts(whole)
    stamp = fingerprint(function, options, signature, of_names, parts)
    keep_on_disk(dispatcher, stamp, repr(variant))
    if entry_signature is None:
        entry = dispatched(dispatcher, signature)
    else:
        dispatcher.compile(entry_signature(signature))
    (result,) = dispatcher.overloads.values()
    if entry_signature is not None:
        entry = result.entry_point
    name = result.fndesc.llvm_func_name
    code = result.library.get_pointer_to_function(name)
    _kernels[entry] = function, result.library, code
    return entry


def compiled_in_memory(function: Any, signature: str) -> tuple[Any, int]:
    """Compiles a function of a user, whose code no fingerprint knows, without a copy on disk;
    returns the owner of the machine code, and its address."""
    dispatcher: Any = numba.njit(**OPTIONS)(function)
    arguments, result = parsed(signature)
    dispatcher.compile(result(*arguments))
    (overload,) = dispatcher.overloads.values()
    name = overload.fndesc.llvm_func_name
    return dispatcher, overload.library.get_pointer_to_function(name)


def parsed(signature: str) -> Any:
    """Numba's types of the arguments and of the result of a signature in Numba's notation, where
    records, arrays with named rows and groups have the names of their classes."""
    records = {name: numba_type(record) for name, record in RECORDS.items()}
    names = {**vars(types), **records, **rows_types()}
    names.update(group_types(names))
    return sigutils.normalize_signature(eval(signature, {}, names))


def address(kernel: Any) -> int | None:
    """Address of a kernel's machine code; None if the kernel is not compiled."""
    return _kernels[kernel][2] if kernel in _kernels else None


def source(kernel: Any) -> Any:
    """Python function of a kernel."""
    return _kernels[kernel][0] if kernel in _kernels else inspect.unwrap(kernel)


def dispatched(dispatcher: Any, signature: str) -> Callable[..., Any]:
    """Compiles a Numba dispatcher for `signature` only; returns the function to call, which raises
    TypeError for arguments of other types."""
    arguments, result = parsed(signature)
    dispatcher.compile(result(*arguments))
    dispatcher.disable_compile()
    (kinds,) = dispatcher.signatures
    (overload,) = dispatcher.overloads.values()
    # Types are checked below. Numba's look-up of the types makes objects for a group at each call.
    grouped = any(isinstance(kind, types.NamedTuple) for kind in kinds)
    function = overload.entry_point if grouped else dispatcher
    count = len(kinds)

    def call(*arguments: Any) -> Any:
        if len(arguments) != count:
            raise TypeError(f"takes {count} arguments, not {len(arguments)}")
        _check(arguments, kinds)
        return function(*arguments)

    return call


@cache
def _dtype(kind: Any) -> np.dtype:
    """NumPy's type of the entries; made once, as a tick must not make objects."""
    return as_dtype(kind)


def _check(arguments: Any, kinds: Any) -> None:
    """Refuses arrays and groups of other types."""
    for argument, kind in zip(arguments, kinds, strict=True):
        if isinstance(kind, types.NamedTuple):
            if type(argument) is not kind.instance_class:
                raise TypeError(refusal(kind))
            _check(argument, kind.types)
        elif isinstance(kind, types.Array) and not _is_of(argument, kind, _dtype(kind.dtype)):
            raise TypeError(refusal(kind))


def refusal(kind: Any) -> str:
    """Words for an argument that is not of this type."""
    if isinstance(kind, types.NamedTuple):
        return f"not a {kind.instance_class.__name__}"
    wanted = "C-contiguous, writeable" if kind.mutable else "C-contiguous"
    if isinstance(kind, NamedRows):
        rows: Any = kind
        return f"not a {wanted} {rows.rows.__name__} of {rows.ndim} dimensions"
    of_record = isinstance(kind.dtype, types.Record)
    dtype = record_of(kind.dtype).__name__ if of_record else kind.dtype
    return f"not a {wanted} {dtype} array of {kind.ndim} dimensions"


def _is_of(array: Any, kind: Any, dtype: np.dtype) -> bool:
    """True for an array, by its true type, of this dtype and number of dimensions, that is
    C-contiguous, aligned, and writeable unless `kind` is read-only."""
    if not issubclass(type(array), np.ndarray) or array.ndim != kind.ndim:
        return False
    of_rows = isinstance(kind, RowsType)
    if of_rows and (type(array) is not kind.rows or array.shape[-2] != kind.rows.count):
        return False
    if isinstance(kind.dtype, types.Record):
        if array.dtype is not record_of(kind.dtype).dtype:
            return False
    elif array.dtype is not dtype and (array.dtype.num != dtype.num or not array.dtype.isnative):
        return False
    flags = array.flags
    return flags.carray or (not kind.mutable and flags.c_contiguous and flags.aligned)
