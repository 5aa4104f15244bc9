"""`rnea_identify fit` and `check` from their command line: what they write and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from identification_bench import hidden_robot, recording_of
from robots import joint, link, robot

from rnea_control.commands.identify.executable import main
from rnea_control.commands.identify.new_folder import new_folder
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.recording import Recording
from rnea_control.identification.recording_files import write_recording
from rnea_control.model import RobotModel

FILES = ["report.html", "rnea_controller.yaml", "robot.urdf"]
URDF = "\r\n".join(
    [
        '<?xml version="1.0"?>',
        "<!-- an arm -->",
        robot(
            link("base"),
            link("upper", 2.0, (0.2, 0, 0.01), (0.03, 0, 0, 0.04, 0, 0.03)),
            link("lower", 1.5, (0.17, 0.02, 0), (0.02, 0, 0, 0.02, 0, 0.03)),
            link("hand", 0.5, (0, 0, 0.05), (0.002, 0, 0, 0.002, 0, 0.002)),
            joint("shoulder", "base", "upper", axis=(0, 1, 0)),
            joint("elbow", "upper", "lower", axis=(0, 1, 0), xyz=(0.4, 0, 0)),
            joint("wrist", "lower", "hand", "continuous", axis=(1, 0, 0), xyz=(0.3, 0, 0)),
            name="arm",
        ),
        "",
    ]
).encode()
JOINTS = ("shoulder", "elbow", "wrist")


def arm() -> RobotModel:
    return RobotModel.from_urdf_string(URDF)


def measured(seed: int = 1, seconds: float = 10.0, load: float = 0.0, rate: float = 250.0):
    """A recording of a robot that is not quite as its URDF."""
    hidden = hidden_robot(arm(), 3)
    if load:
        hidden = arm()
        hidden.set_payload("hand", load, (0.0, 0.02, 0.08))
    return recording_of(hidden, seconds, seed, noise=0.005, rate=rate)


class Bench:
    """A folder with a URDF and a recording."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.urdf = folder / "arm.urdf"
        self.urdf.write_bytes(URDF)
        self.output = folder / "found"
        self.recording = self.put("motion", measured())

    def put(self, name: str, recording: Recording) -> Path:
        path = self.folder / f"{name}.npz"
        write_recording(path, recording)
        return path

    def fit(self, *words: object) -> int:
        robot = ["--urdf", self.urdf, "--output", self.output]
        return main(["rnea_identify", "fit", *map(str, words), *map(str, robot)])

    def check(self, *words: object) -> int:
        return main(["rnea_identify", "check", *map(str, words), "--urdf", str(self.urdf)])

    def refusal(self, *words: object) -> str:
        """What fit says before it ends; nothing is written then."""
        before = sorted(self.folder.rglob("*"))
        with pytest.raises(SystemExit) as end:
            self.fit(*words)
        assert sorted(self.folder.rglob("*")) == before
        return str(end.value)


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of temporary files are long."""
    monkeypatch.setenv("COLUMNS", "1000")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def words_of(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def without_numbers(urdf: bytes) -> bytes:
    def blank(found: re.Match[bytes]) -> bytes:
        return re.sub(rb'"[^"]*"', b'""', found[0])

    return re.sub(rb"<inertial>.*?</inertial>", blank, urdf, flags=re.DOTALL)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A bench with a fit."""
    bench = Bench(tmp_path_factory.mktemp("fitted"))
    assert bench.fit(bench.recording) == 0
    return bench


def test_fit_writes_urdf_parameters_and_report(fitted: Bench) -> None:
    assert sorted(path.name for path in fitted.output.iterdir()) == FILES
    left = {path.name for path in fitted.folder.iterdir()}
    assert left - {"other.npz"} == {"arm.urdf", "found", "motion.npz"}
    assert fitted.urdf.read_bytes() == URDF


def test_only_numbers_of_inertials_change(fitted: Bench) -> None:
    found = (fitted.output / "robot.urdf").read_bytes()
    assert found != URDF
    assert without_numbers(found) == without_numbers(URDF)
    assert RobotModel.from_urdf_string(found).joint_names == JOINTS


def test_parameters_are_those_of_the_controller(fitted: Bench) -> None:
    text = (fitted.output / "rnea_controller.yaml").read_text()
    found = yaml.safe_load(text)["/**"]["rnea_controller"]["ros__parameters"]
    hidden = hidden_robot(arm(), 3)
    assert tuple(found["armature"]) == JOINTS
    for j, name in enumerate(JOINTS):
        friction = found["friction"][name]
        assert set(friction) == {"damping", "coulomb", "offset"}
        assert friction["coulomb"] == pytest.approx(hidden.friction[j], abs=0.5)


def test_last_fifth_is_held_out_by_default(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.fit(bench.recording) == 0
    words = words_of(capsys)
    assert "a motion that was held out" in words and "which was kept from the fit" in words
    assert "It is at the noise of the measured torques at every joint" in words


def test_check_of_the_fitted_model_is_good_and_of_the_description_is_not(
    fitted: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench, other = fitted, fitted.put("other", measured(2))
    assert bench.check(other) == 1
    assert "The model differs from the robot." in words_of(capsys)
    found = ["--urdf", bench.output / "robot.urdf", "--config", bench.output / FILES[1]]
    assert main(["rnea_identify", "check", str(other), *map(str, found)]) == 0
    assert "The model is right to the noise" in words_of(capsys)


def test_other_recordings_can_be_held_out(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.fit(bench.recording, "--hold-out", bench.put("other", measured(2))) == 0
    assert "other.npz, which was kept" in words_of(capsys).replace("/ ", "/")


def test_recorded_description_is_used(bench: Bench) -> None:
    path = bench.put("told", replace(measured(), robot_description=URDF.decode()))
    words = ["rnea_identify", "fit", str(path), "--output", str(bench.output)]
    assert main(words) == 0
    with pytest.raises(SystemExit, match=r"no robot_description was recorded; .* --urdf"):
        main(["rnea_identify", "check", str(bench.recording)])


@pytest.mark.parametrize("known", [0.0, 0.7])
def test_payload(bench: Bench, known: float, capsys: pytest.CaptureFixture[str]) -> None:
    """It is the whole load, whatever the controller's file says of one."""
    loaded = bench.put("loaded", measured(4, load=1.0))
    empty = bench.put("right", recording_of(arm(), 10.0, 6, noise=0.005, rate=250.0))
    config = bench.folder / "controller.yaml"
    of_node = {"payload": {"link": "hand", "mass": known}, "joints": list(JOINTS)}
    config.write_text(yaml.safe_dump({"rnea_controller": {"ros__parameters": of_node}}))
    words = ("--payload", "hand", "--without", empty, "--config", config)
    assert bench.fit(loaded, *words) == 0
    assert [path.name for path in bench.output.iterdir()] == ["rnea_controller.yaml"]
    found = yaml.safe_load((bench.output / "rnea_controller.yaml").read_text())
    payload = found["/**"]["rnea_controller"]["ros__parameters"]["payload"]
    assert payload["link"] == "hand"
    assert payload["mass"] == pytest.approx(1.0, abs=0.05)
    assert payload["center_of_mass"][2] == pytest.approx(0.08, abs=0.02)
    assert "load of hand" in words_of(capsys)


def test_swapped_payload_recordings_are_told(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = bench.put("loaded", measured(4, load=1.0))
    empty = bench.put("right", recording_of(arm(), 10.0, 6, noise=0.005, rate=250.0))
    assert bench.fit(empty, "--payload", "hand", "--without", loaded) == 1
    assert "do not use it. Are these the recordings with the load" in words_of(capsys)


def scaled(factors: list[float]) -> Callable[[Recording], Recording]:
    return lambda found: replace(found, effort=found.effort * factors)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (scaled([1e-3] * 3), "times their size. Are they in Nm"),
        (scaled([-1.0] * 3), "shoulder has the opposite sign"),
        (scaled([1.0, -1.0, 1.0]), "elbow has the opposite sign"),
        (scaled([1.0, 1.0, -1.0]), "driving the joint, not braking it: wrist"),
    ],
)
def test_efforts_of_another_unit_or_sign_are_never_called_good(
    bench: Bench,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Recording], Recording],
    expected: str,
) -> None:
    path = bench.put("wrong", change(measured()))
    assert bench.fit(path, "--delay", 0.0) == 1
    words = words_of(capsys)
    assert "Do not use the result yet" in words and "Nothing is left to do" not in words
    assert expected in words
    assert bench.check(path) == 1


def test_friction_that_drives_is_told_by_check(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.check(bench.put("wrong", scaled([1.0, 1.0, -1.0])(measured()))) == 1
    assert "friction that drives wrist, which none does: is the sign" in words_of(capsys)


def some(found: Recording, **arrays: np.ndarray) -> Recording:
    return replace(found, **arrays)


def rows(found: Recording, part: slice) -> Recording:
    names = ("time", "q", "v", "effort", "commanded")
    return replace(found, **{name: getattr(found, name)[part] for name in names})


def no_effort_of_one(found: Recording) -> Recording:
    effort = found.effort.copy()
    effort[:, 1] = np.nan
    return some(found, effort=effort)


def dead_sensor(found: Recording) -> Recording:
    effort = found.effort.copy()
    effort[:, 1] = 0.0
    return some(found, effort=effort)


def zero_set_anew(found: Recording) -> Recording:
    q = found.q.copy()
    q[1000:, 1] += 1.0
    return some(found, q=q)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (no_effort_of_one, "elbow has no effort: it is empty or NaN in all"),
        (dead_sensor, r"the effort never changes although the joint moves: elbow \(0 throughout"),
        (lambda r: some(r, q=np.degrees(r.q)), "shoulder goes from .* are they in degrees or mm"),
        (zero_set_anew, "elbow jumps by .* rad within .* Was its zero set there"),
        (lambda r: some(r, q=np.repeat(r.q[:1], len(r.q), 0)), "no joint moves faster"),
        (lambda r: some(r, time=1e9 * r.time), "Are the stamps in seconds"),
        (lambda r: some(r, time=1e3 * r.time), "Are the stamps in seconds"),
        (lambda r: some(r, time=r.time[::-1].copy()), "Do the stamps rise"),
        (lambda r: some(r, time=0.0 * r.time), "Do the stamps rise"),
        (lambda r: rows(r, slice(0, 100)), "no 1 s of it are without gaps"),
        (lambda r: rows(r, slice(0, 300)), "of motion that is held out can be judged"),
        (lambda r: replace(r, joints=("a", "b", "c")), "lacks the joints shoulder, elbow, wrist"),
    ],
)
def test_recordings_that_cannot_be_are_refused(
    bench: Bench, change: Callable[[Recording], Recording], expected: str
) -> None:
    said = bench.refusal(bench.put("wrong", change(measured())))
    assert said.startswith("rnea_identify fit: ")
    assert re.search(expected, said), said


def test_jumps_there_and_back_are_left_out(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    found = measured()
    q, effort = found.q.copy(), found.effort.copy()
    q[700, 0], effort[[500, 900], 1], effort[1200, 2] = 1e6, 1e6, np.inf
    assert bench.fit(bench.put("jumps", replace(found, q=q, effort=effort))) == 0
    words = words_of(capsys)
    assert "positions that jump there and back were left out: shoulder (1)" in words
    assert "efforts that jump there and back were left out: elbow (2)" in words
    assert "It is at the noise of the measured torques at every joint" in words


def test_turns_of_a_continuous_joint_are_counted(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    found = measured()
    q = found.q.copy()
    q[:, 2] = (q[:, 2] + 2.0) % (2.0 * np.pi) - np.pi
    other = bench.put("wrapped", replace(found, q=q))
    bench.check(bench.recording)
    straight = words_of(capsys)
    bench.check(other)
    wrapped = words_of(capsys)
    assert ("wrist jumps by whole turns; they were counted" in wrapped) == (np.ptp(q[:, 2]) > 6.0)
    assert "positions filtered at" in straight and "250 Hz" in wrapped


def test_joint_that_stands_is_not_judged(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    hidden = hidden_robot(arm(), 3)
    found = recording_of(hidden, 10.0, 1, noise=0.005, rate=250.0)
    q = found.q.copy()
    q[:, 2] = 0.0
    path = bench.put("still", replace(found, q=q))
    bench.check(path)
    assert "wrist did not move and cannot be judged" in words_of(capsys)
    bench.fit(path)
    words = words_of(capsys)
    assert "nan" not in words and "wrist moves for 0 s only" in words


def test_same_recording_twice_is_refused(bench: Bench) -> None:
    again = bench.put("copy", measured())
    for words in (
        [bench.recording, bench.recording],
        [bench.recording, "--hold-out", again],
        [bench.recording, "--payload", "hand", "--without", again],
    ):
        assert "has the same efforts as" in bench.refusal(*words)


def test_load_that_no_joint_feels_is_refused(bench: Bench) -> None:
    fixed = bench.put("other", measured(2))
    said = bench.refusal(bench.recording, "--payload", "base", "--without", fixed)
    assert "stands still" in said
    assert "there is no link 'tool'" in bench.refusal(bench.recording, "--payload", "tool")


@pytest.mark.parametrize(
    "words", [["--delay", "nan"], ["--delay", "5"], ["--cutoff", "nan"], ["--cutoff", "-1"]]
)
def test_options_out_of_range_are_wrong_usage(bench: Bench, words: list[str]) -> None:
    assert bench.refusal(bench.recording, *words) == "2"


def test_cutoff_beyond_the_rate_is_refused(bench: Bench) -> None:
    said = bench.refusal(bench.recording, "--cutoff", 125)
    assert "must be above 0 and below 125 Hz" in said


def test_delay_longer_than_the_parts_is_refused(bench: Bench) -> None:
    path = bench.put("short", rows(measured(), slice(0, 1000)))
    assert "is longer than the delay of 0.9 s" in bench.refusal(path, "--delay", 0.9)


def test_nothing_is_overwritten(bench: Bench) -> None:
    bench.output.mkdir()
    assert "is there already" in bench.refusal(bench.recording)
    bench.output.rmdir()
    bench.output.symlink_to(bench.folder / "nowhere")
    assert "is there already" in bench.refusal(bench.recording)


def test_output_that_cannot_be_made_is_said_before_the_work(bench: Bench) -> None:
    bench.output = bench.urdf / "found"
    assert f"{bench.urdf} is no folder" in bench.refusal(bench.recording)
    bench.output = bench.folder / ("x" * 300)
    assert "cannot be made: File name too long" in bench.refusal(bench.recording)


def test_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "found"
    refused = pytest.raises(IdentificationError, match="cannot be written: Is a directory")
    with refused, new_folder(path) as folder:
        (folder / "some").write_text("text")
        folder.write_text("text")
    with pytest.raises(KeyboardInterrupt), new_folder(path):
        raise KeyboardInterrupt
    assert list(path.parent.iterdir()) == []
    with new_folder(path) as folder:
        (folder / "some").write_text("text")
    assert [each.name for each in path.iterdir()] == ["some"]


def test_interrupt_is_no_traceback(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rnea_control.commands.identify.fit.identify", interrupted)
    assert bench.fit(bench.recording) == 130
    assert capsys.readouterr().err == "rnea_identify: interrupted\n"
    assert not bench.output.exists()


def test_weird_paths(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bench.folder / "ein Ordner [ü]"
    folder.mkdir()
    bench.recording.rename(folder / "mit Maß.npz")
    monkeypatch.chdir(folder)
    bench.output = Path("neu/[bold]gefunden")
    assert bench.fit("mit Maß.npz") == 0
    assert sorted(path.name for path in bench.output.iterdir()) == FILES
