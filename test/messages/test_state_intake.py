"""Which publisher's states are followed."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_control.messages.state_intake import GID_KNOWN, MISSED, MOST_MISSED, StateIntake, follow

SILENCE = 0.1
ONE, TWO = (1, 11, 12), (1, 11, 13)
UNKNOWN = (0, 0, 0)


class Follower:
    """The publisher that an intake follows."""

    def __init__(self) -> None:
        self.intake = StateIntake(["joint"], SILENCE)

    def __call__(self, number: int, now: float, who: tuple[int, int, int] = UNKNOWN) -> int:
        """How many messages were missed, or -1 for another publisher's."""
        rows = self.intake.numbers, self.intake.times
        return self.intake.missed if follow(*rows, number, *who, now) else -1


def followed(*numbers: int, period: float = 0.001) -> list[int]:
    hear = Follower()
    return [hear(number, period * tick) for tick, number in enumerate(numbers)]


def test_missed_messages_are_counted_and_one_that_comes_again_is_ignored() -> None:
    assert followed(7, 8, 9, 12, 13, 13) == [0, 0, 0, 2, 0, -1]


def test_another_series_of_numbers_is_ignored_while_the_first_goes_on() -> None:
    assert followed(5000, 1, 5001, 2, 5002, 3, 3) == [0, -1, 0, -1, 0, -1, -1]
    assert followed(1, MOST_MISSED + 3, 2, MOST_MISSED + 4, 3) == [0, -1, 0, -1, 0]


def test_with_numbers_close_together_the_followed_one_changes_once_at_most() -> None:
    numbers = [n for k in range(50) for n in (100 + k, 103 + k)]
    answers = followed(*numbers)
    assert answers[:2] == [0, 2]  # the other is three ahead: taken for the same
    assert answers[2:] == 49 * [-1, 0]


def test_a_publisher_that_was_started_again_is_followed_after_the_silence() -> None:
    hear = Follower()
    assert [hear(n, part * SILENCE) for n, part in ((9000, 0.0), (1, 0.9), (2, 1.1))] == [0, -1, 0]
    assert [hear(n, part * SILENCE) for n, part in ((3, 1.2), (9001, 1.3))] == [0, -1]


def test_whoever_comes_first_after_a_reset() -> None:
    hear = Follower()
    hear(9000, 0.0)
    hear.intake.reset()
    assert hear(1, 0.001) == 0


def test_publishers_are_told_by_their_gids_whatever_their_numbers() -> None:
    hear = Follower()
    assert [hear(100, 0.0, ONE), hear(101, 0.001, TWO), hear(101, 0.001, ONE)] == [0, -1, 0]
    assert hear(105, 0.002, ONE) == 3
    for k in range(1000):  # however many come of the other
        assert hear(k, 0.002 + 1e-4 * k * 0.9, TWO) == -1
    assert [hear(7, 0.2, TWO), hear(106, 0.201, ONE), hear(-1, 0.202, TWO)] == [0, -1, 0]
    assert np.array_equal(hear.intake.numbers[GID_KNOWN : MISSED - 1], TWO)


def test_time_goes_on_with_a_repeated_stamp_by_the_lost_states_too() -> None:
    """A simulation's clock is late on a busy computer, which loses states then."""
    hear, step = Follower(), 1_000_000
    states = ((7, 10, 0), (8, 10, 1), (12, 10, 5), (20, 11, 13), (21, 12, 13), (22, 25, 15))
    for number, stamp, time in states:
        at = 0.001 * time
        hear(number, at)
        hear.intake.place(stamp * step, at, step=step)
        assert hear.intake.time == pytest.approx(at)
