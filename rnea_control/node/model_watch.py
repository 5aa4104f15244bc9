"""Checks the model against the robot, once a second while the arm rests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rnea_control.control import Mode
from rnea_control.control.controller_state import supporting_torque
from rnea_control.control.feasibility import RESTING
from rnea_control.control.laws import Model
from rnea_control.dynamics import Workspace
from rnea_control.messages.joint_state import measured_efforts
from rnea_control.node.control_loop import ControlLoop
from rnea_control.plausibility.model_check import Witness, check_model

# Time that the arm must have been held before a check: efforts do not hold it at first [s].
HELD = 1.0


class ModelWatch:
    """Compares the model's gravity torque with the torque that holds the arm.

    Args:
        loop: control loop that holds the arm. Its measured effort is compared if the settings trust
            it, otherwise its feedback.
        link: returns the link that a payload would be fixed to; None for the last one.

    Attributes:
        findings: one sentence for each joint that differs.
    """

    def __init__(self, loop: ControlLoop, link: Callable[[], str | None]) -> None:
        self.findings: tuple[str, ...] = ()
        self._loop, self._link = loop, link
        self._workspace = Workspace(loop.controller.model)
        self._said: object = None

    def look(self) -> None:
        """Checks, if the arm rests and `model_check.bound` is not 0."""
        loop = self._loop
        snapshot = loop.snapshot()
        part = loop.controller.settings["model_check.bound"]
        if part == 0.0 or snapshot is None or loop.supervisor.mode is not Mode.HOLDING:
            return
        if loop.now - loop.changed_at < HELD:
            return
        state, model, settings = snapshot[1], loop.controller.model, loop.controller.settings
        q, velocity = (np.ascontiguousarray(row) for row in state.measured)
        if np.abs(velocity).max() > RESTING:
            return
        ws = self._workspace
        if loop.settings.trusts_effort:
            witness = Witness.effort
            torque = (
                measured_efforts(loop.arm_loop.newest(), model.joint_names) - model.torque_offset
            )
        elif settings.control_law.model is Model.none:
            return
        else:
            witness, torque = Witness.feedback, supporting_torque(model, ws, settings, state)
        bound = part * model.effort_limit
        found = check_model(model, ws, q, torque, bound, witness, self._link())
        self.findings, said = (), None
        if likely := found.likely:
            self.findings = tuple(f"{each}: {likely.sentence}" for each in found.torques)
            said = likely.joints, likely.cause
            if said != self._said:
                torques = "; ".join(found.torques)
                loop.arm_loop.log.logger.warning(
                    f"the model does not fit the robot: {torques}: {likely.sentence}"
                )
        self._said = said
