"""`RequestedCheck`: the check of an arm's answers without a controller that takes the arm over
after it, from the first state to the last command.

The effort controller applies the last command for ever, so that the check chooses it:

- the gravity torque, if the settings demand it, and the arm has stayed under it;
- otherwise zero torque: if the settings demand it, if the wires are wrong, if the arm moves off, or
  if its states are lost before its wires were found right. The gravity torque at a joint whose
  torque has the wrong sign would drive the joint on for ever.

After the verdict, and after a request to stop, the arm is held for a moment by the gravity torque
and, where the answers were right, by feedback, so that it is at rest where it was before.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import feasibility
from rnea_control.control.activation_check import ActivationCheck, Verdict
from rnea_control.control.controller import Controller
from rnea_control.control.settings import ControllerSettings, SupervisionSettings
from rnea_control.exceptions import ControllerError
from rnea_control.model import RobotModel

SETTLING = 0.5  # time after the codes in which the arm is held, or let go with damping [s]
WARM_UP = 5  # states of the warm-up


class RequestedCheck:
    """A single check. Time is the time of the states.

    Args:
        controller: controller of the arm; it bounds the torques, and doubts states that cannot be
            true.
        settings: settings of the supervision.
        keeps_gravity: True if the last command is the gravity torque, if the arm stays under it.

    Attributes:
        failure: why the check ended before the arm was checked and at rest; empty if it did not.
        has_commanded: True if a torque was to be commanded, so that `last_command` is needed.
        is_over: True if only `last_command` is due.
        moved_off: True if the arm moved further or faster than allowed, under torques of the check.
    """

    def __init__(
        self, controller: Controller, settings: SupervisionSettings, keeps_gravity: bool
    ) -> None:
        self._controller, self._settings = controller, settings
        self._keeps_gravity = keeps_gravity
        self._check = ActivationCheck(controller.model, controller.settings)
        self._wanted = np.zeros(controller.model.nv)
        self.failure = ""
        self.has_commanded = self.is_over = self.moved_off = False
        self._lets_go = self._stopping = False
        self._settled_at = math.nan  # end of the time after the codes [s]

    @property
    def limit(self) -> FloatArray:
        """Bound of the torques, shape (nv,), [Nm] or [N]."""
        return self._check.limit

    @property
    def ends_with_gravity(self) -> bool:
        """True if the last command is the gravity torque, and not zero torque."""
        return self._keeps_gravity and not self._lets_go

    @property
    def verdict(self) -> Verdict | None:
        """The result of the check; None before it."""
        return self._check.verdict

    def seen_delay(self) -> float:
        """Delay that explains the last answer best, [s]; NaN if it is not known. Takes tenths of a
        second."""
        return self._check.seen_delay()

    def answer(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> bool:
        """Fills `tau` with the torques for a state. Returns True if they are to be commanded. If
        not, the check is over, and `last_command` is due if it `has_commanded`.

        Args:
            t: time of the state [s]; it does not run backward.
            q, v: measured positions and velocities, shapes (nv,); finite.
            tau: output, shape (nv,), [Nm] or [N].
        """
        controller = self._controller
        if not (self.has_commanded or self._stopping) and (obstacle := self._obstacle(q, v)):
            self.abandon(obstacle)
        self.is_over |= self._stopping and not self.has_commanded
        if self.is_over:
            return False
        if not self.has_commanded:
            controller.start(t, q)
            self.has_commanded = True
        elif doubt := controller.doubt(t, q, v, self._settings.simulated):
            self.abandon(f"{doubt}; the state cannot be true")
            return False
        elapsed = t - controller.time
        if math.isnan(self._settled_at):
            gap = self._settings.state_gap
            if not self._stopping and self._check.answer(controller, t, q, v, gap, tau):
                return True
            self._settle(t)
            self.moved_off = self._check.moves_off(q)
        elif not self._lets_go:
            self.moved_off |= self._check.moves_off(q)
        if self.moved_off and not self._lets_go:
            self._let_go()
        if self._lets_go:
            controller.step(t, q, v, tau)
        else:
            self._check.hold(q, v, self._wanted)
            controller.command(t, q, v, self._wanted, elapsed, tau)
            self._check.sent(t, q, v, tau)
        self.is_over = t >= self._settled_at
        return not self.is_over

    def stop(self, reason: str) -> None:
        """Ends the codes with the next state; then the arm is brought to rest."""
        self.failure = self.failure or reason
        self._stopping = True

    def abandon(self, reason: str) -> None:
        """Ends the check at once, as states are lost, or another node commands the arm."""
        self.failure = self.failure or reason
        self.is_over = True
        self._lets_go |= self.verdict is None or not self.verdict.verified.all()

    def last_command(self) -> FloatArray:
        """The torques that the effort controller is to keep, shape (nv,), [Nm] or [N]."""
        tau = np.zeros(self._controller.model.nv)
        if self.ends_with_gravity:
            with suppress(ControllerError):  # not finite; the torque stays zero
                self._controller.holding_torque(self._controller.last_state[0], tau)
        return tau

    def _obstacle(self, q: FloatArray, v: FloatArray) -> str:
        """Why the arm may not be moved from this state; empty if it may."""
        model, settings = self._controller.model, self._controller.settings
        found = feasibility.obstacle_to_start(model, self._settings, q, v, may_move=False)
        if found is not None:
            return found.reason.removeprefix("as ")
        return feasibility.excessive_load(model, self._controller.workspace, settings, q)

    def _settle(self, t: float) -> None:
        """Begins the time after the codes, and lets go of the arm if the verdict is wrong."""
        self._settled_at = t + SETTLING
        verdict = self.verdict
        if verdict is not None:
            self._controller.damp_when_let_go(verdict.verified)
        if not self._keeps_gravity or (verdict is not None and verdict.wrong):
            self._let_go()

    def _let_go(self) -> None:
        """Fades to zero torque, except for the damping of joints that answered right."""
        self._lets_go = True
        self._controller.let_go()


def warm_up(model: RobotModel, settings: ControllerSettings) -> None:
    """Runs all code that a check needs, so that no state waits for its loading."""
    q, v, tau = np.clip(0.0, model.lower, model.upper), np.zeros(model.nv), np.zeros(model.nv)
    ActivationCheck(model, settings).warm_up(q)
    supervision = SupervisionSettings(start_velocity=math.inf)
    for keeps_gravity in (True, False):
        check = RequestedCheck(Controller(model, settings), supervision, keeps_gravity)
        for k in range(WARM_UP):
            check.answer(0.001 * k, q, v, tau)
        check.stop("warmed up")
        for k in range(WARM_UP):
            check.answer(0.001 * (WARM_UP + k), q, v, tau)
        check.last_command()
