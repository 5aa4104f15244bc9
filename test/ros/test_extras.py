"""Extras that are not installed: the controller does without, the other executables say so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata

import pytest
from dds import Process, controller, ros, without
from robots import two_link_arm

from rnea_control.ros.extras import EXTRAS

IMPORT_NAMES = {"PyYAML": "yaml", "example-robot-data": "example_robot_data"}
# The demo has a robot of the package's own where this is missing.
OPTIONAL = {"example_robot_data"}
# These import yaml themselves; what is blocked after this is what we import.
USERS_OF_YAML = """
import sys
import rclpy
import urdf_parser_py.urdf
del sys.modules["yaml"]
"""


@pytest.fixture(scope="module", autouse=True)
def context() -> Iterator[None]:
    with ros(69):
        yield


@pytest.mark.parametrize("extra", EXTRAS)
def test_extras_are_those_of_the_package(extra: str) -> None:
    declared = set()
    for requirement in metadata.requires("rnea_control") or []:
        if f'extra == "{extra}"' in requirement:
            name = re.match(r"[\w-]+", requirement).group()
            declared.add(IMPORT_NAMES.get(name, name))
    assert declared - OPTIONAL == set(EXTRAS[extra])


def test_robots_need_no_extra() -> None:
    required = {
        re.match(r"[\w-]+", requirement).group()
        for requirement in metadata.requires("rnea_control") or []
        if "extra ==" not in requirement
    }
    assert required == {"numpy", "numba", "llvmlite", "urdf-parser-py", "PyYAML"}


def test_controller_runs_without_any_extra() -> None:
    parameters = {
        "joints": ["shoulder", "elbow"],
        "gains": {joint: {"p": 100.0, "d": 20.0} for joint in ("shoulder", "elbow")},
        "robot_description": two_link_arm(),
    }
    packages = without(*EXTRAS["sim"], *EXTRAS["demo"], "example_robot_data")
    with controller(parameters, before=USERS_OF_YAML + packages) as process:
        process.said("active: waiting for joint_states")
        assert process.stop() == 0


@pytest.mark.parametrize(
    ("module", "package", "words"),
    [
        (
            "rnea_control.simulation.executable",
            "mujoco",
            "rnea_simulated_arm needs mujoco: pip install 'rnea_control[sim]'",
        ),
        *(
            (
                "rnea_control.demo.executable",
                package,
                f"rnea_demo needs {package}: pip install 'rnea_control[demo]'",
            )
            for package in EXTRAS["demo"]
        ),
    ],
)
def test_missing_extra_is_named_in_one_line(module: str, package: str, words: str) -> None:
    with Process(module, before=without(package)) as process:
        assert process.process.wait(timeout=60.0) == 1
        assert process.output == f"{words}\n"


def test_other_missing_packages_are_not_called_an_extra() -> None:
    with Process("rnea_control.simulation.executable", before=without("urdf_parser_py")) as process:
        assert process.process.wait(timeout=60.0) == 1
        assert "No module named 'urdf_parser_py'" in process.output
        assert "pip install" not in process.output
