"""The safety settings that the node has without a word from its user, for tests without ROS."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

from rnea_control.control import SafetySettings, SupervisionSettings
from rnea_control.model import RobotModel
from rnea_control.node.safety_parameters import SAFETY_PARAMETERS
from rnea_control.node.settings import safety_settings, supervision_settings
from rnea_control.ros.robot_parameters import LIMIT_PARAMETERS


class _Defaults:
    """The parameters of a node that was given none."""

    def __getitem__(self, name: str) -> Any:
        for parameter in (*SAFETY_PARAMETERS, *LIMIT_PARAMETERS):
            if fnmatchcase(name, parameter.name.replace("<joint>", "*")):
                return parameter.default
        raise KeyError(name)


def default_safety(model: RobotModel) -> SafetySettings:
    return safety_settings(_Defaults(), model)


def default_supervision() -> SupervisionSettings:
    return supervision_settings(_Defaults())
