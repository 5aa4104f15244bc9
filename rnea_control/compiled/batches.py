"""Runs an algorithm at many samples: checks of arrays, threads, and the last partial register."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from numbers import Integral
from threading import Thread

import numpy as np

from rnea_control.compiled.machine_code import Order, lanes
from rnea_control.compiled.programs import ALGORITHMS
from rnea_control.compiled.straight_line import Precision
from rnea_control.dynamics.workspace import check_array, shapes
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel

WORTH_A_THREAD = 50_000  # number of samples that take longer than the start of a thread
PARTS = 8  # parts for each thread; a thread that another process delays takes fewer parts
_PRECISIONS = {np.dtype(np.float64): Precision.double, np.dtype(np.float32): Precision.float}

Array = np.ndarray  # of either precision


def run(
    model: RobotModel,
    algorithm: str,
    code: Callable[[str, Order, Precision], Callable[..., None]],
    inputs: Sequence[Array],
    out: Array | None,
    order: Order,
    workers: int | None,
) -> Array:
    """Runs `CompiledRobot.batch`; `code` returns the function of an algorithm, compiling it first
    if necessary."""
    if workers is not None and (not isinstance(workers, Integral) or workers < 1):
        raise ArgumentError(f"workers is {workers}; it must be at least 1, and an integer")
    if not isinstance(order, Order):
        raise ArgumentError(f"order is {order!r}; it must be {' or '.join(map(str, Order))}")
    out = _checked(model, algorithm, inputs, out, order)
    precision, samples_first = _PRECISIONS[out.dtype], order is Order.sample_major
    axis = 0 if samples_first else -1
    samples, together = out.shape[axis], lanes(precision)
    if samples == 0:
        return out
    if samples < together:  # fewer samples than lanes of a register: the last sample is repeated
        index = np.minimum(np.arange(together), samples - 1)
        wider = [np.ascontiguousarray(np.take(each, index, axis)) for each in inputs]
        whole = run(model, algorithm, code, wider, None, order, 1)
        np.copyto(out, np.take(whole, np.arange(samples), axis))
        return out
    function = code(algorithm, order, precision)
    if workers is None:
        workers = min(os.cpu_count() or 1, max(samples // WORTH_A_THREAD, 1))
    count = min(1 if workers == 1 else workers * PARTS, samples // together)
    parts = iter(list(pairwise(samples * i // count for i in range(count + 1))))
    steps = [
        (each.ctypes.data, each.strides[0] if samples_first else each.itemsize)
        for each in (*inputs, out)
    ]
    bodies = model.bodies.ctypes.data

    def work() -> None:
        for begin, end in parts:  # each part goes to one thread
            *arrays, result = (data + begin * step for data, step in steps)
            function(*arrays, bodies, result, samples, end - begin)

    threads = [Thread(target=work) for _ in range(min(workers, count) - 1)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    return out


def _checked(
    model: RobotModel, algorithm: str, inputs: Sequence[Array], out: Array | None, order: Order
) -> Array:
    """Checks the arrays; returns the output."""
    *names, output = ALGORITHMS[algorithm].arrays
    given = len(inputs) == len(names) and isinstance(inputs[0], np.ndarray)
    if not given or inputs[0].ndim != 2 or inputs[0].dtype not in _PRECISIONS:
        raise ArgumentError(
            f"{algorithm} takes {', '.join(names)}, each an array of float64 or float32; "
            "q has two dimensions"
        )
    samples_first = order is Order.sample_major
    dtype, samples = inputs[0].dtype, inputs[0].shape[0 if samples_first else 1]

    wanted = {
        name: (samples, *shape) if samples_first else (*shape, samples)
        for name, shape in shapes(model).items()
    }
    out = np.empty(wanted[output], dtype) if out is None else out
    check_array("out", out, wanted[output], dtype)
    for name, array in zip(names, inputs, strict=True):
        check_array(name, array, wanted[name], dtype, writeable=False)
        if np.may_share_memory(array, out):
            raise ArgumentError(f"out shares memory with {name}; give an array of its own")
    return out
