"""The algorithms need no more multiplications and additions than textbooks promise."""

from __future__ import annotations

import pytest
from operations import BOUNDS, Number, counts

JOINTS = (*range(2, 21), 30)


@pytest.fixture(scope="module")
def by_algorithm() -> dict[str, dict[int, tuple[int, int]]]:
    return counts(JOINTS)


@pytest.mark.parametrize("n", JOINTS)
@pytest.mark.parametrize("algorithm", BOUNDS)
def test_chain_of_revolute_joints(by_algorithm, algorithm: str, n: int) -> None:
    multiplications, additions = by_algorithm[algorithm][n]
    most_multiplications, most_additions = (bound(n) for bound in BOUNDS[algorithm])
    assert 0 < multiplications <= most_multiplications
    assert 0 < additions <= most_additions


def test_arithmetic_with_what_is_known_is_free() -> None:
    x = Number(2.0)
    Number.multiplications = Number.additions = 0
    free = [0.0 * x, x * 1.0, -1.0 * x, x + 0.0, 0.0 - x, x - 0.0, 0.0 / x]
    assert free == [0.0, 2.0, -2.0, 2.0, -2.0, 2.0, 0.0]
    assert (Number.multiplications, Number.additions) == (0, 0)
    counted = [x * x, 3.0 * x, 1.0 / x, x / x, x + x, x - x, 1.0 + x, 1.0 - x]
    assert counted == [4.0, 6.0, 0.5, 1.0, 4.0, 0.0, 3.0, -1.0]
    assert (Number.multiplications, Number.additions) == (4, 4)
