"""The equations of motion of the planar 2R arm `robots.two_link_arm`, written out by hand, mass
centers on the links [Siciliano et al. 2009, sec. 7.3.2].

Its axes are +y, so that positive angles turn +x toward -z.
"""

from __future__ import annotations

import math

import numpy as np
from robots import PLANAR, two_link_arm

from rnea_control.model import RobotModel

G = 9.81
STATES = np.random.default_rng(3).uniform(-3.0, 3.0, (10, 3, 2))


def planar_arm() -> RobotModel:
    return RobotModel.from_urdf_string(two_link_arm())


def mass_matrix(q: np.ndarray) -> np.ndarray:
    p = PLANAR
    m11_const = p["I1"] + p["I2"] + p["m1"] * p["r1"] ** 2 + p["m2"] * (p["l1"] ** 2 + p["r2"] ** 2)
    coupling = p["m2"] * p["l1"] * p["r2"] * math.cos(q[1])
    m22 = p["I2"] + p["m2"] * p["r2"] ** 2
    return np.array([[m11_const + 2 * coupling, m22 + coupling], [m22 + coupling, m22]])


def coriolis_matrix(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """By Christoffel symbols."""
    h = -PLANAR["m2"] * PLANAR["l1"] * PLANAR["r2"] * math.sin(q[1])
    return np.array([[h * v[1], h * (v[0] + v[1])], [-h * v[0], 0.0]])


def coriolis_torque(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    h = -PLANAR["m2"] * PLANAR["l1"] * PLANAR["r2"] * math.sin(q[1])
    return np.array([h * (2 * v[0] * v[1] + v[1] ** 2), -h * v[0] ** 2])


def gravity_torque(q: np.ndarray) -> np.ndarray:
    p = PLANAR
    c1, c12 = math.cos(q[0]), math.cos(q[0] + q[1])
    g2 = -p["m2"] * G * p["r2"] * c12
    return np.array([-(p["m1"] * p["r1"] + p["m2"] * p["l1"]) * G * c1 + g2, g2])


def torque(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    return mass_matrix(q) @ a + coriolis_torque(q, v) + gravity_torque(q)


def mass_centers(q: np.ndarray) -> np.ndarray:
    """Of upper and lower link, shape (2, 3)."""
    p, s, c = PLANAR, np.sin([q[0], q[0] + q[1]]), np.cos([q[0], q[0] + q[1]])
    upper = p["r1"] * np.array([c[0], 0.0, -s[0]])
    lower = p["l1"] * np.array([c[0], 0.0, -s[0]]) + p["r2"] * np.array([c[1], 0.0, -s[1]])
    return np.array([upper, lower])
