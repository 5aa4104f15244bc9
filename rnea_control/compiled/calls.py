"""How a call from Python gets to the machine code of a program: arrays checked, no allocation.

One kernel for each kind of arguments serves all programs and robots; it is told where the code and
the robot are by one array, which takes less time to pass than a number. Python functions that Numba
compiles can call the kernels too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic as _intrinsic

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

# Without the type of a function with a context that callers do not give.
intrinsic: Any = _intrinsic

# What a call finds wrong.
RIGHT, WRONG_ARGUMENT, CHANGED, NOT_COMPILED = range(4)
# Which changes of a model there are, in the order of the expected counts.
CHANGES = (layout.GRAVITY_CHANGES, layout.INERTIA_CHANGES, layout.ARMATURE_CHANGES)
# In place of an expected count: the code reads these numbers when it runs.
VARIABLE = -1.0
# What stands in the target of a call.
ADDRESS, _BODIES, _EXPECTED, _NQ, _NV, _LINKS, _SHAPE = range(7)
_LARGEST = _SHAPE + 3  # outputs have up to three dimensions
NOWHERE: IntArray = np.zeros(_LARGEST, dtype=np.int64)


def target(
    model: RobotModel, expected: FloatArray, address: int, shape: tuple[int, ...]
) -> IntArray:
    """What a call is told.

    Args:
        model: the robot; it must stay, as must `expected`.
        expected: how often setters had changed the robot, in the order of `CHANGES`.
        address: where the code is.
        shape: of its output.
    """
    places = (each.ctypes.data for each in (model.bodies, expected))
    counts = model.nq, model.nv, len(model.link_names), *(*shape, 1, 1)[:3]
    return np.array([address, *places, *counts], dtype=np.int64)


def _jump(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Calls the function at an address with the data of arrays, which may be addresses too."""
    number = ir.DoubleType().as_pointer()

    def pointer(kind: Any, value: Any) -> Any:
        if isinstance(kind, types.Integer):
            return builder.inttoptr(value, number)
        return builder.bitcast(context.make_array(kind)(context, builder, value).data, number)

    pointers = list(map(pointer, signature.args[1:], arguments[1:]))
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


@inlined
def _changed(target: IntArray) -> bool:
    """Whether a setter has changed what is in the code."""
    for k in range(len(CHANGES)):
        count = _number_at(target[_EXPECTED], k)
        if count != VARIABLE and _number_at(target[_BODIES], CHANGES[k]) != count:
            return True
    return False


@inlined
def _fault(target: IntArray, q: FloatArray, others_fit: bool, out: Any) -> int:
    """What is wrong with a call, if anything."""
    if target[ADDRESS] == 0:
        return NOT_COMPILED
    fit = others_fit and q.shape[0] == target[_NQ]
    for k in range(out.ndim):
        fit = fit and out.shape[k] == target[_SHAPE + k]
    if not fit:
        return WRONG_ARGUMENT
    return CHANGED if _changed(target) else RIGHT


def _of_q(target: IntArray, q: FloatArray, out: FloatArray) -> int:
    fault = _fault(target, q, True, out)
    if fault == RIGHT:
        _run_1(target[ADDRESS], q, target[_BODIES], out)
    return fault


def _of_q_v(target: IntArray, q: FloatArray, v: FloatArray, out: FloatArray) -> int:
    fault = _fault(target, q, v.shape[0] == target[_NV], out)
    if fault == RIGHT:
        _run_2(target[ADDRESS], q, v, target[_BODIES], out)
    return fault


def _of_q_v_a(
    target: IntArray, q: FloatArray, v: FloatArray, a: FloatArray, out: FloatArray
) -> int:
    fault = _fault(target, q, v.shape[0] == target[_NV] and a.shape[0] == target[_NV], out)
    if fault == RIGHT:
        _run_3(target[ADDRESS], q, v, a, target[_BODIES], out)
    return fault


def _of_forces(
    target: IntArray,
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    forces: FloatArray,
    out: FloatArray,
) -> int:
    fit = v.shape[0] == target[_NV] and a.shape[0] == target[_NV]
    fit = fit and forces.shape[0] == target[_LINKS] and forces.shape[1] == 6
    fault = _fault(target, q, fit, out)
    if fault == RIGHT:
        _run_4(target[ADDRESS], q, v, a, forces, target[_BODIES], out)
    return fault


# By what they take and fill; `a` may be tau.
vector_of_q = kernel("i8(i8[::1], f8[::1], f8[::1])")(_of_q)
matrix_of_q = kernel("i8(i8[::1], f8[::1], f8[:,::1])")(_of_q)
poses_of_q = kernel("i8(i8[::1], f8[::1], f8[:,:,::1])")(_of_q)
vector_of_q_v = kernel("i8(i8[::1], f8[::1], f8[::1], f8[::1])")(_of_q_v)
vector_of_q_v_a = kernel("i8(i8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")(_of_q_v_a)
matrix_of_q_v_a = kernel("i8(i8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1])")(_of_q_v_a)
vector_of_forces = kernel("i8(i8[::1], f8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1])")(_of_forces)

# What follows the target in the argument of a bound call: how many inputs there are, where these
# are, and the output.
_INPUTS, _X, _Y, _Z, _W = range(_LARGEST, _LARGEST + 5)


def bound(target: IntArray, *arrays: FloatArray) -> IntArray:
    """The argument of `call_bound` for arrays that were checked; all must stay where they are."""
    places = [each.ctypes.data for each in arrays]
    return np.array([*target, len(arrays) - 1, *places], dtype=np.int64)


@kernel("i8(i8[::1])")
def call_bound(target: IntArray) -> int:
    """What `bound` has put together"""
    if _changed(target):
        return CHANGED
    address, bodies, inputs = target[ADDRESS], target[_BODIES], target[_INPUTS]
    x, y, out = target[_X], target[_Y], target[_X + inputs]
    if inputs == 1:
        _run_1(address, x, bodies, out)
    elif inputs == 2:
        _run_2(address, x, y, bodies, out)
    elif inputs == 3:
        _run_3(address, x, y, target[_Z], bodies, out)
    else:
        _run_4(address, x, y, target[_Z], target[_W], bodies, out)
    return RIGHT
