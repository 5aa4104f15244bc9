"""The executable `rnea_doctor`: observes a running system and prints problems with their remedies.

It changes nothing, except with --move, which applies small torques to the arm. Exit status: 0
without errors (warnings and notes do not count), 1 with errors or if the system could not be
observed, 2 for wrong options.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from rclpy.exceptions import NameValidationException
from rclpy.utilities import remove_ros_args

from rnea_control.commands.arm_mover import move
from rnea_control.commands.checks import CODES, findings
from rnea_control.commands.finding import LEVELS, Finding
from rnea_control.commands.machine_checks import this_machine
from rnea_control.commands.observer import Observer
from rnea_control.commands.options import add_controller_options, positive
from rnea_control.commands.terminal import say
from rnea_control.ros.middleware import use_udp
from rnea_control.ros.process import ros_process


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the checks, prints the findings and returns the exit status.

    Args:
        arguments: command line with the program's name; by default that of the process.
    """
    arguments = list(sys.argv if arguments is None else arguments)
    with ros_process(arguments) as running:
        options = _options(remove_ros_args(arguments)[1:])
        machine = this_machine()  # before `use_udp` changes the environment
        if options.move:
            use_udp()  # a publisher of commands must not wait for other processes
        try:
            observer = Observer(
                options.namespace, options.node, options.parameters, options.seconds, machine
            )
        except NameValidationException as error:
            sys.exit(f"rnea_doctor does not start: --namespace or --node: {error}")
        try:
            evidence = observer.observe(running)
        finally:
            observer.destroy()
        if not running():
            sys.exit("interrupted: nothing was checked")
        found = findings(evidence)
        if options.move:
            if not options.yes:
                say("\n".join(map(str, found)))
            evidence.move = move(evidence, found, options.namespace, options.yes, running)
            found = findings(evidence)
    print(_printed(found, options.json))
    return int(any(finding.level == "error" for finding in found))


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="rnea_doctor",
        description="Checks a running system before torque is on, or after a motion, and prints "
        "each problem with its remedy. Changes nothing without --move. Exit status: 0 without "
        "errors, 1 with errors. ROS arguments go after --ros-args.",
    )
    add_controller_options(parser)
    add = parser.add_argument
    # fmt: off
    add("--parameters", default="", metavar="FILE.yaml",
        help="parameters of the controller: used while it does not run, else compared with the "
        "parameters in force")
    add("--seconds", type=positive, default=3.0, help="time of the observation [s]; 3 by default")
    add("--move", action="store_true",
        help="after the checks and a question, apply small torques to each joint, and report "
        "whether signs, order and units are right; run it before rnea_controller and "
        "rnea_sentinel are started")
    add("--yes", action="store_true", help="--move without the question, for scripts")
    add("--json", action="store_true", help="print JSON")
    # fmt: on
    options = parser.parse_args(arguments)
    if options.yes and not options.move:
        parser.error("--yes needs --move")
    return options


def _printed(found: list[Finding], as_json: bool) -> str:
    counts = {level: sum(each.level == level for each in found) for level in LEVELS}
    if as_json:
        return json.dumps({"findings": list(map(asdict, found)), "counts": counts}, indent=2)
    words = [f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items()]
    return "\n".join([*map(str, found), f"{', '.join(words)}; {len(CODES)} kinds checked"])


if __name__ == "__main__":
    sys.exit(main())
