"""Kernels that call kernels by their addresses, and what is done where that does not work."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_control.kernels import linking
from rnea_control.kernels.compilation import address
from rnea_control.kernels.kernel import kernel
from rnea_control.kernels.linking import copies, linked

SIGNATURE = "f8(f8[::1], f8)"


@kernel(SIGNATURE)
def scale(numbers: np.ndarray, factor: float) -> float:
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
    call = linked(scale, SIGNATURE)

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
