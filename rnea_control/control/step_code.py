"""The recursion of one robot as machine code of its own, for the control step."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from rnea_control.array_types import IntArray
from rnea_control.compiled import CompiledRobot, compile_robot
from rnea_control.compiled.calls import NOWHERE
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel


@dataclass(frozen=True, eq=False)
class StepCode:
    """Where the code is. A step goes by it as long as the robot is as it was then, and by the
    loops of `dynamics` else: no torque is of another robot.

    Attributes:
        rnea: as `rnea_by_code` takes it.
        robot: keeps the code in memory.
    """

    rnea: IntArray
    robot: CompiledRobot | None


NO_CODE = StepCode(NOWHERE, None)


def step_code(model: RobotModel, variable: Collection[str], last: StepCode) -> StepCode:
    """The code of a robot as it is now.

    Args:
        model, variable: as of `compile_robot`.
        last: what there was before; it is kept if only what is variable has changed.
    """
    if last.robot is not None:
        with suppress(ArgumentError):
            return StepCode(last.robot.target("rnea"), last.robot)
    robot = compile_robot(model, variable, base_parameters=True)
    return StepCode(robot.target("rnea"), robot)
