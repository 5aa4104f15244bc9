"""The safety settings that the node has without a word from its user, for tests without ROS."""

from __future__ import annotations

from rnea_control.control import SafetySettings, SupervisionSettings
from rnea_control.model import RobotModel
from rnea_control.parameters.parameter import GivenParameters, expand, values_in_force
from rnea_control.parameters.table import LIMITS, SAFETY


def default_safety(model: RobotModel) -> SafetySettings:
    return SafetySettings.of(_defaults(model.joint_names), check_jumps=True)


def default_supervision() -> SupervisionSettings:
    return SupervisionSettings.of(_defaults(()))


def _defaults(joints: tuple[str, ...]) -> dict:
    table = (*SAFETY, *LIMITS)
    return values_in_force(GivenParameters({}, expand(table, joints)), table, joints)
