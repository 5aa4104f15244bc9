"""Which publisher's messages are followed."""

from __future__ import annotations

from rnea_control.messages.one_publisher import ANOTHERS, MOST_MISSED, OnePublisher

SILENCE = 0.1


def followed(*numbers: int, period: float = 0.001) -> list[int]:
    publisher = OnePublisher(SILENCE)
    return [publisher.follow(number, None, period * tick) for tick, number in enumerate(numbers)]


def test_missed_messages_are_counted() -> None:
    assert followed(7, 8, 9, 12, 13) == [0, 0, 0, 2, 0]


def test_another_series_of_numbers_is_ignored_while_the_first_goes_on() -> None:
    assert followed(5000, 1, 5001, 2, 5002, 3, 3) == [0, -1, 0, -1, 0, -1, -1]
    assert followed(1, MOST_MISSED + 3, 2, MOST_MISSED + 4, 3) == [0, -1, 0, -1, 0]


def test_with_numbers_close_together_the_followed_one_changes_once_at_most() -> None:
    numbers = [n for k in range(50) for n in (100 + k, 103 + k)]
    answers = followed(*numbers)
    assert answers[:2] == [0, 2]  # the other is three ahead: taken for the same
    assert answers[2:] == 49 * [-1, 0]


def test_a_publisher_that_was_started_again_is_followed_after_the_silence() -> None:
    publisher = OnePublisher(SILENCE)
    assert publisher.follow(9000, None, 0.0) == 0
    assert publisher.follow(1, None, 0.9 * SILENCE) == ANOTHERS
    assert publisher.follow(2, None, 1.1 * SILENCE) == 0
    assert publisher.follow(3, None, 1.2 * SILENCE) == 0
    assert publisher.follow(9001, None, 1.3 * SILENCE) == ANOTHERS


def test_whoever_comes_first_after_a_reset() -> None:
    publisher = OnePublisher(SILENCE)
    publisher.follow(9000, None, 0.0)
    publisher.reset()
    assert publisher.follow(1, None, 0.001) == 0


def test_publishers_are_told_by_their_gids_whatever_their_numbers() -> None:
    publisher = OnePublisher(SILENCE)
    assert publisher.follow(100, b"one", 0.0) == 0
    assert publisher.follow(101, b"two", 0.001) == ANOTHERS
    assert publisher.follow(101, b"one", 0.001) == 0
    assert publisher.follow(105, b"one", 0.002) == 3
    for k in range(1000):  # however many come of the other
        assert publisher.follow(k, b"two", 0.002 + 1e-4 * k * 0.9) == ANOTHERS
    assert publisher.follow(7, b"two", 0.2) == 0
    assert publisher.follow(106, b"one", 0.201) == ANOTHERS
    assert publisher.follow(None, b"two", 0.202) == 0
