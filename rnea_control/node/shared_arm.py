"""`SharedArm`: the side of the controller's loop on which it shares the arm with the sentinel."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rnea_control.control import Event, Mode, Supervisor
from rnea_control.control.handover import LONGEST_UNHEARD, UNHEARD, Handover, Phase
from rnea_control.messages.cdr import CdrError
from rnea_control.messages.float64_multi_array import (
    Float64MultiArrayDecoder,
    Float64MultiArrayError,
)
from rnea_control.ros import native_loop as native
from rnea_control.ros.arm_loop import ArmLoop
from rnea_control.ros.effort_command import Command

LISTENING = "to hear whether the sentinel commands"
HELD_BY_SENTINEL = "the sentinel commands the arm; ~/resume takes it back"
HELD_BY_ANOTHER = "another node commands the arm, which is taken once that is silent"

TakeCommand = Callable[[], tuple[bytes, int | None] | None]


class SharedArm(ArmLoop):
    """A loop whose supervisor knows whether the arm is its own, or the sentinel's.

    Args:
        supervisor: decides the mode.
        command, handover, how: as of `ArmLoop`.

    Attributes:
        running: whether states are answered.
    """

    def __init__(
        self, supervisor: Supervisor, command: Command, handover: Handover, **how: Any
    ) -> None:
        self.supervisor = supervisor
        controller = supervisor.controller
        super().__init__(controller, command, handover, facts=supervisor.facts, **how)
        self.running = False
        self._take_command: TakeCommand | None = None
        self._command_decoder = Float64MultiArrayDecoder(controller.model.nv)
        self._heard = False  # a command of the sentinel, since that has the arm
        self._sentinel = ""  # its mode

    @property
    def now(self) -> float | None:
        """Stamp of the last state since that of the first, [s]; None before there is one."""
        return self.states.time if self.states.begun else None

    @property
    def listens(self) -> bool:
        """Whether it must hear the sentinel's commands."""
        return self.running and not self.handover.commanding

    def _start_sharing(self, now: float, sentinel: str) -> None:
        self._heard = False
        self._sentinel = sentinel
        alone = sentinel in ("", Phase.idle.value)
        self.supervisor.activate("for joint_states" if alone else LISTENING)
        self.handover.hear_mode(now, sentinel)
        self.handover.start(now, alone, LONGEST_UNHEARD if sentinel == UNHEARD else 0.0)
        if sentinel == Phase.commanding.value:
            self.supervisor.happen(Event.TAKEN_OVER, HELD_BY_SENTINEL)

    def hear_sentinel(self, label: str) -> None:
        """The sentinel has published its mode; "" when it has gone."""
        if label == self._sentinel and self.numbers[native.RUNS]:
            return  # an owner in office learns nothing from it
        named = self._sentinel in ("", UNHEARD)  # only now
        self._sentinel = label
        with self.paused():
            now, had_arm = time.monotonic(), self.handover.commanding
            self.handover.hear_mode(now, label)
            if self.handover.commanding and not had_arm:
                self.supervisor.happen(Event.WAITS_ON, "for joint_states")
            commands = label == Phase.commanding.value
            if commands:
                self.handover.hear_command(now)
            if commands or self.supervisor.mode is not Mode.WAITING:
                self._yield_if_asked(commands and named)

    def hear_command(self, message: bytes) -> None:
        """Another node has commanded the arm."""
        with self.paused():
            self._hear_command(message)

    def _hear_command(self, message: bytes) -> None:
        try:
            self._command_decoder.decode(message)
            self.controller.in_force = self._command_decoder.values
        except (CdrError, Float64MultiArrayError) as error:
            self.log.say("error", "command", f"another node's command: {error}")
        self.handover.hear_command(time.monotonic())
        self._yield_if_asked()
        self._heard = True

    def _hear_waiting_commands(self) -> None:
        while self.listens and self._take_command and (command := self._take_command()):
            self._hear_command(command[0])

    def listen(self, take: TakeCommand | None) -> None:
        """Has the ticks take the commands of the sentinel by this function, until None is given."""
        with self.paused():
            self._take_command = take

    def knows_torque(self) -> bool:
        """Whether it has heard a command of the sentinel since that took the arm."""
        with self.paused():
            self._hear_waiting_commands()
            return self._heard

    def receive(self, requested_at: float) -> bool:
        """The sentinel has given the arm, asked for it at `requested_at` by the steady clock;
        whether the loop has it."""
        with self.paused():
            if not self.running or self.now is None:
                return False
            self._hear_waiting_commands()  # the last of them is in force
            if not self.handover.receive(time.monotonic(), requested_at):
                return False
            self._take_over("the sentinel has given the arm back")
            return True

    def _command_arm(self) -> bool:
        """Commands the torques, or leaves the arm to who has it."""
        if self._publish():
            return True
        self._yield_if_asked()
        return False

    def _yield_if_asked(self, named: bool = False) -> None:
        """Leaves the arm to who commands; `named`: who that is has just become known."""
        if self.handover.commanding:
            return
        guarded = self.supervisor.mode is Mode.GUARDED
        self._heard &= guarded
        if named or not guarded:
            held = HELD_BY_ANOTHER if self._sentinel in ("", UNHEARD) else HELD_BY_SENTINEL
            self.supervisor.happen(Event.TAKEN_OVER, f"{held}: {self.handover.reason}")

    def _take_over(self, reason: str) -> None:
        self.supervisor.take_over(self.states.time, self.states.q, self.states.v, reason)
