"""Kernels read arrays themselves only where that is proven; else by Numba's dispatch, as told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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
    shutil.copytree(PACKAGE / "kernels", copy / "kernels", ignore=ignored)
    for file in ("__init__.py", "array_types.py", "exceptions.py"):
        shutil.copy(PACKAGE / file, copy)
    path = copy / "kernels" / ENTRY
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
    ("change", "reasons"),
    [("", []), (MISSING, ["JITCodeLibrary"]), (REFUSING, ["of another class"])],
)
def test_functions_are_compiled_into_kernels(start, change: str, reasons: list[str]) -> None:
    told = start(change)
    assert told["value"] == 6.0 and len(told["said"]) == len(reasons)
    assert all(reason in text for reason, text in zip(reasons, told["said"], strict=True))


CORE = (
    *("test/kernels/test_kernel.py", "test/kernels/test_sincos.py"),
    "test/dynamics/test_arguments.py",
    "test/dynamics/test_every_robot.py::test_mechanism_agrees_with_pinocchio",
    "test/dynamics/test_closed_forms.py::test_planar_arm",
    # Not the test that a call makes no object at all: that is true of the fast way only. Here NumPy
    # hands out an array's flags as an object, which lives for an instant.
    "test/test_allocation.py::test_a_kernel_that_allocates_does_not_compile",
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
