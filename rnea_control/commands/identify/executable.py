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
    "plan": "plan an exciting trajectory for a robot, to be sent to its controller",
    "record": "send a trajectory and write the joint states, or only record",
    "fit": "fit the robot's parameters to recordings; write a URDF, a YAML file and a report",
    "check": "compare a recording with a model, and list the causes of the difference",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one of the commands. Returns the exit status: 0 for success, 1 for failure, 2 for wrong
    options, and 130 after Ctrl-C.

    Args:
        arguments: command line with the program's name; by default that of the process.
    """
    # Must come before the import of NumPy. The matrices of robots are small: on a busy machine the
    # threads of OpenBLAS wait for each other, and a search takes ten times as long.
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
    """Parsed options, with `run` of the command, and `ros_arguments`: those from --ros-args to the
    end or to `--`."""
    end = len(given)
    start = given.index(ROS) if ROS in given else end
    if "--" in given[start:]:
        end = given.index("--", start)
    arguments = given[:start] + given[end + 1 :]
    parser = argparse.ArgumentParser(
        prog="rnea_identify",
        description="Identifies the parameters of a robot's model from recorded motions: "
        "plan, record, fit, check.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = next((word for word in arguments if word in COMMANDS), None)
    for name, words in COMMANDS.items():
        about = f"rnea_identify {name}: {words}."
        command = commands.add_parser(name, help=words, description=about)
        if name == chosen:
            # The other commands are not imported: they take time and need more packages.
            place = f"rnea_control.commands.identify.{name}"
            module = import_or_exit(place, "rnea_identify", "identify")
            module.add_arguments(command)
            command.set_defaults(run=module.run, ros_arguments=given[start:end])
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
