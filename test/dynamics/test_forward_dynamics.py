"""Forward dynamics with friction, by the mass matrix: against Pinocchio and MuJoCo, undoing
`inverse_dynamics`, and refusing what no torque accelerates in any certain way."""

from __future__ import annotations

import copy
import math

import numpy as np
import planar_arm
import pytest
from mujoco_peer import close, free_and_ball, pushed_states
from states import (
    SINGULAR,
    Case,
    acceleration_tolerance,
    every_robot,
    mechanisms,
    rounding_of_accelerations,
)

from rnea_control.dynamics import (
    Workspace,
    forward_dynamics,
    friction,
    inverse_dynamics,
)
from rnea_control.exceptions import ArgumentError
from rnea_control.model import Joint, RobotModel, pseudo_inertia
from rnea_control.model.rotations import rotation_from_rpy


@every_robot(60, states=2)
def test_agrees_with_pinocchio(case: Case) -> None:
    """Without friction, as exact as the mass matrix allows."""
    model = copy.deepcopy(case.model)
    model.damping = model.friction = case.zeros()
    ws, result = Workspace(model), case.zeros()
    for s, condition in zip(case.states, case.conditions, strict=True):
        tau = case.peer.rnea(s.q, s.v, s.a, s.forces)
        if math.isfinite(condition):
            forward_dynamics(model, ws, s.q, s.v, tau, result, s.forces)
            tolerance = acceleration_tolerance(case, s, tau, condition)
            np.testing.assert_allclose(result, s.a, rtol=0.0, atol=tolerance)
        else:
            assert model.name in SINGULAR
            with pytest.raises(ArgumentError, match="the mass matrix is singular"):
                forward_dynamics(model, ws, s.q, s.v, tau, result, s.forces)


def test_floating_and_spherical_joints_with_armature_damping_and_a_force_as_in_mujoco() -> None:
    model = free_and_ball()
    ws = Workspace(model)
    for s in pushed_states(model):
        close(
            forward_dynamics(model, ws, s.q, s.v, s.tau, np.zeros(model.nv), s.forces), s.a, 1e-11
        )


@pytest.mark.parametrize("state", planar_arm.STATES)
def test_planar_arm_with_friction(state) -> None:
    model = planar_arm.planar_arm()
    model.damping, model.friction, model.torque_offset = [0.5, 0.2], [1.0, 0.7], [0.1, -0.3]
    q, v, a = (row.copy() for row in state)
    ws = Workspace(model)
    tau = planar_arm.torque(q, v, a) + friction(model, ws, v, np.zeros(2))
    found = forward_dynamics(model, ws, q, v, tau, np.zeros(2))
    np.testing.assert_allclose(found, a, rtol=1e-11)


@mechanisms(60, joints=9)
def test_forward_dynamics_undoes_inverse_dynamics(case: Case) -> None:
    s = case.state
    tau = inverse_dynamics(case.model, case.ws, s.q, s.v, s.a, case.zeros(), s.forces)
    back = forward_dynamics(case.model, case.ws, s.q, s.v, tau, case.zeros(), s.forces)
    np.testing.assert_allclose(back, s.a, atol=rounding_of_accelerations(case))


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


def test_workspace_of_another_model_of_the_same_size_is_refused() -> None:
    """It has the other one's tree, which is that of the factors."""
    model, other = planar_arm.planar_arm(), planar_arm.planar_arm()
    with pytest.raises(ArgumentError, match="workspace was made for"):
        forward_dynamics(model, Workspace(other), *np.zeros((3, 2)), np.zeros(2))
