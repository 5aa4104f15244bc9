"""Records: scalars of one owner, read and written under the same names by kernels and by Python.

A subclass of `Record` declares the fields, each with its initial value:

    class Example(Record):
        was_away: bool = False
        awake_at: float = 0.0  # [s]
        pose: Vector = numbers(7)  # position [m] and quaternion

An instance is Python's view of one record in memory of its own. A kernel has the class name in its
signature, `Example[::1]`, takes the instance's `array`, and reads fields of `array[0]`. Functions
that are compiled into kernels can also be called from Python, with the instance.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any, ClassVar

import numba
import numpy as np

from rnea_control.array_types import RecordArray

_PYTHON = bool(getattr(numba.config, "DISABLE_JIT", False))
_KINDS = {"int": np.int64, "float": np.float64, "bool": np.bool_}
_CODES = {"int": "q", "float": "d", "bool": "?"}  # of memory
_VECTOR = ""  # code of a vector


def numbers(count: int) -> Any:
    """Initial value of a field that is a vector of `count` numbers: zeros."""
    return np.zeros(count)


class Record:
    """Base class of records; fields are int, float, bool, or a Vector of a fixed size.

    Attributes:
        dtype: layout of the record.
        names: names of the fields.
        array: memory of the record, shape (1,).
    """

    dtype: ClassVar[np.dtype]
    names: ClassVar[tuple[str, ...]]
    _initial: ClassVar[dict[str, Any]]
    _places: ClassVar[tuple[tuple[slice, str], ...]]  # memory of each field, and its code

    def __init_subclass__(cls) -> None:
        kinds = inspect.get_annotations(cls)
        cls.names = tuple(kinds)
        cls._initial = {name: cls.__dict__[name] for name in kinds}
        fields: list[Any] = []
        for name, kind in kinds.items():
            size = len(cls._initial[name]) if kind == "Vector" else 0
            fields.append((name, np.float64, (size,)) if size else (name, _KINDS[kind]))
        cls.dtype = np.dtype((np.record, np.dtype(fields, align=True)))
        places: list[tuple[slice, str]] = []
        for number, (name, kind) in enumerate(kinds.items()):
            field, offset = cls.dtype.fields[name][:2]  # type: ignore[index]
            places.append((slice(offset, offset + field.itemsize), _CODES.get(kind, _VECTOR)))
            setattr(cls, name, _vector(number) if kind == "Vector" else _field(number))
        cls._places = tuple(places)
        RECORDS[cls.__name__] = cls

    def __init__(self) -> None:
        self.array: RecordArray = np.zeros(1, self.dtype)
        memory: Any = self.array.view(np.uint8).data
        self._fields: tuple[Any, ...] = tuple(
            memory[place].cast(code) if code else np.frombuffer(memory[place])
            for place, code in self._places
        )
        self.reset()

    @property
    def argument(self) -> Any:
        """Argument for a kernel: the array. Where kernels are Python functions, a tuple with the
        record itself, whose fields are faster than those of NumPy's records."""
        return (self,) if _PYTHON else self.array

    @classmethod
    def several(cls, count: int) -> RecordArray:
        """Records with initial values, shape (count,)."""
        return np.repeat(cls().array, count)

    def reset(self) -> None:
        """Sets all fields to their initial values."""
        for name, value in self._initial.items():
            self.array[name] = value


RECORDS: dict[str, type[Record]] = {}  # by the names of the classes


def _field(number: int) -> Any:
    """A field as a property of its memory, which is faster than a look-up by name."""

    def read(record: Record) -> Any:
        return record._fields[number][0]

    def write(record: Record, value: Any) -> None:
        record._fields[number][0] = value

    return property(read, write)


def _vector(number: int) -> Any:
    """A field as a property that reads its view, and writes its numbers."""

    def read(record: Record) -> Any:
        return record._fields[number]

    def write(record: Record, value: Any) -> None:
        record._fields[number][:] = value

    return property(read, write)


def layouts(signature: str) -> list[str]:
    """Layouts of the records that a signature names."""
    return [
        f"{name} {RECORDS[name].dtype.fields}"
        for name in re.findall(r"[A-Z]\w+", signature)
        if name in RECORDS
    ]


def numba_type(record: type[Record]) -> Any:
    """Numba's type of a record."""
    return numba.from_dtype(record.dtype)


@cache
def record_of(kind: Any) -> type[Record]:
    """Record class of Numba's type."""
    return next(each for each in RECORDS.values() if numba_type(each) == kind)
