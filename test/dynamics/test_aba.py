"""Forward dynamics by articulated bodies: against Pinocchio, MuJoCo and formulas, and undoing
`rnea`."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import planar_arm
import pytest
from mujoco_peer import ROBOTS, close
from mujoco_peer import states as mujoco_states
from states import (
    SINGULAR,
    Case,
    acceleration_tolerance,
    assert_agree,
    every_robot,
    mechanisms,
    rounding_of_accelerations,
)

from rnea_control.dynamics import Workspace, aba, rnea
from rnea_control.exceptions import ArgumentError


@every_robot(60, mimics=False, states=2)
def test_agrees_with_pinocchio(case: Case) -> None:
    """As exact as the mass matrix allows."""
    for s, condition in zip(case.states, case.conditions, strict=True):
        tau = case.peer.rnea(s.q, s.v, s.a, s.forces)
        arguments = case.model, case.ws, s.q, s.v, tau, case.zeros(), s.forces
        if case.model.mimic_joints:
            with pytest.raises(ArgumentError, match=r"joints that mimic .* forward_dynamics"):
                aba(*arguments)
        elif math.isfinite(condition):
            tolerance = acceleration_tolerance(case, s, tau, condition)
            np.testing.assert_allclose(aba(*arguments), s.a, rtol=0.0, atol=tolerance)
        else:
            assert case.model.name in SINGULAR
            assert not np.isfinite(aba(*arguments)).all()


@mechanisms(40, joints=6, mimics=False)
def test_mechanism_agrees_with_pinocchios_own(case: Case) -> None:
    """Given torques, not those of a motion."""
    s, peer = case.state, case.peer
    condition = case.conditions[0]
    theirs = pin.aba(peer.model, peer.data, peer.q(s.q), peer.v(s.v), peer.v(s.a))
    a = aba(case.model, case.ws, s.q, s.v, s.a, case.zeros())
    assert_agree(a, peer.G.T @ theirs, 1e-14 * condition * np.abs(theirs).max())


@pytest.mark.parametrize("name", ROBOTS)
def test_robot_agrees_with_mujoco(name: str) -> None:
    for model, ws, peer, q, v, a in mujoco_states(name):
        tau = rnea(model, ws, q, v, a, np.zeros(model.nv))
        # MuJoCo keeps inertias in their principal axes, which costs it digits.
        tolerance = 1e-10 * np.linalg.cond(peer.mass_matrix()) + 1e-8
        close(aba(model, ws, q, v, tau, np.zeros(model.nv)), peer.forward(tau), tolerance)


@pytest.mark.parametrize("state", planar_arm.STATES)
def test_planar_arm(state) -> None:
    model = planar_arm.planar_arm()
    q, v, a = (row.copy() for row in state)
    found = aba(model, Workspace(model), q, v, planar_arm.torque(q, v, a), np.zeros(2))
    np.testing.assert_allclose(found, a, rtol=1e-11)


@mechanisms(60, joints=9, mimics=False)
def test_aba_undoes_rnea(case: Case) -> None:
    s = case.state
    tau = rnea(case.model, case.ws, s.q, s.v, s.a, case.zeros(), s.forces)
    back = aba(case.model, case.ws, s.q, s.v, tau, case.zeros(), s.forces)
    np.testing.assert_allclose(back, s.a, atol=rounding_of_accelerations(case))
