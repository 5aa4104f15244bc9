"""Serves the page in the browser that shows an arm, and moves it. docs/panel.md"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import viser
from rclpy.exceptions import NameValidationException
from rclpy.utilities import remove_ros_args

from rnea_control.client import Arm, NotThere
from rnea_control.commands.options import full_name, positive
from rnea_control.demo.robots import share_directory
from rnea_control.exceptions import RneaControlError, UrdfFileError
from rnea_control.panel.live_arm import LiveSource
from rnea_control.panel.local_server import LOOPBACK, open_server
from rnea_control.panel.page import Page
from rnea_control.panel.simulated import simulated_arm
from rnea_control.panel.stop_bar import StopHold
from rnea_control.ros.middleware import use_loopback
from rnea_control.ros.process import ros_process

ENDED = 0  # exit status: ended by a signal
FAILED = 1  # exit status: the page could not be served
WRONG_OPTION = 2  # exit status of argparse
PORT = 8080
PERIOD = 0.05  # time between two moments on the page [s]
LONGEST_START = 300.0  # time limit for a simulated arm, whose controller may compile first [s]
TRY = 4.0  # time for one attempt to find the controller, longer than discovery takes [s]
BACK = 1.5  # age of a report below which a silent controller is back [s]
WARNING = (
    "rnea_panel: WARNING: {host} can be reached from other computers. Whoever reaches the page "
    "moves the arm: there is no password. Use 127.0.0.1 and ssh -L, or --view"
)
Running = Callable[[], bool]


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves the page until SIGINT or SIGTERM; returns the exit status.

    Args:
        arguments: command line with the program's name; by default that of the process.
    """
    arguments = list(sys.argv if arguments is None else arguments)
    options = _options(remove_ros_args(arguments)[1:])
    if options.simulate is not None:
        use_loopback(share_directory() / "config" / "fastdds_localhost.xml")
    with ros_process(arguments) as running:
        try:
            with _serving(options) as server:
                if options.recording:
                    return _show_recording(server, options, running)
                if options.simulate is None:
                    return _show_arm(server, options, running, options.controller)
                options.wait = max(options.wait, LONGEST_START)
                with simulated_arm(options.simulate, running) as (controller, going_on):
                    return _show_arm(server, options, going_on, controller)
        except (RneaControlError, NameValidationException) as error:
            if not running():
                return ENDED
            print(f"rnea_panel: {getattr(error, 'with_code', error)}", file=sys.stderr)
            return FAILED


def _options(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rnea_panel", description=__doc__)
    add = parser.add_argument
    # fmt: off
    add("--controller", type=full_name, default="/rnea_controller", metavar="NAME",
        help="the controller's node, with its namespace; /rnea_controller by default")
    add("--view", action="store_true",
        help="only show: the page has no element that moves the arm or changes the controller")
    add("--recording", type=Path, metavar="FILE",
        help="play a recording in place of an arm: rosbag2 (.mcap, .db3 or its folder) or .npz")
    add("--urdf", type=Path, metavar="FILE.urdf",
        help="the robot of the recording; by default the recorded robot_description")
    add("--topic", help="topic of the recorded joint states; by default the one with the joints")
    add("--simulate", nargs="?", const="", metavar="ROBOT",
        help="start a simulated arm and its controller too, with the parameters of rnea_demo; a "
        "robot of rnea_demo --list, or the path of a URDF; by default panda")
    add("--simple-shapes", action="store_true",
        help="draw the collision shapes of the links, for a browser without a graphics card")
    add("--host", default=LOOPBACK[0],
        help=f"address at which the page is served; {LOOPBACK[0]} by default, which only this "
        "computer reaches. Whoever reaches the page moves the arm")
    add("--port", type=_port, default=PORT, help=f"TCP port of the page; {PORT} by default")
    add("--wait", type=positive, default=10.0, metavar="SECONDS",
        help="time limit for the discovery of controller and arm; 10 by default")
    # fmt: on
    options = parser.parse_args(given)
    if options.recording and options.simulate is not None:
        parser.error("give one of --recording and --simulate")
    return options


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{port}; it must be 0 to 65535")
    return port


@contextlib.contextmanager
def _serving(options: argparse.Namespace):
    server = open_server(options.host, options.port)
    try:
        if options.host not in LOOPBACK and not options.view and not options.recording:
            print(WARNING.format(host=options.host), file=sys.stderr, flush=True)
        yield server
    finally:
        with contextlib.redirect_stdout(None):
            server.stop()


def _show_arm(
    server: viser.ViserServer, options: argparse.Namespace, running: Running, controller: str
) -> int:
    """Shows a running controller, also after it has ended and come back."""
    hold = StopHold()
    arm = _found(controller, options.wait, running)
    if arm is None:
        return ENDED
    _announce(server, options)
    is_back = False
    while True:
        source = LiveSource(arm)
        page = Page(server, source, arm, not options.view, hold, controller, options.simple_shapes)
        try:
            if is_back and not options.view:
                hold.put_in_force(arm)  # the page before may have released it meanwhile
            if not _shown_until_back(page, source, running):
                return ENDED
            print(f"rnea_panel: {controller} is back", flush=True)
            # The old one is closed last: it may hold the stop.
            new = _found(controller, options.wait, running)
        finally:
            page.close()
            if not running():
                arm.close()
        if new is None:
            return ENDED
        old, arm, is_back = arm, new, True
        if hold.since is not None:
            arm.emergency_stop(wait=False)
        old.close()


def _shown_until_back(page: Page, source: LiveSource, running: Running) -> bool:
    """Shows a controller until it has been silent and is back; False at a signal."""
    was_silent, due = False, time.monotonic()
    while running():
        page.show()
        age = source.arm.diagnostics.age
        was_silent |= source.is_silent and age < float("inf")
        if was_silent and age < BACK:
            return True
        due = max(due + PERIOD, time.monotonic())
        time.sleep(max(due - time.monotonic(), 0.0))
    return False


def _found(controller: str, seconds: float, running: Running) -> Arm | None:
    """The arm of a controller; None at a signal.

    Raises:
        NotThere: it is not found within `seconds`.
        RneaControlError: the controller's parameters or robot description are not valid.
    """
    namespace, _, name = controller.rpartition("/")
    deadline = time.monotonic() + seconds
    while running():
        left = deadline - time.monotonic()
        try:
            return Arm(name, namespace, min(max(left, 0.5), TRY), program="rnea_panel")
        except NotThere:
            if time.monotonic() > deadline:
                raise
    return None


def _show_recording(
    server: viser.ViserServer, options: argparse.Namespace, running: Running
) -> int:
    """Plays a recording."""
    from rnea_control.panel.recording import RecordedSource  # noqa: PLC0415

    urdf = _text(options.urdf) if options.urdf else ""
    source = RecordedSource(options.recording, urdf, topic=options.topic)
    page = Page(server, source, None, False, StopHold(), "", options.simple_shapes)
    _announce(server, options)
    while running():
        page.show()
        time.sleep(PERIOD)
    return ENDED


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UrdfFileError(f"{path} cannot be read: {error}") from error


def _announce(server: viser.ViserServer, options: argparse.Namespace) -> None:
    host = "localhost" if options.host in ("0.0.0.0", "::") else options.host
    host = f"[{host}]" if ":" in host else host
    print(f"rnea_panel: http://{host}:{server.get_port()}   (Ctrl-C ends it)", flush=True)
