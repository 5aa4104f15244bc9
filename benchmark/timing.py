"""Times calls of several functions in one run.

They take turns in short rounds, so that a busy machine slows them alike; what counts is the ratio
of the medians over the rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

ROUNDS = 41
CALLS = 2000


def medians(calls: dict[K, tuple[Callable[..., object], tuple]]) -> dict[K, float]:
    """Median time of one call of each function with its arguments, [us]."""
    times: dict[K, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, (function, arguments) in calls.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                function(*arguments)
            times[name].append(1e6 * (time.perf_counter() - start) / CALLS)
    return {name: statistics.median(rounds) for name, rounds in times.items()}
