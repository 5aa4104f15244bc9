"""Test at import, on arrays of many kinds, that kernels may read NumPy's arrays themselves.

`array_argument.py` relies on private parts of NumPy, Numba and llvmlite. Here the pointers that a
kernel follows are checked first; then a small kernel must read every valid array correctly and
refuse every other. On any difference, kernels are called through Numba's dispatch (compilation.py).
A call then takes one or two microseconds more; nothing else changes.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

import llvmlite
import numba
import numpy as np

from rnea_control.array_types import Vector
from rnea_control.jit.compilation import ENTRY_MODULE, EntrySignature, compiled, objection
from rnea_control.jit.record import Record
from rnea_control.jit.rows import Rows

# Environment variable that selects Numba's dispatch; 0 and an empty string do not.
DISPATCH_VARIABLE = "RNEA_CONTROL_NUMBA_DISPATCH"
# Major versions whose records and interfaces are known.
_KNOWN = {"NumPy": (np, ("1", "2")), "Numba": (numba, ("0",)), "llvmlite": (llvmlite, ("0",))}


class ProbeRecord(Record):
    """Record of the probe."""

    count: int = 3
    known: bool = True
    value: float = 0.5


class OtherRecord(Record):
    """Record of another class, of the same size."""

    count: int = 3
    given: bool = True
    value: float = 0.5


class ProbeRows(Rows):
    """Named rows of the probe."""

    time: float
    entries: Vector


class OtherRows(Rows):
    """Rows of another class, of the same size."""

    entries: Vector
    time: float


class _Subclass(np.ndarray):
    """Subclass of ndarray, which kernels accept too."""


def proven_entry() -> EntrySignature | None:
    """Entry of `array_argument` if it works here; else None, and a warning with the reason."""
    consequence = (
        "Kernels are called through Numba's own dispatch: each call takes one or two microseconds "
        "more"
    )
    if objection(_objection, consequence):
        return None
    entry: EntrySignature = importlib.import_module(ENTRY_MODULE).entry_signature
    return entry


def _objection() -> str | None:
    if os.environ.get(DISPATCH_VARIABLE, "0") not in ("", "0"):
        return f"{DISPATCH_VARIABLE} is set"
    for name, (module, known) in _KNOWN.items():
        if module.__version__.split(".")[0] not in known:
            return f"{name} {module.__version__} is of a major version that is not known"
    signature = (
        "f8(f8[:,::1], i8[::1], Array(u1, 1, 'C', True), u8[:,:,::1], ProbeRecord[::1], ProbeRows)"
    )
    entry = importlib.import_module(ENTRY_MODULE)
    if not all(map(entry.pointers_agree, (*_taken(), *_refused()))):
        return "NumPy keeps its arrays in another way"
    kernel = compiled(_probe, signature, False, entry.entry_signature)
    counts, words = np.zeros(13, np.int64), np.arange(24, dtype=np.uint64).reshape(2, 3, 4)
    octets = np.frombuffer(bytes(range(5)), np.uint8)  # read-only, as its argument
    record, named = ProbeRecord(), ProbeRows.zeros(2)
    for rows in _taken():
        of_rows = [*rows.shape, rows.size, *rows.strides]
        of_words = [*words.shape, words.size, *words.strides]
        total = float(rows[-1, -1]) + float(octets[-1]) + float(words[-1, -1, -1])
        record.reset()
        named.time, named.entries[:] = 0.25, (0.0, 8.0)
        right = kernel(rows, counts, octets, words, record.array, named) == total + 11.75
        if not right or counts.tolist() != [*of_rows, *of_words, octets.size]:
            return "the argument check reads an array wrong"
        if (record.count, record.known, record.value) != (4, False, -0.5):
            return "a kernel writes a record wrong"
        if named.tolist() != [[-1.0, 0.0], [7.0, 8.0]]:
            return "a kernel writes named rows wrong"
    good = (next(_taken()), counts, octets, words, record.array, named)
    others: tuple[Any, ...] = (None, 1.0, [[1.0]], np.ndarray, np.float64(1.0), octets.data)
    for place, taken in enumerate(good):
        more = [each for each in good if each is not taken]
        if taken is named:
            more += [OtherRows.zeros(2), named[1:], ProbeRows.zeros(2, 1), named.view(np.ndarray)]
        elif place == 0:
            more.pop()  # `named`, which is a matrix as well
        for wrong in (*_refused(), *others, *more):
            try:
                kernel(*good[:place], wrong, *good[place + 1 :])
            except TypeError:
                continue
            return f"the argument check takes {wrong!r} for another array"
    return None


def _probe(rows: Any, counts: Any, octets: Any, words: Any, records: Any, named: Any) -> float:
    """Fills `counts` with all sizes and strides, changes the record and the named rows, and returns
    the sum of the last entries and of the former numbers of the record."""
    counts[0], counts[1] = rows.shape
    counts[2] = rows.size
    counts[3], counts[4] = rows.strides
    counts[5], counts[6], counts[7] = words.shape
    counts[8] = words.size
    counts[9], counts[10], counts[11] = words.strides
    counts[12] = octets.shape[0]
    last = words[words.shape[0] - 1, words.shape[1] - 1, words.shape[2] - 1]
    record = records[0]
    before = record.count + record.value if record.known else 0.0
    record.count, record.known, record.value = 4, False, -0.5
    numbers = rows[rows.shape[0] - 1, rows.shape[1] - 1] + octets[octets.shape[0] - 1]
    before += named.entries[1] + named.time
    named.time, named.entries[0] = -1.0, 7.0
    return numbers + float(last) + before


def _taken() -> Iterator[np.ndarray]:
    """Matrices of float64 in C order, made in many ways."""
    numbers = np.arange(1.0, 13.0)
    yield numbers.reshape(3, 4)
    yield np.full((1, 1), 7.0)
    yield numbers[4:].reshape(4, 2)
    yield numbers.reshape(2, 6).view(_Subclass)
    yield np.frombuffer(bytearray(numbers.tobytes())).reshape(6, 2)


def _refused() -> Iterator[np.ndarray]:
    """Arrays that no argument of the probe may accept; most differ in one property only."""
    matrix = np.arange(1.0, 13.0).reshape(3, 4)
    yield OtherRecord().array
    yield np.zeros(1, np.dtype(ProbeRecord.dtype.descr, align=True))
    yield from (matrix.T, matrix[:, ::2], matrix[::-1], np.broadcast_to(1.0, (3, 4)))
    yield from (np.array(1.0), np.zeros((2, 2, 2)), np.zeros(0), np.zeros((1, 1, 1, 1)))
    for code in (">f8", ">i8", ">u8", "f4", "i4", "u4", "?", "i1", "c16", "m8[s]", "U2", "V8"):
        for shape in ((3,), (3, 4), (2, 3, 4)):
            yield np.zeros(shape, code)
    read_only = matrix.copy()
    read_only.flags.writeable = False
    yield read_only
    yield np.frombuffer(bytes(bytearray(24)), np.int64)  # also read-only
    yield np.frombuffer(bytearray(97), np.uint8, 96, 1).view(np.float64).reshape(3, 4)  # unaligned
