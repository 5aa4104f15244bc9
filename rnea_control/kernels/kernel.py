"""Compilation of the numerical kernels: before any tick, and never from a stale cache.

Numba keeps compiled functions on disk beside the source file of each. It compiles anew when that
file changes, but not when a function that it calls, in another file, does. A controller must not
run old arithmetic, so here the cache is stamped with a digest of all the kernel sources instead.

Kernels are compiled without Numba's memory manager: one that allocates does not compile. With
NUMBA_DISABLE_JIT=1 in the environment they stay Python functions, slow and open to inspection.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

from rnea_control.kernels.array_argument import entry_signature

_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "_nrt": False}
_PACKAGE = Path(__file__).parents[1]


def kernel(signature: str, nogil: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: compiles a function for `signature` now, so that no call ever does.

    Args:
        signature: in Numba's notation.
        nogil: whether other Python threads may run during a call. Letting them costs time, so this
            is for calls that are long.
    """
    return lambda function: _compiled(function, signature, nogil)


def kernel_on_demand(signature: str, nogil: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: compiles a function at its first call; arguments as of `kernel`. For what no tick
    needs: the node starts in a third of the time."""

    def defer(function: Callable[..., Any]) -> Any:
        def compile_and_call(*arguments: Any) -> Any:
            compiled = _compiled(function, signature, nogil)
            setattr(sys.modules[function.__module__], function.__name__, compiled)
            return compiled(*arguments)

        return compile_and_call

    return defer


def _compiled(function: Callable[..., Any], signature: str, nogil: bool) -> Any:
    dispatcher: Any = numba.njit(cache=True, nogil=nogil, **_OPTIONS)(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT
        return function
    # Numba has no public way to give a cache a stamp of one's own.
    dispatcher._cache._cache_file._source_stamp = _source_digest()
    dispatcher.compile(entry_signature(signature))
    (compiled,) = dispatcher.overloads.values()
    # Without Numba's dispatch, as the arrays are checked on entry: see array_argument.py.
    return compiled.entry_point


def inlined(function: Callable[..., Any]) -> Any:
    """Decorator: a small function that kernels call; it is compiled into each of them."""
    return numba.njit(forceinline=True, **_OPTIONS)(function)


@cache
def _source_digest() -> str:
    digest = hashlib.sha256()
    for room in ("model", "dynamics", "control", "ros", "node"):
        for path in sorted((_PACKAGE / room).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
