"""`Retry`: when to try again what has failed: slower and slower, and without end."""

from __future__ import annotations

import time

FACTOR = 2.0  # by which each failure lengthens the wait


class Retry:
    """The waits between attempts, by the steady clock.

    Args:
        first: wait after the first failure [s].
        longest: wait that is not exceeded, however many attempts fail [s].

    Attributes:
        wait: that follows the last failure [s]; 0 after a success.
    """

    def __init__(self, first: float, longest: float) -> None:
        self._first, self._longest = first, longest
        self.wait = self._due_at = 0.0

    def failed(self) -> float:
        """An attempt has failed; returns the wait until the next one, [s]."""
        self.wait = min(max(FACTOR * self.wait, self._first), self._longest)
        self._due_at = time.monotonic() + self.wait
        return self.wait

    def succeeded(self) -> None:
        """The next attempt may follow at once, and the next failure is the first one."""
        self.wait = self._due_at = 0.0

    def is_due(self) -> bool:
        """Whether the wait is over."""
        return time.monotonic() >= self._due_at
