"""The executable `rnea_identify`: `plan`, `record`, `fit` and `check`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from rnea_control.exceptions import RneaControlError
from rnea_control.extras import import_or_exit

ROS = "--ros-args"
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
    # Before NumPy is imported. The matrices of robots are small: on a busy machine the threads of
    # OpenBLAS wait for each other, and a search takes ten times as long.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        options = _options(list(sys.argv if arguments is None else arguments)[1:])
        return int(options.run(options))
    except RneaControlError as error:
        sys.exit(f"rnea_identify {options.command}: {error.with_code}")
    except KeyboardInterrupt:
        print("rnea_identify: interrupted", file=sys.stderr)
        return 130


def _options(given: list[str]) -> argparse.Namespace:
    """What is asked for: `run` of the command, and the `ros_arguments`, from --ros-args to the end
    or to `--`."""
    end = len(given)
    start = given.index(ROS) if ROS in given else end
    if "--" in given[start:]:
        end = given.index("--", start)
    arguments = given[:start] + given[end + 1 :]
    parser = argparse.ArgumentParser(
        prog="rnea_identify",
        description="From a recording to the parameters that make the controller right: "
        "plan, record, fit, check.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = next((word for word in arguments if word in COMMANDS), None)
    for name, words in COMMANDS.items():
        about = f"rnea_identify {name}: {words}."
        command = commands.add_parser(name, help=words, description=about)
        if name == chosen:
            # Only the command asked for is imported: the others need more, and time.
            place = f"rnea_control.commands.identify.{name}"
            module = import_or_exit(place, "rnea_identify", "identify")
            module.add_arguments(command)
            command.set_defaults(run=module.run, ros_arguments=given[start:end])
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
