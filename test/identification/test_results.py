"""What an identification becomes: parameters that the controller takes, a verdict, a report."""

from __future__ import annotations

import base64
import struct
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import yaml
from robots import PANDA_JOINTS, example_robot, joint, link, load_quietly, robot

from rnea_control.analysis import base_parameters, inertial_parameters, inverse_dynamics_batch
from rnea_control.identification import report as report_module
from rnea_control.identification.controller_yaml import controller_yaml, payload_yaml, significant
from rnea_control.identification.identify import Certainty, Estimate, Identification
from rnea_control.identification.payload import Payload
from rnea_control.identification.report import POINTS, report, thinned, torque_picture
from rnea_control.identification.verdict import Residuals, is_better, scores, verdict
from rnea_control.model import RobotModel
from rnea_control.model.bodies import INERTIA
from rnea_control.node.parameters import PARAMETERS
from rnea_control.parameters.parameter import GivenParameters, expand
from rnea_control.parameters.settings import update_model
from rnea_control.ros.parameter_files import section_of

UNITS = {"m": "kg", "mcx": "kg m", "mcy": "kg m", "mcz": "kg m"}
JOINTS = PANDA_JOINTS
CERTAINTIES = (Certainty.identified,) * 5 + (Certainty.uncertain,) * 2 + (Certainty.unidentified,)


def panda() -> RobotModel:
    return load_quietly(example_robot("panda"), PANDA_JOINTS)


def identification(model: RobotModel | None = None) -> Identification:
    model = panda() if model is None else model
    rng, base, nv = np.random.default_rng(0), base_parameters(model), model.nv
    prior = base.values(inertial_parameters(model))
    estimates = []
    for k, name in enumerate(base.names):
        certainty = CERTAINTIES[k % len(CERTAINTIES)]
        unknown = certainty is Certainty.unidentified
        value = np.nan if unknown else prior[k] + 0.2 * rng.standard_normal()
        unit = UNITS.get(name.split(" ")[0].rpartition(".")[2], "kg m^2")
        estimates.append(Estimate(name, unit, prior[k], value, 0.01 + unknown, certainty))
    moving = [link for link in model.link_names if link != model.root_link]
    inertias = {link: 1.1 * model.link_inertias[link] for link in moving}
    return Identification(
        model,
        base,
        np.array([estimate.value for estimate in estimates]),
        np.eye(base.rank),
        tuple(estimates),
        inertias,
        np.linspace(0.5, 0.05, nv),
        np.linspace(2.0, 0.5, nv),
        np.linspace(1.5, 0.123456789, nv),
        np.linspace(-0.3, 0.3, nv),
        np.linspace(0.4, 0.05, nv),
        37.0,
        0.0021,
        12.0,
        np.full(nv, 4000.0),
        61.3,
        ("panda_joint7 moves for 0.4 s only; its friction keeps the description's value",),
    )


@cache
def residuals(
    held_out=True, source="held_out.mcap", before=3.0, after=1.0, seconds=20.0
) -> Residuals:
    """Of a swinging arm; `before` and `after` are both models' RMS in units of the noise, about."""
    model, rng = panda(), np.random.default_rng(1)
    time, nv = np.arange(round(250.0 * seconds)) / 250.0, model.nv
    w = 2.0 * np.pi * np.linspace(0.1, 0.4, nv)
    phase, swing = np.outer(time, w), 0.3 * (model.upper - model.lower)
    q = 0.5 * (model.lower + model.upper) + swing * np.sin(phase)
    v, a = swing * w * np.cos(phase), -swing * w**2 * np.sin(phase)
    torque = inverse_dynamics_batch(model, q, v, a) + 1.5 * np.tanh(v / 0.05)
    noise = 0.01 * model.effort_limit
    measured = torque + noise * rng.standard_normal(torque.shape)

    def off(size: float) -> np.ndarray:
        error = np.sqrt(2.0 * max(size**2 - 1.0, 0.0)) * noise
        return torque - error * np.sin(phase + 1.0)

    return Residuals(source, held_out, time, measured, off(before), off(after), noise)


def changed(found: Residuals, joint: str, after: float) -> Residuals:
    """The same, with the error after of one joint scaled so."""
    j = JOINTS.index(joint)
    predicted = found.after.copy()
    predicted[:, j] = found.measured[:, j] + after * (predicted[:, j] - found.measured[:, j])
    return replace(found, after=predicted)


pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")


CENTER, INERTIAS = np.array([0.01, -0.02, 0.1]), slice(INERTIA, INERTIA + 10)
PAYLOAD = Payload(
    link="panda_hand",
    mass=0.73,
    center_of_mass=CENTER,
    inertia=np.diag([1.1e-3, 1e-3, 3e-4]),
    mass_deviation=0.02,
    center_deviation=0.01 * np.ones(3),
    delay=0.0,
    seconds=30.0,
    notes=(),
)


def parameters_of(text: str, folder: Path, joints: tuple[str, ...]) -> GivenParameters:
    """As the node has them, of this file behind one with its joints."""
    path = folder / "identified.yaml"
    path.write_text(text, encoding="utf-8")
    values = section_of("/left/rnea_controller", ["--params-file", str(path)])
    known = expand(PARAMETERS, joints)
    given = GivenParameters(values, known)
    assert given.unknown() == []
    for name, value in values.items():
        assert isinstance(value, str) or np.asarray(value).dtype == np.float64, name
        assert known[name].check(name, value) == value
    return given


def test_controller_gets_the_identified_numbers(tmp_path: Path) -> None:
    found, model = identification(), panda()
    text = controller_yaml(found, "a.mcap")
    assert "payload" not in yaml.safe_load(text)["/**"]["rnea_controller"]["ros__parameters"]
    text = controller_yaml(found, "first.mcap and second.mcap")
    update_model(parameters_of(text, tmp_path, model.joint_names), model)
    for name in ("armature", "damping", "friction", "torque_offset"):
        np.testing.assert_allclose(getattr(model, name), getattr(found, name), rtol=1e-4)
    header = [line for line in text.splitlines() if line.startswith("#")]
    assert "for panda, by rnea_identify from first.mcap and second.mcap" in header[0]
    assert max(map(len, text.splitlines())) <= 100


def test_payload_alone(tmp_path: Path) -> None:
    text = payload_yaml(PAYLOAD, "load.mcap")
    assert text.startswith("# Payload of rnea_controller on panda_hand, by rnea_identify from load")
    given = parameters_of(text, tmp_path, panda().joint_names)
    assert given["payload.link"] == "panda_hand"
    assert given["payload.mass"] == 0.73
    assert given["payload.inertia"] == [1.1e-3, 0.0, 0.0, 1e-3, 0.0, 3e-4]
    assert given["armature.panda_joint1"] == 0.0
    model, expected = panda(), panda()
    update_model(given, model)
    expected.set_payload("panda_hand", PAYLOAD.mass, CENTER, inertia=PAYLOAD.inertia)
    np.testing.assert_allclose(model.bodies[:, INERTIAS], expected.bodies[:, INERTIAS], rtol=1e-5)


def test_rod_is_still_a_real_body(tmp_path: Path) -> None:
    """A tool that is a thin rod is at the border of what the model takes."""
    axis = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    rod = replace(PAYLOAD, inertia=12.3456789e-2 * (np.eye(3) - np.outer(axis, axis)))
    model = panda()
    update_model(parameters_of(payload_yaml(rod, "a.mcap"), tmp_path, model.joint_names), model)


def test_awkward_names_are_quoted(tmp_path: Path) -> None:
    names = ("1", "no", "arm: joint", "Gelenk Ä", 'a"b', "#7")
    elements = [link("base"), *(link(f"link{i}") for i in range(len(names)))]
    for i, name in enumerate(names):
        parent = f"link{i - 1}" if i else "base"
        elements.append(joint(name.replace('"', "&quot;"), parent, f"link{i}"))
    model = RobotModel.from_urdf_string(robot(*elements, name="a: robot"))
    found = identification(model)
    text = controller_yaml(found, "strange\nname: {of a file}.mcap")
    given = parameters_of(text, tmp_path, model.joint_names)
    for j, name in enumerate(names):
        assert given[f"armature.{name}"] == pytest.approx(found.armature[j], rel=1e-4)


def test_numbers_are_doubles_for_ros() -> None:
    shown = {1.0: "1.0", -0.0: "0.0", 1e-12: "0.0", 1.23456789e-5: "1.2346e-05"}
    shown |= {2e-5: "2.0e-05", -3.14159265: "-3.1416", 1234567.0: "1234600.0", 3e17: "3.0e+17"}
    dumped = {
        value: yaml.safe_dump([significant(value)]).strip().removeprefix("- ") for value in shown
    }
    assert dumped == shown


FOUND = identification()
HELD_OUT = residuals(after=1.5, seconds=10.0)
FITTED = residuals(held_out=False, source="fit <1> & 'more'.mcap", after=1.0, seconds=10.0)
PICTURE = "data:image/png;base64,AAAA"
ESTIMATES = tuple(replace(each, certainty=Certainty.identified) for each in FOUND.estimates)
CERTAIN = replace(FOUND, estimates=ESTIMATES)
EXACT = replace(HELD_OUT, measured=HELD_OUT.after, noise=np.zeros(7))
WORSE = changed(changed(HELD_OUT, "panda_joint3", 4.0), "panda_joint5", 3.0)
AT_NOISE = "at the noise of the measured torques at every joint"
URDF_TOO = "so was the URDF's, and there was nothing to improve"


VERDICTS: list[tuple[Identification, list[Residuals], list[str], list[str]]] = [
    (
        FOUND,
        [FITTED, HELD_OUT],
        [
            "On held_out.mcap, kept from the fit, the identified model's torque "
            "error, noise included, is 2 times smaller than the URDF's (geometric mean",
            "It is above the noise of the measured torques at 7 of 7 joints",
            "1.5 times the noise and 1.5 % of the effort limit",
            "8 of 69 base parameters are not identified",
        ],
        [],
    ),
    (CERTAIN, [residuals()], ["3 times smaller", AT_NOISE, "Nothing is left to do."], []),
    (
        CERTAIN,
        [residuals(before=2.0, after=5.0)],
        ["2.5 times larger", "do not use it"],
        ["smaller"],
    ),
    (CERTAIN, [residuals(before=2.0, after=2.0)], ["about as large as the URDF's"], []),
    (CERTAIN, [residuals(before=1.0, after=1.0)], [URDF_TOO], []),
    (FOUND, [WORSE], ["panda_joint3 (2 times), panda_joint5 (1.5", "3 is furthest"], ["joint1 ("]),
    (CERTAIN, [EXACT], [AT_NOISE], ["inf", "nan"]),
]


def test_verdict() -> None:
    for found, recordings, said, not_said in VERDICTS:
        words = verdict(found, recordings)
        assert words.startswith("On ")
        assert is_better(found.model, recordings) == ("do not use it" not in words)
        assert [part for part in said if part not in words] == []
        assert [part for part in not_said if part in words] == []
    # Held-out recordings alone are judged.
    fitted = changed(FITTED, "panda_joint1", 100.0)
    assert verdict(FOUND, [fitted, HELD_OUT]) == verdict(FOUND, [HELD_OUT])


def test_several_recordings_count_together() -> None:
    model = panda()
    one, two = residuals(after=1.0), residuals(after=2.0, seconds=40.0)
    (score, *_), (a, *_), (b, *_) = (scores(model, r) for r in ([one, two], [one], [two]))
    assert score.after**2 == pytest.approx((a.after**2 + 2.0 * b.after**2) / 3.0)
    assert a.gain == pytest.approx(a.before / a.after, rel=1e-12)
    assert "On 2 recordings, kept from the fit" in verdict(FOUND, [one, two])


def still(found: Residuals, joint: str) -> Residuals:
    """The same with a joint at rest: nothing is predicted of it."""
    j = JOINTS.index(joint)
    before, after = found.before.copy(), found.after.copy()
    before[:, j] = after[:, j] = np.nan
    return replace(found, before=before, after=after)


def test_joint_at_rest_is_not_judged() -> None:
    words = verdict(FOUND, [still(HELD_OUT, "panda_joint7")])
    assert "panda_joint7 did not move there and cannot be judged." in words and "nan" not in words


def test_samples_at_rest_do_not_count() -> None:
    model = panda()
    pausing = replace(HELD_OUT, after=HELD_OUT.after.copy(), measured=HELD_OUT.measured.copy())
    pausing.after[1000:] = np.nan
    pausing.measured[1000:] += 1e3
    (score, *_) = scores(model, [pausing])
    difference = (HELD_OUT.measured - HELD_OUT.after)[:1000, 0]
    assert score.after == pytest.approx(np.sqrt(np.mean(difference**2)))


def test_robot_without_effort_limits() -> None:
    class Unlimited:
        joint_names, nv, effort_limit = JOINTS, 7, np.full(7, np.inf)
        joint_types = ("revolute",) * 7

    (score, *_) = scores(Unlimited(), [HELD_OUT])  # type: ignore[arg-type]
    assert np.isnan(score.limit)
    found = replace(FOUND, model=Unlimited())  # type: ignore[arg-type]
    assert "% of the torque" in verdict(found, [HELD_OUT])


class Page(HTMLParser):
    """Checks that every element is closed, and notes text and addresses."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words, self.addresses, self.scripts = "", [], 0
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag, attrs) -> None:
        if tag not in ("meta", "img"):
            self._open.append(tag)
        self.scripts += tag in ("script", "link")
        self.addresses += [value for key, value in attrs if key in ("src", "href")]

    def handle_endtag(self, tag) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data) -> None:
        if self._open[-1:] != ["style"]:
            self.words += data + " "


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_module, "torque_picture", lambda *_: PICTURE)


def test_report_is_one_file_with_its_pictures() -> None:
    found = HELD_OUT
    for name in JOINTS[1:]:
        found = still(found, name)
    written = report(FOUND, [found, replace(found, held_out=False)], "words")
    page = Page(written)
    assert len(page.addresses) == 2 and page.scripts == 0
    assert "://" not in written and len(written) < 1e6  # base64 may hold "http" by chance
    for address in page.addresses:
        kind, data = address.split(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG\r\n\x1a\n")


def test_report_says_everything(no_pictures: None) -> None:
    page = Page(report(FOUND, [HELD_OUT, FITTED], "the verdict"))
    for words in (
        *("Identified parameters of panda", "the verdict", "12 Hz", "2.1 ms", "61.3 s"),
        *(*FOUND.model.joint_names, *FOUND.base.names, *FOUND.notes),
        *(name for name, matrix in FOUND.inertias.items() if matrix.any()),
        *("robot.urdf", "rnea_controller.yaml", "friction_compensation: true"),
    ):
        assert words in page.words, words
    assert page.words.index("held_out.mcap: held out") < page.words.index("'more'.mcap: fitted to")
    assert "nan" not in page.words
    assert "inf" not in page.words.replace("information", "")


def test_text_is_escaped(no_pictures: None) -> None:
    evil = "<script>alert(1)</script>"
    found = replace(FOUND, notes=(evil,))
    text = report(found, [replace(HELD_OUT, source=evil)], evil)
    assert evil not in text
    assert Page(text).words.count(evil) >= 3


def test_report_of_few_and_many_recordings(no_pictures: None) -> None:
    for recordings, pictures, said in (
        ([HELD_OUT, FITTED], 14, "held_out.mcap: held out"),
        ([HELD_OUT] * 8, report_module.MOST_PICTURES, "8 more pictures are left out"),
        ([still(HELD_OUT, "panda_joint7")], 6, "did not move"),
        ([WORSE], 7, "worse than the URDF"),
    ):
        page = Page(report(FOUND, recordings, "the verdict"))
        assert len(page.addresses) == pictures and said in page.words


def test_long_recording_makes_a_small_picture() -> None:
    """Of many samples; the one that is far off is seen."""
    time = np.arange(400_000) * 1e-3
    torque = np.sin(time)[:, None]
    torque[123_456] = 30.0
    off = Residuals("long", True, time, torque, torque, torque, np.full(1, 0.1))
    picture = torque_picture(off, 0, "Nm")
    assert len(picture) < 400_000
    data = base64.b64decode(picture.split(",")[1])
    assert struct.unpack(">II", data[16:24]) == (1000, 425)
    _, values = thinned(time, torque[:, 0])
    assert len(values) <= POINTS + 2 and np.nanmax(values) == 30.0


@pytest.mark.parametrize("count", [200, 20_000])
def test_line_is_broken_where_samples_are_missing(count: int) -> None:
    time = np.arange(count) / count
    time[count // 2 :] += 1.0
    drawn, values = thinned(time, np.ones(count))
    (gap,) = np.flatnonzero(np.isnan(values))
    assert drawn[gap - 1] < 0.6 and drawn[gap] > 1.4
    assert (np.diff(drawn) >= 0.0).all()


def test_short_line_stays_as_it_is_and_nan_hides_nothing_else() -> None:
    time, values = np.linspace(0.0, 1.0, 100), np.arange(100.0)
    np.testing.assert_array_equal(thinned(time, values), (time, values))
    assert [len(part) for part in thinned(np.zeros(1), np.zeros(1))] == [1, 1]
    values = np.full(100_000, np.nan)
    values[::7] = 2.0
    _, drawn = thinned(np.arange(1e5), values)
    assert (drawn == 2.0).all()
