"""Records: the same fields for Python and for kernels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rnea_control.array_types import RecordArray, Vector
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.record import Record, layouts, numbers


class Counter(Record):
    """What a counter knows."""

    count: int = 2
    runs: bool = True
    stamp: float = math.nan
    offset: float = -1.5


class Twin(Record):
    """The same size, other names."""

    total: int = 2
    stands: bool = True
    stamp: float = math.nan
    offset: float = -1.5


@inlined
def advance(counter: Counter, stamp: float) -> float:
    """Counts, and returns the time since the last stamp."""
    since = stamp - counter.stamp
    if counter.runs:
        counter.count += 1
    counter.runs = not counter.runs
    counter.stamp = stamp
    return since + counter.offset


@kernel("f8(Counter[::1], f8)")
def advance_one(counters: RecordArray, stamp: float) -> float:
    return advance(counters[0], stamp)


def values(counter: Counter) -> tuple:
    return counter.count, counter.runs, counter.stamp, counter.offset


def test_kernel_and_python_do_the_same() -> None:
    by_python, by_kernel = Counter(), Counter()
    for stamp in (0.25, 1.0, 7.5, 1e9):
        one, other = advance(by_python, stamp), advance_one(by_kernel.array, stamp)
        assert one == other or math.isnan(one) == math.isnan(other) is (stamp == 0.25)
        assert values(by_python) == values(by_kernel)
        assert [type(each) for each in values(by_kernel)] == [int, bool, float, float]
    assert values(by_kernel) == (4, True, 1e9, -1.5)
    by_kernel.count, by_kernel.runs = 7, False
    advance_one(by_kernel.array, 2.0)
    assert values(by_kernel) == (7, True, 2.0, -1.5)


class Tool(Record):
    """Vectors beside numbers."""

    mass: float = 1.5  # [kg]
    pose: Vector = numbers(7)
    force: Vector = numbers(3)
    is_set: bool = False


@inlined
def push(tool: Tool, force: Vector) -> float:
    total = 0.0
    for i in range(3):
        tool.force[i] += force[i]
        total += tool.force[i] * tool.pose[i]
    tool.pose[6] = 1.0
    tool.is_set = True
    return tool.mass * total


@kernel("f8(Tool[::1], f8[::1])")
def push_one(tools: RecordArray, force: Vector) -> float:
    return push(tools[0], force)


def test_vectors_of_a_record_are_the_same_for_kernel_and_python() -> None:
    by_python, by_kernel = Tool(), Tool()
    for tool in (by_python, by_kernel):
        tool.pose = np.arange(7.0)
    force = np.array([0.5, -1.0, 2.0])
    for _ in range(3):
        assert push(by_python, force) == push_one(by_kernel.array, force) != 0.0
    for tool in (by_python, by_kernel):
        np.testing.assert_array_equal(tool.force, 3.0 * force)
        np.testing.assert_array_equal(tool.pose, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 1.0])
        assert tool.is_set
        tool.reset()
        assert not tool.pose.any() and not tool.force.any() and tool.mass == 1.5
    with pytest.raises(ValueError, match="broadcast"):
        by_kernel.force = np.zeros(4)
    assert "(7,)" in str(layouts("f8(Tool[::1])"))


def test_reset() -> None:
    counter, other = Counter(), Counter()
    advance(counter, 3.0)
    assert values(counter) == (3, False, 3.0, -1.5)
    counter.reset()
    assert values(counter)[:2] == (2, True) and math.isnan(counter.stamp)
    counter.count = 9
    assert (counter.array[0].count, other.count) == (9, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        Twin().array,
        Counter(),
        Counter().array[0],
        np.zeros(1, np.dtype(Counter.dtype.descr, align=True)),
        np.zeros((1, 1), Counter.dtype),
        np.zeros(4),
    ],
    ids=["other class", "instance", "element", "same fields", "two dimensions", "numbers"],
)
def test_other_records_are_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="not a C-contiguous, writeable Counter array of 1 dim"):
        advance_one(wrong, 1.0)


def test_layout_of_the_records_is_part_of_the_signature() -> None:
    (layout,) = layouts("f8(Counter[::1], f8)")
    assert "'count'" in layout and layouts("f8(f8[::1])") == []
    assert layouts("void(Twin[::1])") != [layout.replace("Counter", "Twin")]


def test_missing_initial_value_and_other_types_are_errors() -> None:
    with pytest.raises(KeyError):
        type("NoValue", (Record,), {"__annotations__": {"count": "int"}})
    with pytest.raises(KeyError):
        type("Text", (Record,), {"__annotations__": {"name": "str"}, "name": ""})
