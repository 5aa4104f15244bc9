"""The robots of the benchmarks, for this library and for its peers."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from rnea_control.model import RobotModel, RobotModelWarning

if TYPE_CHECKING:  # processes that measure a loop do not load them
    import dynibo
    import pinocchio

START = [0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8]
PANDA_JOINTS = [f"panda_joint{i}" for i in range(1, 8)]


def urdf_path(name: str) -> Path:
    """The URDF file of this name in example-robot-data."""
    files = metadata.files("example-robot-data") or []
    return next(Path(f.locate()) for f in files if f.name == f"{name}.urdf")


def load(name: str, joints: Sequence[str] | None = None) -> RobotModel:
    """A robot of example-robot-data, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        return RobotModel.from_urdf_file(urdf_path(name), joints)


def pinocchio_model(name: str, model: RobotModel) -> pinocchio.Model:
    """The robot for Pinocchio, with the joints of `model` alone."""
    import pinocchio  # noqa: PLC0415

    peer = pinocchio.buildModelFromUrdf(str(urdf_path(name)))
    locked = [i for i, joint in enumerate(peer.names) if i and joint not in model.joint_names]
    return pinocchio.buildReducedModel(peer, locked, pinocchio.neutral(peer))


def dynibo_robot(name: str, joint_names: tuple[str, ...]) -> dynibo.Robot | None:
    """The robot with all joints but these made fixed; dynibo takes no mimic joints.
    None where it does not take the robot."""
    import dynibo  # noqa: PLC0415

    root = ElementTree.fromstring(urdf_path(name).read_text())
    for joint in root.iter("joint"):
        if joint.get("type") and joint.get("name") not in joint_names:
            joint.set("type", "fixed")
            for mimic in joint.findall("mimic"):
                joint.remove(mimic)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(ElementTree.tostring(root, encoding="unicode"))
        try:
            robot = dynibo.Robot.from_urdf(str(path))
        except dynibo.DyniboError:
            return None
    return robot if robot.generalized_count == len(joint_names) else None
