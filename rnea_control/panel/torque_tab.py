"""`TorqueTab`: the torque of each joint by its terms, the tracking error, and the share of the
effort limit; and the torque at rest that no term of the model explains."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from viser import GuiApi, GuiUplotHandle, uplot

from rnea_control.array_types import FloatArray
from rnea_control.control.controller_state import TERMS
from rnea_control.control.feasibility import RESTING
from rnea_control.dynamics import Workspace, gravity
from rnea_control.model.robot_model import units
from rnea_control.panel.hypertext import (
    UNKNOWN,
    Markup,
    bar,
    block,
    colored,
    lines,
    number,
    put,
    table,
)
from rnea_control.panel.moment import Moment, Source
from rnea_control.panel.torque_history import (
    TorqueHistory,
    position_error,
    total_torque,
    unexplained,
)
from rnea_control.plausibility.causes import UNKNOWN as UNKNOWN_CAUSE
from rnea_control.plausibility.model_check import Witness, check_model

KEPT = 120.0  # time that is kept [s]
SHOWN = 20.0  # time that the charts show [s]
PERIOD = 0.04  # shortest time between two moments that are kept [s]
REDRAWN = 0.25  # period of charts and table [s]
JUDGED = 1.0  # time for which the arm must rest before its torque is judged [s]
LEAST_MOMENTS = 5  # number of moments of which the torque at rest is the mean
NOTABLE = 0.01  # share of the effort limit from which an unexplained torque is reported
FITTED = 0.003  # share of the effort limit by which a likely cause may miss the torque of a joint
FITTED_PART = 0.15  # the same as a share of the largest unexplained torque, if that is more
HIGH = 0.7  # share of the effort limit from which a torque is a warning
FULL = 0.97  # share of the effort limit from which a torque is at its limit
DECIMALS = 4  # decimals of the numbers in the charts
HEIGHT = 260  # height of the chart of torques [pixels]
LOW = 150  # height of the chart of the error [pixels]
# Colors of the terms, distinct for color-blind users too [Okabe and Ito 2008].
COLORS = ("#0072b2", "#56b4e9", "#009e73", "#b8a800", "#d55e00", "#999999", "#cc79a7")
TOTAL = "#707070"  # color of the sum
MEASURED = "#e69f00"  # color of the measured effort
THIN = 1.5  # width of a line [pixels]
THICK = 3.0  # width of the lines that should be zero at rest [pixels]
SHOULD_BE_ZERO = ("feedback", "disturbance")  # at rest
EXPLANATION = (
    "Sum: the torque before the limits. Measured: the effort in joint_states. At rest, feedback "
    "and disturbance should be near zero: else the model lacks a payload or a mass, gravity has "
    "another direction, or something touches the arm. A feedback that follows the velocity is "
    "friction."
)
CAUSES = (
    "Causes: a payload, a mass or a direction of gravity that the model does not have (tab Tune); "
    "a contact; static friction, if it changes after each motion."
)


class TorqueTab:
    """Torques by their terms, live and of the last two minutes.

    Args:
        gui: elements of the page; the tab is open.
        source: where moments come from.
    """

    def __init__(self, gui: GuiApi, source: Source) -> None:
        self._joints, self._model = source.joint_names, source.model
        self._labels = without_common_prefix(self._joints)
        self._units = [units(source.model, j) for j in range(source.model.nv)]
        self._units_of_table = [(each.effort, f"m{each.position}") for each in self._units]
        self._history = TorqueHistory(source.model, round(KEPT / PERIOD))
        self._drawn_at = -math.inf  # by the steady clock [s]
        self._drawn: tuple[object, ...] = ()
        self._judged_at = -math.inf  # last time at rest, by the clock of the hardware [s]
        self._found: list[str] = []  # sentences about the torque at that time
        self._cause = ""  # likely cause of them
        self._workspace = Workspace(source.model)
        # Its first call may compile; `show` must not wait for that.
        self._likely_cause(np.zeros(source.model.nq), np.ones(source.model.nv))
        self.verdict = gui.add_html("")
        self.overview = gui.add_html("")
        self.joint = gui.add_dropdown("joint", self._joints)
        terms = [
            _line(name, color, THICK if name in SHOULD_BE_ZERO else THIN)
            for name, color in zip(TERMS, COLORS, strict=True)
        ]
        terms += [_line("sum", TOTAL, THIN, (6, 4)), _line("measured", MEASURED, THIN, (2, 3))]
        self.torques = _chart(gui, terms, HEIGHT)
        self.errors = _chart(gui, [_line("error [mrad] or [mm]", COLORS[0], THIN)], LOW)
        self.pause = gui.add_checkbox("pause", False, hint="keeps the charts, to look at them")
        self.back = gui.add_slider(
            "back [s]", 0.0, KEPT - SHOWN, 1.0, 0.0, hint="end of the charts"
        )
        put(gui.add_html(""), block(EXPLANATION, style="opacity: 0.7"))

    def show(self, moment: Moment) -> None:
        """Keeps a moment; shows charts and tables four times a second."""
        if not (self.pause.value or 0.0 <= moment.time - self._history.newest < PERIOD):
            self._history.add(moment)
        now = time.monotonic()
        if now - self._drawn_at < REDRAWN:
            return
        self._drawn_at = now
        drawn = self._history.newest, self.joint.value, self.back.value
        if drawn != self._drawn:
            self._drawn = drawn
            self._draw(self._joints.index(self.joint.value), self._history.newest - self.back.value)
        put(self.overview, self._overview(moment))
        put(self.verdict, block(self._verdict(moment)))

    def _draw(self, j: int, end: float) -> None:
        """Draws the charts of a joint until a time [s]."""
        window = self._history.window(end, SHOWN)
        time, total = window.time - end, total_torque(window.terms)[:, j]
        _plot(self.torques, time, *window.terms[:, :, j].T, total, window.efforts[:, j])
        _plot(self.errors, time, 1e3 * window.errors[:, j])

    def _overview(self, moment: Moment) -> Markup:
        """Table of all joints."""
        terms = moment.torque_terms
        total, limits = total_torque(terms), self._limits
        total = np.where(np.isfinite(terms).all(axis=0), total, moment.efforts)
        lacking = unexplained(terms, moment.external_torques)
        errors = 1e3 * position_error(self._model, moment)
        rows = []
        for j, joint in enumerate(self._labels):
            share = abs(total[j]) / limits[j]
            level = "error" if share >= FULL else "warn" if share >= HIGH else "ok"
            percent = f" {100.0 * share:.0f} %" if math.isfinite(share) else ""
            notable = abs(lacking[j]) > NOTABLE * limits[j]
            unknown = number(lacking[j])
            rows.append(
                (
                    joint,
                    Markup(bar(share, level) + percent),
                    _largest(terms[:, j]),
                    number(total[j]),
                    colored(unknown, "warn", bold=True) if notable else unknown,
                    number(errors[j], 2),
                )
            )
        effort, position = (
            ", ".join(dict.fromkeys(each)) for each in zip(*self._units_of_table, strict=True)
        )
        hyphenated = Markup("un&shy;explained")
        head = ("joint", "of limit", "largest term", effort, hyphenated, f"error {position}")
        return block(table(head, rows, numbers=3))

    def _verdict(self, moment: Moment) -> Markup:
        """Sentences about the torque at rest that no term of the model explains."""
        self._judge(moment)
        if not math.isfinite(self._judged_at):
            return colored("The torques at rest are not known yet.", "unknown")
        found, past = self._found, ""
        if (ago := self._history.newest - self._judged_at) > 0.0:
            past = colored(f"The arm moves. {ago:.0f} s ago:", "unknown")
        if not found:
            return lines(
                past, colored("At rest, the model explains the torque of all joints.", "ok")
            )
        warnings = [colored(line, "warn", bold=True) for line in found]
        # Findings of the controller itself, with the likely cause.
        values = sorted(moment.report.values.items())
        findings = [value for key, value in values if key.startswith("model ")]
        return lines(past, *warnings, *(findings or [self._cause or CAUSES]))

    def _judge(self, moment: Moment) -> None:
        """Judges the torque if the arm rests."""
        newest = self._history.newest
        if newest < self._judged_at:
            self._judged_at = -math.inf  # another recording, or another place in it
        window = self._history.window(newest, JUDGED)
        velocities, lacking = window.velocities, window.lacking
        if len(window.time) < LEAST_MOMENTS or np.isnan(lacking).all(axis=0).any():
            return
        if not (np.abs(np.nanmean(velocities, axis=0)) < RESTING).all():
            return
        self._judged_at, mean, limits = newest, np.nanmean(lacking, axis=0), self._limits
        self._found = [
            f"{joint}: {number(abs(mean[j]), 2)} {self._units[j].effort} are explained by no term "
            f"of the model ({100.0 * abs(mean[j]) / limits[j]:.0f} % of its limit)."
            for j, joint in enumerate(self._joints)
            if abs(mean[j]) > NOTABLE * limits[j]
        ]
        self._cause = self._likely_cause(moment.positions, mean) if self._found else ""

    def _likely_cause(self, positions: FloatArray, lacking: FloatArray) -> str:
        """Sentence about the likely cause of the torque that the model lacks at rest [Nm] or [N],
        shape (nv,); empty without one."""
        model, q = self._model, np.ascontiguousarray(positions)
        if not np.isfinite(q).all():
            return ""
        torque = gravity(model, self._workspace, q, np.zeros(model.nv)) + lacking
        limits = np.nan_to_num(self._limits, nan=math.inf)
        bound = np.maximum(FITTED * limits, FITTED_PART * np.abs(lacking).max())
        found = check_model(model, self._workspace, q, torque, bound, Witness.feedback).likely
        return f"Likely: {found.sentence}." if found and found.cause is not UNKNOWN_CAUSE else ""

    @property
    def _limits(self) -> FloatArray:
        """Effort limits, NaN where there is none, shape (nv,), [Nm] or [N]."""
        limits = self._model.effort_limit
        return np.where((limits > 0.0) & np.isfinite(limits), limits, math.nan)


def without_common_prefix(names: Sequence[str]) -> list[str]:
    """Names without the words, separated by underscores, with which all of them begin."""
    words = [name.split("_") for name in names]
    most = min(map(len, words)) - 1 if len(names) > 1 else 0
    begin = next((k for k in range(most) if len({each[k] for each in words}) > 1), most)
    return ["_".join(each[begin:]) for each in words]


def _largest(terms: FloatArray) -> str:
    """Name and value of the largest term of a joint."""
    if np.isnan(terms).all():
        return UNKNOWN
    largest = int(np.nanargmax(np.abs(terms)))
    return f"{TERMS[largest]} {number(terms[largest], 2)}"


def _line(label: str, color: str, width: float, dash: tuple[int, ...] = ()) -> uplot.Series:
    """Line of a chart."""
    line = uplot.Series(label=label, stroke=color, width=width, show=True)
    if dash:
        line["dash"] = dash
    return line


def _plot(chart: GuiUplotHandle, time: FloatArray, *lines: FloatArray) -> None:
    """Draws lines over the time [s]; hides lines that are not known, as uPlot scales no axis by a
    line that begins with NaN."""
    known = [bool(np.isfinite(line).any()) for line in lines]
    chart.visible = any(known)
    if not any(known):
        return
    time_axis, *series = chart.series
    shown = [
        uplot.Series(**{**each, "show": is_known})
        for each, is_known in zip(series, known, strict=True)
    ]
    if shown != series:
        chart.series = (time_axis, *shown)
    columns = np.array(
        [line if is_known else 0.0 * time for line, is_known in zip(lines, known, strict=True)]
    )
    complete = np.isfinite(columns).all(axis=0)
    first = int(np.argmax(complete)) if complete.any() else len(time) - 1
    rounded = np.round(columns[:, first:], DECIMALS)
    chart.data = tuple(np.ascontiguousarray(line) for line in (time[first:], *rounded))


def _chart(gui: GuiApi, lines: list[uplot.Series], height: int) -> GuiUplotHandle:
    """Chart over the time before its end; a drag zooms, a double click ends that."""
    empty = np.array([-SHOWN, 0.0]), *(np.zeros(2) for _ in lines)
    time_axis = uplot.Series(label="time [s]")
    return gui.add_uplot(
        empty,
        (time_axis, *lines),
        scales={"x": uplot.Scale(time=False, range=(-SHOWN, 0.0))},
        height=height,
    )
