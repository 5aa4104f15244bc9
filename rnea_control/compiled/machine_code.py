"""Programs as machine code of this computer: functions for one sample and for many; the object
files that Numba's LLVM makes of them, kept on disk; and a header in C."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection
from enum import Enum
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
from llvmlite import ir

from rnea_control.compiled.programs import ALGORITHMS, BODIES, Program
from rnea_control.compiled.straight_line import (
    DOUBLE,
    INT64,
    Builder,
    Precision,
    StraightLine,
    add_sincos,
    vector,
)
from rnea_control.dynamics.workspace import shapes
from rnea_control.jit.disk_cache import directories, read_sealed, write_sealed
from rnea_control.jit.fingerprint import environment, processor
from rnea_control.model import RobotModel

# Numbers of eight bytes in a vector register, by a feature of the processor.
_REGISTERS = (("+avx512f", 8), ("+avx", 4))
_SMALLEST_REGISTER = 2  # SSE2 and NEON

MOST_FILES = 500  # number of object files kept; the oldest are removed

OUTPUT = "output"
ALONE = "alone"


class Order(Enum):
    """Order of several samples in memory."""

    sample_major = "rows"  # arrays of shape (samples, entries)
    entry_major = "columns"  # arrays of shape (entries, samples)


class MachineCode:
    """Machine code in memory; this object keeps it alive.

    Args:
        code: object file from `object_code`.
    """

    def __init__(self, code: bytes) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, function: str) -> int:
        """Address of a function."""
        return int(self._engine.get_function_address(function))


@cache
def lanes(precision: Precision = Precision.double) -> int:
    """Number of numbers in a vector register."""
    features = processor()[1].split(",")
    doubles = next((n for feature, n in _REGISTERS if feature in features), _SMALLEST_REGISTER)
    return doubles * Precision.double.value // precision.value


def object_code(module: ir.Module) -> bytes:
    """Object file of a module from `assembly`; read from disk if an intact file is there."""
    text = str(module)
    digest = hashlib.sha256(f"{environment()}\n{text}".encode()).hexdigest()
    file = f"robot.{digest}.o"
    folders = directories(__file__)
    for _, code in read_sealed(folders, file):
        return code
    code = assembled(text)
    folder = write_sealed(folders, file, code)
    if folder is not None:
        for path in sorted(folder.glob("robot.*.o"), key=_made_at)[:-MOST_FILES]:
            path.unlink(missing_ok=True)
    return code


def assembly(
    program: Program,
    order: Order | None = None,
    name: str = ALONE,
    precision: Precision = Precision.double,
) -> ir.Module:
    """Function of a program in LLVM's language: for one sample, with the name `name` and in double
    precision, or for many samples in the given `order`."""
    module = ir.Module()
    module.triple = ""  # this computer's
    sincos = add_sincos(module, vector(lanes(precision)))
    if order is None:
        _add_alone(module, program, sincos, name)
    else:
        _add_bulk(module, program, sincos, order, precision)
    return module


def assembled(text: str) -> bytes:
    """Object file of a module's text."""
    module = llvm.parse_assembly(text)
    module.verify()
    return bytes(_target().emit_object(module))


def c_header(robot: str, model: RobotModel, algorithms: Collection[str]) -> str:
    """C header of a robot's functions.

    Args:
        robot: prefix of the functions' names.
        model: the robot.
        algorithms: names of the functions.
    """
    guard = f"{robot.upper()}_H"
    joints = ", ".join(model.joint_names)
    lines = [
        f"/* {model.name}: {model.nv} velocities: {joints}. SI units. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"/* `{BODIES}`: `bodies` of the RobotModel, with variable entries; NULL if none is. */",
    ]
    dimensions = {key: "".join(f"[{n}]" for n in shape) for key, shape in shapes(model).items()}
    for algorithm in algorithms:
        *inputs, output = (f"double {x}{dimensions[x]}" for x in ALGORITHMS[algorithm].arrays)
        read = ", ".join(f"const {each}" for each in (*inputs, f"double *{BODIES}"))
        lines.append(f"void {robot}_{algorithm}({read}, {output});")
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "#endif", ""])


def _made_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process has removed it
        return 0.0


def _target() -> llvm.TargetMachine:
    name, features = processor()
    if lanes() > 4:
        # The program is arithmetic only, so registers of twice the width are twice as fast.
        features += ",-prefer-256-bit"
    target = llvm.Target.from_default_triple()
    # At a higher level LLVM also schedules instructions, which takes half of the compile time of a
    # large program and gains nothing on an out-of-order processor.
    return target.create_target_machine(
        cpu=name, features=features, opt=1, reloc="pic", codemodel="default"
    )


def _begun(
    module: ir.Module, name: str, program: Program, number: ir.Type, integers: int = 0
) -> tuple[Builder, dict[str, ir.Value], list[ir.Value]]:
    """Begins the function `void name(inputs..., bodies, output, integers...)`; returns a builder at
    its beginning, its arrays by name, and the integers."""
    names = (*program.inputs, OUTPUT)
    types = [(DOUBLE if array == BODIES else number).as_pointer() for array in names]
    type_ = ir.FunctionType(ir.VoidType(), [*types, *[INT64] * integers])
    function = ir.Function(module, type_, name)
    arguments = list(function.args)
    arrays = dict(zip(names, arguments, strict=False))
    return Builder(function.append_basic_block()), arrays, arguments[len(names) :]


def _add_alone(module: ir.Module, program: Program, sincos: ir.Function, name: str) -> None:
    """Adds the program for one sample, `void name(inputs..., bodies, output)`."""
    builder, arrays, _ = _begun(module, name, program, DOUBLE)

    def load(array: str, index: int) -> ir.Value:
        return builder.load(builder.gep(arrays[array], [INT64(index)]))

    def store(index: int, value: ir.Value) -> None:
        builder.store(value, builder.gep(arrays[OUTPUT], [INT64(index)]))

    StraightLine(program, builder, DOUBLE, load, store).write(sincos)
    builder.ret_void()


def _add_bulk(
    module: ir.Module, program: Program, sincos: ir.Function, order: Order, precision: Precision
) -> None:
    """Adds the program for many samples, `void rows or columns(inputs..., bodies, output,
    i64 stride, i64 count)`.

    A group has as many samples as a register has lanes. The last group ends with the last sample,
    and may repeat some of the samples before it; `count` is at least the number of lanes. In
    `columns` the next entry of a sample is `stride` numbers away."""
    kind, size = vector(lanes(precision), precision), precision.value
    builder, arrays, (stride, count) = _begun(module, order.value, program, kind.element, 2)
    entry, width = builder.block, INT64(kind.count)
    last = builder.sub(count, width)
    group, end = builder.append_basic_block(), builder.append_basic_block()
    builder.branch(group)
    builder.position_at_end(group)
    k = builder.phi(INT64)  # first sample of the group
    k.add_incoming(INT64(0), entry)
    lengths = {name: math.prod(shape) for name, shape in program.inputs.items()}
    lengths[OUTPUT] = len(program.results)
    integers = ir.VectorType(INT64, kind.count)
    steps = {
        name: integers([n * lane for lane in range(kind.count)]) for name, n in lengths.items()
    }

    def address(array: str, index: int) -> ir.Value:
        """Addresses of an entry of each sample of the group."""
        first = builder.add(builder.mul(k, INT64(lengths[array])), INT64(index))
        return builder.apart(builder.gep(arrays[array], [first]), steps[array])

    def address_of_column(array: str, index: int) -> ir.Value:
        """Address of an entry of sample k; the entries of the next samples follow it."""
        first = builder.add(builder.mul(stride, INT64(index)), k)
        return builder.bitcast(builder.gep(arrays[array], [first]), kind.as_pointer())

    def load(array: str, index: int) -> ir.Value:
        if array == BODIES:  # the same for all samples
            one = builder.load(builder.gep(arrays[array], [INT64(index)]))
            return builder.in_all_lanes(one, kind)
        if order is Order.sample_major:
            return builder.gather(address(array, index), kind, size)
        return builder.load(address_of_column(array, index), align=size)

    # Entries of the output rows, written one after the other at the end.
    late: dict[int, ir.Value] = {}

    def store(index: int, value: ir.Value) -> None:
        if order is Order.sample_major:
            late[index] = value
        else:
            builder.store(value, address_of_column(OUTPUT, index), align=size)

    StraightLine(program, builder, kind, load, store).write(sincos)
    for index, value in sorted(late.items()):
        builder.scatter(value, address(OUTPUT, index), size)
    step = builder.add(k, width)
    following = builder.select(builder.icmp_signed("<", step, last), step, last)
    k.add_incoming(following, group)
    builder.cbranch(builder.icmp_signed("==", k, last), end, group)
    builder.position_at_end(end)
    builder.ret_void()
