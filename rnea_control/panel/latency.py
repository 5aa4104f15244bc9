"""Bars of the loop's times, from the quantiles in the controller's report."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from rnea_control.loop.loop_records import NAMES
from rnea_control.panel.hypertext import COLORS, Markup, colored, escaped, lines, table

MICRO = 1e-6
SHORTEST = 1e-6  # left end of a bar [s]
LONGEST = 1.0  # right end of a bar [s]
SHORT = "last second"
PERIODS = {SHORT: "#1c7ed6", "since activation": "#868e96"}  # and colors of their bars
QUANTILE = re.compile(r"(median|99 %|99\.9 %|largest) (\d{1,12}) us")
MARKS = {"warn": "diagnostics.{}.warn", "error": "diagnostics.{}.error"}
LEGEND = (
    "Bars from the median to the largest value, dark up to 99 %, from 1 us to 1 s (logarithmic); "
    "lines: thresholds of warnings and errors for the 99 % of the last second."
)


def quantiles(text: str) -> dict[str, float]:
    """Quantiles [s] in the words of `LoopStatistics.summary`, by their names there; empty if
    nothing was measured."""
    return {name: MICRO * float(number) for name, number in QUANTILE.findall(text[:200])}


def thresholds_of(name: str, parameters: Mapping[str, float]) -> dict[str, float]:
    """Thresholds of a time by level, as far as they are among the parameters [s]."""
    names = {level: mark.format(name.replace(" ", "_")) for level, mark in MARKS.items()}
    return {level: parameters[name] for level, name in names.items() if name in parameters}


def level_of(name: str, values: Mapping[str, str], parameters: Mapping[str, float]) -> str:
    """Level of a time's 99 % quantile of the last second.

    Args:
        name: one of `NAMES`.
        values: values of the report on /diagnostics.
        parameters: thresholds by the names of their parameters [s].
    """
    found = quantiles(values.get(f"{name}, {SHORT}", ""))
    if not found:
        return "unknown"
    marks = thresholds_of(name, parameters)
    exceeded = [level for level, mark in marks.items() if found.get("99 %", 0.0) > mark]
    return exceeded[-1] if exceeded else "ok"


def worst(name: str, values: Mapping[str, str]) -> str:
    """The 99 % quantile of a time in the last second, in words."""
    found = quantiles(values.get(f"{name}, {SHORT}", ""))
    return f"99 % within {_time(found['99 %'])}" if "99 %" in found else "not measured"


def bars(values: Mapping[str, str], parameters: Mapping[str, float]) -> Markup:
    """Bars of all times, of the last second and since activation."""
    rows = []
    for name in NAMES:
        marks = thresholds_of(name, parameters)
        for period, color in PERIODS.items():
            found = quantiles(values.get(f"{name}, {period}", ""))
            if found:
                title = name if period == SHORT else colored(f"({period})", "unknown")
                rows.append((title, _bar(found, marks, color), _words(found)))
    if not rows:
        return escaped("The controller has reported no times yet.")
    head = ("", "1 us to 1 s", "median / 99 % / largest [ms]")
    return lines(table(head, rows, numbers=1), LEGEND)


def _words(found: Mapping[str, float]) -> str:
    """Median, 99 % and largest [ms]."""
    names = [name for name in ("median", "99 %", "largest") if name in found]
    return " / ".join(f"{1e3 * found[name]:.3g}" for name in names)


def _time(seconds: float) -> str:
    """A time with its unit."""
    if seconds >= 1.0:
        return f"{seconds:.3g} s"
    milliseconds = 1e3 * seconds
    return f"{milliseconds:.3g} ms" if milliseconds >= 1.0 else f"{1e6 * seconds:.0f} us"


def _bar(found: Mapping[str, float], marks: Mapping[str, float], color: str) -> Markup:
    """A bar with thresholds."""
    median, most = _place(found.get("median", SHORTEST)), _place(found.get("largest", SHORTEST))
    usual = _place(found.get("99 %", SHORTEST))
    parts = [_span(median, most, color, 0.35), _span(median, usual, color, 1.0)]
    for level, mark in marks.items():
        parts.append(_span(_place(mark), _place(mark), COLORS[level], 1.0))
    return Markup(
        '<div style="position: relative; width: 6em; height: 0.8em; margin-top: 0.25em; '
        f'background: rgba(128, 128, 128, 0.15)">{"".join(parts)}</div>'
    )


def _span(left: float, right: float, color: str, opacity: float) -> str:
    """A part of a bar; ends in percent."""
    width = max(right - left, 1.0)
    return (
        f'<span style="position: absolute; top: 0; height: 100%; left: {left:.1f}%; '
        f'width: {width:.1f}%; background: {color}; opacity: {opacity}"></span>'
    )


def _place(seconds: float) -> float:
    """Place of a time on a bar [%]."""
    bounded = min(max(seconds, SHORTEST), LONGEST)
    return 99.0 * math.log(bounded / SHORTEST) / math.log(LONGEST / SHORTEST)
