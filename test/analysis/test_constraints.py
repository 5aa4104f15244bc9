"""Closed loops and contacts: a four-bar linkage against its closed form, feet on the ground."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest
from pinocchio_peer import Peer
from robots import example_robot, load_quietly

from rnea_control import dynamics
from rnea_control.analysis.constraints import (
    Constraint,
    constrained_forward_dynamics,
    constrained_inverse_dynamics,
    constraint_bias,
    constraint_error,
    constraint_jacobian,
)
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import ArgumentError
from rnea_control.model import Joint, RobotModel, pseudo_inertia

G = 9.81
UP = (0.0, -1.0, 0.0)  # turns x toward z
CRANK, COUPLER = 0.3, 0.8
MASS_CRANK, MASS_ROCKER, MASS_COUPLER = 1.1, 1.7, 2.3
INERTIA = np.diag([0.001, 0.02, 0.02])


def parallelogram() -> tuple[RobotModel, list[Constraint]]:
    """Two cranks of one length, and a coupler that stays level; only the first crank is driven."""
    tip, end = np.array([CRANK, 0.0, 0.0]), np.array([COUPLER, 0.0, 0.0])
    joints = [
        Joint("crank", "continuous", "ground", "crank_link", axis=UP),
        Joint("pin", "continuous", "crank_link", "coupler", translation=tip, axis=UP),
        Joint("rocker", "continuous", "ground", "rocker_link", translation=end, axis=UP),
    ]
    inertias = {
        "crank_link": pseudo_inertia(MASS_CRANK, np.array([CRANK / 2, 0, 0]), INERTIA),
        "rocker_link": pseudo_inertia(MASS_ROCKER, np.array([CRANK / 2, 0, 0]), INERTIA),
        "coupler": pseudo_inertia(MASS_COUPLER, np.array([0.3, 0, 0]), INERTIA),
    }
    loop = Constraint("rocker_link", tip, "coupler", end)
    return RobotModel.from_joints("four_bar", joints, inertias), [loop]


def motion(angle: float, rate: float, acceleration: float) -> tuple[np.ndarray, ...]:
    """Crank, pin and rocker: the coupler stays level."""
    return tuple(np.array([1.0, -1.0, 1.0]) * x for x in (angle, rate, acceleration))


def closed_form(angle: float, acceleration: float) -> float:
    """The coupler moves on a circle without turning, so the rate does not matter."""
    about_pivots = 2 * INERTIA[1, 1] + (MASS_CRANK + MASS_ROCKER) * (CRANK / 2) ** 2
    first_moment = (MASS_CRANK + MASS_ROCKER) * CRANK / 2 + MASS_COUPLER * CRANK
    inertia = about_pivots + MASS_COUPLER * CRANK**2
    return inertia * acceleration + first_moment * G * math.cos(angle)


@pytest.mark.parametrize("state", [(0.4, 0.0, 0.0), (1.1, 2.0, -3.0), (-2.0, -1.5, 4.0)])
def test_four_bar_linkage(state) -> None:
    model, loops = parallelogram()
    ws = Workspace(model)
    q, v, a = motion(*state)
    np.testing.assert_allclose(constraint_error(model, ws, q, loops), 0.0, atol=1e-15)
    np.testing.assert_allclose(constraint_jacobian(model, ws, q, loops) @ v, 0.0, atol=1e-14)
    tau, f = constrained_inverse_dynamics(model, ws, q, v, a, loops, ["crank"])
    np.testing.assert_allclose(tau, [closed_form(state[0], state[2]), 0.0, 0.0], rtol=1e-12)
    assert f.shape == (3,)
    back, f_back = constrained_forward_dynamics(model, ws, q, v, tau, loops)
    np.testing.assert_allclose(back, a, atol=1e-10)
    np.testing.assert_allclose(f_back, f, atol=1e-9)
    # Forces of redundant constraints have the least norm.
    same, shared = constrained_forward_dynamics(model, ws, q, v, tau, [*loops, *loops])
    np.testing.assert_allclose(same, a, atol=1e-10)
    np.testing.assert_allclose(shared, np.tile(f, 2) / 2, atol=1e-9)


def test_what_breaks_the_loop_or_is_not_driven_is_refused() -> None:
    """`bent`: what the pin's position, velocity and acceleration have too much."""
    model, loops = parallelogram()
    for bent, driven, words in (
        ((0.0, 0.0, 0.5), None, "breaks the constraints: J a"),
        ((0.0, 0.5, 0.0), None, r"J v is .* must be 0"),
        ((0.5, 0.0, 0.0), None, "the distance of the points is .* must be 0"),
        ((0.0, 0.0, 0.0), [], r"is an actuated joint missing in .driven"),
        ((0.0, 0.0, 0.0), ["knee"], r"driven is \['knee'\]; .* of crank, pin, rocker"),
        ((0.0, 0.0, 0.0), "crank", r"driven is .* a list of joint names, each once"),
        ((0.0, 0.0, 0.0), ["crank", "crank"], r"driven is .* a list of joint names, each once"),
    ):
        state = motion(0.4, 0.0, 1.0)
        for vector, more in zip(state, bent, strict=True):
            vector[1] += more
        with pytest.raises(ArgumentError, match=words):
            constrained_inverse_dynamics(model, Workspace(model), *state, loops, driven)


def two_links(upper: float, lower: float) -> RobotModel:
    elbow = Joint("elbow", "continuous", "upper", "lower", translation=(1.0, 0, 0), axis=UP)
    joints = [Joint("shoulder", "continuous", "ground", "upper", axis=UP), elbow]
    tip = np.array([0.5, 0.0, 0.0])
    masses = {"upper": upper, "lower": lower}
    inertias = {name: pseudo_inertia(m, tip, m * np.eye(3)) for name, m in masses.items()}
    return RobotModel.from_joints("arm", joints, inertias)


@pytest.mark.parametrize("lightest", [1e-3, 1e-8, 1e-12])
def test_no_mass_is_too_light_to_be_held(lightest: float) -> None:
    """A heavy cart hangs on a light hook that is welded to the ground."""
    rail = Joint("rail", "prismatic", "ground", "cart", axis=(0, 0, 1))
    joints = [rail, Joint("hinge", "continuous", "cart", "hook", axis=(0, 1, 0))]
    hook = pseudo_inertia(lightest, np.zeros(3), lightest * np.eye(3))
    inertias = {"cart": pseudo_inertia(80.0, np.zeros(3), np.eye(3)), "hook": hook}
    model, rest = RobotModel.from_joints("cart", joints, inertias), np.zeros(2)
    weld = [Constraint("hook", welded=True)]
    a, f = constrained_forward_dynamics(model, Workspace(model), rest, rest, rest, weld)
    np.testing.assert_allclose(a, 0.0, atol=1e-12)
    np.testing.assert_allclose(f, [0, 0, (80.0 + lightest) * G, 0, 0, 0], rtol=1e-12, atol=1e-12)


def test_arm_held_at_its_tip_near_and_at_full_stretch() -> None:
    model = two_links(2.0, 1.0)
    ws, rest = Workspace(model), np.zeros(2)
    tip = [Constraint("lower", np.array([1.0, 0.0, 0.0]))]
    for bend in (1e-3, 1e-5, 1e-7):  # both joints are held, however little it is bent
        a, _ = constrained_forward_dynamics(model, ws, np.array([0.3, bend]), rest, rest, tip)
        np.testing.assert_allclose(a, 0.0, atol=1e-6)
    # Stretched, it can begin to fold; but not while it already moves, as its tip would come closer.
    stretched = np.array([0.3, 0.0])
    a, _ = constrained_forward_dynamics(model, ws, stretched, rest, rest, tip)
    np.testing.assert_allclose(constraint_jacobian(model, ws, stretched, tip) @ a, 0.0, atol=1e-12)
    # Folding turns the elbow back twice as fast; only that motion's own inertia and weight count.
    fold, M = np.array([1.0, -2.0]), dynamics.crba(model, ws, stretched, np.zeros((2, 2)))
    g = dynamics.gravity(model, ws, stretched, np.zeros(2))
    np.testing.assert_allclose(a, -(fold @ g) / (fold @ M @ fold) * fold, rtol=1e-9)
    with pytest.raises(ArgumentError, match="no acceleration keeps the constraints"):
        constrained_forward_dynamics(model, ws, stretched, np.array([1.0, -2.0]), rest, tip)
    with pytest.raises(ArgumentError, match=r"q is \[nan nan\]; it must be 2 finite numbers"):
        constrained_forward_dynamics(model, ws, np.full(2, math.nan), rest, rest, tip)


def test_what_has_no_inertia_must_be_held() -> None:
    model = two_links(2.0, 0.0)
    ws, rest = Workspace(model), np.zeros(2)
    with pytest.raises(ArgumentError, match="no inertia"):
        constrained_forward_dynamics(model, ws, np.ones(2), rest, rest, [])
    tip = [Constraint("lower", np.array([1.0, 0.0, 0.0]))]
    a, _ = constrained_forward_dynamics(model, ws, np.ones(2), rest, rest, tip)
    np.testing.assert_allclose(a, 0.0, atol=1e-12)


def test_bad_point_is_refused() -> None:
    for point in ([1.0, 2.0], "abc", None, [math.nan, 0.0, 0.0]):
        with pytest.raises(ArgumentError, match=r"point is .* three finite numbers"):
            Constraint("rocker_link", point)


def test_bias_is_the_change_of_the_jacobian() -> None:
    model, loops = parallelogram()
    ws, q, v = Workspace(model), np.array([0.3, 0.5, 1.2]), np.array([1.0, -2.0, 0.7])
    h = 1e-6
    after, before = (constraint_jacobian(model, ws, q + x * v, loops) for x in (h, -h))
    rate = (after - before) / (2 * h)
    np.testing.assert_allclose(constraint_bias(model, ws, q, v, loops), rate @ v, atol=1e-8)


@pytest.mark.parametrize("welded", [False, True])
def test_contact_against_pinocchio(welded: bool) -> None:
    path = example_robot("solo12")
    model = load_quietly(path, floating_base=True)
    model.damping = model.friction = np.zeros(model.nv)
    peer = Peer.from_urdf(path, model, True)
    rng = np.random.default_rng(0)
    ws, q = Workspace(model), model.random(rng)
    v, tau = rng.standard_normal((2, model.nv))
    feet = [Constraint(foot, welded=welded) for foot in ("FL_FOOT", "HR_FOOT")]
    J = constraint_jacobian(model, ws, q, feet)
    gamma = constraint_bias(model, ws, q, v, feet)
    a, f = constrained_forward_dynamics(model, ws, q, v, tau, feet)
    states = peer.q(q), peer.v(v), peer.G @ tau
    theirs = pin.forwardDynamics(peer.model, peer.data, *states, J @ peer.G.T, gamma)
    np.testing.assert_allclose(a, peer.G.T @ theirs, rtol=1e-7, atol=1e-7 * np.abs(a).max())
    np.testing.assert_allclose(J @ a + gamma, 0.0, atol=1e-8 * np.abs(a).max())
    np.testing.assert_allclose(f, peer.data.lambda_c, rtol=1e-6, atol=1e-6 * np.abs(f).max())


def test_one_foot_cannot_carry_the_six_freedoms_of_the_base() -> None:
    model = load_quietly(example_robot("solo12"), floating_base=True)
    q, rest = model.random(np.random.default_rng(0)), np.zeros(model.nv)
    foot, driven = [Constraint("FL_FOOT")], model.joint_names[1:]
    with pytest.raises(ArgumentError, match=r"cannot give this motion, .* are missing"):
        constrained_inverse_dynamics(model, Workspace(model), q, rest, rest, foot, driven)


def test_forces_of_a_loop_do_the_same_as_external_ones() -> None:
    """On the mechanism cut open, in a state and with torques and a push of no symmetry."""
    model, loops = parallelogram()
    ws, rng = Workspace(model), np.random.default_rng(3)
    q, v, _ = motion(0.7, 1.3, 0.0)
    tau, push = rng.standard_normal(3), rng.standard_normal((len(model.link_names), 6))
    a, f = constrained_forward_dynamics(model, ws, q, v, tau, loops, push)
    poses = dynamics.forward_kinematics(model, ws, q, np.zeros((len(model.link_names), 4, 4)))
    forces = push.copy()
    for link, sign in (("rocker_link", 1.0), ("coupler", -1.0)):
        k = model.link_names.index(link)
        point = poses[model.link_names.index("rocker_link")] @ [CRANK, 0.0, 0.0, 1.0]
        world_force = sign * np.concatenate([f, np.cross(point[:3], f)])
        forces[k] += dynamics.world_to_link_force(model, ws, q, link, world_force, np.zeros(6))
    open_ended = dynamics.forward_dynamics(model, ws, q, v, tau, np.zeros(3), forces)
    np.testing.assert_allclose(open_ended, a, rtol=0.0, atol=1e-11 * np.abs(a).max())
    back, _ = constrained_inverse_dynamics(model, ws, q, v, a, loops, ["crank"], push)
    same, _ = constrained_forward_dynamics(model, ws, q, v, back, loops, push)
    np.testing.assert_allclose(same, a, rtol=0.0, atol=1e-10 * np.abs(a).max())
