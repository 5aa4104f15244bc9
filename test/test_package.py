"""The installed package: findable by ament, complete, and documented as it is."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from ament_index_python.packages import get_package_share_directory, get_packages_with_prefixes

import rnea_control
from rnea_control.control import Controller, ControllerSettings, Gains, Waypoint
from rnea_control.model import RobotModel
from rnea_control.node.parameters import LOCKED_POSITION, PARAMETERS
from rnea_control.ros.parameter_table import expand

REPOSITORY = Path(__file__).parents[1]
SHARE = Path(get_package_share_directory("rnea_control"))
PACKAGE = Path(rnea_control.__file__).parent

# What each room may import, from the top of the house down.
ROOMS = ["demo", "node", "simulation", "ros", "control", "dynamics", "model"]
ROS_FREE = ["control", "dynamics", "model"]
ROS_MODULES = re.compile(r"^(rclpy|rcl_interfaces|ament_index_python|\w+_msgs|std_srvs)(\.|$)")


def test_share_directory_holds_everything() -> None:
    assert "rnea_control" in get_packages_with_prefixes()
    for name in (
        "package.xml",
        "launch/simulation.launch.py",
        "launch/arm.launch.py",
        "config/rnea_controller.yaml",
        "config/panda.yaml",
        "urdf/seven_axis_arm.urdf",
    ):
        assert (SHARE / name).is_file(), name


@pytest.mark.parametrize("name", ["rnea_controller", "rnea_simulated_arm", "rnea_demo"])
def test_executables_are_installed(name: str) -> None:
    (entry,) = metadata.entry_points(group="console_scripts", name=name)
    assert callable(entry.load())


def test_versions_agree() -> None:
    manifest = ElementTree.parse(SHARE / "package.xml")
    assert manifest.findtext("version") == rnea_control.__version__
    assert metadata.version("rnea_control") == rnea_control.__version__
    assert rnea_control.__version__ in (REPOSITORY / "CHANGELOG.rst").read_text()


@pytest.mark.parametrize("path", sorted(SHARE.glob("config/*.yaml")), ids=lambda path: path.name)
def test_config_files_hold_only_known_parameters(path: Path) -> None:
    parameters = yaml.safe_load(path.read_text())["/**"]["rnea_controller"]["ros__parameters"]
    joints = parameters["joints"]
    known = expand(PARAMETERS, joints)
    for name, value in flatten(parameters):
        if name.startswith("locked_positions."):
            LOCKED_POSITION.check(name, value)
        else:
            known[name].check(name, value)
    for name, parameter in known.items():
        if parameter.default is None:
            assert name in dict(flatten(parameters)), name


def test_config_file_fits_the_shipped_arm() -> None:
    model = RobotModel.from_urdf_file(SHARE / "urdf" / "seven_axis_arm.urdf")
    text = (SHARE / "config" / "rnea_controller.yaml").read_text()
    parameters = yaml.safe_load(text)["/**"]["rnea_controller"]["ros__parameters"]
    assert tuple(parameters["joints"]) == model.joint_names
    assert model.warnings == ()


def readme_blocks(language: str) -> list[str]:
    return re.findall(
        rf"```{language}\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL
    )


def test_readme_python_runs() -> None:
    (code,) = readme_blocks("python")
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True, text=True)
    assert done.stdout.startswith("[")


def test_readme_yaml_is_complete_and_known() -> None:
    (text,) = readme_blocks("yaml")
    parameters = dict(flatten(yaml.safe_load(text)["/**"]["rnea_controller"]["ros__parameters"]))
    known = expand(PARAMETERS, parameters["joints"])
    for name, value in parameters.items():
        known[name].check(name, value)
    assert all(p.default is not None or name in parameters for name, p in known.items())


def test_readme_trajectory_is_one_that_the_shipped_arm_follows() -> None:
    (text,) = re.findall(
        r'JointTrajectory "(\{.*?\})"\n', "\n".join(readme_blocks("sh")), re.DOTALL
    )
    message = yaml.safe_load(text)
    model = RobotModel.from_urdf_file(SHARE / "urdf" / "seven_axis_arm.urdf")
    controller = Controller(model, ControllerSettings(Gains.uniform(model.nv, 400.0, 40.0)))
    controller.hold(0.0, np.zeros(model.nv))
    assert tuple(message["joint_names"]) == model.joint_names
    points = [
        Waypoint(point["time_from_start"]["sec"], point["positions"], point["velocities"])
        for point in message["points"]
    ]
    controller.follow(0.0, points, 0.0)
    np.testing.assert_allclose(controller.trajectory.at(2.0)[0], message["points"][0]["positions"])


def test_parameter_documentation_is_that_of_the_code() -> None:
    assert (REPOSITORY / "docs" / "parameters.md").read_text() == printed_by("node")
    assert printed_by("simulation") in (REPOSITORY / "docs" / "simulated_arm.md").read_text()


def printed_by(room: str) -> str:
    command = [sys.executable, "-m", f"rnea_control.{room}.parameters"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: "/".join(p.parts[-2:])
)
def test_imports_run_downward_only(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0]
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            if room in ROS_FREE:
                assert not ROS_MODULES.match(name), f"{room}/ is free of ROS"
            parts = name.split(".")
            if (
                room in ROOMS
                and parts[0] == "rnea_control"
                and len(parts) > 1
                and parts[1] in ROOMS
            ):
                assert ROOMS.index(parts[1]) >= ROOMS.index(room), f"{room} imports {name}"


def flatten(parameters: dict, prefix: str = "") -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for name, value in parameters.items():
        if isinstance(value, dict):
            pairs += flatten(value, f"{prefix}{name}.")
        else:
            pairs.append((prefix + name, value))
    return pairs
