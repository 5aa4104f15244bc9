"""The layouts of PlotJuggler, Foxglove and RViz show what the controller publishes."""

from __future__ import annotations

import json
import re
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

control_msgs = pytest.importorskip("control_msgs.msg", reason="the ROS 2 wheels lack it")

from sensor_msgs.msg import JointState  # noqa: E402

from rnea_control.control.controller_state import TERMS  # noqa: E402
from rnea_control.model import RobotModel  # noqa: E402
from rnea_control.node.interfaces import INTERFACES  # noqa: E402
from rnea_control.node.state_topics import fill_terms  # noqa: E402
from rnea_control.node.trajectory_state import fill_state  # noqa: E402

REPOSITORY = Path(__file__).parents[1]
CONFIG, NODE = REPOSITORY / "config", REPOSITORY / "rnea_control" / "node"
JOINTS = [f"joint{i}" for i in range(1, 8)]
STATE = SimpleNamespace(
    desired=np.zeros((4, 7)),
    measured=np.zeros((2, 7)),
    errors=np.zeros((2, 7)),
    torque=np.zeros(7),
    time_from_start=0.0,
    speed_scaling=1.0,
)
OF_STATE = control_msgs.JointTrajectoryControllerState(joint_names=JOINTS)
OF_TERMS = JointState(name=[f"{joint}/{term}" for joint in JOINTS for term in TERMS])
MESSAGES = {
    "/rnea_controller/controller_state": fill_state(OF_STATE, 0, STATE, np.ones(7)),
    "/rnea_controller/torque_terms": fill_terms(OF_TERMS, 0, np.zeros((len(TERMS), 7))),
}


def number(topic: str, fields: list[str], index: str) -> float:
    """The number of a message; an error if it is not there."""
    found = reduce(getattr, fields, MESSAGES[topic])
    return float(found[int(index)] if index else found)


def test_topics_are_those_of_the_controller() -> None:
    names = {row.name.replace("~", "/rnea_controller") for row in INTERFACES}
    assert MESSAGES.keys() <= names


def test_foxglove_plots_numbers_of_the_messages() -> None:
    layout = json.loads((CONFIG / "foxglove.json").read_text())
    panels = layout["configById"]
    assert set(re.findall(r'"(\w+!\w+)"', json.dumps(layout["layout"]))) == set(panels)
    slider, terms = panels["GlobalVariableSliderPanel!joint"], panels["Plot!terms"]["paths"]
    assert (slider["globalVariableName"], slider["sliderProps"]["max"]) == ("joint", 6)
    for path in (path for panel in panels.values() for path in panel.get("paths", ())):
        topic, fields, index = re.fullmatch(r"(.*?)\.(.*)\[(.*)\]", path["value"]).groups()
        number(topic, fields.split("."), index.replace("$joint", "6"))
    names = MESSAGES["/rnea_controller/torque_terms"].name
    for path in terms:
        index = int(re.search(r"\d+", path["value"])[0])
        assert names[index] == f"joint1/{path['label']}"


def test_plotjuggler_plots_series_that_it_makes_of_the_messages() -> None:
    root = ElementTree.parse(CONFIG / "plotjuggler.xml").getroot()
    efforts = {f"{name}/effort" for name in MESSAGES["/rnea_controller/torque_terms"].name}
    diagnostics = (NODE / "diagnostics.py").read_text()
    topics = root.find(".//selected_topics").get("value").split(";")
    assert [*MESSAGES, "/diagnostics"] == topics
    for curve in (curve.get("name") for curve in root.iter("curve")):
        topic = next(topic for topic in topics if curve.startswith(topic))
        rest = curve[len(topic) + 1 :]
        if topic == "/diagnostics":
            hardware, name, key = rest.split("/")
            assert (hardware, name) == ("rnea_controller", "rnea_controller: control loop")
            assert f'values["{key}"]' in diagnostics or f'"{key}": ' in diagnostics
        elif topic.endswith("torque_terms"):
            assert rest in efforts
        else:
            fields, index = re.fullmatch(r"(.*?)(?:\[(\d+)\])?", rest).groups()
            number(topic, fields.split("/"), index)


def test_rviz_starts_at_the_shipped_arm() -> None:
    manager = yaml.safe_load((CONFIG / "arm.rviz").read_text())["Visualization Manager"]
    model = RobotModel.from_urdf_file(REPOSITORY / "urdf" / "seven_axis_arm.urdf")
    assert manager["Global Options"]["Fixed Frame"] == model.root_link
    topics = [d["Description Topic"]["Value"] for d in manager["Displays"] if "TF Prefix" in d]
    assert topics == ["robot_description"] * 2
