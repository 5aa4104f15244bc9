"""NumPy's C records of an array and of a dtype, as far as kernels read them.

`array_argument.py` reads an array at these offsets. `difference` compares what stands there with
NumPy's public attributes, so that a NumPy with another record is detected before any kernel reads
one. It follows a pointer only once it has found that the pointer is right.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_POINTER = ctypes.c_void_p
# Every object ends its head with a pointer to its type.
_HEAD: list[Any] = [
    ("head", ctypes.c_char * (object.__basicsize__ - ctypes.sizeof(_POINTER))),
    ("type", _POINTER),
]


class ArrayRecord(ctypes.Structure):
    """PyArrayObject of NumPy's C interface, up to the last field needed."""

    _fields_ = [
        *_HEAD,
        ("data", _POINTER),
        ("nd", ctypes.c_int),
        ("dimensions", _POINTER),
        ("strides", _POINTER),
        ("base", _POINTER),
        ("descr", _POINTER),
        ("flags", ctypes.c_int),
    ]


class DescrRecord(ctypes.Structure):
    """PyArray_Descr, the record of a dtype, up to the last field needed."""

    _fields_ = [
        *_HEAD,
        ("typeobj", _POINTER),
        ("kind", ctypes.c_char),
        ("char", ctypes.c_char),
        ("byteorder", ctypes.c_char),
        ("other", ctypes.c_char),
        ("type_num", ctypes.c_int),
    ]


def difference(
    array: np.ndarray,
    array_record: type[ctypes.Structure] = ArrayRecord,
    descr_record: type[ctypes.Structure] = DescrRecord,
) -> str | None:
    """The first difference between the records of `array` and its dtype and what NumPy says, in
    words; None if they agree."""
    for record, object_ in ((array_record, array), (descr_record, array.dtype)):
        if ctypes.sizeof(record) > type(object_).__basicsize__:
            return f"{type(object_).__name__} is smaller than its record"
    found = array_record.from_address(id(array))
    said = {
        "type": id(type(array)),
        "data": array.__array_interface__["data"][0] or None,
        "nd": array.ndim,
        "base": None if array.base is None else id(array.base),
        "descr": id(array.dtype),
        "flags": array.flags.num,
    }
    wrong = _first_difference("array", found, said) or _difference_of_sizes(array, found)
    if wrong:
        return wrong
    dtype = array.dtype
    said = {
        "type": id(type(dtype)),
        "typeobj": id(dtype.type),
        "kind": dtype.kind.encode(),
        "char": dtype.char.encode(),
        "byteorder": dtype.byteorder.encode(),
        "type_num": dtype.num,
    }
    return _first_difference("dtype", descr_record.from_address(id(dtype)), said)


def _first_difference(of: str, found: ctypes.Structure, said: dict[str, Any]) -> str | None:
    for field, value in said.items():
        if getattr(found, field) != value:
            return f"the field {field} of the {of} reads {getattr(found, field)}, not {value}"
    return None


def _difference_of_sizes(array: np.ndarray, found: ctypes.Structure) -> str | None:
    """The same for the dimensions and strides, which stand one after the other in memory."""
    if array.ndim == 0:
        return None
    sizes = ctypes.c_ssize_t * array.ndim
    if not found.dimensions or found.strides != found.dimensions + ctypes.sizeof(sizes):
        return "the dimensions and strides of the array are not one after the other"
    shape = tuple(sizes.from_address(found.dimensions))
    strides = tuple(sizes.from_address(found.strides))
    if (shape, strides) != (array.shape, array.strides):
        return f"the array reads shape {shape} and strides {strides}, not those that it has"
    return None
