"""What the node counts about itself, for `/diagnostics`."""

from __future__ import annotations

import numpy as np


class LatencyStatistics:
    """The latest latencies, in a ring of memory taken once."""

    def __init__(self, size: int = 4096) -> None:
        self._ring = np.zeros(size)
        self._count = 0

    def add(self, latency: float) -> None:
        """Takes one latency, [s]."""
        self._ring[self._count % len(self._ring)] = latency
        self._count += 1

    def percentiles(self) -> dict[str, float]:
        """Median, 99th percentile and largest latency held, [s]; empty where there are none."""
        held = self._ring[: min(self._count, len(self._ring))]
        if held.size == 0:
            return {}
        median, high = np.percentile(held, (50, 99))
        return {"median": float(median), "99 %": float(high), "largest": float(held.max())}
