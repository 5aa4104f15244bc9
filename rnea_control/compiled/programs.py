"""The algorithms of `dynamics/` as straight-line programs for one robot."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from inspect import signature
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.compiled.tracing import Graph, Number, PlainFunctions, Reference
from rnea_control.dynamics.aba import aba_kernel
from rnea_control.dynamics.body import COLUMNS, row_count
from rnea_control.dynamics.crba import crba_kernel
from rnea_control.dynamics.kinematics import forward_kinematics_kernel, jacobian_kernel
from rnea_control.dynamics.regressor import regressor_kernel
from rnea_control.dynamics.rnea import gravity_kernel, rnea_kernel, rnea_with_forces_kernel
from rnea_control.dynamics.workspace import shapes
from rnea_control.exceptions import TraceError
from rnea_control.jit.compilation import source
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout
from rnea_control.model.rigid_body import pseudo_inertia_of, ten_parameters

Recorded = np.ndarray  # of numbers and Numbers


class Algorithm(NamedTuple):
    """Kernel and arrays of an algorithm.

    Attributes:
        kernel: the compiled function. Its arguments are arrays of the model, `memory` of a
            workspace, the index of a `link`, and `arrays`.
        arrays: names of the inputs, then of the output; `dynamics.workspace.shapes` has the shape
            of each.
    """

    kernel: Callable[..., None]
    arrays: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """Straight-line code, independent of a language.

    Attributes:
        name: name of the algorithm.
        inputs: shapes of the input arrays, by name.
        graph: the operations.
        results: reference for each entry of the output, in C order.
    """

    name: str
    inputs: dict[str, tuple[int, ...]]
    graph: Graph
    results: tuple[Reference, ...]

    @property
    def order(self) -> list[int]:
        """Operations that the results need, in the order of `needed`, beginning with the last
        result: the sums at the end of a limb are used before the sums of its parent, so that fewer
        values are kept between operations."""
        return self.needed(reversed(self.results))

    def needed(self, results: Iterable[Reference]) -> list[int]:
        """Indices of the operations that these results need, each after the operations that it
        uses; result by result, so that each limb is finished before the next begins."""
        order: list[int] = []
        done = [False] * len(self.graph.operations)
        for result in results:
            stack = [abs(result) - 1]
            while stack:
                index = stack[-1]
                if done[index]:
                    stack.pop()
                    continue
                open_ = [
                    abs(each) - 1
                    for each in self.graph.operations[index].arguments
                    if not done[abs(each) - 1]
                ]
                if open_:
                    stack.extend(reversed(open_))
                else:
                    done[index] = True
                    order.append(index)
                    stack.pop()
        return order


WITH_FORCES = "rnea_with_external_forces"  # name of `rnea` with external forces
ALGORITHMS = {
    "rnea": Algorithm(rnea_kernel, ("q", "v", "a", "tau")),
    WITH_FORCES: Algorithm(rnea_with_forces_kernel, ("q", "v", "a", "external_forces", "tau")),
    "regressor": Algorithm(regressor_kernel, ("q", "v", "a", "Y")),
    "gravity": Algorithm(gravity_kernel, ("q", "tau")),
    "nonlinear_effects": Algorithm(rnea_kernel, ("q", "v", "tau")),
    "crba": Algorithm(crba_kernel, ("q", "M")),
    "aba": Algorithm(aba_kernel, ("q", "v", "tau", "a")),
    "jacobian": Algorithm(jacobian_kernel, ("q", "J")),
    "forward_kinematics": Algorithm(forward_kinematics_kernel, ("q", "poses")),
}

BODIES = "bodies"  # array of the model with the entries that stay variable
_RIGHT_ANGLE = 1e-15  # largest entry that is rounding of 0 in a rotation by a right angle

# Indices in the ten inertial parameters.
_M = 0
_MCZ = 3
_IXX = 4
_IYY = 7


def trace(
    name: str,
    model: RobotModel,
    variable: Collection[tuple[int, int]] = (),
    link: int = 0,
    base_parameters: bool = False,
) -> Program:
    """Runs an algorithm once on recording numbers.

    Args:
        name: a key of `ALGORITHMS`.
        model: the robot.
        variable: entries of `model.bodies`, (row, column), that the code reads when it runs; all
            other entries become constants.
        link: index of the link for an algorithm that takes one.
        base_parameters: True to regroup the inertial parameters that are not variable.

    Raises:
        TraceError: the algorithm branches on a value, or always divides by 0.
    """
    kernel, (*names, output) = ALGORITHMS[name]
    graph, shape_of = Graph(), shapes(model)
    inputs = {array: shape_of[array] for array in names}
    arrays: dict[str, Any] = {
        array: _objects([graph.input(array, i) for i in range(math.prod(shape))]).reshape(shape)
        for array, shape in inputs.items()
    }
    bodies = model.bodies.copy()
    rotations = bodies[:, layout.ROTATION : layout.ROTATION + 9]
    rotations[1:][np.abs(rotations[1:]) < _RIGHT_ANGLE] = 0.0
    if base_parameters:
        inertia = range(layout.COLUMNS)[layout.PARAMETERS]
        bodies = _regrouped(bodies, {row for row, column in variable if column in inertia})
    bodies = bodies.astype(object)
    for row, column in variable:
        bodies[row, column] = graph.input(BODIES, row * layout.COLUMNS + column)
    result = np.zeros(shape_of[output], dtype=object)
    known = {
        "bodies": bodies,
        "links": model.links,
        "joint_links": model.joint_links,
        "memory": np.zeros((row_count(len(bodies) - 1), COLUMNS), dtype=object),
        "link": link,
        "a": np.zeros(model.nv, dtype=object),  # if it is not an input
        "external_forces": np.zeros((0, 6)),
        **arrays,
        output: result,
    }
    function = source(kernel)
    try:
        _functions(graph).plain(function)(*map(known.get, signature(function).parameters))
    except ZeroDivisionError as error:
        raise TraceError(
            f"{name} of {model.name!r} divides by 0: a joint moves no inertia. Give its link an "
            "<inertial>, or lock the joint"
        ) from error
    results = tuple(graph.reference(value) for value in result.ravel())
    return Program(name, {**inputs, BODIES: model.bodies.shape}, graph, results)


def _regrouped(bodies: FloatArray, kept: Collection[int]) -> FloatArray:
    """Copy of `model.bodies` with base parameters: the same torques from fewer numbers.

    A part of a body that is symmetric about the axis of its revolute joint, and has no moment of
    inertia about this axis, is not affected by the joint and can be assigned to the parent body.
    So m, mcz and Iyy of each body become 0, and Ixx becomes Ixx - Iyy. The moments and products of
    inertia of a body on a prismatic joint are assigned to its parent altogether [Khalil, Dombre
    2004, ch. 9.4]. The part that the root gets affects no joint.

    Torques and the mass matrix are the same in exact arithmetic; the single bodies are no longer
    physically possible. Rows in `kept` keep their inertial parameters.
    """
    bodies = bodies.copy()
    for i in range(len(bodies) - 1, 0, -1):
        row = bodies[i]
        parent = int(row[layout.PARENT])
        if row[layout.MOTION] != layout.AXIS or i in kept or parent in kept:
            continue
        own = row[layout.PARAMETERS]
        moved = np.zeros(10)
        if row[layout.S_LINEAR] == 0.0:
            moved[[_M, _MCZ, _IXX, _IYY]] = own[[_M, _MCZ, _IYY, _IYY]]
        elif row[layout.S_ANGULAR] == 0.0:
            moved[_IXX:] = own[_IXX:]
        own -= moved
        X_PB = layout.placement(row)
        bodies[parent, layout.PARAMETERS] += ten_parameters(
            X_PB @ pseudo_inertia_of(moved) @ X_PB.T
        )
    return bodies


def _objects(values: list) -> Recorded:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _functions(graph: Graph) -> PlainFunctions:
    def sincos(rows: Recorded, row: int, angle: int, sine: int, cosine: int, count: int) -> None:
        for i in range(count):
            x = graph.reference(rows[row, angle + i])
            constant = graph.operations[abs(x) - 1]
            if constant.name == "constant":
                value = math.copysign(constant.value, x)
                rows[row, sine + i], rows[row, cosine + i] = math.sin(value), math.cos(value)
            else:
                rows[row, sine + i] = graph.function("sine", x)
                rows[row, cosine + i] = graph.function("cosine", x)

    def recorded(name: str) -> Callable[[float | Number], Number]:
        return lambda x: graph.function(name, graph.reference(x))

    of_math = SimpleNamespace(sqrt=recorded("square_root"), tanh=recorded("hyperbolic_tangent"))
    return PlainFunctions({"sincos": sincos, "math": of_math})
