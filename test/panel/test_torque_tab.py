"""The Torque tab: what it says of a wrong payload, and what it keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("viser", reason="the extra panel is not installed")

from moments import Moments, headless

from rnea_control.dynamics import Workspace, gravity
from rnea_control.panel import torque_tab
from rnea_control.panel.torque_history import TorqueHistory, unexplained
from rnea_control.panel.torque_tab import JUDGED, KEPT, PERIOD, SHOWN, TorqueTab

LOAD = np.array([0.0, 9.0, 0.0, -7.9, 0.0, 0.0, 0.0])  # torque of a load at each joint [Nm]


def shown(tab: TorqueTab, source: Moments, seconds: float, **given: object) -> None:
    """Shows moments for some seconds; the tab is drawn at the end."""
    start = tab._history.newest if math.isfinite(tab._history.newest) else 0.0
    for k in range(round(seconds / PERIOD)):
        tab._drawn_at = math.inf
        tab.show(source.at(start + (k + 1) * PERIOD, **given))
    tab._drawn_at = -math.inf
    tab.show(source.at(start + seconds, **given))


def test_wrong_payload_is_named_with_its_torque_and_share() -> None:
    source = Moments()
    with headless() as server:
        tab = TorqueTab(server.gui, source)
        shown(tab, source, 0.1)
        assert "not known yet" in tab.verdict.content
        shown(tab, source, 2.0 * JUDGED)
        assert "the model explains the torque of all joints" in tab.verdict.content
        shown(tab, source, 2.0 * JUDGED, disturbance=0.5 * LOAD, feedback=0.5 * LOAD)
        share = 790.0 / source.model.effort_limit[3]
        said = f"joint4: 7.9 Nm are explained by no term of the model ({share:.0f} % of its limit)"
        assert said in tab.verdict.content and "joint2: 9.0 Nm" in tab.verdict.content
        assert "joint1:" not in tab.verdict.content and "payload" in tab.verdict.content
        assert tab.overview.content.count("font-weight: 600") == 2  # the joints of the load
        report = source.at(0.0).report
        report.values["model 1"] = "joint4 is held with <more>"
        shown(tab, source, 2.0 * JUDGED, disturbance=LOAD, report=report)
        assert "joint4 is held with &lt;more&gt;" in tab.verdict.content
        shown(tab, source, 2.0 * JUDGED, disturbance=LOAD, velocities=np.full(7, 0.2))
        assert "The arm moves. 2 s ago:" in tab.verdict.content
        assert "joint2: 9.0 Nm" in tab.verdict.content


def test_load_is_named_with_its_mass() -> None:
    source, q = Moments(), np.array([0.1, 0.6, 0.2, -1.0, 0.3, 0.8, 0.0])
    loaded = source.model.copy()
    loaded.set_payload(source.model.link_names[-1], 1.0, [0.0, 0.0, 0.1])
    lacking = np.zeros(7)
    for model, sign in ((loaded, 1.0), (source.model, -1.0)):
        lacking += sign * gravity(model, Workspace(model), q, np.zeros(7))
    with headless() as server:
        tab = TorqueTab(server.gui, source)
        shown(tab, source, 2.0 * JUDGED, disturbance=lacking, positions=q, desired=q)
        assert "joint6: 0.72 Nm are explained by no term" in tab.verdict.content
        assert "Likely: a load of +1 kg on flange_link" in tab.verdict.content
        shown(tab, source, 2.0 * JUDGED, disturbance=LOAD, positions=q, desired=q)
        assert "Causes: a payload" in tab.verdict.content


def test_charts_show_the_chosen_joint_and_time() -> None:
    source = Moments()
    with headless() as server:
        tab = TorqueTab(server.gui, source)
        shown(tab, source, 30.0, feedback=LOAD)
        shown(tab, source, 10.0, feedback=np.zeros(7))
        tab.joint.value = "joint2"
        shown(tab, source, 0.1, efforts=np.full(7, math.nan))
        time, *lines = tab.torques.data
        assert -SHOWN <= time[0] < -SHOWN + 1.0 and time[-1] == 0.0
        assert all(len(line) == len(time) and np.isfinite(line[0]) for line in lines)
        feedback = lines[torque_tab.TERMS.index("feedback")]
        assert feedback[0] == 9.0 and feedback[-1] == 0.0
        tab.back.value = 15.0
        shown(tab, source, 0.1)
        assert tab.torques.data[1 + torque_tab.TERMS.index("feedback")][-1] == 9.0
        tab.pause.value, kept = True, tab.torques.data
        shown(tab, source, 1.0)
        assert all(map(np.array_equal, tab.torques.data, kept))
        assert type(tab.overview.content) is type(tab.verdict.content) is str


def test_values_that_are_not_known_are_no_lines() -> None:
    source, unknown = Moments(), np.full(7, math.nan)
    with headless() as server:
        tab = TorqueTab(server.gui, source)
        shown(tab, source, 1.0, efforts=unknown, desired=unknown)
        assert [each["show"] for each in tab.torques.series[1:]] == [True] * 8 + [False]
        shown(tab, source, 1.0)
        assert [each["show"] for each in tab.torques.series[1:]] == [True] * 9


def test_history_has_a_fixed_size_a_gap_and_a_new_beginning() -> None:
    source = Moments()
    history = TorqueHistory(source.model, round(KEPT / PERIOD))
    size = history._rows.nbytes
    for k in range(4000):
        assert history.add(source.at(k * PERIOD))
    assert not history.add(source.at(3999 * PERIOD)) and history._rows.nbytes == size
    window = history.window(history.newest, 2.0 * KEPT)
    assert len(window.time) == round(KEPT / PERIOD) and (np.diff(window.time) > 0.0).all()
    history.add(source.at(history.newest + 5.0))
    gap = history.window(history.newest, 5.1)
    assert np.isnan(gap.lacking[-2]).all() and np.isfinite(gap.lacking[-1]).all()
    history.add(source.at(1.0))
    assert len(history.window(1.0, KEPT).time) == 1


def test_unexplained_torque_without_terms_is_the_external_torque() -> None:
    terms, external = np.full((7, 2), math.nan), np.array([1.0, -2.0])
    np.testing.assert_array_equal(unexplained(terms, external), [-1.0, 2.0])
    np.testing.assert_array_equal(unexplained(np.ones((7, 2)), external), [2.0, 2.0])


def test_names_without_the_name_of_the_robot() -> None:
    short = torque_tab.without_common_prefix
    assert short(["panda_joint1", "panda_joint2"]) == ["joint1", "joint2"]
    assert short(["joint1", "joint2"]) == ["joint1", "joint2"]
    assert short(["arm_a_x", "arm_a_x_y"]) == ["x", "x_y"]
    assert short(["arm_x"]) == ["arm_x"]
