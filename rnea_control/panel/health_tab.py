"""`HealthTab`: mode, report and times of the controller, and the findings of the doctor."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from viser import GuiApi, GuiEvent

from rnea_control.client.arm import Arm, Report
from rnea_control.control import Mode
from rnea_control.exceptions import ArmError
from rnea_control.loop.loop_records import NAMES
from rnea_control.panel import latency
from rnea_control.panel.examination import OBSERVED, examine
from rnea_control.panel.hypertext import Markup, block, colored, light, lines, put, table
from rnea_control.panel.moment import Moment, Source
from rnea_control.parameters.table import DIAGNOSTICS
from rnea_control.ros.conventions import STOP_HOLDERS

REDRAWN = 0.5  # period at which the tab is drawn [s]
REREAD = 10.0  # period at which the thresholds are read [s]
GROWN = 10.0  # time for which a counter that has grown is a warning [s]
LATE = 3.5  # age from which a report is overdue; one comes each second [s]
MOST_VALUES = 200  # values of a report that are shown
LEVELS = ("ok", "warn", "error")  # levels of diagnostic_msgs/DiagnosticStatus, by number
OF_FINDINGS = {"error": "error", "warning": "warn", "note": "unknown"}  # levels of the doctor
# Meaning of each mode (docs/safety.md), with its light.
MODES = {
    Mode.INACTIVE: ("warn", "It commands nothing. Activate the controller."),
    Mode.WAITING: ("warn", "It waits until it may command the arm."),
    Mode.CHECKING: ("warn", "It tests the joints with small torques for wrong signs and units."),
    Mode.HOLDING: ("ok", "It holds the arm, and accepts motions."),
    Mode.MOVING: ("ok", "It follows a trajectory."),
    Mode.STREAMING: ("ok", "It follows a stream of targets."),
    Mode.BRAKING: ("warn", "It brings the arm to rest."),
    Mode.GRAVITY_COMPENSATION: ("ok", "A hand guides the arm. Resume ends that."),
    Mode.EMERGENCY_STOP: ("error", "It holds the arm. Release the stop, then resume."),
    Mode.FAULT: ("error", "It holds the arm. Mend the cause, then call ~/reset_fault."),
    Mode.BLIND: ("error", "No usable joint state arrives. It brakes by the model."),
    Mode.GUARDED: ("warn", "The sentinel commands the arm. Resume takes it back."),
    Mode.POWERLESS: ("error", "It has let go of the arm. Deactivate and activate it."),
}
BY_NAME = {mode.value: words for mode, words in MODES.items()}
# Counters of the report that should not grow.
COUNTERS = (
    "callbacks failed",
    "states refused",
    "gaps in states",
    "trajectories dropped",
    "commands not published",
    "gave way",
    "stream targets refused",
    "stream targets of another publisher",
)
# Values that should be exactly these.
EXPECTED = {
    STOP_HOLDERS: "none",
    "check of the wires": "all is well",
    "publishers of joint_states": "1",
}
BAD = (STOP_HOLDERS, "publishers of joint_states")  # another value is an error, else a warning
# Values without a judgment.
SHOWN = ("effort controller", "sentinel", "delay of the torques", "largest position error")


class HealthTab:
    """Health of the controller.

    Args:
        gui: elements of the page; the tab is open.
        source: where moments come from.
        arm: the arm; None for a recording.
    """

    def __init__(self, gui: GuiApi, source: Source, arm: Arm | None) -> None:
        self._arm, self._mode = arm, ""
        self._thresholds = {row.name: row.default for row in DIAGNOSTICS}
        self._counters = Counters()
        self._drawn_at = -math.inf
        self._due, self._reader = 0.0, threading.Thread()
        self.state = gui.add_html("")
        self.lights = gui.add_html("")
        with gui.add_folder("Times of the control loop"):
            self.times = gui.add_html("")
        self.findings: Any = None
        if arm is not None:
            with gui.add_folder("Doctor"):
                self._examine = gui.add_button(
                    "Examine", hint=f"runs rnea_doctor for {OBSERVED:g} s; it changes nothing"
                )
                self.findings = gui.add_html("")
            self._examine.on_click(self.examine)
        with gui.add_folder("All values of /diagnostics", expand_by_default=False):
            self.values = gui.add_html("")

    def show(self, moment: Moment) -> None:
        """Shows the newest report twice a second."""
        self._mode = moment.mode.name
        now = time.monotonic()
        if now - self._drawn_at < REDRAWN:
            return
        self._drawn_at = now
        if self._arm is not None and now >= self._due and not self._reader.is_alive():
            self._due = now + REREAD
            self._reader = threading.Thread(target=self._read, args=(self._arm,), daemon=True)
            self._reader.start()
        values = moment.report.values
        self._counters.note(values, now)
        put(self.state, block(self._state(moment)))
        put(self.lights, block(table((), self._lights(values), wraps=True)))
        put(self.times, block(latency.bars(values, self._thresholds)))
        rows = [(key, value) for key, value in sorted(values.items())[:MOST_VALUES]]
        put(self.values, block(table((), rows, wraps=True)))

    def examine(self, event: GuiEvent[Any] | None = None) -> None:
        """Shows the findings of the doctor."""
        if self._arm is None or self._examine.disabled:
            return
        self._examine.disabled = True
        put(self.findings, block(f"rnea_doctor observes for {OBSERVED:g} s ..."))
        try:
            found = examine(self._arm.controller, self._mode)
        except ArmError as error:
            put(self.findings, block(colored(str(error), "error", bold=True)))
        else:
            rows = [
                (light(OF_FINDINGS[each.level]), lines(each.what, each.remedy, f"[{each.code}]"))
                for each in found
            ]
            words = f"Examined at {time.strftime('%H:%M:%S')}."
            nothing = "" if rows else colored("The doctor has found nothing.", "ok")
            put(self.findings, block(lines(words, nothing), table((), rows, wraps=True)))
        finally:
            self._examine.disabled = False

    def _state(self, moment: Moment) -> Markup:
        """Mode with its reason, and the report in words."""
        other = "unknown" if self._arm is None else "error"  # a recording has no mode
        level, meaning = BY_NAME.get(moment.mode.name, (other, ""))
        mode = f"{moment.mode.name.replace('_', ' ')}: {moment.mode.reason}"
        rows = [(light(level), lines(colored(mode, level, bold=True), meaning))]
        rows.append((light(level_of(moment.report)), _words(moment.report)))
        return table((), rows, wraps=True)

    def _lights(self, values: Mapping[str, str]) -> list[tuple[object, ...]]:
        """Rows of lights."""
        rows: list[tuple[object, ...]] = []
        for key, expected in EXPECTED.items():
            if key in values:
                other = "error" if key in BAD else "warn"
                level = "ok" if values[key] == expected else other
                rows.append((light(level), key, values[key]))
        rows += [(light("unknown"), key, values[key]) for key in SHOWN if key in values]
        models = sorted(key for key in values if key.startswith("model "))
        rows += [(light("warn"), "the model does not fit", values[key]) for key in models]
        for name in NAMES:
            level = latency.level_of(name, values, self._thresholds)
            if latency.thresholds_of(name, self._thresholds) and level != "unknown":
                rows.append((light(level), name, latency.worst(name, values)))
        for key in COUNTERS:
            if key in values:
                grown = self._counters.growth(key)
                words = f"{values[key]} (+{grown} in {GROWN:g} s)" if grown else values[key]
                rows.append((light("warn" if grown else "ok"), key, words))
        return rows

    def _read(self, arm: Arm) -> None:
        """Reads the thresholds; keeps the last ones of a controller that does not answer."""
        with suppress(ArmError, KeyError):
            self._thresholds = arm.parameters.get(self._thresholds)


class Counters:
    """Growth of the counters of a report in the last `GROWN` seconds."""

    def __init__(self) -> None:
        self._kept: deque[tuple[float, dict[str, int]]] = deque()

    def note(self, values: Mapping[str, str], now: float) -> None:
        """Keeps the counters of a report; `now` is a time by the steady clock [s]."""
        counts = {key: int(values[key]) for key in COUNTERS if values.get(key, "").isdigit()}
        self._kept.append((now, counts))
        while now - self._kept[0][0] > GROWN:
            self._kept.popleft()

    def growth(self, key: str) -> int:
        """Growth of a counter; 0 if it is not known, or was reset."""
        counts = [kept[key] for _, kept in self._kept if key in kept]
        return max(counts[-1] - counts[0], 0) if counts else 0


def level_of(report: Report) -> str:
    """Level of a report; unknown without one."""
    if not report.message:
        return "unknown"
    return "error" if report.age > LATE else LEVELS[min(report.level, len(LEVELS) - 1)]


def _words(report: Report) -> object:
    if not report.message:
        return "no report on /diagnostics"
    if report.age > LATE:
        return f"no report for {report.age:.0f} s; the last one: {report.message}"
    return report.message
