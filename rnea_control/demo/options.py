"""The command line of `rnea_demo`, checked before anything moves."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from matplotlib.figure import Figure

from rnea_control.simulation.parameters import PARAMETERS

# Exit statuses.
COMPARED, FAILED, WRONG_OPTION, DISTURBED, VOID = range(5)

PICTURE = "rnea_demo.png"
FILMS = (".gif", ".mp4")

_EPILOG = f"""\
exit status:
  {COMPARED}  both control laws were compared
  {FAILED}  the demo could not run, or was stopped
  {WRONG_OPTION}  wrong option
  {DISTURBED}  a run was disturbed (motion aborted, commands or states missing, torque at its
     limit): nothing is compared
  {VOID}  the robot has no inertias or no room to move: there is nothing to compare
"""


def options(description: str, arguments: list[str] | None = None) -> argparse.Namespace:
    """The options; ends the process with status 2 if one of them is wrong.

    Args:
        description: of the program.
        arguments: the command line; the process's own by default.
    """
    parser = argparse.ArgumentParser(
        prog="rnea_demo",
        description=description,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--robot",
        help="a name that --list shows, or the path of a URDF file; by default panda, or the arm "
        "that comes with this package where example-robot-data is not installed",
    )
    parser.add_argument(
        "--joints", help="names of the joints that move, as a,b,c; the others are locked"
    )
    parser.add_argument("--rate", type=float, default=1000.0, help="control rate [Hz]")
    parser.add_argument(
        "--picture",
        metavar="FILE",
        help=f"where to draw the result, {PICTURE} by default; with --list, the robots",
    )
    parser.add_argument(
        "--video", metavar="FILE", help="film the run under the RNEA, as .gif, or .mp4 by ffmpeg"
    )
    parser.add_argument(
        "--view", action="store_true", help="show both runs in MuJoCo's viewer, once they are done"
    )
    parser.add_argument("--list", action="store_true", help="show the robots there are, and end")
    given = parser.parse_args(arguments)
    for problem in _problems(given):
        parser.error(problem)
    given.joints = given.joints.split(",") if given.joints is not None else None
    return given


def _problems(given: argparse.Namespace) -> list[str]:
    """What is wrong, a sentence each."""
    found = []
    rate = next(parameter for parameter in PARAMETERS if parameter.name == "rate")
    if not rate.at_least <= given.rate <= rate.at_most:
        found.append(
            f"--rate is {given.rate:g}; it must be {rate.at_least:g} to {rate.at_most:g} Hz"
        )
    if given.joints is not None and not all(name.strip() for name in given.joints.split(",")):
        found.append(f"--joints is {given.joints!r}; it must be names separated by commas")
    if given.picture or not given.list:
        formats = [f".{kind}" for kind in Figure().canvas.get_supported_filetypes()]
        found += _unwritable("--picture", Path(given.picture or PICTURE), formats)
    if given.video:
        found += _unwritable("--video", Path(given.video), FILMS)
        if Path(given.video).suffix == ".mp4" and shutil.which("ffmpeg") is None:
            found.append("--video to .mp4 needs ffmpeg, which is not installed; a .gif does not")
    if given.view and not _has_display():
        found.append("--view needs a display, and there is none; --video FILE needs none")
    return found


def _unwritable(option: str, path: Path, suffixes: list[str] | tuple[str, ...]) -> list[str]:
    if path.suffix.lower() not in suffixes:
        return [f"{option} is {str(path)!r}; it must end in one of {', '.join(suffixes)}"]
    if path.is_dir():
        return [f"{option} is {str(path)!r}, which is a folder; it must be a file"]
    folder = path.resolve().parent
    if not folder.is_dir():
        return [f"{option} is {str(path)!r}; there is no folder {folder}. Make it first"]
    new = not path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        return [f"{option} is {str(path)!r}, which cannot be written: {error.strerror}"]
    if new:
        path.unlink()
    return []


def _has_display() -> bool:
    from rnea_control.demo.viewer import has_display  # noqa: PLC0415 - MuJoCo's viewer, rarely used

    return has_display()
