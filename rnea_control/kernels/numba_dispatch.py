"""Calls a kernel through Numba's dispatch, where it must not read arrays itself (proof.py).

Numba's dispatch remembers types by a fingerprint of the argument that leaves out alignment and byte
order: after one unaligned array it reads byte-swapped numbers as plain ones. So the arrays are
checked in Python first. Refusals and their messages are the same as in `array_argument.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types


def dispatched(dispatcher: Any, signature: str) -> Callable[..., Any]:
    """Compiles a Numba dispatcher for `signature` and for nothing else; returns the function to
    call, which raises TypeError for all other arguments."""
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    (kinds,) = dispatcher.signatures
    wanted = [
        (i, np.dtype(str(kind.dtype)), kind.ndim)
        for i, kind in enumerate(kinds)
        if isinstance(kind, types.Array)
    ]
    count = len(kinds)

    def call(*arguments: Any) -> Any:
        if len(arguments) != count:
            raise TypeError(f"takes {count} arguments, not {len(arguments)}")
        for i, dtype, ndim in wanted:
            if not _is_of(arguments[i], dtype, ndim):
                raise TypeError(f"not a C-contiguous, writeable {dtype} array of {ndim} dimensions")
        return dispatcher(*arguments)

    return call


def _is_of(array: Any, dtype: np.dtype, ndim: int) -> bool:
    """Whether it is an array, by its true type, of this dtype and dimensions, that is C-contiguous,
    aligned and writeable."""
    if not issubclass(type(array), np.ndarray) or array.ndim != ndim:
        return False
    if array.dtype is not dtype and (array.dtype.num != dtype.num or not array.dtype.isnative):
        return False
    return array.flags.carray
