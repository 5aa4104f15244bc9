"""Programs as text of LLVM's intermediate language, for one sample or for a register of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from rnea_control.compiled.programs import Program
from rnea_control.kernels import rotation

_BINARY = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}


class Precision(Enum):
    """LLVM's name of a type of numbers, and its size in bytes."""

    double = 8
    float = 4


class Kind:
    """The type of all numbers in a function: a number, or a vector of them.

    Args:
        lanes: how many samples at a time.
        precision: of a number.
    """

    def __init__(self, lanes: int, precision: Precision = Precision.double) -> None:
        self.lanes = lanes
        self.precision = precision
        self.number = precision.name
        self.name = self.number if lanes == 1 else f"<{lanes} x {self.number}>"
        bits = 8 * precision.value
        self.suffix = f"f{bits}" if lanes == 1 else f"v{lanes}f{bits}"
        self.truth = "i1" if lanes == 1 else f"<{lanes} x i1>"

    def constant(self, value: float) -> str:
        """A number in LLVM's notation, in every lane."""
        if self.precision is Precision.float:
            value = float(np.float32(value))
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        text = f"0x{bits:016X}"
        if self.lanes == 1:
            return text
        return "<" + ", ".join([f"{self.number} {text}"] * self.lanes) + ">"


@cache
def _opaque_pointers() -> bool:
    for pointer in ("ptr", "double*"):
        try:
            llvm.parse_assembly(f"declare void @f({pointer})")
        except RuntimeError:
            continue
        return pointer == "ptr"
    raise RuntimeError("this LLVM knows neither typed nor opaque pointers")


def pointer_to(type_: str) -> str:
    """A pointer to a type, as this LLVM writes it."""
    return "ptr" if _opaque_pointers() else f"{type_}*"


class Lines:
    """The lines of a function, and names for its values."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.text: list[str] = []
        self._names = 0

    def let(self, expression: str) -> str:
        """Names the value of an expression."""
        self._names += 1
        name = f"%x{self._names}"
        self.text.append(f"  {name} = {expression}")
        return name

    def do(self, instruction: str) -> None:
        self.text.append(f"  {instruction}")

    def label(self, name: str) -> None:
        self.text.append(f"{name}:")

    def entry(self, array: str, index: str, number: str = "double") -> str:
        """The address of an entry of an array."""
        return self.let(f"getelementptr {number}, {pointer_to(number)} %{array}, i64 {index}")

    def binary(self, name: str, x: str, y: str) -> str:
        """x and y by an operation of `_BINARY`; products and sums may become one instruction."""
        return self.let(f"{_BINARY[name]} contract {self.kind.name} {x}, {y}")

    def negative(self, x: str) -> str:
        return self.let(f"fneg {self.kind.name} {x}")

    def converted(self, x: str, from_: Kind, to: Kind) -> str:
        """x in another precision."""
        if from_.precision is to.precision:
            return x
        how = "fpext" if to.precision is Precision.double else "fptrunc"
        return self.let(f"{how} {from_.name} {x} to {to.name}")

    def by_library(self, name: str, x: str) -> str:
        """A function of the C library, of each lane of x, in double precision."""
        kind, double = self.kind, Kind(self.kind.lanes)
        x = self.converted(x, kind, double)
        if kind.lanes == 1:
            return self.converted(self.let(f"call double @{name}(double {x})"), double, kind)
        result = "undef"
        for lane in range(kind.lanes):
            one = self.let(f"extractelement {double.name} {x}, i32 {lane}")
            value = self.let(f"call double @{name}(double {one})")
            of = f"{double.name} {result}, double {value}, i32 {lane}"
            result = self.let(f"insertelement {of}")
        return self.converted(result, double, kind)

    def call(self, function: str, x: str) -> str:
        """An intrinsic of one argument."""
        kind = self.kind
        return self.let(f"call {kind.name} @llvm.{function}.{kind.suffix}({kind.name} {x})")


def sincos_function(kind: Kind) -> str:
    """`@sincos_...`: sine and cosine of an angle [rad], by the method of kernels/rotation.py;
    beyond its range by the mathematics library."""
    lines, c = Lines(kind), kind.constant
    pair = f"{{ {kind.name}, {kind.name} }}"
    size = lines.call("fabs", "%angle")
    beyond = lines.let(f"fcmp ogt {kind.name} {size}, {c(rotation.LARGEST_ANGLE)}")
    if kind.lanes > 1:
        bits = lines.let(f"bitcast {kind.truth} {beyond} to i{kind.lanes}")
        beyond = lines.let(f"icmp ne i{kind.lanes} {bits}, 0")
    lines.do(f"br i1 {beyond}, label %large, label %usual")
    lines.label("usual")
    quarters = lines.call("rint", lines.binary("multiply", "%angle", c(2.0 / math.pi)))
    r = "%angle"
    for digits in rotation.PI_2:
        product = lines.let(f"fmul {kind.name} {quarters}, {c(digits)}")
        r = lines.let(f"fsub {kind.name} {r}, {product}")
    z = lines.binary("multiply", r, r)
    rz, zz = lines.binary("multiply", r, z), lines.binary("multiply", z, z)
    s = lines.binary("add", r, lines.binary("multiply", rz, _polynomial(lines, z, rotation.SINE)))
    half = lines.binary("multiply", c(0.5), z)
    tail = lines.binary("multiply", zz, _polynomial(lines, z, rotation.COSINE))
    cosine = lines.binary("add", lines.binary("subtract", c(1.0), half), tail)
    floor = lines.call("floor", lines.binary("multiply", c(0.25), quarters))
    quadrant = lines.let(
        f"fsub {kind.name} {quarters}, {lines.let(f'fmul {kind.name} {c(4.0)}, {floor}')}"
    )

    def equal(value: float) -> str:
        return lines.let(f"fcmp oeq {kind.name} {quadrant}, {c(value)}")

    def either(x: str, y: str) -> str:
        return lines.let(f"or {kind.truth} {x}, {y}")

    def chosen(condition: str, x: str, y: str) -> str:
        return lines.let(f"select {kind.truth} {condition}, {kind.name} {x}, {kind.name} {y}")

    def give(sine: str, cosine: str) -> None:
        part = lines.let(f"insertvalue {pair} undef, {kind.name} {sine}, 0")
        whole = lines.let(f"insertvalue {pair} {part}, {kind.name} {cosine}, 1")
        lines.do(f"ret {pair} {whole}")

    one, three = equal(1.0), equal(3.0)
    swap, two = either(one, three), equal(2.0)
    first, second = chosen(swap, cosine, s), chosen(swap, s, cosine)
    sine = chosen(either(two, three), lines.negative(first), first)
    cosine = chosen(either(one, two), lines.negative(second), second)
    give(sine, cosine)
    lines.label("large")
    give(*(lines.by_library(name, "%angle") for name in ("sin", "cos")))
    name = f"define internal {pair} @sincos_{kind.suffix}({kind.name} %angle)"
    return "\n".join([f"{name} {{", *lines.text, "}"])


def _polynomial(lines: Lines, z: str, coefficients: Iterable[float]) -> str:
    *rest, last = coefficients
    value = lines.kind.constant(last)
    for each in reversed(rest):
        product = lines.binary("multiply", z, value)
        value = lines.binary("add", lines.kind.constant(each), product)
    return value


def declarations(kinds: Iterable[Kind]) -> str:
    """What the functions call."""
    lines = [f"declare double @{name}(double)" for name in ("sin", "cos", "tanh")]
    for kind in kinds:
        for name in ("fabs", "rint", "floor", "sqrt"):
            lines.append(f"declare {kind.name} @llvm.{name}.{kind.suffix}({kind.name})")
    return "\n".join(lines)


class StraightLine:
    """The values of a program's operations, as they are written.

    Args:
        program: what is computed.
        lines: where to.
        load: writes the line that reads an entry of an input; returns the value's name.
        store: writes the line that gives an entry of the output its value.
    """

    def __init__(
        self,
        program: Program,
        lines: Lines,
        load: Callable[[str, int], str],
        store: Callable[[int, str], None],
    ) -> None:
        self._program, self._graph = program, program.graph
        self._lines = lines
        self._load, self._store = load, store
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

    def write(self, angles: Kind) -> None:
        """Writes the operations in their order, but sines and cosines first, of type `angles`. Each
        result is stored as soon as it is known, but after all inputs were read: the output may lie
        over them."""
        operations, order = self._graph.operations, self._program.order
        entries: dict[int, list[int]] = {}
        for entry, result in enumerate(self._program.results):
            entries.setdefault(abs(result) - 1, []).append(entry)
        turned = {
            abs(operations[index].arguments[0])
            for index in order
            if operations[index].name in ("sine", "cosine")
        }
        for index in sorted(self._program.needed(turned)):
            self._write_one(index)
        ready = sorted(turned)
        count = angles.lanes if self._lines.kind.lanes == 1 else 1
        for k in range(0, len(ready), count):
            self._write_angles(ready[k : k + count], angles)
        inputs = (index for index in order if operations[index].name == "input")
        for index in order:
            if index in entries:
                for each in inputs:  # all of them the first time, then none
                    self._write_one(each)
            self._write_one(index)
            for entry in entries.get(index, ()):
                self._store(entry, self.value(self._program.results[entry]))

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
            (packed,) = (lines.converted(value, kind, together) for value in values)
        else:
            packed = "zeroinitializer"
            for lane, value in enumerate(values):
                of = f"{together.name} {packed}, double {value}, i32 {lane}"
                packed = lines.let(f"insertelement {of}")
        both = lines.let(f"call {pair} @sincos_{together.suffix}({together.name} {packed})")
        parts = [lines.let(f"extractvalue {pair} {both}, {k}") for k in (0, 1)]
        for lane, angle in enumerate(angles):
            of_angle = self._graph.angles[angle]
            for name, part in zip(("sine", "cosine"), parts, strict=True):
                if together.lanes == kind.lanes:
                    value = lines.converted(part, together, kind)
                else:
                    value = lines.let(f"extractelement {together.name} {part}, i32 {lane}")
                if name in of_angle:
                    self._values[of_angle[name]] = value
