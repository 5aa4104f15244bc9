"""The YAML of an identification: parameters that the controller takes, and the model has then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from identified_arm import identification, panda
from robots import joint, link, robot

from rnea_control.exceptions import IdentificationError, RobotModelError
from rnea_control.identification.controller_yaml import (
    controller_yaml,
    number,
    payload_yaml,
)
from rnea_control.identification.payload import Payload
from rnea_control.identification.result import Identification
from rnea_control.model import RobotModel
from rnea_control.model.bodies import INERTIA
from rnea_control.node.parameters import PARAMETERS
from rnea_control.ros.parameter_files import section_of
from rnea_control.ros.parameter_table import GivenParameters, expand
from rnea_control.ros.robot_settings import update_model

pytestmark = pytest.mark.filterwarnings("ignore::rnea_control.model.RobotModelWarning")


def load(mass: float, center_of_mass: list[float], inertia: np.ndarray) -> Payload:
    center = np.array(center_of_mass)
    return Payload(
        "panda_hand", mass, center, inertia, 0.02, 0.01 * np.ones(3), np.ones(7), 0.0, 30.0, ()
    )


PAYLOAD = load(0.73, [0.01, -0.02, 0.1], np.diag([1.1e-3, 1e-3, 3e-4]))


def parameters_of(text: str, folder: Path, joints: tuple[str, ...]) -> GivenParameters:
    """As the node has them, of this file behind one with its joints."""
    path = folder / "identified.yaml"
    path.write_text(text, encoding="utf-8")
    values = section_of("/left/rnea_controller", ["--params-file", str(path)])
    known = expand(PARAMETERS, joints)
    given = GivenParameters(values, known)
    assert given.unknown() == []
    for name, value in values.items():
        assert isinstance(value, str) or np.asarray(value).dtype == np.float64, name
        assert known[name].check(name, value) == value
    return given


def test_controller_gets_the_identified_numbers(tmp_path: Path) -> None:
    found, model = identification(), panda()
    text = controller_yaml(found, "first.mcap and second.mcap", PAYLOAD)
    update_model(parameters_of(text, tmp_path, model.joint_names), model)
    for name in ("armature", "damping", "friction", "torque_offset"):
        np.testing.assert_allclose(getattr(model, name), getattr(found, name), rtol=1e-4)
    expected = panda()
    expected.set_payload(
        "panda_hand", PAYLOAD.mass, PAYLOAD.center_of_mass, inertia=PAYLOAD.inertia
    )
    inertias = slice(INERTIA, INERTIA + 10)
    np.testing.assert_allclose(model.bodies[:, inertias], expected.bodies[:, inertias], rtol=1e-5)
    header = [line for line in text.splitlines() if line.startswith("#")]
    assert "for panda, by rnea_identify from first.mcap and second.mcap" in header[0]
    assert max(map(len, text.splitlines())) <= 100


def test_without_payload_the_controller_s_own_stays() -> None:
    text = controller_yaml(identification(), "a.mcap")
    assert "payload" not in yaml.safe_load(text)["/**"]["rnea_controller"]["ros__parameters"]


def test_payload_alone(tmp_path: Path) -> None:
    text = payload_yaml(PAYLOAD, "load.mcap")
    assert text.startswith("# Payload of rnea_controller on panda_hand, by rnea_identify from load")
    given = parameters_of(text, tmp_path, panda().joint_names)
    assert given["payload.link"] == "panda_hand"
    assert given["payload.mass"] == 0.73
    assert given["payload.inertia"] == [1.1e-3, 0.0, 0.0, 1e-3, 0.0, 3e-4]
    assert given["armature.panda_joint1"] == 0.0


def test_rod_is_still_a_real_body(tmp_path: Path) -> None:
    """A tool that is a thin rod is at the border of what the model takes."""
    axis = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    about_center = 12.3456789e-2 * (np.eye(3) - np.outer(axis, axis))
    model = panda()
    text = payload_yaml(load(1.5, [0.0, 0.0, 0.1], about_center), "a.mcap")
    update_model(parameters_of(text, tmp_path, model.joint_names), model)


def test_impossible_payload_is_refused() -> None:
    with pytest.raises(RobotModelError, match="mass -1"):
        payload_yaml(load(-1.0, [0.0, 0.0, 0.0], np.zeros((3, 3))), "a.mcap")


def with_values(**values: list[float]) -> Identification:
    """The identification with other values of the first joints."""
    found = identification()
    for name, first in values.items():
        vector = getattr(found, name).copy()
        vector[: len(first)] = first
        found = replace(found, **{name: vector})
    return found


def test_what_no_joint_has_is_said(tmp_path: Path) -> None:
    found = with_values(
        damping=[-0.5, np.nan], friction=[1.0, np.nan], torque_offset=[-2.0, np.nan],
        armature=[np.nan, -0.01, -1e-8],
    )  # fmt: skip
    text = controller_yaml(found, "a.mcap")
    assert "damping came out as -0.5, which no joint has" in text
    assert "# panda_joint2: damping not identified; coulomb not identified" in text
    assert "panda_joint3: 0.0\n" in text
    assert "# panda_joint1: not identified" in text
    model = panda()
    update_model(parameters_of(text, tmp_path, model.joint_names), model)
    assert model.damping[0] == 0.0
    assert model.friction[0] == 1.0
    assert model.torque_offset[0] == -2.0
    assert list(model.armature[:3]) == [0.0, 0.0, 0.0]
    assert model.damping[1] == panda().damping[1]  # of the URDF


def test_nothing_identified_is_still_a_file_of_parameters(tmp_path: Path) -> None:
    nothing = [np.nan] * 7
    found = with_values(damping=nothing, friction=nothing, torque_offset=nothing, armature=nothing)
    assert parameters_of(controller_yaml(found, "a"), tmp_path, panda().joint_names)


def test_awkward_names_are_quoted(tmp_path: Path) -> None:
    names = ("1", "no", "arm: joint", "Gelenk Ä", 'a"b', "#7")
    elements = [link("base"), *(link(f"link{i}") for i in range(len(names)))]
    for i, name in enumerate(names):
        parent = f"link{i - 1}" if i else "base"
        elements.append(joint(name.replace('"', "&quot;"), parent, f"link{i}"))
    model = RobotModel.from_urdf_string(robot(*elements, name="new&#10;line"))
    found = identification(model)
    text = controller_yaml(found, "strange\nname: {of a file}.mcap")
    given = parameters_of(text, tmp_path, model.joint_names)
    for j, name in enumerate(names):
        assert given[f"armature.{name}"] == pytest.approx(found.armature[j], rel=1e-4)


def test_numbers_are_doubles_for_ros() -> None:
    shown = {1.0: "1.0", -0.0: "0.0", 1e-12: "0.0", 1.23456789e-5: "0.000012346"}
    shown |= {-3.14159265: "-3.1416", 1234567.0: "1234600.0"}
    assert {value: number(value) for value in shown} == shown


def test_joint_of_several_degrees_of_freedom_is_refused() -> None:
    model = RobotModel.from_urdf_string(
        robot(link("base"), link("a"), joint("j", "base", "a", "floating"))
    )
    with pytest.raises(IdentificationError, match="several degrees of freedom"):
        controller_yaml(identification(model), "a.mcap")
