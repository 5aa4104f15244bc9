"""Which publisher's states are followed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rnea_control.loop.state_intake import (
    MOST_MISSED,
    StateIntake,
    follow,
)

SILENCE = 0.1
ONE, TWO = (True, 11, 12), (True, 11, 13)
UNKNOWN = (False, 0, 0)


class Follower:
    """The publisher that an intake follows."""

    def __init__(self) -> None:
        self.intake = StateIntake(["joint"], SILENCE)

    def __call__(self, number: int, now: float, who: tuple[bool, int, int] = UNKNOWN) -> int:
        """How many messages were missed, or -1 for another publisher's."""
        intake = self.intake.intake
        return self.intake.missed if follow(intake, number, *who, now) else -1


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
    of = hear.intake.intake
    assert (of.gid_known, of.gid_low, of.gid_high) == TWO


def placed(stamps: list[int], counts: list[int] | None = None, step: int = 1000) -> np.ndarray:
    """Times of states with these stamps, [us], where stamps may be late, [us]."""
    hear, times = Follower(), []
    for k, stamp in enumerate(stamps):
        hear(counts[k] if counts else k, 0.001 * k)
        hear.intake.place(stamp * 1000, 0.001 * k, step=step * 1000)
        times.append(1e6 * hear.intake.time)
    return np.array(times)


def test_clock_that_is_set_back_makes_no_stamp_late() -> None:
    """Whoever says at which time a state is knows that its stamp has jumped."""
    intake = StateIntake(["joint"], SILENCE)
    for k, stamp in enumerate((7_000_000_000, 7_001_000_000, 5_000_000_000)):
        intake.place(stamp, 0.001 * k, 0.001 if stamp < 7_000_000_000 else math.nan)
    assert intake.most_ahead() == 0.0
    intake.place(5_001_000_000, 0.003)
    assert intake.time == pytest.approx(0.002)


def late_stamps(rng: np.random.Generator, states: int = 20_000) -> np.ndarray:
    """Stamps of states that come each ms, of a clock that stands still, creeps or runs behind for a
    while, and catches up, [us]."""
    now, late = 1000 * np.arange(states), np.zeros(states)
    for begin in range(500, states - 500, 500):
        lag, rise, stay = rng.uniform(0.0, 60e3), rng.integers(60, 200), rng.integers(1, 200)
        late[begin : begin + rise] = np.linspace(0.0, lag, rise)
        late[begin + rise : begin + rise + stay] = lag
    return np.maximum.accumulate(((now - late) // 1000 * 1000).astype(int))


def test_time_goes_on_with_the_states_where_stamps_are_late() -> None:
    """A simulation's clock is late on a busy computer, which loses states then."""
    begun = range(200)
    stamps = [*begun, *(200 + ms for ms in (0, 1, 2, 3, 3, 3, 4, 5, 16, 17))]
    numbers = [*begun, *(200 + ms for ms in (0, 1, 2, 3, 4, 8, 14, 15, 16, 17))]
    times = placed([1000 * stamp for stamp in stamps], numbers)
    assert times == pytest.approx(1000.0 * np.array(numbers), abs=1e3)


@pytest.mark.parametrize("seed", range(5))
def test_late_stamps_make_no_time_stand_still_or_jump(seed: int) -> None:
    stamps = late_stamps(np.random.default_rng(seed))
    assert np.diff(stamps).max() > 20e3  # they jump
    off = placed(stamps.tolist()) - 1000.0 * np.arange(len(stamps))
    assert np.abs(off).max() < 3e3
    assert np.diff(off).min() > -10.0  # a hundredth of the time between states


@pytest.mark.parametrize("share", [2, 10])
def test_states_that_share_the_stamps_of_a_slow_clock_are_not_counted_twice(share: int) -> None:
    now = 1000 * np.arange(20_000)
    stamps = now // (1000 * share) * (1000 * share)
    off = placed(stamps.tolist(), step=1000 * share) - now
    assert np.abs(off).max() < 1e3 * share


def test_distance_of_stamps_is_found_again_after_a_long_pause() -> None:
    """While a simulation is paused its states go on with one stamp."""
    stamps = [*range(0, 5_000), *[5_000] * 20_000, *range(5_000, 15_000)]
    hear = Follower()
    for k, stamp in enumerate(stamps):
        hear(k, 0.001 * k)
        hear.intake.place(
            stamp * 1_000_000, 0.001 * k, step=0 if 5_000 <= k < 25_000 else 1_000_000
        )
    assert hear.intake.time == pytest.approx(14.999)
    counted = hear.intake.intake.counted
    assert (stamps[-1] * 1_000_000 - hear.intake.intake.counted_from) / counted > 0.9e6
