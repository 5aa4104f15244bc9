"""`Configuration`: the controller's parameters as plain values, and the robot of these values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from rnea_control.exceptions import ParameterError, RneaControlError
from rnea_control.model import RobotModel
from rnea_control.node.parameters import PARAMETERS
from rnea_control.parameters.parameter import GivenParameters, expand
from rnea_control.parameters.settings import load_model, update_model
from rnea_control.parameters.table import LOCKED, LOCKED_POSITION

Values = Mapping[str, Any]  # parameters of one node by full name


class Configuration(GivenParameters):
    """The controller's parameters, checked by its table, and the robot that they describe.

    Args:
        values: parameters by full name.
        where: source of the parameters, for messages; empty if they are unknown.
        published: the URDF on the topic robot_description; empty without one.

    Attributes:
        joints: controlled joints; empty if unknown.
        description: the URDF that the controller uses; empty without one.
    """

    def __init__(self, values: Values, where: str = "", published: str = "") -> None:
        super().__init__(values, expand(PARAMETERS, ()))
        self.where = where
        self.joints = tuple(self.get("joints") or ())
        locked = [name for name in values if name.startswith(LOCKED)]
        self._known = expand(PARAMETERS, self.joints) | dict.fromkeys(locked, LOCKED_POSITION)
        self._locked = [name.removeprefix(LOCKED) for name in locked]
        self.description: str = self.get("robot_description") or published

    def get(self, name: str) -> Any:
        """A parameter, or its default if its value is not allowed."""
        try:
            return self[name]
        except ParameterError:
            return self._known[name].default

    @cached_property
    def robot(self) -> RobotModel | RneaControlError | None:
        """The robot, or the error that prevents it; None without joints or URDF."""
        if not (self.description and self.joints):
            return None
        try:
            model = load_model(self, list(self.joints), self._locked, self.description)
            update_model(self, model)
        except RneaControlError as fault:
            return fault
        return model

    @property
    def model(self) -> RobotModel | None:
        """The robot, if there is one."""
        return self.robot if isinstance(self.robot, RobotModel) else None
