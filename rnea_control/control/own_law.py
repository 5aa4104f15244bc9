"""Laws of users: a Python function that is compiled, and called in each tick.

    @own_law(stiffness=per_joint(50.0), damping=5.0)
    def spring(robot, settings, state, own, q, v, tau):
        gravity(robot, q, tau)
        for j in range(q.shape[0]):
            e = state.desired_position[j] - q[j]
            tau[j] += own.stiffness[j] * e + own.damping * (state.desired_velocity[j] - v[j])

The function fills in the torques of the joints. It is one of the laws (laws.py): all limits and
watchdogs act behind it. It is named when the process starts, and compiled before it has an arm.
"""

from __future__ import annotations

import importlib
import inspect
import keyword
import re
import statistics
import time
from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core.errors import NumbaError

from rnea_control.array_types import FloatArray, Matrix, Vector
from rnea_control.control import layout
from rnea_control.control.layout import Arm, Settings, State
from rnea_control.control.robot import Robot, robot_of
from rnea_control.dynamics.crba import mass_matrix as fill_mass_matrix
from rnea_control.dynamics.rnea import add_armature, gravity_outward_pass, inward_pass, outward_pass
from rnea_control.exceptions import ControllerError
from rnea_control.jit.compilation import OPTIONS, compiled_in_memory
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import annotated
from rnea_control.jit.linking import copies

ARGUMENTS = ("robot", "settings", "state", "own", "q", "v", "tau")
MOST_TIME = 1e-4  # longest duration of a call [s]
TRIED = 200  # calls that are timed
NAME = re.compile(r"[a-z][a-z0-9_]*")


class PerJoint(NamedTuple):
    """Default of a parameter with a value for each joint."""

    default: float


def per_joint(default: float) -> Any:
    """Declares a parameter that has a value for each joint; the law reads a vector."""
    return PerJoint(float(default))


@dataclass(frozen=True, eq=False)
class OwnLaw:
    """A law of a user.

    Attributes:
        function: Python function with the arguments `ARGUMENTS`.
        parameters: defaults of its parameters by name, numbers or `PerJoint`.
    """

    function: FunctionType
    parameters: Mapping[str, float | PerJoint]

    @property
    def name(self) -> str:
        """Its module and name."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @cached_property
    def _machine_code(self) -> tuple[Any, int]:
        """Owner of the machine code, and its address.

        Raises:
            ControllerError: the function does not compile, or memory would be allocated in it.
        """
        if getattr(numba.config, "DISABLE_JIT", False) or copies():
            raise ControllerError(
                f"{self.name}: laws of users need machine code, called by address"
            )
        try:
            return compiled_in_memory(self._entry(), annotated(own_torque))
        except NumbaError as error:
            raise ControllerError(f"{self._where(error)}: {_short(error)}") from error

    @property
    def code(self) -> int:
        """Address of the machine code."""
        return self._machine_code[1]

    def rows(self, values: Mapping[str, Any], into: Matrix) -> None:
        """Fills in the values of the parameters; missing ones have their defaults."""
        for i, (name, default) in enumerate(self.parameters.items()):
            given = values.get(name)
            into[i] = default.default if isinstance(default, PerJoint) else default
            if given is not None:
                into[i] = given

    def _entry(self) -> Any:
        """The function as the kernel that `own_torque` describes."""
        own = namedtuple("own", self.parameters)  # type: ignore[misc]
        fields = (
            f"settings.own[{i}]" if isinstance(default, PerJoint) else f"settings.own[{i}, 0]"
            for i, default in enumerate(self.parameters.values())
        )
        names = {
            "law": numba.njit(**OPTIONS)(self.function),
            "robot_of": robot_of,
            "own": own,
        }
        # Names of parameters are identifiers.
        exec(
            "def entry(arm, settings, state, q, v, tau):\n"
            f"    values = own({', '.join(fields)})\n"
            "    law(robot_of(arm, q.shape[0]), settings, state, values, q, v, tau)\n",
            names,
        )
        return names["entry"]

    def _where(self, error: NumbaError) -> str:
        """The law, with the line of an error in it."""
        lines = [int(each) for each in re.findall(r'File "[^"]*", line (\d+)', str(error))]
        first = self.function.__code__.co_firstlineno
        source, _ = inspect.getsourcelines(self.function)
        own = [line for line in lines if first <= line < first + len(source)]
        line = f", line {own[-1]}" if own else ""
        return f"the law {self.name} ({self.function.__code__.co_filename}{line}) does not compile"

    def check(self, step: Callable[[], FloatArray]) -> None:
        """Refuses a law that is too slow, or gives no finite torque.

        Args:
            step: calls the law, and returns its torques.

        Raises:
            ControllerError: says which.
        """
        durations = []
        for _ in range(TRIED):
            begin = time.perf_counter()
            torque = step()
            durations.append(time.perf_counter() - begin)
        if not np.isfinite(torque).all():
            raise ControllerError(f"the law {self.name} gives no finite torque at rest: {torque}")
        taken = statistics.median(durations)
        if taken > MOST_TIME:
            raise ControllerError(
                f"the law {self.name} takes {1e6 * taken:.0f} us; at most {1e6 * MOST_TIME:.0f} us "
                "are allowed"
            )


def own_law(**parameters: Any) -> Callable[[FunctionType], OwnLaw]:
    """Decorator of a law, a function of `ARGUMENTS`.

    Args:
        parameters: defaults of its parameters `own_law.<name>`: numbers, or `per_joint(number)`.

    Raises:
        ControllerError: a parameter that is not allowed, or a function with other arguments.
    """
    for name, default in parameters.items():
        if not NAME.fullmatch(name) or keyword.iskeyword(name) or name == "function":
            raise ControllerError(
                f"parameter {name!r} of a law must be lower case letters, digits and _, and "
                "neither 'function' nor a word of Python"
            )
        if not isinstance(default, (int, float, PerJoint)):
            raise ControllerError(f"parameter {name!r} of a law must be a number or per_joint(...)")
    if len(parameters) > layout.MOST_OWN:
        raise ControllerError(f"a law may have {layout.MOST_OWN} parameters, not {len(parameters)}")

    def declare(function: FunctionType) -> OwnLaw:
        given = tuple(inspect.signature(function).parameters)
        if given != ARGUMENTS:
            raise ControllerError(
                f"the law {function.__qualname__} has the arguments ({', '.join(given)}); they "
                f"must be ({', '.join(ARGUMENTS)})"
            )
        numbers = {
            name: default if isinstance(default, PerJoint) else float(default)
            for name, default in parameters.items()
        }
        return OwnLaw(function, numbers)

    return declare


def load(path: str) -> OwnLaw:
    """The law with this name, `package.module.function`.

    Raises:
        ControllerError: it does not exist, or is none.
    """
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name) if module else None
    except Exception as error:  # of any kind, as the module's code runs
        raise ControllerError(f"own_law.function: {path} cannot be imported: {error!r}") from error
    if not isinstance(found, OwnLaw):
        raise ControllerError(
            f"own_law.function is {path!r}; it must name a function with the decorator own_law, as "
            "package.module.function"
        )
    return found


def own_torque(
    arm: Arm, settings: Settings, state: State, q: Vector, v: Vector, tau: Vector
) -> None:
    """Fills `tau` by the law of a user; laws.py calls its machine code. This has its signature."""


def _short(error: NumbaError) -> str:
    """The cause, in one line."""
    text = str(error)
    if "NRT" in text or "Only accept returning of array" in text:
        return "it allocates memory: fill `tau` and the arrays of `robot` in place"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    useful = [line for line in lines if not line.startswith(("Failed in", "During", "File", "-"))]
    return " ".join(useful[:2])


# For the functions of users.


@inlined
def gravity(robot: Robot, q: Vector, tau: Vector) -> None:
    """tau = g(q)"""
    gravity_outward_pass(robot.bodies, robot.memory, q)
    inward_pass(robot.bodies, robot.memory, tau)


@inlined
def inverse_dynamics(robot: Robot, q: Vector, v: Vector, a: Vector, tau: Vector) -> None:
    """tau = RNEA(q, v, a)"""
    outward_pass(robot.bodies, robot.memory, q, v, a)
    inward_pass(robot.bodies, robot.memory, tau)
    add_armature(robot.bodies, a, tau)


@inlined
def mass_matrix(robot: Robot, q: Vector) -> None:
    """Fills `robot.matrix` with M(q), shape (nv, nv)."""
    fill_mass_matrix(robot.bodies, robot.memory, q, robot.matrix)
