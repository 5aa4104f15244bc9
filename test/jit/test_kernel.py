"""Kernels take exactly the arrays they were compiled for; on demand they are compiled once."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from rnea_control.jit import kernel as kernel_module
from rnea_control.jit.kernel import kernel, kernel_on_demand


def _sum(array):
    total = array.dtype.type(0)
    for i in range(array.shape[0]):
        total += array[i]
    return total


def _size_and_entry(array, sizes, i, j, k):
    sizes[0], sizes[1], sizes[2] = array.shape
    sizes[3] = array.size
    return array[i, j, k]


SUM = {code: kernel(f"{code}({code}[::1])")(_sum) for code in ("f8", "i8", "u1", "u8")}
ENTRY = kernel("f8(f8[:,:,::1], i8[::1], i8, i8, i8)")(_size_and_entry)


class Pretender:
    __class__ = property(lambda self: np.ndarray)


@pytest.mark.parametrize("code", SUM)
def test_other_types_are_refused(code: str) -> None:
    for other in (*np.typecodes["All"], ">f8", ">i8", ">u8", "U2", "m8[s]"):
        array = np.zeros(5, dtype=other)
        if array.dtype == np.dtype(code) and array.dtype.num == np.dtype(code).num:
            assert SUM[code](array) == 0
        else:
            with pytest.raises(TypeError, match=r"not a C-contiguous, writeable .* of 1 dim"):
                SUM[code](array)


def test_other_layouts_and_other_things_are_refused() -> None:
    for wrong in (
        np.zeros(6)[::2],
        np.broadcast_to(0.0, 3),
        np.frombuffer(bytes(24)),  # read-only
        np.frombuffer(bytearray(25), offset=1),  # unaligned
        np.zeros((1, 3)),
        np.zeros((1,) * 32),
        np.array(1.0),
        np.zeros(3, dtype=[("x", float)]),
        np.float64(1.0),
        [1.0, 2.0],
        memoryview(bytearray(8)),
        None,
        3,
        np.ndarray,
        Pretender(),
        Mock(spec=np.ndarray),
    ):
        with pytest.raises(TypeError, match="not a C-contiguous"):
            SUM["f8"](wrong)
    for order in (np.asfortranarray(np.zeros((2, 3, 4))), np.zeros((2, 3, 4)).transpose(2, 1, 0)):
        with pytest.raises(TypeError):
            ENTRY(order, np.zeros(4, np.int64), 0, 0, 0)


def test_same_array_by_another_way_is_accepted() -> None:
    for array in (
        pickle.loads(pickle.dumps(np.arange(3.0))),
        np.frombuffer(bytearray(np.arange(3.0).tobytes())),
        np.arange(6.0).reshape(2, 3)[0],
        np.arange(3.0).view(np.dtype("f8", metadata={"unit": "rad"})),
        np.arange(3.0).view(np.dtype("f8").newbyteorder("=")),
    ):
        assert SUM["f8"](array) == 3.0
    assert SUM["f8"](np.zeros(0)) == 0.0


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 1), (5, 1, 7), (1, 6, 1)])
def test_every_entry_is_where_numpy_has_it(shape: tuple[int, int, int]) -> None:
    array, sizes = np.random.default_rng(0).random(shape), np.zeros(4, dtype=np.int64)
    for index in np.ndindex(shape):
        assert ENTRY(array, sizes, *index) == array[index]
    assert tuple(sizes) == (*shape, array.size)


def test_argument_is_released() -> None:
    array = np.zeros(3)
    before = sys.getrefcount(array)
    for _ in range(100):
        SUM["f8"](array)
        for wrong in (lambda: SUM["f8"](array, array), lambda: SUM["i8"](array)):
            with pytest.raises(TypeError):
                wrong()
    assert sys.getrefcount(array) == before


THREADS = 8


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    compiled = kernel_module.compiled

    def counted(function: Any, *arguments: Any) -> Any:
        names.append(function.__name__)
        time.sleep(0.05)  # the others get here
        return compiled(function, *arguments)

    monkeypatch.setattr(kernel_module, "compiled", counted)
    return names


@kernel_on_demand("f8(f8[::1])")
def doubled(x):
    return 2.0 * x[0]


def test_threads_compile_once_and_held_functions_lead_to_the_kernel(compilations) -> None:
    held = doubled
    together = threading.Barrier(THREADS)

    def call(i: int) -> float:
        together.wait()
        return doubled(np.array([float(i)]))

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(call, range(THREADS))) == [2.0 * i for i in range(THREADS)]
    assert doubled is not held
    assert held(np.ones(1)) == doubled(np.ones(1)) == 2.0
    assert compilations == ["doubled"]


def test_functions_inside_others_keep_apart_and_may_be_tried_again(monkeypatch) -> None:
    @kernel_on_demand("f8(f8[::1])")
    def doubled(x):
        return 20.0 * x[0]

    with monkeypatch.context() as patch:
        patch.setattr(kernel_module, "compiled", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            doubled(np.ones(1))
    assert doubled(np.ones(1)) == doubled(np.ones(1)) == 20.0
    assert globals()["doubled"](np.ones(1)) == 2.0


WITH_FORCES = {"rnea_with_forces_kernel"}  # of rnea, with external forces only
RUNNING = re.compile(r"rnea_control\.(control|loop|messages|node|sentinel)\.")


@cache
def on_demand(module: str) -> set[str]:
    """Names of the kernels of a module that are compiled at their first call."""
    path = sys.modules[module].__file__
    functions = [
        node for node in ast.parse(Path(path).read_text()).body if isinstance(node, ast.FunctionDef)
    ]
    marked = ["kernel_on_demand" in map(_name, each.decorator_list) for each in functions]
    return {each.name for each, is_marked in zip(functions, marked, strict=True) if is_marked}


def _name(decorator: ast.expr) -> str:
    return ast.unparse(decorator).partition("(")[0]


def test_running_node_compiles_nothing() -> None:
    """A kernel that is compiled while an arm is held stops Python for a second."""
    importlib.import_module("rnea_control.node.controller_node")
    importlib.import_module("rnea_control.sentinel.sentinel_node")
    assert "_joint_wrenches" in on_demand("rnea_control.dynamics.rnea")
    checked = 0
    for name, module in list(sys.modules.items()):
        if not RUNNING.match(name):
            continue
        for value in vars(module).values():
            if not inspect.isfunction(value) or not value.__module__.startswith("rnea_control."):
                continue
            checked += 1
            late = on_demand(value.__module__)
            used = {value.__name__, *value.__code__.co_names} & late - WITH_FORCES
            assert not used, f"{name} uses {used}"
    assert checked > 300
