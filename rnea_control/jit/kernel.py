"""Decorators of the numerical kernels.

Kernels are compiled without Numba's memory manager: the compilation of a kernel that allocates
fails. With NUMBA_DISABLE_JIT=1 in the environment kernels stay Python functions, slow and open to
inspection.

Compiled kernels are kept on disk: see disk_cache.py and fingerprint.py. They read their arrays
themselves if this is proven to work, else they are called through Numba's dispatch: see proof.py,
array_argument.py and compilation.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any

import numba

from rnea_control.jit import compilation
from rnea_control.jit.compilation import compiled
from rnea_control.jit.proof import proven_entry

_ENTRY = None if getattr(numba.config, "DISABLE_JIT", False) else proven_entry()
READS_ARRAYS = _ENTRY is not None  # True if machine code reads NumPy's arrays itself

# Numba's notation of other annotations of kernels than classes of record.py and rows.py.
_NOTATION = {
    **{"Vector": "f8[::1]", "Matrix": "f8[:,::1]", "Matrices": "f8[:,:,::1]"},
    **{"IntVector": "i8[::1]", "int": "i8", "float": "f8", "bool": "b1", "None": "void"},
}


def kernel(signature: str = "", nogil: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: compiles a function for `signature` at import, so that no call compiles. An
    `inlined` function can also be made a kernel.

    Args:
        signature: signature in Numba's notation; by default that of the annotations.
        nogil: True if other Python threads may run during a call. This costs time: for long calls
            only.
    """

    def compile_now(function: Callable[..., Any]) -> Any:
        function = getattr(function, "py_func", function)  # also for an inlined function
        arguments = function, signature or annotated(function), nogil, _ENTRY
        if compilation.collected is None:
            return compiled(*arguments)
        compilation.collected.append(arguments)
        return function

    return compile_now


def kernel_on_demand(
    signature: str = "", nogil: bool = False
) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: compiles a function at its first call; once, even if several threads call it. For
    functions that no running node calls, so that the node starts sooner.

    Args:
        signature: signature in Numba's notation; by default that of the annotations.
        nogil: True if other Python threads may run during a call. This costs time: for long calls
            only.
    """

    def defer(function: Callable[..., Any]) -> Any:
        lock = Lock()
        ready: list[Any] = []

        @wraps(function)
        def compile_and_call(*arguments: Any) -> Any:
            if not ready:
                with lock:
                    if not ready:
                        kinds = signature or annotated(function)
                        ready.append(compiled(function, kinds, nogil, _ENTRY))
            # Later calls by name go directly to the kernel, calls by reference through this
            # function.
            names = function.__globals__
            if names.get(function.__name__) is compile_and_call:
                names[function.__name__] = ready[0]
            return ready[0](*arguments)

        return compile_and_call

    return defer


def annotated(function: Callable[..., Any]) -> str:
    """Signature of a function's annotations in Numba's notation. Records and arrays with named rows
    keep the names of their classes."""
    kinds = map(str, function.__annotations__.values())
    *arguments, result = (_NOTATION.get(kind, kind) for kind in kinds)
    return f"{result}({', '.join(arguments)})"
