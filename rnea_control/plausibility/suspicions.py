"""`suspicions`: warnings about a URDF, a sentence each, for legal values that are probably not
meant.

The thresholds for limits come from the URDFs of example-robot-data. Their revolute joints turn by
up to 10 rad and 60 rad/s (ankles of other humanoids at 101 rad/s), their prismatic joints slide by
up to 0.35 m and 5 m/s. The smallest effort limit is 0.13 times the gravity torque of the stretched
links that the joint carries, the largest 22 times that of the whole stretched robot. Beyond these
there are only round placeholders such as 1000, which mean "no limit".
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
from rnea_control.model.joints import Joint
from rnea_control.model.robot_description import RobotDescription
from rnea_control.model.robot_model import RobotModel
from rnea_control.model.urdf_document import SINGLE_TYPES
from rnea_control.plausibility.implausible_masses import implausible_masses, is_power_of_ten

_GRAVITY = 9.81

_DISTANCE = 0.01  # smallest distance to the next joint of a link that needs an inertia [m]
_ENOUGH_LINKS = 3  # number of other moving links above which a single one without inertia is odd

_ACROSS = 0.1  # sine of the angle to gravity from which a joint bears weight

# No rpy needs more than one turn; the robots of example-robot-data have up to 4.72 rad.
_LARGEST_TURN = 2.0 * math.pi + 0.01  # largest plausible angle of <origin rpy> [rad]

_LARGEST_ANGLE = 4.0 * math.pi  # largest plausible angle: two turns; 30 degrees are 30 [rad]
_NO_LIMIT = 2000.0  # position limit that means "no limit" [rad] or [m]
_LARGEST_RATE = 120.0  # largest plausible velocity limit [rad/s]
_FASTEST = 101.0  # largest velocity limit of a known robot [rad/s]
_LARGEST_TRAVEL = 20.0  # largest plausible position limit [m]
_LARGEST_SPEED = 20.0  # largest plausible velocity limit [m/s]

_LARGEST_EFFORT = 50.0  # effort limit over the gravity torque of the whole stretched robot
_SMALLEST_EFFORT = 0.02  # effort limit over the gravity torque of the links that the joint carries


def suspicions(model: RobotModel) -> tuple[str, ...]:
    """Sentences for the author of a URDF: the `notes` of reading it, then values and selected
    joints that are legal but probably not meant.

    Reading a URDF does not call this function, as it judges by other robots: a program that reads a
    URDF for a user shows the user these sentences. Current gravity and payloads of the model count.
    """
    description, rows = model.description, model.joint_rows
    by_name = {joint.name: joint for joint in description.joints}
    chosen = [by_name[name] for name in model.joint_names]
    moving = [by_name[name] for name in rows]
    notes = list(_joints_of_nothing(moving, rows, model.bodies))
    if powerless := [joint.name for joint in chosen if joint.effort_limit == 0.0]:
        notes.append(
            f"{named('joint', powerless)}: <limit effort> is 0, so no torque at all is allowed. "
            "Give the actuator's effort limit"
        )
    if (robot := description.urdf) is not None:  # a robot made in Python was not exported
        controlled = [joint for joint in robot.joints if joint.name in model.joint_names]
        notes = [*_turned_in_degrees(robot), *_suspicious_joints(controlled, by_name), *notes]
        body = model.links[:, layout.LINK_BODY].astype(int).tolist()
        body_of = dict(zip(model.link_names, body, strict=True))
        notes += _forgotten_inertial(moving, rows, model.bodies)
        found, moments, whole = implausible_masses(description, body_of)
        loaded = _joints_under_load(description, model.gravity)
        notes += [*found, *_implausible_limits(chosen)]
        notes += _implausible_efforts(chosen, moments, whole, loaded)
    return *model.notes, *(f"{model.source}: {note}" for note in notes)


def _turned_in_degrees(robot: urdf.Robot) -> Iterator[str]:
    """A sentence if an angle of <origin rpy> is beyond one turn."""
    inertials = [(link.name, link.inertial) for link in robot.links if link.inertial is not None]
    origins = [("joint", joint.name, joint.origin) for joint in robot.joints]
    origins += [("link", name, inertial.origin) for name, inertial in inertials]
    angles = {
        (kind, name): max(map(abs, origin.rpy))
        for kind, name, origin in origins
        if origin is not None and origin.rpy
    }
    turned = {key: angle for key, angle in angles.items() if angle > _LARGEST_TURN}
    if turned:
        kinds = {kind: [name for each, name in turned if each == kind] for kind, _ in turned}
        where = " and ".join(named(kind, names) for kind, names in kinds.items())
        yield (
            f"<origin rpy> of {where} has angles up to {max(turned.values()):g} rad, more than a "
            "turn, as if given in degrees. Give rad"
        )


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


def _joints_of_nothing(
    joints: Sequence[Joint], rows: Mapping[str, int], bodies: FloatArray
) -> Iterator[str]:
    """A sentence for the joints that move no mass.

    A link without inertia between other links, as in a universal joint made of two revolute joints,
    is no fault: its joint moves the next links."""
    carries = [row[layout.PARAMETERS].any() for row in bodies]
    for row in range(len(carries) - 1, 0, -1):
        carries[int(bodies[row, layout.PARENT])] |= carries[row]
    idle = [joint for joint in joints if not carries[rows[joint.name]]]
    if idle:
        moves = f"{named('link', [joint.child for joint in idle])} move but have no inertia"
        if len(idle) == 1:
            moves = f"link {idle[0].child!r} moves with joint {idle[0].name!r} but has no inertia"
        yield f"{moves}; no torque is computed for this motion. Add an <inertial>"


def _forgotten_inertial(
    joints: Sequence[Joint], rows: Mapping[str, int], bodies: FloatArray
) -> Iterator[str]:
    """A sentence for the only moving link without inertia, if the next joint is at a distance:
    between axes that meet in a point a link may have no inertia."""
    bare = [j for j in joints if not bodies[rows[j.name], layout.PARAMETERS].any()]
    if len(bare) == 1 and len(joints) > _ENOUGH_LINKS:
        after = bodies[1:][bodies[1:, layout.PARENT] == rows[bare[0].name]]
        if (np.abs(after[:, layout.TRANSLATION : layout.TRANSLATION + 3]) > _DISTANCE).any():
            yield (
                f"link {bare[0].child!r} moves with joint {bare[0].name!r} but has no inertia, "
                "which all other links that move have. Give it an <inertial>"
            )


def _joints_under_load(description: RobotDescription, gravity: FloatArray) -> set[str]:
    """Names of the joints that turn about an axis across gravity at zero position, such as a
    shoulder's lift but not its pan."""
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
    """A sentence for each kind of position or velocity limit that no known robot has."""
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
    """A sentence for each kind of effort limit that no known robot has.

    Args:
        joints: the joints.
        moments: largest moment of mass of each link and all that it carries, [kg m].
        whole: moment of mass of the whole robot, 0 if unknown, [kg m].
        loaded: names of the joints that bear weight.
    """
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
            f"is close to 0: {rounded(worst.effort_limit)} Nm, while {worst.name} can need up to "
            f"{rounded(_GRAVITY * moments[worst.child])} Nm against gravity"
        )
        yield from _as_if_in("kN m", "Nm", "<limit effort>", weak, go)


def _as_if_in(unit: str, wanted: str, what: str, joints: Collection[str], go: str) -> Iterator[str]:
    """Sentence for joints whose limits are probably given in another unit; none without joints."""
    if joints:
        yield f"{what} of {listed(joints)} {go}, as if given in {unit}. Give {wanted}"


def _most(values: Mapping[str, float]) -> str:
    return rounded(max(values.values(), default=0.0))


def _over(
    bound: float, joints: Sequence[Joint], value: Callable[[Joint], float]
) -> dict[str, float]:
    """Values above a bound, by the joint's name, without placeholders."""
    values = {joint.name: value(joint) for joint in joints}
    return {name: x for name, x in values.items() if x > bound and not _is_made_up(x)}


def _range(joint: Joint) -> float:
    """Largest distance of the position limits from 0, [rad] or [m]; 0 if both mean "no limit"."""
    return max((abs(x) for x in (joint.lower, joint.upper) if abs(x) < _NO_LIMIT), default=0.0)


def _in_turns(angle: float) -> bool:
    """True for a multiple of half a turn, in rad with at least four digits."""
    half_turns = round(angle / math.pi)
    return angle != round(angle) and abs(angle - half_turns * math.pi) < 2e-4 * angle


def _is_made_up(value: float) -> bool:
    """True for a power of ten or only nines, which mean "no limit"."""
    return not math.isfinite(value) or f"{value:.10g}".strip("9") == "" or is_power_of_ten(value)
