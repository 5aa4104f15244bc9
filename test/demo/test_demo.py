"""The demo: its robots and trajectories, its figures, and one whole run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rnea_control.demo.picture import draw
from rnea_control.demo.recording import Recording
from rnea_control.demo.robots import LIMIT_SHARE, find_urdf, load_robot, motion
from rnea_control.dynamics import Workspace, rnea
from rnea_control.exceptions import RneaControlError

pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")


@pytest.mark.parametrize("name", ["panda", "seven_axis_arm", "ur5_robot", "xarm7", "z1", "kinova"])
def test_motion_stays_within_the_limits(name: str) -> None:
    robot = load_robot(name)
    model = robot.model
    trajectory = motion(model, robot.start, robot.waypoints)
    assert trajectory.end_time == pytest.approx(10.0)
    ws, tau = Workspace(model), np.zeros(model.nv)
    moved = np.zeros(model.nv)
    for time in np.linspace(0.0, 10.0, 500):
        q, v, a = trajectory.at(time)
        assert ((model.lower <= q) & (q <= model.upper)).all()
        assert (
            np.abs(rnea(model, ws, q, v, a, tau)) <= 1.02 * LIMIT_SHARE * model.effort_limit
        ).all()
        moved = np.maximum(moved, np.abs(q - robot.start))
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


def test_figures_of_a_recording() -> None:
    time = np.linspace(0.0, 1.0, 5)
    desired = np.zeros((5, 2))
    measured = np.array([[0.0, 3.0], [0.0, -4.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    recording = Recording("pd", time, desired, measured, 2.0 * measured, {})
    np.testing.assert_allclose(recording.rms, [0.0, np.sqrt(5.0)])
    assert recording.total_rms == pytest.approx(np.sqrt(2.5))
    np.testing.assert_array_equal(recording.largest, [0.0, 4.0])
    np.testing.assert_array_equal(recording.peak_torque, [0.0, 8.0])


def test_picture_is_a_png(tmp_path: Path) -> None:
    robot = load_robot("panda")
    time = np.linspace(0.0, 1.0, 20)
    wave = np.sin(time)[:, None] * np.ones(7)
    model_based = Recording("computed_torque", time, wave, wave + 1e-5, wave, {})
    baseline = Recording("pd", time, wave, wave + 1e-2, wave, {})
    draw(tmp_path / "picture.png", robot.model, model_based, baseline)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_a_whole_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "rnea_control.demo.executable", "--robot", "seven_axis_arm"]
    done = subprocess.run(
        [*command, "--picture", str(tmp_path / "demo.png")],
        capture_output=True,
        text=True,
        timeout=300.0,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = " ".join(done.stdout.split())
    for words in ("joint7", "times closer", "latency under computed_torque: median", "Picture:"):
        assert words in printed, done.stdout
    assert (tmp_path / "demo.png").stat().st_size > 50_000
