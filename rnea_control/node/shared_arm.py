"""`SharedArm`: the arm that controller and sentinel share, from the controller's side."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from rnea_control.control import Event, Mode, Supervisor
from rnea_control.control.belief import MOVING
from rnea_control.exceptions import Float64MultiArrayError
from rnea_control.loop.arm_loop import ArmLoop
from rnea_control.loop.handover import LONGEST_UNHEARD, UNHEARD, Phase
from rnea_control.messages.cdr import CdrError, decoding
from rnea_control.messages.float64_multi_array import decode_command
from rnea_control.ros.rcl_calls import GID_SIZE, Taken

# Longest age of the last joint state, or of the last message of a sentinel, that is relied on [s].
FRESH = 0.5
# Time at rest of an arm that was lost by a pause, before it is requested [s].
SETTLING = 0.2

POWERLESS = Mode.POWERLESS.value  # label of a sentinel that has let go of the arm
LET_GO = "the sentinel has let go of the arm"
LISTENING = "for the state of the sentinel"
HELD_BY_SENTINEL = "the sentinel commands the arm; ~/resume takes it back"
HELD_AFTER_PAUSE = "the sentinel commands the arm until it is at rest, and gives it back then"
GIVEN_BACK = "the sentinel has given the arm back"
HELD_BY_ANOTHER = "another node commands the arm; the controller takes over when that node stops"

TakeCommand = Callable[[], Taken | None]


class SharedArm:
    """Tells the supervisor whether the loop or the sentinel has the arm, and takes it over.

    Args:
        loop: commands the arm while it is the controller's.
        supervisor: decides the mode.
    """

    def __init__(self, loop: ArmLoop, supervisor: Supervisor) -> None:
        self.loop, self._supervisor, self._handover = loop, supervisor, loop.handover
        self._sentinel = ""  # label of the sentinel's mode
        self._heard_command = False  # a command of the sentinel was received since it took the arm
        self._take_command: TakeCommand | None = None
        self._moved_at = 0.0  # time at which a lost arm was last seen in motion [s]
        self._of_sentinel: Callable[[bytes | None], bool] = lambda publisher: True

    @property
    def running(self) -> bool:
        """True while states are answered."""
        return self._supervisor.mode is not Mode.INACTIVE

    @property
    def listens(self) -> bool:
        """True if the loop must receive the sentinel's commands."""
        return self.running and not self._handover.commanding

    def start(self, now: float, sentinel: str) -> None:
        """Activates the supervisor.

        Args:
            now: steady clock [s].
            sentinel: label of the sentinel's mode; "" without a sentinel.
        """
        self._heard_command = False
        has_let_go = sentinel == POWERLESS
        sentinel = Phase.commanding.value if has_let_go else sentinel
        self._sentinel = sentinel
        alone = sentinel in ("", Phase.idle.value)
        self._supervisor.activate("for joint_states" if alone else LISTENING)
        self._handover.hear_mode(now, sentinel)
        self._handover.start(now, alone, LONGEST_UNHEARD if sentinel == UNHEARD else 0.0)
        if sentinel == Phase.commanding.value:
            self._supervisor.happen(Event.TAKEN_OVER, HELD_BY_SENTINEL)
        if has_let_go:
            self._supervisor.let_go(f"{LET_GO}; mend that, and call its ~/stand_down")

    def hear_sentinel(self, label: str, reason: str = "") -> None:
        """Processes a message with the sentinel's mode.

        Args:
            label: label of the mode; "" if the sentinel has ended.
            reason: reason of the mode.
        """
        if label == POWERLESS:
            with self.loop.paused():
                if self._supervisor.let_go(f"{LET_GO}: {reason}"):
                    self.loop.log.wake()
            label = Phase.commanding.value
        if label == self._sentinel and self.loop.runs_natively:
            return  # an unchanged mode changes nothing for the owner of the lease
        named = self._sentinel in ("", UNHEARD)  # the sentinel has just become known
        self._sentinel = label
        with self.loop.paused():
            now, had_arm = time.monotonic(), self._handover.commanding
            self._handover.hear_mode(now, label)
            if self._handover.commanding and not had_arm:
                self._supervisor.happen(Event.WAITS_ON, "for joint_states")
            commands = label == Phase.commanding.value
            if commands:
                self._handover.hear_command(now)
            if commands or self._supervisor.mode is not Mode.WAITING:
                self.yield_if_asked(commands and named)

    def is_back(self) -> bool:
        """True if the controller lost the arm by a pause that is over, and could hold it again:
        joint states come, and the arm has been at rest for `SETTLING`. Call periodically."""
        with self.loop.lock:
            now = time.monotonic()
            lost = self.running and self._supervisor.may_return and self._handover.lost_by_pause
            fresh = self.loop.states.begun and now - self.loop.states.came_at < FRESH
            if not (lost and fresh and self.loop.speed <= MOVING):
                self._moved_at = now
            return now - self._moved_at > SETTLING

    def is_kept_from(self, why: str) -> None:
        """Notes that the sentinel does not give the arm back by itself; `why` becomes part of the
        mode's reason."""
        with self.loop.paused():
            if self._supervisor.mode is Mode.GUARDED:
                self._supervisor.happen(Event.TAKEN_OVER, f"{HELD_BY_SENTINEL}: {why}")

    def listen(
        self,
        take: TakeCommand | None,
        of_sentinel: Callable[[bytes | None], bool] = lambda publisher: True,
    ) -> None:
        """Sets the function by which the ticks take commands.

        Args:
            take: returns the next command of any node, None without one; or None to take none.
            of_sentinel: returns True if a command may be the sentinel's, by its publisher's GID.
        """
        with self.loop.paused():
            self._take_command, self._of_sentinel = take, of_sentinel

    def follow_sentinel(self, publisher: bytes | None) -> None:
        """Accepts revocations only from the publisher of this GID; from any publisher if None."""
        low, high = np.frombuffer(publisher or bytes(GID_SIZE), dtype=np.int64)
        with self.loop.paused():
            self.loop.shared.sentinel_gid_low, self.loop.shared.sentinel_gid_high = low, high
            self.loop.shared.sentinel_known = publisher is not None

    def knows_torque(self) -> bool:
        """True if a command of the sentinel was received since it took the arm."""
        with self.loop.paused():
            self.hear_waiting_commands()
            return self._heard_command

    def receive(self, requested_at: float, reason: str = GIVEN_BACK) -> bool:
        """Takes over the arm that the sentinel has given; returns True if the loop has it.

        Args:
            requested_at: time of the request, by the steady clock [s].
            reason: reason of the mode that follows.
        """
        with self.loop.paused():
            if not self.running or self.loop.now is None:
                return False
            self.hear_waiting_commands()  # the last command is in force
            if not self._handover.receive(time.monotonic(), requested_at):
                return False
            self._supervisor.take_over(*self.loop.state, reason)
            return True

    def _hear_command(self, command: Taken) -> None:
        self._handover.hear_command(time.monotonic())
        self.yield_if_asked()
        try:
            with decoding("a command"):
                torque = decode_command(command.data, self.loop.controller.model.nv)
            if self._of_sentinel(command.publisher):
                self.loop.controller.in_force, self._heard_command = torque, True
        except (CdrError, Float64MultiArrayError) as error:
            self.loop.log.say("error", "command", f"another node's command: {error}")

    def hear_waiting_commands(self) -> None:
        """Takes the commands of the node that has the arm."""
        if self._take_command is None:  # the executor may be busy
            self._handover.miss_commands(time.monotonic())
        while self.listens and self._take_command and (command := self._take_command()):
            self._hear_command(command)

    def command(self) -> bool:
        """Commands the torques and returns True, or leaves the arm to the node that has it."""
        if self.loop.publish():
            return True
        self.yield_if_asked()
        return False

    def yield_if_asked(self, named: bool = False) -> None:
        """Leaves the arm to the node that commands it.

        Args:
            named: True if the sentinel has just become known as that node.
        """
        if self._handover.commanding:
            return
        guarded = self._supervisor.mode is Mode.GUARDED
        self._heard_command &= guarded
        if not guarded:
            self._moved_at = time.monotonic()
        if named or not guarded:
            held = HELD_BY_SENTINEL
            if self._sentinel in ("", UNHEARD):
                held = HELD_BY_ANOTHER
            elif self._supervisor.may_return and self._handover.lost_by_pause:
                held = HELD_AFTER_PAUSE
            self._supervisor.happen(Event.TAKEN_OVER, f"{held}: {self._handover.reason}")
