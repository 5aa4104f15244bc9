"""Films and pictures of robots: their shapes, and what draws them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from robots import example_robot, example_robots, load_quietly, two_link_arm

from rnea_control.demo.film import drawn_by_mujoco, film, link_poses, skeleton_frames
from rnea_control.demo.robots import load_robot
from rnea_control.demo.run import Recording
from rnea_control.demo.scene import SIZE, Scene, mesh_file, shapes

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
    poses = link_poses(model, model.random(np.random.default_rng(1))[None])
    scene = Scene(path, model.link_names, poses)
    scene.place(poses[0])
    for link, pose in zip(model.link_names, poses[0], strict=True):
        body = scene.data.body(f"link {link}")
        np.testing.assert_allclose(body.xpos, pose[:3, 3], atol=1e-12)
        np.testing.assert_allclose(body.xmat.reshape(3, 3), pose[:3, :3], atol=1e-9)


def swing(name: str, frames: int = 3) -> tuple:
    robot = load_robot(name)
    q = robot.start + np.linspace(0.0, 0.5, frames)[:, None]
    return robot, q, link_poses(robot.model, q)


@pytest.mark.explores
def test_mujoco_draws_a_moving_robot() -> None:
    robot, _, poses = swing("seven_axis_arm")
    frames, objections = drawn_by_mujoco(robot.path, robot.model.link_names, poses)
    if frames is None:
        pytest.skip(f"MuJoCo cannot draw without a window here: {'; '.join(objections)}")
    assert frames.shape == (3, SIZE[1], SIZE[0], 3)
    assert frames[0].std() > 10.0  # not one color
    assert (frames[0] != frames[2]).any()


def test_skeleton_is_drawn_where_mujoco_is_not() -> None:
    robot, _, poses = swing("panda")
    found = drawn_by_mujoco(robot.path, robot.model.link_names, poses, ["no such thing"])
    frames, (objection,) = found
    assert frames is None and "no such thing: " in objection
    frames = skeleton_frames(robot.path, robot.model, poses)
    assert frames.shape == (3, SIZE[1], SIZE[0], 3)
    assert (frames[0] != 255).any()
    assert (frames[0] != frames[2]).any()


def test_film_lasts_as_long_as_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "no such thing")  # the skeleton is quick, and always there
    robot, _, _ = swing("panda")
    time = np.linspace(0.0, 2.0, 200)
    wave = robot.start + 0.3 * np.sin(3.0 * time)[:, None]
    recording = Recording("computed_torque", time, wave, wave, wave, "")
    path = tmp_path / "film.gif"
    assert "matplotlib" in film(path, robot, recording)
    with Image.open(path) as image:
        assert image.n_frames * image.info["duration"] == pytest.approx(2000, abs=160)
        assert image.size == SIZE
