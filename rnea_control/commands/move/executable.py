"""The executable `rnea_move`: moves the arm to a pose, by a step, along the points of a file, or
back, by a goal of the controller's action.

Exit status: 0 if the arm reached its goal, 1 if it was not moved, 2 for wrong options, 3 if the
motion ended elsewhere, 130 if it was interrupted by Ctrl-C or another signal.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from rclpy.exceptions import NameValidationException
from rclpy.utilities import remove_ros_args

from rnea_control.client import profile
from rnea_control.client.connection import Running
from rnea_control.client.controller_link import ControllerLink
from rnea_control.client.goal import Goal
from rnea_control.commands.move.planning import PlannedMotion, Wish, plan
from rnea_control.commands.move.pose_memory import PoseMemory
from rnea_control.commands.options import full_name, positive
from rnea_control.commands.terminal import (
    NO_TERMINAL,
    ProgressBar,
    is_terminal,
    refusal_of,
    say,
)
from rnea_control.exceptions import RneaControlError, TrajectoryModeError
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units
from rnea_control.ros.process import ros_process

REACHED = 0  # exit status: the goal is reached
NOT_MOVED = 1  # exit status: nothing was sent, or the goal was rejected before a motion
NOT_REACHED = 3  # exit status: the motion ended elsewhere
INTERRUPTED = 130  # exit status: a signal ended the motion
MOVED_MEANWHILE = 1e-3  # change of the held position that makes a plan void [rad] or [m]
LONGEST_STOP = 10.0  # time limit for the arm to come to rest [s]
WITHOUT_RUCKIG = (
    "(the motion is a quintic; with the extra `move`, pip install ruckig, it would be shorter)"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Moves the arm; returns the exit status.

    Args:
        arguments: command line with the program's name; by default that of the process.
    """
    arguments = list(sys.argv if arguments is None else arguments)
    with ros_process(arguments) as running:
        options = _options(remove_ros_args(arguments)[1:])
        try:
            link = ControllerLink(options.controller, running)
        except NameValidationException as error:
            say(f"rnea_move: --controller: {error}")
            return 2
        except RneaControlError as error:
            say(f"rnea_move: {error.with_code}")
            return NOT_MOVED
        try:
            return _Move(link, running, options).run()
        except RneaControlError as error:
            if not running():
                say("interrupted: nothing was sent")
                return INTERRUPTED
            say(f"rnea_move: {error.with_code}")
            return NOT_MOVED
        finally:
            link.destroy()


class _Move:
    """A single motion, from the question to its end."""

    def __init__(self, link: ControllerLink, running: Running, options: argparse.Namespace) -> None:
        self._link, self._running, self._options = link, running, options
        self._memory = PoseMemory(link.controller)
        self._bar = ProgressBar()

    def run(self) -> int:
        """Plans, asks and moves; returns the exit status.

        Raises:
            RneaControlError: nothing was sent; the message has the reason.
        """
        link, options = self._link, self._options
        link.observe(options.wait)
        if not self._running():
            return self._nothing_sent()
        held, measured = link.where()
        motion = plan(options.wish, link.given, held, measured, self._memory)
        tell(motion.words)
        if not motion.moves:
            return REACHED
        if profile.ruckig is None:
            tell(WITHOUT_RUCKIG)
        if motion.note:
            tell(f"The controller will warn: {motion.note}")
        if not options.yes:
            refusal = refusal_of("Move the arm?", self._running) if is_terminal() else NO_TERMINAL
            if not self._running():
                return self._nothing_sent()
            if refusal:
                say(f"rnea_move: not moved: {refusal}")
                return NOT_MOVED
            now, _ = link.where()  # the arm may have moved before the answer
            if np.abs(now - held).max() > MOVED_MEANWHILE:
                raise TrajectoryModeError("the arm has moved since the question; start again")
        return self._carry_out(motion, held)

    def _nothing_sent(self) -> int:
        say("interrupted: nothing was sent")
        return INTERRUPTED

    def _carry_out(self, motion: PlannedMotion, start: np.ndarray) -> int:
        link = self._link
        joints = link.given.model.joint_names
        before, remembered = None, True
        try:
            before = self._memory.write(joints, start)
        except OSError as error:
            remembered = False
            tell(f"--back will not return to the start of this motion: {error}")
        goal = Goal(link, motion.profile)

        def show() -> None:
            self._bar.show(goal.progress, f"{goal.elapsed:.1f} of {goal.duration:.1f} s")

        link.follow(goal.watch, show)
        interrupted = not goal.client.ended
        if interrupted:
            self._bar.end()
            tell("interrupted: stopping the arm")
            goal.cancel()
            link.follow(goal.watch, lambda: None, signals=2)
            stands = link.await_rest(LONGEST_STOP)
        self._bar.end()
        if remembered and not goal.errors and not goal.client.accepted:
            with suppress(OSError):  # the arm has not moved
                self._memory.restore(before)
        if goal.errors:
            tell(_accuracy(np.array(goal.errors), link.given.model))
        if interrupted:
            late = f"THE ARM MAY STILL MOVE: no stop was detected within {LONGEST_STOP:g} s"
            tell("the arm has stopped" if stands else late)
            return INTERRUPTED
        if goal.failure is not None:
            say(f"rnea_move: the arm is not at its goal: {goal.failure}")
            return NOT_REACHED
        tell(goal.words)
        return REACHED


def _accuracy(errors: np.ndarray, model: RobotModel) -> str:
    """RMS and largest error in words, separately for joints of different units."""
    kinds = [units(model, j).position for j in range(model.nv)]
    words = []
    for unit in dict.fromkeys(kinds):
        columns = [j for j, kind in enumerate(kinds) if kind == unit]
        own = np.abs(1e3 * errors[:, columns])
        worst = model.joint_names[columns[int(own.max(axis=0).argmax())]]
        rms = math.sqrt(np.mean(own**2))
        words.append(f"{rms:.3g} m{unit} RMS, {own.max():.3g} m{unit} at most ({worst})")
    count = len(errors)
    return f"tracking error, from {count} messages of the action's feedback: {'; '.join(words)}"


def tell(text: str) -> None:
    """Prints to stdout. Tolerates a closed pipe and letters that the terminal lacks."""
    out = sys.stdout
    if out is None:
        return
    encoding = getattr(out, "encoding", None) or "ascii"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
    except (OSError, ValueError):
        with suppress(OSError, ValueError):  # keeps Python from an error message at its exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


def _options(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="rnea_move",
        description="Moves the arm by a goal of the controller's action. Shows the motion, and "
        "asks before it sends the goal. Exit status: 0 reached, 1 not moved, 2 wrong options, 3 "
        "ended elsewhere, 130 interrupted. ROS arguments go after --ros-args.",
    )
    add = parser.add_argument
    # fmt: off
    add("--to", nargs="+", type=_finite, default=[], metavar="Q",
        help="positions of all joints, in the order of the controller's `joints` [rad] or [m]")
    add("--joint", action="append", default=[], metavar="NAME",
        help="joint to move, with --by; may be repeated")
    add("--by", action="append", type=_finite, default=[], metavar="X",
        help="displacement [rad] or [m]; the first --by is for the first --joint, and so on")
    add("--back", action="store_true", help="to the start of the last rnea_move")
    add("--file", type=Path, metavar="POINTS.csv",
        help="through the points of a file; its first line names the joints, and `time` [s] if the "
        "file has times")
    add("--speed", type=_share, default=0.1, metavar="SHARE",
        help="share of the velocity limits, above 0 and at most 1; 0.1 by default")
    add("--acceleration", nargs="+", type=positive, default=[], metavar="A",
        help="largest acceleration, one for all joints or one for each [rad/s^2] or [m/s^2]; by "
        f"default a joint reaches its largest velocity in {profile.TIME_TO_SPEED:g} s")
    add("--yes", action="store_true", help="move without a question, for scripts")
    add("--controller", type=full_name, default="/rnea_controller", metavar="NAME",
        help="the controller's node, with its namespace; /rnea_controller by default")
    add("--wait", type=positive, default=10.0, metavar="SECONDS",
        help="time limit for the discovery of controller and arm; 10 by default")
    # fmt: on
    # A space keeps argparse from taking -1e-3 for an option.
    options = parser.parse_args([f" {word}" if _is_negative(word) else word for word in given])
    if len(options.joint) != len(options.by):
        parser.error(
            f"{len(options.joint)} --joint and {len(options.by)} --by are given; give one --by for "
            "each --joint"
        )
    if len(set(options.joint)) < len(options.joint):
        parser.error("a --joint is given twice")
    ways = [options.to, options.joint, options.back, options.file is not None]
    if sum(map(bool, ways)) != 1:
        parser.error("give one of --to, --joint with --by, --back and --file")
    options.wish = Wish(
        tuple(options.to),
        tuple(zip(options.joint, options.by, strict=True)),
        options.back,
        options.file,
        options.speed,
        tuple(options.acceleration),
    )
    return options


def _is_negative(word: str) -> bool:
    """True for a negative number, finite or not."""
    try:
        float(word)
    except ValueError:
        return False
    return word.startswith("-")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text.strip()}; it must be finite")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 < value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text.strip()}; it must be above 0 and at most 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
