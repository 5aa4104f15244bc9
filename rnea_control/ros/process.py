"""A process that runs a ROS node: it reports the progress of its first start, writes output that
never blocks it, and ends in order on SIGINT, SIGTERM and SIGHUP. A process that an arm depends on
ignores SIGHUP: a closed terminal is no wish to let the arm fall.

The signal handlers of rclpy shut its context down at once, and with it every publisher: a
controller could no longer leave a safe torque behind. Here a signal only asks the main loop to end.

The log calls of rclpy keep the lock of the interpreter while they write. A terminal that is paused,
or a pipe without a reader, would then stop every thread, and an arm would be left with its last
torque.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import rclpy
from rclpy.exceptions import ParameterUninitializedException
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from rnea_control.exceptions import RneaControlError
from rnea_control.jit.side_by_side import compiled_side_by_side
from rnea_control.ros.guarded_executor import GuardedExecutor
from rnea_control.ros.guarded_node import THROTTLE, WARN, GuardedNode
from rnea_control.ros.middleware import use_udp
from rnea_control.ros.rclpy_internals import RCLError

N = TypeVar("N", bound=Node)

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Shortest time between two lines of the log about the first start [s].
LOG_PERIOD = 5.0
STDIN = 0  # file descriptor
STDOUT = 1  # file descriptor
STDERR = 2  # file descriptor
# Longest wait at the end of the process for a reader to take the last lines [s].
LONGEST_END = 1.0
# Longest time until the main loop sees a signal [s].
LONGEST_WAIT = 0.25


def run(name: str, module: str, node_class: str) -> int:
    """Runs an executable until SIGINT, SIGTERM or SIGHUP.

    Args:
        name: default name of the node, which may be remapped.
        module: module with the node's class; imported only after the log can report that kernels
            are compiled.
        node_class: name of the node's class. It has `begin`; `end`, called at the signal with a
            function that runs callbacks for a while and the `EndSignals` of `ros_process`; and
            `needed_for`, why the process must outlive its terminal, empty if it need not.

    Raises:
        SystemExit: the node has a `refusal`.
    """
    with unblocked_output(), ros_process() as going_on:
        with first_start(name, going_on, module):
            made = getattr(importlib.import_module(module), node_class)
        node = build(made)
        spin = partial(GuardedExecutor(node).spin_once, LONGEST_WAIT)
        going_on.outlives_terminal = partial(_outlives_terminal, node)
        try:
            node.begin()
            while going_on() and not node.refusal:
                spin()
            if not node.refusal:
                node.end(spin, going_on)
        finally:  # whatever happened: the hardware applies the last command for ever
            node.destroy_node()
        if node.refusal:
            sys.exit(f"{name} does not start: {node.refusal}")
    return 0


def _outlives_terminal(node: Any) -> bool:
    """True if the process ignores SIGHUP now; logged at most once a second."""
    why = node.needed_for
    if why:
        node.get_logger().warning(
            f"SIGHUP (a closed terminal) is ignored, as {why}; SIGINT or SIGTERM ends the process",
            throttle_duration_sec=THROTTLE,
        )
    return bool(why)


class EndSignals:
    """The signals that ask the process to end; calling it returns True while the process continues.

    Attributes:
        count: number of signals so far, without ignored ones.
        outlives_terminal: called at each SIGHUP, in the main loop; True if SIGHUP is ignored.
    """

    def __init__(self) -> None:
        self.count = self._hangups = 0
        self.outlives_terminal: Callable[[], bool] = lambda: False

    def receive(self, number: int, frame: object) -> None:
        """Handler of all these signals."""
        if number == signal.SIGHUP:
            self._hangups += 1
        else:
            self.count += 1

    def __call__(self, most: int = 1) -> bool:
        """True if fewer signals than `most` have come, and rclpy runs."""
        hangups, self._hangups = self._hangups, 0
        if hangups and not self.outlives_terminal():
            self.count += hangups
        return self.count < most and rclpy.ok()


@contextmanager
def ros_process(arguments: list[str] | None = None) -> Iterator[EndSignals]:
    """Sets rclpy up and takes it down; yields the `EndSignals` of the process, to be called for
    whether to continue.

    Args:
        arguments: the command line; the process's own by default.

    Raises:
        SystemExit: rclpy does not start, for example because of an unreadable YAML file; the
            message has the reason.
    """
    open_standard_streams()
    signals = EndSignals()
    previous = {number: signal.signal(number, signals.receive) for number in SIGNALS}
    try:
        try:
            rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
        except RCLError as error:
            folder = log_folder()
            if not _takes_files(folder):
                sys.exit(
                    f"ROS 2 does not start, as its log folder {folder} cannot be written; set "
                    f"ROS_LOG_DIR to one that can ({error})"
                )
            sys.exit(f"ROS 2 does not start with these arguments: {error}")
        yield signals
    finally:
        rclpy.try_shutdown()
        for number, handler in previous.items():
            # A further signal, as from a launch file beside a terminal's, does not disturb the end.
            signal.signal(number, signal.SIG_IGN if signals.count else handler)
        gc.freeze()  # Python would look for garbage before it ends, for a tenth of a second or two


def log_folder() -> Path:
    """The folder in which ROS 2 writes its logs."""
    environment = os.environ
    home = Path(environment.get("ROS_HOME") or "~/.ros")
    return Path(environment.get("ROS_LOG_DIR") or home / "log").expanduser()


def _takes_files(folder: Path) -> bool:
    """True if files can be written to a folder, which is created if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"a line")
    except OSError:
        return False
    return True


def build(node_class: Callable[[], N]) -> N:
    """Makes the process's first node, over UDP if that may be chosen, or ends with a message.

    Raises:
        SystemExit: the node, or rclpy before it, refuses the parameters.
    """
    use_udp()
    try:
        return node_class()
    except RneaControlError as error:
        reason = error.with_code
    except (ValueError, ParameterUninitializedException) as error:  # Humble's is the latter
        # rclpy cannot declare a parameter that a YAML file sets to [], which has no type.
        reason = (
            f"{error}. Does the YAML file set a parameter to [] or leave it empty? Leave the "
            "parameter out instead"
        )
    sys.exit(f"{node_class.__name__} does not start: {reason}")


@contextmanager
def first_start(name: str, going_on: Callable[[], bool], *modules: str) -> Iterator[None]:
    """Compiles the kernels of modules imported in this context side by side, unless they are on
    disk. The progress is logged, and published on /diagnostics once a second.

    Args:
        name: default name of the node that starts, which may be remapped.
        going_on: returns True while the process continues.
        modules: all modules that are imported.

    Raises:
        SystemExit: the process is to end.
    """
    node: GuardedNode | None = None
    logged_at = 0.0

    def tell(progress: str) -> None:
        nonlocal node, logged_at
        if not going_on():
            sys.exit("ended by a signal before the start")
        if node is None:
            use_udp()
            node = GuardedNode(name, start_parameter_services=False, enable_rosout=False)
        text = f"first start on this computer, compiles for this processor: {progress}"
        if time.monotonic() - logged_at >= LOG_PERIOD:
            logged_at = time.monotonic()
            node.get_logger().info(text)
        node.publish_or_log(
            node.reports, node.status("start", [(WARN, text)], {"mode": "starting"})
        )

    try:
        with compiled_side_by_side(*modules, tell=tell):
            yield
    finally:
        if node is not None:
            node.destroy_node()


def open_standard_streams() -> None:
    """Opens /dev/null in place of a closed standard stream, such as that of a daemon started by
    `>&-`. Otherwise the next file or socket gets its number, and receives the lines of the log."""
    for stream in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(stream)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number


@contextmanager
def unblocked_output() -> Iterator[None]:
    """Puts a pipe and a `cat` before stdout and stderr; a full pipe drops further output.

    Output dropped on the console is still in the log file and on /rosout. The `cat` processes end
    with this process.
    """
    open_standard_streams()
    if os.isatty(STDERR):  # which rcutils cannot see any more
        os.environ.setdefault("RCUTILS_COLORIZED_OUTPUT", "1")
    with _unblocked(STDOUT), _unblocked(STDERR):
        yield


@contextmanager
def _unblocked(stream: int) -> Iterator[None]:
    destination = os.dup(stream)
    source, pipe = os.pipe()
    # In a session of its own, the `cat` is not ended by Ctrl-C before this process.
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
        # The `cat` ends by itself once it can write; a further Ctrl-C ends only this wait.
        with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            cat.wait(LONGEST_END)
