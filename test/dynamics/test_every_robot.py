"""All algorithms against Pinocchio: on every example robot, and on random mechanisms."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from operations import BOUNDS, counts
from pinocchio_peer import WORLD_ALIGNED
from robots import PANDA_JOINTS, example_robot, example_robots, load_quietly
from states import (
    COMPOSITES,
    NO_JOINT_MOVES,
    NOT_LOADED,
    SINGULAR,
    Case,
    Example,
    State,
    compared_robots,
    mechanisms,
)

from rnea_control import dynamics
from rnea_control.dynamics.regressor import inertial_parameters, parameter_names, regressor
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModelError

RTOL = 1e-10
# Pinocchio orders the inertia xx, xy, yy, xz, yz, zz.
FROM_PINOCCHIO = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]


@pytest.mark.parametrize(("path", "floating_base"), compared_robots())
def test_robot_agrees_with_pinocchio(path: Path, floating_base: bool) -> None:
    assert_all_agree(Example(path, floating_base, states=5))


@mechanisms(100, states=2)
def test_mechanism_agrees_with_pinocchio(case: Case) -> None:
    assert_all_agree(case)


def assert_all_agree(case: Case) -> None:
    for s in case.states:
        torques_agree(case, s)
        accelerations_agree(case, s)
    for agree in (coriolis_agrees, energies_agree, links_agree):
        agree(case, case.state)
    for agree in (wrenches_agree, steps_agree, regressor_agrees):
        agree(case, case.state)


def assert_agree(ours: np.ndarray, theirs: np.ndarray, rounding: float = 1e-14) -> None:
    """To ten digits of the largest value; values that are zero by symmetry are rounding errors."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    scale = np.abs(theirs).max(initial=0.0)
    assert np.abs(ours - theirs).max(initial=0.0) <= RTOL * scale + rounding


def torques_agree(case: Case, s: State) -> None:
    model, peer, zero = case.model, case.peer, case.zeros()
    tau = dynamics.rnea(model, case.ws, s.q, s.v, s.a, case.zeros())
    assert_agree(tau, peer.rnea(s.q, s.v, s.a))
    pushed = dynamics.rnea(model, case.ws, s.q, s.v, s.a, case.zeros(), s.forces)
    assert_agree(pushed, peer.rnea(s.q, s.v, s.a, s.forces))
    bias = dynamics.nonlinear_effects(model, case.ws, s.q, s.v, case.zeros())
    assert_agree(bias, peer.rnea(s.q, s.v, zero))
    assert_agree(dynamics.gravity(model, case.ws, s.q, case.zeros()), peer.rnea(s.q, zero, zero))
    static = dynamics.static_torque(model, case.ws, s.q, s.forces, case.zeros())
    assert_agree(static, peer.rnea(s.q, zero, zero, s.forces))
    M = dynamics.crba(model, case.ws, s.q, np.full((case.n, case.n), np.nan))
    assert_agree(M, peer.mass_matrix(s.q))
    np.testing.assert_array_equal(M, M.T)
    model.torque_offset = case.rng.standard_normal(case.n)
    with_friction = dynamics.inverse_dynamics(model, case.ws, s.q, s.v, s.a, case.zeros(), s.forces)
    rubbing = dynamics.friction(model, case.ws, s.v, case.zeros())
    np.testing.assert_array_equal(with_friction, pushed + rubbing)


def accelerations_agree(case: Case, s: State) -> None:
    """As exact as the mass matrix allows; what has none is refused or not finite."""
    model, M = case.model, case.peer.mass_matrix(s.q)
    tau = case.peer.rnea(s.q, s.v, s.a, s.forces)
    total = tau + dynamics.friction(model, case.ws, s.v, case.zeros())
    of_aba = case.ws, s.q, s.v, tau, case.zeros(), s.forces
    of_matrix = case.ws, s.q, s.v, total, case.zeros(), s.forces
    condition = condition_of(M)
    if not math.isfinite(condition):
        assert model.name in SINGULAR
        with pytest.raises(ArgumentError, match="singular"):
            dynamics.forward_dynamics(model, *of_matrix)
        assert model.mimic_joints or not np.isfinite(dynamics.aba(model, *of_aba)).all()
        return
    scale = np.abs(s.a).max() + np.abs(np.linalg.solve(M, tau)).max()
    tolerance = RTOL * max(1.0, 1e-4 * condition) * scale
    found = dynamics.forward_dynamics(model, *of_matrix)
    np.testing.assert_allclose(found, s.a, rtol=0.0, atol=tolerance)
    if not model.mimic_joints:
        np.testing.assert_allclose(dynamics.aba(model, *of_aba), s.a, rtol=0.0, atol=tolerance)


def condition_of(M: np.ndarray) -> float:
    """Infinite if it is singular to within rounding."""
    values = np.linalg.svd(M, compute_uv=False)
    if values[-1] <= values[0] * len(M) * np.finfo(float).eps:
        return math.inf
    return float(values[0] / values[-1])


def without_huge_angles(q: np.ndarray) -> np.ndarray:
    """Limits of 1e16 rad leave no digits for differences."""
    return np.where(np.abs(q) > 1e3, 1.0, q)


def coriolis_agrees(case: Case, s: State) -> None:
    """The matrix is Pinocchio's, gives the torques, and is passive; the momentum has it too."""
    model, n, peer = case.model, case.n, case.peer
    q, v = without_huge_angles(s.q), s.v

    def mass_matrix(q: np.ndarray) -> np.ndarray:
        return dynamics.crba(model, case.ws, q, case.zeros(n, n))

    C, M = dynamics.coriolis_matrix(model, case.ws, q, v, np.full((n, n), np.nan)), mass_matrix(q)
    if not set(model.joint_types) & set(COMPOSITES):
        theirs = pin.computeCoriolisMatrix(peer.model, peer.data, peer.q(q), peer.v(v))
        assert_agree(C, peer.matrix(theirs), 1e-13)
    g = dynamics.gravity(model, case.ws, q, case.zeros())
    assert_agree(C @ v + g, dynamics.nonlinear_effects(model, case.ws, q, v, case.zeros()), 1e-13)
    # dM/dt = C + C^T is that dM/dt - 2C is skew
    h = 1e-6
    after, before = (mass_matrix(case.moved(q, step * v)) for step in (h, -h))
    rate = (after - before) / (2.0 * h)
    scale = 1.0 + np.abs(rate).max() + np.abs(M).max()
    np.testing.assert_allclose(C + C.T, rate, rtol=0.0, atol=1e-6 * scale)
    v_r, a_r = np.random.default_rng(5).standard_normal((2, n))
    tau = dynamics.passivity_torque(model, case.ws, q, v, v_r, a_r, case.zeros())
    assert_agree(tau, M @ a_r + C @ v_r + g, 1e-13)
    p, p_rate = case.zeros(), case.zeros()
    assert dynamics.generalized_momentum(model, case.ws, q, v, p, p_rate) is p
    assert_agree(p, M @ v, 1e-12)
    assert_agree(p_rate, C.T @ v - g, 1e-12)


def energies_agree(case: Case, s: State) -> None:
    model, theirs, data = case.model, case.peer.model, case.peer.data
    q = case.peer.q(s.q)
    expected = 0.5 * s.v @ case.peer.mass_matrix(s.q) @ s.v
    assert_agree(dynamics.kinetic_energy(model, case.ws, s.q, s.v), expected, 1e-13)
    mass, center, held = case.peer.root_link()
    expected = pin.computePotentialEnergy(theirs, data, q) + held @ center
    assert_agree(dynamics.potential_energy(model, case.ws, s.q), expected, 1e-13)
    others, of_others = pin.computeTotalMass(theirs), pin.centerOfMass(theirs, data, q)
    assert mass + others > 0.0
    expected = (mass * center + others * of_others) / (mass + others)
    assert_agree(dynamics.center_of_mass(model, case.ws, s.q, np.zeros(3)), expected, 1e-13)


def links_agree(case: Case, s: State) -> None:
    model, peer, theirs, data = case.model, case.peer, case.peer.model, case.peer.data
    poses = np.full((len(model.link_names), 4, 4), np.nan)
    dynamics.forward_kinematics(model, case.ws, s.q, poses)
    places = peer.place_links(s.q)
    for link, pose, force in zip(model.link_names, poses, s.forces, strict=True):
        place = places.get(link, pin.SE3.Identity())
        assert_agree(pose, place.homogeneous, 1e-13)
        mapped = dynamics.world_to_link_force(model, case.ws, s.q, link, force, np.zeros(6))
        assert_agree(mapped, place.actInv(pin.Force(force)).vector, 1e-13)
    q = peer.q(s.q)
    pin.forwardKinematics(theirs, data, q, peer.v(s.v), peer.v(s.a))
    pin.updateFramePlacements(theirs, data)
    pin.computeJointJacobians(theirs, data, q)
    for link in list(peer.frames)[:: max(1, len(peer.frames) // 8)]:
        frame = peer.frames[link], WORLD_ALIGNED
        J = dynamics.jacobian(model, case.ws, s.q, link, np.full((6, case.n), np.nan))
        expected = pin.getFrameJacobian(theirs, data, *frame)
        assert_agree(J, expected.reshape(6, -1) @ peer.G, 1e-13)
        of_link = s.q, s.v, s.a, link, np.full(6, np.nan)
        acceleration = dynamics.link_acceleration(model, case.ws, *of_link)
        expected = pin.getFrameClassicalAcceleration(theirs, data, *frame)
        assert_agree(acceleration, expected.vector, 1e-13)


def wrenches_agree(case: Case, s: State) -> None:
    model, peer, data = case.model, case.peer.model, case.peer.data
    joints = (*model.joint_names, *model.mimic_joints)
    for forces in (s.forces, None):
        wrenches = np.full((1 + len(joints), 6), np.nan)
        dynamics.joint_wrenches(model, case.ws, s.q, s.v, s.a, wrenches, forces)
        case.peer.rnea(s.q, s.v, s.a, forces)
        for wrench, joint in zip(wrenches[1:], joints, strict=True):
            assert_agree(wrench, data.f[peer.getJointId(joint)].vector, 1e-13)
    above = [j for j in range(1, peer.njoints) if peer.parents[j] == 0]
    base = sum((data.liMi[j] * data.f[j] for j in above), pin.Force.Zero())
    _, center, held = case.peer.root_link()
    base += pin.Force(held, np.cross(center, held))
    assert_agree(wrenches[0], base.vector, 1e-13)


def steps_agree(case: Case, s: State) -> None:
    model, peer, q = case.model, case.peer, without_huge_angles(s.q)
    for size in (1e-9, 1e-5, 1e-2, 1.0):
        step = size * s.v
        reached = dynamics.integrate(model, case.ws, q, step, np.full(model.nq, np.nan))
        theirs = pin.integrate(peer.model, peer.q(q), peer.v(step))
        assert pin.isSameConfiguration(peer.model, peer.q(reached), theirs, 1e-12)
        in_place = q.copy()
        dynamics.integrate(model, case.ws, in_place, step, in_place)
        np.testing.assert_array_equal(in_place, reached)
        back = dynamics.difference(model, case.ws, q, reached, np.full(model.nv, np.nan))
        again = case.moved(q, back)
        turns = model.continuous * 2.0 * math.pi * np.round((reached - again) / (2.0 * math.pi))
        assert pin.isSameConfiguration(peer.model, peer.q(again + turns), peer.q(reached), 1e-9)
        if np.abs(step).max() < 1.0:
            np.testing.assert_allclose(back, step, atol=1e-9 * size + 1e-15)


def regressor_agrees(case: Case, s: State) -> None:
    model, peer, theirs = case.model, case.peer, case.peer.model
    Y = np.full((model.nv, len(parameter_names(model))), np.nan)
    assert regressor(model, case.ws, s.q, s.v, s.a, Y) is Y
    parameters = inertial_parameters(model)
    tau = dynamics.inverse_dynamics(model, case.ws, s.q, s.v, s.a, case.zeros())
    scale = np.abs(tau).max()
    np.testing.assert_allclose(Y @ parameters, tau, rtol=0.0, atol=1e-12 * scale)
    joints = (*model.joint_names, *model.mimic_joints)
    numbers = [theirs.getJointId(name) for name in joints]
    phi = [theirs.inertias[k].toDynamicParameters()[FROM_PINOCCHIO] for k in numbers]
    bodies = parameters[: 10 * len(joints)].reshape(-1, 10)
    np.testing.assert_allclose(bodies, phi, rtol=1e-9, atol=1e-12)
    columns = [10 * (k - 1) + part for k in numbers for part in FROM_PINOCCHIO]
    state = peer.q(s.q), peer.v(s.v), peer.v(s.a)
    expected = pin.computeJointTorqueRegressor(theirs, peer.data, *state)
    expected = peer.G.T @ np.reshape(expected, (theirs.nv, -1))[:, columns]
    ours, scale = Y[:, : 10 * len(joints)], np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(ours, expected, rtol=0.0, atol=RTOL * scale)


STICKING_VELOCITY = 0.01  # as documented


@mechanisms(20)
def test_friction_of_every_joint_takes_power_and_the_offset_is_added(case: Case) -> None:
    model, v = case.model, case.state.v
    v[::2] *= 1e-3  # near standstill
    tau = dynamics.friction(model, case.ws, v, case.zeros() * np.nan)
    expected = model.damping * v + model.friction * np.tanh(v / STICKING_VELOCITY)
    np.testing.assert_allclose(tau, expected, rtol=1e-14, atol=0.0)
    assert (tau * v >= 0.0).all()
    model.torque_offset = case.rng.standard_normal(case.n)
    with_offset = dynamics.friction(model, case.ws, v, case.zeros())
    np.testing.assert_allclose(with_offset, expected + model.torque_offset, rtol=1e-12, atol=1e-14)


def test_parameters_and_columns_follow_the_chosen_order_of_joints() -> None:
    cases = []
    for names in (PANDA_JOINTS, PANDA_JOINTS[::-1]):
        cases.append(Case(load_quietly(example_robot("panda"), names), 0, 1))
    ours, names = (parameter_names(case.model) for case in cases)
    assert len(set(ours)) == len(ours) == 98
    assert ours[:2] == ("panda_link1.m", "panda_link1.mcx") and ours[21] == "panda_link3.mcx"
    assert ours[70] == "panda_joint1.armature" and ours[-1] == "panda_joint7.torque_offset"
    floating = load_quietly(example_robot("panda"), PANDA_JOINTS, floating_base=True)
    assert "root_joint[5].damping" in parameter_names(floating)
    assert names[0] == "panda_link7.m" and names[70] == "panda_joint7.armature"
    place = [ours.index(name) for name in names]
    forward, jumbled = (inertial_parameters(case.model) for case in cases)
    np.testing.assert_allclose(jumbled, forward[place])
    s = cases[0].state
    Y, other = np.zeros((2, 7, 98))
    regressor(cases[0].model, cases[0].ws, s.q, s.v, s.a, Y)
    regressor(cases[1].model, cases[1].ws, *(x[::-1].copy() for x in (s.q, s.v, s.a)), other)
    np.testing.assert_allclose(other, Y[::-1, place], rtol=0.0, atol=1e-12)


# What the algorithms take on a chain of n revolute joints, multiplications and additions: less than
# textbooks promise, and an operation more is a change to be seen.
MOST = {
    "rnea": (lambda n: 134 * n - 105, lambda n: 106 * n - 102),
    "aba": (lambda n: 299 * n - 301, lambda n: 277 * n - 312),
    "crba": (lambda n: (9 * n**2 + 233 * n) // 2 - 54, lambda n: 4 * n**2 + 100 * n - 52),
}


def test_operations_on_a_chain_of_revolute_joints() -> None:
    for algorithm, by_joints in counts((2, 3, 7, 20)).items():
        for n, found in by_joints.items():
            bounds = zip(found, MOST[algorithm], BOUNDS[algorithm], strict=True)
            assert all(0 < count <= most(n) <= promised(n) for count, most, promised in bounds)


def test_no_example_robot_goes_missing(report) -> None:
    paths = example_robots()
    assert all(load_quietly(example_robot(name)).nv == 0 for name in NO_JOINT_MOVES)
    compared = sum(not floating_base for _, floating_base in (p.values for p in compared_robots()))
    assert compared == len(paths) - len(NOT_LOADED) - len(NO_JOINT_MOVES)
    assert compared >= 66
    report(f"all algorithms agree with Pinocchio on {compared} of the {len(paths)} example robots")
    for name, reason in {**NOT_LOADED, **SINGULAR}.items():
        report(f"  left out, or its forward dynamics: {name}: {reason}")
    for name in NOT_LOADED:
        with pytest.raises(RobotModelError, match="<robot> has no attribute 'name'"):
            load_quietly(example_robot(name))
