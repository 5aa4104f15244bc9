"""Steps between positions, against Pinocchio and back again."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from hypothesis import given, settings
from hypothesis import strategies as st
from pinocchio_peer import Peer
from robots import example_robots, load_quietly, random_mechanism

from rnea_control.dynamics import Workspace, difference, integrate
from rnea_control.model import RobotModel

PANDA = next(path for path in example_robots() if path.stem == "panda")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 8), st.sampled_from([1e-9, 1e-5, 1e-2, 1.0]))
def test_random_mechanism(seed: int, count: int, size: float) -> None:
    joints, inertias = random_mechanism(seed, count)
    model = RobotModel.from_joints("mechanism", joints, inertias)
    if not model.nv:
        return
    peer = Peer.from_joints(model, joints, inertias)
    rng = np.random.default_rng(seed)
    ws, q, step = Workspace(model), model.random(rng), size * rng.standard_normal(model.nv)
    reached = integrate(model, ws, q, step, np.zeros(model.nq))
    in_place = q.copy()
    np.testing.assert_array_equal(integrate(model, ws, in_place, step, in_place), reached)
    theirs = pin.integrate(peer.model, peer.q(q), peer.v(step))
    np.testing.assert_allclose(peer.q(reached), theirs, atol=1e-12)
    back = difference(model, ws, q, reached, np.zeros(model.nv))
    again = integrate(model, ws, q, back, np.zeros(model.nq))
    turns = model.continuous * 2.0 * math.pi * np.round((reached - again) / (2.0 * math.pi))
    assert pin.isSameConfiguration(peer.model, peer.q(again + turns), peer.q(reached), 1e-9)
    if np.abs(step).max() < 1.0:
        np.testing.assert_allclose(back, step, atol=1e-9 * size + 1e-15)


def test_continuous_joints_go_the_shorter_way() -> None:
    joints, inertias = random_mechanism(0, 1, ["continuous"])
    model = RobotModel.from_joints("wheel", joints, inertias)
    step = difference(model, Workspace(model), np.array([3.0]), np.array([-3.0]), np.zeros(1))
    np.testing.assert_allclose(step, [2.0 * math.pi - 6.0])


def test_neutral_and_random() -> None:
    model = load_quietly(PANDA, floating_base=True)
    neutral = model.neutral()
    np.testing.assert_array_equal(neutral[:7], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    rng = np.random.default_rng(0)
    for _ in range(50):
        q = model.random(rng)
        assert (model.lower <= q).all() and (q <= model.upper).all()
        assert math.isclose(float(np.linalg.norm(q[3:7])), 1.0)
    again = model.random(np.random.default_rng(1)), model.random(np.random.default_rng(1))
    np.testing.assert_array_equal(*again)
