"""How a call from Python gets to the machine code of a program: arrays checked, no allocation.

One kernel for each number of arrays serves all programs and robots; it is told the address of the
code. Python functions that Numba compiles can call the kernels too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic as _intrinsic

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.dynamics.body import position_count, velocity_count
from rnea_control.kernels.kernel import inlined, kernel
from rnea_control.model import bodies as layout

# Without the type of a function with a context that callers do not give.
intrinsic: Any = _intrinsic

# What a call finds wrong.
RIGHT, WRONG_ARGUMENT, CHANGED, NOT_COMPILED = range(4)
# Which changes of a model there are, in the order of the expected counts.
CHANGES = (layout.GRAVITY_CHANGES, layout.INERTIA_CHANGES, layout.ARMATURE_CHANGES)
# In place of an expected count: the code reads these numbers when it runs.
VARIABLE = -1.0


def _jump(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Calls the function at an address with the data of arrays."""
    number = ir.DoubleType().as_pointer()
    pointers = [
        builder.bitcast(context.make_array(kind)(context, builder, value).data, number)
        for kind, value in zip(signature.args[1:], arguments[1:], strict=True)
    ]
    of_code = ir.FunctionType(ir.VoidType(), [number] * len(pointers))
    builder.call(builder.inttoptr(arguments[0], of_code.as_pointer()), pointers)
    return context.get_dummy_value()


@intrinsic
def _run_1(typing: Any, address: Any, x: Any, bodies: Any, out: Any) -> Any:
    return types.void(address, x, bodies, out), _jump


@intrinsic
def _run_2(typing: Any, address: Any, x: Any, y: Any, bodies: Any, out: Any) -> Any:
    return types.void(address, x, y, bodies, out), _jump


@intrinsic
def _run_3(typing: Any, address: Any, x: Any, y: Any, z: Any, bodies: Any, out: Any) -> Any:
    return types.void(address, x, y, z, bodies, out), _jump


@intrinsic
def _run_4(typing: Any, address: Any, x: Any, y: Any, z: Any, w: Any, bodies: Any, out: Any) -> Any:
    return types.void(address, x, y, z, w, bodies, out), _jump


@intrinsic
def _number_at(typing: Any, address: Any, index: Any) -> Any:
    """An entry of the float64 array at an address."""

    def load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = builder.inttoptr(arguments[0], ir.DoubleType().as_pointer())
        return builder.load(builder.gep(array, [arguments[1]]))

    return types.float64(address, index), load


def _bound(inputs: int) -> Any:
    """Calls a function with the pointers that `bound` has put together."""

    def jump(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.DoubleType().as_pointer()
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data

        def at(k: int) -> Any:
            return builder.load(builder.gep(data, [ir.IntType(64)(k)]))

        arrays = [at(_FIRST_ARRAY + k) for k in range(inputs + 1)]
        arrays.insert(inputs, at(_BODIES))
        of_code = ir.FunctionType(ir.VoidType(), [number] * len(arrays))
        code = builder.inttoptr(at(_ADDRESS), of_code.as_pointer())
        builder.call(code, [builder.inttoptr(each, number) for each in arrays])
        return context.get_dummy_value()

    @intrinsic
    def run(typing: Any, pointers: Any) -> Any:
        return types.void(pointers), jump

    return run


# What stands in the array of a bound call: where the code is, the bodies, the expected counts, the
# inputs and the output.
_ADDRESS, _BODIES, _EXPECTED, _FIRST_ARRAY = range(4)
_bound_1, _bound_2, _bound_3, _bound_4 = map(_bound, range(1, 5))


@inlined
def _fault(
    address: int, bodies: FloatArray, expected: FloatArray, q: FloatArray, others_fit: bool
) -> int:
    """What is wrong with a call, if anything."""
    if address == 0:
        return NOT_COMPILED
    if q.shape[0] != position_count(bodies) or not others_fit:
        return WRONG_ARGUMENT
    for k in range(len(CHANGES)):
        if expected[k] != VARIABLE and bodies[0, CHANGES[k]] != expected[k]:
            return CHANGED
    return RIGHT


@inlined
def rnea_by_code(
    address: int,
    expected: FloatArray,
    bodies: FloatArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    tau: FloatArray,
) -> bool:
    """Fills `tau` by the code at an address, for other kernels, whose arrays fit. Returns false,
    and does nothing, if there is no code, or the robot has changed."""
    if address == 0:
        return False
    for k in range(len(CHANGES)):
        if expected[k] != VARIABLE and bodies[0, CHANGES[k]] != expected[k]:
            return False
    _run_3(address, q, v, a, bodies, tau)
    return True


@kernel("i8(i8, f8[:,::1], f8[::1], f8[::1], f8[::1])")
def call_1(
    address: int, bodies: FloatArray, expected: FloatArray, q: FloatArray, out: FloatArray
) -> int:
    """q -> a vector"""
    fault = _fault(address, bodies, expected, q, out.shape[0] == velocity_count(bodies))
    if fault == RIGHT:
        _run_1(address, q, bodies, out)
    return fault


@kernel("i8(i8, f8[:,::1], f8[::1], i8, f8[::1], f8[:,::1])")
def call_matrix(
    address: int,
    bodies: FloatArray,
    expected: FloatArray,
    rows: int,
    q: FloatArray,
    out: FloatArray,
) -> int:
    """q -> a matrix with nv columns"""
    fits = out.shape[0] == rows and out.shape[1] == velocity_count(bodies)
    fault = _fault(address, bodies, expected, q, fits)
    if fault == RIGHT:
        _run_1(address, q, bodies, out)
    return fault


@kernel("i8(i8, f8[:,::1], f8[::1], i8, f8[::1], f8[:,:,::1])")
def call_poses(
    address: int,
    bodies: FloatArray,
    expected: FloatArray,
    links: int,
    q: FloatArray,
    out: FloatArray,
) -> int:
    """q -> a pose for each link"""
    fits = out.shape[0] == links and out.shape[1] == 4 and out.shape[2] == 4
    fault = _fault(address, bodies, expected, q, fits)
    if fault == RIGHT:
        _run_1(address, q, bodies, out)
    return fault


@kernel("i8(i8, f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def call_2(
    address: int,
    bodies: FloatArray,
    expected: FloatArray,
    q: FloatArray,
    v: FloatArray,
    out: FloatArray,
) -> int:
    """q, v -> a vector"""
    nv = velocity_count(bodies)
    fault = _fault(address, bodies, expected, q, v.shape[0] == nv and out.shape[0] == nv)
    if fault == RIGHT:
        _run_2(address, q, v, bodies, out)
    return fault


@kernel("i8(i8, f8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def call_3(
    address: int,
    bodies: FloatArray,
    expected: FloatArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    out: FloatArray,
) -> int:
    """q, v, a or tau -> a vector"""
    nv = velocity_count(bodies)
    fits = v.shape[0] == nv and a.shape[0] == nv and out.shape[0] == nv
    fault = _fault(address, bodies, expected, q, fits)
    if fault == RIGHT:
        _run_3(address, q, v, a, bodies, out)
    return fault


@kernel("i8(i8, f8[:,::1], f8[::1], i8, f8[::1], f8[::1], f8[::1], f8[:,::1])")
def call_wide(
    address: int,
    bodies: FloatArray,
    expected: FloatArray,
    columns: int,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    out: FloatArray,
) -> int:
    """q, v, a -> a matrix with nv rows"""
    nv = velocity_count(bodies)
    fits = v.shape[0] == nv and a.shape[0] == nv
    fits = fits and out.shape[0] == nv and out.shape[1] == columns
    fault = _fault(address, bodies, expected, q, fits)
    if fault == RIGHT:
        _run_3(address, q, v, a, bodies, out)
    return fault


@kernel("i8(i8, f8[:,::1], f8[::1], i8, f8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1])")
def call_with_forces(
    address: int,
    bodies: FloatArray,
    expected: FloatArray,
    links: int,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    forces: FloatArray,
    out: FloatArray,
) -> int:
    """q, v, a, a force and a moment for each link -> a vector"""
    nv = velocity_count(bodies)
    fits = v.shape[0] == nv and a.shape[0] == nv and out.shape[0] == nv
    fits = fits and forces.shape[0] == links and forces.shape[1] == 6
    fault = _fault(address, bodies, expected, q, fits)
    if fault == RIGHT:
        _run_4(address, q, v, a, forces, bodies, out)
    return fault


def bound(address: int, bodies: FloatArray, expected: FloatArray, *arrays: FloatArray) -> IntArray:
    """The argument of `call_bound` for arrays that were checked; all must stay where they are."""
    places = [each.ctypes.data for each in (bodies, expected, *arrays)]
    return np.array([address, *places], dtype=np.int64)


@kernel("i8(i8[::1])")
def call_bound(pointers: IntArray) -> int:
    """What `bound` has put together"""
    for k in range(len(CHANGES)):
        count = _number_at(pointers[_EXPECTED], k)
        if count != VARIABLE and _number_at(pointers[_BODIES], CHANGES[k]) != count:
            return CHANGED
    inputs = pointers.shape[0] - _FIRST_ARRAY - 1
    if inputs == 1:
        _bound_1(pointers)
    elif inputs == 2:
        _bound_2(pointers)
    elif inputs == 3:
        _bound_3(pointers)
    else:
        _bound_4(pointers)
    return RIGHT
