"""Kernels read arrays themselves only where that is proven; else by Numba's dispatch, as told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tiny_kernel import PACKAGE

ENTRY, FLAGS = "array_argument.py", "0x0001 | 0x0100 | 0x0400"
DISPATCH = "through Numba's own dispatch"


def test_proven_here(start) -> None:
    told = start()
    assert told["said"] == [] and told["value"] == 6.0 and told["refused"]


def planted(tmp_path: Path, old: str, new: str) -> Path:
    copy = tmp_path / "copy" / "rnea_control"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE / "jit", copy / "jit", ignore=ignored)
    for file in ("__init__.py", "array_types.py", "exceptions.py"):
        shutil.copy(PACKAGE / file, copy)
    path = copy / "jit" / ENTRY
    text = path.read_text()
    assert text.count(old) == 1, f"{ENTRY} no longer has {old!r} once"
    path.write_text(text.replace(old, new))
    return copy


GAP = '("gap", ctypes.c_char * 8), '
PLANTED = {
    "read-only is taken": (FLAGS, "0x0001 | 0x0100"),
    "strided is taken": (FLAGS, "0x0100 | 0x0400"),
    "unaligned is taken": (FLAGS, "0x0001 | 0x0400"),
    "any byte order is taken": ('"==", byte_order, _BYTE', '"!=", _BYTE(0), _BYTE'),
    "any type is taken": ('"==", type_num, _INT(dtype.num)', '"==", nd, nd'),
    "any record is taken": ('"==", descr, of_class', '"==", descr, descr'),
    "wrong size": ("reduce(builder.mul, shape)", "shape[0]"),
    "wrong strides": ("in shape[:0:-1]:", "in shape[1:]:"),
    "wrong length": ("gep(dimensions, [_INT(i)])", "gep(dimensions, [_INT(0)])"),
    "no such name": ("extending import NativeValue", "extending import New"),
    "fields of arrays": ('("dimensions", ', GAP + '("dimensions", '),
    "pointers to data": ('("data", ', GAP + '("data", '),
    "fields of types": ('("type_num", ', GAP + '("type_num", '),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_wrong_falls_back(start, tmp_path: Path, name: str) -> None:
    told = start(package=planted(tmp_path, *PLANTED[name]))
    (said,) = told["said"]
    assert DISPATCH in said and ("NumPy" in said or not name.startswith("fields"))
    assert told["value"] == 6.0 and told["refused"]


UNKNOWN = {
    "NumPy 3.0.1 is of a": "import numba, numpy; numpy.__version__ = '3.0.1'",
    "Numba 0+unknown is of a": "import numba; numba.__version__ = '0+unknown'",
    "llvmlite 1.0.0rc1 is of a": "import llvmlite; llvmlite.__version__ = '1.0.0rc1'",
    "cannot import name 'unbox'": "import numba; del numba.extending.unbox",
    "no option _nrt": "from numba.core.options import DefaultOptions; del DefaultOptions._nrt",
}


@pytest.mark.parametrize("words", UNKNOWN)
def test_unknown_library_is_done_without(start, words: str) -> None:
    told = start(UNKNOWN[words])
    (said,) = told["said"]
    assert words in said and (DISPATCH in said or "no option" in said)
    assert told["value"] == 6.0 and told["refused"]


# Functions are compiled into kernels by Numba's private parts, and without them.
MISSING = "import numba.core.codegen; del numba.core.codegen.JITCodeLibrary"
# A part of Numba that refuses what is not its own class.
REFUSING = """
import numba.core.codegen
library = numba.core.codegen.JITCodeLibrary
def finalize(self, whole=library.finalize):
    assert type(self) is library, "of another class"
    whole(self)
library.finalize = finalize
"""


@pytest.mark.parametrize(
    ("change", "reason"), [(MISSING, "JITCodeLibrary"), (REFUSING, "of another class")]
)
def test_functions_are_compiled_into_kernels(start, change: str, reason: str) -> None:
    told = start(change)
    (said,) = told["said"]
    assert told["value"] == 6.0 and reason in said
