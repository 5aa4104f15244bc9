"""Calls of kernels by the address of their machine code, and access to arrays by their address.

A kernel called by address is compiled once, and not optimized again in each caller. The caller
reads the address from an array, so no file on disk has one. The call uses Numba's own calling
convention, which is tested on two small kernels. If the test fails, each caller has a copy of the
called kernels, and takes longer to compile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, reduce
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic as _intrinsic

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.jit.compilation import OPTIONS, address, objection, parsed, source
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import annotated, kernel

_PYTHON = bool(getattr(numba.config, "DISABLE_JIT", False))
intrinsic: Any = _intrinsic
_WORD = ir.IntType(64)
_INT = ir.IntType(32)
_ITEM = 8  # size of a float64 and of an int64 in bytes


def linked(function: Callable[..., Any]) -> Any:
    """Function by which kernels call a kernel of this signature, given by its annotations: called
    with the kernel's address, and a tuple of its arguments."""
    if _PYTHON:
        return lambda code, arguments: function(*arguments)
    return _copied(function) if copies() else _by_address(annotated(source(function)))


def _by_address(signature: str) -> Any:
    def call(typing: Any, code: Any, arguments: Any) -> Any:
        wanted, result = parsed(signature)

        def generate(context: Any, builder: ir.IRBuilder, of_call: Any, values: Any) -> Any:
            of_code = context.call_conv.get_function_type(result, wanted)
            target = builder.inttoptr(values[0], of_code.as_pointer())
            given = _cast(context, builder, values[1], arguments.types, wanted)
            _, answer = context.call_conv.call_function(builder, target, result, wanted, given)
            return answer

        return result(code, arguments), generate

    return intrinsic(call)


def _cast(context: Any, builder: ir.IRBuilder, values: Any, kinds: Any, wanted: Any) -> list[Any]:
    """Entries of a tuple, each cast to the type that is wanted; arrays and groups unchanged."""
    unchanged = types.Array, types.NamedTuple
    return [
        value if isinstance(kind, unchanged) else context.cast(builder, value, has, kind)
        for value, has, kind in zip(
            cgutils.unpack_tuple(builder, values), kinds, wanted, strict=True
        )
    ]


def _copied(function: Callable[..., Any]) -> Any:
    copy = numba.njit(**OPTIONS)(source(function))

    def call(code: int, arguments: tuple[Any, ...]) -> Any:
        return copy(*arguments)

    return inlined(call)


if _PYTHON:

    def array_at(where: int, shape: tuple[int, ...]) -> FloatArray:
        """A C-contiguous array of float64, of its address and its shape."""
        numbers = ctypes.c_double * int(np.prod(shape))
        return np.ctypeslib.as_array(numbers.from_address(int(where))).reshape(shape)

else:

    @intrinsic
    def array_at(typing: Any, where: Any, shape: Any) -> Any:
        """A C-contiguous array of float64, of its address and its shape."""

        def generate(context: Any, builder: ir.IRBuilder, of_call: Any, values: Any) -> Any:
            array = context.make_array(of_call.return_type)(context, builder)
            integers = [types.int64] * len(shape)
            lengths = _cast(context, builder, values[1], shape.types, integers)
            strides = [_WORD(_ITEM)]
            for length in lengths[:0:-1]:
                strides.insert(0, builder.mul(length, strides[0]))
            array.data = builder.inttoptr(values[0], array.data.type)
            array.itemsize, array.nitems = _WORD(_ITEM), reduce(builder.mul, lengths)
            array.shape = cgutils.pack_array(builder, lengths)
            array.strides = cgutils.pack_array(builder, strides)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            return array._getvalue()

        return types.Array(types.float64, len(shape), "C")(where, shape), generate


def c_address(function: Any) -> int:
    """Address of a C function that ctypes has loaded, for `call_c`."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@intrinsic
def call_c(typing: Any, code: Any, arguments: Any) -> Any:
    """Calls a C function at an address with integers and pointers, and returns its int."""

    def generate(context: Any, builder: ir.IRBuilder, of_call: Any, values: Any) -> Any:
        integers = [types.int64] * len(arguments)
        given = _cast(context, builder, values[1], arguments.types, integers)
        # Pointers and 64-bit integers are passed in the same way on x86-64 and AArch64.
        of_code = ir.FunctionType(_INT, [_WORD] * len(given))
        answer = builder.call(builder.inttoptr(values[0], of_code.as_pointer()), given)
        return builder.sext(answer, _WORD)

    return types.int64(types.int64, arguments), generate


@intrinsic
def copy_bytes(typing: Any, where: Any, size: Any, into: Any) -> Any:
    """Copies `size` bytes at the address `where` to the beginning of the byte array `into`."""

    def generate(context: Any, builder: ir.IRBuilder, of_call: Any, values: Any) -> Any:
        target = context.make_array(of_call.args[2])(context, builder, values[2]).data
        origin = builder.inttoptr(values[0], target.type)
        cgutils.raw_memcpy(builder, target, origin, values[1], _WORD(1))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, into), generate


@intrinsic
def fence(typing: Any) -> Any:
    """Full memory fence: neither compiler nor processor moves reads and writes across it."""

    def generate(context: Any, builder: ir.IRBuilder, of_call: Any, values: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


@kernel("void()")
def barrier() -> None:
    """`fence`, for Python."""
    fence()


_SUM = "f8(f8[:,::1], i8)"


@kernel(_SUM)
def _sum(rows: FloatArray, column: int) -> float:
    total = 0.0
    for i in range(rows.shape[0]):
        total += rows[i, column]
        rows[i, column] = i
    return total


@cache
def copies() -> bool:
    """True if callers have copies of kernels here, instead of calling them by their addresses."""
    return bool(objection(_objection, "Kernels take longer to compile"))


def _objection() -> str:
    code = address(_sum)
    if code is None:
        return ""  # kernels are only collected, not compiled yet
    call_sum = _by_address(_SUM)

    def sum_there(there: IntArray) -> float:
        return float(call_sum(there[0], (array_at(there[1], (there[2], 3)), there[3])))

    rows = np.arange(12.0).reshape(4, 3)
    total = kernel("f8(i8[::1])")(sum_there)(np.array([code, rows.ctypes.data, 4, 1]))
    right = total == 22.0 and rows[:, 1].tolist() == [0.0, 1.0, 2.0, 3.0] and rows[3, 2] == 11.0
    return "" if right else "a kernel that is called by its address gives wrong results"
