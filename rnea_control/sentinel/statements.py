"""`Statements`: what controllers publish about themselves, by participant.

Only the statement of the participant that commands counts. Other nodes on the same topics,
such as a second controller of the same name, change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rcl_interfaces.msg import ParameterEvent

from rnea_control.control import Mode
from rnea_control.exceptions import plain

# Number of participants that are remembered.
MOST = 16
# Characters of a reason that are repeated.
LONGEST_REASON = 500


@dataclass(frozen=True)
class Statement:
    """Statement of one participant; the defaults apply if it has published none.

    Attributes:
        applied: True if its commands are applied.
        let_go: why it has let go of the arm; empty if it has not.
        parameters: the message of `~/parameters_in_force`; None without one.
    """

    applied: bool = True
    let_go: str = ""
    parameters: ParameterEvent | None = None


class Statements:
    """Statements of all participants; written by the executor, read by the guard's thread.

    Attributes:
        commander: participant that commands; never forgotten.
    """

    def __init__(self) -> None:
        self.commander: bytes | None = None
        self._said: dict[bytes | None, Statement] = {}

    @property
    def current(self) -> Statement:
        """Statement of the commander."""
        return self._said.get(self.commander, Statement())

    def note_mode(self, who: bytes | None, label: str, reason: str) -> None:
        """Notes a message of `~/mode`.

        Args:
            who: participant that published the message; None where messages do not carry it.
            label: label of the mode.
            reason: reason of the mode.
        """
        let_go = label == Mode.POWERLESS.value
        words = f"as the controller: {plain(reason, LONGEST_REASON)}" if let_go else ""
        statement = self._said.get(who, Statement())
        self._note(who, replace(statement, applied=label != Mode.WAITING.value, let_go=words))

    def note_parameters(self, who: bytes | None, event: ParameterEvent) -> None:
        """Notes a message of `~/parameters_in_force`.

        Args:
            who: participant that published the message; None where messages do not carry it.
            event: the message.
        """
        self._note(who, replace(self._said.get(who, Statement()), parameters=event))

    def forget_modes(self) -> None:
        """Forgets all modes, as no controller is present: the next one may not publish its mode."""
        for who, statement in list(self._said.items()):
            self._said[who] = replace(statement, applied=True, let_go="")

    def _note(self, who: bytes | None, statement: Statement) -> None:
        self._said[who] = statement
        others = [each for each in self._said if each not in (who, self.commander)]
        for each in others[: max(len(self._said) - MOST, 0)]:
            del self._said[each]
