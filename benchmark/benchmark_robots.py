"""The robots of the benchmarks, for this library and for its peers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from rnea_control.model import RobotModel, RobotModelWarning

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
