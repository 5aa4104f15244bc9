"""The demo: its robots and trajectories, its figures, what a run is worth, and one whole run."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from lifecycle_msgs.msg import State, TransitionEvent
from rich.console import Console
from robots import joint, link, robot, two_link_arm

from rnea_control.demo import program
from rnea_control.demo.cases import CASES, SHOWN, Case
from rnea_control.demo.controller import BANDWIDTH, incidents, parameters, watched_controller
from rnea_control.demo.program import list_robots, options
from rnea_control.demo.report import draw, shown, summary, table
from rnea_control.demo.robots import (
    LEG,
    LIMIT_SHARE,
    PATTERN,
    find_urdf,
    known_robots,
    load_robot,
    motion,
)
from rnea_control.demo.run import Recording, disturbances, void
from rnea_control.dynamics import Workspace, crba, rnea
from rnea_control.exceptions import RneaControlError
from rnea_control.model import RobotModel
from rnea_control.plausibility import suspicions

pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")

END = LEG * (len(PATTERN) + 1)  # of the trajectory [s]


@pytest.mark.parametrize("name", ["panda", "seven_axis_arm", "ur5_robot", "z1", "kinova"])
def test_motion_stays_within_the_limits(name: str) -> None:
    shown = load_robot(name)
    model = shown.model
    trajectory = motion(model, shown.start, shown.waypoints)
    assert trajectory.end_time == pytest.approx(END)
    ws, tau = Workspace(model), np.zeros(model.nv)
    moved = 0.0
    for time in np.linspace(0.0, END, 500):
        q, v, a = trajectory.at(time)
        assert ((model.lower <= q) & (q <= model.upper)).all()
        rnea(model, ws, q, v, a, tau)
        assert (np.abs(tau) <= 1.02 * LIMIT_SHARE * model.effort_limit).all()
        moved = max(moved, np.abs(q - shown.start).max())
    assert moved > 0.1


def test_robots_are_known_by_name_or_path_and_told_apart(tmp_path: Path) -> None:
    known = known_robots()
    assert "anymal" not in known
    assert known["anymal_c_simple_description/anymal"].stem == "anymal"
    assert len(set(known.values())) == len(known)
    name, path = find_urdf("seven_axis_arm")
    assert find_urdf(str(path)) == (name, path)
    latin = tmp_path / "arm.urdf"
    text = '<?xml version="1.0" encoding="latin-1"?>' + two_link_arm("Ärmchen")
    latin.write_bytes(text.encode("latin-1"))
    shown = load_robot(str(latin))
    assert shown.model.name == RobotModel.from_urdf_string(shown.urdf).name == "Ärmchen"
    with pytest.raises(RneaControlError, match=r"no robot 'nobody'; there are .*panda"):
        load_robot("nobody")
    with pytest.raises(RneaControlError, match=r"nobody\.urdf: cannot be read"):
        load_robot("nobody.urdf")
    with pytest.raises(RneaControlError, match="no joint that moves"):
        load_robot("iris_simple")


def test_what_is_no_urdf_is_named_with_what_to_do(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    xacro = '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">{}</robot>'
    Path("arm.urdf.xacro").write_text(xacro.format('<xacro:include filename="a.xacro"/>'))
    Path("plain.xacro").write_text(two_link_arm())
    Path("panda").mkdir()
    Path("arms").mkdir()
    Path("arms", "my.urdf").write_text(two_link_arm())
    Path("arm.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    for given, words in (
        ("arm.urdf.xacro", "arm.urdf.xacro: <xacro:include> in line 1 .*; expand it first"),
        ("arms", "arms: cannot be read: this is a directory; give a URDF file, such as my.urdf"),
        ("arm.png", "arm.png: this is a picture; give the robot's URDF"),
        ("arm.xacro", "no robot 'arm.xacro'; there are"),
    ):
        with pytest.raises(RneaControlError, match=words):
            load_robot(given)
    assert load_robot("plain.xacro").model.nv == 2
    assert load_robot("panda").model.nv == 7  # a name of the list comes first


def test_chosen_joints_move_and_the_others_stay_where_they_would_start() -> None:
    whole, part = load_robot("panda"), load_robot("panda", ["panda_joint6", "panda_joint2"])
    assert whole.model.merged_joints[-2:] == ("panda_finger_joint1", "panda_finger_joint2")
    assert part.model.joint_names == ("panda_joint6", "panda_joint2")
    np.testing.assert_array_equal(part.start, whole.start[[5, 1]])
    assert part.parameters["locked_positions"]["panda_joint4"] == whole.start[3]
    assert part.parameters["locked_positions"]["panda_finger_joint1"] == 0.02
    with pytest.raises(RneaControlError, match="no joint 'elbow'"):
        load_robot("panda", ["elbow"])


def test_velocity_limits_hold_beside_one_of_zero(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    urdf = two_link_arm().replace('velocity="10"', 'velocity="0"', 1)
    path.write_text(urdf.replace('velocity="10"', 'velocity="0.1"'))
    shown = load_robot(str(path))
    trajectory = motion(shown.model, shown.start, shown.waypoints)
    fastest = max(abs(trajectory.at(t)[1][1]) for t in np.linspace(0.0, END, 500))
    assert 0.01 < fastest <= 0.1


def test_figures_of_a_recording() -> None:
    time = np.linspace(0.0, 1.0, 5)
    desired = np.zeros((5, 2))
    measured = np.array([[0.0, 3.0], [0.0, -4.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    recording = Recording(SHOWN, time, desired, measured, 2.0 * measured, "", np.arange(5))
    assert recording.rms(0) == 0.0
    assert recording.rms(1) == recording.rms([1]) == pytest.approx(np.sqrt(5.0))
    assert recording.rms([0, 1]) == pytest.approx(np.sqrt(2.5))
    text = printed(table(SimpleNamespace(name="arm", model=MODEL), [recording]))
    assert re.search(r"elbow +2236 +8\.0 ", text)


def printed(rendered: object) -> str:
    console = Console(width=200, record=True, file=StringIO())
    console.print(rendered)
    return console.export_text()


def recordings(model: RobotModel, *errors: np.ndarray) -> list[Recording]:
    """A recording of each case, off by its errors all the time."""
    time, zero = np.linspace(0.0, 1.0, 20), np.zeros((20, model.nv))
    return [
        Recording(case, time, zero, zero + error, zero, "", np.arange(20))
        for case, error in zip(CASES, errors, strict=True)
    ]


def test_units_are_not_mixed_and_cases_are_told_apart(tmp_path: Path) -> None:
    joints = joint("turn", "base", "a"), joint("slide", "a", "b", "prismatic")
    model = RobotModel.from_urdf_string(robot(link("base"), link("a"), link("b"), *joints))
    errors = np.array([[0.003, 0.005], [3e-7, 1e-6], [0.02, 0.03], [0.01, 0.15]])
    runs = recordings(model, *errors)
    assert summary(model, runs) == [
        "RMS over 1 turning joint, PD with gravity compensation, exact model: 3.00 mrad",
        "RMS over 1 turning joint, computed torque, exact model: 0.0003 mrad",
        "RMS over 1 turning joint, PD with gravity compensation, wrong model: 20.0 mrad",
        "RMS over 1 turning joint, computed torque, wrong model: 10.0 mrad",
        "RMS over 1 sliding joint, PD with gravity compensation, exact model: 5.00 mm",
        "RMS over 1 sliding joint, computed torque, exact model: 0.0010 mm",
        "RMS over 1 sliding joint, PD with gravity compensation, wrong model: 30.0 mm",
        "RMS over 1 sliding joint, computed torque, wrong model: 150 mm",
    ]
    text = printed(table(SimpleNamespace(name="arm", model=model), runs))
    assert re.search(r"turn +3\.00 +0\.0003 +20\.0 +10\.0 .*mrad, Nm", text)
    assert re.search(r"slide +5\.00 +0\.0010 +30\.0 +150 .*mm, N", text)
    assert shown(runs) is runs[1]
    picture = tmp_path / "picture.svg"
    draw(picture, model, runs)
    svg = picture.read_text()
    for each in (
        *model.joint_names,
        "RMS 0.0003, at most 0.0003 mrad, RMS 0.0010, at most 0.0010 mm",
        "wrong model",
        "time [s]",
    ):
        assert each in svg, each
    draw(picture, model, runs, disturbed=True)
    assert "no comparison" in picture.read_text() and "RMS" not in picture.read_text()


def test_the_table_fits_a_terminal() -> None:
    runs = recordings(load_robot("panda").model, *([0.1234] * len(CASES)))
    console = Console(width=80, record=True, file=StringIO())
    console.print(table(load_robot("panda"), runs))
    assert "…" not in console.export_text()


def test_the_wrong_model_is_that_of_another_arm_and_the_gains_are_the_same() -> None:
    panda = load_robot("panda")
    for law in {case.law for case in CASES}:
        exact, wrong = Case(law, exact=True), Case(law, exact=False)
        assert exact.errors == {} and wrong.errors.keys() == {"mass_scale", "joint_armature"}
        gains = parameters(panda, law, 1000.0)["gains"]
        diagonal = np.zeros((7, 7))
        crba(panda.model, Workspace(panda.model), panda.start, diagonal)
        unit = np.ones(7) if law.feeds_back_acceleration else diagonal.diagonal()
        for name, inertia in zip(panda.model.joint_names, unit, strict=True):
            assert gains[name]["p"] == pytest.approx(BANDWIDTH**2 * inertia)
            assert gains[name]["d"] == pytest.approx(2.0 * BANDWIDTH * inertia)


def test_joints_of_several_degrees_of_freedom_are_locked_by_a_choice(tmp_path: Path) -> None:
    joints = joint("j", "base", "a", "planar"), joint("k", "a", "b")
    path = tmp_path / "robot.urdf"
    path.write_text(robot(link("base"), link("a"), '<link name="b"/>', *joints))
    with pytest.raises(RneaControlError, match="j has more than one degree of freedom"):
        load_robot(str(path))
    assert load_robot(str(path), ["k"]).model.joint_names == ("k",)


def test_warnings_are_for_who_can_change_the_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(program, "CONSOLE", Console(width=200, file=StringIO()))
    panda = program.load_robot("panda")
    assert any("safety_controller" in warning for warning in suspicions(panda.model))
    program._print_introduction(panda)
    assert "safety_controller" not in program.CONSOLE.file.getvalue()
    own = tmp_path / "my_panda.urdf"
    own.write_text(panda.urdf)
    program._print_introduction(program.load_robot(str(own)))
    assert "my_panda.urdf: panda_joint1, panda_joint2" in program.CONSOLE.file.getvalue()


def test_robots_are_listed_and_drawn(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(program, "CONSOLE", Console(width=200, file=StringIO()))
    every = known_robots()
    names = ("seven_axis_arm", "ur5_robot", "ur3", "iris_simple", "pr2", "kinova", "talos_reduced")
    monkeypatch.setattr(program, "known_robots", lambda: {name: every[name] for name in names})
    list_robots(tmp_path / "robots.png")
    shown = program.CONSOLE.file.getvalue()
    assert (tmp_path / "robots.png").stat().st_size > 15_000  # bytes; empty axes have fewer
    assert re.search(r"seven_axis_arm .* 7 .* with its own parameters", shown)
    assert re.search(r"ur5_robot .* 6 ", shown)
    assert re.search(r"ur3 .* does not load: ", shown)


WRONG_OPTIONS = {
    "--rate 0": "--rate is 0; it must be 1 to 10000 Hz",
    "--rate 1e6": "--rate is 1e+06",
    "--rate nan": "--rate is nan",
    "--joints a,,b": "--joints is 'a,,b'",
    "--picture /no/such/picture.png": "which cannot be written: No such file",
    "--picture /tmp.png/..": "--picture is",
    "--picture picture.txt": "it must end in one of",
    "--picture /proc/picture.png": "which cannot be written",
    "--video film.png": "it must end in one of .gif, .mp4",
    "--view": "--view needs a display, and there is none",
}


@pytest.mark.parametrize("arguments", WRONG_OPTIONS)
def test_wrong_option_is_named_before_anything_moves(arguments: str, capsys, monkeypatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SystemExit) as ended:
        options(arguments.split())
    assert ended.value.code == 2
    assert WRONG_OPTIONS[arguments] in " ".join(capsys.readouterr().err.split())


@pytest.mark.explores
def test_a_whole_run(tmp_path: Path) -> None:
    picture, film = tmp_path / "demo.png", tmp_path / "demo.gif"
    joints = ",".join(f"joint{i}" for i in (1, 2, 4, 6))
    options = ["--robot", "seven_axis_arm", "--joints", joints, "--rate", "250"]
    options += ["--picture", str(picture), "--video", str(film)]
    command = [sys.executable, "-m", "rnea_control.demo.executable", *options]
    how = {"cwd": tmp_path, "capture_output": True, "text": True}
    done = subprocess.run(command, check=False, timeout=280.0, **how)
    said = " ".join(done.stdout.split())
    words = ["Picture:", "Film, drawn"]
    if done.returncode == 3:  # a busy machine may disturb it
        words.append("No comparison: the demo was disturbed.")
        assert "RMS over" not in said
    else:
        assert done.returncode == 0, done.stdout + done.stderr
        words += ["joint6", "RMS over all joints, computed torque, wrong model:"]
        words += ["State-to-command latency, computed torque, exact model, its start included"]
        assert "[WARN]" not in done.stderr and "[ERROR]" not in done.stderr, done.stderr
    for each in words:
        assert each in said, done.stdout
    assert picture.stat().st_size > 50_000
    assert film.read_bytes().startswith(b"GIF89a")
    assert film.stat().st_size < 2_000_000


def test_robot_without_inertias_is_no_result(tmp_path: Path, capsys, monkeypatch) -> None:
    path, picture = tmp_path / "empty.urdf", tmp_path / "demo.png"
    path.write_text(re.sub("<inertial>.*?</inertial>", "", two_link_arm()))
    monkeypatch.setattr("sys.argv", ["demo", "--robot", str(path), "--picture", str(picture)])
    assert program.main() == 4
    printed = " ".join(capsys.readouterr().out.split())
    assert "the links moved by shoulder, elbow have no inertia" in printed and "RMS" not in printed
    assert not picture.exists()


MODEL = RobotModel.from_urdf_string(two_link_arm())
DURATION = 1.0
N = 1300  # states, a millisecond apart


def clean() -> Recording:
    time = 1e-3 * np.arange(N)
    zero = np.zeros((N, 2))
    return Recording(SHOWN, time, zero, zero, zero + 5.0, "", np.arange(N))


def reasons(**changes: object) -> list[str]:
    return disturbances(MODEL, replace(clean(), **changes), DURATION)


def test_undisturbed_run_has_no_reasons() -> None:
    assert reasons() == []
    every_other = replace(clean(), commands=np.arange(N) // 2)
    assert every_other.longest_wait == pytest.approx(0.001)
    assert reasons(incidents=("the action aborted",)) == ["the action aborted"]


def test_short_recording() -> None:
    names = ("time", "desired", "measured", "torque", "commands")
    parts = {name: getattr(clean(), name)[:400] for name in names}
    assert reasons(**parts) == ["the recording ends after 0.40 of 1 s"]


def test_arm_behind_real_time() -> None:
    time = clean().time.copy()
    time[500:] += 0.08
    time[900:] += 0.06
    fell = "the simulated arm fell behind real time 2 times, by 140 ms in all"
    assert reasons(time=time) == [fell, "no command came for 80 ms"]


@pytest.mark.parametrize(("missing", "disturbed"), [(40, False), (60, True)])
def test_missing_commands(missing: int, disturbed: bool) -> None:
    commands = clean().commands.copy()
    commands[300 : 300 + missing] = commands[300]
    commands[300 + missing :] -= missing
    recording = replace(clean(), commands=commands)
    found = disturbances(MODEL, recording, DURATION)
    assert found == ([f"no command came for {missing} ms"] if disturbed else [])
    assert recording.longest_wait == pytest.approx(1e-3 * missing)


def test_commands_that_end_are_missing() -> None:
    commands = np.minimum(clean().commands, 1000)
    assert reasons(commands=commands) == ["no command came for 298 ms"]


@pytest.mark.parametrize(("part", "disturbed"), [(0.02, False), (0.3, True)])
def test_torque_at_its_limit(part: float, disturbed: bool) -> None:
    torque = clean().torque.copy()
    torque[: int(part * N), 1] = -100.0
    found = reasons(torque=torque)
    assert found == (["the torque of elbow was at its limit, 100, in 30% of the run"] * disturbed)


def test_robots_that_can_be_compared(tmp_path: Path) -> None:
    def void_of(text: str, joints: list[str] | None = None) -> str:
        path = tmp_path / "robot.urdf"
        path.write_text(text)
        return void(load_robot(str(path), joints))

    assert void_of(two_link_arm()) == ""
    joints = joint("one", "base", "a"), joint("two", "a", "b")
    text = robot(link("base"), link("a"), '<link name="b"/>', *joints)
    assert void_of(text).startswith("the links moved by two have no inertia")
    assert void_of(text, ["one"]) == ""
    stuck = '<limit lower="0.5" upper="0.5" effort="100" velocity="1"/>'
    text = robot(link("base"), link("a"), joint("one", "base", "a", limit=stuck))
    assert void_of(text).startswith("no joint has room to move")


def test_what_the_controller_says_of_itself_is_heard() -> None:
    heard: dict[str, Callable[[object], None]] = {}
    node = SimpleNamespace(
        get_namespace=lambda: "/arm",
        create_subscription=lambda kind, topic, callback, qos: heard.update({topic: callback}),
    )
    reports, modes = watched_controller(node)
    value = KeyValue(key="gave way", value="2")
    for name in ("other/rnea_controller: control loop", "arm/rnea_controller: control loop"):
        status = DiagnosticStatus(name=name, values=[value])
        heard["/diagnostics"](DiagnosticArray(status=[status]))
    heard["rnea_controller/mode"](became("moving"))
    assert reports == [{"gave way": "2"}] and modes == [became("moving")]


def became(mode: str) -> TransitionEvent:
    event = TransitionEvent(goal_state=State(label=mode))
    event.transition.label = "somebody asked"
    return event


def test_what_the_controller_says_of_itself_is_an_incident() -> None:
    followed = [became("moving"), became("holding")]
    before = {"gave way": "2"}
    assert incidents(before, {"gave way": "2", "gaps in states": "0"}, followed) == []
    after = {"gave way": "3", "gaps in states": "2"}
    assert incidents(before, after, [*followed, became("braking")]) == [
        "the controller's mode became braking: somebody asked",
        "the controller gave way to the arm",
        "joint states did not come in time (2 times)",
    ]
    assert incidents(before, before, []) == ["the controller did not follow the trajectory"]
