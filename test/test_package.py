"""The installed package: findable by ament, complete, and documented as it is."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
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
from rnea_control.node.parameters import PARAMETERS
from rnea_control.node.trajectory_parameters import (
    GAINS_OF_JOINT_TRAJECTORY_CONTROLLER,
    OF_JOINT_TRAJECTORY_CONTROLLER,
)
from rnea_control.ros.parameter_table import expand

REPOSITORY = Path(__file__).parents[1]
SHARE = Path(get_package_share_directory("rnea_control"))
PACKAGE = Path(rnea_control.__file__).parent
DOCUMENTS = [REPOSITORY / "README.md", *sorted(REPOSITORY.glob("docs/*.md"))]

# The packages, from the top down: imports run downward only, and those on one line do not know of
# each other.
HOUSE = [
    ["demo", "commands"],
    ["node", "sentinel", "simulation"],
    ["ros"],
    ["control", "identification"],
    ["messages", "analysis"],
    ["compiled"],
    ["dynamics"],
    ["kernels"],
    ["model"],
]
FLOOR = {name: floor for floor, names in enumerate(HOUSE) for name in names}
ROS_FREE = {name for names in HOUSE[3:] for name in names}
# Their files touch no private attribute of another object.
WITHOUT_PRIVATE_ACCESS = ["commands", "demo", "messages", "node", "ros", "sentinel", "simulation"]
ROS_MODULES = re.compile(r"^(rclpy|rcl_interfaces|ament_index_python|\w+_msgs|std_srvs)(\.|$)")


def test_share_directory_holds_everything() -> None:
    assert "rnea_control" in get_packages_with_prefixes()
    for name in (
        "package.xml",
        "launch/simulation.launch.py",
        "launch/arm.launch.py",
        "launch/gazebo.launch.py",
        "config/rnea_controller.yaml",
        "config/robots/simulated_panda.yaml",
        "config/moveit_controllers.yaml",
        "urdf/seven_axis_arm.urdf",
    ):
        assert (SHARE / name).is_file(), name


@pytest.mark.parametrize(
    "name", ["rnea_controller", "rnea_sentinel", "rnea_simulated_arm", "rnea_demo", "rnea_doctor"]
)
def test_executables_are_installed(name: str) -> None:
    (entry,) = metadata.entry_points(group="console_scripts", name=name)
    assert callable(entry.load())


def test_versions_agree() -> None:
    manifest = ElementTree.parse(SHARE / "package.xml")
    assert manifest.findtext("version") == rnea_control.__version__
    assert metadata.version("rnea_control") == rnea_control.__version__
    assert rnea_control.__version__ in (REPOSITORY / "CHANGELOG.rst").read_text()


def test_config_file_holds_only_known_parameters() -> None:
    parameters = config("rnea_controller.yaml")["/**"]["rnea_controller"]["ros__parameters"]
    joints = parameters["joints"]
    known = expand(PARAMETERS, joints)
    for name, value in flatten(parameters):
        known[name].check(name, value)
    for name, parameter in known.items():
        if parameter.default is None:
            assert name in dict(flatten(parameters)), name


def test_config_file_fits_the_shipped_arm() -> None:
    model = RobotModel.from_urdf_file(SHARE / "urdf" / "seven_axis_arm.urdf")
    parameters = config("rnea_controller.yaml")["/**"]["rnea_controller"]["ros__parameters"]
    assert tuple(parameters["joints"]) == model.joint_names
    assert model.warnings == ()


def test_moveit_sends_the_panda_s_trajectories_to_the_action() -> None:
    moveit = config("moveit_controllers.yaml")
    assert moveit["moveit_controller_manager"] == (
        "moveit_simple_controller_manager/MoveItSimpleControllerManager"
    )
    manager = moveit["moveit_simple_controller_manager"]
    (name,) = manager["controller_names"]
    ((node, parameters),) = config("robots/simulated_panda.yaml")["/**"].items()
    assert name == node
    entry = manager[name]
    assert (entry["type"], entry["default"]) == ("FollowJointTrajectory", True)
    assert entry["joints"] == parameters["ros__parameters"]["joints"]
    served = (PACKAGE / "node" / "action_process.py").read_text()
    assert f'f"{{name}}/{entry["action_ns"]}"' in served


def config(name: str) -> dict:
    return yaml.safe_load((SHARE / "config" / name).read_text())


def blocks(document: str, language: str) -> list[str]:
    """The code of this language in a document."""
    text = (REPOSITORY / document).read_text()
    return [
        textwrap.dedent(code) for code in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    ]


def readme_blocks(language: str) -> list[str]:
    return blocks("README.md", language)


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
        r'FollowJointTrajectory "(\{.*?\})"\n', "\n".join(readme_blocks("sh")), re.DOTALL
    )
    message = yaml.safe_load(text)["trajectory"]
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


def test_yaml_of_the_trajectories_is_known() -> None:
    of_node = [yaml.safe_load(text).get("/**") for text in blocks("docs/trajectories.md", "yaml")]
    of_node = [parameters for parameters in of_node if parameters]
    assert len(of_node) >= 3
    known = expand(PARAMETERS, ["joint1", "joint2", "joint3"])
    for parameters in of_node:
        for name, value in flatten(parameters["rnea_controller"]["ros__parameters"]):
            known[name].check(name, value)


def test_every_parameter_without_effect_is_in_the_table_of_differences() -> None:
    text = (REPOSITORY / "docs" / "trajectories.md").read_text()
    table = text.partition("feature by feature\n")[2]
    for name in (*OF_JOINT_TRAJECTORY_CONTROLLER, *GAINS_OF_JOINT_TRAJECTORY_CONTROLLER):
        assert name.rpartition(".")[2] in table, name


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_of_the_documentation_lead_to_files(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.explores
def test_pictures_of_the_trajectories_are_drawn(tmp_path: Path) -> None:
    script = REPOSITORY / "docs" / "draw_trajectories.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True)
    shown = re.findall(r"!\[[^]]*\]\((.*?)\)", (REPOSITORY / "docs/trajectories.md").read_text())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(shown)


def test_tests_named_in_the_list_of_joint_trajectory_controller_exist() -> None:
    """Each of their tests has one of ours, or a reason."""
    text = (REPOSITORY / "test" / "joint_trajectory_controller_tests.md").read_text()
    rows = re.findall(r"^\| `\w+` \| (.*?) \|$", text, re.MULTILINE)
    assert len(rows) == text.count("\n| `") == 127  # as many as they have
    for row in rows:
        assert "::" in row or row.startswith("does not apply: "), row
    named = {match for row in rows for match in re.findall(r"`([\w/.]+)::(\w+)`", row)}
    assert named
    for path in {path for path, _ in named}:
        tree = ast.parse((REPOSITORY / "test" / path).read_text())
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        missing = {test for where, test in named if where == path} - defined
        assert not missing, f"{path} lacks {sorted(missing)}"


def test_parameter_documentation_is_that_of_the_code() -> None:
    assert (REPOSITORY / "docs" / "parameters.md").read_text() == printed_by("node")
    assert (REPOSITORY / "docs" / "sentinel_parameters.md").read_text() == printed_by("sentinel")
    assert printed_by("simulation") in (REPOSITORY / "docs" / "simulated_arm.md").read_text()


def printed_by(room: str) -> str:
    command = [sys.executable, "-m", f"rnea_control.{room}.parameters"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def files(*packages: str) -> list[Path]:
    """The source files of these packages of ours, or all."""
    roots = [PACKAGE / name for name in packages] or [PACKAGE]
    return sorted(path for root in roots for path in root.rglob("*.py"))


def name_of(path: Path) -> str:
    """The module of a source file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """The modules that a file imports, also only for type hints."""
    modules = {name_of(other) for other in files()}
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (inner & modules) or {node.module}
    return names


@pytest.mark.parametrize("path", files(), ids=name_of)
def test_imports_run_downward_only(path: Path) -> None:
    package = path.relative_to(PACKAGE).parts[0]
    for name in imported(path):
        if package in ROS_FREE:
            assert not ROS_MODULES.match(name), f"{package}/ is free of ROS"
        other = (name + "..").split(".")[1]
        if package in FLOOR and name.startswith("rnea_control.") and other in FLOOR:
            downward = other == package or FLOOR[other] > FLOOR[package]
            assert downward, f"{name_of(path)} imports {name}"


def test_every_package_has_its_place() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages <= set(FLOOR)


def test_files_do_not_import_each_other_in_circles() -> None:
    """Neither at run time nor for type hints. A package's `__init__`, which names what its files
    offer, counts where it is imported."""
    graph = {
        name_of(path): imported(path) & {name_of(other) for other in files()} for path in files()
    }
    left = dict(graph)
    while free := [name for name, imports in left.items() if not imports & left.keys() - {name}]:
        for name in free:
            del left[name]
    assert not left, f"circles among {sorted(left)}"


@pytest.mark.parametrize("path", files(*WITHOUT_PRIVATE_ACCESS), ids=name_of)
def test_private_attributes_are_their_owners(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and re.match(r"_(?!_)", node.attr):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            assert own, f"line {node.lineno}: {ast.unparse(node)}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rnea_control"):
            private = [alias.name for alias in node.names if alias.name.startswith("_")]
            assert not private, f"line {node.lineno}: imports {', '.join(private)}"


def flatten(parameters: dict, prefix: str = "") -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for name, value in parameters.items():
        if isinstance(value, dict):
            pairs += flatten(value, f"{prefix}{name}.")
        else:
            pairs.append((prefix + name, value))
    return pairs
