"""An algorithm at many samples: arrays checked, threads, and the remainder of a register."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Callable
from itertools import pairwise
from threading import Thread

import numpy as np

from rnea_control.compiled.llvm_text import Precision
from rnea_control.compiled.machine_code import MachineCode, Order, lanes
from rnea_control.compiled.programs import ALGORITHMS, sizes
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel

# Fewer samples take less time than a thread to start.
WORTH_A_THREAD = 50_000
# Parts for each thread: one that another process holds up takes fewer of them.
PARTS = 8
_PRECISIONS = {np.dtype(np.float64): Precision.double, np.dtype(np.float32): Precision.float}

Array = np.ndarray  # of either precision


class Batches:
    """The functions of a robot for many samples.

    Args:
        model: the robot.
        machine_code: compiles an algorithm, or has done so.
    """

    def __init__(
        self, model: RobotModel, machine_code: Callable[[str, Order, Precision], MachineCode]
    ) -> None:
        self._model = model
        self._machine_code = machine_code
        self._functions: dict[tuple[str, Order, Precision], Callable[..., None]] = {}

    def run(
        self,
        algorithm: str,
        inputs: tuple[Array, ...],
        out: Array | None,
        order: Order,
        workers: int | None,
    ) -> Array:
        """As of `CompiledRobot.batch`."""
        if workers is not None and workers < 1:
            raise ArgumentError(f"workers is {workers}; it must be at least 1")
        out, precision = self._checked(algorithm, inputs, out, order)
        samples_first = order is Order.sample_major
        samples = out.shape[0 if samples_first else -1]
        if samples == 0:
            return out
        if samples < lanes(precision):
            self._few(algorithm, inputs, out, order)
            return out
        function = self._function(algorithm, order, precision)
        if workers is None:
            workers = min(os.cpu_count() or 1, max(samples // WORTH_A_THREAD, 1))
        bodies = self._model.bodies.ctypes.data

        def compute(begin: int, end: int) -> None:
            skipped = (
                each.ctypes.data + begin * (each.strides[0] if samples_first else each.itemsize)
                for each in (*inputs, out)
            )
            *arrays, result = skipped
            function(*arrays, bodies, result, samples, end - begin)

        count = min(1 if workers == 1 else workers * PARTS, samples // lanes(precision))
        parts = deque(pairwise(samples * i // count for i in range(count + 1)))

        def work() -> None:
            while True:
                try:
                    begin, end = parts.popleft()
                except IndexError:  # all are taken
                    return
                compute(begin, end)

        threads = [Thread(target=work) for _ in range(min(workers, count) - 1)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
        return out

    def _checked(
        self, algorithm: str, inputs: tuple[Array, ...], out: Array | None, order: Order
    ) -> tuple[Array, Precision]:
        """The output, and the precision of all arrays."""
        rule = ALGORITHMS[algorithm]
        wanted = {name: sizes(self._model)[size] for name, size in rule.inputs.items()}
        given = len(inputs) == len(wanted) and isinstance(inputs[0], np.ndarray)
        if not given or inputs[0].ndim != 2 or inputs[0].dtype not in _PRECISIONS:
            raise ArgumentError(
                f"{algorithm} takes {', '.join(wanted)}, each an array of float64 or float32; "
                "q has two dimensions"
            )
        samples_first = order is Order.sample_major
        dtype, samples = inputs[0].dtype, inputs[0].shape[0 if samples_first else 1]

        def whole(of_sample: tuple[int, ...]) -> tuple[int, ...]:
            return (samples, *of_sample) if samples_first else (*of_sample, samples)

        result = whole(rule.shape(self._model))
        out = np.empty(result, dtype) if out is None else out
        _check_array("out", out, result, dtype)
        for (name, shape), array in zip(wanted.items(), inputs, strict=True):
            _check_array(name, array, whole(shape), dtype)
            if np.may_share_memory(array, out):
                raise ArgumentError(f"out shares memory with {name}; give an array of its own")
        return out, _PRECISIONS[dtype]

    def _few(self, algorithm: str, inputs: tuple[Array, ...], out: Array, order: Order) -> None:
        """Fewer samples than a register has lanes: the last one is repeated."""
        axis = 0 if order is Order.sample_major else -1
        count = out.shape[axis]
        index = np.minimum(np.arange(lanes(_PRECISIONS[out.dtype])), count - 1)
        wider = tuple(np.ascontiguousarray(np.take(each, index, axis)) for each in inputs)
        whole = self.run(algorithm, wider, None, order, 1)
        np.copyto(out, np.take(whole, np.arange(count), axis))

    def _function(self, name: str, order: Order, precision: Precision) -> Callable[..., None]:
        function = self._functions.get((name, order, precision))
        if function is None:
            address = self._machine_code(name, order, precision).address(order.value)
            pointers = [ctypes.c_void_p] * (len(ALGORITHMS[name].inputs) + 2)
            function = ctypes.CFUNCTYPE(None, *pointers, ctypes.c_int64, ctypes.c_int64)(address)
            self._functions[name, order, precision] = function
        return function


def _check_array(name: str, array: object, shape: tuple[int, ...], dtype: np.dtype) -> None:
    if (
        not isinstance(array, np.ndarray)
        or array.dtype != dtype
        or array.shape != shape
        or not array.flags.c_contiguous
        or not array.flags.writeable
    ):
        raise ArgumentError(f"{name} must be a C-contiguous {dtype} array of shape {shape}")
