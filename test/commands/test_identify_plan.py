"""`rnea_identify plan` from its command line, and the robot that its commands load."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
from robots import two_link_arm

from rnea_control.analysis import inertial_parameters
from rnea_control.commands.identify.executable import main
from rnea_control.commands.identify.robot import add_robot_arguments, load_robot
from rnea_control.commands.identify.trajectory_message import trajectory_message
from rnea_control.exceptions import ParameterError, RobotModelError
from rnea_control.identification.trajectory_file import read_trajectory
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
    path = tmp_path / "arm.urdf"
    path.write_text(two_link_arm())
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "controller.yaml"
    path.write_text(CONFIG)
    return path


def plan(*words: object) -> int:
    return main(["rnea_identify", "plan", *map(str, words)])


def robot(urdf: Path, *words: object) -> RobotModel:
    parser = argparse.ArgumentParser()
    add_robot_arguments(parser)
    return load_robot(parser.parse_args(list(map(str, words))), urdf)


def test_plan_writes_trajectory_and_picture(
    urdf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, picture = tmp_path / "plan.yaml", tmp_path / "plan.png"
    options = ["--output", output, "--picture", picture, "--duration", 6, "--periods", 2]
    ranges = ["--range", "elbow", "-0.5", "1.0", "--approach", 3, "--seed", 5]
    assert plan(urdf, *options, *ranges) == 0
    found = read_trajectory(output)
    assert found.joints == ("shoulder", "elbow")
    assert found.time[[0, -1]].tolist() == [3.0, 15.0]
    assert found.q[:, 1].min() >= -0.5
    assert found.q[:, 1].max() <= 1.0
    assert picture.read_bytes().startswith(b"\x89PNG")
    words = " ".join(capsys.readouterr().out.split())
    for expected in (
        "Condition number",
        "lower.mcx",
        "elbow.friction",
        "will be poorly known",
        "Collisions of the arm with itself and with what is around it were not looked at",
        "Next: rnea_identify record",
    ):
        assert expected in words


def test_record_reads_what_plan_writes(urdf: Path, tmp_path: Path) -> None:
    output = tmp_path / "plan.yaml"
    assert plan(urdf, "--output", output, "--duration", 6, "--joints", "elbow") == 0
    found = read_trajectory(output)
    message = trajectory_message(found)
    assert message.joint_names == ["elbow"]
    np.testing.assert_array_equal([point.positions for point in message.points], found.q)


@pytest.mark.parametrize("name", ["--output", "--picture"])
def test_existing_files_stay(urdf: Path, tmp_path: Path, name: str) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    paths = {"--output": tmp_path / "plan.yaml", "--picture": tmp_path / "plan.png", name: there}
    with pytest.raises(SystemExit, match=f"rnea_identify plan: {name} .* exists; .* --force"):
        plan(urdf, *(word for pair in paths.items() for word in pair))
    assert there.read_text() == "mine"
    assert not (tmp_path / "plan.yaml").exists()


def test_urdf_and_config_are_never_overwritten(urdf: Path, config: Path) -> None:
    before = urdf.read_text()
    with pytest.raises(SystemExit, match="is the URDF, which is never overwritten"):
        plan(urdf, "--output", urdf, "--force")
    with pytest.raises(SystemExit, match="is the --config, which is never overwritten"):
        plan(urdf, "--output", config, "--force", "--config", config)
    assert urdf.read_text() == before
    assert config.read_text() == CONFIG


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--range", "knee", "0", "1"], "range of knee"),
        (["--range", "elbow", "low", "1"], "--range elbow low 1: LOWER and UPPER must be numbers"),
        (["--lock", "elbow", "up"], "--lock elbow up: the position must be a number"),
        (["--duration", "0.1"], "too short for joint"),
        (["--joints", "knee"], "knee"),
        (["--config", "none.yaml"], "none.yaml cannot be read"),
    ],
)
def test_errors_leave_no_file(urdf: Path, tmp_path: Path, options: list, message: str) -> None:
    output = tmp_path / "plan.yaml"
    with pytest.raises(SystemExit, match=message):
        plan(urdf, "--output", output, *options)
    assert not output.exists()


def test_folder_that_is_not_there(urdf: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="there is no folder"):
        plan(urdf, "--output", tmp_path / "none" / "plan.yaml")


def test_robot_of_the_urdf_alone(urdf: Path) -> None:
    model = robot(urdf)
    assert model.joint_names == ("shoulder", "elbow")
    np.testing.assert_array_equal(model.gravity, [0.0, 0.0, -9.81])
    model = robot(urdf, "--joints", "elbow", "--gravity", 0, 0, "-1.5", "--lock", "shoulder", 1)
    assert model.joint_names == ("elbow",)
    np.testing.assert_array_equal(model.gravity, [0.0, 0.0, -1.5])
    assert model.merged_joints == ("shoulder",)


def test_robot_with_the_controllers_settings(urdf: Path, config: Path) -> None:
    model = robot(urdf, "--config", config)
    assert model.joint_names == ("shoulder",)
    np.testing.assert_array_equal(model.gravity, [0.0, 9.81, 0.0])
    assert (model.damping, model.friction, model.torque_offset, model.armature) == (
        [0.4],
        [0.3],
        [0.1],
        [0.02],
    )
    assert model.total_mass == pytest.approx(RobotModel.from_urdf_file(urdf).total_mass + 0.5)


def test_options_go_before_the_config(urdf: Path, config: Path) -> None:
    model = robot(urdf, "--config", config, "--joints", "elbow", "shoulder", "--gravity", 0, 0, 0)
    assert model.joint_names == ("elbow", "shoulder")
    np.testing.assert_array_equal(model.gravity, 0.0)
    np.testing.assert_array_equal(model.damping, [0.0, 0.4])
    locked = robot(urdf, "--config", config, "--lock", "elbow", 0.25)
    same = RobotModel.from_urdf_file(urdf, ["shoulder"], {"elbow": 0.25})
    same.set_payload("lower", 0.5)
    same.armature = [0.02]
    np.testing.assert_array_equal(inertial_parameters(locked)[:11], inertial_parameters(same)[:11])


def test_config_without_the_node(urdf: Path, config: Path) -> None:
    with pytest.raises(ParameterError, match=r"has no parameters for /other; .* --node"):
        robot(urdf, "--config", config, "--node", "other")


def test_config_with_a_value_that_is_not_allowed(urdf: Path, config: Path) -> None:
    config.write_text(CONFIG.replace("elbow: 0.5", "elbow: half"))
    with pytest.raises(ParameterError, match=r"'locked_positions\.elbow' is 'half'"):
        robot(urdf, "--config", config)
    config.write_text(CONFIG.replace("[shoulder]", "[knee]"))
    with pytest.raises(RobotModelError, match="knee"):
        robot(urdf, "--config", config)
