"""The executable `rnea_tune`: measures noise, friction, inertia and dead time of each joint by
small motions under the controller, and proposes parameters of the controller.

Exit status: 0 measured (and applied, with --apply), 1 nothing measured, 2 wrong options, 3
measured, but the proposal was taken back, 130 interrupted by Ctrl-C or another signal.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rclpy.exceptions import NameValidationException
from rclpy.utilities import remove_ros_args

from rnea_control.client.controller_link import ControllerLink
from rnea_control.commands.options import full_name, positive
from rnea_control.commands.terminal import say
from rnea_control.exceptions import RneaControlError
from rnea_control.extras import import_or_exit
from rnea_control.ros.middleware import use_udp
from rnea_control.ros.process import ros_process

FAILED = 1  # exit status: nothing was measured
INTERRUPTED = 130  # exit status: a signal ended it


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures the arm; returns the exit status.

    Args:
        arguments: command line with the program's name; by default that of the process.
    """
    arguments = list(sys.argv if arguments is None else arguments)
    # Must come before the import of NumPy in `session`: the matrices are small.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    options = _options(remove_ros_args(arguments)[1:])
    session = import_or_exit("rnea_control.commands.tune.session", "rnea_tune", "identify")
    with ros_process(arguments) as running:
        use_udp()  # a new participant in shared memory can delay the controller's messages
        try:
            link = ControllerLink(options.controller, running, "rnea_tune")
        except NameValidationException as error:
            say(f"rnea_tune: --controller: {error}")
            return 2
        except RneaControlError as error:
            say(f"rnea_tune: {error.with_code}")
            return FAILED
        try:
            return int(session.Session(link, running, options).run())
        except RneaControlError as error:
            say(f"rnea_tune: {error.with_code}")
            return FAILED if running() else INTERRUPTED
        finally:
            link.destroy()


def _options(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="rnea_tune",
        description="Measures noise, friction, inertia and dead time of the joints by motions of "
        "less than 3 degrees under the running controller, and proposes its parameters. Exit "
        "status: 0 measured, 1 nothing measured, 2 wrong options, 3 the proposal was taken back, "
        "130 interrupted. ROS arguments go after --ros-args.",
    )
    add = parser.add_argument
    # fmt: off
    add("--output", required=True, type=Path, metavar="FOLDER",
        help="a new folder for rnea_controller.yaml and report.html")
    add("--joints", nargs="+", default=[], metavar="JOINT",
        help="joints to measure; all by default")
    add("--apply", action="store_true",
        help="set the proposal in the running controller, in stages; after a stage that shakes the "
        "arm or fails, the old settings are set again")
    add("--yes", action="store_true", help="move without a question, for scripts")
    add("--controller", type=full_name, default="/rnea_controller", metavar="NAME",
        help="the controller's node, with its namespace; /rnea_controller by default")
    add("--wait", type=positive, default=10.0, metavar="SECONDS",
        help="time limit for the discovery of controller and arm; 10 by default")
    # fmt: on
    return parser.parse_args(given)


if __name__ == "__main__":
    sys.exit(main())
