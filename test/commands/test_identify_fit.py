"""`rnea_identify fit` and `check` from their command line: what they write and what they refuse."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import yaml
from identification_bench import hidden_robot, recording_of
from robots import joint, link, robot

from rnea_control.commands.identify.executable import main
from rnea_control.commands.identify.new_folder import new_folder
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.recording import Recording
from rnea_control.identification.recording_files import write_npz
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
RIGHT = 6  # the seed of a recording of the robot as described


def arm() -> RobotModel:
    return RobotModel.from_urdf_string(URDF)


@cache
def measured(seed: int = 1, load: float = 0.0) -> Recording:
    """Of a robot that is not quite as its URDF, or of one that carries a load and is."""
    robot = arm() if load or seed == RIGHT else hidden_robot(arm(), 3)
    if load:
        robot.set_payload("hand", load, (0.0, 0.02, 0.08))
    return recording_of(robot, 10.0, seed, noise=0.005, rate=250.0)


class Bench:
    """A folder with a URDF and a recording.

    Attributes:
        words: what the last command printed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.urdf = folder / "arm.urdf"
        self.urdf.write_bytes(URDF)
        self.output = folder / "found"
        self.recording = self.put("motion", measured())

    def put(self, name: str, recording: Recording) -> Path:
        path = self.folder / f"{name}.npz"
        write_npz(path, recording)
        return path

    def run(self, *words: object) -> int:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = main(["rnea_identify", *map(str, words)])
        self.words = " ".join(printed.getvalue().split())
        return status

    def fit(self, *words: object) -> int:
        return self.run("fit", *words, "--urdf", self.urdf, "--output", self.output)

    def check(self, *words: object) -> int:
        return self.run("check", *words, "--urdf", self.urdf)

    def parameters(self) -> dict:
        text = (self.output / "rnea_controller.yaml").read_text()
        return yaml.safe_load(text)["/**"]["rnea_controller"]["ros__parameters"]

    def refusal(self, *words: object) -> str:
        """What fit says before it ends; nothing is written then."""
        before = sorted(self.folder.rglob("*"))
        with pytest.raises(SystemExit) as end:
            self.fit(*words)
        assert sorted(self.folder.rglob("*")) == before
        return str(end.value)


@pytest.fixture(scope="module", autouse=True)
def wide_terminal() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")
        yield


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(tmp_path_factory.mktemp("fitted"))
    assert bench.fit(bench.recording) == 0
    return bench


def without_numbers(urdf: bytes) -> bytes:
    def blank(found: re.Match[bytes]) -> bytes:
        return re.sub(rb'"[^"]*"', b'""', found[0])

    return re.sub(rb"<inertial>.*?</inertial>", blank, urdf, flags=re.DOTALL)


def test_fit_holds_out_a_fifth_and_writes_urdf_parameters_and_report(fitted: Bench) -> None:
    assert "on a held-out motion" in fitted.words
    assert "motion.npz, kept from the fit" in fitted.words
    assert "It is at the noise of the measured torques at every joint" in fitted.words
    assert sorted(path.name for path in fitted.output.iterdir()) == FILES
    assert {path.name for path in fitted.folder.iterdir()} == {"arm.urdf", "found", "motion.npz"}
    assert fitted.urdf.read_bytes() == URDF
    found = (fitted.output / "robot.urdf").read_bytes()
    assert found != URDF and without_numbers(found) == without_numbers(URDF)
    assert RobotModel.from_urdf_string(found).joint_names == JOINTS
    parameters = fitted.parameters()
    assert tuple(parameters["armature"]) == JOINTS
    for name, expected in zip(JOINTS, hidden_robot(arm(), 3).friction, strict=True):
        friction = parameters["friction"][name]
        assert set(friction) == {"damping", "coulomb", "offset"}
        assert friction["coulomb"] == pytest.approx(expected, abs=0.5)


def test_check_of_the_fitted_model_is_good_and_of_the_urdf_not(fitted: Bench, bench: Bench) -> None:
    other = bench.put("other", measured(2))
    assert bench.check(other) == 1
    assert "The model differs from the robot." in bench.words
    found = ["--urdf", fitted.output / "robot.urdf", "--config", fitted.output / FILES[1]]
    assert bench.run("check", other, *found) == 0
    assert "The model is accurate to the noise" in bench.words


def test_held_out_recordings_recorded_descriptions_and_weird_paths(bench, monkeypatch) -> None:
    with pytest.raises(SystemExit, match=r"no robot_description was recorded; .* --urdf"):
        bench.run("check", bench.recording)
    folder = bench.folder / "ein Ordner [ü]"
    folder.mkdir()
    told = bench.put("told", replace(measured(), robot_description=URDF.decode()))
    told.rename(folder / "mit Maß.npz")
    other = bench.put("other", measured(2))
    monkeypatch.chdir(folder)
    output = Path("neu/[bold]gefunden")
    assert bench.run("fit", "mit Maß.npz", "--hold-out", other, "--output", output) == 0
    assert "other.npz, kept from the fit" in bench.words.replace("/ ", "/")
    assert sorted(path.name for path in output.iterdir()) == FILES


def test_payload(bench: Bench) -> None:
    """It is the whole load, whatever the controller's file says of one."""
    loaded, empty = bench.put("loaded", measured(4, load=1.0)), bench.put("right", measured(RIGHT))
    config = bench.folder / "controller.yaml"
    of_node = {"payload": {"link": "hand", "mass": 0.7}, "joints": list(JOINTS)}
    config.write_text(yaml.safe_dump({"rnea_controller": {"ros__parameters": of_node}}))
    words = ("--payload", "hand", "--without", empty, "--config", config)
    assert bench.fit(loaded, *words) == 0
    assert "load of hand" in bench.words
    assert [path.name for path in bench.output.iterdir()] == ["rnea_controller.yaml"]
    payload = bench.parameters()["payload"]
    assert payload["link"] == "hand"
    assert payload["mass"] == pytest.approx(1.0, abs=0.05)
    assert payload["center_of_mass"][2] == pytest.approx(0.08, abs=0.02)
    bench.output = bench.folder / "swapped"
    assert bench.fit(empty, "--payload", "hand", "--without", loaded) == 1
    assert "do not use it. Check that the recordings are those with the load" in bench.words


@pytest.mark.parametrize("with_empty", [True, False])
def test_payload_of_motor_currents(bench: Bench, with_empty: bool) -> None:
    """The load is wrong by the same factor, and explains the currents."""
    both = [measured(4, load=1.0), measured(RIGHT)]
    loaded, empty = (
        bench.put(f"currents{k}", replace(each, effort=0.1 * each.effort))
        for k, each in enumerate(both)
    )
    more = ("--without", empty) if with_empty else ()
    assert bench.fit(loaded, "--payload", "hand", *more) == 1
    assert "Do not use the load: the efforts of all joints are 0.1" in bench.words


@pytest.mark.parametrize(
    ("lie", "expected"),
    [
        (lambda effort: effort * [1.0, 1.0, -1.0], "sign of the efforts of wrist is reversed"),
        (lambda effort: np.clip(effort, -0.5 * effort.max(0), None), "the efforts are clipped"),
    ],
)
def test_efforts_that_are_no_torques_are_never_called_good(bench: Bench, lie, expected) -> None:
    """Each lie: identification/test_diagnosis.py."""
    path = bench.put("wrong", changed(effort=lie(measured().effort)))
    assert bench.fit(path) == 1
    assert "Do not use the result yet" in bench.words
    assert "Nothing is left to do" not in bench.words and expected in bench.words
    assert bench.check(path) == 1
    assert "1. " in bench.words and expected in bench.words


def changed(**arrays: np.ndarray) -> Recording:
    return replace(measured(), **arrays)


def first(count: int) -> Recording:
    names = ("time", "q", "effort")
    return changed(**{name: getattr(measured(), name)[:count] for name in names})


def test_recordings_that_cannot_be_are_refused(bench: Bench) -> None:
    r, effort, q = measured(), measured().effort.copy(), measured().q.copy()
    effort[:, 1] = 0.0
    q[1000:, 1] += 1.0
    for name, wrong, expected in (
        ("effort", changed(effort=effort), r"never changes .*: elbow \(0 throughout"),
        ("jump", changed(q=q), "elbow jumps .* Was its zero set there"),
        ("still", changed(q=np.repeat(r.q[:1], len(r.q), 0)), "no joint moves faster"),
        ("slow", changed(time=1e3 * r.time), "Do the stamps rise, in seconds"),
        ("falling", changed(time=r.time[::-1].copy()), "Do the stamps rise"),
        ("empty", changed(time=0.0 * r.time), "Do the stamps rise"),
        ("to_and_fro", replace(first(299), time=np.arange(299) % 2.0), "Do the stamps rise"),
        ("few", first(100), "no 1 s of it are without gaps"),
        ("short", first(300), "the held-out motion cannot be judged"),
        ("names", replace(r, joints=("a", "b", "c")), "lacks the joints shoulder, elbow, wrist"),
    ):
        said = bench.refusal(bench.put(name, wrong))
        assert said.startswith("rnea_identify fit: ")
        assert re.search(expected, said), said


def test_joint_that_stands_is_not_judged(bench: Bench) -> None:
    q = measured().q.copy()
    q[:, 2] = 0.0
    path = bench.put("still", changed(q=q))
    bench.check(path)
    assert "wrist did not move and cannot be judged" in bench.words
    bench.fit(path)
    assert "nan" not in bench.words and "wrist moves for 0 s only" in bench.words


def test_same_recording_twice_is_refused(bench: Bench) -> None:
    again = bench.put("copy", measured())
    first, of_load = bench.recording, ("--payload", "hand", "--without", again)
    for words in ((first, first), (first, "--hold-out", again), (first, *of_load)):
        assert "has the same efforts as" in bench.refusal(*words)


def test_options_that_cannot_be_are_refused(bench: Bench) -> None:
    for words in (("--delay", "nan"), ("--delay", 5), ("--cutoff", "nan"), ("--cutoff", "-1")):
        assert bench.refusal(bench.recording, *words) == "2", words  # wrong usage
    short = bench.put("short", first(1000))
    assert "is longer than the delay of 0.9 s" in bench.refusal(short, "--delay", 0.9)
    free, there, link = bench.output, bench.folder / "there", bench.folder / "link"
    there.mkdir()
    link.symlink_to(bench.folder / "nowhere")
    for output, said in (
        (there, "exists, and is not overwritten"),
        (link, "exists, and is not overwritten"),
        (bench.urdf / "found", "cannot be written: Not a directory"),
        (free.with_name("x" * 300), "cannot be written: File name too long"),
    ):
        bench.output = output
        assert said in bench.refusal(bench.recording), output


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


def test_interrupt_is_no_traceback(bench: Bench, monkeypatch, capsys) -> None:
    interrupted = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("rnea_control.commands.identify.fit.identify", interrupted)
    assert bench.fit(bench.recording) == 130
    assert capsys.readouterr().err == "rnea_identify: interrupted\n"
    assert not bench.output.exists()
