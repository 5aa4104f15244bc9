"""`Commander`: the process that decides what its loop does where machine code does not decide."""

from __future__ import annotations

from abc import ABC, abstractmethod

from rnea_control.ros.rcl_calls import Taken


class Commander(ABC):
    """Interface of controller and sentinel to their `ArmLoop`, whose thread calls all three. All
    other calls go from a commander to its loop."""

    @abstractmethod
    def is_usual(self) -> bool:
        """True if a usual state needs no decision of Python."""

    @abstractmethod
    def answer_next(self, verdict: int | None, taken: Taken | None) -> None:
        """Acts on the verdict with which machine code has ended, if there is one. Then answers
        `taken`, or the next message, or the absence of states; which verdicts end the call before
        that is the commander's choice.

        Args:
            verdict: see native_loop.py; None if machine code has answered no states.
            taken: message that Python has to interpret, if there is one.
        """

    @abstractmethod
    def fail(self, reason: str) -> None:
        """Ends the command of the arm after a bug in this program; `reason` has a traceback."""
