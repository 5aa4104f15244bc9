"""Output, questions and progress on the terminal of a command that moves the arm. All functions
tolerate a closed stdin or stderr."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from contextlib import suppress

LOOK = 0.1  # period at which signals are polled during a question [s]
YES = ("y", "yes")
NO_TERMINAL = "the question needs a terminal, and stdin is none: give --yes to move without it"
BAR = 30  # characters of a full progress bar


def say(text: str, end: str = "\n") -> None:
    """Prints to stderr, unless that is closed."""
    if sys.stderr is not None:  # None if closed at the start
        with suppress(OSError, ValueError):
            print(text, end=end, file=sys.stderr, flush=True)


def is_terminal() -> bool:
    """True if questions can be answered on stdin."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def refusal_of(question: str, running: Callable[[], bool]) -> str:
    """Asks on the terminal; returns why the answer is no, empty if it is yes."""
    say(f"{question} [y/N] ", end="")
    while running():
        if select.select([sys.stdin], [], [], LOOK)[0]:
            answer = sys.stdin.readline().strip().lower()
            return "" if answer in YES else "the answer to the question was not yes"
    return "interrupted at the question"


class ProgressBar:
    """One line on stderr that is overwritten; no output if stderr is not a terminal."""

    def __init__(self) -> None:
        self._shown = ""
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()

    def show(self, part: float, words: str) -> None:
        """Shows the part done, 0 to 1."""
        done = round(BAR * min(max(part, 0.0), 1.0))
        line = f"[{'#' * done}{'.' * (BAR - done)}] {words}"
        if self._is_terminal and line != self._shown:
            say(f"\r{line.ljust(len(self._shown))}", end="")
            self._shown = line

    def end(self) -> None:
        """Ends the line and keeps it."""
        if self._shown:
            say("")
            self._shown = ""
