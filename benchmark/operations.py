"""Number of multiplications and additions of the algorithms on chains of revolute joints.

The kernels run as plain Python on numbers that count operations, as textbooks do: without sines and
cosines, and without operations that a program for such chains would not need. Known values of 0 or
1, such as the parts of a joint's axis and the root's velocity, are plain numbers: a product with a
plain 0, 1 or -1 and a sum with a plain 0 are free. A division counts as a multiplication.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from growth import chain
from table import Table, show

from rnea_control.dynamics import Workspace, aba, crba, joint, rnea
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

JOINTS = (1, 2, 6, 7, 30)

# Multiplications and additions for n joints that textbooks promise.
BOUNDS: dict[str, tuple[Callable[[int], int], Callable[[int], int]]] = {
    "rnea": (lambda n: 200 * n - 40, lambda n: 150 * n - 40),
    "aba": (lambda n: 300 * n - 200, lambda n: 300 * n - 100),
    "crba": (lambda n: 12 * n**2 + 100 * n, lambda n: 7 * n**2 + 100 * n),
}


class Number(float):
    """A number that is not known beforehand."""

    multiplications = 0
    additions = 0

    def __add__(self, other: float) -> Number:
        if _plain(other) and other == 0.0:
            return self
        Number.additions += 1
        return Number(float(self) + float(other))

    def __sub__(self, other: float) -> Number:
        return self + -other

    def __rsub__(self, other: float) -> Number:
        return -self + other

    def __mul__(self, other: float) -> float:
        if _plain(other) and other in (0.0, 1.0, -1.0):
            return {0.0: 0.0, 1.0: self, -1.0: -self}[other]
        Number.multiplications += 1
        return Number(float(self) * float(other))

    def __truediv__(self, other: float) -> Number:
        Number.multiplications += 1
        return Number(float(self) / float(other))

    def __rtruediv__(self, other: float) -> float:
        if other == 0.0:
            return 0.0
        Number.multiplications += 1
        return Number(float(other) / float(self))

    def __neg__(self) -> Number:
        return Number(-float(self))

    __radd__ = __add__
    __rmul__ = __mul__


def tables() -> list[Table]:
    """One table of all algorithms."""
    table = Table(
        "Operations on a chain of n revolute joints",
        ("algorithm, n", "multiplications", "bound", "additions", "bound"),
    )
    for name, by_joints in counts(JOINTS).items():
        for n, (multiplications, additions) in by_joints.items():
            most, most_additions = (bound(n) for bound in BOUNDS[name])
            row = (multiplications, most, additions, most_additions)
            table.rows.append((f"{name}, {n}", *map(str, row)))
    table.notes.append(
        "Joints in general placement, without armature. Divisions count as multiplications; sines, "
        "cosines and what is done with the 0 and 1 of a joint's axis do not count."
    )
    return [table]


def counts(joints: tuple[int, ...]) -> dict[str, dict[int, tuple[int, int]]]:
    """Multiplications and additions by algorithm and number of joints.

    The count runs in another process, because the kernels may be machine code in this process.
    """
    done = subprocess.run(
        [sys.executable, "-c", f"import operations; operations.print_counts({joints})"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return {
        name: {n: (row[0], row[1]) for n, row in zip(joints, rows, strict=True)}
        for name, rows in json.loads(done.stdout).items()
    }


def print_counts(joints: tuple[int, ...]) -> None:
    """Counts, where Numba's compiler is off, and prints the counts as JSON."""
    joint.sincos = _uncounted_sincos
    rows = [_count(n) for n in joints]
    print(json.dumps({name: [row[name] for row in rows] for name in BOUNDS}))


def _count(n: int) -> dict[str, tuple[int, int]]:
    model = RobotModel.from_urdf_string(chain(n))
    model.bodies = model.bodies.astype(object)
    unknown = model.bodies[:, layout.ROTATION : layout.INERTIA + 10]
    unknown[...] = _numbers(unknown)
    ws = Workspace(model)
    ws.memory = ws.memory.astype(object)
    q, v, a, tau = _numbers(np.random.default_rng(n).uniform(-1.0, 1.0, (4, n)))
    output, M = np.zeros(n, dtype=object), np.zeros((n, n), dtype=object)
    calls = {
        "rnea": lambda: rnea(model, ws, q, v, a, output),
        "aba": lambda: aba(model, ws, q, v, tau, output),
        "crba": lambda: crba(model, ws, q, M),
    }
    result = {}
    for name, call in calls.items():
        Number.multiplications = Number.additions = 0
        call()
        result[name] = (Number.multiplications, Number.additions)
    return result


def _numbers(values: np.ndarray) -> np.ndarray:
    return np.vectorize(Number, otypes=[object])(values)


def _uncounted_sincos(
    rows: np.ndarray, row: int, angle: int, sine: int, cosine: int, count: int
) -> None:
    for i in range(count):
        rows[row, sine + i] = Number(math.sin(rows[row, angle + i]))
        rows[row, cosine + i] = Number(math.cos(rows[row, angle + i]))


def _plain(value: float) -> bool:
    return not isinstance(value, Number)


if __name__ == "__main__":
    show(tables())
