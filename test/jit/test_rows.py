"""Arrays with named rows: the same names for Python and for kernels."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from rnea_control.array_types import Matrix, Vector
from rnea_control.jit.compilation import address
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import linked
from rnea_control.jit.record import numbers
from rnea_control.jit.rows import Rows, row_layouts, rows, rows_at

JOINTS = 3


class Motion(Rows):
    """What moves."""

    position: Vector
    friction: Matrix = rows(2)
    time: float
    velocity: Vector


class Other(Rows):
    """The same size, other names."""

    velocity: Vector
    time: float
    position: Vector
    friction: Matrix = rows(2)


class Tool(Rows):
    """A vector of a fixed size beside rows."""

    before: Vector
    pose: Vector = numbers(7)
    after: float


ToolStack = Tool
MotionStack = Motion
motion_at = rows_at(Motion)


@inlined
def advance(motion: Motion, dt: float) -> float:
    """Moves all joints, and returns the time."""
    for j in range(motion.position.shape[0]):
        motion.position[j] += dt * motion.velocity[j]
        motion.velocity[j] -= motion.friction[0, j] + motion.friction[1, j]
        motion.friction[1, j] *= 2.0
    motion.friction[0, :] = 0.25
    motion.time += dt
    return motion.time


@kernel()
def advance_one(motion: Motion, dt: float) -> float:
    return advance(motion, dt)


_advance = linked(advance_one)


@kernel()
def advance_entry(stack: MotionStack, which: int, dt: float) -> float:
    motion = stack[which]
    motion.velocity[:] = 1
    motion.time = which
    return advance(motion, dt)


@kernel("f8(i8, i8, i8, f8)")
def advance_there(code: int, where: int, joints: int, dt: float) -> float:
    """By its address, and then by the address of a kernel."""
    motion = motion_at(where, joints)
    advance(motion, dt)
    return _advance(code, (motion, dt))


@kernel()
def shift(tools: ToolStack, which: int) -> float:
    tool = tools[which]
    for k in range(tool.pose.shape[0]):
        tool.pose[k] += k
    tool.pose[:3] = tool.after
    return tool.pose[6]


def a_motion() -> Motion:
    motion = Motion.zeros(JOINTS)
    motion[:] = np.arange(motion.size).reshape(motion.shape)
    return motion


def test_kernel_and_python_do_the_same() -> None:
    by_python, by_kernel = a_motion(), a_motion()
    for dt in (0.5, 1.0, 7.0):
        assert advance(by_python, dt) == advance_one(by_kernel, dt)
        np.testing.assert_array_equal(by_python, by_kernel)
    there = a_motion()
    advance(there, 0.5)
    there = a_motion()
    code = address(advance_one) or 0
    assert advance_there(code, there.ctypes.data, JOINTS, 0.5) == a_motion().time + 1.0
    twice = a_motion()
    advance(twice, 0.5)
    advance(twice, 0.5)
    np.testing.assert_array_equal(there, twice)


def test_names_are_views_and_numbers() -> None:
    motion = a_motion()
    assert motion.position.tolist() == [0.0, 1.0, 2.0]
    assert motion.friction.tolist() == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
    assert (type(motion.position), type(motion.time), motion.time) == (np.ndarray, float, 9.0)
    motion.position[1], motion.time, motion.friction, motion.velocity = 7.0, -1.0, 2.0, (1, 2, 3)
    assert motion[0, 1] == 7.0 and motion[3].tolist() == [-1.0, 10.0, 11.0]
    assert (motion[1:3] == 2.0).all() and motion[4].tolist() == [1.0, 2.0, 3.0]
    assert motion.block("friction", "time").shape == (3, JOINTS)
    assert (Motion.count, Motion.place("time")) == (5, 3)
    assert type(motion.copy()) is Motion and not np.shares_memory(motion.copy(), motion)
    stack = Motion.zeros(JOINTS, 2)
    stack.velocity[:] = [[1.0] * JOINTS, [2.0] * JOINTS]
    assert stack[1].velocity.tolist() == [2.0] * JOINTS and stack[0].velocity[0] == 1.0


@pytest.mark.parametrize("joints", [1, 3, 9])
def test_vector_of_a_fixed_size(joints: int) -> None:
    tools = Tool.zeros(joints, 2)
    tools.before[:], tools[1].after = 5.0, 2.0
    tools[1].pose = np.arange(7.0)
    assert tools.pose.shape == (2, 7) and tools[1].pose.tolist() == list(range(7))
    assert shift(tools, 1) == 12.0
    assert tools[1].pose.tolist() == [2.0, 2.0, 2.0, 6.0, 8.0, 10.0, 12.0]
    assert not tools[0].pose.any() and (tools.before == 5.0).all() and tools[1].after == 2.0
    tool = Tool.zeros(joints)
    tool.pose[6] = 4.0
    assert tool.pose.base is not None and tool.copy().pose[6] == 4.0 and Tool.count == 9


def test_other_annotations_are_refused() -> None:
    with pytest.raises(TypeError, match=r"Counted.count is annotated as 'int'; it must be one of"):

        class Counted(Rows):
            count: int


def test_entry_of_a_stack() -> None:
    stack = Motion.zeros(JOINTS, 2)
    assert advance_entry(stack, 1, 0.5) == 1.5
    assert stack[1].position.tolist() == [0.5] * JOINTS and not stack[0].any()


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((Motion.count, JOINTS)),
        Other.zeros(JOINTS),
        Motion.zeros(JOINTS)[1:],
        Motion.zeros(JOINTS)[:, ::2],
        Motion.zeros(JOINTS, 2),
        Motion.zeros(JOINTS).astype(int),
        Motion.zeros(JOINTS)[0],
        None,
    ],
)
def test_another_array_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="not a C-contiguous, writeable Motion of 2 dimensions"):
        advance_one(wrong, 0.5)


def test_layout_is_a_part_of_the_fingerprint() -> None:
    (layout,) = row_layouts("f8(Motion, i8[::1])")
    assert row_layouts("f8(MotionStack)") == [layout] and "velocity" in layout
    assert row_layouts("f8(Other, i8)") != [layout]


@pytest.mark.explores
@pytest.mark.parametrize("mode", ["NUMBA_DISABLE_JIT", "RNEA_CONTROL_NUMBA_DISPATCH"])
def test_without_machine_code_or_its_entry(mode: str) -> None:
    tests = [
        f"{__file__}::{test.__name__}"
        for test in (test_entry_of_a_stack, test_names_are_views_and_numbers)
    ]
    if mode != "NUMBA_DISABLE_JIT":
        tests += [
            f"{__file__}::{test.__name__}"
            for test in (test_kernel_and_python_do_the_same, test_another_array_is_refused)
        ]
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, mode: "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
