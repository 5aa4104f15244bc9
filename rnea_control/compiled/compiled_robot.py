"""`CompiledRobot`: the recursions as straight-line machine code of one robot."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import numpy as np

from rnea_control.array_types import Matrices, Matrix, Vector
from rnea_control.compiled import batches, calls, machine_code
from rnea_control.compiled.batches import Array
from rnea_control.compiled.machine_code import ALONE, MachineCode, Order, assembly, object_code
from rnea_control.compiled.programs import ALGORITHMS, WITH_FORCES, Program, trace
from rnea_control.compiled.straight_line import Precision
from rnea_control.dynamics.regressor import parameter_count
from rnea_control.dynamics.workspace import check_array, link_index, shapes
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel

BLOCK = 512  # number of samples that `normal_equations` takes at a time


class CompiledRobot:
    """The algorithms of `dynamics` for one robot in its present state, without a workspace; each is
    compiled at its first call.

    Threads may share the object. Only the first call of each algorithm allocates. Results differ
    from the results of `dynamics` by rounding only.

    Args:
        model: the robot.
        variable: properties that may change without compiling again: "gravity", "armature", or
            names of links whose payload changes. All other properties of the robot become part of
            the code; a call after one of them has changed raises ArgumentError.
        base_parameters: True to regroup the inertial parameters first, except those of variable
            payloads: fewer operations, torques that differ by rounding.

    Attributes:
        model: the robot.

    Raises:
        ArgumentError: not a RobotModel, or an unknown word in `variable`.
    """

    def __init__(
        self, model: RobotModel, variable: Collection[str] = (), base_parameters: bool = False
    ) -> None:
        if not isinstance(model, RobotModel):
            raise ArgumentError(f"a robot is compiled from a RobotModel, not from {model!r}")
        self.model = model
        self._variable = tuple(variable)
        self._constants = calls.Constants(model, self._variable)
        self._lock = Lock()
        self._base_parameters = base_parameters
        self._code: dict[tuple[str, Order | None, Precision, int], MachineCode] = {}
        self._functions: dict[tuple[str, Order, Precision], Callable[..., None]] = {}
        # Callable of each algorithm: Python's `_call` until the algorithm is compiled.
        calls_of = {name: partial(self._call, name, None) for name in ALGORITHMS}
        self._calls: Any = SimpleNamespace(**calls_of)
        self._jacobians: dict[str, Callable[..., Matrix]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the robot only: a copy compiles again, or loads from disk, at its first calls. A
        robot that has changed since compilation cannot be copied."""
        self._constants.check()
        return CompiledRobot, (self.model, self._variable, self._base_parameters)

    def rnea(
        self, q: Vector, v: Vector, a: Vector, tau: Vector, external_forces: Matrix | None = None
    ) -> Vector:
        """Inverse dynamics, see `rnea_control.dynamics.rnea`."""
        if external_forces is not None:
            return self.rnea_with_external_forces(q, v, a, external_forces, tau)
        return self._calls.rnea(q, v, a, tau)

    def rnea_with_external_forces(
        self, q: Vector, v: Vector, a: Vector, external_forces: Matrix, tau: Vector
    ) -> Vector:
        """Inverse dynamics with external forces, see `rnea_control.dynamics.rnea`."""
        return self._calls.rnea_with_external_forces(q, v, a, external_forces, tau)

    def gravity(self, q: Vector, tau: Vector) -> Vector:
        """Gravity torques, see `rnea_control.dynamics.gravity`."""
        return self._calls.gravity(q, tau)

    def nonlinear_effects(self, q: Vector, v: Vector, tau: Vector) -> Vector:
        """Coriolis and gravity torques, see `rnea_control.dynamics.nonlinear_effects`."""
        return self._calls.nonlinear_effects(q, v, tau)

    def crba(self, q: Vector, M: Matrix) -> Matrix:
        """Mass matrix, see `rnea_control.dynamics.crba`."""
        return self._calls.crba(q, M)

    def aba(self, q: Vector, v: Vector, tau: Vector, a: Vector) -> Vector:
        """Forward dynamics, see `rnea_control.dynamics.aba`."""
        return self._calls.aba(q, v, tau, a)

    def jacobian(self, q: Vector, link: str, J: Matrix) -> Matrix:
        """Jacobian, see `rnea_control.dynamics.jacobian`; each link is compiled separately."""
        try:
            call = self._jacobians[link]
        except (KeyError, TypeError):
            return self._call("jacobian", link, q, J)
        return call(q, J)

    def forward_kinematics(self, q: Vector, poses: Matrices) -> Matrices:
        """Poses of all links, see `rnea_control.dynamics.forward_kinematics`."""
        return self._calls.forward_kinematics(q, poses)

    def regressor(self, q: Vector, v: Vector, a: Vector, Y: Matrix) -> Matrix:
        """Regressor, see `rnea_control.analysis.regressor`."""
        return self._calls.regressor(q, v, a, Y)

    def bind(self, algorithm: str, *arrays: Array) -> Callable[[], Array]:
        """Binds an algorithm to fixed arrays, as in a control loop: the fastest way to call it.

        Args:
            algorithm: "rnea", "rnea_with_external_forces", "gravity", "nonlinear_effects", "crba",
                "aba", "regressor" or "forward_kinematics".
            arrays: inputs of the algorithm, then its output, for one sample.

        Returns:
            A function without arguments that reads the inputs, fills the output and returns it. It
            raises ArgumentError if the robot has changed.

        Raises:
            ArgumentError: an unknown algorithm; an array that is not C-contiguous float64 of the
                algorithm's size; the robot has changed.
        """
        names = self._arrays(algorithm)
        if len(arrays) != len(names):
            raise ArgumentError(f"{algorithm} takes {', '.join(names)}, not {len(arrays)} arrays")
        self._call(algorithm, None, *arrays)
        return partial(getattr(self._calls, algorithm), *arrays)

    def batch(
        self,
        algorithm: str,
        *inputs: Array,
        out: Array | None = None,
        order: Order = Order.sample_major,
        workers: int | None = None,
    ) -> Array:
        """Runs an algorithm at many samples, a vector register of samples at a time.

        Args:
            algorithm: "rnea", "gravity", "nonlinear_effects", "crba", "aba", "regressor" or
                "forward_kinematics".
            inputs: inputs of the algorithm, shape (samples, nq or nv) each, or (nq or nv, samples)
                for `Order.entry_major`, which is faster for arms. The optional fourth input of
                `rnea` are external forces, shape (samples, links, 6) or (links, 6, samples). All
                are float64, or all float32: then twice as many samples fit in a register, and
                results are right to about 1e-5 of the largest.
            out: output, shape (samples, ...) followed by the shape for one sample, or with the
                samples last for `Order.entry_major`; a new array by default.
            order: order of the samples in memory.
            workers: number of threads; by default one for each CPU, but one for fewer than two
                times `WORTH_A_THREAD` samples.

        Raises:
            ArgumentError: an unknown algorithm; an array that is not C-contiguous or has another
                type or shape; an output that shares memory with an input; the robot has changed.
        """
        self._arrays(algorithm)
        self._constants.check()
        name = WITH_FORCES if algorithm == "rnea" and len(inputs) == 4 else algorithm
        return batches.run(self.model, name, self._bulk, inputs, out, order, workers)

    def normal_equations(
        self, q: Matrix, v: Matrix, a: Matrix, tau: Matrix
    ) -> tuple[Matrix, Vector]:
        """Sums of Y^T Y and Y^T tau over many samples, with the `regressor` Y of each sample: the
        normal equations of least squares. Y is stored for one block of samples at a time.

        Args:
            q: joint positions, shape (samples, nq), float64, [rad] or [m].
            v: joint velocities, shape (samples, nv), float64, [rad/s] or [m/s].
            a: joint accelerations, shape (samples, nv), float64, [rad/s^2] or [m/s^2].
            tau: measured torques, shape (samples, nv), [Nm] or [N].

        Returns:
            Two arrays of shape (parameters, parameters) and (parameters,).

        Raises:
            ArgumentError: an array that is not C-contiguous or has another type or shape; a number
                that is not finite, which would spoil both sums; the robot has changed.
        """
        count = parameter_count(self.model)
        matrix, vector = np.zeros((count, count)), np.zeros(count)
        samples = len(q)
        for name, array in {"q": q, "v": v, "a": a, "tau": tau}.items():
            columns = self.model.nq if name == "q" else self.model.nv
            right = np.shape(array) == (samples, columns) and array.dtype == np.float64
            if not right or not np.isfinite(array).all():
                raise ArgumentError(
                    f"{name} must be finite and of shape {(samples, columns)}, in float64"
                )
        block = np.empty((min(samples, BLOCK), self.model.nv, count))
        for begin in range(0, samples, BLOCK):
            rows = slice(begin, min(begin + BLOCK, samples))
            Y = self.batch("regressor", q[rows], v[rows], a[rows], out=block[: len(q[rows])])
            Y = Y.reshape(-1, count)
            matrix += Y.T @ Y
            vector += Y.T @ tau[rows].ravel()
        return matrix, vector

    def address(self, algorithm: str, link: str | None = None) -> int:
        """Address of an algorithm's code, for callers in C; `c_header` declares its arguments. It
        is valid as long as this object lives. Calls by the address check nothing.

        Args:
            algorithm: "rnea", "rnea_with_external_forces", "gravity", "nonlinear_effects", "crba",
                "aba", "regressor", "jacobian" or "forward_kinematics".
            link: name of the link, for "jacobian".

        Raises:
            ArgumentError: an unknown algorithm or link; the robot has changed.
        """
        link = link if algorithm == "jacobian" else None
        return self._compile(algorithm, link).address(ALONE)

    def function(self, algorithm: str, link: str | None = None) -> Callable[..., None]:
        """An algorithm's code as a function of `ctypes`, which Numba's functions can call too.

        Its arguments are pointers: to the inputs, to `model.bodies` (any pointer if nothing is
        variable), and to the output.

        Args:
            algorithm: "rnea", "rnea_with_external_forces", "gravity", "nonlinear_effects", "crba",
                "aba", "regressor", "jacobian" or "forward_kinematics".
            link: name of the link, for "jacobian".

        Raises:
            ArgumentError: an unknown algorithm or link; the robot has changed.
        """
        return self._function(algorithm, self.address(algorithm, link))

    def save(self, folder: str | os.PathLike[str], algorithms: Collection[str]) -> tuple[Path, ...]:
        """Writes an object file for each algorithm, and a header, for programs in C and C++.

        The code is for this kind of processor. It needs `sin`, `cos` and `tanh` of the C library.
        Functions have the robot's name as prefix: `_` replaces characters that C does not allow in
        a name, and `robot_` is put before a prefix with which a C name cannot begin.

        Args:
            folder: folder of the files; created if it does not exist.
            algorithms: "rnea", "rnea_with_external_forces", "gravity", "nonlinear_effects", "crba",
                "aba", "regressor" or "forward_kinematics".

        Returns:
            The object files, then the header.
        """
        self._constants.check()
        arrays = {algorithm: self._arrays(algorithm) for algorithm in algorithms}
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        robot = re.sub(r"\W", "_", self.model.name, flags=re.ASCII)
        robot = robot if robot[:1].isalpha() else f"robot_{robot}"
        files = []
        for algorithm in arrays:
            program = self._trace(algorithm)
            files.append(folder / f"{robot}_{algorithm}.o")
            files[-1].write_bytes(object_code(assembly(program, name=f"{robot}_{algorithm}")))
        header = folder / f"{robot}.h"
        header.write_text(machine_code.c_header(robot, self.model, arrays), encoding="utf-8")
        return (*files, header)

    def _call(self, name: str, link: str | None, *arrays: Array) -> Array:
        """Checks the arrays and the robot, compiles the algorithm if necessary, and runs it."""
        names, shape_of = ALGORITHMS[name].arrays, shapes(self.model)
        for each, array in zip(names, arrays, strict=True):
            check_array(each, array, shape_of[each], writeable=each == names[-1])
        *inputs, output = (each.ctypes.data for each in arrays)
        self.function(name, link)(*inputs, self.model.bodies.ctypes.data, output)
        return arrays[-1]

    def _arrays(self, name: str) -> tuple[str, ...]:
        """Names of the arrays of an algorithm that takes no link.

        Raises:
            ArgumentError: an unknown algorithm, or not available for this robot.
        """
        if name not in ALGORITHMS or name == "jacobian":
            known = ", ".join(each for each in ALGORITHMS if each != "jacobian")
            raise ArgumentError(f"algorithm is {name!r}; it must be one of {known}")
        if name == "aba" and self.model.mimic_joints:
            raise ArgumentError(
                f"aba takes no joints that mimic others ({', '.join(self.model.mimic_joints)}); "
                "use forward_dynamics"
            )
        return ALGORITHMS[name].arrays

    def _compile(self, name: str, link: str | None = None) -> MachineCode:
        """Compiles an algorithm for one sample; later calls run the code directly."""
        self._constants.check()
        if link is None:
            self._arrays(name)
        index = 0 if link is None else link_index(self.model, link)
        code = self._machine_code(name, None, Precision.double, index)
        if calls.direct():
            otherwise, expected = partial(self._call, name, link), self._constants.expected
            call = calls.function(code, otherwise, self.model.bodies, expected)
            if link is None:
                setattr(self._calls, name, call)
            else:
                self._jacobians[link] = call
        return code

    def _machine_code(
        self, name: str, order: Order | None, precision: Precision, link: int = 0
    ) -> MachineCode:
        with self._lock:
            key = (name, order, precision, link)
            code = self._code.get(key)
            if code is None:
                module = assembly(self._trace(name, link), order, precision=precision)
                if order is None and calls.direct():
                    shape_of = shapes(self.model)
                    calls.add_entry(module, [shape_of[each] for each in ALGORITHMS[name].arrays])
                code = self._code[key] = MachineCode(object_code(module))
            return code

    def _bulk(self, name: str, order: Order, precision: Precision) -> Callable[..., None]:
        """Code of an algorithm for many samples, as a function of `ctypes`."""
        key = (name, order, precision)
        if key not in self._functions:
            address = self._machine_code(name, order, precision).address(order.value)
            self._functions[key] = self._function(name, address, 2)
        return self._functions[key]

    def _function(self, name: str, address: int, counts: int = 0) -> Callable[..., None]:
        pointers = [ctypes.c_void_p] * (len(ALGORITHMS[name].arrays) + 1)
        function = ctypes.CFUNCTYPE(None, *pointers, *[ctypes.c_int64] * counts)(address)
        function.robot = self  # type: ignore[attr-defined]  # keeps the code alive
        return function

    def _trace(self, name: str, link: int = 0) -> Program:
        variable = self._constants.variable
        return trace(name, self.model, variable, link, self._base_parameters)


# Public name: making the object compiles the robot.
compile_robot = CompiledRobot
