"""Kernels read arrays themselves only where that is proven; else all works through Numba's dispatch
and a warning says so."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_kernel import PACKAGE, Start

from rnea_control.kernels import proof
from rnea_control.kernels.array_record import ArrayRecord, DescrRecord, difference

DISPATCH = "through Numba's own dispatch"
ARRAYS = (*proof._taken(), *proof._refused())
FIELDS = [
    *(("array", name) for name, _ in ArrayRecord._fields_ if name != "head"),
    *(("dtype", name) for name, _ in DescrRecord._fields_ if name not in ("head", "other")),
]


def test_proven_here(start: Start) -> None:
    assert all(difference(array) is None for array in ARRAYS)
    told = start()
    assert told["said"] == [] and told["value"] == 6.0 and told["refused"]


def rearranged(fields: list) -> type[ctypes.Structure]:
    return type("Rearranged", (ctypes.Structure,), {"_fields_": fields})


@pytest.mark.parametrize(("of", "field"), FIELDS)
def test_every_wrong_offset_is_seen(of: str, field: str) -> None:
    right = ArrayRecord if of == "array" else DescrRecord
    fields = list(right._fields_)
    i = [name for name, _ in fields].index(field)
    gap = [("gap", ctypes.c_char * 4)]
    wrong = [
        rearranged([*fields[:i], *gap, *fields[i:]]),
        rearranged([*fields[: i - 1], fields[i], fields[i - 1], *fields[i + 1 :]]),
        rearranged([*fields[:i], *reversed(fields[i : i + 2]), *fields[i + 2 :]]),
    ]
    for each in wrong:
        if getattr(each, field).offset != getattr(right, field).offset:
            records = (each, DescrRecord) if of == "array" else (ArrayRecord, each)
            assert any(difference(array, *records) for array in ARRAYS)


def planted(tmp_path: Path, name: str, old: str, new: str) -> Path:
    """A copy of the kernels' package with one text in place of another."""
    copy = tmp_path / "copy" / "rnea_control"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE / "kernels", copy / "kernels", ignore=ignored)
    for file in ("__init__.py", "array_types.py", "exceptions.py"):
        shutil.copy(PACKAGE / file, copy)
    path = copy / "kernels" / name
    text = path.read_text()
    assert text.count(old) == 1, f"{name} no longer has {old!r} once"
    path.write_text(text.replace(old, new))
    return copy


# A field before each, so that it and all that follow stand elsewhere.
GAPS = {
    "type": '("type", _POINTER),',
    "data": '("data", _POINTER),',
    "nd": '("nd", ctypes.c_int),',
    "dimensions": '("dimensions", _POINTER),',
    "strides": '("strides", _POINTER),',
    "base": '("base", _POINTER),',
    "descr": '("descr", _POINTER),',
    "flags": '("flags", ctypes.c_int),',
    "byteorder": '("byteorder", ctypes.c_char),',
    "type_num": '("type_num", ctypes.c_int),',
}


@pytest.mark.parametrize("field", GAPS)
def test_wrong_field_falls_back(start: Start, tmp_path: Path, field: str) -> None:
    text = GAPS[field]
    copy = planted(tmp_path, "array_record.py", text, f'("gap", ctypes.c_char * 8), {text}')
    told = start(package=copy)
    (said,) = told["said"]
    assert DISPATCH in said and "NumPy" in said
    assert told["value"] == 6.0 and told["refused"]


WRONG_CODE = {
    "read-only is taken": ("0x0001 | 0x0100 | 0x0400", "0x0001 | 0x0100"),
    "strided is taken": ("0x0001 | 0x0100 | 0x0400", "0x0100 | 0x0400"),
    "unaligned is taken": ("0x0001 | 0x0100 | 0x0400", "0x0001 | 0x0400"),
    "any byte order is taken": ('"==", byte_order, _BYTE', '"!=", _BYTE(0), _BYTE'),
    "any type is taken": ('"==", type_num, _INT(dtype.num)', '"==", nd, nd'),
    "wrong size": ("reduce(builder.mul, shape)", "shape[0]"),
    "wrong strides": ("in shape[:0:-1]:", "in shape[1:]:"),
    "wrong length": ("gep(dimensions, [_INT(i)])", "gep(dimensions, [_INT(0)])"),
    "no such name": ("from numba.extending import NativeValue", "from numba.extending import New"),
}


@pytest.mark.parametrize("name", WRONG_CODE)
def test_wrong_entry_code_falls_back(start: Start, tmp_path: Path, name: str) -> None:
    told = start(package=planted(tmp_path, "array_argument.py", *WRONG_CODE[name]))
    (said,) = told["said"]
    assert DISPATCH in said
    assert told["value"] == 6.0 and told["refused"]


UNKNOWN = {
    "numpy": ("import numba, numpy; numpy.__version__ = '3.0.1'", "NumPy 3.0.1 is of a"),
    "numba": ("import numba; numba.__version__ = '1.2.0'", "Numba 1.2.0 is of a"),
    "a build without a version": (
        "import numba; numba.__version__ = '0+unknown'",
        "Numba 0+unknown is of a",
    ),
    "llvmlite": ("import llvmlite; llvmlite.__version__ = '1.0.0rc1'", "llvmlite 1.0.0rc1 is of a"),
    "a private name": (
        "import numba; numba.njit('f8(f8)')(lambda x: x); del numba.extending.unbox",
        "cannot import name 'unbox'",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_library_falls_back(start: Start, name: str) -> None:
    prelude, words = UNKNOWN[name]
    told = start(prelude)
    (said,) = told["said"]
    assert DISPATCH in said and words in said
    assert told["value"] == 6.0 and told["refused"]


def test_option_that_numba_no_longer_has(start: Start) -> None:
    told = start("from numba.core.options import DefaultOptions; del DefaultOptions._nrt")
    (said,) = told["said"]
    assert "no option _nrt" in said
    assert told["value"] == 6.0 and told["refused"]


@pytest.mark.explores
def test_fall_back_is_said_once(start: Start) -> None:
    more = "import rnea_control.kernels.kernel, rnea_control.dynamics"
    told = start(more, RNEA_CONTROL_NUMBA_DISPATCH="1")
    (said,) = told["said"]
    assert "RNEA_CONTROL_NUMBA_DISPATCH is set" in said
    assert start(RNEA_CONTROL_NUMBA_DISPATCH="0")["said"] == []


CORE = (
    *("test/kernels/test_array_argument.py", "test/kernels/test_sincos.py"),
    "test/dynamics/test_arguments.py",
    *(
        f"test/dynamics/test_{name}.py::test_agrees_with_pinocchio[mechanisms]"
        for name in ("rnea", "gravity", "crba", "forward_dynamics")
    ),
    "test/dynamics/test_rnea.py::test_planar_arm",
    # Not the test that a call makes no object at all: that is true of the fast way only. Here NumPy
    # hands out an array's flags as an object, which lives for an instant.
    "test/test_allocation.py::test_a_kernel_that_allocates_does_not_compile",
    "test/test_allocation.py::test_tick_from_bytes_to_bytes_allocates_nothing",
    "test/test_allocation.py::test_whole_tick_of_the_loop_holds_nothing",
)


@pytest.mark.explores
def test_core_of_the_suite_passes_with_numbas_dispatch() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CORE],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "RNEA_CONTROL_NUMBA_DISPATCH": "1", "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert "RNEA_CONTROL_NUMBA_DISPATCH is set" in done.stdout
