"""The Tune tab beside a real controller: values that are set, refused, changed by another client,
and written to a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

pytest.importorskip("control_msgs", reason="the ROS 2 wheels lack it")
pytest.importorskip("viser", reason="the extra panel is not installed")


from dds import wait_for
from moments import headless
from robots import two_link_arm

from rnea_control.client import Arm, Refused
from rnea_control.panel.parameter_field import LONGEST, parsed, text_of
from rnea_control.panel.tune_tab import FORMS, TuneTab
from rnea_control.ros.parameter_files import section_of

DOMAIN = 89
P = "gains.shoulder.p"
REFUSAL = "parameter 'gains.shoulder.p' is -5.0; it must be a double, at least 0"


@pytest.fixture
def tab(arm: Arm) -> Iterator[TuneTab]:
    with headless() as server:
        yield TuneTab(server.gui, arm, acts=True)
    arm.parameters.set({P: 100.0, "gains.shoulder.d": 20.0, "payload.mass": 0.0})


def test_all_forms_have_their_fields_and_the_words_of_the_controller(tab: TuneTab) -> None:
    rows = [row.replace("<joint>", "shoulder") for form in FORMS.values() for row in form]
    assert set(rows) <= set(tab.fields)
    assert tab.fields[P].element.value == "100.0"
    assert "position gain [computed_torque: 1/s^2, else Nm/rad]" in tab.fields[P].line.content
    assert "at least 0" in tab.fields[P].line.content


def test_value_is_set_or_refused_at_its_field(tab: TuneTab, arm: Arm) -> None:
    p, d = tab.fields[P], tab.fields["gains.shoulder.d"]
    p.element.value = "90"
    assert arm.parameters[P] == 100.0  # not by typing
    tab.set_values([p, d])
    assert arm.parameters[P] == 90.0 and p.element.value == "90.0"
    p.element.value, d.element.value = "-5", "21"
    tab.set_values([p, d])
    assert (
        "&#x27;gains.shoulder.p&#x27; is -5.0" in p.line.content and "at least 0" in p.line.content
    )
    assert "velocity gain" in d.line.content
    assert (p.element.value, d.element.value) == ("90.0", "20.0")
    assert arm.parameters.get([P, "gains.shoulder.d"]) == {P: 90.0, "gains.shoulder.d": 20.0}
    d.element.value = "fast"
    tab.set_values([p, d])
    assert "is &#x27;fast&#x27;; it must be a double" in d.line.content


def test_payload_is_set_as_a_whole(tab: TuneTab, arm: Arm) -> None:
    fields = [tab.fields[name] for name in FORMS["Payload"]]
    tab.fields["payload.mass"].element.value = "0.5"
    tab.fields["payload.center_of_mass"].element.value = "[0, 0, 0.1]"
    tab.set_values(fields)
    values = arm.parameters.get(["payload.mass", "payload.center_of_mass"])
    assert values["payload.mass"] == 0.5 and [*values["payload.center_of_mass"]] == [0, 0, 0.1]


def test_change_of_another_client_is_shown_except_over_a_value_that_is_typed(
    tab: TuneTab, arm: Arm
) -> None:
    p, d = tab.fields[P], tab.fields["gains.shoulder.d"]
    d.element.value = "2"
    arm.parameters.set({P: 81.0, "gains.shoulder.d": 18.0})
    moment = SimpleNamespace()
    tab.show(moment)
    wait_for(lambda: p.element.value == "81.0")
    wait_for(lambda: "in force: 18.0" in d.line.content)
    assert d.element.value == "2"
    tab.joint.value = "elbow"
    assert p.name == "gains.elbow.p" and p.element.value == "100.0"
    assert tab.fields["gains.elbow.d"].element.value == "20.0"


def test_any_parameter_can_be_chosen(tab: TuneTab, arm: Arm) -> None:
    tab.chosen.value = "model_check.bound"
    assert tab.any.name == "model_check.bound" and tab.any.element.value == "0.1"
    tab.chosen.value = "allow_partial_joints_goal"
    tab.any.element.value = "true"
    tab.set_values([tab.any])
    assert arm.parameters["allow_partial_joints_goal"] is True
    arm.parameters["allow_partial_joints_goal"] = False
    tab.chosen.value = "joints"
    tab.any.element.value = "elbow"
    tab.set_values([tab.any])
    assert "cannot change now" in tab.any.line.content


def test_file_has_what_differs_from_the_defaults_and_loads(
    tab: TuneTab, arm: Arm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arm.parameters[P] = 85.5
    tab._write(SimpleNamespace(client=None))
    (path,) = tmp_path.glob("rnea_controller_*.yaml")
    assert str(path) in tab.written.content
    values = section_of("/rnea_controller", ["--params-file", str(path)])
    assert values[P] == 85.5 and values["joints"] == ["shoulder", "elbow"]
    assert values["robot_description"] == two_link_arm()
    assert values["gains.elbow.d"] == 20.0 and values["activation.check"] == "off"
    assert "gains.elbow.i" not in values and "payload.mass" not in values
    assert not [name for name in values if name.startswith("qos_overrides")]
    assert yaml.safe_load(path.read_text())["/**"]["rnea_controller"]["ros__parameters"]


def test_page_that_only_shows_has_no_buttons(arm: Arm) -> None:
    with headless() as server:
        tab = TuneTab(server.gui, arm, acts=False)
        assert all(field.element.disabled for field in tab.fields.values())


def test_client_describes_parameters(arm: Arm) -> None:
    found = arm.parameters.describe([P, "payload.mass"])
    assert found[P].meaning.startswith("position gain [") and found[P].allowed.startswith("double")
    with pytest.raises(KeyError, match="nothing"):
        arm.parameters.describe(["nothing"])
    with pytest.raises(Refused, match=re.escape(REFUSAL)):
        arm.parameters[P] = -5.0


@pytest.mark.parametrize(
    ("text", "like", "value"),
    [
        (" 4e2 ", 1.0, 400.0),
        ("inf", 1.0, float("inf")),
        ("3", 1, 3),
        ("3.5", 1, 3.5),
        ("four", 1.0, "four"),
        ("1 2, 3", [0.0], [1.0, 2.0, 3.0]),
        ("1, b", [0.0], "1, b"),
        ("", [0.0], ""),
        ("a, b", ["a"], ["a", "b"]),
        ("true", False, True),
        ("maybe", False, "maybe"),
        ("1", "text", "1"),
        ("7", None, 7.0),
    ],
)
def test_text_becomes_a_value_of_the_parameter_s_type(
    text: str, like: object, value: object
) -> None:
    assert parsed(text, like) == value and type(parsed(text, like)) is type(value)
    if value is not None and type(value) is type(like):
        assert parsed(text_of(value), like) == value
    assert LONGEST < 10_000


@pytest.mark.explores
def test_refused_gain_in_a_browser(opened: Callable, arm: Arm) -> None:
    page = opened()
    page.open("Tune")
    arm.parameters[P] = 95.0
    label = page.page.locator("label", has_text=re.compile("^p$"))
    field = label.locator("xpath=ancestor::*[.//input][1]").locator("input:visible")
    wait_for(lambda: field.input_value() == "95.0")
    field.fill("-5")
    page.shows("in force: 95.0")
    field.press("Enter")
    page.shows("it must be a double, at least 0")
    wait_for(lambda: field.input_value() == "95.0")
    assert arm.parameters[P] == 95.0
    field.fill("96")
    field.press("Enter")
    wait_for(lambda: arm.parameters[P] == 96.0)
    tab = page.page.get_by_role("tab", name="Tune", exact=True)
    place = tab.bounding_box()
    page.page.get_by_role("button", name="Write YAML").scroll_into_view_if_needed()
    assert field.bounding_box()["y"] < place["y"]  # the content is scrolled
    assert tab.bounding_box() == pytest.approx(place, abs=3.0)
