"""Compiles one function for one signature, or loads its machine code from disk.

A kernel reads its arrays itself (array_argument.py) where that is proven to work (proof.py), else
it is called through Numba's dispatch. That remembers types by a fingerprint of the argument that
leaves out alignment and byte order: after one unaligned array it reads byte-swapped numbers as
plain ones. So the arrays are checked in Python first; refusals and their messages are the same.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types

from rnea_control.kernels.disk_cache import keep_on_disk
from rnea_control.kernels.fingerprint import fingerprint, module_digest, processor

# The code by which a kernel reads its arrays itself.
ENTRY_MODULE = "rnea_control.kernels.array_argument"

EntrySignature = Callable[[str], Any]
# Of each kernel, by what Python calls: its source, what keeps its machine code, and its address.
_kernels: dict[Any, tuple[Any, Any, int]] = {}
# What `compiled` is to be called with, where kernels are only collected; see side_by_side.py.
collected: list[tuple[Any, ...]] | None = None


def _options() -> dict[str, Any]:
    """Options of Numba for all that is compiled."""
    options: dict[str, Any] = {
        "error_model": "numpy",
        "fastmath": {"contract"},
        "no_cfunc_wrapper": True,  # nobody calls by a C function's address
    }
    try:
        known = hasattr(importlib.import_module("numba.core.options").DefaultOptions, "_nrt")
    except (ImportError, AttributeError):
        known = False
    if known:
        # Without the memory manager, a kernel that allocates does not compile.
        return {**options, "_nrt": False}
    warnings.warn(
        f"Numba {numba.__version__} has no option _nrt: a kernel that allocates is not refused",
        RuntimeWarning,
        stacklevel=2,
    )
    # Sets up the memory manager, which kernels that come from disk may need then.
    importlib.import_module("numba.core.registry").cpu_target.target_context.refresh()
    return options


OPTIONS = _options()


def objection(check: Callable[[], str | None], consequence: str) -> str:
    """Why private parts of libraries are not used, in words, which a warning says too; empty if
    `check`, which may fail in any way, has nothing against them."""
    try:
        reason = check() or ""
    except Exception as error:  # whatever NumPy, Numba or llvmlite changed
        reason = f"private parts of a library have changed, {error!r}"
    if reason:
        versions = f"NumPy {np.__version__}, Numba {numba.__version__}"
        text = f"{reason}. {consequence}, nothing else changes ({versions})"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    return reason


def compiled(
    function: Any, signature: str, nogil: bool, entry_signature: EntrySignature | None
) -> Any:
    """`function` compiled for `signature`; any other arguments raise TypeError.

    Args:
        function: a Python function.
        signature: in Numba's notation.
        nogil: whether other Python threads may run during a call.
        entry_signature: that of `array_argument`: the kernel then reads and checks its arrays
            itself. If None, it is called through Numba's dispatch.
    """
    options = {"nogil": nogil, **OPTIONS}
    dispatcher: Any = numba.njit(**options)(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT
        return function
    of_entry = module_digest(ENTRY_MODULE) if entry_signature else "dispatch"
    variant = (signature, entry_signature is None, sys.implementation.cache_tag, processor()[0])
    stamp = fingerprint(function, options, signature, of_entry)
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


def address(kernel: Any) -> int | None:
    """Where the machine code of a kernel begins, for others to call it; None if it has none."""
    return _kernels[kernel][2] if kernel in _kernels else None


def source(kernel: Any) -> Any:
    """The function that a kernel is made of."""
    return _kernels[kernel][0] if kernel in _kernels else inspect.unwrap(kernel)


def dispatched(dispatcher: Any, signature: str) -> Callable[..., Any]:
    """Compiles a Numba dispatcher for `signature` and for nothing else; returns the function to
    call, which raises TypeError for all other arguments."""
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    (kinds,) = dispatcher.signatures
    wanted = [
        (i, kind, np.dtype(str(kind.dtype)))
        for i, kind in enumerate(kinds)
        if isinstance(kind, types.Array)
    ]
    count = len(kinds)

    def call(*arguments: Any) -> Any:
        if len(arguments) != count:
            raise TypeError(f"takes {count} arguments, not {len(arguments)}")
        for i, kind, dtype in wanted:
            if not _is_of(arguments[i], kind, dtype):
                raise TypeError(refusal(kind))
        return dispatcher(*arguments)

    return call


def refusal(kind: types.Array) -> str:
    """What an argument is that is not of this type."""
    wanted = "C-contiguous, writeable" if kind.mutable else "C-contiguous"
    return f"not a {wanted} {kind.dtype} array of {kind.ndim} dimensions"


def _is_of(array: Any, kind: types.Array, dtype: np.dtype) -> bool:
    """Whether it is an array, by its true type, of this dtype and dimensions, that is C-contiguous,
    aligned, and writeable unless it is only read."""
    if not issubclass(type(array), np.ndarray) or array.ndim != kind.ndim:
        return False
    if array.dtype is not dtype and (array.dtype.num != dtype.num or not array.dtype.isnative):
        return False
    flags = array.flags
    return flags.carray or (not kind.mutable and flags.c_contiguous and flags.aligned)
