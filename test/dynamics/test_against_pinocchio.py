"""Every algorithm against Pinocchio, on every robot of example-robot-data that both load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pinocchio_peer import Peer
from robots import example_robots, load_quietly, random_mechanism

from rnea_control.dynamics import (
    Workspace,
    aba,
    crba,
    forward_dynamics,
    gravity,
    nonlinear_effects,
    rnea,
)
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel, RobotModelError

RTOL = 1e-10
STATES = 20

# A robot that is left out, and why. Anything else must agree.
LEFT_OUT = {"ur3.urdf": "the <robot> has no name, which urdf_parser_py requires"}

# Robots with joints that move nothing, which no torque can accelerate in any certain way.
SINGULAR = {
    "romeo": "LHand and RHand move no inertia",
    "RomeoH37": "its grippers move no inertia",
}
ROBOTS = example_robots()


def assert_agree(ours: np.ndarray, theirs: np.ndarray) -> None:
    # Torques that are zero by symmetry are rounding errors on both sides.
    assert np.abs(ours - theirs).max() <= RTOL * np.abs(theirs).max() + 1e-14


@pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_robot(path: Path, floating_base: bool) -> None:
    if path.name in LEFT_OUT:
        with pytest.raises(RobotModelError):
            load_quietly(path)
        pytest.skip(LEFT_OUT[path.name])
    model = load_quietly(path, floating_base=floating_base)
    if model.nv == 0:
        pytest.skip("no joint moves")
    compare(model, Peer.from_urdf(path, model, floating_base), STATES)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_random_mechanism_of_all_joint_types(seed: int, count: int) -> None:
    joints, inertias = random_mechanism(seed, count)
    model = RobotModel.from_joints("mechanism", joints, inertias)
    if model.nv:
        compare(model, Peer.from_joints(model, joints, inertias), 2)


def compare(model: RobotModel, peer: Peer, states: int) -> None:
    assert peer.G.shape[1] == model.nv and np.abs(peer.G).sum(axis=1).all()
    ws = Workspace(model)
    tau, M = np.zeros(model.nv), np.zeros((model.nv, model.nv))
    zero = np.zeros(model.nv)
    rng = np.random.default_rng(0)
    for _ in range(states):
        q = model.random(rng)
        v, a = rng.standard_normal((2, model.nv))
        forces = rng.standard_normal((len(model.link_names), 6))
        assert_agree(rnea(model, ws, q, v, a, tau), peer.rnea(q, v, a))
        assert_agree(rnea(model, ws, q, v, a, tau, forces), peer.rnea(q, v, a, forces))
        assert_agree(gravity(model, ws, q, tau), peer.rnea(q, zero, zero))
        assert_agree(nonlinear_effects(model, ws, q, v, tau), peer.rnea(q, v, zero))
        assert_agree(crba(model, ws, q, M), peer.mass_matrix(q))
        compare_forward(model, peer, q, v, a, forces)


def compare_forward(model: RobotModel, peer: Peer, q, v, a, forces) -> None:
    """Both ways back from torques to accelerations, as exact as the mass matrix allows."""
    ws, result = Workspace(model), np.zeros(model.nv)
    model.damping = model.friction = np.zeros(model.nv)
    M = peer.mass_matrix(q)
    if np.linalg.matrix_rank(M) < model.nv:
        assert model.name in SINGULAR
        with pytest.raises(ArgumentError, match="singular"):
            forward_dynamics(model, ws, q, v, peer.rnea(q, v, a), result)
        return
    tau = peer.rnea(q, v, a, forces)
    condition = max(1.0, 1e-4 * np.linalg.cond(M))
    scale = np.abs(a).max() + np.abs(np.linalg.solve(M, tau)).max()
    tolerance = RTOL * condition * scale
    forward_dynamics(model, ws, q, v, tau, result, forces)
    np.testing.assert_allclose(result, a, rtol=0.0, atol=tolerance)
    if not model.mimic_joints:
        aba(model, ws, q, v, tau, result, forces)
        np.testing.assert_allclose(result, a, rtol=0.0, atol=tolerance)


def test_how_many_robots(report) -> None:
    """Says how many robots were compared, and fails if robots go missing unnoticed."""
    still = [path.stem for path in ROBOTS if path.name not in LEFT_OUT and not moves(path)]
    compared = len(ROBOTS) - len(LEFT_OUT) - len(still)
    report(f"rnea agrees with Pinocchio on {compared} of the {len(ROBOTS)} example robots")
    for name, reason in LEFT_OUT.items():
        report(f"  left out: {name}: {reason}")
    report(f"  left out: {', '.join(still)}: no joint moves")
    for name, reason in SINGULAR.items():
        report(f"  forward dynamics left out: {name}: {reason}")
    assert compared >= 66


def moves(path: Path) -> bool:
    return load_quietly(path).nv > 0
