"""A kernel that is compiled at its first call is compiled once, whoever calls."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from rnea_control.kernels import kernel as kernel_module
from rnea_control.kernels.kernel import kernel_on_demand

THREADS = 8


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the functions that were compiled."""
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


@kernel_on_demand("f8(f8[::1])")
def tripled(x):
    return 3.0 * x[0]


def test_threads_compile_once(compilations: list[str]) -> None:
    together = threading.Barrier(THREADS)

    def call(i: int) -> float:
        together.wait()
        return doubled(np.array([float(i)]))

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(call, range(THREADS))) == [2.0 * i for i in range(THREADS)]
    assert compilations == ["doubled"]


def test_name_becomes_the_kernel_and_held_functions_lead_to_it(compilations: list[str]) -> None:
    held = tripled
    assert held(np.ones(1)) == 3.0
    assert tripled is not held
    assert held(np.ones(1)) == tripled(np.ones(1)) == 3.0
    assert compilations == ["tripled"]


def test_functions_inside_others_keep_to_themselves() -> None:
    @kernel_on_demand("f8(f8[::1])")
    def doubled(x):
        return 20.0 * x[0]

    assert doubled(np.ones(1)) == doubled(np.ones(1)) == 20.0
    assert globals()["doubled"](np.ones(1)) == 2.0


def test_failed_compilation_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    @kernel_on_demand("f8(f8[::1])")
    def fails_once(x):
        return x[0]

    def fails(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(kernel_module, "compiled", fails)
        with pytest.raises(MemoryError):
            fails_once(np.ones(1))
    assert fails_once(np.ones(1)) == 1.0
