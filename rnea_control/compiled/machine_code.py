"""Programs as machine code of this computer: functions in LLVM's language, for one sample and for
many; the object files that Numba's LLVM makes of them, kept on disk; and a header in C."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection
from enum import Enum
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from rnea_control.compiled import llvm_text
from rnea_control.compiled.llvm_text import Kind, Lines, Precision, StraightLine, pointer_to
from rnea_control.compiled.programs import ALGORITHMS, BODIES, Program
from rnea_control.dynamics.workspace import shapes
from rnea_control.kernels.disk_cache import directories, read_sealed, write_sealed
from rnea_control.kernels.fingerprint import environment, processor
from rnea_control.model import RobotModel

# Numbers of eight bytes in a vector register, by a feature of the processor.
_REGISTERS = (("+avx512f", 8), ("+avx", 4))
_SMALLEST_REGISTER = 2  # SSE2 and NEON

# So many are kept; then those that were made first go.
MOST_FILES = 500

OUTPUT = "output"
ALONE = "alone"


class Order(Enum):
    """How many samples lie in memory."""

    sample_major = "rows"  # arrays of shape (samples, entries)
    entry_major = "columns"  # of shape (entries, samples)


class MachineCode:
    """Functions in memory, for as long as this object is.

    Args:
        code: what `object_code` made.
    """

    def __init__(self, code: bytes) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, function: str) -> int:
        """Of a function in memory."""
        return int(self._engine.get_function_address(function))


@cache
def lanes(precision: Precision = Precision.double) -> int:
    """How many numbers a vector register has."""
    features = processor()[1].split(",")
    doubles = next((n for feature, n in _REGISTERS if feature in features), _SMALLEST_REGISTER)
    return doubles * Precision.double.value // precision.value


def object_code(text: str) -> bytes:
    """An object file of what `assembly` wrote, from disk if it was made before and is not damaged
    there."""
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
) -> str:
    """The function of one sample, called `name`, or one for many that lie in `order`, in LLVM's
    language. That of one sample is in double precision."""
    kind = Kind(lanes(precision), precision)
    angles = Kind(kind.lanes)
    kinds = {each.name: each for each in (Kind(1), angles, kind)}.values()
    parts = [llvm_text.declarations(kinds), llvm_text.sincos_function(angles)]
    if order is None:
        parts.append(_alone(program, angles, name))
    else:
        parts += [_gather_declarations(kind), _bulk(program, kind, order)]
    return "\n\n".join(parts)


def assembled(text: str) -> bytes:
    """An object file."""
    module = llvm.parse_assembly(text)
    module.verify()
    return bytes(_target().emit_object(module))


def c_header(robot: str, model: RobotModel, algorithms: Collection[str]) -> str:
    """The header of a robot's functions.

    Args:
        robot: what their names begin with.
        model: the robot.
        algorithms: which functions there are.
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
        f"/* `{BODIES}`: what may change, as in the RobotModel's `bodies`; NULL if nothing may. */",
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
        # Twice as wide is twice as fast here: there is nothing but arithmetic.
        features += ",-prefer-256-bit"
    target = llvm.Target.from_default_triple()
    # With more effort LLVM also orders instructions within the registers, for half of the time of a
    # large program, which a processor that looks ahead does not feel.
    return target.create_target_machine(
        cpu=name, features=features, opt=1, reloc="pic", codemodel="default"
    )


def _alone(program: Program, angles: Kind, name: str) -> str:
    """`void name(inputs..., bodies, output)`: the program for one sample."""
    lines, pointer = Lines(Kind(1)), pointer_to("double")

    def load(array: str, index: int) -> str:
        return lines.let(f"load double, {pointer} {lines.entry(array, str(index))}")

    def store(index: int, value: str) -> None:
        lines.do(f"store double {value}, {pointer} {lines.entry(OUTPUT, str(index))}")

    StraightLine(program, lines, load, store).write(angles)
    lines.do("ret void")
    arguments = ", ".join(f"{pointer} %{each}" for each in (*program.inputs, OUTPUT))
    return "\n".join([f"define void @{name}({arguments}) {{", *lines.text, "}"])


def _bulk(program: Program, kind: Kind, order: Order) -> str:
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
    samples = _Samples(program, lines, order)
    # What a sample's row takes is written side by side, at the end.
    late: dict[int, str] = {}
    store = samples.store if order is Order.entry_major else late.__setitem__
    StraightLine(program, lines, samples.load, store).write(Kind(kind.lanes))
    for index, value in sorted(late.items()):
        samples.store(index, value)
    step = lines.let(f"add i64 %k, {kind.lanes}")
    within = lines.let(f"icmp slt i64 {step}, {last}")
    lines.do(f"%following = select i1 {within}, i64 {step}, i64 {last}")
    finished = lines.let(f"icmp eq i64 %k, {last}")
    lines.do(f"br i1 {finished}, label %end, label %next")
    lines.label("end")
    lines.do("ret void")
    arguments = ", ".join(
        f"{pointer_to('double' if name == BODIES else kind.number)} %{name}"
        for name in (*program.inputs, OUTPUT)
    )
    head = f"define void @{order.value}({arguments}, i64 %stride, i64 %count) {{"
    return "\n".join([head, *lines.text, "}"])


class _Samples:
    """Reads and writes an entry of the samples from %k on, one in each lane."""

    def __init__(self, program: Program, lines: Lines, order: Order) -> None:
        self._lengths = {name: math.prod(shape) for name, shape in program.inputs.items()}
        self._lengths[OUTPUT] = len(program.results)
        self._lines = lines
        self._together = order is Order.entry_major
        # Pointers to a number of a sample, and to what a register holds.
        self._one = pointer_to(lines.kind.number)
        self._wide = pointer_to(lines.kind.name)
        self._bytes = lines.kind.precision.value
        self._all = f"<{lines.kind.lanes} x i1> <{', '.join(['i1 true'] * lines.kind.lanes)}>"

    def load(self, array: str, index: int) -> str:
        lines, kind = self._lines, self._lines.kind
        if array == BODIES:  # the same for all samples
            at = lines.entry(array, str(index))
            one = lines.let(f"load double, {pointer_to('double')} {at}")
            one = lines.converted(one, Kind(1), Kind(1, kind.precision))
            first = lines.let(f"insertelement {kind.name} undef, {kind.number} {one}, i32 0")
            zeros = f"<{kind.lanes} x i32> zeroinitializer"
            return lines.let(f"shufflevector {kind.name} {first}, {kind.name} undef, {zeros}")
        if self._together:
            at = self._address(array, index)
            return lines.let(f"load {kind.name}, {self._wide} {at}, align {self._bytes}")
        gather = f"call {kind.name} @llvm.masked.gather.{_overload(kind)}"
        at = self._addresses(array, index)
        return lines.let(f"{gather}({at}, i32 {self._bytes}, {self._all}, {kind.name} undef)")

    def store(self, index: int, value: str) -> None:
        lines, kind = self._lines, self._lines.kind
        if self._together:
            at = self._address(OUTPUT, index)
            lines.do(f"store {kind.name} {value}, {self._wide} {at}, align {self._bytes}")
            return
        scatter = f"call void @llvm.masked.scatter.{_overload(kind)}"
        at = self._addresses(OUTPUT, index)
        lines.do(f"{scatter}({kind.name} {value}, {at}, i32 {self._bytes}, {self._all})")

    def _address(self, array: str, index: int) -> str:
        """Of the entry of sample %k; those of the next samples lie behind it."""
        lines = self._lines
        row = lines.let(f"mul i64 %stride, {index}")
        at = lines.entry(array, lines.let(f"add i64 {row}, %k"), lines.kind.number)
        if self._wide == self._one:
            return at
        return lines.let(f"bitcast {self._one} {at} to {self._wide}")

    def _addresses(self, array: str, index: int) -> str:
        """Of the entry of each sample."""
        lines, length = self._lines, self._lengths[array]
        lanes, number = lines.kind.lanes, lines.kind.number
        first = lines.let(f"mul i64 %k, {length}")
        first = lines.let(f"add i64 {first}, {index}")
        at = lines.entry(array, first, number)
        steps = "<" + ", ".join(f"i64 {lane * length}" for lane in range(lanes)) + ">"
        vector = f"<{lanes} x i64> {steps}"
        all_ = lines.let(f"getelementptr {number}, {self._one} {at}, {vector}")
        return f"<{lanes} x {self._one}> {all_}"


def _gather_declarations(kind: Kind) -> str:
    """What `_bulk` calls where samples lie apart."""
    many, mask = f"<{kind.lanes} x {pointer_to(kind.number)}>", f"<{kind.lanes} x i1>"
    suffix = _overload(kind)
    return (
        f"declare {kind.name} @llvm.masked.gather.{suffix}({many}, i32, {mask}, {kind.name})\n"
        f"declare void @llvm.masked.scatter.{suffix}({kind.name}, {many}, i32, {mask})"
    )


def _overload(kind: Kind) -> str:
    to = "" if pointer_to("double") == "ptr" else Kind(1, kind.precision).suffix
    return f"{kind.suffix}.v{kind.lanes}p0{to}"
