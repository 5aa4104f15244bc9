"""`GiveBacks`: count of the times that the sentinel gave the arm back by itself after a pause."""

from __future__ import annotations

from collections import deque

PERIOD = 60.0  # time in which give-backs are counted [s]


class GiveBacks:
    """Counts the give-backs, and refuses further ones if the controller is paused too often.

    Args:
        most: give-backs within `PERIOD` after which the sentinel keeps the arm; 0 for never giving
            it back without an operator.

    Attributes:
        most: the argument.
        count: number of all give-backs.
        kept: True if the sentinel keeps the arm until an operator requests it.
    """

    def __init__(self, most: int) -> None:
        self.most, self.count, self.kept = most, 0, False
        self._at: deque[float] = deque()

    def within_period(self, now: float) -> int:
        """Number of give-backs in the last `PERIOD` before `now`, by the steady clock."""
        while self._at and now - self._at[0] > PERIOD:
            self._at.popleft()
        return len(self._at)

    def is_refused(self, now: float) -> bool:
        """True if a further give-back would exceed the limit; from then on the arm is kept."""
        self.kept = self.kept or self.within_period(now) >= self.most
        return self.kept

    def note(self, now: float) -> None:
        """Counts a give-back at `now`, by the steady clock."""
        self._at.append(now)
        self.count += 1

    def forget(self) -> None:
        """Begins to count anew, after an operator has requested the arm."""
        self._at.clear()
        self.kept = False

    @property
    def words(self) -> str:
        """Why the arm is kept, and what to do."""
        if self.most == 0:
            return "give_back_limit is 0: call ~/resume of the controller"
        return (
            f"the controller was paused again after the arm was given back {self.most} times "
            f"within {PERIOD:g} s (give_back_limit): find what pauses it (docs/realtime.md, "
            "rnea_doctor), then call its ~/resume"
        )
