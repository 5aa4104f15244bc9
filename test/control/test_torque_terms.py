"""The controller's torque, split: each term by its own formula, and all of them together."""

from __future__ import annotations

import numpy as np
import pytest
from planar_arm import coriolis_torque, gravity_torque, mass_matrix, planar_arm

from rnea_control.control import ControlLaw, Controller, ControllerSettings, Gains, Waypoint
from rnea_control.control.torque_terms import TERMS, torque_terms
from rnea_control.dynamics import Workspace, friction

Q, V = np.array([0.35, -0.4]), np.array([0.6, 0.3])
EFFORT = np.array([2.0, -1.0])
MODEL = planar_arm()
MODEL.damping, MODEL.friction, MODEL.torque_offset = [0.5, 0.2], [1.0, 0.7], [0.1, -0.3]


def stepped(law: ControlLaw, helps: bool = True, hardware: bool = False) -> Controller:
    """A controller in the middle of a motion, with an arm that is off its path."""
    settings = ControllerSettings(
        Gains.uniform(2, 50.0, 8.0, 3.0),
        law,
        friction_compensation=helps,
        hardware_compensates_gravity=hardware,
    )
    c = Controller(MODEL, settings)
    c.hold(0.0, np.zeros(2))
    zero = np.zeros(2)
    if law != ControlLaw.gravity_compensation:
        c.follow(0.0, [Waypoint(1.0, np.array([0.8, -0.9]), zero, zero, EFFORT)], 0.0)
    for t in (0.1, 0.3, 0.5):
        c.step(t, Q, V, np.zeros(2))
    return c


def split(c: Controller) -> dict[str, np.ndarray]:
    terms = torque_terms(MODEL, Workspace(MODEL), c.settings, c.snapshot())
    return dict(zip(TERMS, terms, strict=True))


@pytest.mark.parametrize("hardware", [False, True])
@pytest.mark.parametrize("helps", [False, True])
@pytest.mark.parametrize("law", ControlLaw)
def test_terms_add_up_to_the_torque(law: ControlLaw, helps: bool, hardware: bool) -> None:
    c = stepped(law, helps, hardware)
    np.testing.assert_allclose(sum(split(c).values()), c.snapshot().torque, atol=1e-12)


def own_terms(law: ControlLaw, c: Controller) -> dict[str, np.ndarray]:
    """By the equations of motion of the arm, written out, and the definition of each law."""
    q_d, v_d, a_d, effort = c.snapshot().desired
    integral = c.snapshot().rows[6]
    u = 50.0 * (q_d - Q) + 8.0 * (v_d - V) + integral
    zero = np.zeros(2)
    rubbing = friction(MODEL, Workspace(MODEL), v_d.copy(), np.zeros(2))
    if law == ControlLaw.pd:
        return dict(zip(TERMS, (zero, zero, zero, zero, u, effort), strict=True))
    if law == ControlLaw.gravity_compensation:
        rubbing = friction(MODEL, Workspace(MODEL), V.copy(), np.zeros(2))
        terms = (gravity_torque(Q), zero, zero, rubbing, -8.0 * V, zero)
        return dict(zip(TERMS, terms, strict=True))
    q, v = (Q, V) if law == ControlLaw.computed_torque else (q_d, v_d)
    feedback = mass_matrix(Q) @ u if law == ControlLaw.computed_torque else u
    inertia = mass_matrix(q) @ a_d
    terms = (gravity_torque(q), coriolis_torque(q, v), inertia, rubbing, feedback, effort)
    return dict(zip(TERMS, terms, strict=True))


@pytest.mark.parametrize("law", ControlLaw)
def test_each_term_is_by_its_own_formula(law: ControlLaw) -> None:
    c = stepped(law)
    for name, value in own_terms(law, c).items():
        np.testing.assert_allclose(split(c)[name], value, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("law", [ControlLaw.computed_torque, ControlLaw.gravity_compensation])
def test_gravity_of_the_hardware_is_left_out(law: ControlLaw) -> None:
    terms, without = split(stepped(law)), split(stepped(law, hardware=True))
    np.testing.assert_allclose(without["gravity"], 0.0, atol=1e-12)
    for name in TERMS[1:]:
        np.testing.assert_allclose(without[name], terms[name], atol=1e-10, err_msg=name)


def test_feedforward_keeps_the_gravity_that_the_error_makes() -> None:
    """It asks for that of the desired position, and the hardware adds that of the measured one."""
    c = stepped(ControlLaw.feedforward_pd, hardware=True)
    expected = gravity_torque(c.desired[0]) - gravity_torque(Q)
    np.testing.assert_allclose(split(c)["gravity"], expected, atol=1e-10)


def test_torque_is_that_before_the_effort_limits() -> None:
    c = stepped(ControlLaw.pd)
    tau = np.zeros(2)
    c.step(0.6, np.array([3.0, 3.0]), V, tau)
    assert c.saturated and np.abs(c.snapshot().torque).max() > np.abs(tau).max()
    np.testing.assert_allclose(sum(split(c).values()), c.snapshot().torque)
