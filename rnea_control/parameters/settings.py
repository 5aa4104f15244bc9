"""Settings of programs, and the robot, from values of parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from rnea_control.exceptions import ControllerError, ParameterError, RobotModelError
from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.parameters.parameter import JOINT, Parameter, Parameters, values_in_force
from rnea_control.parameters.table import ROBOT, ROWS

S = TypeVar("S", bound="Settings")

_OF_JOINTS = [row for row in ROBOT if row.name.startswith(("friction.", "armature."))]


def row(name: str = "", default: Any = MISSING) -> Any:
    """Field for a row of the table: an array of shape (nv,) if the name has a joint. Without a
    name, a field that no parameter sets. A default of None means not set."""
    return field(default=default, metadata={"row": ROWS[name] if name else None})


class Settings:
    """Base of dataclasses whose fields are rows of the table. Infinity means no bound."""

    @classmethod
    def of(cls: type[S], values: Mapping[str, Any], **given: Any) -> S:
        """Settings from `values`, as returned by `values_in_force`; `given` fields take
        precedence."""
        own = {each.name: each.metadata.get("row") for each in fields(cls)}  # type: ignore[arg-type]
        taken = {name: values[r.name] for name, r in own.items() if r and r.name in values}
        return cls(**{**taken, **given})

    def numbers(self) -> Iterator[tuple[Parameter, Any]]:
        """Rows and values that are set, also in nested settings."""
        for each in fields(self):  # type: ignore[arg-type]
            value, of_table = getattr(self, each.name), each.metadata.get("row")
            if isinstance(value, Settings) and is_dataclass(value):
                yield from value.numbers()
            elif of_table is not None and value is not None:
                yield of_table, value

    def check(self, joint_names: Sequence[str]) -> None:
        """Checks the settings for these joints.

        Raises:
            ControllerError: a wrong size, or a value that the table does not allow. The message
                names the parameter and the joint.
        """
        for of_table, value in self.numbers():
            names, values = [of_table.name], [value]
            if JOINT in of_table.name or (np.ndim(value) and not of_table.length):
                if np.shape(value) != (len(joint_names),):
                    raise ControllerError(
                        f"{of_table.name} has shape {np.shape(value)}; it needs one number for "
                        f"each of the {len(joint_names)} joints"
                    )
                names = [of_table.name.replace(JOINT, joint) for joint in joint_names]
                values = np.asarray(value, dtype=float).tolist()
            elif isinstance(value, np.generic):
                values = [value.item()]
            allowed = of_table.once_in_force
            try:
                for name, number in zip(names, values, strict=True):
                    allowed.check(name, number)
            except ParameterError as error:
                raise ControllerError(str(error)) from error


def quietly(make: Callable[..., RobotModel], *arguments: Any) -> RobotModel:
    """Makes a robot without issuing its notes as warnings: for programs that show the user
    `plausibility.suspicions`, or whose user cannot correct the URDF."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        return make(*arguments)


def load_model(
    parameters: Parameters, joints: list[str], locked: Sequence[str], description: str
) -> RobotModel:
    """Robot from the parameter `robot_description`, or else from the topic's `description`; issues
    no warnings.

    Args:
        parameters: parameters of the node.
        joints: joints to control.
        locked: joints with a parameter `locked_positions.<joint>`.
        description: URDF text from the topic; empty if none was received.

    Raises:
        ParameterError: no description, or a value that is not allowed.
        RobotModelError: the description is not of a robot with these joints.
    """
    description = parameters["robot_description"] or description
    if not description:
        raise ParameterError(
            "there is no robot description yet: set the parameter 'robot_description', or start "
            "robot_state_publisher, which publishes the topic robot_description"
        )
    positions = {name: parameters[f"locked_positions.{name}"] for name in locked}
    given = description, joints, positions, parameters["gravity"]
    return quietly(RobotModel.from_urdf_string, *given)


def payload_doubt(parameters: Parameters, model: RobotModel) -> str:
    """Sentence about a doubtful payload; empty if there is no doubt. A mass without center of mass
    is a point at the origin of its link, which hardly any load is."""
    mass, place = parameters["payload.mass"], parameters["payload.center_of_mass"]
    if not mass > 0.0 or any((*place, *parameters["payload.inertia"])):
        return ""
    link = parameters["payload.link"] or model.child_links[-1]
    return (
        f"payload.mass is {mass:g} kg, with payload.center_of_mass and payload.inertia at 0: a "
        f"point in the origin of {link!r}, with which the arm may follow its path no better than "
        "without a payload. Set payload.center_of_mass, in the frame of that link, and "
        "payload.inertia if the load is large"
    )


def update_model(parameters: Parameters, model: RobotModel) -> None:
    """Sets gravity, payload, friction and armature of the model from the node's parameters. A mass
    of 0 means no payload, whatever its inertia.

    Raises:
        ParameterError: a value that is not allowed, a payload with an impossible inertia, or a
            payload on an unknown link.
    """
    mass = parameters["payload.mass"]
    xx, xy, xz, yy, yz, zz = parameters["payload.inertia"]
    try:
        model.set_payload(
            parameters["payload.link"] or model.child_links[-1],
            mass,
            parameters["payload.center_of_mass"],
            np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) if mass > 0.0 else None,
        )
    except RobotModelError as error:
        raise ParameterError(f"the parameters 'payload.*' do not fit: {error}") from error
    model.gravity = parameters["gravity"]
    given = values_in_force(parameters, _OF_JOINTS, model.joint_names)
    model.armature = given["armature.<joint>"]
    model.torque_offset = given["friction.<joint>.offset"]
    damping, friction = given["friction.<joint>.damping"], given["friction.<joint>.coulomb"]
    model.damping = np.where(np.isnan(damping), model.urdf_damping, damping)
    model.friction = np.where(np.isnan(friction), model.urdf_friction, friction)
