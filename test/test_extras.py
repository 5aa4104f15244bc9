"""Extras that are not installed: the controller does without, the other executables say so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import metadata

import dds
import pytest
from dds import Process, controller, ros, without
from robots import two_link_arm

from rnea_control.extras import EXTRAS

IMPORT_NAMES = {"PyYAML": "yaml", "example-robot-data": "example_robot_data"}
IMPORT_NAMES["pycollada"] = "collada"
# The demo has a robot of the package's own where the first is missing, and the panel draws other
# shapes where the second is.
OPTIONAL = {"example_robot_data", "collada"}


@pytest.fixture(scope="module", autouse=True)
def context() -> Iterator[None]:
    with ros(69):
        yield


def test_extras_are_those_of_the_package_and_robots_need_none() -> None:
    declared: dict[str, set[str]] = {"": set(), **{extra: set() for extra in EXTRAS}}
    for requirement in metadata.requires("rnea_control") or []:
        name, extra = re.match(r"([\w-]+)(?:.*extra == \"(\w+)\")?", requirement).groups()
        if (extra or "") in declared:
            declared[extra or ""].add(IMPORT_NAMES.get(name, name))
    assert declared.pop("") == {"numpy", "numba", "llvmlite", "urdf-parser-py", "yaml"}
    for extra, names in declared.items():
        assert names - OPTIONAL == set(EXTRAS[extra])


def test_controller_runs_without_any_extra() -> None:
    parameters = {**dds.PARAMETERS, "robot_description": two_link_arm()}
    packages = without(*EXTRAS["sim"], *EXTRAS["demo"], "example_robot_data")
    with controller(parameters, before=packages) as process:
        process.said("active: waiting for joint_states")
        assert process.stop() == 0


def test_missing_extra_is_named_in_one_line_and_other_packages_are_none() -> None:
    simulation, demo = "rnea_control.simulation.executable", "rnea_control.demo.executable"
    cases = [(simulation, "mujoco", "rnea_simulated_arm", "sim")]
    cases += [(demo, package, "rnea_demo", "demo") for package in EXTRAS["demo"]]
    with ExitStack() as stack:

        def started(module: str, package: str) -> Process:
            return stack.enter_context(Process(module, before=without(package)))

        other = started(simulation, "urdf_parser_py")
        processes = [(started(module, name), name, *names) for module, name, *names in cases]
        for process, package, executable, extra in processes:
            assert process.process.wait(timeout=60.0) == 1
            words = f"{executable} needs {package}: pip install 'rnea_control[{extra}]'\n"
            assert process.output == words
        assert other.process.wait(timeout=60.0) == 1
        assert "No module named 'urdf_parser_py'" in other.output
        assert "pip install" not in other.output
