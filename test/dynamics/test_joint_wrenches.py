"""Forces between links: against Pinocchio, with the torque along the axis, and as the rate of
momentum."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import planar_arm
import pytest
from robots import PLANAR
from states import Case, Mechanism, assert_agree, every_robot, mechanisms

from rnea_control.dynamics import Workspace, forward_kinematics, joint_wrenches, rnea


def wrenches_of(case: Case, state, forces: np.ndarray | None = None) -> np.ndarray:
    count = 1 + len(case.model.joint_names) + len(case.model.mimic_joints)
    wrenches = np.full((count, 6), np.nan)
    arguments = state.q, state.v, state.a, wrenches
    return joint_wrenches(case.model, case.ws, *arguments, forces)


@every_robot(40, joints=10)
def test_agrees_with_pinocchio(case: Case) -> None:
    model, s, peer, data = case.model, case.state, case.peer.model, case.peer.data
    wrenches, pushed = wrenches_of(case, s), wrenches_of(case, s, s.forces)
    names = (*model.joint_names, *model.mimic_joints)
    for found, forces in ((wrenches, None), (pushed, s.forces)):
        case.peer.rnea(s.q, s.v, s.a, forces)
        for row, joint in enumerate(names, start=1):
            assert_agree(found[row], data.f[peer.getJointId(joint)].vector, 1e-13)
    case.peer.rnea(s.q, s.v, s.a)
    above = [j for j in range(1, peer.njoints) if peer.parents[j] == 0]
    base = sum((data.liMi[j] * data.f[j] for j in above), pin.Force.Zero())
    _, center, held = case.peer.root_link()
    base += pin.Force(held, np.cross(center, held))
    assert_agree(wrenches[0], base.vector, 1e-13)


@pytest.mark.parametrize("state", planar_arm.STATES)
def test_moment_about_the_axis_is_the_torque(state) -> None:
    model = planar_arm.planar_arm()
    forces = np.random.default_rng(1).standard_normal((3, 6))
    vectors = [row.copy() for row in state]
    ws = Workspace(model)
    tau = rnea(model, ws, *vectors, np.zeros(2), forces)
    wrenches = joint_wrenches(model, ws, *vectors, np.zeros((3, 6)), forces)
    np.testing.assert_allclose(wrenches[1:, 4], tau, rtol=1e-12)


def test_arm_that_hangs_still_pulls_with_its_weight() -> None:
    model = planar_arm.planar_arm()
    q, rest = np.array([np.pi / 2, 0.0]), np.zeros(2)  # turned from +x to -z
    wrenches = joint_wrenches(model, Workspace(model), q, rest, rest, np.zeros((3, 6)))
    G, p = planar_arm.G, PLANAR
    weights = (1.0 + p["m1"] + p["m2"]) * G, (p["m1"] + p["m2"]) * G, p["m2"] * G
    expected = np.zeros((3, 6))
    expected[0, 2] = weights[0]  # the ground pushes the base up, and
    expected[1, 0], expected[2, 0] = -weights[1], -weights[2]  # links' x axes point down
    np.testing.assert_allclose(wrenches, expected, rtol=0.0, atol=1e-13)


@mechanisms(40, joints=9)
def test_base_reaction_is_the_rate_of_momentum(case: Mechanism) -> None:
    """Of all mass points r: the integral of r r'' dm is X J X''^T with pseudo-inertia J and pose X;
    X'' by differences."""
    model, s, h = case.model, case.state, 1e-4

    def poses(time: float) -> np.ndarray:
        out = np.zeros((len(model.link_names), 4, 4))
        return forward_kinematics(model, case.ws, case.moved(s, time), out)

    X = poses(0.0)
    X_ddot = (poses(h) - 2.0 * X + poses(-h)) / h**2
    X_ddot[:, :3, 3] -= model.gravity  # what holds up against gravity
    moments = sum(
        X[k] @ case.inertias[link] @ X_ddot[k].T for k, link in enumerate(model.link_names)
    )
    force = moments[3, :3]
    moment = [moments[1, 2] - moments[2, 1], moments[2, 0] - moments[0, 2]]
    moment.append(moments[0, 1] - moments[1, 0])
    wrenches = wrenches_of(case, s)
    scale = 1.0 + np.abs(wrenches).max()
    np.testing.assert_allclose(wrenches[0], [*force, *moment], rtol=0.0, atol=1e-5 * scale)
