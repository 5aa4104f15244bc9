"""Arms whose equations of motion fit on a page, written out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from robots import PLANAR, joint, link, robot, two_link_arm

from rnea_control.dynamics import Workspace, gravity, nonlinear_effects, rnea
from rnea_control.model import RobotModel

G = 9.81
RNG = np.random.default_rng(3)
STATES = RNG.uniform(-3.0, 3.0, (10, 3, 2))


def planar_mass_matrix(q) -> np.ndarray:
    """M(q) of the planar 2R arm [Siciliano et al. 2009, eq. 7.82], mass centres on the links."""
    p = PLANAR
    m11_const = p["I1"] + p["I2"] + p["m1"] * p["r1"] ** 2 + p["m2"] * (p["l1"] ** 2 + p["r2"] ** 2)
    coupling = p["m2"] * p["l1"] * p["r2"] * math.cos(q[1])
    m22 = p["I2"] + p["m2"] * p["r2"] ** 2
    return np.array([[m11_const + 2 * coupling, m22 + coupling], [m22 + coupling, m22]])


def planar_coriolis(q, v) -> np.ndarray:
    """C(q, v) v of the planar 2R arm."""
    h = -PLANAR["m2"] * PLANAR["l1"] * PLANAR["r2"] * math.sin(q[1])
    return np.array([h * (2 * v[0] * v[1] + v[1] ** 2), -h * v[0] ** 2])


def planar_gravity(q) -> np.ndarray:
    """g(q) of the planar 2R arm; its axes are +y, so that positive angles turn +x towards -z."""
    p = PLANAR
    c1, c12 = math.cos(q[0]), math.cos(q[0] + q[1])
    g2 = -p["m2"] * G * p["r2"] * c12
    return np.array([-(p["m1"] * p["r1"] + p["m2"] * p["l1"]) * G * c1 + g2, g2])


@pytest.fixture(scope="module")
def planar() -> RobotModel:
    return RobotModel.from_urdf_string(two_link_arm())


@pytest.mark.parametrize("state", STATES)
def test_planar_arm_mass_coriolis_and_gravity(planar: RobotModel, state) -> None:
    q, v, a = (row.copy() for row in state)
    ws, zero, tau = Workspace(planar), np.zeros(2), np.zeros(2)
    np.testing.assert_allclose(gravity(planar, ws, q, tau), planar_gravity(q), rtol=1e-13)
    np.testing.assert_allclose(
        nonlinear_effects(planar, ws, q, v, tau),
        planar_coriolis(q, v) + planar_gravity(q),
        rtol=1e-12,
    )
    expected = planar_mass_matrix(q) @ a + planar_coriolis(q, v) + planar_gravity(q)
    np.testing.assert_allclose(rnea(planar, ws, q, v, a, tau), expected, rtol=1e-12)
    planar.gravity = zero_gravity = (0.0, 0.0, 0.0)
    for j in range(2):
        rnea(planar, ws, q, zero, np.eye(2)[j].copy(), tau)
        np.testing.assert_allclose(tau, planar_mass_matrix(q)[:, j], rtol=1e-13)
    assert tuple(planar.gravity) == zero_gravity
    planar.gravity = (0.0, 0.0, -G)


def test_pendulum() -> None:
    """m l^2 a + m g l sin(angle from hanging): a point mass that hangs along -z at zero."""
    m, length = 2.0, 0.7
    urdf = robot(
        link("base"),
        link("bob", m, (0, 0, -length), (0, 0, 0, 0, 0, 0)),
        joint("hinge", "base", "bob", "continuous", (0, 1, 0), limit=""),
    )
    model = RobotModel.from_urdf_string(urdf)
    for angle, a in ((0.0, 1.0), (0.4, -2.0), (math.pi / 2, 0.0), (3.0, 5.0)):
        vectors = np.array([angle]), np.array([3.0]), np.array([a])
        tau = rnea(model, Workspace(model), *vectors, np.zeros(1))
        assert tau[0] == pytest.approx(m * length**2 * a + m * G * length * math.sin(angle))


def test_slider_on_a_turntable() -> None:
    """A mass m that slides along a radius: m (a - r w^2) along it, m r^2 dw + 2 m r v w about z."""
    m = 1.5
    urdf = robot(
        link("base"),
        link("table", 1.0, (0, 0, 0), (0, 0, 0, 0, 0, 0)),
        link("mass", m, (0, 0, 0), (0, 0, 0, 0, 0, 0)),
        joint("turn", "base", "table"),
        joint("slide", "table", "mass", "prismatic", (1, 0, 0)),
    )
    model = RobotModel.from_urdf_string(urdf)
    r, w, dw, v, a = 0.6, 1.2, 0.7, -0.4, 2.0
    vectors = np.array([0.3, r]), np.array([w, v]), np.array([dw, a])
    tau = rnea(model, Workspace(model), *vectors, np.zeros(2))
    np.testing.assert_allclose(tau, [m * r * r * dw + 2 * m * r * v * w, m * (a - r * w * w)])


def test_force_at_the_tip_of_a_straight_arm() -> None:
    """A force across a straight arm is held by lever arm times force; frames: link frame."""
    model = RobotModel.from_urdf_string(two_link_arm())
    model.gravity = (0.0, 0.0, 0.0)
    zero, tau = np.zeros(2), np.zeros(2)
    forces = np.zeros((3, 6))
    # on the lower link's origin, along its z; positive turns are about +y
    forces[model.link_names.index("lower"), 2] = 10.0
    rnea(model, Workspace(model), zero, zero, zero, tau, forces)
    np.testing.assert_allclose(tau, [10.0 * PLANAR["l1"], 0.0], atol=1e-15)
