"""Answers of the bar: how long they are shown."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("viser", reason="the extra panel is not installed")

from rnea_control.panel.stop_bar import LASTING, StopHold


def test_answer_ends_with_the_mode_that_it_is_about() -> None:
    hold, begin = StopHold(), time.monotonic()
    assert hold.answer_in("holding", begin) == ""
    hold.answer("Resume: holding")
    assert hold.answer_in("moving", begin + 0.1) == "Resume: holding"  # the mode follows the answer
    assert hold.answer_in("moving", begin + 100.0) == "Resume: holding"
    assert hold.answer_in("emergency_stop", begin + LASTING + 100.0) == ""


def test_stop_that_was_not_sent_stays_in_view() -> None:
    hold = StopHold()
    hold.answer("STOP was not sent", stays=True)
    for mode in ("moving", "holding", "fault"):
        assert hold.answer_in(mode, time.monotonic() + 1e6) == "STOP was not sent"
    hold.answer("Hold: holding")
    assert hold.answer_in("holding", time.monotonic()) == "Hold: holding"
