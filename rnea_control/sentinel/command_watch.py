"""`CommandWatch`: separates the sentinel's own commands from others' commands, and judges these."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.belief import MOVING
from rnea_control.exceptions import CdrError, Float64MultiArrayError
from rnea_control.loop.handover import HandoverTimes
from rnea_control.messages.cdr import HEADER, decoding
from rnea_control.messages.float64_multi_array import decode_command
from rnea_control.ros.publishers import described, participant

# Factor by which commands may exceed the effort limit at any time, for rounding.
EFFORT_TOLERANCE = 1.01
# A larger excess is accepted for a short time, as the limit may just have changed.
MOST_EXCESS = 2.0  # factor on the effort limit that is never exceeded
LONGEST_EXCESS = 0.5  # longest time of such an excess [s]
# Fraction of the effort limit above which equal commands are saturated, not frozen.
SATURATED = 0.999
# Number of states that must come while commands are the same, before these are frozen.
LEAST_STATES = HandoverTimes.states
# Silence of the followed controller after which another controller is followed [s].
FOLLOWED = 0.5
# Number of publishers whose names are remembered.
MOST_NAMES = 64
REMEMBERED = 64  # number of own commands that may be on their way back
LONGEST_WAY = 0.1  # longest time that an own command takes to come back [s]


class CommandWatch:
    """Judges every command on the topic.

    Args:
        joint_names: joint names in the order of the commands.
        effort_limit: effort limits of the joints, shape (nv,), [Nm] or [N].
        own: GID of the sentinel's own publisher; None where it is not known.
        rightful: full name of the node that may command. The first participant with this name that
            commands is followed until it is silent.
        publishers: returns the names of the nodes that command, by the GIDs of their publishers;
            None where messages do not carry these GIDs.

    Attributes:
        effort_limit: effort limits in force, shape (nv,), [Nm] or [N].
        commander: participant that is followed; None before the first command, and where messages
            do not carry GIDs.
        torque_at: time of the command that is `in_force`, by the steady clock [s]; -inf before the
            first command.
    """

    commander: bytes | None = None

    def __init__(
        self,
        joint_names: tuple[str, ...],
        effort_limit: FloatArray,
        own: bytes | None = None,
        rightful: str = "",
        publishers: Callable[[], dict[bytes, str] | None] = lambda: None,
    ) -> None:
        self._names = joint_names
        self._own, self._rightful, self._publishers = own, rightful, publishers
        self._known: dict[bytes, str] = {}  # names of publishers
        self._followed: bytes | None = None  # publisher of the commander
        self._commanded_at = -math.inf
        self.effort_limit = effort_limit
        self._torque = np.full(len(joint_names), math.nan)
        self.torque_at = -math.inf
        self._sent: deque[tuple[float, bytes]] = deque(maxlen=REMEMBERED)
        self._last = b""
        self._since = self._since_stamp = self._within_at = 0.0
        self._since_states = 0  # number of states when the same commands began

    @property
    def in_force(self) -> FloatArray:
        """The last readable command of another node, clipped to the limits, shape (nv,), [Nm] or
        [N]; NaN before the first command."""
        return np.clip(self._torque, -self.effort_limit, self.effort_limit)

    def sent(self, message: bytes, now: float) -> None:
        """Notes a command that the sentinel has published.

        Args:
            message: serialized command.
            now: the steady clock [s].
        """
        self._sent.append((now, message[HEADER:]))

    def is_own(self, message: bytes, publisher: bytes | None, now: float) -> bool:
        """True if this command was published by the sentinel itself.

        Where its own publisher is not known, each own command is matched once: at rest, the
        controller's commands may be the same to the last bit.
        """
        if self._own is not None:
            return publisher == self._own
        sent, content = self._sent, message[HEADER:]
        while sent and now - sent[0][0] > LONGEST_WAY:
            sent.popleft()
        for entry in sent:
            if entry[1] == content:
                sent.remove(entry)
                return True
        return False

    def stranger(self, publisher: bytes | None, now: float) -> str:
        """Description of a command's sender, for users, if it is not the followed controller; empty
        if it is, or where messages do not carry their publishers."""
        if publisher is None or publisher == self._followed:
            self._commanded_at = now
            return ""
        name = self._name(publisher)
        if name is None:
            return ""
        if name not in ("", self._rightful):
            if participant(publisher) == self.commander:  # followed before its name was known
                self.commander = None
            return name
        of_commander = participant(publisher) == self.commander
        if self.commander is None or of_commander or now - self._commanded_at > FOLLOWED:
            self.commander = participant(publisher)
            self._commanded_at = now
            if name:  # until the name is known, it is looked up again
                self._followed = publisher
            return ""
        return f"a second {described(name, publisher)}"

    def _name(self, publisher: bytes) -> str | None:
        """The full name of a publisher's node, empty until it is discovered; None where messages do
        not carry their publishers."""
        name = self._known.get(publisher, "")
        if not name:
            found = self._publishers()
            if found is None:
                return None
            if name := found.get(publisher, ""):
                if len(self._known) >= MOST_NAMES:
                    self._known.clear()
                self._known[publisher] = name
        return name

    def fault(
        self, message: bytes, now: float, stamp: float, states: int, speed: float, longest: float
    ) -> str:
        """Describes a fault of another node's command; empty if there is none.

        Without states a controller repeats the torque of an arm that it has braked, and then falls
        silent. So commands count as frozen only if `LEAST_STATES` states have come since the first
        of the equal commands.

        Args:
            message: serialized command.
            now: the steady clock [s].
            stamp: time of the newest state [s].
            states: number of states received so far.
            speed: speed of the fastest joint [rad/s] or [m/s].
            longest: longest time that a moving arm may get the same torques [s]; infinite for no
                limit.
        """
        same, self._last = message == self._last, message
        if not same or speed <= MOVING:
            self._since, self._since_stamp, self._since_states = now, stamp, states
        try:
            with decoding("a command"):
                self._torque = decode_command(message, len(self._names), "a command")
                self.torque_at = now
        except (CdrError, Float64MultiArrayError) as error:
            return str(error)
        torque, limit = np.abs(self._torque), self.effort_limit
        if not (torque > EFFORT_TOLERANCE * limit).any():
            self._within_at = now
        elif (torque > MOST_EXCESS * limit).any() or now - self._within_at > LONGEST_EXCESS:
            j = int(np.argmax(torque - limit))
            return (
                f"a command has {self._torque[j]:.4g} for {self._names[j]}, whose effort "
                f"limit is {limit[j]:.4g}"
            )
        frozen = min(now - self._since, stamp - self._since_stamp) >= longest
        frozen = frozen and states - self._since_states >= LEAST_STATES
        if frozen and not (torque >= SATURATED * limit).all():
            return (
                f"commands have been the same for {now - self._since:.3f} s while the arm moves "
                f"at {speed:.2g} rad/s or m/s"
            )
        return ""
