"""The equations of motion of the planar 2R arm `robots.two_link_arm`, written out by hand, mass
centers on the links [Siciliano et al. 2009, sec. 7.3.2], for numbers and for symbols.

Its axes are +y, so that positive angles turn +x toward -z.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from robots import PLANAR, two_link_arm

from rnea_control.model import RobotModel

NUMBERS = {**PLANAR, "g0": 9.81}


def planar_arm() -> RobotModel:
    return RobotModel.from_urdf_string(two_link_arm())


def mass_matrix(q: Sequence, p: Mapping = NUMBERS, cos: Callable = math.cos) -> np.ndarray:
    coupling = p["m2"] * p["l1"] * p["r2"] * cos(q[1])
    m22 = p["I2"] + p["m2"] * p["r2"] ** 2
    m11 = p["I1"] + p["m1"] * p["r1"] ** 2 + p["m2"] * p["l1"] ** 2 + m22 + 2 * coupling
    return np.array([[m11, m22 + coupling], [m22 + coupling, m22]])


def coriolis_matrix(
    q: Sequence, v: Sequence, p: Mapping = NUMBERS, sin: Callable = math.sin
) -> np.ndarray:
    """By Christoffel symbols."""
    h = -p["m2"] * p["l1"] * p["r2"] * sin(q[1])
    return np.array([[h * v[1], h * (v[0] + v[1])], [-h * v[0], 0]])


def gravity_torque(q: Sequence, p: Mapping = NUMBERS, cos: Callable = math.cos) -> np.ndarray:
    g2 = -p["m2"] * p["g0"] * p["r2"] * cos(q[0] + q[1])
    return np.array([-(p["m1"] * p["r1"] + p["m2"] * p["l1"]) * p["g0"] * cos(q[0]) + g2, g2])


def mass_centers(q: np.ndarray) -> np.ndarray:
    """Of upper and lower link, shape (2, 3)."""
    p, s, c = NUMBERS, np.sin([q[0], q[0] + q[1]]), np.cos([q[0], q[0] + q[1]])
    upper = p["r1"] * np.array([c[0], 0.0, -s[0]])
    lower = p["l1"] * np.array([c[0], 0.0, -s[0]]) + p["r2"] * np.array([c[1], 0.0, -s[1]])
    return np.array([upper, lower])
