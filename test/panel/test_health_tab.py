"""The Health tab: lights of a report, bars of the loop's times, and the doctor's findings."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace

import pytest

pytest.importorskip("viser", reason="the extra panel is not installed")

from dds import PATIENCE
from moments import Moments, headless

from rnea_control.client.arm import Arm, ModeAndReason, Report
from rnea_control.control import Mode
from rnea_control.exceptions import NotThere, Refused
from rnea_control.loop.loop_records import BINS_PER_DECADE, NAMES, LoopStatistics
from rnea_control.panel import latency
from rnea_control.panel.examination import examine
from rnea_control.panel.health_tab import GROWN, MODES, Counters, HealthTab
from rnea_control.panel.hypertext import COLORS
from rnea_control.ros.conventions import STOP_HOLDERS

DOMAIN = 90
VALUES = {
    STOP_HOLDERS: "none",
    "publishers of joint_states": "1",
    "states refused": "4",
    "check of the wires": "all is well",
    "tick duration, last second": "median 100 us, 99 % 700 us, 99.9 % 900 us, largest 950 us",
}
OBSERVED = "<script>alert(1)</script>"


def shown(report: Report, mode: ModeAndReason) -> HealthTab:
    source = Moments()
    with headless() as server:
        tab = HealthTab(server.gui, source, None)
        tab.show(source.at(1.0, report=report, mode=mode))
    return tab


def lights(content: str) -> dict[str, str]:
    """Color of the light of each row, by the text of the row's second cell."""
    found = {}
    for row in content.split("<tr>")[1:]:
        cells = [cell.partition(">")[2].removesuffix("</td>") for cell in row.split("<td")[1:]]
        name = cells[1].partition("</td>")[0]
        found[name] = next(level for level, color in COLORS.items() if color in cells[0])
    return found


def test_lights_follow_the_report() -> None:
    tab = shown(Report(0, "in control", VALUES, 0.5), ModeAndReason("holding", "at rest"))
    found = lights(tab.lights.content)
    assert found[STOP_HOLDERS] == found["publishers of joint_states"] == "ok"
    assert found["states refused"] == "ok"
    assert found["tick duration"] == "warn"
    assert "holding: at rest" in tab.state.content and "in control" in tab.state.content
    values = {STOP_HOLDERS: f"/panel {OBSERVED}", "model 1": OBSERVED}
    values |= {"publishers of joint_states": "2"}
    stopped = ModeAndReason("emergency_stop", "emergency stop")
    tab = shown(Report(2, "two publishers", values, 9.0), stopped)
    found = lights(tab.lights.content)
    assert found[STOP_HOLDERS] == found["publishers of joint_states"] == "error"
    assert found["the model does not fit"] == "warn"
    assert "no report for 9 s" in tab.state.content and COLORS["error"] in tab.state.content
    for content in (tab.lights.content, tab.values.content):
        assert OBSERVED not in content and "&lt;script&gt;" in content
    tab = shown(Report(), ModeAndReason("", ""))
    assert "no report on /diagnostics" in tab.state.content


def test_every_mode_has_words() -> None:
    assert set(MODES) == set(Mode)


def test_counter_that_grows_is_a_warning_for_a_while() -> None:
    counters = Counters()
    for now, count in ((0.0, "4"), (1.0, "4"), (2.0, "7")):
        counters.note({"states refused": count}, now)
    assert counters.growth("states refused") == 3 and counters.growth("gave way") == 0
    for k in range(12):
        counters.note({"states refused": "7"}, 2.0 + k * GROWN / 10.0)
    assert counters.growth("states refused") == 0
    counters.note({"states refused": "0"}, 15.0)  # activated again
    assert counters.growth("states refused") == 0


def test_quantiles_are_those_that_the_loop_reports() -> None:
    statistics = LoopStatistics()
    statistics.histograms[0, [2 * BINS_PER_DECADE, 4 * BINS_PER_DECADE]] = 99, 1
    statistics.largest[0] = 0.01
    found = latency.quantiles(statistics.summary(0))
    assert list(found) == ["median", "99 %", "99.9 %", "largest"]
    parts = statistics.quantiles(0, 0.5, 0.99, 0.999)
    assert list(found.values()) == pytest.approx([*parts, 0.01], abs=1e-6)
    assert latency.quantiles(statistics.summary(1)) == {}
    content = latency.bars({f"{NAMES[0]}, last second": statistics.summary(0)}, {})
    assert "0.102 / 0.102 / 10" in content


def test_doctor_s_findings_or_why_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="the arm is moving"):
        examine("/arm1/rnea_controller", "moving")
    commands = []

    def run(command: list[str], **given: object) -> object:
        commands.append(command)
        return SimpleNamespace(stdout=answers.pop(0), stderr="it\nfails")

    monkeypatch.setattr(subprocess, "run", run)
    finding = {"level": "error", "code": "joints", "what": "it", "remedy": "mend it"}
    answers = [
        json.dumps({"findings": [finding], "counts": {}}),
        "nothing",
        "[]",
        '{"findings": 3}',
    ]
    (found,) = examine("/arm1/rnea_controller", "holding")
    assert found.remedy == "mend it"
    assert commands[0][-4:] == ["--node", "rnea_controller", "--namespace", "/arm1"]
    for _ in range(3):
        with pytest.raises(NotThere, match="rnea_doctor has given no findings: it fails"):
            examine("/rnea_controller", "holding")


@pytest.mark.explores
def test_doctor_examines_a_running_controller(arm: Arm) -> None:
    arm.wait(seconds=PATIENCE)
    source = Moments()
    with headless() as server:
        tab = HealthTab(server.gui, source, arm)
        tab.show(source.at(1.0, mode=arm.mode, report=arm.diagnostics))
        tab.examine()
        assert "Examined at" in tab.findings.content
        assert "controller-manager" in tab.findings.content or "[" in tab.findings.content
        tab.show(source.at(2.0, mode=ModeAndReason("moving", "trajectory")))
        tab._mode = "moving"
        tab.examine()
        assert "the arm is moving: a new process" in tab.findings.content
        assert not tab._examine.disabled
