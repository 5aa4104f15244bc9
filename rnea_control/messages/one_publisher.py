"""Keeping to one publisher of a topic that should have only one.

Publishers are told apart by their GIDs. Where these are not known, by the numbers that each gives
its messages: two series of numbers that are apart.
"""

from __future__ import annotations

import math

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
        self.reset()

    def reset(self) -> None:
        """Follows whoever comes next."""
        self._publisher: bytes | None = None
        self._next: int | None = None
        self._heard_at = -math.inf

    def follow(self, number: int | None, publisher: bytes | None, now: float) -> int:
        """How many messages were missed before this one, or `ANOTHERS`: ignore it then.

        Args:
            number: its publisher's count of it; None where that is not known.
            publisher: whose it is; None where that is not known.
            now: by the steady clock, [s].
        """
        missed = 0 if number is None or self._next is None else number - self._next
        another = publisher != self._publisher
        if publisher is None:
            another = not 0 <= missed <= MOST_MISSED
        if another:
            if now - self._heard_at <= self._silence:
                return ANOTHERS
            missed = 0
        self._publisher, self._heard_at = publisher, now
        self._next = None if number is None else number + 1
        return max(missed, 0)
