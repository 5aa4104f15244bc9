"""Kernels take exactly the arrays they were compiled for, and read them right."""

from __future__ import annotations

import pickle
import sys
from unittest.mock import Mock

import numpy as np
import pytest

from rnea_control.kernels.kernel import kernel


def _sum(array):
    total = array.dtype.type(0)
    for i in range(array.shape[0]):
        total += array[i]
    return total


def _entry(array, i, j, k):
    return array[i, j, k]


def _size_and_last(array, sizes):
    sizes[0], sizes[1], sizes[2] = array.shape
    sizes[3] = array.size
    return array.flat[array.size - 1]


TYPES = ("f8", "i8", "u1", "u8")
SUM = {code: kernel(f"{code}({code}[::1])")(_sum) for code in TYPES}
ENTRY = kernel("f8(f8[:,:,::1], i8, i8, i8)")(_entry)
SIZES = kernel("f8(f8[:,:,::1], i8[::1])")(_size_and_last)


class Subclass(np.ndarray):
    pass


class Pretender:
    __class__ = property(lambda self: np.ndarray)


@pytest.mark.parametrize("code", TYPES)
@pytest.mark.parametrize("other", [*np.typecodes["All"], ">f8", ">i8", ">u8", "U2", "m8[s]"])
def test_other_types_are_refused(code: str, other: str) -> None:
    array = np.zeros(5, dtype=other)
    if array.dtype == np.dtype(code) and array.dtype.num == np.dtype(code).num:
        assert SUM[code](array) == 0
    else:
        with pytest.raises(TypeError, match=r"not a C-contiguous, writeable .* of 1 dim"):
            SUM[code](array)


def read_only() -> np.ndarray:
    array = np.zeros(3)
    array.flags.writeable = False
    return array


REFUSED = {
    "strided": np.zeros(6)[::2],
    "reversed": np.zeros(3)[::-1],
    "broadcast": np.broadcast_to(0.0, 3),
    "read-only": read_only(),
    "of bytes": np.frombuffer(bytes(24)),
    "unaligned": np.frombuffer(bytearray(25), offset=1),
    "a matrix": np.zeros((1, 3)),
    "of three dimensions": np.zeros((1, 3, 1)),
    "of 32 dimensions": np.zeros((1,) * 32),
    "of no dimension": np.array(1.0),
    "a record": np.zeros(3, dtype=[("x", float)]),
    "a scalar": np.float64(1.0),
    "a list": [1.0, 2.0],
    "a memoryview": memoryview(bytearray(8)),
    "None": None,
    "a number": 3,
    "a class": np.ndarray,
    "an object that claims to be one": Pretender(),
    "a mock": Mock(spec=np.ndarray),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_layouts_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match="not a C-contiguous"):
        SUM["f8"](REFUSED[name])


def test_order_of_columns_is_refused() -> None:
    with pytest.raises(TypeError):
        ENTRY(np.asfortranarray(np.zeros((2, 3, 4))), 0, 0, 0)
    with pytest.raises(TypeError):
        ENTRY(np.zeros((2, 3, 4)).transpose(2, 1, 0), 0, 0, 0)


ACCEPTED = {
    "pickled": pickle.loads(pickle.dumps(np.arange(3.0))),
    "of a subclass": np.arange(3.0).view(Subclass),
    "a view": np.arange(-1.0, 3.0)[1:],
    "of a buffer": np.frombuffer(bytearray(np.arange(3.0).tobytes())),
    "a row": np.arange(6.0).reshape(2, 3)[0],
    "with metadata": np.arange(3.0).view(np.dtype("f8", metadata={"unit": "rad"})),
    "of one byte order by name": np.arange(3.0).view(np.dtype("f8").newbyteorder("=")),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_same_array_by_another_way_is_accepted(name: str) -> None:
    assert SUM["f8"](ACCEPTED[name]) == 3.0


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 1), (5, 1, 7), (1, 6, 1)])
def test_every_entry_is_where_numpy_has_it(shape: tuple[int, int, int]) -> None:
    array = np.random.default_rng(0).random(shape)
    for index in np.ndindex(shape):
        assert ENTRY(array, *index) == array[index]
    sizes = np.zeros(4, dtype=np.int64)
    assert SIZES(array, sizes) == array[-1, -1, -1]
    assert tuple(sizes) == (*shape, array.size)


def test_empty_array() -> None:
    assert SUM["f8"](np.zeros(0)) == 0.0


def test_argument_is_released() -> None:
    array = np.zeros(3)
    before = sys.getrefcount(array)
    for _ in range(100):
        SUM["f8"](array)
        with pytest.raises(TypeError):
            SUM["f8"](array, array)
        with pytest.raises(TypeError):
            SUM["i8"](array)
    assert sys.getrefcount(array) == before
