"""Each bound of the motion: what violates it, what almost does, and how soon it is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from controllers import JOINT_SPACE
from default_safety import default_safety
from robots import LIMIT, example_robot, joint, link, load_quietly, robot, two_link_arm
from watched_motion import EFFORT, ELBOW, SHOULDER, SPEED, WatchedMotion, at_elbow

from rnea_control.control import ControlLaw, ControllerSettings, Gains, layout
from rnea_control.control.motion_watch import FREE, STOPPED, UNWATCHED
from rnea_control.control.references import Reference
from rnea_control.dynamics import Workspace, jacobian
from rnea_control.model import RobotModel

FOLLOWING = [law for law in JOINT_SPACE if law.follows_trajectories]
FOUND_NOTHING = layout.UNDER_WAY


def ramp(value: float, over: float = 0.1):
    """A value of the elbow that is reached after a while."""
    return lambda t: at_elbow(value * min(t / over, 1.0))


def elbow_reads(velocity_factor: float):
    return lambda k, q, v: (q, v * np.array([1.0, velocity_factor]))


# 1. Positions against velocities.


@pytest.mark.parametrize(
    ("factor", "speed"),
    [(-1.0, 0.5), (-1.0, 2.0), (0.0, 0.5), (0.0, 2.0), (57.3, 0.05), (0.25, 0.5)],
)
def test_velocity_that_positions_contradict_is_found_within_a_tenth_of_a_second(
    factor: float, speed: float
) -> None:
    """Before any other bound: none of them is violated."""
    arm = WatchedMotion()
    assert arm.run(0.3, at_elbow(speed)).kind == FOUND_NOTHING
    wrong = elbow_reads(factor)
    desired = at_elbow(factor * speed)  # a law that goes by such a velocity sees no error
    found = arm.run(0.3, at_elbow(speed), desired=desired, measured=wrong)
    assert found.kind == layout.CONTRADICTED and found.joint == ELBOW
    # Moved by positions, and by velocities: 0.02 rad, and what comes meanwhile.
    apart, grows = abs(found.value - found.bound), abs(1.0 - factor) * speed
    assert 0.02 < apart < 0.02 + 0.017 * grows
    assert found.after < min(0.1, 0.03 + 0.025 / grows)


def test_slow_joint_contradicts_by_a_tenth_of_what_its_fastest_motion_covers() -> None:
    """0.01 rad where the velocity limit is 1 rad/s: found at a speed at which 0.02 rad is not."""
    slow = two_link_arm().replace(LIMIT, LIMIT.replace('velocity="10"', 'velocity="1"'))
    arms = WatchedMotion(model=RobotModel.from_urdf_string(slow)), WatchedMotion()
    kinds = [arm.run(0.5, at_elbow(0.15), measured=elbow_reads(0.0)).kind for arm in arms]
    assert kinds == [layout.CONTRADICTED, FOUND_NOTHING]


def test_velocity_that_is_a_little_off_contradicts_nothing() -> None:
    """A tenth at half the velocity limit, for as long as the joint's range allows."""
    arm = WatchedMotion()
    assert arm.run(0.5, at_elbow(2.0), measured=elbow_reads(0.92)).kind == FOUND_NOTHING


@pytest.mark.parametrize(("rate", "off"), [(1000, 0.03), (1000, 3.0), (200, 3.0), (50, 0.1)])
def test_one_wrong_position_contradicts_nothing(rate: int, off: float) -> None:
    arm = WatchedMotion(h=1.0 / rate)
    arm.run(0.2, at_elbow(1.0))

    def glitch(k, q, v):
        return q + (at_elbow(off) if k == 3 else 0.0), v

    assert arm.run(0.5, at_elbow(1.0), measured=glitch).kind == FOUND_NOTHING


def test_wrong_positions_now_and_then_do_not_add_up() -> None:
    arm = WatchedMotion(h=0.005)
    arm.run(0.2, at_elbow(1.0))

    def glitches(k, q, v):
        return q + (at_elbow(0.05) if k % 12 == 3 else 0.0), v

    assert arm.run(1.0, at_elbow(1.0), measured=glitches).kind == FOUND_NOTHING


@pytest.mark.parametrize("rate", [200, 50])
def test_contradiction_that_lasts_is_found_at_any_rate_of_states(rate: int) -> None:
    arm = WatchedMotion(h=1.0 / rate)
    found = arm.run(0.5, at_elbow(1.0), measured=elbow_reads(-1.0))
    assert found.kind == layout.CONTRADICTED and found.after < 0.1


def test_turn_of_a_continuous_joint_contradicts_nothing() -> None:
    """Drivers tell its angle from -pi to pi."""
    text = two_link_arm().replace('type="revolute"', 'type="continuous"')
    arm = WatchedMotion(h=0.005, model=RobotModel.from_urdf_string(text))

    def wrapped(k, q, v):
        return (q + np.pi) % (2.0 * np.pi) - np.pi, v

    assert arm.run(2.0, at_elbow(5.0), measured=wrapped).kind == FOUND_NOTHING
    assert arm.q[ELBOW] > 3.0 * np.pi


# 2 and 3. Velocity, and its error.


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_velocity_beyond_its_limit_by_a_fifth(side: float) -> None:
    arm = WatchedMotion()
    assert arm.run(0.3, ramp(side * 1.17 * SPEED)).kind == FOUND_NOTHING
    found = arm.run(0.05, at_elbow(side * 1.25 * SPEED))
    assert found.kind == layout.TOO_FAST and found.joint == ELBOW
    assert found.bound == pytest.approx(1.2 * SPEED)
    assert side * found.value == pytest.approx(1.25 * SPEED)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_velocity_error_of_seven_tenths_of_the_limit(side: float) -> None:
    """Smoothed over 5 ms: for a while it may be twice as large."""
    arm = WatchedMotion()
    zero = np.zeros(2)
    assert arm.run(0.1, at_elbow(side * 0.65 * SPEED), desired=zero).kind == FOUND_NOTHING
    arm.run(0.1)
    assert arm.run(0.002, at_elbow(side * 1.4 * SPEED), desired=zero).kind == FOUND_NOTHING
    arm.run(0.1)
    found = arm.run(0.1, at_elbow(side * 0.8 * SPEED), desired=zero)
    assert found.kind == layout.RUNAWAY and found.joint == ELBOW and found.after < 0.02
    assert found.bound == pytest.approx(0.7 * SPEED)
    assert -side * found.value > found.bound  # desired minus measured


def test_one_wrong_velocity_violates_nothing() -> None:
    """By the momentum it is a torque beyond all bounds, in one state."""
    arm = WatchedMotion()

    def glitch(k, q, v):
        return q, v + (at_elbow(19.0) if k == 3 else 0.0)

    assert arm.run(0.3, measured=glitch, desired=np.zeros(2)).kind == FOUND_NOTHING


# 4 and 5. Something drives the arm.


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_torque_that_drives_a_joint_along_its_motion(side: float) -> None:
    """Beyond a quarter of the effort limit, which the observer sees a little later."""
    arm = WatchedMotion()
    slow = at_elbow(side * 0.4)
    assert arm.run(0.4, slow, external=at_elbow(side * 0.23 * EFFORT)).kind == FOUND_NOTHING
    found = arm.run(0.2, slow, external=at_elbow(side * 0.35 * EFFORT))
    assert found.kind == layout.DRIVEN and found.joint == ELBOW and found.after < 0.05
    assert found.bound == pytest.approx(0.25 * EFFORT)
    assert found.bound < side * found.value < 0.3 * EFFORT
    residual, command = arm.rows.found_residual[ELBOW], arm.rows.found_command[ELBOW]
    assert residual == pytest.approx(found.value)
    assert side * command < 0.0  # what the controller sent against it


def test_torque_on_a_joint_that_rests_drives_nothing() -> None:
    """It moves at a fiftieth of its velocity limit at most."""
    arm = WatchedMotion()
    torque = at_elbow(0.6 * EFFORT)
    assert arm.run(0.3, at_elbow(0.015 * SPEED), torque, np.zeros(2)).kind == FOUND_NOTHING
    assert arm.run(0.05, at_elbow(0.025 * SPEED), torque).kind == layout.DRIVEN


def test_power_that_all_joints_together_are_driven_with() -> None:
    """2.4 % of effort limits times velocity limits, 48 W, while none of them has too much."""
    arm, both = WatchedMotion(), np.array([1.0, 1.0])
    torque = np.array([10.0, 20.0])
    assert arm.run(0.3, 1.5 * both, torque).kind == FOUND_NOTHING  # 45 W
    found = arm.run(0.2, 1.8 * both, torque)  # 54 W
    assert found.kind == layout.POWERED and found.joint == ELBOW  # most of it is there
    assert found.bound == pytest.approx(48.0) and 48.0 < found.value < 54.0


# A payload that the model lacks.


TOOL = link("tool") + joint("flange", "lower", "tool", "fixed", xyz=(0.3, 0, 0))
WITH_TOOL = RobotModel.from_urdf_string(two_link_arm().replace("</robot>", f"{TOOL}</robot>"))


def weight(arm: WatchedMotion, mass: float) -> np.ndarray:
    """Torques on the joints by the weight of a mass at the outermost link."""
    model = arm.controller.model
    link = model.link_names[int(arm.settings[0].payload_link)]
    J = jacobian(model, Workspace(model), arm.q, link, np.zeros((6, 2)))
    return mass * (model.gravity @ J[:3])


def test_weight_of_a_payload_that_is_allowed_for_drives_nothing() -> None:
    """In the direction of the weight; the other way it is an external torque like others."""
    for payload, factor, kind in (
        (6.0, 1.0, FOUND_NOTHING),
        (6.0, -1.0, layout.DRIVEN),
        (0.0, 1.0, layout.DRIVEN),
        (1.0, 1.0, layout.DRIVEN),
    ):
        arm = WatchedMotion(model=WITH_TOOL, unmodeled_payload=payload, max_driving_power=math.inf)
        load = factor * weight(arm, 6.0)
        assert np.abs(load).max() > 0.3 * EFFORT
        found = arm.run(0.2, 0.25 * np.sign(load), lambda t, f=factor, a=arm: f * weight(a, 6.0))
        assert found.kind == kind
    explained = abs(weight(arm, 1.0)[found.joint])
    assert found.bound == pytest.approx(0.25 * EFFORT + explained, rel=0.02)
    assert found.bound < abs(found.value) < 0.4 * EFFORT


def test_payload_is_no_obstacle() -> None:
    """It appears while the arm rises."""
    for payload, kind in ((6.0, FOUND_NOTHING), (0.0, layout.BLOCKED)):
        arm = WatchedMotion(model=WITH_TOOL, unmodeled_payload=payload)
        load = weight(arm, 6.0)
        assert arm.run(0.3, -0.25 * np.sign(load)).kind == FOUND_NOTHING
        falls = lambda t, a=arm: weight(a, 6.0)  # noqa: E731
        assert arm.run(0.2, -0.25 * np.sign(load), falls).kind == kind


def test_power_of_a_payload_that_is_allowed_for_does_not_count() -> None:
    for payload, kind in ((2.0, FOUND_NOTHING), (0.0, layout.POWERED)):
        arm = WatchedMotion(model=WITH_TOOL, unmodeled_payload=payload)
        falls = lambda t, a=arm: weight(a, 2.0)  # noqa: E731
        assert arm.run(0.2, 4.0 * np.sign(weight(arm, 1.0)), falls).kind == kind


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_payload_explains_no_torque_of_the_elbow_alone(side: float) -> None:
    """The shoulder would feel it more."""
    arm = WatchedMotion(model=WITH_TOOL, unmodeled_payload=6.0)
    found = arm.run(0.2, at_elbow(0.4 * side), at_elbow(0.4 * side * EFFORT))
    assert found.kind == layout.DRIVEN and found.joint == ELBOW
    assert found.bound == pytest.approx(0.25 * EFFORT)


def test_obstacle_in_the_way_of_a_payload_is_found() -> None:
    arm = WatchedMotion(model=WITH_TOOL, unmodeled_payload=6.0)
    rises = -0.25 * np.sign(weight(arm, 1.0))
    assert arm.run(0.6, rises, lambda t: weight(arm, 6.0)).kind == FOUND_NOTHING
    more = np.array([0.4 * EFFORT * np.sign(weight(arm, 1.0)[SHOULDER]), 0.0])
    found = arm.run(0.2, rises, lambda t: weight(arm, 6.0) + more)
    assert found.kind == layout.BLOCKED and found.joint == SHOULDER and found.after < 0.1


def test_payload_changes_no_other_finding() -> None:
    """The joint and the value of a finding of the step stay."""
    arm = WatchedMotion(model=WITH_TOOL, unmodeled_payload=6.0)
    arm.rows.violating_joint, arm.rows.violation = 1.0, 0.3
    assert (
        arm.run(0.2, 0.25 * np.sign(weight(arm, 1.0)), lambda t: weight(arm, 6.0)).kind
        == FOUND_NOTHING
    )
    assert (arm.rows.violating_joint, arm.rows.violation) == (1.0, 0.3)
    assert arm.rows.payload_weight.any()


def test_payload_is_not_allowed_for_any_more_once_that_is_set() -> None:
    arm = WatchedMotion(model=WITH_TOOL, unmodeled_payload=6.0)
    falls, way = lambda t: weight(arm, 6.0), 0.25 * np.sign(weight(arm, 1.0))
    assert arm.run(0.2, way, falls).kind == FOUND_NOTHING
    arm.settings[0].unmodeled_payload = 0.0
    assert arm.run(0.01, way, falls).kind == layout.DRIVEN


def default_payload(model: RobotModel) -> float:
    zero = Gains.uniform(model.nv, 0.0, 0.0)
    settings = ControllerSettings(zero, safety=default_safety(model))
    return float(settings.rows(model).unmodeled_payload)


def test_default_payload_is_about_what_makers_rate() -> None:
    for name, rated in (("panda", 3.0), ("ur5_robot", 5.0), ("ur10_robot", 10.0), ("kinova", 2.6)):
        assert default_payload(load_quietly(example_robot(name))) == pytest.approx(rated, rel=0.3)


def test_default_payload_without_levers() -> None:
    """A SCARA, whose axes are not quite vertical, and a gantry: the slide carries the weight."""
    axes = (("continuous", (0, 1e-6, 1)), ("continuous", (0, 0, 1)), ("prismatic", (0, 0, 1)))
    links = "".join(link(f"link{k}") for k in range(4))
    joints = (
        joint(f"joint{k}", f"link{k}", f"link{k + 1}", kind, axis=axis, xyz=(0.3, 0, 0))
        for k, (kind, axis) in enumerate(axes)
    )
    scara = RobotModel.from_urdf_string(robot(links, *joints))
    slide = scara.effort_limit[2]
    assert default_payload(scara) == pytest.approx(0.3 * slide / 9.81, rel=1e-3)
    scara.gravity = (0.0, 0.0, 0.0)
    assert default_payload(scara) == 0.0


def test_torque_against_the_motion_takes_power_off() -> None:
    arm = WatchedMotion(max_contact_torque=np.inf)
    torque = np.array([-20.0, 20.0])  # nothing in all
    assert arm.run(0.4, 3.0 * np.ones(2), torque).kind == FOUND_NOTHING


def test_hand_that_guides_the_arm_may_drive_it_with_twice_as_much() -> None:
    """With any power, and it may be in the way."""
    arm = WatchedMotion()
    arm.rows.reference = Reference.hand
    fast = at_elbow(3.0)
    assert arm.run(0.3, fast, at_elbow(0.45 * EFFORT)).kind == FOUND_NOTHING
    assert arm.run(0.3, fast, at_elbow(-0.8 * EFFORT)).kind == FOUND_NOTHING
    found = arm.run(0.3, fast, at_elbow(0.6 * EFFORT))
    assert found.kind == layout.DRIVEN and found.bound == pytest.approx(0.5 * EFFORT)


# 6. Something is in the way.


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_torque_that_grows_against_a_motion(side: float) -> None:
    arm = WatchedMotion()
    slide = at_elbow(side)
    assert arm.run(0.4, slide).kind == FOUND_NOTHING
    assert arm.run(0.2, slide, at_elbow(-side * 0.2 * EFFORT)).kind == FOUND_NOTHING
    found = arm.run(0.2, slide, at_elbow(-side * 0.4 * EFFORT))
    assert found.kind == layout.BLOCKED and found.joint == ELBOW and found.after < 0.1
    assert found.bound == pytest.approx(0.25 * EFFORT) and -side * found.value > found.bound


def test_torque_against_a_joint_that_is_desired_to_rest_blocks_nothing() -> None:
    """It may be pushed away, as long as it is slow, and comes back."""
    arm, torque = WatchedMotion(), at_elbow(-0.8 * EFFORT)
    assert arm.run(0.3, external=torque).kind == FOUND_NOTHING
    assert arm.run(0.3, at_elbow(0.01 * SPEED), torque).kind == FOUND_NOTHING


def test_friction_that_has_always_been_there_blocks_nothing() -> None:
    """Up to half of the effort limit, in both directions: it turns with the motion."""
    arm = WatchedMotion()

    def swings(t: float) -> np.ndarray:
        return at_elbow(np.clip(3.0 * np.cos(2.0 * np.pi * t), -1.0, 1.0))

    assert arm.run(0.5, at_elbow(1.0), at_elbow(-0.45 * EFFORT)).kind == FOUND_NOTHING
    rubs = arm.run(2.0, swings, lambda t: -0.45 * EFFORT * np.sign(swings(t)))
    assert rubs.kind == FOUND_NOTHING


def test_before_the_residual_has_settled_twice_as_much_is_in_the_way() -> None:
    """A joint that begins to slide against something, or cannot begin."""
    arm = WatchedMotion()
    arm.run(0.1)
    desired = at_elbow(1.0)
    for part in (0.1, 0.45):
        torque = at_elbow(-part * EFFORT)
        assert arm.run(0.3, at_elbow(0.0), torque, desired).kind == FOUND_NOTHING
    found = arm.run(0.2, at_elbow(0.0), at_elbow(-0.7 * EFFORT), desired)
    assert found.kind == layout.BLOCKED
    assert -found.value > 0.5 * EFFORT


def test_friction_that_grows_slowly_blocks_nothing() -> None:
    """As a gear warms, or gravity of an unknown load grows with the posture: to 0.5 of the effort
    limit in 6 s. The same torque within a tenth of a second is in the way."""
    slow = at_elbow(0.021 * SPEED)
    arm = WatchedMotion(h=0.004)
    found = arm.run(6.0, slow, lambda t: at_elbow(-0.5 * EFFORT * t / 6.0))
    assert found.kind == FOUND_NOTHING
    arm = WatchedMotion(h=0.004)
    assert arm.run(0.5, slow).kind == FOUND_NOTHING
    assert arm.run(0.3, slow, ramp(-0.5 * EFFORT)).kind == layout.BLOCKED


# 7. External torques in any direction.


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_external_torque_beyond_its_threshold_at_rest_and_in_motion(side: float) -> None:
    threshold = np.array([50.0, 10.0])
    for velocity in (0.0, 0.3):
        arm = WatchedMotion(detects_collisions=True, collision_threshold=threshold)
        moves = at_elbow(velocity)
        assert arm.run(0.3, moves, at_elbow(side * 9.0)).kind == FOUND_NOTHING
        found = arm.run(0.1, moves, at_elbow(side * 15.0))
        assert found.kind == layout.COLLIDED and found.joint == ELBOW
        assert found.bound == 10.0 and 10.0 < side * found.value < 15.0


def test_threshold_of_a_collision_is_a_quarter_of_the_effort_limit_where_one_is_wanted() -> None:
    arm = WatchedMotion(detects_collisions=True)
    assert arm.run(0.3, external=at_elbow(0.24 * EFFORT)).kind == FOUND_NOTHING
    assert arm.run(0.3, external=at_elbow(0.3 * EFFORT)).kind == layout.COLLIDED
    assert WatchedMotion().run(0.3, external=at_elbow(0.9 * EFFORT)).kind == FOUND_NOTHING


# Noise.

LOUD = 8.0  # of velocities, which smoothed over 5 ms goes beyond the bound of their error [rad/s]


def test_noise_that_is_known_is_no_motion() -> None:
    """Velocities that are differences of coarse encoders, of an arm at rest and in motion."""
    assert WatchedMotion().run(2.0, noise=LOUD).kind in (layout.RUNAWAY, layout.DRIVEN)
    for velocity in (0.0, 1.0):
        arm = WatchedMotion()
        arm.expect_noise(LOUD, 25.0 * LOUD)
        assert arm.run(2.0, at_elbow(velocity), noise=LOUD).kind == FOUND_NOTHING


def test_known_noise_hides_no_wrong_velocity() -> None:
    arm = WatchedMotion()
    arm.expect_noise(0.05)
    found = arm.run(0.1, at_elbow(0.5), measured=elbow_reads(0.0))
    assert found.kind == layout.CONTRADICTED


def test_noise_widens_a_bound_by_two_standard_deviations() -> None:
    arm = WatchedMotion()
    arm.expect_noise(0.5)
    assert arm.run(0.2, at_elbow(0.78 * SPEED), desired=np.zeros(2)).kind == FOUND_NOTHING
    found = arm.run(0.2, at_elbow(0.82 * SPEED), desired=np.zeros(2))
    assert found.kind == layout.RUNAWAY and found.bound == pytest.approx(0.7 * SPEED)
    assert arm.run(0.4).kind == FOUND_NOTHING and not arm.arresting
    assert arm.run(0.1, at_elbow(1.28 * SPEED)).kind == FOUND_NOTHING
    assert arm.run(0.1, at_elbow(1.32 * SPEED)).kind == layout.TOO_FAST


@pytest.mark.parametrize(("along", "kind"), [(1.0, layout.DRIVEN), (-1.0, layout.BLOCKED)])
def test_noise_of_the_residual_is_no_external_torque(along: float, kind: int) -> None:
    """Four standard deviations of it are none; what is more counts."""
    arm = WatchedMotion()
    arm.expect_noise(0.0, 2.0)
    slide = at_elbow(0.5)
    arm.run(0.4, slide)
    assert arm.run(0.3, slide, at_elbow(along * 31.0)).kind == FOUND_NOTHING
    found = arm.run(0.2, slide, at_elbow(along * 36.0))
    assert found.kind == kind and along * found.value > 25.0


# Which bounds there are.

RUNAWAY = {"velocity": at_elbow(0.9 * SPEED), "desired": np.zeros(2)}
BOUNDS = {
    layout.CONTRADICTED: {"velocity": at_elbow(1.0), "measured": elbow_reads(-1.0)},
    layout.TOO_FAST: {"velocity": at_elbow(1.4 * SPEED)},
    layout.RUNAWAY: RUNAWAY,
    layout.DRIVEN: {"velocity": at_elbow(0.5), "external": at_elbow(0.5 * EFFORT)},
    layout.POWERED: {"velocity": 2.0, "external": 20.0},
    layout.BLOCKED: {"velocity": at_elbow(0.5), "external": at_elbow(-0.8 * EFFORT)},
    layout.COLLIDED: {"external": at_elbow(0.6 * EFFORT)},
}
WITHOUT_MODEL = (layout.CONTRADICTED, layout.TOO_FAST, layout.RUNAWAY)
each_bound = pytest.mark.parametrize("kind", BOUNDS)


def violated(kind: int, law=ControlLaw.computed_torque, watch: int = FREE) -> WatchedMotion:
    """An arm that violates a bound; what is found, in `found`."""
    arm = WatchedMotion(law, detects_collisions=kind == layout.COLLIDED)
    arm.arm.watch = watch
    arm.found = arm.run(0.3, **BOUNDS[kind]).kind
    return arm


@each_bound
@pytest.mark.parametrize("law", FOLLOWING)
def test_law_without_a_model_has_the_bounds_that_need_none(law: ControlLaw, kind: int) -> None:
    has = law != ControlLaw.pd or kind in WITHOUT_MODEL
    arm = violated(kind, law)
    assert arm.found == (kind if has else FOUND_NOTHING)
    # An arm that is blocked gives way, and is not arrested.
    assert arm.arresting == (has and kind != layout.BLOCKED)


@each_bound
def test_arm_that_nobody_commands_has_no_bounds(kind: int) -> None:
    arm = violated(kind, watch=UNWATCHED)
    assert arm.found == FOUND_NOTHING and not arm.arresting


@each_bound
def test_stopped_arm_may_be_pushed_and_is_arrested_without_another_word(kind: int) -> None:
    arm = WatchedMotion(detects_collisions=kind == layout.COLLIDED)
    arm.arm.watch = STOPPED
    arrested = False
    for _ in range(90):
        assert arm.run(0.001, **BOUNDS[kind]).kind == FOUND_NOTHING
        arrested = arrested or arm.arresting
        if arrested:
            break
    assert arrested == (kind not in (layout.BLOCKED, layout.COLLIDED))


def test_first_bound_in_the_order_of_the_list_is_told() -> None:
    """Of two that are violated in the same state."""
    arm, slow = WatchedMotion(), np.array([0.3, 0.0])
    zero = {"measured": lambda k, q, v: (q, v * np.array([0.0, 1.0]))}
    arm.run(0.2, slow)
    while arm.rows.contradicting_for[SHOULDER] < 0.0135:
        assert arm.run(0.001, slow, **zero).kind == FOUND_NOTHING
    found = arm.run(0.001, np.array([0.3, 1.3 * SPEED]), **zero)
    assert found.kind == layout.CONTRADICTED and found.joint == SHOULDER


def test_gap_in_the_states_starts_all_bounds_anew() -> None:
    """An arm that has stood elsewhere meanwhile contradicts nothing, and what it has begun to show
    is forgotten."""
    arm = WatchedMotion()
    arm.run(0.03, at_elbow(1.0), measured=elbow_reads(0.0))
    arm.t += 0.2
    arm.q[ELBOW] += 1.0
    assert arm.run(0.03, at_elbow(1.0), measured=elbow_reads(0.0)).kind == FOUND_NOTHING
    assert arm.run(0.03, at_elbow(1.0), measured=elbow_reads(0.0)).kind == layout.CONTRADICTED


def test_wrong_position_before_a_gap_and_one_after_it_are_two() -> None:
    arm = WatchedMotion(h=0.02)

    def glitch(at: int):
        return lambda k, q, v: (q + (at_elbow(0.1) if k == at else 0.0), v)

    assert arm.run(0.1, at_elbow(1.0), measured=glitch(4)).kind == FOUND_NOTHING
    arm.t += 0.2
    assert arm.run(0.1, at_elbow(1.0), measured=glitch(1)).kind == FOUND_NOTHING


# What is recorded.


def test_states_of_the_last_while_and_their_commands_are_recorded_without_a_gap() -> None:
    arm, states = WatchedMotion(), []

    def kept(k, q, v):
        states.append((arm.t, q, v, arm.rows.command.copy()))
        return q, v

    arm.run(0.9, at_elbow(1.0), measured=kept)
    for seconds in (0.05, 0.4):
        t, q, v, tau = arm.controller.recorded(seconds)
        assert t[-1] - t[0] == pytest.approx(seconds, abs=0.0015)
        for rows, expected in zip(
            (t, q, v, tau), zip(*states[-len(t) :], strict=True), strict=True
        ):
            np.testing.assert_array_equal(rows, np.array(expected))
    arm.t += 0.2
    del states[:]
    arm.run(0.05, measured=kept)
    assert len(arm.controller.recorded(0.4)[0]) == len(states) == 50
    arm.controller.let_go()  # what comes then does not tell the cause
    arm.run(0.05)
    assert arm.controller.recorded(0.4)[0][-1] == states[-1][0]
