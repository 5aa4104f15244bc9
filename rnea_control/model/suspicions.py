"""What is legal in a robot and what is done with it, but probably not meant: a sentence each.

The thresholds for limits come from the URDFs of example-robot-data: revolute joints of these turn
by up to 10 rad and 60 rad/s (ankles of other humanoids at 101), prismatic ones slide by up to
0.35 m and 5 m/s; their effort limits are 0.13 to 22 times what holds what they carry (the whole
robot, in the second case) stretched out. Beyond that there are only round placeholders such as
1000, which say "no limit".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from operator import attrgetter

import numpy as np
from urdf_parser_py import urdf

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import listed, named, rounded
from rnea_control.model import bodies as layout
from rnea_control.model.implausible_masses import implausible_masses, is_power_of_ten
from rnea_control.model.joint_selection import JointSelection
from rnea_control.model.joints import Joint
from rnea_control.model.robot_description import RobotDescription
from rnea_control.model.urdf_document import SINGLE_TYPES

_GRAVITY = 9.81

# Of a link without inertia among so many with one, to the next joint, [m].
_DISTANCE, _ENOUGH_LINKS = 0.01, 3

# Sine of the angle to gravity from which a joint bears weight.
_ACROSS = 0.1

# [rad], [rad/s]; then [m], [m/s]. Two turns to either side and no more: 30 degrees are 30.
_LARGEST_ANGLE, _NO_LIMIT = 4.0 * math.pi, 2000.0
_LARGEST_RATE, _FASTEST = 120.0, 101.0
_LARGEST_TRAVEL = _LARGEST_SPEED = 20.0

# Of the moment of weight of the whole robot, and of what the joint carries.
_LARGEST_EFFORT, _SMALLEST_EFFORT = 50.0, 0.02


def suspicions(
    description: RobotDescription,
    selection: JointSelection,
    merged: layout.Bodies,
    gravity: FloatArray,
) -> tuple[str, ...]:
    """What is legal but suspicious: in the URDF, and in what is done with it; `gravity` in the root
    link's frame, shape (3,)."""
    chosen = selection.joints(leads=True)
    moving = [at.joint for at in selection.coordinates.values()]
    names, everything = ({joint.name for joint in each} for each in (chosen, description.joints))
    controlled = [joint for joint in description.urdf_joints if joint.name in names]
    notes = [*description.notes, *selection.notes]
    notes += _suspicious_joints(controlled, everything)
    notes += _joints_of_nothing(moving, merged)
    if powerless := [joint.name for joint in chosen if joint.effort_limit == 0.0]:
        notes.append(
            f"{named('joint', powerless)}: <limit effort> is 0, so no torque at all is allowed. "
            "Give the actuator's effort limit"
        )
    if description.urdf_joints:  # what is written in Python does not come from another program
        rows = merged.links[:, layout.LINK_BODY].astype(int)
        body_of = dict(zip(merged.link_names, rows, strict=True))
        notes += _forgotten_inertial(moving, merged)
        found, moments, whole = implausible_masses(description, body_of)
        loaded = _joints_under_load(description, gravity)
        notes += [*found, *_implausible_limits(chosen)]
        notes += _implausible_efforts(chosen, moments, whole, loaded)
    return tuple(f"{description.source}: {note}" for note in notes)


def _suspicious_joints(joints: Sequence[urdf.Joint], known: Container[str]) -> list[str]:
    """A sentence for each kind of finding in these joints; `known` are the names of all."""
    single = [joint for joint in joints if joint.type in SINGLE_TYPES]
    limited = [joint for joint in single if joint.limit is not None]
    findings = {
        "<dynamics> and <limit> of {} are not used, as URDF does not say for which degree of "
        "freedom they are. Set damping and friction of the RobotModel in Python": [
            j for j in joints if j.type not in SINGLE_TYPES and (j.dynamics or j.limit)
        ],
        "{} have a <mimic> and are named in `joints`, so each moves as a joint of its own. Leave "
        "them out of `joints` to let them follow": [
            j for j in single if j.mimic and j.mimic.joint in known
        ],
        "{} have a <safety_controller>; near the soft limits ros2_control may then cancel a torque "
        "that leads back inside. Remove the tags if a joint sticks there": [
            j for j in single if j.safety_controller is not None
        ],
        "{} have no <limit>, so their torque is never clamped. Give the actuator's effort limit": [
            j for j in single if j.limit is None
        ],
        "<limit velocity> of {} is 0; it is taken as no limit here, while ros2_control may let no "
        "torque through. Give the actuator's largest velocity": [
            j for j in limited if j.limit.velocity == 0.0
        ],
        "<limit> lower and upper of {} are the same, so these joints may not move. Give their "
        "range": [j for j in limited if j.type != "continuous" and j.limit.lower == j.limit.upper],
    }
    return [
        sentence.format(listed([joint.name for joint in found]))
        for sentence, found in findings.items()
        if found
    ]


def _joints_of_nothing(joints: Sequence[Joint], merged: layout.Bodies) -> Iterator[str]:
    """A sentence for the joints that move nothing. A link without inertia between others, as in a
    universal joint made of two revolute ones, is no fault: its joint moves what comes after."""
    carries = [row[layout.PARAMETERS].any() for row in merged.array]
    for row in range(len(carries) - 1, 0, -1):
        carries[int(merged.array[row, layout.PARENT])] |= carries[row]
    idle = [joint for joint in joints if not carries[merged.rows[joint.name]]]
    if idle:
        moves = f"{named('link', [joint.child for joint in idle])} move but have no inertia"
        if len(idle) == 1:
            moves = f"link {idle[0].child!r} moves with joint {idle[0].name!r} but has no inertia"
        yield f"{moves}; no torque is computed for moving what is there. Give it an <inertial>"


def _forgotten_inertial(joints: Sequence[Joint], merged: layout.Bodies) -> Iterator[str]:
    """A sentence for the only link without inertia among several that have one, if the next joint
    is at a distance: axes that meet in a point may have nothing between them."""
    bodies, rows = merged.array, merged.rows
    bare = [j for j in joints if not bodies[rows[j.name], layout.PARAMETERS].any()]
    if len(bare) == 1 and len(joints) > _ENOUGH_LINKS:
        after = bodies[1:][bodies[1:, layout.PARENT] == rows[bare[0].name]]
        if (np.abs(after[:, layout.TRANSLATION : layout.TRANSLATION + 3]) > _DISTANCE).any():
            yield (
                f"link {bare[0].child!r} moves with joint {bare[0].name!r} but has no inertia, "
                "which all other links that move have. Give it an <inertial>"
            )


def _joints_under_load(description: RobotDescription, gravity: FloatArray) -> set[str]:
    """The joints that turn about an axis across gravity at zero position, such as a shoulder's lift
    but not its pan."""
    strength = float(np.linalg.norm(gravity))
    down = gravity / strength if strength else np.zeros(3)
    rotations, names = {description.root: np.eye(3)}, set()
    for joint in description.joints:
        rotation = rotations[joint.parent] @ joint.rotation
        rotations[joint.child] = rotation
        across = math.sqrt(max(0.0, 1.0 - float(down @ rotation @ joint.axis) ** 2))
        if strength and across > _ACROSS and joint.type in ("revolute", "continuous"):
            names.add(joint.name)
    return names


def _implausible_limits(joints: Sequence[Joint]) -> Iterator[str]:
    """A sentence for each kind of limit that no known robot has, but for efforts."""
    turning, endless, sliding = ([j for j in joints if j.type == kind] for kind in SINGLE_TYPES)
    velocity = attrgetter("velocity_limit")
    angles = _over(_LARGEST_ANGLE, turning, _range)
    angles = {name: angle for name, angle in angles.items() if not _in_turns(angle)}
    rates = _over(_LARGEST_RATE, turning, velocity)
    if rates:
        rates |= _over(_LARGEST_RATE, endless, velocity)
    travels = _over(_LARGEST_TRAVEL, sliding, _range)
    speeds = _over(_LARGEST_SPEED, sliding, velocity)
    turns = f"{max(angles.values(), default=0.0) / math.tau:.2g} turns"
    known = f"is up to {_most(rates)} rad/s, known ones turn at up to {_FASTEST:g}"
    range_, speed = "<limit> lower and upper", "<limit velocity>"
    yield from _as_if_in("degrees", "rad", range_, angles, f"go to {_most(angles)} rad, {turns}")
    yield from _as_if_in("degrees/s or rpm", "rad/s", speed, rates, known)
    yield from _as_if_in("mm", "m", range_, travels, f"go to {_most(travels)} m")
    yield from _as_if_in("mm/s", "m/s", speed, speeds, f"is up to {_most(speeds)} m/s")


def _implausible_efforts(
    joints: Sequence[Joint], moments: Mapping[str, float], whole: float, loaded: Container[str]
) -> Iterator[str]:
    """The same for efforts; `moments` of mass, of each link with all that it carries, and `whole`,
    of the robot or 0 for none, [kg m]; `loaded`: the joints that bear weight."""
    turning = [joint for joint in joints if joint.type in ("revolute", "continuous")]
    weight = _GRAVITY * whole
    strong = _over(_LARGEST_EFFORT * weight, turning, attrgetter("effort_limit")) if weight else {}
    if strong:
        times = f"{rounded(max(strong.values()) / weight)} times"
        go = f"is up to {_most(strong)} Nm, {times} what holds the whole robot stretched out"
        yield from _as_if_in("N mm or made up", "Nm", "<limit effort>", strong, go)
    weak = {
        joint.name: joint
        for joint in turning
        if joint.name in loaded
        and 0.0 < joint.effort_limit < _SMALLEST_EFFORT * _GRAVITY * moments[joint.child]
    }
    if weak:
        worst = min(weak.values(), key=lambda joint: joint.effort_limit / moments[joint.child])
        go = (
            f"is close to 0: {rounded(worst.effort_limit)} Nm where what {worst.name} carries can "
            f"weigh up to {rounded(_GRAVITY * moments[worst.child])} Nm"
        )
        yield from _as_if_in("kN m", "Nm", "<limit effort>", weak, go)


def _as_if_in(unit: str, wanted: str, what: str, joints: Collection[str], go: str) -> Iterator[str]:
    """The sentence for joints whose limits are as if given in a unit; none if there are none."""
    if joints:
        yield f"{what} of {listed(joints)} {go}, as if given in {unit}. Give {wanted}"


def _most(values: Mapping[str, float]) -> str:
    return rounded(max(values.values(), default=0.0))


def _over(
    bound: float, joints: Sequence[Joint], value: Callable[[Joint], float]
) -> dict[str, float]:
    """The joints with a value above a bound that is no placeholder, by name."""
    values = {joint.name: value(joint) for joint in joints}
    return {name: x for name, x in values.items() if x > bound and not _is_made_up(x)}


def _range(joint: Joint) -> float:
    """How far its limits are from 0, [rad] or [m]; 0 for those that are no limits."""
    return max((abs(x) for x in (joint.lower, joint.upper) if abs(x) < _NO_LIMIT), default=0.0)


def _in_turns(angle: float) -> bool:
    """Whether it is so many half turns, in rad with at least four digits."""
    half_turns = round(angle / math.pi)
    return angle != round(angle) and abs(angle - half_turns * math.pi) < 2e-4 * angle


def _is_made_up(value: float) -> bool:
    """Whether it is a power of ten or only nines, which says that there is no limit."""
    return not math.isfinite(value) or f"{value:.10g}".strip("9") == "" or is_power_of_ten(value)
