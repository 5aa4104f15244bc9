"""The algorithms need no more multiplications and additions than textbooks promise."""

from __future__ import annotations

import pytest
from operations import BOUNDS, Number, counts

JOINTS = (*range(2, 21), 30)

# What the algorithms take: an operation more is a change to be seen.
EXACT = {
    "rnea": (lambda n: 134 * n - 105, lambda n: 106 * n - 102),
    "aba": (lambda n: 299 * n - 301, lambda n: 277 * n - 312),
    "crba": (
        lambda n: (9 * n**2 + 233 * n) // 2 - 54,
        lambda n: 4 * n**2 + 100 * n - 52,
    ),
}


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


@pytest.mark.parametrize("n", JOINTS)
@pytest.mark.parametrize("algorithm", EXACT)
def test_counts_are_known_exactly(by_algorithm, algorithm: str, n: int) -> None:
    assert by_algorithm[algorithm][n] == tuple(count(n) for count in EXACT[algorithm])


def test_arithmetic_with_what_is_known_is_free() -> None:
    x = Number(2.0)
    Number.multiplications = Number.additions = 0
    free = [0.0 * x, x * 1.0, -1.0 * x, x + 0.0, 0.0 - x, x - 0.0, 0.0 / x]
    assert free == [0.0, 2.0, -2.0, 2.0, -2.0, 2.0, 0.0]
    assert (Number.multiplications, Number.additions) == (0, 0)
    counted = [x * x, 3.0 * x, 1.0 / x, x / x, x + x, x - x, 1.0 + x, 1.0 - x]
    assert counted == [4.0, 6.0, 0.5, 1.0, 4.0, 0.0, 3.0, -1.0]
    assert (Number.multiplications, Number.additions) == (4, 4)
