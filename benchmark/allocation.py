"""What a function allocates, counted."""

from __future__ import annotations

import gc
import resource
import tracemalloc
from collections.abc import Callable

CALLS = 10_000


def allocated(function: Callable[[], object]) -> dict[str, int]:
    """What `CALLS` calls leave allocated, take at most meanwhile [bytes], and fault in [pages].

    Less what the counting itself takes, which a function that does nothing shows.
    """
    _count(function)  # warm
    counted, itself = _count(function), _count(lambda: None)
    return {what: counted[what] - itself[what] for what in counted}


def _count(function: Callable[[], object]) -> dict[str, int]:
    gc.collect()
    gc.disable()
    faults_before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        function()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults_before
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(CALLS):
            function()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    return {"held": after - before, "peak": peak - before, "page faults": faults}
