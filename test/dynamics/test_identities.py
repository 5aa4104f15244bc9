"""What holds for every robot: random trees of revolute, continuous, prismatic and fixed joints."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import random_tree

from rnea_control.dynamics import Workspace, gravity, nonlinear_effects, rnea
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

trees = st.builds(random_tree, st.integers(0, 2**32), st.integers(1, 12))
CASES = settings(max_examples=40, deadline=None, derandomize=True)


class Case:
    """A random robot in a random state."""

    def __init__(self, urdf: str) -> None:
        self.model = RobotModel.from_urdf_string(urdf)
        self.n = self.model.nv
        self.ws = Workspace(self.model)
        self.q, self.v, self.a = np.random.default_rng(self.n).standard_normal((3, self.n))

    def rnea(self, q, v, a) -> np.ndarray:
        return rnea(self.model, self.ws, q, v, np.ascontiguousarray(a), np.zeros(self.n))

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        zero = np.zeros(self.n)
        bias = self.rnea(q, zero, zero)
        return np.column_stack([self.rnea(q, zero, e) - bias for e in np.eye(self.n)])

    def energy(self, q: np.ndarray, v: np.ndarray) -> float:
        """Kinetic energy, and potential energy by the work of gravity along a straight path."""
        path = np.polynomial.legendre.leggauss(40)
        work = 0.0
        for x, weight in zip(*path, strict=True):
            s = 0.5 * (x + 1.0)
            work += 0.5 * weight * gravity(self.model, self.ws, s * q, np.zeros(self.n)) @ q
        return 0.5 * v @ self.mass_matrix(q) @ v + work


def cases(test):
    return CASES(given(trees)(test))


@cases
def test_torque_is_mass_times_acceleration_plus_nonlinear_effects(urdf: str) -> None:
    case = Case(urdf)
    if not case.n:
        return
    nle = nonlinear_effects(case.model, case.ws, case.q, case.v, np.zeros(case.n))
    tau = case.rnea(case.q, case.v, case.a)
    scale = np.abs(tau).max()
    np.testing.assert_allclose(case.mass_matrix(case.q) @ case.a + nle, tau, atol=1e-11 * scale)


@cases
def test_mass_matrix_is_symmetric_and_positive_definite(urdf: str) -> None:
    case = Case(urdf)
    if not case.n:
        return
    M = case.mass_matrix(case.q)
    np.testing.assert_allclose(M, M.T, atol=1e-11 * np.abs(M).max())
    assert np.linalg.eigvalsh(0.5 * (M + M.T)).min() > 0.0


@cases
def test_power_is_the_change_of_energy(urdf: str) -> None:
    case = Case(urdf)
    if not case.n:
        return
    power = case.rnea(case.q, case.v, case.a) @ case.v
    h = 1e-4

    def energy(t: float) -> float:
        return case.energy(case.q + t * case.v + 0.5 * t * t * case.a, case.v + t * case.a)

    change = (8 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12 * h)
    assert abs(power - change) < 1e-6 * (1.0 + abs(power) + abs(energy(0.0)))


@cases
def test_torque_is_linear_in_the_inertial_parameters(urdf: str) -> None:
    case = Case(urdf)
    if not case.n:
        return
    columns = slice(layout.INERTIA, layout.INERTIA + 10)
    rng = np.random.default_rng(1)
    first, second = rng.standard_normal((2, case.n, 10))
    torques = []
    for parameters in (first, second, 2.0 * first - 3.0 * second):
        case.model._bodies[1:, columns] = parameters
        torques.append(case.rnea(case.q, case.v, case.a))
    expected = 2.0 * torques[0] - 3.0 * torques[1]
    np.testing.assert_allclose(torques[2], expected, atol=1e-11 * np.abs(torques).max())


@cases
def test_gravity_is_rnea_at_rest(urdf: str) -> None:
    case = Case(urdf)
    if not case.n:
        return
    zero = np.zeros(case.n)
    g = gravity(case.model, case.ws, case.q, np.zeros(case.n))
    np.testing.assert_allclose(g, case.rnea(case.q, zero, zero), atol=1e-12 * (1 + np.abs(g).max()))


@cases
def test_merging_fixed_joints_changes_nothing(urdf: str) -> None:
    """The same tree with its fixed joints as joints that keep still."""
    case = Case(urdf)
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    head, *joints = urdf.split("<joint ")
    loose = [
        text.replace('type="fixed"', 'type="revolute"').replace("</joint>", limit)
        if 'type="fixed"' in text
        else text
        for text in joints
    ]
    free = RobotModel.from_urdf_string("<joint ".join([head, *loose]))
    place = [free.joint_names.index(name) for name in case.model.joint_names]
    q, v, a = np.zeros((3, free.nv))
    q[place], v[place], a[place] = case.q, case.v, case.a
    tau = rnea(free, Workspace(free), q, v, a, np.zeros(free.nv))[place]
    expected = case.rnea(case.q, case.v, case.a)
    np.testing.assert_allclose(
        tau, expected, rtol=1e-9, atol=1e-9 * (1 + np.abs(tau).max(initial=0))
    )
