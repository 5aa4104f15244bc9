"""The functions that a program becomes: for one sample, and for many; the operations stand one
after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum

from rnea_control.compiled.llvm_text import Kind, Lines
from rnea_control.compiled.programs import BODIES, Program

OUTPUT = "output"
ALONE = "alone"

Load = Callable[[str, int], str]


class Order(Enum):
    """How many samples lie in memory."""

    sample_major = "rows"  # arrays of shape (samples, entries)
    entry_major = "columns"  # of shape (entries, samples)


def alone(program: Program, angles: Kind, pointer: str, name: str = ALONE) -> str:
    """`void name(inputs..., bodies, output)`: the program for one sample."""
    lines = Lines(Kind(1))

    def load(array: str, index: int) -> str:
        return lines.let(f"load double, {pointer} {_entry(lines, pointer, array, str(index))}")

    body = StraightLine(program, lines, load)
    body.write(program.order, angles)
    for index, result in enumerate(program.results):
        address = _entry(lines, pointer, OUTPUT, str(index))
        lines.do(f"store double {body.value(result)}, {pointer} {address}")
    lines.do("ret void")
    arguments = ", ".join(f"{pointer} %{each}" for each in (*program.inputs, OUTPUT))
    return "\n".join([f"define void @{name}({arguments}) {{", *lines.text, "}"])


def bulk(program: Program, kind: Kind, order: Order, pointer: str) -> str:
    """`void rows or columns(inputs..., bodies, output, i64 stride, i64 count)`: the program for as
    many samples at a time as a register has lanes. The last group ends with the last sample, and
    may repeat some of the samples before it. `count` is at least the number of lanes. From an entry
    of a sample to the next entry there are `stride` numbers in columns."""
    lines = Lines(kind)
    lines.label("entry")
    last = lines.let(f"sub i64 %count, {kind.lanes}")
    lines.do("br label %next")
    lines.label("next")
    lines.do("%k = phi i64 [ 0, %entry ], [ %following, %next ]")
    samples = _Samples(program, lines, order, pointer)
    body = StraightLine(program, lines, samples.load)
    body.write(program.order, Kind(kind.lanes))
    for index, result in enumerate(program.results):
        samples.store(body.value(result), index)
    step = lines.let(f"add i64 %k, {kind.lanes}")
    within = lines.let(f"icmp slt i64 {step}, {last}")
    lines.do(f"%following = select i1 {within}, i64 {step}, i64 {last}")
    finished = lines.let(f"icmp eq i64 %k, {last}")
    lines.do(f"br i1 {finished}, label %end, label %next")
    lines.label("end")
    lines.do("ret void")
    of_samples = _to(kind.number, pointer)
    arguments = ", ".join(
        f"{pointer if name == BODIES else of_samples} %{name}" for name in (*program.inputs, OUTPUT)
    )
    head = f"define void @{order.value}({arguments}, i64 %stride, i64 %count) {{"
    return "\n".join([head, *lines.text, "}"])


class _Samples:
    """Reads and writes an entry of the samples from %k on, one in each lane."""

    def __init__(self, program: Program, lines: Lines, order: Order, pointer: str) -> None:
        shapes = program.inputs.items()
        self._lengths = {name: math.prod(shape) for name, shape in shapes}
        self._lengths[OUTPUT] = len(program.results)
        self._lines = lines
        self._together = order is Order.entry_major
        self._pointer = pointer
        # Pointers to a number of a sample, and to what a register holds.
        self._one = _to(lines.kind.number, pointer)
        self._wide = _to(lines.kind.name, pointer)
        self._bytes = lines.kind.precision.value
        self._all = f"<{lines.kind.lanes} x i1> <{', '.join(['i1 true'] * lines.kind.lanes)}>"

    def load(self, array: str, index: int) -> str:
        lines, kind, pointer = self._lines, self._lines.kind, self._pointer
        if array == BODIES:  # the same for all samples
            at = _entry(lines, pointer, array, str(index))
            one = lines.let(f"load double, {pointer} {at}")
            one = lines.converted(one, Kind(1), Kind(1, kind.precision))
            first = lines.let(f"insertelement {kind.name} undef, {kind.number} {one}, i32 0")
            zeros = f"<{kind.lanes} x i32> zeroinitializer"
            return lines.let(f"shufflevector {kind.name} {first}, {kind.name} undef, {zeros}")
        if self._together:
            at = self._address(array, index)
            return lines.let(f"load {kind.name}, {self._wide} {at}, align {self._bytes}")
        gather = f"call {kind.name} @llvm.masked.gather.{_overload(kind, pointer)}"
        at = self._addresses(array, index)
        return lines.let(f"{gather}({at}, i32 {self._bytes}, {self._all}, {kind.name} undef)")

    def store(self, value: str, index: int) -> None:
        lines, kind = self._lines, self._lines.kind
        if self._together:
            at = self._address(OUTPUT, index)
            lines.do(f"store {kind.name} {value}, {self._wide} {at}, align {self._bytes}")
            return
        scatter = f"call void @llvm.masked.scatter.{_overload(kind, self._pointer)}"
        at = self._addresses(OUTPUT, index)
        lines.do(f"{scatter}({kind.name} {value}, {at}, i32 {self._bytes}, {self._all})")

    def _address(self, array: str, index: int) -> str:
        """Of the entry of sample %k; those of the next samples lie behind it."""
        lines = self._lines
        row = lines.let(f"mul i64 %stride, {index}")
        at = _entry(lines, self._one, array, lines.let(f"add i64 {row}, %k"), lines.kind.number)
        if self._wide == self._one:
            return at
        return lines.let(f"bitcast {self._one} {at} to {self._wide}")

    def _addresses(self, array: str, index: int) -> str:
        """Of the entry of each sample."""
        lines, length = self._lines, self._lengths[array]
        lanes, number = lines.kind.lanes, lines.kind.number
        first = lines.let(f"mul i64 %k, {length}")
        first = lines.let(f"add i64 {first}, {index}")
        at = _entry(lines, self._one, array, first, number)
        steps = "<" + ", ".join(f"i64 {lane * length}" for lane in range(lanes)) + ">"
        vector = f"<{lanes} x i64> {steps}"
        all_ = lines.let(f"getelementptr {number}, {self._one} {at}, {vector}")
        return f"<{lanes} x {self._one}> {all_}"


def gather_declarations(kind: Kind, pointer: str) -> str:
    """What `bulk` calls where samples lie apart."""
    many, mask = f"<{kind.lanes} x {_to(kind.number, pointer)}>", f"<{kind.lanes} x i1>"
    suffix = _overload(kind, pointer)
    return (
        f"declare {kind.name} @llvm.masked.gather.{suffix}({many}, i32, {mask}, {kind.name})\n"
        f"declare void @llvm.masked.scatter.{suffix}({kind.name}, {many}, i32, {mask})"
    )


def _overload(kind: Kind, pointer: str) -> str:
    to = "" if pointer == "ptr" else Kind(1, kind.precision).suffix
    return f"{kind.suffix}.v{kind.lanes}p0{to}"


def _to(type_: str, pointer: str) -> str:
    """A pointer to a type, by how one to a double is written."""
    return pointer if pointer == "ptr" else f"{type_}*"


def _entry(lines: Lines, pointer: str, array: str, index: str, number: str = "double") -> str:
    return lines.let(f"getelementptr {number}, {pointer} %{array}, i64 {index}")


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
