"""The verdict in each case, and the report: complete, escaped, small, and of one file."""

from __future__ import annotations

import base64
import struct
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from identified_arm import changed, identification, panda, residuals

from rnea_control.exceptions import IdentificationError
from rnea_control.identification import report as report_module
from rnea_control.identification.report import report, write_report
from rnea_control.identification.report_pictures import POINTS, thinned, torque_picture
from rnea_control.identification.result import Certainty, Identification, Residuals
from rnea_control.identification.verdict import mean_gain, scores, verdict

FOUND = identification()
HELD_OUT = residuals(after=1.5, seconds=10.0)
FITTED = residuals(held_out=False, source="fit <1> & 'more'.mcap", after=1.0, seconds=10.0)
PICTURE = "data:image/png;base64,AAAA"


def certain() -> Identification:
    """Everything is identified."""
    estimates = tuple(replace(e, certainty=Certainty.identified) for e in FOUND.estimates)
    return replace(FOUND, estimates=estimates)


def test_verdict_better_but_above_the_noise() -> None:
    words = verdict(FOUND, [FITTED, HELD_OUT])
    assert words.startswith(
        "On held_out.mcap, which was kept from the fit, the identified model's torque error, "
        "noise included, is 2.0 times smaller than the URDF's"
    )
    assert "At no joint does it reach the noise" in words
    assert "1.5 times the noise and 1.5 % of the effort limit" in words
    assert "8 of 69 base parameters are not identified" in words


def test_verdict_at_the_noise() -> None:
    words = verdict(certain(), [residuals(after=1.0)])
    assert "3.0 times smaller" in words
    assert "at the noise of the measured torques at every joint" in words
    assert words.endswith("Nothing is left to do.")


def test_verdict_worse_than_before() -> None:
    words = verdict(certain(), [residuals(before=2.0, after=5.0)])
    assert "2.5 times larger than the URDF's" in words
    assert "do not use it" in words
    assert "smaller" not in words


def test_verdict_no_better() -> None:
    words = verdict(certain(), [residuals(before=2.0, after=2.0)])
    assert "about as large as the URDF's" in words
    words = verdict(certain(), [residuals(before=1.0, after=1.0)])
    assert "so was the URDF's, and there was nothing to improve" in words


def test_verdict_names_joints_that_got_worse() -> None:
    words = verdict(FOUND, [changed(changed(HELD_OUT, "panda_joint3", 4.0), "panda_joint5", 3.0)])
    assert (
        "larger than the URDF's at panda_joint3 (2.0 times) and panda_joint5 (1.5 times)" in words
    )
    assert "panda_joint3 is furthest" in words
    assert "panda_joint1" not in words


def test_verdict_without_held_out_recordings_says_so() -> None:
    words = verdict(certain(), [FITTED])
    assert words.startswith("No recording was kept from the fit: the figures are of the data that")
    assert "Record another motion, and keep it from the fit." in words
    assert "Nothing is left" not in words


def test_held_out_recordings_alone_are_judged() -> None:
    bad = changed(FITTED, "panda_joint1", 100.0)
    assert verdict(FOUND, [bad, HELD_OUT]) == verdict(FOUND, [HELD_OUT])


def test_several_recordings_count_together() -> None:
    model = panda()
    one, two = residuals(after=1.0), residuals(after=2.0, seconds=40.0)
    (score, *_), (a, *_), (b, *_) = (scores(model, r) for r in ([one, two], [one], [two]))
    assert score.after**2 == pytest.approx((a.after**2 + 2.0 * b.after**2) / 3.0)
    assert mean_gain([a]) == a.before / a.after
    assert "On 2 recordings, which were kept from the fit" in verdict(FOUND, [one, two])


def still(found: Residuals, joint: str) -> Residuals:
    """The same with a joint at rest: nothing is predicted of it."""
    j = found.joints.index(joint)
    before, after = found.before.copy(), found.after.copy()
    before[:, j] = after[:, j] = np.nan
    return replace(found, before=before, after=after)


def test_joint_at_rest_is_not_judged() -> None:
    words = verdict(FOUND, [still(HELD_OUT, "panda_joint7")])
    assert "panda_joint7 did not move there and cannot be judged." in words
    assert "nan" not in words
    nothing = HELD_OUT
    for joint in HELD_OUT.joints:
        nothing = still(nothing, joint)
    assert verdict(FOUND, [nothing]) == verdict(FOUND, [])
    assert "No joint moves in any recording" in verdict(FOUND, [])


def test_samples_at_rest_do_not_count() -> None:
    model = panda()
    pausing = replace(HELD_OUT, after=HELD_OUT.after.copy(), measured=HELD_OUT.measured.copy())
    pausing.after[1000:] = np.nan
    pausing.measured[1000:] += 1e3
    (score, *_) = scores(model, [pausing])
    difference = (HELD_OUT.measured - HELD_OUT.after)[:1000, 0]
    assert score.after == pytest.approx(np.sqrt(np.mean(difference**2)))


def test_exact_data_without_noise() -> None:
    exact = replace(HELD_OUT, measured=HELD_OUT.after, noise=np.zeros(7))
    words = verdict(certain(), [exact])
    assert "at the noise of the measured torques at every joint" in words
    assert "inf" not in words
    assert "nan" not in words


def test_robot_without_effort_limits() -> None:
    class Unlimited:
        v_slices, effort_limit = panda().v_slices, np.full(7, np.inf)

    (score, *_) = scores(Unlimited(), [HELD_OUT])  # type: ignore[arg-type]
    assert score.limit == np.inf
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


def test_report_is_one_file_with_its_pictures(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(path, FOUND, [FITTED, HELD_OUT], verdict(FOUND, [HELD_OUT]), "a.urdf", "a.yaml")
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert len(page.addresses) == 14
    assert page.scripts == 0
    assert "http" not in text
    for address in page.addresses:
        kind, data = address.split(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG\r\n\x1a\n")
    assert len(text) < 5e6


def test_report_says_everything(no_pictures: None) -> None:
    page = Page(report(FOUND, [FITTED, HELD_OUT], "the verdict", "new.urdf", "new.yaml"))
    for words in (
        "Identified parameters of panda",
        "the verdict",
        "12 Hz",
        "2.1 ms",
        "61.3 s",
        *FOUND.model.joint_names,
        *FOUND.base.names,
        *(name for name, matrix in FOUND.inertias.items() if matrix.any()),
        *FOUND.notes,
        "new.urdf",
        "new.yaml",
        "friction_compensation: true",
    ):
        assert words in page.words, words
    # Held-out recordings come first.
    assert page.words.index("held_out.mcap: held out") < page.words.index("'more'.mcap: fitted to")
    assert "nan" not in page.words
    assert "inf" not in page.words.replace("information", "")


def test_text_is_escaped(no_pictures: None) -> None:
    evil = "<script>alert(1)</script>"
    found = replace(FOUND, notes=(evil,))
    text = report(found, [replace(HELD_OUT, source=evil)], evil, evil, evil)
    assert evil not in text
    assert Page(text).words.count(evil) >= 5


def test_report_without_held_out_recordings_says_so(no_pictures: None) -> None:
    page = Page(report(FOUND, [FITTED], "the verdict"))
    assert "No recording was held out: all figures and pictures are of the data" in page.words
    assert "First by what was" not in page.words


def test_report_without_recordings(no_pictures: None) -> None:
    assert "no recording to compare with" in Page(report(FOUND, [], "the verdict")).words


def test_many_recordings_are_not_all_drawn(no_pictures: None) -> None:
    many = [HELD_OUT] * 10
    page = Page(report(FOUND, many, "the verdict"))
    assert len(page.addresses) == report_module.MOST_PICTURES < 70
    assert "22 more pictures are left out" in page.words


def test_joint_at_rest_has_no_picture(no_pictures: None) -> None:
    page = Page(report(FOUND, [still(HELD_OUT, "panda_joint7")], "the verdict"))
    assert len(page.addresses) == 6
    assert "did not move" in page.words


def test_folder_that_is_not_there_is_named(tmp_path: Path, no_pictures: None) -> None:
    with pytest.raises(IdentificationError, match=r"none/report\.html' cannot be written: No such"):
        write_report(tmp_path / "none" / "report.html", FOUND, [HELD_OUT], "words")


def test_long_recording_makes_a_small_picture() -> None:
    """Hours at 1 kHz; the one sample that is far off is seen."""
    count = 4_000_000
    time = np.arange(count) * 1e-3
    torque = np.sin(time)[:, None]
    torque[1_234_567] = 30.0
    off = Residuals("long", True, ("j",), time, torque, torque, torque, np.full(1, 0.1))
    picture = torque_picture(off, "j", "Nm")
    assert len(picture) < 400_000
    data = base64.b64decode(picture.split(",")[1])
    assert struct.unpack(">II", data[16:24]) == (1000, 425)
    _, values = thinned(time, torque[:, 0])
    assert len(values) <= POINTS + 2
    assert np.nanmax(values) == 30.0


def test_short_line_stays_as_it_is() -> None:
    time, values = np.linspace(0.0, 1.0, 100), np.arange(100.0)
    for given, got in zip((time, values), thinned(time, values), strict=True):
        np.testing.assert_array_equal(given, got)
    assert [len(part) for part in thinned(np.zeros(1), np.zeros(1))] == [1, 1]


@pytest.mark.parametrize("count", [200, 20_000])
def test_line_is_broken_where_samples_are_missing(count: int) -> None:
    time = np.arange(count) / count
    time[count // 2 :] += 1.0
    drawn, values = thinned(time, np.ones(count))
    (gap,) = np.flatnonzero(np.isnan(values))
    assert drawn[gap - 1] < 0.6
    assert drawn[gap] > 1.4
    assert (np.diff(drawn) >= 0.0).all()


def test_nan_within_a_stretch_hides_nothing_else() -> None:
    values = np.full(100_000, np.nan)
    values[::7] = 2.0
    _, drawn = thinned(np.arange(1e5), values)
    assert (drawn == 2.0).all()
