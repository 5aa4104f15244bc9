"""Shows how a recording goes on: a bar in a terminal, else a line from time to time."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

# Between two lines, where the output is no terminal, [s].
LINES = 5.0


class RecordingDisplay:
    """A bar with time, messages and rate; a context manager.

    Args:
        seconds: how long the recording is to be, [s]; None if nobody knows.
        console: where it is shown.
    """

    def __init__(self, seconds: float | None, console: Console) -> None:
        self._console = console
        self._seconds = seconds
        self._is_bar = console.is_terminal
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
            console=console,
            disable=not self._is_bar,
        )
        self._task = self._progress.add_task("waiting", total=seconds, figures="")
        self._line_at = time.monotonic() + LINES
        self._counts: list[tuple[float, int]] = []

    def show(self, phase: str, seconds: float, messages: int) -> None:
        """Shows where it is.

        Args:
            phase: what is going on.
            seconds: since the first message, [s].
            messages: joint states so far.
        """
        now = time.monotonic()
        self._counts = [each for each in self._counts if now - each[0] < 1.0]
        self._counts.append((now, messages))
        start, first = self._counts[0]
        passed = now - start
        rate = (messages - first) / passed if passed > 0.0 else 0.0
        figures = f"{seconds:5.1f} s, {messages} joint states, {rate:.0f} Hz"
        done = seconds if self._seconds is None else min(seconds, self._seconds)
        self._progress.update(self._task, description=phase, completed=done, figures=figures)
        if not self._is_bar and now >= self._line_at:
            self._line_at = now + LINES
            self.say(f"{phase}: {figures.strip()}")

    def say(self, text: str, style: str | None = None) -> None:
        """Prints a line above the bar."""
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Prints a warning above the bar."""
        self.say(f"warning: {text}", "yellow")

    def __enter__(self) -> RecordingDisplay:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()
