"""The exceptions of the package, one family rooted at `RneaControlError`.

Every message says where the fault is (file, link, joint, parameter), what was found, what is
allowed, and what to do. `quoted`, `plain`, `listed`, `named`, `rounded` and `distinct` word what
was found. Programs tell errors apart by class or by `code`; `python -m rnea_control.exceptions`
prints the table of docs/errors.md.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

# How many names a message quotes, and how many characters of each.
_QUOTED, _LONGEST = 10, 80
# Significant digits by which any two doubles differ.
_ALL_DIGITS = 17


def quoted(text: object) -> str:
    """Text of another process or a file, for a message: in quotation marks and shortened, with line
    breaks, escape codes and all else that is not printable written out. Values that are no string
    are without quotation marks.

    Every foreign text in a log line or an error passes here, or through `plain`.
    """
    try:
        whole = text if isinstance(text, str) else repr(text)
    except ValueError:  # an integer with more digits than Python writes
        whole = f"{type(text).__name__} of {text.bit_length()} bits"  # type: ignore[attr-defined]
    return repr(_shortened(whole)) if isinstance(text, str) else plain(whole)


def plain(text: str, longest: int = _LONGEST) -> str:
    """Like `quoted`, without quotation marks: for names, and sentences of `longest` characters."""
    short = _shortened(text, longest)
    return short if short.isprintable() else repr(short)[1:-1]


def _shortened(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest]}..."


def listed(names: Collection[str]) -> str:
    """The names for a message, which stays short however many or long they are."""
    more = f" and {len(names) - _QUOTED} more" if len(names) > _QUOTED else ""
    return ", ".join(map(plain, islice(names, _QUOTED))) + more


def named(kind: str, names: Sequence[str]) -> str:
    """Links or joints by name: "link 'a'", "joints 'a', 'b'"."""
    more = f" and {len(names) - _QUOTED} more" if len(names) > _QUOTED else ""
    return f"{kind}{'s' if len(names) > 1 else ''} {', '.join(map(quoted, names[:_QUOTED]))}{more}"


def rounded(number: float, digits: int = 3) -> str:
    """With so many digits, and no exponent before it gets long: 87000, 0.0123, 3.8e7."""
    return f"{float(f'{number:.{digits}g}'):g}".replace("e+0", "e").replace("e+", "e")


def distinct(*numbers: float, digits: int = 6) -> list[str]:
    """The numbers with so many digits, or with as many more as tell different ones apart: a value
    beside the limit that it exceeds by 1e-9."""
    words = [f"{number:.{digits}g}" for number in numbers]
    tells = digits >= _ALL_DIGITS or len(set(words)) == len(set(numbers))
    return words if tells else distinct(*numbers, digits=digits + 1)


class RneaControlError(Exception):
    """Root of all errors that this package raises on purpose.

    Attributes:
        code: short and stable, from the name of the class: "kinematic-tree" of KinematicTreeError.
    """

    code = "rnea-control"

    @property
    def with_code(self) -> str:
        """As every program tells it: the message, and the code to look up in docs/errors.md."""
        return f"{self} [{self.code}]"

    def __init_subclass__(cls) -> None:
        words = re.findall("[A-Z][a-z0-9]*", cls.__name__.removesuffix("Error"))
        cls.code = "-".join(words).lower()


class RobotModelError(RneaControlError, ValueError):
    """A robot that cannot become a `RobotModel`, or a value that such a model cannot have."""


class UrdfFileError(RobotModelError):
    """What was given for a URDF cannot be read, or is something else."""


class UrdfElementError(RobotModelError):
    """An element, attribute or number of a URDF is missing, repeated or malformed."""


class KinematicTreeError(RobotModelError):
    """Links and joints that are no tree, or not named once each."""


class JointError(RobotModelError):
    """A joint whose type, axis, placement, limits, friction or mimic no joint can have."""


class JointSelectionError(RobotModelError):
    """`joints` or `locked_positions` that do not fit the robot."""


@contextmanager
def errors_of(source: str) -> Iterator[None]:
    """Within it, every RobotModelError begins with where the robot comes from."""
    try:
        yield
    except RobotModelError as error:
        error.args = (f"{source}: {error}",)
        raise


class RobotModelWarning(UserWarning):
    """A robot description that loads but is probably not what its author meant."""


class ArgumentError(RneaControlError, ValueError):
    """An argument that an algorithm cannot use, such as an array of the wrong size or type."""


class TraceError(RneaControlError):
    """An algorithm that has no straight-line code."""


class FingerprintError(RneaControlError, RuntimeError):
    """A kernel uses a value whose change would go unseen: an error in the kernel's source."""


class TrajectoryError(RneaControlError, ValueError):
    """A trajectory that cannot be followed."""


class TrajectoryJointsError(TrajectoryError):
    """A trajectory whose joint names do not fit the controller's."""


class TrajectoryPassedError(TrajectoryError):
    """A trajectory that has ended before it came."""


class TrajectoryPointsError(TrajectoryError):
    """A trajectory without points, or with fields that are missing, not finite or too many."""


class TrajectoryTimesError(TrajectoryError):
    """A trajectory whose times do not rise, or leave no time to get there."""


class TrajectoryStartError(TrajectoryError):
    """A trajectory that does not start where the arm is."""


class TrajectoryEndError(TrajectoryError):
    """A trajectory that ends in motion, where that is not allowed."""


class TrajectoryTolerancesError(TrajectoryError):
    """A goal with an invalid tolerance."""


class TrajectoryLimitsError(TrajectoryError):
    """A trajectory beyond the limits of position, velocity or effort."""


class TrajectoryModeError(TrajectoryError):
    """A trajectory that comes in a mode, or under a law, in which none is taken."""


class TrajectoryPlanningError(TrajectoryError):
    """A trajectory that was not planned in time."""


class TrajectoryMultiDofError(TrajectoryError):
    """A goal with points of joints of several degrees of freedom."""


class ControllerError(RneaControlError, ValueError):
    """Settings or a state that the controller cannot work with."""


class TorqueError(ControllerError):
    """A control law that gives no finite torque for a state."""


class ParameterError(RneaControlError, ValueError):
    """A parameter whose value is not allowed."""


class ArmError(RneaControlError, RuntimeError):
    """A request of a Python client that was not carried out."""


class NotThere(ArmError):
    """A controller, a message or an answer that is missing."""


class Refused(ArmError):
    """A request that the controller refuses, with its reason."""


class Aborted(ArmError):
    """A motion that the controller has aborted, or that has ended away from its goal."""


class Stopped(ArmError):
    """A motion or a stream that a request, a fault or another client has ended."""


class TimedOut(ArmError):
    """A wait that was longer than allowed."""


class SimulationError(RneaControlError, ValueError):
    """A robot or an option that the simulated arm cannot work with."""


class RecordingError(RneaControlError, ValueError):
    """A recording of a motion that cannot be read, or that lacks what identification needs."""


class IdentificationError(RneaControlError, ValueError):
    """Parameters that cannot be identified, or an excitation that cannot be planned."""


class CdrError(RneaControlError, ValueError):
    """Bytes that are not the message they should be."""


class JointStateError(RneaControlError, ValueError):
    """A JointState message that lacks a valid position or velocity of a controlled joint."""


class OtherJoints(JointStateError):
    """A JointState message with none of the controlled joints: it is from another device."""


class AnothersState(JointStateError):
    """A state of another publisher than the one that is followed."""


class Float64MultiArrayError(RneaControlError, ValueError):
    """A Float64MultiArray message with the wrong count of numbers, or one that is not finite."""


if __name__ == "__main__":
    print(
        "# Errors\n\nPrinted from the code by `python -m rnea_control.exceptions`. A program that\n"
        "ends or does not start over one of them prints its code behind the message: `[joint]`.\n"
    )
    print("| code | class | special case of | meaning |\n| --- | --- | --- | --- |")
    for each in list(globals().values()):
        if isinstance(each, type) and issubclass(each, RneaControlError):
            meaning, base = (each.__doc__ or "").partition("\n")[0], each.__mro__[1].__name__
            print(f"| `{each.code}` | `{each.__name__}` | `{base}` | {meaning} |")
