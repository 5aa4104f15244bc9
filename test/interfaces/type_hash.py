"""The type hash that a message package has compiled in."""

from __future__ import annotations

import ctypes
from importlib import import_module


class TypeHash(ctypes.Structure):
    """rosidl_type_hash_t"""

    _fields_ = (("version", ctypes.c_uint8), ("value", ctypes.c_uint8 * 32))


def type_hash(package: str, name: str) -> tuple[int, str]:
    """Version and value; `name` is "msg/Name" for example."""
    extension = import_module(f"{package}.{package}_s__rosidl_typesupport_c")
    library = ctypes.CDLL(extension.__file__)
    function = library[f"{package}__{name.replace('/', '__')}__get_type_hash"]
    function.restype = ctypes.POINTER(TypeHash)
    found = function(None).contents
    return found.version, bytes(found.value).hex()
