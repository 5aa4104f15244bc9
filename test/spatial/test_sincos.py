"""Sines and cosines to the last place, over the angles that joints take and far beyond."""

from __future__ import annotations

import math

import numpy as np
import pytest
from robots import joint, link, robot

from rnea_control.dynamics import Workspace, gravity
from rnea_control.dynamics import body as layout
from rnea_control.model import RobotModel

LAST_PLACE = 2.0**-53
# Of the C library: those of some releases of NumPy are off by more.
sin, cos = np.vectorize(math.sin), np.vectorize(math.cos)


@pytest.fixture(scope="module")
def chain() -> RobotModel:
    """Eleven joints: more than one vector register, and not a whole number of them."""
    links = [link(f"l{i}") for i in range(12)]
    joints = [joint(f"j{i}", f"l{i}", f"l{i + 1}", "continuous") for i in range(11)]
    return RobotModel.from_urdf_string(robot(*links, *joints))


def sines_and_cosines(model: RobotModel, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ws = Workspace(model)
    gravity(model, ws, q, np.zeros(model.nv))
    rows = ws.memory[model.nv + 1 :]
    sine = rows[:, layout.SINE : layout.SINE + layout.LANES].ravel()[: model.nv]
    cosine = rows[:, layout.COSINE : layout.COSINE + layout.LANES].ravel()[: model.nv]
    return sine, cosine


def test_random_angles_and_quarter_turns_with_their_neighbours(chain: RobotModel) -> None:
    rng = np.random.default_rng(4)
    sizes = np.repeat([1e-9, 1.0, math.pi, 100.0, 5e5, 1e12], 200)
    angles = [rng.uniform(-largest, largest, chain.nv) for largest in sizes]
    for x in math.pi / 4 * np.arange(-40, 41):
        angles.append(np.resize([x, np.nextafter(x, 9e9), np.nextafter(x, -9e9)], chain.nv))
    for q in angles:
        sine, cosine = sines_and_cosines(chain, q)
        np.testing.assert_allclose(sine, sin(q), rtol=0, atol=2 * LAST_PLACE)
        np.testing.assert_allclose(cosine, cos(q), rtol=0, atol=2 * LAST_PLACE)


def test_not_a_number_stays_one(chain: RobotModel) -> None:
    q = np.zeros(chain.nv)
    q[3] = math.nan
    sine, cosine = sines_and_cosines(chain, q)
    assert np.isnan(sine[3]) and np.isnan(cosine[3])
    assert np.isfinite(np.delete(sine, 3)).all()
