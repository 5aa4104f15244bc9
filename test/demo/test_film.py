"""Films and pictures of robots: their shapes, and what draws them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from robots import example_robot, example_robots, load_quietly, two_link_arm

from rnea_control.demo.cases import SHOWN
from rnea_control.demo.film import drawing_backend, film, link_poses
from rnea_control.demo.robots import DemoRobot, load_robot
from rnea_control.demo.run import Recording
from rnea_control.demo.scene import SIZE, Scene, shapes
from rnea_control.dynamics import Workspace, forward_kinematics
from rnea_control.ros.mesh_files import mesh_file

pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")


def test_meshes_are_found_around_the_urdf_by_file_and_in_packages(tmp_path: Path) -> None:
    urdf = tmp_path / "some_robot" / "urdf" / "arm.urdf"
    mesh = tmp_path / "some_robot" / "meshes" / "arm.stl"
    for path in (urdf, mesh):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert mesh_file("package://some_robot/meshes/arm.stl", urdf) == mesh
    assert mesh_file(f"file://{mesh}", urdf) == mesh
    assert mesh_file("../meshes/arm.stl", urdf).samefile(mesh)
    assert mesh_file("package://rnea_control/package.xml", urdf).name == "package.xml"
    assert mesh_file("package://some_robot/meshes/leg.stl", urdf) is None
    assert mesh_file("package://no_package/arm.stl", urdf) is None


def test_panda_is_drawn_by_its_collision_meshes_as_its_visuals_are_dae() -> None:
    path = example_robot("panda")
    found = shapes(path)
    for i in range(8):
        (shape,) = found[f"panda_link{i}"]
        assert shape["mesh"][0].endswith(".stl")


def test_links_without_a_shape_are_bars(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(two_link_arm())
    (bar,) = shapes(path)["upper"]
    assert bar["type"].name == "mjGEOM_CAPSULE"
    np.testing.assert_array_equal(bar["fromto"], [0.0, 0.0, 0.0, 0.4, 0.0, 0.0])


ROBOTS = [path for path in example_robots() if path.stem != "ur3"][::6]


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_mujoco_takes_the_shapes_and_puts_the_links_in_their_places(path: Path) -> None:
    model = load_quietly(path)
    poses = np.zeros((len(model.link_names), 4, 4))
    forward_kinematics(model, Workspace(model), model.random(np.random.default_rng(1)), poses)
    scene = Scene(path, model.link_names, poses[None])
    scene.place(poses)
    for link, pose in zip(model.link_names, poses, strict=True):
        body = scene.data.body(f"link {link}")
        np.testing.assert_allclose(body.xpos, pose[:3, 3], atol=1e-12)
        np.testing.assert_allclose(body.xmat.reshape(3, 3), pose[:3, :3], atol=1e-9)


def waving(seconds: float) -> tuple[DemoRobot, Recording]:
    robot, time = load_robot("seven_axis_arm"), np.linspace(0.0, seconds, 200)
    wave = robot.start + 0.3 * np.sin(3.0 * time)[:, None]
    return robot, Recording(SHOWN, time, wave, wave, wave, "", np.arange(200))


@pytest.mark.explores
def test_film_shows_the_motion_and_lasts_as_long(tmp_path: Path, monkeypatch) -> None:
    if not (backend := drawing_backend()):
        pytest.skip("MuJoCo cannot draw without a window here")
    monkeypatch.setenv("MUJOCO_GL", backend)  # and no longer than for this test
    path = tmp_path / "film.gif"
    film(path, *waving(2.0))
    with Image.open(path) as image:
        assert image.n_frames * image.info["duration"] == pytest.approx(2000, abs=160)
        assert image.size == SIZE
        first = np.asarray(image.convert("RGB"), dtype=float)
        image.seek(image.n_frames // 2)
        assert first.std() > 10.0  # not one color
        assert (np.asarray(image.convert("RGB")) != first).any()


def test_lines_are_drawn_where_mujoco_cannot_draw(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "no such thing")
    assert film(tmp_path / "film.gif", *waving(1.0)).startswith("as lines: ")
    with Image.open(tmp_path / "film.gif") as image:
        assert (image.size, image.n_frames) == (SIZE, 12)
        first = np.asarray(image.convert("RGB"))
        image.seek(6)
        assert (first != 255).any() and (np.asarray(image.convert("RGB")) != first).any()


def test_a_film_has_the_poses_of_its_times() -> None:
    robot, recording = waving(2.0)
    poses = link_poses(robot, recording, 10.0)
    assert poses.shape == (20, len(robot.model.link_names), 4, 4)
    at = np.searchsorted(recording.time, 1.0)
    expected = np.zeros_like(poses[0])
    forward_kinematics(robot.model, Workspace(robot.model), recording.measured[at], expected)
    np.testing.assert_array_equal(poses[10], expected)
