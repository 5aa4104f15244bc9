"""Takes log messages from the control loop, and logs them in another thread.

A log call writes to the console, a file and a topic; a tick has no time for that.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

# Messages of one kind come no more often than this, [s].
THROTTLE = 1.0
MOST_WAITING = 100
# By severity: rclpy allows each line of code one.
LOG: dict[str, Callable[[Any, str], object]] = {
    "info": lambda logger, text: logger.info(text),
    "warning": lambda logger, text: logger.warning(text),
    "error": lambda logger, text: logger.error(text),
    "fatal": lambda logger, text: logger.fatal(text),
}


class DeferredLog:
    """A queue in front of a logger.

    Attributes:
        logger: that one.
        wake: called when a message waits for `flush`, in the thread that it comes from.
    """

    def __init__(self, logger: Any) -> None:
        self.logger = logger
        self._waiting: deque[tuple[str, str]] = deque(maxlen=MOST_WAITING)
        self._last: dict[str, float] = {}
        self.wake: Callable[[], object] = lambda: None

    def say(self, severity: str, kind: str, text: str) -> None:
        """Keeps a message for `flush`, unless one of its kind came within the last second.

        Args:
            severity: "info", "warning", "error" or "fatal".
            kind: what it is about; messages of one kind are throttled.
            text: the message.
        """
        now = time.monotonic()
        if now - self._last.get(kind, -THROTTLE) >= THROTTLE:
            if len(self._last) >= MOST_WAITING:
                self._last.clear()  # kinds with numbers in them would fill it for ever
            self._last[kind] = now
            self._waiting.append((severity, text))
            self.wake()

    def flush(self) -> None:
        """Logs the messages that wait."""
        while self._waiting:
            severity, text = self._waiting.popleft()
            LOG[severity](self.logger, text)
