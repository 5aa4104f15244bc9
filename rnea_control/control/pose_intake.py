"""The intake of target poses and twists of the tip.

Whose messages count, and when a stream may begin, is decided as for targets of joints
(stream_intake.py).
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control.joint_stream import LONGEST_SPAN
from rnea_control.control.layout import Settings, State
from rnea_control.control.pose_stream import begin_poses, time_carried
from rnea_control.control.references import begun_by
from rnea_control.control.robot import Robot, robot_of
from rnea_control.control.step import StepArrays, begin_stream
from rnea_control.control.stream_intake import (
    SHORTEST_PERIOD,
    TAKEN,
    TOO_FAR,
    StreamIntake,
    admit,
    note,
    note_target,
    target_period,
)
from rnea_control.control.tip import (
    clipped,
    find_pose,
    position_in,
    quaternion_in,
    rotation_part,
    store_pose,
    store_six,
    way_between,
)
from rnea_control.dynamics.kinematics import link_pose, pose_pass
from rnea_control.jit.inlining import inlined, shared
from rnea_control.spatial.rotation import (
    normalized,
    product,
    quaternion_of_rotation,
    quaternion_of_vector,
)
from rnea_control.spatial.vectors import add, dot, rotate, scale

SHAKES = 15  # result: the gains of the tip are too high for the rate of the states
# Parts of a pose that are too far, in place of a joint.
FAR_POSITION = -1
FAR_ORIENTATION = -2


@inlined
def _too_far(intake: StreamIntake, settings: Settings, pose: Vector, target: Vector) -> bool:
    """True if a target is too far from the desired pose; writes the distance."""
    way, turn = way_between(pose, target)
    distance, angle = math.sqrt(dot(way, way)), math.sqrt(dot(turn, turn))
    if distance > settings.task_max_distance[0]:
        intake.joint, intake.value = FAR_POSITION, distance
        return True
    if angle > settings.task_max_distance[1]:
        intake.joint, intake.value = FAR_ORIENTATION, angle
        return True
    return False


@shared
def into_root(robot: Robot, state: State, frame: int, target: Vector, is_twist: bool) -> None:
    """Expresses a pose, or a twist, given in the frame of a link, in the root link's frame. The
    link is where it was measured last."""
    pose_pass(robot.bodies, robot.memory, state.last_position)
    R, p = link_pose(robot.links, robot.memory, frame)
    if is_twist:
        store_six(target, rotate(R, position_in(target)), rotate(R, rotation_part(target)))
        return
    orientation = product(quaternion_of_rotation(R), normalized(quaternion_in(target)))
    store_pose(target, add(p, rotate(R, position_in(target))), normalized(orientation))


@shared
def _take_pose(
    intake: StreamIntake,
    settings: Settings,
    state: State,
    target: Vector,
    at: float,
    stamped: bool,
) -> None:
    """Takes a target pose for time `at` [s], with the twist since the target before."""
    before = state.target_pose
    way, turn = way_between(before, target)
    rate, turn_rate = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    span = 0.0
    passed = target_period(intake, stamped, at - state.pose_at)
    if state.pose_span >= 0.0 and passed >= SHORTEST_PERIOD:
        rate, turn_rate = scale(1.0 / passed, way), scale(1.0 / passed, turn)
        span = min(2.0 * passed, LONGEST_SPAN)
    fastest = settings.task_max_velocity
    store_six(state.target_twist, clipped(rate, fastest[0]), clipped(turn_rate, fastest[1]))
    store_pose(before, position_in(target), quaternion_in(target))
    state.pose_at, state.pose_span = at, span


@inlined
def _lead(settings: Settings, which: int) -> float:
    """Distance by which a target with the largest velocity leads while the desired pose
    accelerates."""
    fastest, most = settings.task_max_velocity[which], settings.task_max_acceleration[which]
    return fastest / settings.stream_bandwidth + 0.5 * fastest * fastest / most


@shared
def _take_twist(settings: Settings, state: State, twist: Vector, t: float) -> None:
    """Moves the target with a twist until the next message. Where the desired pose cannot follow,
    the target waits for it."""
    passed, before = time_carried(state, t), state.target_twist
    way, turn = scale(passed, position_in(before)), scale(passed, rotation_part(before))
    to, turn_to = way_between(state.desired_pose, state.target_pose)
    to = clipped(add(to, way), _lead(settings, 0))
    turn_to = clipped(add(turn_to, turn), _lead(settings, 1))
    orientation = product(quaternion_of_vector(turn_to), quaternion_in(state.desired_pose))
    position = add(position_in(state.desired_pose), to)
    store_pose(state.target_pose, position, normalized(orientation))
    fastest = settings.task_max_velocity
    store_six(
        state.target_twist,
        clipped(position_in(twist), fastest[0]),
        clipped(rotation_part(twist), fastest[1]),
    )
    state.pose_at, state.pose_span = t, settings.stream_timeout


@shared
def take_tip_message(
    intake: StreamIntake,
    arrays: StepArrays,
    target: Vector,
    frame: int,
    decoded: int,
    kind: int,
    is_twist: bool,
    publisher: tuple[int, int],
    t: float,
    stamp: float,
    age: float,
    may_begin: bool,
) -> int:
    """Takes a target pose or twist; returns whether it counts.

    Args:
        target: pose, or twist in the first six numbers, in the frame of the link; overwritten.
        frame: row of the link.
        is_twist: True for a twist.
        others: see `stream_intake.take_message`.
    """
    arm, state = arrays.arm[0], arrays.state
    settings = arrays.settings[arm.braced]
    result = admit(intake, arrays, decoded, kind, publisher, t, stamp, may_begin)
    reference = begun_by(kind)
    begins = int(state.reference) != reference
    if result == TAKEN and begins and not arm.takes_poses:
        result = SHAKES
    if result == TAKEN:
        robot = robot_of(arm, state.shape[1])
        into_root(robot, state, frame, target, is_twist)
        if begins:
            find_pose(robot, settings, state.last_position, state.pose)
        pose = state.pose if begins else state.desired_pose
        if not is_twist and _too_far(intake, settings, pose, target):
            result = TOO_FAR
        else:
            if begins:
                begin_stream(arrays, reference, t)
                begin_poses(robot, settings, state, t)
            at, stamped = note_target(intake, arrays, begins, t, age)
            if is_twist:
                _take_twist(settings, state, target, t)
            else:
                _take_pose(intake, settings, state, target, at, stamped)
    note(intake, result)
    return result
