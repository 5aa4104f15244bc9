"""`Retry`: waits between attempts after failures, longer and longer, without end. `Chores`: work of
a node once a second; a part that fails does not keep the other parts from being done."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable

FACTOR = 2.0  # by which each failure lengthens the wait
FIRST_WAIT = 1.0  # wait after the first failure of a chore [s]
LONGEST_WAIT = 8.0  # upper bound of the wait of a chore [s]


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
        """True if the wait is over."""
        return time.monotonic() >= self._due_at


class Chores:
    """Work that is due again and again, by name: a part that raises is tried again, slower and
    slower.

    Args:
        work: what is done, by its name for messages, in this order.
        note_failure: called with a message and its details when a part has failed.
    """

    def __init__(
        self, work: dict[str, Callable[[], object]], note_failure: Callable[[str, str], None]
    ) -> None:
        waits = FIRST_WAIT, LONGEST_WAIT
        self._parts = [(name, part, Retry(*waits)) for name, part in work.items()]
        self._note_failure = note_failure

    def do(self) -> None:
        """Does what is due."""
        for name, part, retry in self._parts:
            if not retry.is_due():
                continue
            try:
                part()
            except Exception as error:
                wait = retry.failed()
                text = f"{name} has failed: {type(error).__name__}: {error}"
                self._note_failure(f"{text}; tried again in {wait:g} s", traceback.format_exc())
            else:
                retry.succeeded()
