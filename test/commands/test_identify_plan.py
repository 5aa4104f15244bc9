"""`rnea_identify plan` from its command line, and the robot that its commands load."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from robots import example_robot, two_link_arm

from rnea_control.analysis import inertial_parameters
from rnea_control.commands.identify.executable import main
from rnea_control.commands.identify.inputs import add_robot_arguments, load_robot
from rnea_control.commands.identify.motion_sender import read_trajectory
from rnea_control.exceptions import ParameterError, RobotModelError
from rnea_control.identification.excitation import plan_excitation
from rnea_control.model import RobotModel

CONFIG = """
/**:
  rnea_controller:
    ros__parameters:
      joints: [shoulder]
      gravity: [0.0, 9.81, 0.0]
      locked_positions: {elbow: 0.5}
      friction: {shoulder: {damping: 0.4, coulomb: 0.3, offset: 0.1}}
      armature: {shoulder: 0.02}
      payload: {link: lower, mass: 0.5}
      gains: {shoulder: {p: 100.0, d: 20.0}}
"""


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    (tmp_path / "arm.urdf").write_text(two_link_arm())
    return tmp_path / "arm.urdf"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "controller.yaml").write_text(CONFIG)
    return tmp_path / "controller.yaml"


@pytest.fixture(autouse=True)
def little_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any motion will do: how good it is, identification/test_excitation.py shows."""
    hasty = partial(plan_excitation, starts=1, iterations=4)
    monkeypatch.setattr("rnea_control.commands.identify.plan.plan_excitation", hasty)


def plan(*words: object) -> int:
    return main(["rnea_identify", "plan", *map(str, words)])


def robot(urdf: Path, *words: object) -> RobotModel:
    parser = argparse.ArgumentParser()
    add_robot_arguments(parser)
    return load_robot(parser.parse_args(list(map(str, words))), urdf)


def test_plan_writes_trajectory_and_picture(urdf, tmp_path, capsys) -> None:
    output, picture = tmp_path / "plan.yaml", tmp_path / "plan.png"
    options = ["--output", output, "--picture", picture, "--duration", 6]
    tag = '<safety_controller k_velocity="1"/></joint>'
    urdf.write_text(two_link_arm().replace("</joint>", tag))
    ranges = ["--range", "elbow", "-0.5", "1.0", "--approach", 3, "--seed", 5]
    assert plan(urdf, *options, *ranges) == 0
    found = read_trajectory(output)
    assert found.joint_names == ["shoulder", "elbow"]
    assert [found.points[i].time_from_start.sec for i in (0, -1)] == [3, 9]
    elbow = [point.positions[1] for point in found.points]
    assert min(elbow) >= -0.5 and max(elbow) <= 1.0
    assert picture.read_bytes().startswith(b"\x89PNG")
    words = " ".join(capsys.readouterr().out.split())
    for expected in ("Condition number", "lower.mcx", "elbow.friction", "will be poorly known"):
        assert expected in words
    assert "Collisions of the arm with itself and its surroundings were not checked" in words
    assert "shoulder, elbow have a <safety_controller>" in words
    assert "Next: rnea_identify record" in words
    comment, _, _ = output.read_text().partition("joint_names")
    assert all(line.startswith("#") for line in comment.splitlines())
    for expected in ("in simulation first, and keep", "--approach 3.0 --seed 5", "two_link_arm"):
        assert expected in comment


def test_existing_files_stay(urdf: Path, tmp_path: Path) -> None:
    there, new = tmp_path / "there", tmp_path / "plan.yaml"
    there.write_text("mine")
    for name, paths in (("--output", (there, new)), ("--picture", (new, there))):
        with pytest.raises(SystemExit, match=f"rnea_identify plan: {name} .* exists; .* --force"):
            plan(urdf, "--output", paths[0], "--picture", paths[1])
        assert there.read_text() == "mine" and not new.exists()


def test_errors_write_nothing(urdf: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(urdf.parent)
    for options, message in (
        (["--range", "knee", "0", "1"], "range of knee"),
        (["--range", "elbow", "low", "1"], "--range JOINT LOWER UPPER, in rad or m: .*'low'"),
        (["--duration", "0.1"], "duration is 0.1 s; it must be from 3 s"),
        (["--joints", "knee"], r"knee.* \[joint-selection\]$"),
        (["--config", "none.yaml"], "none.yaml cannot be read"),
        (["--output", "none/plan.yaml"], "the folder none does not exist"),
        (["--output", "arm.urdf", "--force"], "is the URDF, which must not be overwritten"),
        (["--output", config, "--force", "--config", config], "is the --config, which must not"),
    ):
        with pytest.raises(SystemExit, match=message):
            plan(urdf, "--output", "plan.yaml", *options)
    assert sorted(path.name for path in urdf.parent.iterdir()) == ["arm.urdf", "controller.yaml"]
    assert urdf.read_text() == two_link_arm() and config.read_text() == CONFIG


def test_robot_of_the_urdf_and_the_controllers_settings(urdf: Path, config: Path) -> None:
    model = robot(urdf)
    assert model.joint_names == ("shoulder", "elbow")
    np.testing.assert_array_equal(model.gravity, [0.0, 0.0, -9.81])
    mass = model.total_mass
    model = robot(urdf, "--joints", "elbow")
    assert model.joint_names == ("elbow",) and model.merged_joints == ("shoulder",)
    model = robot(urdf, "--config", config)
    assert model.joint_names == ("shoulder",)
    np.testing.assert_array_equal(model.gravity, [0.0, 9.81, 0.0])
    found = np.concatenate([model.damping, model.friction, model.torque_offset, model.armature])
    assert found.tolist() == [0.4, 0.3, 0.1, 0.02]
    assert model.total_mass == pytest.approx(mass + 0.5)


def test_joints_go_before_those_of_the_config_and_locked_ones_are_where_it_says(
    urdf: Path, config: Path
) -> None:
    model = robot(urdf, "--config", config, "--joints", "elbow", "shoulder")
    assert model.joint_names == ("elbow", "shoulder")
    np.testing.assert_array_equal(model.damping, [0.0, 0.4])
    locked = robot(urdf, "--config", config)
    same = RobotModel.from_urdf_file(urdf, ["shoulder"], {"elbow": 0.5})
    same.set_payload("lower", 0.5)
    same.armature = [0.02]
    np.testing.assert_array_equal(inertial_parameters(locked)[:11], inertial_parameters(same)[:11])


def test_plan_names_what_only_rounded_angles_make_visible(tmp_path: Path, capsys) -> None:
    urdf = tmp_path / "xarm7.urdf"
    urdf.write_bytes(example_robot("xarm7").read_bytes())
    joints = [f"joint{i}" for i in range(1, 8)]
    assert plan(urdf, "--output", tmp_path / "plan.yaml", "--joints", *joints) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "such as 1.5708 for pi/2, by up to 3.7e-06 rad. 1 parameters are identifiable" in words
    assert "of 69 parameters will be poorly known" in words and "No motion improves" not in words


def test_config_that_is_of_no_use(urdf: Path, config: Path) -> None:
    with pytest.raises(ParameterError, match=r"has no parameters for /other; .* --node"):
        robot(urdf, "--config", config, "--node", "other")
    config.write_text(CONFIG.replace("elbow: 0.5", "elbow: half"))
    with pytest.raises(ParameterError, match=r"'locked_positions\.elbow' is 'half'"):
        robot(urdf, "--config", config)
    config.write_text(CONFIG.replace("[shoulder]", "[knee]"))
    with pytest.raises(RobotModelError, match="knee"):
        robot(urdf, "--config", config)
