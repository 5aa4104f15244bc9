"""Links, energies and forces between links, against Pinocchio on example and on random robots."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pinocchio_peer import Peer
from robots import example_robots, load_quietly, random_mechanism

from rnea_control.dynamics import (
    Workspace,
    center_of_mass,
    coriolis_matrix,
    crba,
    forward_kinematics,
    integrate,
    jacobian,
    joint_wrenches,
    kinetic_energy,
    link_acceleration,
    nonlinear_effects,
    passivity_torque,
    potential_energy,
    rnea,
    static_torque,
    world_to_link_force,
)
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel

RTOL = 1e-10
ROBOTS = {path.stem: path for path in example_robots()}
LEFT_OUT = ("ur3",)  # has no name
WORLD_ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


def close(ours, theirs) -> None:
    scale = np.abs(theirs).max(initial=0.0)
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=RTOL * scale + 1e-13)


@pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("name", sorted(set(ROBOTS) - set(LEFT_OUT)))
def test_example_robot(name: str, floating_base: bool) -> None:
    model = load_quietly(ROBOTS[name], floating_base=floating_base)
    if model.nv == 0:
        pytest.skip("no joint moves")
    check(model, Peer.from_urdf(ROBOTS[name], model, floating_base))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 10))
def test_random_mechanism(seed: int, count: int) -> None:
    joints, inertias = random_mechanism(seed, count)
    model = RobotModel.from_joints("mechanism", joints, inertias)
    if model.nv:
        check(model, Peer.from_joints(model, joints, inertias))


def check(model: RobotModel, peer: Peer) -> None:
    rng = np.random.default_rng(5)
    ws, q = Workspace(model), model.random(rng)
    q = np.where(np.abs(q) > 1e3, 1.0, q)  # limits of 1e16 rad leave no digits for differences
    v, a = rng.standard_normal((2, model.nv))
    theirs, data, q_pin = peer.model, peer.data, peer.q(q)
    frames = {
        link: theirs.getFrameId(link, pin.FrameType.BODY)
        for link in model.link_names
        if theirs.existFrame(link, pin.FrameType.BODY)
    }
    pin.forwardKinematics(theirs, data, q_pin, peer.v(v), peer.v(a))
    pin.updateFramePlacements(theirs, data)
    pin.computeJointJacobians(theirs, data, q_pin)
    poses = forward_kinematics(model, ws, q, np.zeros((len(model.link_names), 4, 4)))
    J, acceleration = np.zeros((6, model.nv)), np.zeros(6)
    for link, frame in frames.items():
        close(poses[model.link_names.index(link)], data.oMf[frame].homogeneous)
    for link in list(frames)[:: max(1, len(frames) // 8)]:
        frame = frames[link]
        jacobian(model, ws, q, link, J)
        expected = pin.getFrameJacobian(theirs, data, frame, WORLD_ALIGNED)
        close(J, expected.reshape(6, -1) @ peer.G)
        link_acceleration(model, ws, q, v, a, link, acceleration)
        expected = pin.getFrameClassicalAcceleration(theirs, data, frame, WORLD_ALIGNED)
        close(acceleration, expected.vector)
        force = rng.standard_normal(6)
        mapped = world_to_link_force(model, ws, q, link, force, np.zeros(6))
        close(mapped, data.oMf[frame].actInv(pin.Force(force)).vector)

    close(kinetic_energy(model, ws, q, v), 0.5 * v @ peer.mass_matrix(q) @ v)
    root = theirs.inertias[0]
    weight = -root.mass * np.array(model.gravity) @ root.lever
    close(potential_energy(model, ws, q), pin.computePotentialEnergy(theirs, data, q_pin) + weight)
    masses = [
        (root.mass, root.lever),
        (pin.computeTotalMass(theirs), pin.centerOfMass(theirs, data, q_pin)),
    ]
    total = sum(mass for mass, _ in masses)
    if total:
        com = center_of_mass(model, ws, q, np.zeros(3))
        close(com, sum(mass * center for mass, center in masses) / total)

    wrenches = np.zeros((1 + len(model.joint_names) + len(model.mimic_joints), 6))
    joint_wrenches(model, ws, q, v, a, wrenches)
    pin.rnea(theirs, data, q_pin, peer.v(v), peer.v(a))
    for row, joint in enumerate((*model.joint_names, *model.mimic_joints), start=1):
        number = theirs.getJointId(joint)
        close(wrenches[row], data.f[number].vector)
    above = [j for j in range(1, theirs.njoints) if theirs.parents[j] == 0]
    base = sum((data.liMi[j] * data.f[j] for j in above), pin.Force.Zero())
    base += pin.Force(
        -root.mass * np.array(model.gravity),
        np.cross(root.lever, -root.mass * np.array(model.gravity)),
    )
    close(wrenches[0], base.vector)
    check_passivity(model, q, v, a, rng)


def check_passivity(model: RobotModel, q, v, a, rng) -> None:
    ws, n = Workspace(model), model.nv
    zero, tau = np.zeros(n), np.zeros(n)
    C = coriolis_matrix(model, ws, q, v, np.zeros((n, n)))
    gravity_torque = rnea(model, ws, q, zero, zero, tau).copy()
    close(C @ v + gravity_torque, nonlinear_effects(model, ws, q, v, tau))
    v_r, a_r = rng.standard_normal((2, n))
    M = crba(model, ws, q, np.zeros((n, n)))
    close(passivity_torque(model, ws, q, v, v_r, a_r, tau), M @ a_r + C @ v_r + gravity_torque)
    # dM/dt = C + C^T is that dM/dt - 2C is skew
    h = 1e-6
    M_plus, M_minus = (
        crba(model, ws, moved(model, q, step * v), np.zeros((n, n))) for step in (h, -h)
    )
    rate = (M_plus - M_minus) / (2.0 * h)
    np.testing.assert_allclose(
        C + C.T, rate, atol=1e-6 * (1.0 + np.abs(rate).max() + np.abs(M).max())
    )
    force = rng.standard_normal((len(model.link_names), 6))
    expected = rnea(model, ws, q, zero, zero, np.zeros(n), force)
    np.testing.assert_array_equal(static_torque(model, ws, q, force, tau), expected)


def moved(model: RobotModel, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    return integrate(model, Workspace(model), q, step, np.zeros(model.nq))


def test_unknown_link_is_named() -> None:
    model = load_quietly(ROBOTS["panda"])
    with pytest.raises(ArgumentError, match="no link 'hand'"):
        jacobian(model, Workspace(model), model.neutral(), "hand", np.zeros((6, model.nv)))
