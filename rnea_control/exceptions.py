"""The exceptions of the package, one family rooted at `RneaControlError`.

Every message says where the fault is (file, link, joint, parameter), what was found, what is
allowed, and what to do. `listed`, `named` and `rounded` word what was found.
"""

from collections.abc import Collection, Sequence
from itertools import islice

# How many names a message quotes, and how many characters of each.
_QUOTED = 10
_LONGEST = 80


def listed(names: Collection[str]) -> str:
    """The names for a message, which stays short however many or long they are."""
    more = f" and {len(names) - _QUOTED} more" if len(names) > _QUOTED else ""
    return ", ".join(_shortened(name) for name in islice(names, _QUOTED)) + more


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[:_LONGEST]}..."


def named(kind: str, names: Sequence[str]) -> str:
    """Links or joints by name: "link 'a'", "joints 'a', 'b'"."""
    return f"{kind}{'s' if len(names) > 1 else ''} {listed([repr(name) for name in names])}"


def rounded(number: float, digits: int = 3) -> str:
    """With so many digits, and no exponent before it gets long: 87000, 0.0123, 3.8e7."""
    return f"{float(f'{number:.{digits}g}'):g}".replace("e+0", "e").replace("e+", "e")


class RneaControlError(Exception):
    """Root of all errors that this package raises on purpose."""


class RobotModelError(RneaControlError, ValueError):
    """A robot description that cannot be turned into a `RobotModel`."""


class RobotModelWarning(UserWarning):
    """A robot description that loads but is probably not what its author meant."""


class ArgumentError(RneaControlError, ValueError):
    """An argument that an algorithm cannot use, such as an array of the wrong size or type."""


class TraceError(RneaControlError):
    """An algorithm that has no straight-line code."""


class TrajectoryError(RneaControlError, ValueError):
    """A trajectory that cannot be followed."""


class TrajectoryJointsError(TrajectoryError):
    """A trajectory whose joint names do not fit the controller's."""


class TrajectoryPassedError(TrajectoryError):
    """A trajectory that has ended before it came."""


class ControllerError(RneaControlError, ValueError):
    """Settings or a state that the controller cannot work with."""


class TorqueError(ControllerError):
    """A control law that gives no finite torque for a state."""


class ParameterError(RneaControlError, ValueError):
    """A parameter whose value is not allowed."""


class SimulationError(RneaControlError, ValueError):
    """A robot or an option that the simulated arm cannot work with."""


class RecordingError(RneaControlError, ValueError):
    """A recording of a motion that cannot be read, or that lacks what identification needs."""


class IdentificationError(RneaControlError, ValueError):
    """Parameters that cannot be identified, or an excitation that cannot be planned."""
