"""Console output that never blocks the process.

rclpy's log calls keep the interpreter's lock while they write. A terminal that is paused, or a pipe
that nobody reads, would then stop every thread, and an arm would be left with its last torque.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

STDOUT, STDERR = 1, 2
# How long the end of the process waits for a reader to take the last lines, [s].
LONGEST_WAIT = 1.0


@contextmanager
def unblocked_output() -> Iterator[None]:
    """Puts a pipe, which drops what it has no room for, and a `cat` before stdout and stderr.

    What is dropped on the console is still in the log file and on /rosout. The child processes end
    with this one.
    """
    if os.isatty(STDERR):  # which rcutils cannot see any more
        os.environ.setdefault("RCUTILS_COLORIZED_OUTPUT", "1")
    with ExitStack() as stack:
        for stream in (STDOUT, STDERR):
            stack.enter_context(_unblocked(stream))
        yield


@contextmanager
def _unblocked(stream: int) -> Iterator[None]:
    destination = os.dup(stream)
    source, pipe = os.pipe()
    # In a session of its own no Ctrl-C ends it before this process.
    cat = subprocess.Popen(["cat"], stdin=source, stdout=destination, start_new_session=True)
    os.close(source)
    os.set_blocking(pipe, False)
    os.dup2(pipe, stream)
    os.close(pipe)
    try:
        yield
    finally:
        os.dup2(destination, stream)  # closes the pipe, which ends the cat
        os.close(destination)
        # It goes on by itself once it can; a further Ctrl-C ends only this wait.
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            cat.wait(LONGEST_WAIT)
