"""Programs in LLVM's language, for one sample or a register of samples, by llvmlite's builder."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial

from llvmlite import ir

from rnea_control.compiled.programs import Program
from rnea_control.spatial import rotation

DOUBLE = ir.DoubleType()
INT32 = ir.IntType(32)
INT64 = ir.IntType(64)
_BINARY = {"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"}


class Precision(Enum):
    """The size of a number in bytes."""

    double = 8
    float = 4


def vector(lanes: int, precision: Precision = Precision.double) -> ir.VectorType:
    """Type of a register with `lanes` numbers."""
    return ir.VectorType(DOUBLE if precision is Precision.double else ir.FloatType(), lanes)


def _overload(type_: ir.Type) -> str:
    """Suffix of the name of an LLVM function for this type."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{_overload(type_.element)}"
    return str(type_.intrinsic_name)


def _every(kind: ir.VectorType) -> ir.Constant:
    """Mask that enables every lane."""
    return ir.VectorType(ir.IntType(1), kind.count)(1)


class Builder(ir.IRBuilder):
    """llvmlite's builder with the additional operations that programs need."""

    def binary(self, name: str, x: ir.Value, y: ir.Value) -> ir.Value:
        """Applies an operation of `_BINARY`; a product and a sum may become one instruction."""
        return getattr(self, _BINARY[name])(x, y, flags=("contract",))

    def converted(self, x: ir.Value, to: ir.Type) -> ir.Value:
        """Converts x to the precision of `to`, which has as many lanes."""
        if x.type == to:
            return x
        is_double = getattr(to, "element", to) == DOUBLE
        return self.fpext(x, to) if is_double else self.fptrunc(x, to)

    def external(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        """Calls a function of another module."""
        type_ = ir.FunctionType(result, [each.type for each in arguments])
        known = self.module.globals.get(name)
        return self.call(known or ir.Function(self.module, type_, name), arguments)

    def intrinsic(self, name: str, x: ir.Value) -> ir.Value:
        """Calls an LLVM function of one argument."""
        return self.external(f"llvm.{name}.{_overload(x.type)}", x.type, x)

    def by_library(self, name: str, x: ir.Value) -> ir.Value:
        """Calls a function of the C library for each lane of x, in double precision."""
        type_ = x.type
        if not isinstance(type_, ir.VectorType):
            return self.external(name, DOUBLE, x)
        x = self.converted(x, ir.VectorType(DOUBLE, type_.count))
        result = x.type(ir.Undefined)
        for lane in map(INT32, range(type_.count)):
            value = self.external(name, DOUBLE, self.extract_element(x, lane))
            result = self.insert_element(result, value, lane)
        return self.converted(result, type_)

    def in_all_lanes(self, x: ir.Value, kind: ir.VectorType) -> ir.Value:
        """Vector with the number x in all lanes, converted to the precision of `kind`."""
        none = kind(ir.Undefined)
        first = self.insert_element(none, self.converted(x, kind.element), INT32(0))
        return self.shuffle_vector(first, none, ir.VectorType(INT32, kind.count)(0))

    def apart(self, at: ir.Value, steps: ir.Constant) -> ir.Value:
        """Vector of addresses, each its number of `steps` from the address `at`."""
        addresses = self.gep(at, [INT64(0)])  # llvmlite itself takes no vector
        addresses.indices, addresses.type = [steps], ir.VectorType(at.type, steps.type.count)
        return addresses

    def gather(self, addresses: ir.Value, kind: ir.VectorType, size: int) -> ir.Value:
        """Reads the numbers of `size` bytes at these addresses."""
        name = f"llvm.masked.gather.{_overload(kind)}.{_overload(addresses.type)}"
        every, none = _every(kind), kind(ir.Undefined)
        return self.external(name, kind, addresses, INT32(size), every, none)

    def scatter(self, value: ir.Value, addresses: ir.Value, size: int) -> None:
        """Writes numbers of `size` bytes to these addresses."""
        name = f"llvm.masked.scatter.{_overload(value.type)}.{_overload(addresses.type)}"
        every = _every(value.type)
        self.external(name, ir.VoidType(), value, addresses, INT32(size), every)


def add_sincos(module: ir.Module, kind: ir.VectorType) -> ir.Function:
    """Adds a function for the sines and cosines of a vector of angles [rad] of type `kind`. It uses
    the method of spatial/rotation.py; if one angle is beyond the range of that method, the
    mathematics library for all of them."""
    pair = ir.LiteralStructType([kind, kind])
    function = ir.Function(module, ir.FunctionType(pair, [kind]), f"sincos_{_overload(kind)}")
    function.linkage = "internal"
    (angle,) = function.args
    builder = Builder(function.append_basic_block())
    usual, large = function.append_basic_block(), function.append_basic_block()
    add, subtract, multiply = (
        partial(builder.binary, name) for name in ("add", "subtract", "multiply")
    )
    size = builder.intrinsic("fabs", angle)
    beyond = builder.fcmp_ordered(">", size, kind(rotation.LARGEST_ANGLE))
    bits = ir.IntType(kind.count)
    one_is = builder.icmp_signed("!=", builder.bitcast(beyond, bits), bits(0))
    builder.cbranch(one_is, large, usual)

    def give(sine: ir.Value, cosine: ir.Value) -> None:
        part = builder.insert_value(pair(ir.Undefined), sine, 0)
        builder.ret(builder.insert_value(part, cosine, 1))

    def polynomial(coefficients: Sequence[float]) -> ir.Value:
        value = kind(coefficients[-1])
        for each in coefficients[-2::-1]:
            value = add(kind(each), multiply(z, value))
        return value

    builder.position_at_end(usual)
    quarters = builder.intrinsic("rint", multiply(angle, kind(2.0 / math.pi)))
    r = angle
    for digits in rotation.PI_2:
        r = builder.fsub(r, builder.fmul(quarters, kind(digits)))
    z = multiply(r, r)
    rz, zz = multiply(r, z), multiply(z, z)
    s = add(r, multiply(rz, polynomial(rotation.SINE)))
    half = multiply(kind(0.5), z)
    tail = multiply(zz, polynomial(rotation.COSINE))
    c = add(subtract(kind(1.0), half), tail)
    floor = builder.intrinsic("floor", multiply(kind(0.25), quarters))
    quadrant = builder.fsub(quarters, builder.fmul(kind(4.0), floor))
    one, three = (builder.fcmp_ordered("==", quadrant, kind(n)) for n in (1.0, 3.0))
    swap, two = builder.or_(one, three), builder.fcmp_ordered("==", quadrant, kind(2.0))
    first, second = builder.select(swap, c, s), builder.select(swap, s, c)
    sine = builder.select(builder.or_(two, three), builder.fneg(first), first)
    cosine = builder.select(builder.or_(one, two), builder.fneg(second), second)
    give(sine, cosine)
    builder.position_at_end(large)
    give(*(builder.by_library(name, angle) for name in ("sin", "cos")))
    return function


class StraightLine:
    """Builds the operations of a program.

    Args:
        program: the program.
        builder: builder at the position of the first operation.
        kind: type of all numbers: `DOUBLE`, or a vector.
        load: builds the code that reads an entry of an input.
        store: builds the code that writes an entry of the output.
    """

    def __init__(
        self,
        program: Program,
        builder: Builder,
        kind: ir.Type,
        load: Callable[[str, int], ir.Value],
        store: Callable[[int, ir.Value], None],
    ) -> None:
        self._program, self._graph = program, program.graph
        self._builder, self._kind = builder, kind
        self._load, self._store = load, store
        self._values: dict[int, ir.Value] = {}
        self._negatives: dict[int, ir.Value] = {}

    def value(self, reference: int) -> ir.Value:
        """Value of a reference."""
        index = abs(reference) - 1
        if reference > 0:
            return self._values[index]
        if index not in self._negatives:
            operation = self._graph.operations[index]
            self._negatives[index] = (
                self._kind(-operation.value)
                if operation.name == "constant"
                else self._builder.fneg(self._values[index])
            )
        return self._negatives[index]

    def write(self, sincos: ir.Function) -> None:
        """Writes sines and cosines first, by `add_sincos`, then the other operations in their
        order. Each result is stored as soon as it is known, but after all inputs were read, as the
        output may share memory with them."""
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
        together = sincos.args[0].type
        count = together.count if self._kind == DOUBLE else 1
        for k in range(0, len(ready), count):
            self._write_angles(ready[k : k + count], sincos)
        inputs = (index for index in order if operations[index].name == "input")
        for index in order:
            if index in entries:
                for each in inputs:  # all inputs the first time, then none
                    self._write_one(each)
            self._write_one(index)
            for entry in entries.get(index, ()):
                self._store(entry, self.value(self._program.results[entry]))

    def _write_one(self, index: int) -> None:
        if index in self._values:
            return
        operation, builder = self._graph.operations[index], self._builder
        if operation.name == "constant":
            value = self._kind(operation.value)
        elif operation.name == "input":
            value = self._load(*operation.source)
        elif operation.name == "square_root":
            value = builder.intrinsic("sqrt", self.value(operation.arguments[0]))
        elif operation.name == "hyperbolic_tangent":
            value = builder.by_library("tanh", self.value(operation.arguments[0]))
        else:
            x, y = map(self.value, operation.arguments)
            value = builder.binary(operation.name, x, y)
        self._values[index] = value

    def _write_angles(self, angles: list[int], sincos: ir.Function) -> None:
        """Writes sines and cosines: one call for each angle, or, for a single sample, one call for
        several angles."""
        builder, together = self._builder, sincos.args[0].type
        values = [self.value(angle) for angle in angles]
        if self._kind == DOUBLE:
            packed = together(None)
            for lane, value in enumerate(values):
                packed = builder.insert_element(packed, value, INT32(lane))
        else:
            (packed,) = (builder.converted(value, together) for value in values)
        both = builder.call(sincos, [packed])
        parts = {name: builder.extract_value(both, k) for k, name in enumerate(("sine", "cosine"))}
        for lane, angle in enumerate(angles):
            for name, index in self._graph.angles[angle].items():
                self._values[index] = (
                    builder.extract_element(parts[name], INT32(lane))
                    if self._kind == DOUBLE
                    else builder.converted(parts[name], self._kind)
                )
