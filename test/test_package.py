"""The installed package: findable by ament, complete, and documented as it is."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import textwrap
from contextlib import redirect_stdout
from functools import cache
from importlib import metadata
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from ament_index_python.packages import get_package_share_directory, get_packages_with_prefixes

import rnea_control
from rnea_control.child_process import command
from rnea_control.control import Controller, ControllerSettings, Gains, Waypoint
from rnea_control.demo.robots import known_robots
from rnea_control.model import RobotModel
from rnea_control.node.parameters import OF_JOINT_TRAJECTORY_CONTROLLER, PARAMETERS
from rnea_control.parameters.parameter import expand
from rnea_control.plausibility import suspicions
from rnea_control.ros.parameter_files import section_of

REPOSITORY = Path(__file__).parents[1]
SHARE = Path(get_package_share_directory("rnea_control"))
PACKAGE = Path(rnea_control.__file__).parent

# The packages, from the top down: imports run downward only, and those on one line do not know of
# each other.
HOUSE = [["panel"], ["demo", "commands"], ["client"], ["node", "sentinel", "simulation"], ["loop"]]
HOUSE += [["ros"], ["control", "identification"], ["plausibility"]]
HOUSE += [["messages", "analysis", "parameters"]]
HOUSE += [["compiled"], ["dynamics"], ["spatial"], ["jit"], ["model"]]
FLOOR = {name: floor for floor, names in enumerate(HOUSE) for name in names}
ROS_FREE = {name for names in HOUSE[6:] for name in names}
# Their files touch no private attribute of another object.
WITHOUT_PRIVATE_ACCESS = [
    "client",
    "commands",
    "demo",
    "loop",
    "messages",
    "node",
    "panel",
    "ros",
    "sentinel",
    "simulation",
]
ROS_MODULES = re.compile(
    r"^(rclpy|rcl_interfaces|ament_index_python|\w+_msgs|std_srvs|rnea_control\.trajectory_client)"
    r"(\.|$)"
)


def test_installation_is_complete_and_of_one_version() -> None:
    assert "rnea_control" in get_packages_with_prefixes()
    launched = (f"launch/{name}.launch.py" for name in ("simulation", "arm", "gazebo"))
    configured = (f"config/{name}.yaml" for name in ("rnea_controller", "moveit_controllers"))
    arms = ("config/robots/simulated_panda.yaml", "urdf/seven_axis_arm.urdf")
    for name in ("package.xml", *launched, *configured, *arms):
        assert (SHARE / name).is_file(), name
    programs = ("controller", "sentinel", "simulated_arm", "demo", "doctor", "identify", "move")
    for name in (*programs, "panel", "tune"):
        (entry,) = metadata.entry_points(group="console_scripts", name=f"rnea_{name}")
        assert callable(entry.load())
    version = rnea_control.__version__
    assert version == ElementTree.parse(SHARE / "package.xml").findtext("version")
    assert version == metadata.version("rnea_control")
    assert version in (REPOSITORY / "CHANGELOG.rst").read_text()


def test_config_files_are_complete_known_and_fit_the_shipped_arm() -> None:
    parameters = config("rnea_controller.yaml")["/**"]["rnea_controller"]["ros__parameters"]
    assert_complete_and_known(parameters)
    model = RobotModel.from_urdf_file(SHARE / "urdf" / "seven_axis_arm.urdf")
    assert tuple(parameters["joints"]) == model.joint_names
    assert suspicions(model) == ()
    (text,) = blocks("README.md", "yaml")
    assert_complete_and_known(yaml.safe_load(text)["/**"]["rnea_controller"]["ros__parameters"])
    of_node = [yaml.safe_load(text).get("/**") for text in blocks("docs/trajectories.md", "yaml")]
    of_node = [each["rnea_controller"]["ros__parameters"] for each in of_node if each]
    assert len(of_node) >= 3
    known = expand(PARAMETERS, ["joint1", "joint2", "joint3"])
    for name, value in (pair for each in of_node for pair in flatten(each)):
        known[name].check(name, value)


def assert_complete_and_known(parameters: dict) -> None:
    given, known = dict(flatten(parameters)), expand(PARAMETERS, parameters["joints"])
    for name, value in given.items():
        known[name].check(name, value)
    assert not [name for name, p in known.items() if p.default is None and name not in given]


def test_moveit_sends_the_panda_s_trajectories_to_the_action() -> None:
    moveit = config("moveit_controllers.yaml")
    kind = "moveit_simple_controller_manager/MoveItSimpleControllerManager"
    assert moveit["moveit_controller_manager"] == kind
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
    found = re.findall(rf"```{language}\n(.*?)```", (REPOSITORY / document).read_text(), re.DOTALL)
    return [textwrap.dedent(code) for code in found]


def test_python_of_the_dynamics_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    (code,) = blocks("docs/dynamics.md", "python")
    with redirect_stdout(StringIO()) as printed:
        exec(code, {"__name__": "__main__"})
    assert printed.getvalue().startswith("[")


def test_goals_of_the_first_motion_are_ones_that_the_arms_shown_there_follow() -> None:
    """From where they start, and the Panda from anywhere as well."""
    commands = "\n".join(blocks("docs/first_motion.md", "sh"))
    texts = re.findall(r'FollowJointTrajectory "(\{.*?\})"\n', commands, re.DOTALL)
    assert len(texts) == 2
    arm = RobotModel.from_urdf_file(SHARE / "urdf" / "seven_axis_arm.urdf")
    follows(arm, yaml.safe_load(texts[0])["trajectory"], np.zeros(7))
    message = yaml.safe_load(texts[1])["trajectory"]
    if "panda" not in known_robots():
        return  # no example-robot-data
    panda = RobotModel.from_urdf_file(known_robots()["panda"], message["joint_names"])
    for start in (panda.lower, 0.5 * (panda.lower + panda.upper), panda.upper):
        follows(panda, message, start)


def follows(model: RobotModel, message: dict, start: np.ndarray) -> None:
    """The controller takes the trajectory of a goal."""
    controller = Controller(model, ControllerSettings(Gains.uniform(model.nv, 400.0, 40.0)))
    controller.hold(0.0, start)
    assert tuple(message["joint_names"]) == model.joint_names
    (point,) = message["points"]
    end = point["time_from_start"]["sec"]
    controller.follow(0.0, [Waypoint(end, point["positions"], point["velocities"])], 0.0)
    np.testing.assert_allclose(controller.trajectory.at(end)[0], point["positions"])


def test_two_arms_of_one_file_have_their_own_joints_and_topics() -> None:
    file, joints, topics = SHARE / "config" / "two_arms.yaml", set(), set()
    for arm in ("left", "right"):
        values = section_of(f"/{arm}/rnea_controller", ["--params-file", str(file)])
        assert_complete_and_known(values)
        joints |= set(values["joints"])
        topics.add(values["command_topic"])
        assert values["controller_manager"] == "/controller_manager"
    assert len(joints) == 14 and topics == {
        f"/{a}_effort_controller/commands" for a in ("left", "right")
    }
    assert section_of("/rnea_controller", ["--params-file", str(file)]).keys() < values.keys()


def test_documentation_has_every_parameter_without_effect_and_leads_to_files() -> None:
    text = (REPOSITORY / "docs" / "trajectories.md").read_text()
    table = text.partition("feature by feature\n")[2]
    for name in OF_JOINT_TRAJECTORY_CONTROLLER:
        assert name.rpartition(".")[2] in table, name
    for path in (REPOSITORY / "README.md", *REPOSITORY.glob("docs/*.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
            assert "://" in target or (path.parent / target).exists(), f"{path.name}: {target}"


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


def test_documentation_of_parameters_and_errors_is_that_of_the_code() -> None:
    of_controller = (REPOSITORY / "docs" / "parameters.md").read_text()
    assert of_controller == printed_by("node/parameters"), "python -m rnea_control.node.parameters"
    of_sentinel = (REPOSITORY / "docs" / "sentinel_parameters.md").read_text()
    assert of_sentinel == printed_by("parameters/table")
    assert (REPOSITORY / "docs" / "errors.md").read_text() == printed_by("exceptions")
    of_interfaces = (REPOSITORY / "docs" / "interfaces.md").read_text()
    assert printed_by("node/interfaces") in of_interfaces, "python -m rnea_control.node.interfaces"
    assert (
        printed_by("simulation/parameters")
        in (REPOSITORY / "docs" / "simulated_arm.md").read_text()
    )


def printed_by(file: str) -> str:
    with redirect_stdout(StringIO()) as printed:
        runpy.run_path(str(PACKAGE / f"{file}.py"), run_name="__main__")
    return printed.getvalue()


def files(*packages: str) -> list[Path]:
    roots = [PACKAGE / name for name in packages] or [PACKAGE]
    return sorted(path for root in roots for path in root.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parsed(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


MODULES = {name_of(path): path for path in files()}


@cache
def imported(path: Path) -> set[str]:
    """The modules that a file imports, also only for type hints."""
    names = set()
    for node in parsed(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= (inner & MODULES.keys()) or {node.module}
    return names


def test_imports_run_downward_only() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} <= set(FLOOR)
    for path in files():
        package = path.relative_to(PACKAGE).parts[0]
        for name in imported(path):
            if package in ROS_FREE:
                assert not ROS_MODULES.match(name), f"{name_of(path)} imports {name}"
            other = (name + "..").split(".")[1]
            if package in FLOOR and name.startswith("rnea_control.") and other in FLOOR:
                downward = other == package or FLOOR[other] > FLOOR[package]
                assert downward, f"{name_of(path)} imports {name}"


def test_files_do_not_import_each_other_in_circles() -> None:
    """Neither at run time nor for type hints. A package's `__init__`, which names what its files
    offer, counts where it is imported."""
    left = {name: imported(path) & MODULES.keys() for name, path in MODULES.items()}
    while free := [name for name, imports in left.items() if not imports & left.keys() - {name}]:
        for name in free:
            del left[name]
    assert not left, f"circles among {sorted(left)}"


def test_private_attributes_are_their_owners() -> None:
    for path in files(*WITHOUT_PRIVATE_ACCESS):
        for node in parsed(path):
            if isinstance(node, ast.Attribute) and re.match(r"_(?!_)", node.attr):
                own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
                assert own, f"{name_of(path)}: {ast.unparse(node)}"
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rnea_control"):
                private = [alias.name for alias in node.names if alias.name.startswith("_")]
                assert not private, f"{name_of(path)} imports {', '.join(private)}"


def flatten(parameters: dict, prefix: str = "") -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for name, value in parameters.items():
        if isinstance(value, dict):
            pairs += flatten(value, f"{prefix}{name}.")
        else:
            pairs.append((prefix + name, value))
    return pairs


def test_what_lies_in_the_working_directory_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "rnea_control").mkdir()
    for name in ("rnea_control/__init__.py", "numpy.py"):
        (tmp_path / name).write_text("raise SystemExit('from the working directory')")
    subprocess.run(command("rnea_control.node.parameters"), cwd=tmp_path, check=True)
