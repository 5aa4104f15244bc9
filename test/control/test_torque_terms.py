"""The controller's torque, split: each term by its own formula, and all of them together."""

from __future__ import annotations

import numpy as np
import pytest
from controllers import JOINT_SPACE
from planar_arm import coriolis_matrix, gravity_torque, mass_matrix, planar_arm

from rnea_control.control import ControlLaw, Controller, ControllerSettings, Gains, Waypoint
from rnea_control.control.controller_state import TERMS, torque_terms
from rnea_control.dynamics import Workspace, friction

Q, V = np.array([0.35, -0.4]), np.array([0.6, 0.3])
EFFORT, ROTORS = np.array([2.0, -1.0]), np.array([0.3, 0.1])
MODEL = planar_arm()
MODEL.damping, MODEL.friction, MODEL.torque_offset = [0.5, 0.2], [1.0, 0.7], [0.1, -0.3]
MODEL.armature = ROTORS


def stepped(law: ControlLaw, helps: bool = True, hardware: bool = False) -> Controller:
    """A controller in the middle of a motion, with an arm that is off its path."""
    options = {"friction_compensation": helps, "hardware_compensates_gravity": hardware}
    settings = ControllerSettings(Gains.uniform(2, 50.0, 8.0, 3.0), law, **options)
    c = Controller(MODEL, settings)
    c.hold(0.0, ZERO)
    if law != ControlLaw.gravity_compensation:
        c.follow(0.0, [Waypoint(1.0, np.array([0.8, -0.9]), ZERO, ZERO, EFFORT)], 0.0)
    c.rows.disturbance = -DISTURBANCE
    for t in (0.1, 0.3, 0.6):  # at 0.5 the desired acceleration is 0
        c.step(t, Q, V, np.zeros(2))
    return c


ZERO = np.zeros(2)
DISTURBANCE = np.array([0.3, -0.2])  # compensation that the last step has taken [Nm]


def inertia(q: np.ndarray) -> np.ndarray:
    return mass_matrix(q) + np.diag(ROTORS)


def split(c: Controller) -> dict[str, np.ndarray]:
    terms = torque_terms(MODEL, Workspace(MODEL), c.settings, c.snapshot())
    return dict(zip(TERMS, terms, strict=True))


def own_terms(law: ControlLaw, c: Controller, helps: bool, hardware: bool) -> list[np.ndarray]:
    """By the equations of motion of the arm, written out, and the definition of each law."""
    q_d, v_d, a_d, effort = c.snapshot().desired
    u = 50.0 * (q_d - Q) + 8.0 * (v_d - V) + c.snapshot().rows.integral
    if law == ControlLaw.pd:
        return [ZERO, ZERO, ZERO, ZERO, u, effort, DISTURBANCE]
    # The hardware adds the gravity torque of the measured position, whatever is asked for.
    relief = gravity_torque(Q) * hardware
    rate = V if law == ControlLaw.gravity_compensation else v_d.copy()
    rubbing = friction(MODEL, Workspace(MODEL), rate, np.zeros(2)) * helps
    if law == ControlLaw.gravity_compensation:
        return [gravity_torque(Q) - relief, ZERO, ZERO, rubbing, -8.0 * V, ZERO, DISTURBANCE]
    if law == ControlLaw.pd_gravity:
        return [gravity_torque(Q) - relief, ZERO, ZERO, rubbing, u, effort, DISTURBANCE]
    q, v = (Q, V) if law == ControlLaw.computed_torque else (q_d, v_d)
    feedback = inertia(Q) @ u if law == ControlLaw.computed_torque else u
    gravity = gravity_torque(q) - relief
    coriolis = coriolis_matrix(q, v) @ v
    return [gravity, coriolis, inertia(q) @ a_d, rubbing, feedback, effort, DISTURBANCE]


@pytest.mark.parametrize("hardware", [False, True])
@pytest.mark.parametrize("helps", [False, True])
@pytest.mark.parametrize("law", JOINT_SPACE)
def test_each_term_is_by_its_own_formula(law: ControlLaw, helps: bool, hardware: bool) -> None:
    """So the law is: the feedback is what the other terms leave of its torque."""
    c = stepped(law, helps, hardware)
    for name, value in zip(TERMS, own_terms(law, c, helps, hardware), strict=True):
        np.testing.assert_allclose(split(c)[name], value, atol=1e-10, err_msg=name)


def test_torque_is_that_before_the_effort_limits() -> None:
    c = stepped(ControlLaw.pd)
    tau = np.zeros(2)
    c.step(0.6, np.array([3.0, 3.0]), V, tau)
    assert c.saturated and np.abs(c.snapshot().torque).max() > np.abs(tau).max()
    np.testing.assert_allclose(sum(split(c).values()), c.snapshot().torque)
