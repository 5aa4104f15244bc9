"""The robot of `plan`, `fit` and `check`: its URDF, with the settings of its controller."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from rnea_control.exceptions import ParameterError, RobotModelError
from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.model.robot_model import EARTH_GRAVITY
from rnea_control.parameters.parameter import JOINT, GivenParameters, expand
from rnea_control.parameters.settings import update_model
from rnea_control.parameters.table import LOCKED_POSITION, ROBOT
from rnea_control.ros.parameter_files import section_of

LOCKED = LOCKED_POSITION.name.partition(JOINT)[0]


def add_robot_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `load_robot`."""
    group = parser.add_argument_group("robot")
    group.add_argument(
        "--joints",
        nargs="+",
        metavar="JOINT",
        help="the joints that move, in this order; by default those of the --config, else every "
        "joint that moves by itself. All others are locked",
    )
    group.add_argument(
        "--config",
        metavar="FILE.yaml",
        help="parameters of rnea_controller: joints, locked positions, gravity, payload, friction "
        "and armature are taken from it",
    )
    group.add_argument(
        "--node",
        default="/rnea_controller",
        help="the node whose section of the --config is read; /rnea_controller by default",
    )
    group.add_argument(
        "--lock",
        nargs=2,
        action="append",
        default=[],
        metavar=("JOINT", "POSITION"),
        help="position of a joint that is locked, [rad] or [m]; 0 by default; may be repeated",
    )
    group.add_argument(
        "--gravity",
        nargs=3,
        type=float,
        metavar=("X", "Y", "Z"),
        help="acceleration of gravity in the root link's frame, [m/s^2]; 0 0 -9.81 by default",
    )


def load_robot(options: argparse.Namespace, urdf: str | os.PathLike[str] | bytes) -> RobotModel:
    """The robot of a URDF. Its warnings are in `RobotModel.warnings`; none is issued.

    Args:
        options: of `add_robot_arguments`; they go before what the --config says.
        urdf: the file, or what would be in it.

    Raises:
        RobotModelError: the URDF is not that of a robot with these joints.
        ParameterError: the --config cannot be read, has no section for the node, or has a value
            that is not allowed.
    """
    locked, gravity, joints = _locked(options.lock), options.gravity, options.joints
    parameters = None
    if options.config is not None:
        values = _section(options.config, options.node)
        joints = joints or values.get("joints") or _all_joints(urdf)
        if gravity is not None:
            values["gravity"] = gravity
        of_file = [name.removeprefix(LOCKED) for name in values if name.startswith(LOCKED)]
        known = expand(ROBOT, joints if isinstance(joints, list) else [])
        known |= {f"{LOCKED}{name}": LOCKED_POSITION for name in of_file}
        parameters = GivenParameters(values, known)
        joints = options.joints or (parameters["joints"] if "joints" in values else None)
        moving = joints or []
        locked = {
            name: parameters[f"{LOCKED}{name}"] for name in of_file if name not in moving
        } | locked
        gravity = parameters["gravity"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        model = _model(urdf, joints, locked, EARTH_GRAVITY if gravity is None else gravity)
    if parameters is not None:
        update_model(parameters, model)
    return model


def _all_joints(urdf: str | os.PathLike[str] | bytes) -> list[str]:
    """The joints that move by themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        return list(_model(urdf, None, {}, EARTH_GRAVITY).joint_names)


def _model(
    urdf: str | os.PathLike[str] | bytes,
    joints: Sequence[str] | None,
    locked: Mapping[str, float],
    gravity: Iterable[float],
) -> RobotModel:
    if isinstance(urdf, bytes):
        return RobotModel.from_urdf_string(urdf, joints, locked, gravity)
    return RobotModel.from_urdf_file(urdf, joints, locked, gravity)


def _section(path: str, node: str) -> dict[str, Any]:
    """What a file says for a node."""
    name = f"/{node.lstrip('/')}"
    try:
        values = dict(section_of(name, ["--params-file", path]))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ParameterError(f"{path} cannot be read: {error}") from error
    if not values:
        raise ParameterError(
            f"{path} has no parameters for {name}; give the file of rnea_controller, or the name "
            "of its node with --node"
        )
    return values


def _locked(pairs: list[list[str]]) -> dict[str, float]:
    locked = {}
    for name, position in pairs:
        try:
            locked[name] = float(position)
        except ValueError as error:
            raise RobotModelError(
                f"--lock {name} {position}: the position must be a number, [rad] or [m]"
            ) from error
    return locked
