"""Writes the operations of a program one after the other."""

from __future__ import annotations

from collections.abc import Callable

from rnea_control.compiled.llvm_text import Kind, Lines
from rnea_control.compiled.programs import Program

Load = Callable[[str, int], str]


class StraightLine:
    """The values of a program's operations, as they are written.

    Args:
        program: what is computed.
        lines: where to.
        load: writes the line that reads an entry of an input; returns the value's name.
    """

    def __init__(self, program: Program, lines: Lines, load: Load) -> None:
        self._graph = program.graph
        self._lines = lines
        self._load = load
        self._values: dict[int, str] = {}
        self._negatives: dict[int, str] = {}

    def value(self, reference: int) -> str:
        """The name of what a reference stands for."""
        index = abs(reference) - 1
        if reference > 0:
            return self._values[index]
        operation = self._graph.operations[index]
        if operation.name == "constant":
            return self._lines.kind.constant(-operation.value)
        if index not in self._negatives:
            self._negatives[index] = self._lines.negative(self._values[index])
        return self._negatives[index]

    def write(self, order: list[int], angles: Kind) -> None:
        """Writes operations in this order, but sines and cosines first.

        Args:
            order: indices of operations.
            angles: the type in which sines and cosines are computed.
        """
        operations = self._graph.operations
        turned = {
            abs(operations[index].arguments[0])
            for index in order
            if operations[index].name in ("sine", "cosine")
        }
        needed = sorted(self._all_before(turned))
        for index in needed:
            self._write_one(index)
        ready = sorted(turned)
        count = angles.lanes if self._lines.kind.lanes == 1 else 1
        for k in range(0, len(ready), count):
            self._write_angles(ready[k : k + count], angles)
        for index in order:
            self._write_one(index)

    def _all_before(self, references: set[int]) -> set[int]:
        """Which operations these need, with themselves."""
        found: set[int] = set()
        open_ = [reference - 1 for reference in references]
        while open_:
            index = open_.pop()
            if index not in found:
                found.add(index)
                open_.extend(abs(each) - 1 for each in self._graph.operations[index].arguments)
        return found

    def _write_one(self, index: int) -> None:
        if index in self._values:
            return
        operation, lines = self._graph.operations[index], self._lines
        if operation.name == "constant":
            value = lines.kind.constant(operation.value)
        elif operation.name == "input":
            value = self._load(*operation.source)
        elif operation.name == "square_root":
            value = lines.call("sqrt", self.value(operation.arguments[0]))
        elif operation.name == "hyperbolic_tangent":
            value = lines.by_library("tanh", self.value(operation.arguments[0]))
        else:
            x, y = map(self.value, operation.arguments)
            value = lines.binary(operation.name, x, y)
        self._values[index] = value

    def _write_angles(self, angles: list[int], together: Kind) -> None:
        """Sines and cosines of angles: of one after the other, or, for a single sample, of several
        by one call."""
        lines, kind = self._lines, self._lines.kind
        values = [self.value(angle) for angle in angles]
        pair = f"{{ {together.name}, {together.name} }}"
        if together.lanes == kind.lanes:
            (value,) = values
            wide = lines.converted(value, kind, together)
            both = lines.let(f"call {pair} @sincos_{together.suffix}({together.name} {wide})")
            parts = [lines.let(f"extractvalue {pair} {both}, {k}") for k in (0, 1)]
            self._keep(angles[0], *(lines.converted(part, together, kind) for part in parts))
            return
        packed = "zeroinitializer"
        for lane, value in enumerate(values):
            of = f"{together.name} {packed}, double {value}, i32 {lane}"
            packed = lines.let(f"insertelement {of}")
        both = lines.let(f"call {pair} @sincos_{together.suffix}({together.name} {packed})")
        parts = [lines.let(f"extractvalue {pair} {both}, {k}") for k in (0, 1)]
        for lane, angle in enumerate(angles):
            of_lane = (
                lines.let(f"extractelement {together.name} {part}, i32 {lane}") for part in parts
            )
            self._keep(angle, *of_lane)

    def _keep(self, angle: int, sine: str, cosine: str) -> None:
        of_angle = self._graph.angles[angle]
        for name, value in (("sine", sine), ("cosine", cosine)):
            if name in of_angle:
                self._values[of_angle[name]] = value
