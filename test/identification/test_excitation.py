"""Exciting motions: limits, rest at both ends, what they tell, and errors."""

from __future__ import annotations

import itertools
import re
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from robots import PANDA_JOINTS, example_robot, load_quietly, two_link_arm

from rnea_control.analysis import inertial_parameters, inverse_dynamics_batch, regressor
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.excitation import Excitation, plan_excitation
from rnea_control.identification.excitation_limits import excitation_limits
from rnea_control.identification.excitation_problem import ExcitationProblem
from rnea_control.identification.excitation_search import holding_postures, random_motion
from rnea_control.identification.information import (
    Criterion,
    condition_number,
    covariance,
    log_determinant,
)
from rnea_control.model import Joint, RobotModel, RobotModelWarning
from rnea_control.model.inertia import pseudo_inertia

DURATION = 12.0
SMALL = {"starts": 1, "iterations": 40}


def arm() -> RobotModel:
    """Two links with friction in both joints."""
    model = RobotModel.from_urdf_string(two_link_arm())
    model.damping, model.friction, model.torque_offset = [0.3, 0.2], [0.5, 0.4], [0.1, -0.2]
    model.armature = [0.05, 0.02]
    return model


@cache
def planned(name: str) -> Excitation:
    if name == "arm":
        return plan_excitation(arm(), 6.0, **SMALL)
    model = load_quietly(example_robot(name), PANDA_JOINTS if name == "panda" else None)
    return plan_excitation(model, DURATION, **SMALL)


def problem_of(excitation: Excitation) -> ExcitationProblem:
    series = excitation.series
    return ExcitationProblem(
        excitation.model,
        excitation.base,
        excitation.limits,
        excitation.noise,
        series.period,
        series.harmonics,
    )


@pytest.mark.parametrize("name", ["arm", "panda", "ur5_robot"])
def test_limits_hold_at_1_khz(name: str) -> None:
    excitation = planned(name)
    model, limits = excitation.model, excitation.limits
    time = np.linspace(0.0, excitation.duration, round(1000.0 * excitation.duration) + 1)
    q, v, a = excitation.sample(time)
    tau = inverse_dynamics_batch(model, q, v, a)
    assert (q >= limits.lower).all()
    assert (q <= limits.upper).all()
    assert (np.abs(v) <= limits.velocity).all()
    assert (np.abs(a) <= limits.acceleration).all()
    assert (np.abs(tau) <= limits.torque).all()
    # They are used, too, and the peaks are those of the motion.
    shares = np.abs([v / limits.velocity, a / limits.acceleration, tau / limits.torque])
    np.testing.assert_allclose(excitation.peaks[1:], shares.max(axis=1), rtol=1e-3, atol=1e-3)
    assert shares.max() > 0.98


@pytest.mark.parametrize("name", ["arm", "panda"])
def test_rest_at_both_ends_and_between_periods(name: str) -> None:
    series = planned(name).series
    q, v, a = series.sample(series.period * np.arange(3.0))
    np.testing.assert_allclose(q, q[[0, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(v, 0.0, atol=1e-12)
    np.testing.assert_allclose(a, 0.0, atol=1e-12)


def test_velocity_and_acceleration_are_derivatives() -> None:
    excitation, step = planned("arm"), 1e-5
    time = np.linspace(0.5, 5.5, 50)
    _, v, a = excitation.sample(time)
    before, after = excitation.sample(time - step), excitation.sample(time + step)
    np.testing.assert_allclose((after[0] - before[0]) / (2.0 * step), v, atol=1e-7)
    np.testing.assert_allclose((after[1] - before[1]) / (2.0 * step), a, atol=1e-7)


def test_repeated_periods_are_the_same_and_tell_more() -> None:
    once = planned("arm")
    twice = plan_excitation(arm(), 6.0, 2, **SMALL)
    assert twice.duration == 2.0 * once.duration
    time = np.linspace(0.0, 6.0, 100)
    for first, second in zip(twice.sample(time), twice.sample(time + 6.0), strict=True):
        np.testing.assert_allclose(first, second, atol=1e-10)
    np.testing.assert_allclose(twice.deviation, once.deviation / np.sqrt(2.0))


def test_same_seed_gives_the_same_motion() -> None:
    first = plan_excitation(arm(), 6.0, seed=3, **SMALL).series
    second = plan_excitation(arm(), 6.0, seed=3, **SMALL).series
    other = plan_excitation(arm(), 6.0, seed=4, **SMALL).series
    for name in ("centre", "cosine", "sine"):
        assert np.array_equal(getattr(first, name), getattr(second, name))
        assert not np.array_equal(getattr(first, name), getattr(other, name))


@pytest.mark.parametrize("name", ["arm", "panda", "ur5_robot"])
def test_better_than_the_best_of_50_random_motions(name: str) -> None:
    excitation = planned(name)
    samples = excitation.rate * excitation.duration
    # The determinant of the covariance is the volume; its root, one parameter's variance.
    best = min(random_information(excitation), key=lambda G: log_determinant(G)[0])
    deviation = np.sqrt(np.diag(covariance(best, samples)))
    assert np.mean(np.log(deviation / excitation.deviation)) > 0.1
    assert excitation.condition < 50.0


@pytest.mark.explores
@pytest.mark.parametrize("name", ["arm", "ur5_robot"])
def test_better_condition_number_than_that_of_50_random_motions(name: str) -> None:
    determinant = planned(name)
    duration = determinant.duration
    found = plan_excitation(determinant.model, duration, criterion=Criterion.condition, **SMALL)
    assert found.condition < determinant.condition
    assert found.condition < min(map(condition_number, random_information(found)))


def random_information(excitation: Excitation) -> list[np.ndarray]:
    """Of 50 random motions within the same limits, each as large as they allow."""
    problem, rng = problem_of(excitation), np.random.default_rng(7)
    postures = holding_postures(excitation.model, excitation.limits, rng)
    return [problem.information(random_motion(problem, postures, rng)) for _ in range(50)]


def test_deviations_are_those_of_least_squares() -> None:
    """White noise on the true torques of the planned motion, many times."""
    model, rate, runs = arm(), 100.0, 400
    excitation = plan_excitation(model, 6.0, rate=rate, **SMALL)
    time = np.arange(round(rate * excitation.duration)) / rate
    q, v, a = excitation.sample(time)
    Y = np.empty((len(time), 2, len(inertial_parameters(model))))
    ws = Workspace(model)
    for i in range(len(time)):
        regressor(model, ws, q[i], v[i], a[i], Y[i])
    weight = np.tile(1.0 / excitation.noise, len(time))
    W = Y[:, :, excitation.base.independent].reshape(2 * len(time), -1) * weight[:, None]
    tau = inverse_dynamics_batch(model, q, v, a).ravel() * weight
    rng = np.random.default_rng(0)
    measured = tau[:, None] + rng.standard_normal((len(tau), runs))
    beta = np.linalg.lstsq(W, measured, rcond=None)[0]
    np.testing.assert_allclose(beta.std(axis=1), excitation.deviation, rtol=0.15)
    error = beta.mean(axis=1) - excitation.prior
    assert (np.abs(error) < 4.0 * excitation.deviation / np.sqrt(runs)).all()
    scaled = W / np.linalg.norm(W, axis=0)
    assert np.linalg.cond(scaled) == pytest.approx(excitation.condition, rel=0.02)


def test_gradient_of_the_cost() -> None:
    problem = problem_of(planned("arm"))
    rng = np.random.default_rng(1)
    x = 0.6 * rng.standard_normal(problem.size)
    for criterion in Criterion:
        _, gradient = problem.cost(x, criterion, 100.0)
        for i in range(problem.size):
            step = np.zeros(problem.size)
            step[i] = 1e-6
            high, _ = problem.cost(x + step, criterion, 100.0)
            low, _ = problem.cost(x - step, criterion, 100.0)
            tolerance = 1e-4 * np.abs(gradient).max()
            assert gradient[i] == pytest.approx((high - low) / 2e-6, abs=tolerance)


def test_ranges_are_kept() -> None:
    excitation = plan_excitation(arm(), 6.0, ranges={"elbow": (0.5, 1.5)}, **SMALL)
    q, _, _ = excitation.sample(np.linspace(0.0, 6.0, 2000))
    assert q[:, 1].min() >= 0.5
    assert q[:, 1].max() <= 1.5
    assert np.ptp(q[:, 0]) > 2.0


def test_shares_of_the_limits() -> None:
    model = arm()
    limits = excitation_limits(model, speed=0.25, torque=0.4)
    np.testing.assert_allclose(limits.velocity, 0.25 * model.velocity_limit)
    np.testing.assert_allclose(limits.torque, 0.4 * model.effort_limit)
    np.testing.assert_allclose(limits.acceleration, limits.velocity / 0.5)
    np.testing.assert_allclose(limits.upper, 3.0 - 0.3)
    limits = excitation_limits(model, acceleration=1.5)
    np.testing.assert_allclose(limits.acceleration, 1.5)


def test_joints_without_limits() -> None:
    """Continuous, and revolute ones of a robot written in Python."""
    model = pendulum("continuous", "revolute")
    assert np.isinf([model.effort_limit, model.velocity_limit, model.upper]).all()
    excitation = plan_excitation(model, 6.0, **SMALL)
    q, v, _ = excitation.sample(np.linspace(0.0, 6.0, 1000))
    assert np.abs(q).max() <= np.pi
    assert np.abs(v).max() <= 0.5 * np.pi
    for values in (excitation.deviation, excitation.size, excitation.noise):
        assert np.isfinite(values).all()
        assert (values > 0.0).all()


def pendulum(*types: str, **limits: float) -> RobotModel:
    """Links in a row without limits, but for these."""
    inertia = pseudo_inertia(1.0, np.array([0.2, 0.0, 0.0]), 0.01 * np.eye(3))
    joints = [
        Joint(
            f"joint{i}",
            kind,
            f"link{i}",
            f"link{i + 1}",
            translation=np.array([0.4 * (i > 0), 0.0, 0.0]),
            axis=np.array([0.0, 1.0, 0.0]),
            **limits,
        )
        for i, kind in enumerate(types)
    ]
    inertias = {f"link{i + 1}": inertia for i in range(len(types))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        return RobotModel.from_joints("pendulum", joints, inertias)


def test_progress_rises_to_the_end() -> None:
    done: list[float] = []
    plan_excitation(arm(), 6.0, starts=1, iterations=8, progress=done.append)
    assert all(before <= after for before, after in itertools.pairwise(done))
    assert 0.0 < done[0] < 0.5
    assert done[-1] == pytest.approx(1.0)


def test_poor_parameters_are_the_worst_first() -> None:
    excitation = plan_excitation(arm(), 6.0, rate=2.0, **SMALL)
    relative = dict(zip(excitation.base.names, excitation.relative_deviation, strict=True))
    assert excitation.poor
    assert [relative[name] for name in excitation.poor] == sorted(
        (value for value in relative.values() if value > 0.1), reverse=True
    )
    assert not replace(excitation, deviation=1e-9 * excitation.deviation).poor


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ranges": {"knee": (0.0, 1.0)}}, "range of knee: .* moves the joints shoulder, elbow"),
        ({"ranges": {"elbow": (1.0, 1.0)}}, "range of joint 'elbow' is 1 to 1; .* lower one first"),
        ({"ranges": {"elbow": (0.0, np.nan)}}, "range of joint 'elbow' is 0 to nan"),
        ({"ranges": {"elbow": (0.0, 4.0)}}, "'elbow' is 0 to 4, outside its limits -3 to 3"),
        ({"duration": 0.5}, "0.5 s: too short for joint '.*', which needs .* give at least [0-9]+"),
        ({"duration": 1.2, "acceleration": 1.0}, "at accelerations up to 1; give at least 5 s"),
        ({"duration": np.inf}, "duration is inf s"),
        ({"speed": 0.0}, "speed is 0.0; .* above 0 and at most 1"),
        ({"torque": 1.5}, "torque is 1.5; .* above 0 and at most 1"),
        ({"acceleration": -1.0}, "acceleration is -1.0"),
        ({"noise": 0.0}, "noise is 0.0"),
        ({"periods": 0}, "periods is 0; it must be an integer, at least 1"),
        ({"harmonics": 1}, "harmonics is 1; it must be an integer, at least 2"),
        ({"harmonics": 50}, "harmonics is 50; at most 20"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_options_that_are_not_allowed(options: dict, message: str) -> None:
    with pytest.raises(IdentificationError, match=message):
        plan_excitation(arm(), **{"duration": 6.0, **options})


def test_gravity_beyond_the_torque_allowed_names_joint_and_posture() -> None:
    urdf = two_link_arm().replace('effort="100"', 'effort="5"')
    model = RobotModel.from_urdf_string(urdf)
    with pytest.raises(IdentificationError) as caught:
        plan_excitation(model, 6.0, ranges={"shoulder": (-0.3, 0.3), "elbow": (-0.3, 0.3)})
    assert re.search(
        r"gravity alone takes [0-9.]+ Nm of joint 'shoulder', and the motion may use 3.5 Nm, .*"
        r"shoulder -?0\.[0-9]+, elbow -?0\.[0-9]+; allow a greater share",
        str(caught.value),
    )


@pytest.mark.parametrize("kind", ["floating", "spherical", "planar", "helical", "universal"])
def test_joints_that_are_not_planned_for(kind: str) -> None:
    model = pendulum("revolute", kind)
    with pytest.raises(IdentificationError, match=rf"'joint1' .* is {kind}; .* revolute, .* lock"):
        plan_excitation(model)


def test_prismatic_joint_without_limits_asks_for_a_range() -> None:
    model = pendulum("prismatic")
    with pytest.raises(IdentificationError, match=r"joint 'joint0' has no .* limits .* its range"):
        plan_excitation(model)
    assert excitation_limits(model, {"joint0": (0.0, 0.5)}).upper == [0.5]


def test_limits_on_one_side() -> None:
    limits = excitation_limits(pendulum("revolute", lower=2.0))
    np.testing.assert_allclose([limits.lower[0], limits.upper[0]], [2.05, 2.05 + 2.0 * np.pi])
    limits = excitation_limits(pendulum("revolute", upper=-2.0))
    np.testing.assert_allclose([limits.lower[0], limits.upper[0]], [-2.05 - 2.0 * np.pi, -2.05])


def test_effort_limit_of_zero() -> None:
    model = pendulum("revolute", effort_limit=0.0)
    with pytest.raises(IdentificationError, match=r"the effort limit of joint0 .* is 0"):
        plan_excitation(model)
