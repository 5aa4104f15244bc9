"""The executable `rnea_identify`: `plan`, `record`, `fit` and `check`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from rnea_control.exceptions import RneaControlError
from rnea_control.extras import import_or_exit

ROS = "--ros-args"
INTERRUPTED = 130
COMMANDS = {
    "plan": "an exciting trajectory for a robot, to be sent to its controller",
    "record": "send a trajectory and write the joint states, or only listen",
    "fit": "the robot's parameters from recordings: a URDF, the controller's YAML, a report",
    "check": "compare a recording with a model, and say what makes the difference",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one of the commands by a command line with the program's name, the process's own by
    default. Returns the exit status: 0 if all is well, 1 if not, 2 for wrong options, and 130 after
    Ctrl-C, as a shell does."""
    try:
        return _run(list(sys.argv if arguments is None else arguments)[1:])
    except KeyboardInterrupt:
        print("rnea_identify: interrupted", file=sys.stderr)
        return INTERRUPTED


def _run(given: list[str]) -> int:
    # Before NumPy is imported. The matrices of robots are small: on a busy machine the threads of
    # OpenBLAS wait for each other, and a search takes ten times as long.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arguments, for_ros = _split(given)
    parser = argparse.ArgumentParser(
        prog="rnea_identify",
        description="From a recording to the parameters that make the controller right: "
        "plan, record, fit, check.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = next((word for word in arguments if word in COMMANDS), None)
    module = None
    for name, words in COMMANDS.items():
        about = f"rnea_identify {name}: {words}."
        command = commands.add_parser(name, help=words, description=about)
        if name == chosen:
            # Only the command asked for is imported: the others need more, and time.
            place = f"rnea_control.commands.identify.{name}"
            module = import_or_exit(place, "rnea_identify", "identify")
            module.add_arguments(command)
    options = parser.parse_args(arguments)
    options.ros_arguments = for_ros
    assert module is not None
    try:
        status: int = module.run(options)
    except RneaControlError as error:
        sys.exit(f"rnea_identify {options.command}: {error.with_code}")
    return status


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our arguments, and those of ROS: from --ros-args to the end, or to `--`."""
    if ROS not in arguments:
        return arguments, []
    start = arguments.index(ROS)
    end = arguments.index("--", start) if "--" in arguments[start:] else len(arguments)
    return arguments[:start] + arguments[end + 1 :], arguments[start:end]


if __name__ == "__main__":
    sys.exit(main())
