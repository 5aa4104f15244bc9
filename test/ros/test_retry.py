"""Attempts that come later and later, and chores that do not keep each other from being done."""

from __future__ import annotations

import pytest

from rnea_control.ros import retry
from rnea_control.ros.retry import Chores, Retry


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(retry.time, "monotonic", lambda: now[0])
    return now


def test_waits_double_up_to_the_longest_and_begin_anew_after_a_success(clock: list[float]) -> None:
    attempts = Retry(2.0, 10.0)
    assert attempts.is_due()
    assert [attempts.failed() for _ in range(5)] == [2.0, 4.0, 8.0, 10.0, 10.0]
    clock[0] += 9.9
    assert not attempts.is_due()
    clock[0] += 0.1
    assert attempts.is_due()
    attempts.succeeded()
    assert attempts.is_due() and attempts.failed() == 2.0


def test_chore_that_fails_is_said_and_tried_again_and_the_others_go_on(clock: list[float]) -> None:
    done, said = [], []
    broken = True

    def first() -> None:
        done.append("first")
        if broken:
            raise OSError(24, "Too many open files")

    work = {"the first": first, "the second": lambda: done.append("second")}
    chores = Chores(work, lambda what, details: said.append(what))
    for second in range(8):
        clock[0] = 100.0 + second
        chores.do()
    assert done.count("second") == 8
    assert done.count("first") == 4 and len(said) == 4  # after 0, 1, 3 and 7 s
    failure = "the first has failed: OSError: [Errno 24] Too many open files; tried again in "
    assert said[0] == f"{failure}1 s" and said[3] == f"{failure}8 s"
    broken = False
    for second in range(8, 20):
        clock[0] = 100.0 + second
        chores.do()
    assert done.count("first") == 4 + 5 and len(said) == 4  # each second from 15 s on
