"""How long calls of several functions take, and what a function allocates, counted.

The functions take turns in short rounds, so that a busy machine slows them alike; what counts is
the ratio of the medians over the rounds.
"""

from __future__ import annotations

import gc
import resource
import statistics
import time
import tracemalloc
from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

ROUNDS = 41
CALLS_A_ROUND = 2000
# Calls of which the allocations are counted.
CALLS = 10_000


def medians(
    calls: dict[K, tuple[Callable[..., object], tuple]],
    rounds: int = ROUNDS,
    calls_a_round: int = CALLS_A_ROUND,
) -> dict[K, float]:
    """Median time of one call of each function with its arguments, [us]."""
    times: dict[K, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, (function, arguments) in calls.items():
            start = time.perf_counter()
            for _ in range(calls_a_round):
                function(*arguments)
            times[name].append(1e6 * (time.perf_counter() - start) / calls_a_round)
    return {name: statistics.median(each) for name, each in times.items()}


def allocated(function: Callable[[], object]) -> dict[str, int]:
    """Memory that `CALLS` calls keep, their peak [bytes], and their page faults [pages].

    The bytes of the measurement itself, from a function that does nothing, are subtracted. Page
    faults are the smaller count of two: a page that is faulted in only once, as after a fork, is
    not the function's.
    """
    _count(function)  # warm
    counted, again, itself = _count(function), _count(function), _count(lambda: None)
    faults = min(counted["page faults"], again["page faults"])
    bytes_of = {what: counted[what] - itself[what] for what in ("held", "peak")}
    return {**bytes_of, "page faults": faults}


def _count(function: Callable[[], object]) -> dict[str, int]:
    gc.collect()
    gc.disable()
    faults_before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        function()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults_before
    tracemalloc.start()
    try:
        for _ in range(CALLS // 100):  # Python keeps freed objects: count them from the begin on
            function()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(CALLS):
            function()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    return {"held": after - before, "peak": peak - before, "page faults": faults}
