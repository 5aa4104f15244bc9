"""Kernels that call kernels by their addresses, and what is done where that does not work."""

from __future__ import annotations

import re
import threading

import numba
import numpy as np
import pytest

from rnea_control.array_types import Vector
from rnea_control.jit import linking
from rnea_control.jit.compilation import address
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import copies, fence, linked


@kernel()
def scale(numbers: Vector, factor: float) -> float:
    for i in range(numbers.shape[0]):
        numbers[i] *= factor
    return numbers[0]


@pytest.fixture(autouse=True)
def anew():
    copies.cache_clear()
    yield
    copies.cache_clear()


def scaled_twice() -> list[float]:
    """By a kernel that calls another one, with an argument that must be cast."""
    call = linked(scale)

    @kernel("f8(i8, f8[::1])")
    def twice(code: int, numbers: np.ndarray) -> float:
        return call(code, (numbers, 3)) + call(code, (numbers[1:], 2.0))

    numbers = np.array([1.0, 2.0])
    return [twice(address(scale), numbers), *numbers]


def test_kernel_calls_another_by_its_address() -> None:
    assert not copies()
    assert scaled_twice() == [15.0, 3.0, 12.0]


def test_with_another_numba_callers_have_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(signature: str) -> None:
        raise AttributeError("no call_conv")

    monkeypatch.setattr(linking, "_by_address", gone)
    with pytest.warns(RuntimeWarning, match="no call_conv"):
        assert copies()
    assert scaled_twice() == [15.0, 3.0, 12.0]


@kernel("void(i8[::1], i8)", nogil=True)
def write(numbers: np.ndarray, rounds: int) -> None:
    """Raises all numbers by one in each round; the first, by two, is odd meanwhile."""
    for _ in range(rounds):
        numbers[0] += 1
        fence()
        for i in range(1, numbers.shape[0]):
            numbers[i] += 1
        fence()
        numbers[0] += 1


@kernel("i8(i8[::1], i8[::1], i8)", nogil=True)
def read(numbers: np.ndarray, found: np.ndarray, times: int) -> int:
    """How often all were read between two rounds; -1 if they were not of one round then."""
    whole = 0
    for _ in range(times):
        before = numbers[0]
        fence()
        for i in range(1, numbers.shape[0]):
            found[i] = numbers[i]
        fence()
        if before % 2 == 0 and before == numbers[0]:
            whole += 1
            for i in range(1, numbers.shape[0]):
                if 2 * found[i] != before:
                    return -1
    return whole


def test_a_fence_is_an_instruction_between_the_writes() -> None:
    @numba.njit("void(i8[::1])")
    def twice(numbers: np.ndarray) -> None:
        numbers[0] = 1
        fence()
        numbers[0] = 2

    (code,) = twice.inspect_asm().values()
    assert re.search(r"\bmfence\b|\block\b.*\bor|\bdmb\s+ish\b", code), code


def test_numbers_between_fences_are_read_as_they_were_written() -> None:
    """As the control loop and its readers do. A processor that keeps the order of writes anyway,
    such as x86-64, says less here than AArch64."""
    numbers, found = np.zeros(17, dtype=np.int64), np.zeros(17, dtype=np.int64)
    writer = threading.Thread(target=write, args=(numbers, 1_000_000))
    writer.start()
    while writer.is_alive():
        assert read(numbers, found, 1000) >= 0
    assert read(numbers, found, 1000) == 1000
    assert numbers.tolist() == [2_000_000] + 16 * [1_000_000]
