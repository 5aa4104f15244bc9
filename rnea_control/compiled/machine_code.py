"""From text of LLVM's language to machine code of this computer, by the LLVM that Numba brings; as
object files, kept on disk, for which there is a header in C."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from rnea_control.compiled.functions import ALONE, Order, alone, bulk, gather_declarations
from rnea_control.compiled.llvm_text import Kind, Precision, declarations, sincos_function
from rnea_control.compiled.programs import ALGORITHMS, BODIES, Program, sizes
from rnea_control.kernels.disk_cache import directories, read_sealed, write_sealed
from rnea_control.kernels.fingerprint import environment
from rnea_control.model import RobotModel

# Numbers of eight bytes in a vector register, by a feature of the processor.
_REGISTERS = (("avx512f", 8), ("avx", 4))
_SMALLEST_REGISTER = 2  # SSE2 and NEON

# So many are kept; then those that were made first go.
MOST_FILES = 500


class MachineCode:
    """Functions in memory, for as long as this object is.

    Args:
        objects: what `object_code` made.
    """

    def __init__(self, *objects: bytes) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target(2))
        for each in objects:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(each))
        self._engine.finalize_object()

    def address(self, function: str) -> int:
        """Of a function in memory."""
        return int(self._engine.get_function_address(function))


@cache
def lanes(precision: Precision = Precision.double) -> int:
    """How many numbers a vector register has."""
    features = llvm.get_host_cpu_features()
    doubles = next((n for feature, n in _REGISTERS if features.get(feature)), _SMALLEST_REGISTER)
    return doubles * Precision.double.value // precision.value


def object_code(
    program: Program,
    order: Order | None = None,
    name: str = ALONE,
    precision: Precision = Precision.double,
) -> bytes:
    """An object file with the function of `assembly`, from disk if it was made before."""
    text = assembly(program, order, name, precision)
    return _cached(f"{environment()}\n{text}", lambda: assembled(text))


def assembly(
    program: Program,
    order: Order | None = None,
    name: str = ALONE,
    precision: Precision = Precision.double,
) -> str:
    """The function of one sample, called `name`, or one for many that lie in `order`, in LLVM's
    language. That of one sample is in double precision."""
    pointer = _pointer()
    if order is None:
        angles = Kind(lanes())
        kinds = [Kind(1), angles]
        function = [alone(program, angles, pointer, name)]
    else:
        kind = Kind(lanes(precision), precision)
        angles = Kind(kind.lanes)
        kinds = [Kind(1), angles] if kind.name == angles.name else [Kind(1), angles, kind]
        function = [gather_declarations(kind, pointer), bulk(program, kind, order, pointer)]
    return "\n\n".join([declarations(kinds), sincos_function(angles), *function])


def assembled(text: str) -> bytes:
    """An object file."""
    module = llvm.parse_assembly(text)
    module.verify()
    return bytes(_target(2).emit_object(module))


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
    shapes = {key: "".join(f"[{size}]" for size in shape) for key, shape in sizes(model).items()}
    for algorithm in algorithms:
        rule = ALGORITHMS[algorithm]
        inputs = [f"const double {name}{shapes[size]}" for name, size in rule.inputs.items()]
        shape = "".join(f"[{size}]" for size in rule.shape(model))
        arguments = ", ".join([*inputs, f"const double *{BODIES}", f"double {rule.output}{shape}"])
        lines.append(f"void {robot}_{algorithm}({arguments});")
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "#endif", ""])


def _cached(source: str, make: Callable[[], bytes]) -> bytes:
    """What `make` returns, from disk if it was made before.

    Args:
        source: all that it depends on: code, processor and versions.
        make: called if it is not on disk, or damaged there.
    """
    file = f"robot.{hashlib.sha256(source.encode()).hexdigest()}.o"
    folders = directories(__file__)
    for _, code in read_sealed(folders, file):
        return code
    code = make()
    folder = write_sealed(folders, file, code)
    if folder is not None:
        for path in sorted(folder.glob("robot.*.o"), key=_made_at)[:-MOST_FILES]:
            path.unlink(missing_ok=True)
    return code


def _made_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another process has removed it
        return 0.0


def _target(level: int) -> llvm.TargetMachine:
    features = llvm.get_host_cpu_features().flatten()
    # Twice as wide is twice as fast here: there is nothing but arithmetic.
    features += ",-prefer-256-bit"
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=level, reloc="pic", codemodel="default"
    )


def _pointer() -> str:
    """A pointer to a double, as this LLVM writes it."""
    for pointer in ("ptr", "double*"):
        try:
            llvm.parse_assembly(f"declare void @f({pointer})")
        except RuntimeError:
            continue
        return pointer
    raise RuntimeError("this LLVM knows neither typed nor opaque pointers")
