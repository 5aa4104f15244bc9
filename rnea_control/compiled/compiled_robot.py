"""`compile_robot`: the recursions as straight-line machine code of one robot."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable, Collection
from pathlib import Path
from threading import Lock

import numpy as np

from rnea_control.array_types import FloatArray, IntArray
from rnea_control.compiled import calls
from rnea_control.compiled.batches import Array, Batches
from rnea_control.compiled.llvm_text import Precision
from rnea_control.compiled.machine_code import ALONE, MachineCode, Order, c_header, object_code
from rnea_control.compiled.programs import ALGORITHMS, WITH_FORCES, Algorithm, Program, trace
from rnea_control.dynamics import Workspace
from rnea_control.dynamics.arguments import ARGUMENT_FAULTS, argument_error, link_index
from rnea_control.dynamics.regressor import parameter_count
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel

# How many samples `normal_equations` takes at a time.
BLOCK = 512


def compile_robot(
    model: RobotModel, variable: Collection[str] = (), base_parameters: bool = False
) -> CompiledRobot:
    """Compiles the recursions for one robot: each algorithm when it is first called.

    Args:
        model: the robot.
        variable: what may change without compiling again: "gravity", "armature", or names of links
            whose payload changes. All else about the robot becomes part of the code; a call after
            it has changed raises ArgumentError.
        base_parameters: whether the inertial parameters are regrouped first, but for those of
            variable payloads: fewer operations, torques that differ by rounding.

    Raises:
        ArgumentError: not a RobotModel, or neither a link nor one of the words.
    """
    return CompiledRobot(model, variable, base_parameters)


class CompiledRobot:
    """The algorithms of `dynamics`, without a workspace, of one robot as it was when this was made.

    Threads may share it. Calls allocate nothing but in the first one of each algorithm, which
    compiles. Torques differ from those of `dynamics` by rounding only.

    Args:
        model, variable, base_parameters: as of `compile_robot`.

    Attributes:
        model: the robot.
    """

    def __init__(
        self, model: RobotModel, variable: Collection[str] = (), base_parameters: bool = False
    ) -> None:
        if not isinstance(model, RobotModel):
            raise ArgumentError(f"a robot is compiled from a RobotModel, not from {model!r}")
        self.model = model
        self._constants = calls.Constants(model, variable)
        self._lock = Lock()
        self._base_parameters = base_parameters
        self._code: dict[tuple[str, Order | None, Precision, int], MachineCode] = {}
        # Where the code is, once it is compiled.
        self._rnea = self._gravity = self._nonlinear_effects = self._crba = calls.NOWHERE
        self._aba = self._forward_kinematics = self._regressor = calls.NOWHERE
        self._rnea_with_external_forces = calls.NOWHERE
        self._jacobians: dict[str, IntArray] = {}
        self._parameters = parameter_count(model)
        self._batches = Batches(model, self._machine_code)

    def rnea(
        self,
        q: FloatArray,
        v: FloatArray,
        a: FloatArray,
        tau: FloatArray,
        external_forces: FloatArray | None = None,
    ) -> FloatArray:
        """As `rnea_control.dynamics.rnea`."""
        if external_forces is not None:
            return self.rnea_with_external_forces(q, v, a, external_forces, tau)
        try:
            found = calls.vector_of_q_v_a(self._rnea, q, v, a, tau)
        except ARGUMENT_FAULTS:
            found = calls.WRONG_ARGUMENT
        return tau if found == calls.RIGHT else self._again(found, "rnea", q, v, a, tau)

    def rnea_with_external_forces(
        self,
        q: FloatArray,
        v: FloatArray,
        a: FloatArray,
        external_forces: FloatArray,
        tau: FloatArray,
    ) -> FloatArray:
        """As `rnea` with external forces."""
        arrays = q, v, a, external_forces, tau
        try:
            found = calls.vector_of_forces(self._rnea_with_external_forces, *arrays)
        except ARGUMENT_FAULTS:
            found = calls.WRONG_ARGUMENT
        return tau if found == calls.RIGHT else self._again(found, WITH_FORCES, *arrays)

    def gravity(self, q: FloatArray, tau: FloatArray) -> FloatArray:
        """As `rnea_control.dynamics.gravity`."""
        try:
            found = calls.vector_of_q(self._gravity, q, tau)
        except ARGUMENT_FAULTS:
            found = calls.WRONG_ARGUMENT
        return tau if found == calls.RIGHT else self._again(found, "gravity", q, tau)

    def nonlinear_effects(self, q: FloatArray, v: FloatArray, tau: FloatArray) -> FloatArray:
        """As `rnea_control.dynamics.nonlinear_effects`."""
        try:
            found = calls.vector_of_q_v(self._nonlinear_effects, q, v, tau)
        except ARGUMENT_FAULTS:
            found = calls.WRONG_ARGUMENT
        return tau if found == calls.RIGHT else self._again(found, "nonlinear_effects", q, v, tau)

    def crba(self, q: FloatArray, M: FloatArray) -> FloatArray:
        """As `rnea_control.dynamics.crba`."""
        try:
            found = calls.matrix_of_q(self._crba, q, M)
        except ARGUMENT_FAULTS:
            found = calls.WRONG_ARGUMENT
        return M if found == calls.RIGHT else self._again(found, "crba", q, M)

    def aba(self, q: FloatArray, v: FloatArray, tau: FloatArray, a: FloatArray) -> FloatArray:
        """As `rnea_control.dynamics.aba`."""
        try:
            found = calls.vector_of_q_v_a(self._aba, q, v, tau, a)
        except ARGUMENT_FAULTS:
            found = calls.WRONG_ARGUMENT
        return a if found == calls.RIGHT else self._again(found, "aba", q, v, tau, a)

    def jacobian(self, q: FloatArray, link: str, J: FloatArray) -> FloatArray:
        """As `rnea_control.dynamics.jacobian`; each link is compiled by itself."""
        try:
            found = calls.matrix_of_q(self._jacobians.get(link, calls.NOWHERE), q, J)
        except ARGUMENT_FAULTS:
            found = calls.WRONG_ARGUMENT
        return J if found == calls.RIGHT else self._again(found, "jacobian", q, J, link=link)

    def forward_kinematics(self, q: FloatArray, poses: FloatArray) -> FloatArray:
        """As `rnea_control.dynamics.forward_kinematics`."""
        try:
            found = calls.poses_of_q(self._forward_kinematics, q, poses)
        except ARGUMENT_FAULTS:
            found = calls.WRONG_ARGUMENT
        return poses if found == calls.RIGHT else self._again(found, "forward_kinematics", q, poses)

    def regressor(self, q: FloatArray, v: FloatArray, a: FloatArray, Y: FloatArray) -> FloatArray:
        """As `rnea_control.analysis.regressor`."""
        try:
            found = calls.matrix_of_q_v_a(self._regressor, q, v, a, Y)
        except ARGUMENT_FAULTS:
            found = calls.WRONG_ARGUMENT
        return Y if found == calls.RIGHT else self._again(found, "regressor", q, v, a, Y)

    def bind(self, algorithm: str, *arrays: FloatArray) -> Callable[[], FloatArray]:
        """An algorithm for arrays that stay, as in a control loop: a function without arguments
        that takes what is in them, fills the last one and returns it. It is the fastest way.

        Args:
            algorithm: as of `address`, but "jacobian".
            arrays: its inputs, then its output, of one sample. They are checked now.

        Raises:
            ArgumentError: as the algorithm's own method; from the function, if the robot has
                changed.
        """
        rule = self._rule(algorithm)
        names = (*rule.inputs, rule.output)
        if len(arrays) != len(names):
            raise ArgumentError(f"{algorithm} takes {', '.join(names)}, not {len(arrays)} arrays")
        getattr(self, algorithm)(*arrays)
        target = calls.bound(self.target(algorithm), *arrays)
        call, right = calls.call_bound, calls.RIGHT
        output, check = arrays[-1], self._constants.check

        def run() -> FloatArray:
            while call(target) != right:
                check()
            return output

        # The code and the arrays stay where they are as long as there is this function.
        run.kept = self, arrays  # type: ignore[attr-defined]
        return run

    def batch(
        self,
        algorithm: str,
        *inputs: Array,
        out: Array | None = None,
        order: Order = Order.sample_major,
        workers: int | None = None,
    ) -> Array:
        """An algorithm at many samples, a vector register of them at a time.

        Args:
            algorithm: "rnea", "gravity", "nonlinear_effects", "crba", "aba", "regressor" or
                "forward_kinematics".
            inputs: its inputs, shape (samples, nq or nv) each, or (nq or nv, samples) for
                `Order.entry_major`, which is faster for arms. `rnea` takes external forces as a
                fourth one, shape (samples, links, 6) or (links, 6, samples). All are float64, or
                all float32: then twice as many samples fit in a register, and results are right to
                about 1e-5 of the largest.
            out: output of shape (samples, ...) as of one sample, with the samples last
                for `Order.entry_major`; a new array by default.
            order: where the samples are.
            workers: number of threads; by default one for each CPU, but one for fewer than two
                times `WORTH_A_THREAD` samples.

        Raises:
            ArgumentError: another algorithm; an array that is not C-contiguous, of these types and
                shapes; an output that shares memory with an input; the robot has changed.
        """
        self._rule(algorithm)
        self._constants.check()
        name = WITH_FORCES if algorithm == "rnea" and len(inputs) == 4 else algorithm
        return self._batches.run(name, inputs, out, order, workers)

    def normal_equations(
        self, q: FloatArray, v: FloatArray, a: FloatArray, tau: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The sums of Y^T Y and Y^T tau over many samples, with the `regressor` Y of each: what
        least squares needs to identify the parameters. No Y is stored for longer than a block.

        Args:
            q, v, a: shape (samples, nq or nv), as of `batch`, float64.
            tau: measured torques, shape (samples, nv), [Nm] or [N].

        Returns:
            Two arrays of shape (parameters, parameters) and (parameters,).

        Raises:
            ArgumentError: as `batch`; a number that is not finite, which would spoil all of both.
        """
        count = self._parameters
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
        """Where the code of an algorithm is, for callers in C: `c_header` says how it is called. It
        stays there as long as this object lives. Such calls check nothing.

        Args:
            algorithm: "rnea", "rnea_with_external_forces", "gravity", "nonlinear_effects", "crba",
                "aba", "regressor", "jacobian" or "forward_kinematics".
            link: of "jacobian".

        Raises:
            ArgumentError: there is no such algorithm or link, or the robot has changed.
        """
        return int(self.target(algorithm, link)[calls.ADDRESS])

    def target(self, algorithm: str, link: str | None = None) -> IntArray:
        """What the kernels of `calls` take, for other kernels; else as `address`."""
        self._constants.check()
        return self._compile(algorithm, link if algorithm == "jacobian" else None)

    def function(self, algorithm: str, link: str | None = None) -> Callable[..., None]:
        """`address` as a function of `ctypes`, which Numba's functions can call too.

        It takes pointers: to the inputs, to `model.bodies` (to anything where nothing is variable),
        and to the output.

        Args:
            algorithm, link: as of `address`.

        Raises:
            ArgumentError: as `address`.
        """
        address = self.address(algorithm, link)
        pointers = [ctypes.c_void_p] * (len(ALGORITHMS[algorithm].inputs) + 2)
        function = ctypes.CFUNCTYPE(None, *pointers)(address)
        function.robot = self  # type: ignore[attr-defined]  # so that the code stays
        return function

    def save(self, folder: str | os.PathLike[str], algorithms: Collection[str]) -> tuple[Path, ...]:
        """Writes an object file for each algorithm, and a header, for programs in C and C++.

        The code is for this kind of processor. It needs `sin`, `cos` and `tanh` of the C library.

        Args:
            folder: where to; it is made if it is not there.
            algorithms: which; see `address`, without "jacobian".

        Returns:
            The object files, then the header.
        """
        self._constants.check()
        rules = {algorithm: self._rule(algorithm) for algorithm in algorithms}
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        robot = re.sub(r"\W", "_", self.model.name)
        files = []
        for algorithm in rules:
            program = self._trace(algorithm)
            files.append(folder / f"{robot}_{algorithm}.o")
            files[-1].write_bytes(object_code(program, name=f"{robot}_{algorithm}"))
        header = folder / f"{robot}.h"
        header.write_text(c_header(robot, self.model, rules))
        return (*files, header)

    def _again(
        self, found: int, name: str, *arrays: FloatArray, link: str | None = None
    ) -> FloatArray:
        """After a call that could not be made: makes it, or says what is wrong."""
        if found == calls.WRONG_ARGUMENT:
            names = (*ALGORITHMS[name].inputs, ALGORITHMS[name].output)
            named = dict(zip(names, arrays, strict=True))
            raise argument_error(self.model, Workspace(self.model), **named)
        self._constants.check()
        if found == calls.NOT_COMPILED:
            self._compile(name, link)
        if link is not None:
            return self.jacobian(arrays[0], link, arrays[1])
        result: FloatArray = getattr(self, name)(*arrays)
        return result

    def _rule(self, name: str) -> Algorithm:
        """An algorithm that needs no link.

        Raises:
            ArgumentError: there is none of this name, or not for this robot.
        """
        if name not in ALGORITHMS or name == "jacobian":
            known = ", ".join(each for each in ALGORITHMS if each != "jacobian")
            raise ArgumentError(f"algorithm is {name!r}; it must be one of {known}")
        if name == "aba" and self.model.mimic_joints:
            raise ArgumentError(
                f"aba takes no joints that mimic others ({', '.join(self.model.mimic_joints)}); "
                "use forward_dynamics"
            )
        return ALGORITHMS[name]

    def _compile(self, name: str, link: str | None) -> IntArray:
        if link is None:
            self._rule(name)
        index = 0 if link is None else link_index(self.model, link)
        address = self._machine_code(name, None, Precision.double, index).address(ALONE)
        shape = ALGORITHMS[name].shape(self.model)
        target = calls.target(self.model, self._constants.expected, address, shape)
        if link is None:
            setattr(self, f"_{name}", target)
        else:
            self._jacobians[link] = target
        return target

    def _machine_code(
        self, name: str, order: Order | None, precision: Precision, link: int = 0
    ) -> MachineCode:
        with self._lock:
            key = (name, order, precision, link)
            code = self._code.get(key)
            if code is None:
                program = self._trace(name, link)
                code = MachineCode(object_code(program, order, precision=precision))
                self._code[key] = code
            return code

    def _trace(self, name: str, link: int = 0) -> Program:
        variable = self._constants.variable
        return trace(name, self.model, variable, link, self._base_parameters)
