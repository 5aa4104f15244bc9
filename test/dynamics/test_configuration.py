"""Steps between positions: against Pinocchio, and back again."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
from robots import example_robot, load_quietly, random_mechanism
from states import Case, every_robot, mechanisms, without_huge_angles

from rnea_control.dynamics import Workspace, difference, integrate
from rnea_control.model import RobotModel


@every_robot(60, joints=8)
def test_agrees_with_pinocchio(case: Case) -> None:
    """There and back again, by tiny steps and large ones."""
    model, ws, peer, q = case.model, case.ws, case.peer, without_huge_angles(case.state.q)
    for size in (1e-9, 1e-5, 1e-2, 1.0):
        step = size * case.state.v
        reached = integrate(model, ws, q, step, np.full(model.nq, np.nan))
        theirs = pin.integrate(peer.model, peer.q(q), peer.v(step))
        np.testing.assert_allclose(peer.q(reached), theirs, atol=1e-12)
        back = difference(model, ws, q, reached, np.full(model.nv, np.nan))
        again = integrate(model, ws, q, back, np.zeros(model.nq))
        turns = model.continuous * 2.0 * math.pi * np.round((reached - again) / (2.0 * math.pi))
        assert pin.isSameConfiguration(peer.model, peer.q(again + turns), peer.q(reached), 1e-9)
        if np.abs(step).max() < 1.0:
            np.testing.assert_allclose(back, step, atol=1e-9 * size + 1e-15)


@mechanisms(20, joints=8)
def test_step_in_place(case: Case) -> None:
    q = case.state.q
    reached = integrate(case.model, case.ws, q, case.state.v, np.zeros(case.model.nq))
    in_place = q.copy()
    np.testing.assert_array_equal(
        integrate(case.model, case.ws, in_place, case.state.v, in_place), reached
    )


def test_continuous_joints_go_the_shorter_way() -> None:
    joints, inertias = random_mechanism(0, 1, ["continuous"])
    model = RobotModel.from_joints("wheel", joints, inertias)
    step = difference(model, Workspace(model), np.array([3.0]), np.array([-3.0]), np.zeros(1))
    np.testing.assert_allclose(step, [2.0 * math.pi - 6.0])


def test_quarter_turn_of_a_free_body_goes_round_a_circle() -> None:
    """A body that moves along its x and turns about its z drives a quarter of a circle to the
    left."""
    joints, inertias = random_mechanism(0, 1, ["floating"])
    model = RobotModel.from_joints("body", joints, inertias)
    radius = 2.0
    step = np.array([radius, 0.0, 0.0, 0.0, 0.0, 1.0]) * math.pi / 2
    reached = integrate(model, Workspace(model), model.neutral(), step, np.zeros(7))
    turned = math.sqrt(0.5)
    np.testing.assert_allclose(reached, [radius, radius, 0, 0, 0, turned, turned], atol=1e-15)
    back = difference(model, Workspace(model), model.neutral(), reached, np.zeros(6))
    np.testing.assert_allclose(back, step, atol=1e-14)


def test_quaternions_keep_the_length_1() -> None:
    joints, inertias = random_mechanism(0, 1, ["spherical"])
    model = RobotModel.from_joints("ball", joints, inertias)
    ws, q = Workspace(model), model.neutral()
    for step in np.random.default_rng(0).standard_normal((1000, 3)):
        integrate(model, ws, q, step, q)
        assert math.isclose(np.linalg.norm(q), 1.0, rel_tol=1e-15, abs_tol=4e-16)


def test_neutral_position_of_a_floating_base() -> None:
    neutral = load_quietly(example_robot("panda"), floating_base=True).neutral()
    np.testing.assert_array_equal(neutral[:7], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def test_random_positions_are_within_the_limits_and_repeat() -> None:
    model = load_quietly(example_robot("panda"), floating_base=True)
    rng = np.random.default_rng(0)
    for _ in range(50):
        q = model.random(rng)
        assert (model.lower <= q).all() and (q <= model.upper).all()
        assert math.isclose(float(np.linalg.norm(q[3:7])), 1.0)
    again = model.random(np.random.default_rng(1)), model.random(np.random.default_rng(1))
    np.testing.assert_array_equal(*again)
