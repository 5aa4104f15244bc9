"""What holds for every mechanism: random trees of joints of all types, some of them mimicking."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from robots import random_mechanism

from rnea_control.dynamics import (
    Workspace,
    aba,
    crba,
    forward_dynamics,
    forward_kinematics,
    friction,
    gravity,
    integrate,
    inverse_dynamics,
    joint_wrenches,
    kinetic_energy,
    nonlinear_effects,
    potential_energy,
    rnea,
)
from rnea_control.exceptions import ArgumentError
from rnea_control.model import Joint, RobotModel, pseudo_inertia
from rnea_control.model.rotations import rotation_from_rpy


class Case:
    """A random mechanism in a random state."""

    def __init__(self, seed: int, count: int, mimics: bool = True) -> None:
        self.joints, self.inertias = random_mechanism(seed, count, mimics=mimics)
        self.model = RobotModel.from_joints("mechanism", self.joints, self.inertias)
        self.n = self.model.nv
        assume(self.n > 0)
        self.ws = Workspace(self.model)
        self.rng = np.random.default_rng(seed)
        self.q = self.model.random(self.rng)
        self.v, self.a = self.rng.standard_normal((2, self.n))
        self.forces = self.rng.standard_normal((len(self.model.link_names), 6))

    def zeros(self, *shape: int) -> np.ndarray:
        return np.zeros(shape or self.n)

    def moved(self, time: float) -> np.ndarray:
        """The position after a motion of constant acceleration, right to the third power."""
        step = time * self.v + 0.5 * time**2 * self.a
        return integrate(self.model, self.ws, self.q, step, np.zeros(self.model.nq))

    def energy(self, q: np.ndarray, v: np.ndarray) -> float:
        return kinetic_energy(self.model, self.ws, q, v) + potential_energy(self.model, self.ws, q)


def cases(examples: int, mimics: bool = True):
    seeds = st.builds(Case, st.integers(0, 2**32), st.integers(1, 9), st.just(mimics))
    return lambda test: settings(max_examples=examples, deadline=None, derandomize=True)(
        given(seeds)(test)
    )


@cases(60)
def test_torque_is_mass_times_acceleration_plus_nonlinear_effects(case: Case) -> None:
    M = crba(case.model, case.ws, case.q, case.zeros(case.n, case.n))
    nle = nonlinear_effects(case.model, case.ws, case.q, case.v, case.zeros())
    tau = rnea(case.model, case.ws, case.q, case.v, case.a, case.zeros())
    np.testing.assert_allclose(M @ case.a + nle, tau, atol=1e-11 * (1 + np.abs(tau).max()))
    np.testing.assert_array_equal(M, M.T)
    assert np.linalg.eigvalsh(M).min() > 0.0


@cases(60)
def test_forward_dynamics_undoes_inverse_dynamics(case: Case) -> None:
    state = case.model, case.ws, case.q, case.v
    M = crba(case.model, case.ws, case.q, case.zeros(case.n, case.n))
    scale = (
        1e-13 * np.linalg.cond(M) * (1.0 + np.abs(case.forces).max() + np.abs(case.v).max() ** 2)
    )
    tau = inverse_dynamics(*state, case.a, case.zeros(), case.forces)
    back = forward_dynamics(*state, tau, case.zeros(), case.forces)
    np.testing.assert_allclose(back, case.a, atol=1e-9 + 100.0 * scale)
    if not case.model.mimic_joints:
        tau = rnea(*state, case.a, case.zeros(), case.forces)
        back = aba(*state, tau, case.zeros(), case.forces)
        np.testing.assert_allclose(back, case.a, atol=1e-9 + 100.0 * scale)


@cases(40)
def test_power_is_the_change_of_energy(case: Case) -> None:
    power = rnea(case.model, case.ws, case.q, case.v, case.a, case.zeros()) @ case.v
    h = 1e-5
    after, before = (case.energy(case.moved(t), case.v + t * case.a) for t in (h, -h))
    scale = 1.0 + abs(power) + abs(case.energy(case.q, case.v))
    assert abs(power - (after - before) / (2.0 * h)) < 1e-5 * scale


@cases(25)
def test_work_is_the_change_of_energy_along_a_simulated_motion(case: Case) -> None:
    """Constant torques and viscous friction, by the midpoint rule."""
    model, ws, q, v = case.model, case.ws, case.q.copy(), 0.3 * case.v
    tau = gravity(model, ws, q, case.zeros()) + 0.1 * case.a
    model.friction = case.zeros()  # its kink at standstill is not for this rule
    h, steps, work = 2e-4, 100, 0.0
    a, middle = case.zeros(), np.zeros(model.nq)
    start = case.energy(q, v)
    for _ in range(steps):
        forward_dynamics(model, ws, q, v, tau, a)
        v_middle = v + 0.5 * h * a
        integrate(model, ws, q, 0.5 * h * v, middle)
        forward_dynamics(model, ws, middle, v_middle, tau, a)
        work += h * (tau - friction(model, ws, v_middle, case.zeros())) @ v_middle
        integrate(model, ws, q, h * v_middle, q)
        v = v + h * a
    scale = 1.0 + np.abs(v).max() ** 2 + np.abs(tau).max()
    assert abs(case.energy(q, v) - start - work) < 1e-5 * scale


@cases(40)
def test_base_reaction_is_the_rate_of_momentum(case: Case) -> None:
    """Of all mass points r: the integral of r r'' dm is X J X''^T with pseudo-inertia J and pose X;
    X'' by differences."""
    model, h = case.model, 1e-4

    def poses(time: float) -> np.ndarray:
        out = np.zeros((len(model.link_names), 4, 4))
        return forward_kinematics(model, case.ws, case.moved(time), out)

    X = poses(0.0)
    X_ddot = (poses(h) - 2.0 * X + poses(-h)) / h**2
    X_ddot[:, :3, 3] -= model.gravity  # what holds up against gravity
    moments = sum(
        X[k] @ case.inertias[link] @ X_ddot[k].T for k, link in enumerate(model.link_names)
    )
    force = moments[3, :3]
    moment = [moments[1, 2] - moments[2, 1], moments[2, 0] - moments[0, 2]]
    moment.append(moments[0, 1] - moments[1, 0])
    count = 1 + len(model.joint_names) + len(model.mimic_joints)
    wrenches = joint_wrenches(model, case.ws, case.q, case.v, case.a, np.zeros((count, 6)))
    scale = 1.0 + np.abs(wrenches).max()
    np.testing.assert_allclose(wrenches[0], [*force, *moment], atol=1e-5 * scale)


@cases(20)
def test_model_is_the_same_for_a_payload_and_for_a_heavier_link(case: Case) -> None:
    link = case.model.link_names[-1]
    load = 2.0 * np.outer([0.1, -0.2, 0.3, 1.0], [0.1, -0.2, 0.3, 1.0])  # a point
    inertias = {**case.inertias, link: case.inertias[link] + load}
    heavier = RobotModel.from_joints("heavier", case.joints, inertias)
    expected = rnea(heavier, Workspace(heavier), case.q, case.v, case.a, case.zeros())
    plain = rnea(case.model, case.ws, case.q, case.v, case.a, case.zeros())
    case.model.set_payload(link, 2.0, [0.1, -0.2, 0.3])
    loaded = rnea(case.model, case.ws, case.q, case.v, case.a, case.zeros())
    np.testing.assert_allclose(loaded, expected, atol=1e-12 * (1 + np.abs(expected).max()))
    case.model.set_payload(link, 0.0)
    again = rnea(case.model, case.ws, case.q, case.v, case.a, case.zeros())
    np.testing.assert_array_equal(again, plain)


@pytest.mark.parametrize("seed", range(40))
def test_joint_that_moves_nothing_is_refused(seed: int) -> None:
    """A point mass on the last joint's own axis; that the mass matrix is singular shows only within
    rounding."""
    rng = np.random.default_rng(seed)
    axis = rng.standard_normal(3)
    axis /= np.linalg.norm(axis)
    place = {"rotation": rotation_from_rpy(rng.standard_normal(3))}
    joints = [
        Joint("a", "revolute", "ground", "A", axis=(0, 1, 0), **place),
        Joint("b", "revolute", "A", "B", axis=axis, translation=(0.3, 0.1, 0.2), **place),
        Joint("fixed", "fixed", "B", "C", translation=0.2 * axis, **place),
    ]
    inertias = {
        "A": pseudo_inertia(1.0, np.zeros(3), 0.01 * np.eye(3)),
        "C": pseudo_inertia(1.0, np.zeros(3), np.zeros((3, 3))),
    }
    model = RobotModel.from_joints("skew", joints, inertias)
    q, v = rng.standard_normal((2, 2))
    with pytest.raises(ArgumentError, match="singular"):
        forward_dynamics(model, Workspace(model), q, v, np.ones(2), np.zeros(2))
