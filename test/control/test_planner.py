"""From waypoints to an adopted trajectory: what is refused, integrated, slowed, settled, and where
it starts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from controllers import ARM, ask, following, of_joints, run, step, to, wheel_and_hinge
from robots import two_link_arm

from rnea_control import exceptions
from rnea_control.control import (
    Act,
    ControlLaw,
    EndKind,
    ExcessiveEffort,
    MotionRequest,
    Waypoint,
    Waypoints,
)
from rnea_control.control.stopping import STOP_SEGMENTS
from rnea_control.control.trajectory_limits import peak_efforts
from rnea_control.dynamics import Workspace
from rnea_control.exceptions import TrajectoryError, TrajectoryPassedError
from rnea_control.model import RobotModel

ZERO, ONE = np.zeros(2), np.ones(2)
RNG = np.random.default_rng(21)


def at_1(q=ZERO, v=None, a=None, effort=None) -> list[Waypoint]:
    """One point, at 1 s."""
    fields = (None if x is None else np.asarray(x, dtype=float) for x in (q, v, a, effort))
    return [Waypoint(1.0, *fields)]


def lines(*points: tuple[float, object]) -> list[Waypoint]:
    """Through (time, position)."""
    return [Waypoint(t, np.broadcast_to(np.float64(q), 2)) for t, q in points]


# By what they are: the points, and the words of the refusal.
REFUSED = {
    "no points": ([], "no points"),
    "too few positions": (at_1(np.zeros(1)), "point 0: has 1 position values for 2"),
    "NaN position": (at_1([0, np.nan]), "0: the position of joint 'elbow'"),
    "NaN time": (lines((math.nan, 0)), "point 0: its time is nan"),
    "negative time": (lines((-1.0, 0), (1.0, 0)), "point 0: its time is -1 s"),
    "times that fall": (lines((2.0, 0), (1.0, 0)), "point 1: its time 1 s"),
    "moving at the end": (
        at_1(v=[0.0, 0.1]),
        "the last point: joint 'elbow' has velocity 0.1 at the end; the last point of a goal .* "
        "allow_nonzero_velocity_at_trajectory_end",
    ),
    "acceleration without velocity": (at_1(a=ZERO), "and accelerations but no velocities"),
    "velocities alone": (
        [*at_1(), Waypoint(2.0, None, ZERO)],
        "1: has no positions; .* allow_integ",
    ),
    "nothing": (at_1(None), "point 0: has no positions, velocities or accelerations"),
    "a point outside": (at_1([0.0, 3.1]), "the point at 1 s: joint 'elbow'"),
    "at once": (lines((0.0, 0)), "time is 0 s"),
    "too fast in the middle": (
        lines((1.0, 0), (1.1, [0.0, 2.0]), (9.0, 0)),
        "1.1 s, joint 'elbow' .* 20 ",
    ),
    "too fast to the second": (lines((0.0, 0), (0.05, 1)), "'shoulder' would move at 20"),
    "velocities that overflow": ([Waypoint(0.1, ZERO, 1e308 * ONE), *at_1(v=ZERO)], "too large"),
    "efforts that overflow": (
        [*at_1(effort=1.7e308 * ONE), Waypoint(1.001, ZERO, effort=-1.7e308 * ONE)],
        r"point 0: the effort of joint 'shoulder' is 1.7e\+308 Nm; its effort limit is 100 Nm",
    ),
    "another arm's": (Waypoints.of([Waypoint(1.0, np.zeros(3))], 3), "of 3 joints, not of 2"),
}
# By when they are to start, [s].
REFUSED_STARTS = {
    math.nan: (at_1(), "its start is nan s; it must be finite"),
    math.inf: (at_1(), "its start is inf s"),
    -5.0: (at_1(), r"the trajectory ended 4\.000 s ago"),
    1e17: (lines((1e-9, 0)), "is too far ahead"),
    2e9: (lines((1.0, 0), (1.0 + 1e-8, 0)), r"at its start, 2e\+09 s from now, points are less"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_its_reason(name: str) -> None:
    points, words = REFUSED[name]
    c = following()
    before = c.follow(0.0, [to(5.0, 0.1, 0.1)], 0.0), c.trajectory
    with pytest.raises(TrajectoryError, match=words):
        c.follow(0.0, points, 0.0)
    assert (c.motion, c.trajectory) == before and before[0].ending is None


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        (exceptions.TrajectoryPointsError, REFUSED["NaN position"][0]),
        (exceptions.TrajectoryTimesError, REFUSED["times that fall"][0]),
        (exceptions.TrajectoryStartError, lines((0.0, 0.5), (1.0, 0))),
        (exceptions.TrajectoryEndError, [to(1.0, 0.1, 0.1, velocity=ONE)]),
        (exceptions.TrajectoryLimitsError, REFUSED["too fast in the middle"][0]),
        (exceptions.TrajectoryModeError, at_1()),
    ],
)
def test_class_of_a_refusal_tells_what_to_change(kind: type[TrajectoryError], points: list) -> None:
    by_hand = kind is exceptions.TrajectoryModeError
    law = ControlLaw.gravity_compensation if by_hand else ControlLaw.computed_torque
    with pytest.raises(kind):
        following(law=law).follow(0.0, points, 0.0)


@pytest.mark.parametrize("start", REFUSED_STARTS)
def test_start_is_refused_with_its_reason(start: float) -> None:
    points, words = REFUSED_STARTS[start]
    kind = TrajectoryPassedError if start < 0.0 else TrajectoryError
    with pytest.raises(kind, match=words):
        following().follow(0.0, points, start)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("requests", [300, pytest.param(1500, marks=pytest.mark.explores)])
def test_extreme_numbers_raise_nothing_else(requests: int) -> None:
    """Whatever is asked, it is followed or refused."""
    extremes = [0.0, 1e-300, 1e-12, 1e-6, 1.0, 1e9, 1e17, 1e150, 1e300, 1.7e308]
    taken = 0
    for seed in range(requests):
        rng = np.random.default_rng(seed)
        c = following(
            q=rng.uniform(-1.0, 1.0, 2),
            model=ARM if rng.random() < 0.5 else wheel_and_hinge(),
            allow_moving_end=True,
            allow_integration=True,
            upsample_positions=bool(rng.random() < 0.5),
            start_from_desired_state=bool(rng.random() < 0.5),
            excessive_effort=rng.choice(list(ExcessiveEffort)),
        )
        n = int(rng.integers(1, 4))
        times = np.sort(rng.choice(extremes, n, replace=False)) if seed % 2 else np.arange(n) + 1.0
        fields, has = np.zeros((4, n, 2)), rng.random((4, n)) < 0.6
        wild = rng.random((4, n, 2)) < 0.2
        fields[:] = rng.uniform(-1.0, 1.0, fields.shape)
        fields[wild] = rng.choice(extremes, wild.sum()) * rng.choice([-1.0, 1.0], wild.sum())
        fields[~has] = 0.0
        joints = np.array([True, rng.random() < 0.7])
        points = Waypoints(times, fields * joints, has, joints)
        start = rng.choice([None, 0.0, -0.5, 1e-7, 1e9, 1e300, -1e300])
        try:
            c.adopt(c.plan(MotionRequest(points, start), c.situation(0.0), 0.005))
        except TrajectoryError:
            continue
        taken += 1
        assert np.isfinite(c.trajectory.starts).all()
        for t in (0.0, 0.01, 0.5, 2.0, 100.0):
            tau = np.zeros(2)
            c.step(t, *c.trajectory.at(t)[:2], tau)
            assert np.isfinite(tau).all()
    assert taken > requests / 30


def test_velocities_are_integrated_by_the_trapezoidal_rule() -> None:
    start = np.array([0.1, -0.2])
    c = following(start, allow_integration=True)
    times, v = np.array([0.5, 1.5, 2.0]), np.array([[0.2, 0.0], [0.4, -0.2], [0.0, 0.0]])
    c.follow(0.0, [Waypoint(t, None, row) for t, row in zip(times, v, strict=True)], 0.0)
    # From rest.
    mean = 0.5 * (v + np.concatenate([[ZERO], v[:-1]]))
    p = start + np.cumsum(np.diff(times, prepend=0.0)[:, None] * mean, axis=0)
    for t, *expected in zip(times, p, v, strict=True):
        np.testing.assert_allclose(c.trajectory.at(t)[:2], expected, atol=1e-13)
    assert not c.trajectory.coefficients[:, :, 3:6].round(12).any()  # parabolas


def test_accelerations_are_integrated_twice() -> None:
    a = [np.array([1.0, 0.0]), np.array([-1.0, 0.5]), np.array([0.0, -0.5])]
    points = [Waypoint(0.5 * (i + 1), None, None, row) for i, row in enumerate(a)]
    with pytest.raises(TrajectoryError, match=r"has velocity 0\.25 at the end"):
        following(allow_integration=True).follow(0.0, points[:1], 0.0)
    c = following(allow_integration=True, allow_moving_end=True)
    c.follow(0.0, points, 0.0)
    p, v, last = ZERO, ZERO, ZERO
    for point in points:
        new = v + 0.25 * (last + point.acceleration)
        p, v, last = p + 0.25 * (v + new), new, point.acceleration
        before = c.trajectory.at(point.time - 1e-12)
        np.testing.assert_allclose(before, [p, v, last], atol=1e-9)


def test_integration_goes_on_from_given_positions_and_from_motion() -> None:
    c = following(allow_integration=True)
    c.follow(0.0, [to(2.0, 1.0, 1.0)], 0.0)
    run(c, 0.0, 1.0, 0.01)
    q, v, _ = c.trajectory.at(1.0)
    assert (v > 0.5).all()
    there = Waypoint(1.0, np.array([0.9, 0.2]), 0.1 * ONE)
    points = [Waypoint(0.5, None, ZERO), there, Waypoint(2.0, None, ZERO)]
    c.follow(1.0, points, 1.0)
    np.testing.assert_allclose(c.trajectory.at(1.5)[0], q + 0.25 * v, atol=1e-12)
    np.testing.assert_allclose(c.trajectory.at(2.0)[0], [0.9, 0.2], atol=1e-12)
    np.testing.assert_allclose(c.trajectory.at(3.0)[0], [0.95, 0.25], atol=1e-12)


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("acceleration", [None, np.array([0.5, 0.0])])
def test_arm_settles_at_a_moving_end(acceleration, is_stream: bool) -> None:
    """A stream's end may move by default."""
    bound = np.array([4.0, 1.0])
    c = following(allow_moving_end=not is_stream, max_deceleration=bound)
    last = Waypoint(1.0, np.array([0.5, 0.2]), np.array([0.6, -0.3]), acceleration)
    request = MotionRequest(Waypoints.of([last], 2), 0.0, is_stream=is_stream)
    plan = c.plan(request, c.situation(0.0), 0.0)
    assert c.adopt(plan)
    motion = plan.motion
    q, v, _ = c.trajectory.at(1.0)
    np.testing.assert_allclose([q, v], [last.position, last.velocity], atol=1e-12)
    rows = run(c, 0.0, 1.0)
    assert motion.ending.kind == EndKind.REACHED and c.is_moving
    assert motion.end == 1.0 and c.trajectory.end_time == pytest.approx(1.0 + 4.0 * 0.3 / 1.0)
    rows = run(c, 1.0, c.trajectory.end_time)
    np.testing.assert_allclose(rows[-1, :2], [last.position, ZERO], atol=1e-9)
    assert (np.abs(rows[:, 2]).max(axis=0) <= bound * 1.001 + (acceleration is not None)).all()
    assert np.abs(np.diff(rows[:, 1], axis=0)).max() < 0.01


# --- where the arm is already


def at_0(*position: float, **fields) -> list[Waypoint]:
    return [to(0.0, *position, **fields)]


@pytest.mark.parametrize("bare", [False, True])
def test_goal_at_time_0_where_the_arm_rests_is_reached_in_the_next_state(bare: bool) -> None:
    """As MoveIt Task Constructor sends it: nothing moves, and the goal does not fail."""
    c = following([0.3, -0.2], tolerances={"goal_position": 0.02, "goal_velocity": 0.01})
    run(c, 0.0, 0.01)
    held, points = c.trajectory.sampled(1.0), at_0(0.31, -0.2)
    motion = ask(c, 0.0105, [Waypoint(0.0, np.array([0.31, -0.2]))] if bare else points)
    step(c, 0.011)
    c.tell()
    assert motion.ending.kind is EndKind.REACHED and motion.ending.text == "the goal is reached"
    np.testing.assert_array_equal(c.trajectory.sampled(1.0), held)


def test_goal_at_time_0_waits_until_the_arm_is_within_its_tolerances() -> None:
    c = following([0.3, -0.2], tolerances={"goal_position": 0.02, "goal_velocity": 0.01})
    run(c, 0.0, 0.01)
    motion = ask(c, 0.0105, at_0(0.3, -0.2))
    step(c, 0.011, fast=0.1)
    assert motion.ending is None
    step(c, 0.012)
    c.tell()
    assert motion.ending.kind is EndKind.REACHED


@pytest.mark.parametrize(
    ("points", "tolerances", "moving"),
    [
        (at_0(0.33, -0.2), {"goal_position": 0.02}, False),  # elsewhere
        (at_0(0.3, -0.1), {}, False),  # without a tolerance
        (at_0(0.3, -0.2, velocity=0.1), {}, False),
        (at_0(0.3, -0.2), {}, True),
    ],
)
def test_goal_at_time_0_elsewhere_or_in_motion_is_refused(points, tolerances, moving) -> None:
    c = following([0.3, -0.2], tolerances=tolerances)
    if moving:
        c.follow(0.0, [to(2.0, 0.4, -0.2)], 0.0)
    run(c, 0.0, 0.01)
    with pytest.raises(
        exceptions.TrajectoryTimesError, match="does not rest there, and needs time"
    ):
        ask(c, 0.01, points)


# --- effort limits


QUICK = two_link_arm().replace('velocity="10"', 'velocity="99"')
WEAK = RobotModel.from_urdf_string(QUICK.replace('effort="100"', 'effort="20"'))
UP = (-math.pi / 2.0, 0.0)  # where it needs no torque to stand


def peak(c, begin: float) -> float:
    return peak_efforts(WEAK, Workspace(WEAK), c.trajectory, begin, c.settings).ratio


def fast(factor: float) -> list[Waypoint]:
    return [to(0.3 * factor, UP[0] + 0.5, 0.3)]


def test_excessive_effort_is_refused_with_joint_torque_and_a_remedy() -> None:
    c = following(UP, WEAK, excessive_effort=ExcessiveEffort.refuse)
    held = c.trajectory
    words = r"s into it, joint 'shoulder' needs .* its effort limit is 20\. Make .* times slower"
    with pytest.raises(TrajectoryError, match=words) as refused:
        c.follow(0.0, fast(1.0), 0.0)
    assert c.trajectory is held
    factor = float(str(refused.value).split("trajectory ")[1].split(" times")[0])
    c.follow(0.0, fast(1.01 * factor), 0.0)
    # The effort of the points counts as torque.
    c.follow(0.0, at_1(UP, ZERO, ZERO, 19.0 * ONE), 0.0)
    with pytest.raises(TrajectoryError, match=r"'shoulder' is 21 Nm; its effort limit is 20"):
        c.follow(0.0, at_1(UP, ZERO, ZERO, 21.0 * ONE), 0.0)
    heavy = RobotModel.from_urdf_string(two_link_arm().replace('effort="100"', 'effort="5"'))
    c = following(UP, heavy, excessive_effort=ExcessiveEffort.slow_down)
    with pytest.raises(
        TrajectoryError, match="Going slower does not help, as gravity and the effo"
    ):
        c.follow(0.0, [to(3.0, 0.0, 0.0)], 0.0)
    c = following(UP, WEAK)  # by default it is warned of
    motion = c.follow(0.0, fast(1.0), 0.0)
    assert "joint 'shoulder' needs" in motion.note and motion.end == 0.3
    assert c.follow(0.0, [to(3.0, UP[0] + 0.1, 0.0)], 0.0).note == ""


@pytest.mark.parametrize("excess", list(ExcessiveEffort))
def test_effort_of_a_point_that_leaves_nothing_for_the_feedback_is_refused(excess) -> None:
    """Also where other excessive torques are only warned of: it would throw the arm."""
    c = following([0.0, 0.0], excessive_effort=excess)  # gravity takes part of the limit of 100
    held = c.trajectory
    beyond = r"point 1: the effort of joint 'elbow' is 1e\+06 Nm; its effort limit is 100 Nm"
    with pytest.raises(exceptions.TrajectoryLimitsError, match=beyond):
        points = [*at_1(ZERO, ZERO, ZERO), Waypoint(2.0, ZERO, ZERO, ZERO, np.array([0.0, 1e6]))]
        c.follow(0.0, points, 0.0)
    static = "Going slower does not help, as gravity and the efforts of its points need that"
    with pytest.raises(exceptions.TrajectoryLimitsError, match=static):
        c.follow(0.0, at_1(ZERO, ZERO, ZERO, -99.0 * ONE), 0.0)
    assert c.trajectory is held
    assert c.follow(0.0, at_1(ZERO, ZERO, ZERO, 20.0 * ONE), 0.0).note == ""


@pytest.mark.parametrize("start", [0.0, 0.3])
@pytest.mark.parametrize("smooth", [False, True])
def test_slowed_down_as_little_as_it_takes(smooth: bool, start: float) -> None:
    c = following(UP, WEAK, excessive_effort=ExcessiveEffort.slow_down, upsample_positions=smooth)
    goal = np.array([UP[0] + 0.4, 0.4])
    points = lines((0.15, goal), (0.3, UP))
    if not smooth:
        points = [to(p.time, *p.position) for p in points]
    motion = c.follow(0.0, points, start)
    assert peak(c, 0.0) == pytest.approx(1.0, abs=1e-5)
    first, last = motion.times
    assert first - start == pytest.approx(0.5 * (last - start))
    assert motion.note.startswith(f"{(last - start) / 0.3:.4g} times slower than requested")
    np.testing.assert_allclose(c.trajectory.at(first)[0], goal, atol=1e-12)
    assert [motion.index(s) for s in (0.0, first - 1e-9, first, last)] == [0, 0, 1, 2]


def test_slowed_down_in_motion_as_little_as_it_takes() -> None:
    """Only what is ahead is stretched, not the velocity that the arm has."""
    slowed = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        c = following(UP, WEAK, excessive_effort=ExcessiveEffort.slow_down)
        for t in (0.0, 0.4):
            points = [to(0.25 * i, *(UP + rng.uniform(-0.4, 0.4, 2))) for i in (1, 2, 3)]
            step(c, t)
            motion = c.follow(t, points, t)
        near = 1e-3 if seed == 0 else 1.1e-5
        assert peak(c, 0.4) <= 1.0 + near
        if motion.note:
            slowed += 1
            assert peak(c, 0.4) >= 1.0 - near
    assert slowed > 20


# --- where it starts


def moving(**settings):
    """On the way from zero to (0.5, 0.5) in 1 s."""
    c = following(**settings)
    c.follow(0.0, [to(1.0, 0.5, 0.5)], 0.0)
    return c


def astray(c, t: float, away, fast=0.0) -> tuple[np.ndarray, np.ndarray]:
    """A step with the arm elsewhere; its state."""
    q, v, _ = c.trajectory.at(t)
    q, v = q + np.array(away), v + np.array(fast)
    c.step(t, q, v, np.zeros(c.model.nv))
    return q, v


def test_it_starts_where_the_arm_should_be() -> None:
    c = moving(tolerances={"path_position": 0.1})
    astray(c, 0.5, (0.09, -0.09))
    before = c.trajectory.sampled(0.5)
    c.follow(0.5, [to(1.0, 0.0, 0.0)], 0.5)
    np.testing.assert_allclose(c.trajectory.sampled(0.5), before, atol=1e-12)


@pytest.mark.parametrize("lead", [0.0, 0.02])
def test_it_starts_where_the_arm_is_if_so_set(lead: float) -> None:
    c = moving(start_from_desired_state=False)
    q, v = astray(c, 0.5, (0.02, -0.03), (0.1, 0.2))
    ask(c, 0.5, [to(1.0, 0.0, 0.0)], lead=lead)
    for t in (0.5, 0.5 + lead):
        np.testing.assert_allclose(c.trajectory.at(t)[:2], [q + (t - 0.5) * v, v], atol=1e-12)


def test_it_starts_where_the_arm_is_after_an_error_beyond_the_path_tolerance() -> None:
    c = following(tolerances={"path_position": 0.1})
    q, v = astray(c, 0.5, (0.0, 0.3), (0.1, 0.2))  # pushed while it holds
    c.follow(0.5, [to(1.0, 0.0, 0.0)], 0.5)
    np.testing.assert_allclose(c.trajectory.at(0.5)[:2], [q, v], atol=1e-12)
    motion = c.motion
    step(c, 0.501)
    assert motion.ending is None


def test_start_in_the_future_goes_on_from_the_trajectory() -> None:
    c = moving(start_from_desired_state=False)
    astray(c, 0.5, 0.02)
    old = c.trajectory
    c.follow(0.5, [to(1.0, 0.0, 0.0)], 0.7)
    for t in (0.5, 0.6, 0.7):
        np.testing.assert_allclose(c.trajectory.sampled(t), old.sampled(t), atol=1e-12)


def test_omitted_joints_do_not_drift_when_the_others_start_where_they_are() -> None:
    c = following(start_from_desired_state=False)
    ask(c, 0.0, of_joints([to(2.0, 0.0, 0.5)], (False, True)))
    old = c.trajectory
    q, v = astray(c, 0.5, (0.02, 0.03), (0.1, 0.2))
    ask(c, 0.5, of_joints([to(1.0, 0.3, 0.0)], (True, False)))
    np.testing.assert_allclose(c.trajectory.at(0.5)[:2, 0], [q[0], v[0]], atol=1e-12)
    for t in np.linspace(0.5, 5.0, 50):
        np.testing.assert_allclose(c.trajectory.at(t)[:, 1], old.at(t)[:, 1], atol=1e-12)


@pytest.mark.parametrize(("scaling", "most"), [(0.5, 0.4), (0.02, 10.0), (0.001, 0.0)])
def test_start_where_the_arm_is_bounds_its_velocity_by_trajectory_time(scaling, most) -> None:
    """0.2 rad/s at a fiftieth of the speed would be 10 rad/s, and more is not checked for."""
    c = following(start_from_desired_state=False)
    c.speed_scaling = scaling
    c.hold(0.0, ZERO)
    c.step(0.5, ZERO, np.array([0.2, -0.3]), np.zeros(2))
    ask(c, 0.5, [to(1.0, 0.0, 0.0)])
    v = c.trajectory.at(c.trajectory_time)[1]
    np.testing.assert_allclose(v, [most, -min(1.5 * most, 10.0)], rtol=1e-9)


def test_continuous_joint_astray_by_a_turn_is_not_astray() -> None:
    c = following((3.0, 0.0), wheel_and_hinge(), tolerances={"path_position": 0.1})
    c.step(0.1, np.array([3.0 - 2.0 * math.pi, 0.0]), ZERO, np.zeros(2))
    c.follow(0.1, [to(1.0, -3.0, 0.0)], 0.1)
    np.testing.assert_allclose(c.situation(0.1).error, 0.0, atol=1e-12)
    np.testing.assert_allclose(c.trajectory.at(0.1)[0], [3.0 - 2.0 * math.pi, 0.0])
    c.finish("no motion is checked now")
    for turns, sign in ((2, 1.0), (-1, -1.0)):
        away = np.array([sign * 0.2 + 2.0 * math.pi * turns, 0.0])
        astray(c, 0.1, away)
        np.testing.assert_allclose(c.situation(0.1).error, [-0.2 * sign, 0.0], atol=1e-12)


# --- adopting


def test_planner_keeps_what_a_later_stop_overwrites() -> None:
    """Stops take turns in two arrays, while a planner in another thread reads the first one."""
    c = following(max_deceleration=ONE)
    for k in range(4):
        t = 0.5 * k
        c.follow(t, [to(1.0, *RNG.uniform(-1.0, 1.0, 2))], t)
        step(c, t + 0.5)
        c.finish("cancelled", Act.BRAKES, EndKind.CANCELLED)
        if k == 0:
            assert len(c.trajectory.starts) == STOP_SEGMENTS
            situation = c.situation(0.5)
            before = [c.trajectory.sampled(s) for s in np.linspace(0.5, 1.5, 20)]
    after = [situation.trajectory.sampled(s) for s in np.linspace(0.5, 1.5, 20)]
    np.testing.assert_array_equal(after, before)


# Streams.


@pytest.mark.parametrize("lost", [0.0, 0.035, 0.08])
def test_message_of_a_stream_that_comes_late_is_joined_within_its_own_speed(lost: float) -> None:
    """What was lost in a pause is caught up until the last point, not until the first one."""
    speed, period, horizon = np.array([0.3, -0.1]), 0.01, 0.1
    c, lengths = following(), np.arange(1, round(horizon / period) + 1) * period

    def message(now: float, behind: float) -> list[Waypoint]:
        """Its window begins in the past, as that of moveit_servo does."""
        times = np.concatenate([-lengths[::-1], lengths]) + horizon
        return [Waypoint(t, speed * (now - horizon + t + behind), speed) for t in times if t > 0.0]

    ask(c, 0.0, [Waypoint(0.5, 0.5 * speed, speed)], is_stream=True)
    run(c, 0.0, 0.7)
    for k in range(60):
        now = 0.7 + period * k
        behind = 0.0 if k < 30 else lost
        ask(c, now, message(now, behind), now - horizon, 0.001, is_stream=True)
        rows = run(c, now, now + period)
        if k >= 30:
            assert (np.abs(rows[:, 1]) <= 2.0 * np.abs(speed) + 1e-6).all()
    end = speed * (now + period + lost)
    np.testing.assert_allclose(rows[-1, :2], [end, speed], atol=1e-6)


def test_message_of_a_stream_of_which_no_point_has_passed_meets_all_its_points() -> None:
    """However fast the way to the first one is, compared with the rest."""
    c = following()
    run(c, 0.0, 0.1)
    ask(c, 0.1, lines((0.5, 0.4), (2.0, 0.41)), 0.08, 0.001, is_stream=True)
    rows = run(c, 0.1, 0.6)
    np.testing.assert_allclose(rows[479, 0], 0.4, atol=2e-3)  # at 0.58
