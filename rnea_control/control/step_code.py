"""The recursion of one robot as machine code of its own, for the control step."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.compiled import CompiledRobot, compile_robot
from rnea_control.compiled.calls import CHANGES
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel


@dataclass(frozen=True, eq=False)
class StepCode:
    """Where the code is. A step goes by it as long as the robot is as it was then, and by the
    loops of `dynamics` else: no torque is of another robot.

    Attributes:
        rnea: its address; 0 for none.
        expected: how often setters had changed the robot.
        robot: keeps the code in memory.
    """

    rnea: int
    expected: FloatArray
    robot: CompiledRobot | None


NO_CODE = StepCode(0, np.zeros(len(CHANGES)), None)


def step_code(model: RobotModel, variable: Collection[str], last: StepCode) -> StepCode:
    """The code of a robot as it is now.

    Args:
        model, variable: as of `compile_robot`.
        last: what there was before; it is kept if only what is variable has changed.
    """
    if last.robot is not None:
        with suppress(ArgumentError):
            return StepCode(last.robot.address("rnea"), last.expected, last.robot)
    robot = compile_robot(model, variable, base_parameters=True)
    return StepCode(robot.address("rnea"), robot.expected, robot)
