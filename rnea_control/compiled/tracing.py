"""Numbers that record the operations on them, as a graph without repetitions; and the functions of
`dynamics/` and `spatial/` as plain Python, to run on such numbers.

Identities of real numbers are used to leave operations out: 0 + x, 1 x, x - x, signs, constants and
repeated operations. Therefore a NaN or infinity that is multiplied by a constant 0 may vanish, and
the last digit may differ if two constants are multiplied with each other first.

The plain functions are the compiled kernels' own sources: copies of their code objects, whose
global names lead to plain functions instead of compiled ones.
"""

from __future__ import annotations

import math
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from rnea_control.exceptions import TraceError

Reference = int  # index of an operation plus 1, with a minus sign for the negative of its result

_OURS = __name__.partition(".")[0]


class Operation(NamedTuple):
    """One operation: its name, its arguments, and its constant or input, if it is one."""

    name: str
    arguments: tuple[Reference, ...] = ()
    value: float = 0.0
    source: tuple[str, int] = ("", 0)


class Graph:
    """Operations in the order of their first recording.

    Attributes:
        operations: the operations; each uses only operations before it.
        angles: operations that are the sine and cosine of an angle, by the angle.
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.angles: dict[Reference, dict[str, int]] = {}
        self._known: dict[Operation, Reference] = {}

    def input(self, array: str, index: int) -> Number:
        """Number that is known only when the code runs: an entry of an array."""
        return Number(self, self._reference(Operation("input", source=(array, index))))

    def reference(self, value: float | Number) -> Reference:
        """Reference to a recorded number, or to a constant."""
        if isinstance(value, Number):
            return value.reference
        value = float(value)
        if math.copysign(1.0, value) < 0.0:
            return -self._reference(Operation("constant", value=-value))
        return self._reference(Operation("constant", value=value))

    def add(self, x: Reference, y: Reference) -> float | Number:
        """x + y"""
        if x == -y:
            return 0.0
        if x == y:
            return self.multiply(x, self.reference(2.0))
        if abs(x) > abs(y):
            x, y = y, x
        if x > 0 and y > 0:
            return self._number("add", x, y)
        if x < 0 and y < 0:
            return -self._number("add", -x, -y)
        return self._number("subtract", x, -y) if x > 0 else -self._number("subtract", -x, y)

    def multiply(self, x: Reference, y: Reference) -> Number:
        """x y, with constant factors multiplied together."""
        negative = (x < 0) != (y < 0)
        x, y = sorted((abs(x), abs(y)))
        a, b = self._constant(x), self._constant(y)
        if b is not None:
            x, y, a = y, x, b  # the constant first
        if a is not None:
            inner = self.operations[y - 1]
            c = self._constant(inner.arguments[0]) if inner.name == "multiply" else None
            if c is not None:
                factor = a * c
                if factor == 1.0:
                    result = Number(self, inner.arguments[1])
                    return -result if negative else result
                x, y = self.reference(factor), inner.arguments[1]
        result = self._number("multiply", x, y)
        return -result if negative else result

    def divide(self, x: Reference, y: Reference) -> Number:
        """x / y"""
        result = self._number("divide", abs(x), abs(y))
        return -result if (x < 0) != (y < 0) else result

    def function(self, name: str, x: Reference) -> Number:
        """sine, cosine, square_root or hyperbolic_tangent of x."""
        if name in ("square_root", "hyperbolic_tangent"):
            return self._number(name, x)
        result = self._number(name, abs(x))
        self.angles.setdefault(abs(x), {})[name] = result.reference - 1
        return -result if name == "sine" and x < 0 else result

    def _number(self, name: str, *arguments: Reference) -> Number:
        return Number(self, self._reference(Operation(name, arguments)))

    def _reference(self, operation: Operation) -> Reference:
        known = self._known.get(operation)
        if known is None:
            self.operations.append(operation)
            known = self._known[operation] = len(self.operations)
        return known

    def _constant(self, x: Reference) -> float | None:
        operation = self.operations[x - 1]
        return operation.value if operation.name == "constant" else None


class Number:
    """Result of a recorded operation, or its negative.

    Raises:
        TraceError: if a program would branch on its value.
    """

    __slots__ = ("graph", "reference")

    def __init__(self, graph: Graph, reference: Reference) -> None:
        self.graph = graph
        self.reference = reference

    def __neg__(self) -> Number:
        return Number(self.graph, -self.reference)

    def __add__(self, other: float | Number) -> float | Number:
        if not isinstance(other, Number) and other == 0.0:
            return self
        return self.graph.add(self.reference, self.graph.reference(other))

    def __sub__(self, other: float | Number) -> float | Number:
        return self + -other

    def __rsub__(self, other: float) -> float | Number:
        return -self + other

    def __mul__(self, other: float | Number) -> float | Number:
        if not isinstance(other, Number):
            if other == 0.0:
                return 0.0
            if other in (1.0, -1.0):
                return self if other == 1.0 else -self
        return self.graph.multiply(self.reference, self.graph.reference(other))

    def __truediv__(self, other: float | Number) -> Number:
        if not isinstance(other, Number) and other in (1.0, -1.0):
            return self if other == 1.0 else -self
        return self.graph.divide(self.reference, self.graph.reference(other))

    def __rtruediv__(self, other: float) -> float | Number:
        if other == 0.0:
            return 0.0
        return self.graph.divide(self.graph.reference(other), self.reference)

    __radd__ = __add__
    __rmul__ = __mul__

    def __abs__(self) -> Magnitude:
        return Magnitude()

    def _branches(self, *_: object) -> bool:
        raise TraceError(
            "this algorithm branches on a value that is known only when it runs, so it has no "
            "straight-line code"
        )

    __bool__ = __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __float__ = __int__ = _branches
    __hash__ = None  # type: ignore[assignment]


class Magnitude:
    """Magnitude of an angle: smaller than every bound, as the code takes angles of any size."""

    def __le__(self, bound: float) -> bool:
        return True


class PlainFunctions:
    """Makes plain functions, each once.

    Args:
        replaced: replacements of functions, by the function's name in the source.
    """

    def __init__(self, replaced: dict[str, Any]) -> None:
        self._replaced = replaced
        self._made: dict[int, Any] = {}

    def plain(self, thing: Any, name: str = "") -> Any:
        """Plain version of a function or module of this package; other things unchanged."""
        if name in self._replaced:
            return self._replaced[name]
        function = getattr(thing, "py_func", thing)
        if isinstance(function, ModuleType) and function.__name__.startswith(_OURS):
            return _PlainModule(self, function)
        if not isinstance(function, FunctionType) or not function.__module__.startswith(_OURS):
            return thing
        made = self._made.get(id(function))
        if made is None:
            names: dict[str, Any] = {"__builtins__": __builtins__}
            made = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
            self._made[id(function)] = made
            known = function.__globals__
            for each in function.__code__.co_names:
                if each in known:
                    names[each] = self.plain(known[each], each)
        return made


class _PlainModule:
    """Module with plain functions."""

    def __init__(self, functions: PlainFunctions, module: ModuleType) -> None:
        self._functions = functions
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = self._functions.plain(getattr(self._module, name), name)
        setattr(self, name, value)
        return value
