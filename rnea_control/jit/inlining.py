"""Functions that are compiled into kernels, and only there.

Numba optimizes such a function separately, translates it into machine code with an entry for
Python, and optimizes it again in each kernel that calls it. Only the last step is useful: without
the other steps kernels compile in six tenths of the time, to code of the same speed. Leaving them
out relies on private parts of Numba, which are tested on a small function before the first
compilation; if the test fails, all steps are done.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numba

from rnea_control.jit.compilation import OPTIONS, objection

_CONSEQUENCE = "Kernels take longer to compile"
# Reason for doing all steps; empty if they are left out.
MISSING = ""
try:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler
    from numba.core.registry import CPUDispatcher
except ImportError as error:
    MISSING = objection(partial(str, error), _CONSEQUENCE)
    JITCodeLibrary = Compiler = CPUDispatcher = object  # type: ignore[misc, assignment]


class _Unfinished(JITCodeLibrary):
    """Code that is optimized and translated only with the kernel into which it is linked."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class _Pipeline(Compiler):
    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        *_, flags, _ = others
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        super().__init__(typing, target, _Unfinished(target.codegen(), "inlined"), *others)


class _OnTrial(CPUDispatcher):
    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)

    def compile(self, signature: Any) -> Any:
        self._compiler.pipeline_class = _Pipeline  # type: ignore[attr-defined]
        return super().compile(signature)

    def add_overload(self, result: Any) -> None:
        if result.entry_point is not None:
            super().add_overload(result)
            return
        # Numba looks up the function by its entry point.
        result = result._replace(entry_point=object())
        self.targetctx.insert_user_function(result.entry_point, result.fndesc, [result.library])
        self.overloads[tuple(result.signature.args)] = result


class _Inlined(_OnTrial):
    def compile(self, signature: Any) -> Any:
        return super().compile(signature) if _proven() else CPUDispatcher.compile(self, signature)


def inlined(function: Callable[..., Any], kind: Any = _Inlined) -> Any:
    """Decorator for a small function that is compiled into each kernel that calls it. A call from
    Python runs the Python function."""
    dispatcher: Any = numba.njit(forceinline=True, **OPTIONS)(function)
    if dispatcher is function or MISSING:  # NUMBA_DISABLE_JIT
        return dispatcher
    return kind(function, targetoptions=dispatcher.targetoptions)


def shared(function: Callable[..., Any]) -> Any:
    """Like `inlined`, for a large function that a kernel calls in several places: it is compiled
    into the kernel once."""
    dispatcher: Any = numba.njit(**OPTIONS)(function)
    if dispatcher is function or MISSING:  # NUMBA_DISABLE_JIT
        return dispatcher
    return _Inlined(function, targetoptions=dispatcher.targetoptions)


@cache
def _proven() -> bool:
    return not objection(_difference, _CONSEQUENCE)


def _difference() -> str:
    """Difference between the function compiled into a kernel and its source; empty if there is
    none."""

    def half(x: float) -> float:
        return 0.5 * x

    inner: Any = inlined(half, _OnTrial)

    def quarter(x: float) -> float:
        return inner(inner(x))

    outer: Any = inlined(quarter, _OnTrial)

    def kernel(x: float) -> float:
        return outer(x) + inner(x)

    found = numba.njit("f8(f8)", **OPTIONS)(kernel)(8.0)
    return "" if found == 6.0 else f"8/4 + 8/2 are {found}"
