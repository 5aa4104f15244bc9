"""Exciting motions: limits, rest at both ends, what they tell, errors; and as files."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import yaml
from robots import PANDA_JOINTS, example_robot, joint, load_quietly, two_link_arm
from scipy.interpolate import BPoly

from rnea_control.analysis import inertial_parameters, inverse_dynamics_batch, regressor
from rnea_control.commands.identify.plan import shortened
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.controller_yaml import trajectory_yaml
from rnea_control.identification.excitation import (
    RATE,
    Excitation,
    holding_postures,
    plan_excitation,
)
from rnea_control.identification.excitation_limits import excitation_limits
from rnea_control.identification.excitation_problem import (
    FUNCTIONS,
    ExcitationProblem,
    accuracy,
    log_determinant,
    rest_functions,
)
from rnea_control.model import Joint, RobotModel, RobotModelWarning
from rnea_control.model.rigid_body import pseudo_inertia
from rnea_control.parameters.settings import quietly

DURATION = 12.0
SMALL = {"starts": 1, "iterations": 40}


def arm() -> RobotModel:
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


def test_a_joint_without_effort_limit_may_move_nothing() -> None:
    turning = joint("wrist", "lower", "flange", "continuous", xyz=(0.4, 0, 0), limit="")
    urdf = two_link_arm().replace("</robot>", f'<link name="flange"/>{turning}</robot>')
    model = quietly(RobotModel.from_urdf_string, urdf)
    assert np.isfinite(plan_excitation(model, 6.0, starts=1, iterations=2).condition)


def problem_of(excitation: Excitation) -> ExcitationProblem:
    parts = (getattr(excitation, name) for name in ("model", "base", "limits", "noise"))
    return ExcitationProblem(*parts, excitation.duration)


@pytest.mark.parametrize("name", ["arm", "panda"])
def test_limits_hold_at_1_khz_and_50_random_motions_are_worse(name: str) -> None:
    excitation = planned(name)
    model, limits = excitation.model, excitation.limits
    time = np.linspace(0.0, excitation.duration, round(1000.0 * excitation.duration) + 1)
    q, v, a = excitation.sample(time)
    tau = inverse_dynamics_batch(model, q, v, a)
    assert ((q >= limits.lower) & (q <= limits.upper)).all()
    shares = np.abs([v / limits.velocity, a / limits.acceleration, tau / limits.torque])
    assert (shares <= 1.0).all()
    # They are used, too, and the peaks are those of the motion.
    np.testing.assert_allclose(excitation.peaks[1:], shares.max(axis=1), rtol=1e-3, atol=1e-3)
    assert shares.max() > 0.98
    # The determinant of the covariance is the volume; its root, one parameter's variance.
    best = min(random_information(excitation), key=lambda G: log_determinant(G)[0])
    _, deviation = accuracy(best, RATE * excitation.duration)
    assert np.mean(np.log(deviation / excitation.deviation)) > 0.1
    assert excitation.condition < 50.0


def test_rest_at_both_ends_and_derivatives() -> None:
    excitation, step = planned("arm"), 1e-5
    q, v, a = periodic(excitation, excitation.duration * np.arange(3.0))
    for off in (q - q[0], v, a):
        np.testing.assert_allclose(off, 0.0, atol=1e-12)
    time = np.linspace(0.5, 5.5, 50)
    _, v, a = excitation.sample(time)
    before, after = excitation.sample(time - step), excitation.sample(time + step)
    np.testing.assert_allclose((after[0] - before[0]) / (2.0 * step), v, atol=1e-7)
    np.testing.assert_allclose((after[1] - before[1]) / (2.0 * step), a, atol=1e-7)
    twice = periodic(excitation, time + excitation.duration)
    for first, second in zip(excitation.sample(time), twice, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-10)


def periodic(excitation: Excitation, time: np.ndarray) -> list[np.ndarray]:
    """Positions, velocities and accelerations of a motion that goes on."""
    motion = excitation.coefficients @ rest_functions(time, excitation.duration)
    return [each.T for each in motion]


def test_same_seed_gives_the_same_motion() -> None:
    again, other = (plan_excitation(arm(), 6.0, seed=n, **SMALL).coefficients for n in (0, 4))
    first = planned("arm").coefficients
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def random_information(excitation: Excitation) -> list[np.ndarray]:
    """Of 50 random motions within the same limits, each as large as they allow."""
    problem, rng = problem_of(excitation), np.random.default_rng(7)
    postures = holding_postures(excitation.model, excitation.limits, rng)
    motions = [problem.random_motion(rng.choice(postures), rng) for _ in range(50)]
    return [problem.information(problem.base_regressor(x)) for x in motions]


def test_deviations_are_those_of_least_squares() -> None:
    model, runs, excitation = arm(), 400, planned("arm")
    time = np.arange(round(RATE * excitation.duration)) / RATE
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
    x = 0.6 * np.random.default_rng(1).standard_normal(2 * FUNCTIONS)
    _, gradient = problem.cost(x, 100.0)
    for i in range(len(x)):
        step = np.zeros(len(x))
        step[i] = 1e-6
        (high, _), (low, _) = problem.cost(x + step, 100.0), problem.cost(x - step, 100.0)
        tolerance = 1e-4 * np.abs(gradient).max()
        assert gradient[i] == pytest.approx((high - low) / 2e-6, abs=tolerance)


def test_ranges_are_kept() -> None:
    excitation = plan_excitation(arm(), 6.0, ranges={"elbow": (0.5, 1.5)}, **SMALL)
    q, _, _ = excitation.sample(np.linspace(0.0, 6.0, 2000))
    assert q[:, 1].min() >= 0.5 and q[:, 1].max() <= 1.5 and np.ptp(q[:, 0]) > 2.0


def test_shares_of_the_limits_and_ranges_where_the_urdf_has_one_or_none() -> None:
    model = arm()
    limits = excitation_limits(model, speed=0.25, torque=0.4)
    for found, expected in (
        (limits.velocity, 0.25 * model.velocity_limit),
        (limits.torque, 0.4 * model.effort_limit),
        (limits.acceleration, limits.velocity / 0.5),
        (limits.upper, 3.0 - 0.3),
        (excitation_limits(pendulum("prismatic"), {"joint0": (0.0, 0.5)}).upper, [0.5]),
    ):
        np.testing.assert_allclose(found, expected)
    for limit, lower in (({"lower": 2.0}, 2.05), ({"upper": -2.0}, -2.05 - 2.0 * np.pi)):
        limits = excitation_limits(pendulum("revolute", **limit))
        np.testing.assert_allclose([limits.lower[0], limits.upper[0]], [lower, lower + 2.0 * np.pi])


def test_joints_without_limits() -> None:
    model = pendulum("continuous", "revolute")
    assert np.isinf([model.effort_limit, model.velocity_limit, model.upper]).all()
    excitation = plan_excitation(model, 6.0, **SMALL)
    q, v, _ = excitation.sample(np.linspace(0.0, 6.0, 1000))
    assert np.abs(q).max() <= np.pi and np.abs(v).max() <= 0.5 * np.pi
    for values in (excitation.deviation, excitation.relative_deviation, excitation.noise):
        assert (np.isfinite(values) & (values > 0.0)).all()


def pendulum(*types: str, **limits: float) -> RobotModel:
    inertia = pseudo_inertia(1.0, np.array([0.2, 0.0, 0.0]), 0.01 * np.eye(3))
    joints, inertias = [], {}
    for i, kind in enumerate(types):
        place = {"translation": (0.4 * (i > 0), 0, 0), "axis": (0, 1, 0)}
        joints.append(Joint(f"joint{i}", kind, f"link{i}", f"link{i + 1}", **place, **limits))
        inertias[f"link{i + 1}"] = inertia
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RobotModelWarning)
        return RobotModel.from_joints("pendulum", joints, inertias)


def test_progress_rises_to_the_end() -> None:
    done: list[float] = []
    plan_excitation(arm(), 6.0, starts=1, iterations=8, progress=done.append)
    assert done == sorted(done)
    assert 0.0 < done[0] < 0.5 and done[-1] == pytest.approx(1.0)


def test_options_that_are_not_allowed() -> None:
    for options, message in (
        ({"ranges": {"knee": (0.0, 1.0)}}, "range of knee: .* moves the joints shoulder, elbow"),
        ({"ranges": {"elbow": (1.0, 1.0)}}, "'elbow' is 1 to 1; .* the lower one first"),
        ({"ranges": {"elbow": (0.0, np.nan)}}, "range of joint 'elbow' is 0 to nan"),
        ({"ranges": {"elbow": (0.0, 4.0)}}, "'elbow' is 0 to 4; .* limits, -3 to 3"),
        ({"duration": 0.5}, "duration is 0.5 s; it must be from 3 s"),
        ({"duration": 4000.0}, "duration is 4000 s; .* to 3600 s"),
        ({"duration": np.nan}, "duration is nan s"),
        ({"speed": 0.0}, "speed is 0.0; .* above 0 and at most 1"),
        ({"torque": 1.5}, "torque is 1.5; .* above 0 and at most 1"),
        ({"seed": -1}, "seed is -1"),
    ):
        with pytest.raises(IdentificationError, match=message):
            plan_excitation(arm(), **{"duration": 6.0, **options})


def test_robots_that_are_not_planned_for() -> None:
    for kinds, limits, words in (
        *(
            (("revolute", kind), {}, rf"'joint1' is {kind}; only revolute, .* by the option")
            for kind in ("floating", "helical", "universal")
        ),
        (("prismatic",), {}, r"'joint0' is -inf to inf; .* Give such a range"),
        (("revolute",), {"effort_limit": 0.0}, r"the effort limit of joint0 .* is 0"),
    ):
        with pytest.raises(IdentificationError, match=words):
            plan_excitation(pendulum(*kinds, **limits))
    weak = RobotModel.from_urdf_string(two_link_arm().replace('effort="100"', 'effort="5"'))
    words = (
        r"gravity alone takes [0-9.]+ Nm of joint 'shoulder', and the motion may use 3.5 Nm, .*"
        r"shoulder -?0\.[0-9]+, elbow -?0\.[0-9]+; allow more torque"
    )
    with pytest.raises(IdentificationError, match=words):
        plan_excitation(weak, ranges=dict.fromkeys(weak.joint_names, (-0.3, 0.3)))


@cache
def short() -> Excitation:
    model = RobotModel.from_urdf_string(two_link_arm())
    return plan_excitation(model, 5.0, starts=1, iterations=20)


def numbers(text: str) -> tuple[np.ndarray, np.ndarray]:
    """Times, and positions, velocities and accelerations, shape (points, 3, nv), of a file."""
    points = yaml.safe_load(text)["points"]
    starts = [point["time_from_start"] for point in points]
    names = ("positions", "velocities", "accelerations")
    rows = [[point[name] for name in names] for point in points]
    return np.array([start["sec"] + 1e-9 * start["nanosec"] for start in starts]), np.array(rows)


@pytest.mark.parametrize(("duration", "points"), [(5.0, 51), (3.0, 41)])
def test_quintics_between_the_points_follow_the_series(duration, points) -> None:
    excitation = short()
    excitation = replace(excitation, duration=duration)
    found, read = numbers(trajectory_yaml(excitation, 4.0))
    assert found[0] == 4.0
    assert found[-1] == pytest.approx(4.0 + excitation.duration, abs=1e-9)
    assert len(found) == points  # 0.1 s apart, and 8 in the fastest oscillation
    made = np.stack(excitation.sample(found - 4.0), axis=1)
    np.testing.assert_allclose(read, made, atol=1e-7)
    assert (read[[0, -1], 1:] == 0.0).all()
    time = np.linspace(0.0, excitation.duration, 20001)
    q, _, _ = excitation.sample(time)
    assert np.abs(BPoly.from_derivatives(found, read)(time + 4.0) - q).max() < 1e-4


def test_any_yaml_reader_finds_the_message() -> None:
    message = yaml.safe_load(trajectory_yaml(short()))
    assert set(message) == {"joint_names", "points"}
    for point in message["points"]:
        assert set(point) == {"positions", "velocities", "accelerations", "time_from_start"}
        assert set(point["time_from_start"]) == {"sec", "nanosec"}
        assert all(type(part) is int for part in point["time_from_start"].values())
        for name in ("positions", "velocities", "accelerations"):
            assert [type(number) for number in point[name]] == [float, float]


def test_comment_and_names_may_be_anything() -> None:
    urdf = two_link_arm().replace("shoulder", "on").replace("elbow", "it's: 5")
    excitation = replace(short(), model=RobotModel.from_urdf_string(urdf))
    text = trajectory_yaml(excitation, comment="a: [\n\n- b")
    assert text.startswith("# a: [\n#\n# - b\njoint_names")
    found = yaml.safe_load(text)
    assert found["joint_names"] == ["on", "it's: 5"]


def test_half_a_minute_of_seven_joints_fits_on_a_command_line() -> None:
    model = load_quietly(example_robot("panda"), PANDA_JOINTS)
    excitation = plan_excitation(model, 30.0, starts=1, iterations=1)
    assert len(trajectory_yaml(excitation).encode()) < 128 * 1024  # as Linux allows an argument


def test_short_names() -> None:
    name = "link2.mcy - 0.316 link3.m - link3.mcz"
    shorter = [shortened(name, longest) for longest in (40, 30, 5)]
    assert shorter == [name, "link2.mcy - 0.316 link3.m ...", "link2.mcy ..."]
    assert shortened("a_very_long_name.damping", 5) == "a_very_long_name.damping"
