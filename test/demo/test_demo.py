"""The demo: its robots and trajectories, its figures, and one whole run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from robots import joint, link, robot, two_link_arm

from rnea_control.demo.catalogue import entries, special
from rnea_control.demo.catalogue import table as listing
from rnea_control.demo.options import options
from rnea_control.demo.picture import draw
from rnea_control.demo.recording import Recording
from rnea_control.demo.report import summary, table
from rnea_control.demo.robots import LIMIT_SHARE, find_urdf, known_robots, load_robot, motion
from rnea_control.dynamics import Workspace, rnea
from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModel

pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")


@pytest.mark.parametrize("name", ["panda", "seven_axis_arm", "ur5_robot", "xarm7", "z1", "kinova"])
def test_motion_stays_within_the_limits(name: str) -> None:
    shown = load_robot(name)
    model = shown.model
    trajectory = motion(model, shown.start, shown.waypoints)
    assert trajectory.end_time == pytest.approx(10.0)
    ws, tau = Workspace(model), np.zeros(model.nv)
    moved = np.zeros(model.nv)
    for time in np.linspace(0.0, 10.0, 500):
        q, v, a = trajectory.at(time)
        assert ((model.lower <= q) & (q <= model.upper)).all()
        assert (
            np.abs(rnea(model, ws, q, v, a, tau)) <= 1.02 * LIMIT_SHARE * model.effort_limit
        ).all()
        moved = np.maximum(moved, np.abs(q - shown.start))
    assert moved.max() > 0.1


def test_panda_locks_its_fingers() -> None:
    assert load_robot("panda").model.merged_joints[-2:] == (
        "panda_finger_joint1",
        "panda_finger_joint2",
    )


def test_robot_by_path_and_unknown_robot() -> None:
    name, path = find_urdf("seven_axis_arm")
    assert find_urdf(str(path)) == (name, path)
    with pytest.raises(RneaControlError, match=r"no robot 'nobody'; there are .*panda"):
        load_robot("nobody")
    with pytest.raises(RneaControlError, match=r"nobody\.urdf: cannot be read"):
        load_robot("nobody.urdf")
    with pytest.raises(RneaControlError, match="no joint that moves"):
        load_robot("iris_simple")


def test_chosen_joints_move_and_the_others_stay_where_they_would_start() -> None:
    whole, part = load_robot("panda"), load_robot("panda", ["panda_joint6", "panda_joint2"])
    assert part.model.joint_names == ("panda_joint6", "panda_joint2")
    np.testing.assert_array_equal(part.start, whole.start[[5, 1]])
    assert part.parameters["locked_positions"]["panda_joint4"] == whole.start[3]
    assert part.parameters["locked_positions"]["panda_finger_joint1"] == 0.02
    assert list(part.parameters["gains"]) == ["panda_joint2", "panda_joint6"]
    with pytest.raises(RneaControlError, match="no joint 'elbow'"):
        load_robot("panda", ["elbow"])


def test_robots_of_the_same_name_are_told_apart() -> None:
    known = known_robots()
    assert "anymal" not in known
    assert known["anymal_c_simple_description/anymal"].stem == "anymal"
    assert len(set(known.values())) == len(known)


def test_velocity_limits_hold_beside_one_of_zero(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(
        two_link_arm()
        .replace('velocity="10"', 'velocity="0"', 1)
        .replace('velocity="10"', 'velocity="0.1"')
    )
    shown = load_robot(str(path))
    trajectory = motion(shown.model, shown.start, shown.waypoints)
    fastest = max(abs(trajectory.at(t)[1][1]) for t in np.linspace(0.0, 10.0, 500))
    assert 0.01 < fastest <= 0.1


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_urdf_may_declare_its_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "arm.urdf"
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + two_link_arm("Ärmchen")
    path.write_bytes(text.encode(encoding))
    shown = load_robot(str(path))
    assert shown.model.name == RobotModel.from_urdf_string(shown.urdf).name == "Ärmchen"


def test_figures_of_a_recording() -> None:
    time = np.linspace(0.0, 1.0, 5)
    desired = np.zeros((5, 2))
    measured = np.array([[0.0, 3.0], [0.0, -4.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    recording = Recording("pd", time, desired, measured, 2.0 * measured, "")
    np.testing.assert_allclose(recording.rms, [0.0, np.sqrt(5.0)])
    assert recording.total_rms([0, 1]) == pytest.approx(np.sqrt(2.5))
    assert recording.total_rms([1]) == pytest.approx(np.sqrt(5.0))
    np.testing.assert_array_equal(recording.largest, [0.0, 4.0])
    np.testing.assert_array_equal(recording.peak_torque, [0.0, 8.0])


def printed(rendered: object) -> str:
    console = Console(width=200, record=True, file=StringIO())
    console.print(rendered)
    return console.export_text()


def test_units_are_not_mixed(tmp_path: Path) -> None:
    """3 mrad and 5 mm under PD, a tenth of that and twice as much under the RNEA."""
    shown = load_robot(sliding_arm(tmp_path))
    time = np.linspace(0.0, 1.0, 20)
    zero = np.zeros((20, 2))
    turn, slide = np.array([0.003, 0.0]), np.array([0.0, 0.005])
    baseline = Recording("pd", time, zero, zero + turn + slide, zero, "")
    model_based = Recording("computed_torque", time, zero, zero + turn / 10 + 2 * slide, zero, "")
    turning, sliding = summary(shown.model, model_based, baseline)
    assert turning == (
        "RMS over 1 turning joint: pd 3 mrad, computed_torque 0.3 mrad: RNEA is 10 times closer"
    )
    assert sliding == (
        "RMS over 1 sliding joint: pd 5 mm, computed_torque 10 mm: PD is 2 times closer"
    )
    rows = printed(table(shown, model_based, baseline))
    assert re.search(r"turn .*3\.000 .*0\.3000 .*mrad, Nm", rows)
    assert re.search(r"slide .*5\.000 .*10\.0000 .*mm, N", rows)
    draw(tmp_path / "picture.png", shown.model, model_based, baseline)
    assert (tmp_path / "picture.png").stat().st_size > 20_000


def sliding_arm(folder: Path) -> str:
    path = folder / "sliding.urdf"
    limit = '<limit lower="-0.5" upper="0.5" effort="100" velocity="1"/>'
    path.write_text(
        robot(
            link("base"),
            link("a"),
            link("b"),
            joint("turn", "base", "a"),
            joint("slide", "a", "b", "prismatic", limit=limit),
        )
    )
    return str(path)


def test_picture_names_all_joints_of_a_large_robot(tmp_path: Path) -> None:
    shown = load_robot("talos_reduced")
    assert shown.model.nv > 16
    time = np.linspace(0.0, 1.0, 20)
    wave = np.sin(time)[:, None] * np.ones(shown.model.nv)
    model_based = Recording("computed_torque", time, wave, wave + 1e-5, wave, "")
    baseline = Recording("pd", time, wave, wave + 1e-2, wave, "")
    draw(tmp_path / "picture.svg", shown.model, model_based, baseline)
    svg = (tmp_path / "picture.svg").read_text()
    for name in shown.model.joint_names:
        assert name[-23:] in svg  # as a comment beside its outlines
    assert "times closer" in svg
    draw(tmp_path / "disturbed.svg", shown.model, model_based, baseline, disturbed=True)
    assert "no comparison" in (tmp_path / "disturbed.svg").read_text()
    assert "times closer" not in (tmp_path / "disturbed.svg").read_text()


def test_what_is_special_is_told(tmp_path: Path) -> None:
    text = robot(
        link("base"),
        link("a"),
        '<link name="b"/>',
        joint("j", "base", "a", "planar"),
        joint("k", "a", "b"),
    )
    model = RobotModel.from_urdf_string(text)
    assert special(model) == ["1 of several degrees of freedom", "1 without inertia"]
    nothing = RobotModel.from_urdf_string(re.sub("<inertial>.*?</inertial>", "", two_link_arm()))
    assert special(nothing) == ["no inertias"]
    path = tmp_path / "robot.urdf"
    path.write_text(text)
    with pytest.raises(RneaControlError, match="j has more than one degree of freedom"):
        load_robot(str(path))
    assert load_robot(str(path), ["k"]).model.joint_names == ("k",)


def test_robots_are_listed() -> None:
    robots = {entry.name: entry for entry in entries()}
    assert robots["panda"].configured and "1 mimic" in robots["panda"].special
    assert "2 sliding" not in robots["ur5_robot"].special
    assert "sliding" in robots["tiago"].special
    assert robots["ur3"].special.startswith("does not load")
    assert robots["iris_simple"].special == "no joint moves"
    rows = printed(listing(list(robots.values())))
    assert re.search(r"seven_axis_arm .* 7 .* yes", rows)


WRONG_OPTIONS = {
    "rate too small": (["--rate", "0"], "--rate is 0; it must be 1 to 10000 Hz"),
    "rate too large": (["--rate", "1e6"], "--rate is 1e+06"),
    "rate no number": (["--rate", "nan"], "--rate is nan"),
    "joints empty": (["--joints", "a,,b"], "--joints is 'a,,b'"),
    "no folder": (["--picture", "/no/such/picture.png"], "there is no folder /no/such"),
    "a folder": (["--picture", "/tmp.png/.."], "--picture is"),
    "no picture": (["--picture", "picture.txt"], "it must end in one of"),
    "no place to write": (["--picture", "/proc/picture.png"], "which cannot be written"),
    "no film": (["--video", "film.png"], "it must end in one of .gif, .mp4"),
    "no folder for the film": (["--video", "/no/such/film.gif"], "there is no folder /no/such"),
}


@pytest.mark.parametrize("name", WRONG_OPTIONS)
def test_wrong_option_is_named_before_anything_moves(name: str, capsys) -> None:
    arguments, words = WRONG_OPTIONS[name]
    with pytest.raises(SystemExit) as ended:
        options("", arguments)
    assert ended.value.code == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_viewer_needs_a_display() -> None:
    environment = {key: value for key, value in os.environ.items() if "DISPLAY" not in key}
    done = demo("--view", env=environment)
    assert done.returncode == 2
    assert "--view needs a display, and there is none" in " ".join(done.stderr.split())


def test_help_tells_the_exit_status(capsys) -> None:
    with pytest.raises(SystemExit):
        options("", ["--help"])
    text = capsys.readouterr().out
    for status in ("0  both", "1  the demo could not", "2  wrong", "3  a run was", "4  the robot"):
        assert status in text


def demo(*arguments: str, env: dict | None = None) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "rnea_control.demo.executable", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=280.0, check=False, env=env
    )


@pytest.mark.explores
def test_a_whole_run(tmp_path: Path) -> None:
    picture, film = tmp_path / "demo.png", tmp_path / "demo.gif"
    joints = ",".join(f"joint{i}" for i in (1, 2, 4, 6))
    done = demo(
        "--robot",
        "seven_axis_arm",
        "--joints",
        joints,
        "--rate",
        "250",
        "--picture",
        str(picture),
        "--video",
        str(film),
    )
    said = " ".join(done.stdout.split())
    words = ["Picture:", "Film, drawn by", "Stalls under pd:", "Stalls under computed_torque:"]
    if done.returncode == 3:  # a busy machine may disturb it
        words.append("No comparison: the demo was disturbed.")
        assert "closer" not in said
    else:
        assert done.returncode == 0, done.stdout + done.stderr
        words += [
            "joint6",
            "times closer",
            "latency under computed_torque, its start included: median",
        ]
    for each in words:
        assert each in said, done.stdout
    assert picture.stat().st_size > 50_000
    assert film.read_bytes().startswith(b"GIF89a")
    assert film.stat().st_size < 2_000_000


def test_robot_without_inertias_is_no_result(tmp_path: Path) -> None:
    path = tmp_path / "empty.urdf"
    path.write_text(re.sub("<inertial>.*?</inertial>", "", two_link_arm()))
    done = demo("--robot", str(path), "--picture", str(tmp_path / "demo.png"))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "no link that moves has an inertia" in " ".join(done.stdout.split())
    assert "closer" not in done.stdout
    assert not (tmp_path / "demo.png").exists()
