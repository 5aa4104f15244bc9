"""`GiveBacks`: how often the sentinel has given the arm back by itself after a pause."""

from __future__ import annotations

from collections import deque

PERIOD = 60.0  # time in which give-backs are counted [s]


class GiveBacks:
    """Counts the give-backs, and tells when the controller is paused too often.

    Args:
        most: give-backs within `PERIOD` after which the sentinel keeps the arm; 0 for never giving
            it back without an operator.

    Attributes:
        most: see above.
        count: of all of them.
        kept: whether the sentinel keeps the arm until an operator asks for it.
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
        """Whether another one would be one too many; the arm is kept then."""
        self.kept = self.kept or self.within_period(now) >= self.most
        return self.kept

    def note(self, now: float) -> None:
        """The sentinel gives the arm back."""
        self._at.append(now)
        self.count += 1

    def forget(self) -> None:
        """An operator has asked for the arm: counting begins anew."""
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
