"""Keeping to one publisher of a topic that should have only one.

Each publisher numbers its messages, and the middleware hands the numbers on. What is published
twice, by two robots or by the same program started twice, comes with two series of numbers.
"""

from __future__ import annotations

# A number this much higher than the last one is still the same publisher's.
MOST_MISSED = 1000
# What `OnePublisher.follow` answers for a message of another one.
ANOTHERS = -1


class OnePublisher:
    """Follows the publisher whose message came first, until it falls silent.

    Args:
        silence: for how long nothing must have come from it before another one is followed, [s].
    """

    def __init__(self, silence: float) -> None:
        self._silence = silence
        self._next: int | None = None
        self._heard_at = 0.0

    def reset(self) -> None:
        """Follows whoever comes next."""
        self._next = None

    def follow(self, number: int, now: float) -> int:
        """How many messages were missed before this one, or `ANOTHERS`: ignore it then.

        Args:
            number: its publisher's count of it.
            now: by the steady clock, [s].
        """
        if number == self._next:
            self._next, self._heard_at = number + 1, now
            return 0
        missed = 0 if self._next is None else number - self._next
        if not 0 <= missed <= MOST_MISSED and now - self._heard_at <= self._silence:
            return ANOTHERS
        self._next, self._heard_at = number + 1, now
        return max(missed, 0)
