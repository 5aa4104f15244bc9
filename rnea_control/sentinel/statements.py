"""`Statements`: what controllers say of themselves, each by the participant that says it.

Only what the one says whose commands arrive counts: another node on the same topics, a second
controller of the same name among them, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rcl_interfaces.msg import ParameterEvent

from rnea_control.control import Mode
from rnea_control.exceptions import plain

# Participants that are remembered.
MOST = 16
# Characters of a reason that are repeated.
LONGEST_REASON = 500


@dataclass(frozen=True)
class Statement:
    """What one participant says; the defaults are those of one that says nothing.

    Attributes:
        applied: whether its commands are applied.
        let_go: why it has let go of the arm; empty if it has not.
        parameters: the message of `~/parameters_in_force`; None without one.
    """

    applied: bool = True
    let_go: str = ""
    parameters: ParameterEvent | None = None


class Statements:
    """Written by the executor, read by the guard's thread.

    Attributes:
        commander: participant whose commands arrive; never forgotten.
    """

    def __init__(self) -> None:
        self.commander: bytes | None = None
        self._said: dict[bytes | None, Statement] = {}

    @property
    def current(self) -> Statement:
        """That of the commander."""
        return self._said.get(self.commander, Statement())

    def note_mode(self, who: bytes | None, label: str, reason: str) -> None:
        """A message of `~/mode`, by a participant; None where messages do not tell it."""
        let_go = label == Mode.POWERLESS.value
        words = f"as the controller: {plain(reason, LONGEST_REASON)}" if let_go else ""
        statement = self._said.get(who, Statement())
        self._note(who, replace(statement, applied=label != Mode.WAITING.value, let_go=words))

    def note_parameters(self, who: bytes | None, event: ParameterEvent) -> None:
        """A message of `~/parameters_in_force`; arguments as of `note_mode`."""
        self._note(who, replace(self._said.get(who, Statement()), parameters=event))

    def forget_modes(self) -> None:
        """No controller is there: the next one that commands may say nothing."""
        for who, statement in list(self._said.items()):
            self._said[who] = replace(statement, applied=True, let_go="")

    def _note(self, who: bytes | None, statement: Statement) -> None:
        self._said[who] = statement
        others = [each for each in self._said if each not in (who, self.commander)]
        for each in others[: max(len(self._said) - MOST, 0)]:
            del self._said[each]
