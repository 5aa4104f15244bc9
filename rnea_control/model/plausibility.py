"""Numbers of a URDF that no known robot has, with the unit that they are probably in.

A URDF is in SI units by convention only: numbers in mm, g or degrees load like any others. The
thresholds here, in implausible_inertias.py and in implausible_limits.py come from the 68 URDFs of
example-robot-data 6.0 (arms, hands, legged and flying robots of 0.6 to 260 kg): they lie between
what is real among these and what the same numbers would be in another unit. How large and heavy the
parts of a robot are is the measure for its other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import named, rounded
from rnea_control.model.implausible_inertias import (
    WeighedLink,
    implausible_inertias,
    likely_unit,
    oversized,
    too_dense,
    usual_stretch,
)
from rnea_control.model.implausible_limits import implausible_limits
from rnea_control.model.joints import Joint
from rnea_control.model.links import is_of_real_body, link_inertia_of
from rnea_control.model.robot_description import RobotDescription

# Joints are up to 0.9 m from the origin of their parent link, and centers of mass up to 0.45 m from
# theirs, which is about the robot's reach at most; a length of 3 cm is 30 in mm.
_LARGEST_LENGTH = 10.0
_LARGEST_OF_REACH, _SMALLEST_FAR = 3.0, 2.0
_SURELY_MM = 100.0

# The mass of what moves divided by the cube of the reach is 2 to 56 kg/m^3 for arms, hands and legs
# and 1 for drones; in g it would begin with 1000. Other robots have 0.3 to 230. Those of a long
# reach, such as cranes, are more slender.
_SMALLEST_DENSITY, _USUAL_DENSITY, _LARGEST_DENSITY = 0.15, 20.0, 800.0
_LONG_REACH = 3.0

# A link in g is heavier than all others together by more than this.
_FAR_HEAVIER = 10.0

# The reach of robots with one or two joints tells less of their size.
_ENOUGH_LINKS = 3

# What a link weighs at least, as part of what moves and of what it is fixed to, for its inertia to
# count: the lighter ones are frames and sensors with made-up numbers.
_PART_OF_ROBOT, _PART_OF_BODY = 2e-3, 0.1

# Sine of the angle to gravity from which a joint bears weight.
_ACROSS = 0.1


def implausible(
    description: RobotDescription,
    controlled: Sequence[Joint],
    body_of: Mapping[str, int],
    gravity: FloatArray,
) -> list[str]:
    """A sentence for each kind of number that no known robot has.

    Args:
        description: of the robot.
        controlled: the joints whose limits count.
        body_of: the row of the body that each link is part of; row 0 does not move.
        gravity: in the root link's frame, shape (3,).
    """
    source, root = description.source, description.root
    offsets, centers = _joint_offsets(description), _centers_of_mass(description)
    masses = {link: float(J[3, 3]) for link, J in description.inertias.items()}
    notes = _correct_lengths(description, masses, offsets, centers)
    reach = _size_of(description, masses, offsets, centers).reach[root]
    carried = _carried(description, masses, body_of)
    heavy, words = _heavy({link: masses[link] for link in carried}, reach)
    masses |= {link: 1e-3 * masses[link] for link in heavy}
    weighed = _weighed(description, masses, offsets, centers, body_of)
    if heavy:
        swollen = [link for link in oversized(weighed) if link.inertia.link in heavy]
        if 2 * len(swollen) > len([link for link in weighed if link.inertia.link in heavy]):
            words += f", and inertias in {likely_unit(swollen, usual_stretch(weighed))}"
            weighed = [link for link in weighed if link not in swollen]
        notes.append(f"{words}. Give kg and kg m^2")
    light = _light([masses[link] for link in carried], reach)
    if light:
        in_kg = {link: 1e3 * mass for link, mass in masses.items()}
        better = _weighed(description, in_kg, offsets, centers, body_of)
        tonnes = 2 * _count_odd(better) < _count_odd(weighed)
        masses, weighed = (in_kg, better) if tonnes else (masses, weighed)
        notes.append(f"{light}, as if masses were {'given in t' if tonnes else 'made up'}. Give kg")
    notes += implausible_inertias(weighed)
    masses |= {link.inertia.link: 1e-3 * link.inertia.mass for link in too_dense(weighed)}
    size = _size_of(description, masses, offsets, centers)
    loaded = _joints_under_load(description, gravity)
    enough = sum(joint.nv == 1 for joint in description.joints) >= _ENOUGH_LINKS
    whole = size.moment[root] if enough and not light else 0.0
    notes += implausible_limits(controlled, size.moment, whole, loaded)
    return [f"{source}: {note}" for note in notes]


def _correct_lengths(
    description: RobotDescription,
    masses: Mapping[str, float],
    offsets: dict[str, float],
    centers: dict[str, float],
) -> list[str]:
    """Says which lengths are probably in mm, and takes them as such."""
    joints = [name for name, offset in offsets.items() if offset > _LARGEST_LENGTH]
    longest = max(offsets.values(), default=0.0)
    offsets |= {name: 1e-3 * offsets[name] for name in joints}
    reach = _size_of(description, masses, offsets, dict.fromkeys(masses, 0.0)).reach
    far = max(_SMALLEST_FAR, _LARGEST_OF_REACH * reach[description.root])
    far = min(far, _LARGEST_LENGTH) if reach[description.root] else _LARGEST_LENGTH
    links = [link for link, center in centers.items() if center > far]
    longest = max(longest, *centers.values())
    centers |= {link: 1e-3 * centers[link] for link in links}
    where = [named("joint", joints)] if joints else []
    where += [f"the <inertial> of {named('link', links)}"] if links else []
    if not where:
        return []
    unit = "mm" if longest > _SURELY_MM else "mm or cm"
    return [
        f"<origin xyz> of {' and of '.join(where)} is up to {rounded(longest)} m long, as if given "
        f"in {unit}. Give m"
    ]


def _carried(
    description: RobotDescription, masses: Mapping[str, float], body_of: Mapping[str, int]
) -> list[str]:
    """The links with mass that joints carry: not a base, fixed or floating, which may be of any
    mass."""
    bases = {body_of[joint.child] for joint in description.joints if joint.type == "floating"}
    return [
        link for link, body in body_of.items() if body not in {0, *bases} and masses[link] > 0.0
    ]


def _heavy(carried: Mapping[str, float], reach: float) -> tuple[set[str], str]:
    """The links whose masses are probably in g, and the words for it."""
    largest = _LARGEST_DENSITY * reach**3
    total = sum(carried.values())
    if len(carried) < _ENOUGH_LINKS or not total > largest > 0.0:
        return set(), ""
    heaviest = max(carried, key=carried.__getitem__)
    rest = total - carried[heaviest]
    if 0.0 < rest < largest and carried[heaviest] > _FAR_HEAVIER * rest:
        return {heaviest}, (
            f"link {heaviest!r} weighs {rounded(carried[heaviest])} kg, "
            f"{rounded(carried[heaviest] / rest)} "
            "times as much as all others that move, as if the mass were given in g"
        )
    return set(carried), f"{_compared(total, reach)}, as if masses were given in g"


def _light(carried: Sequence[float], reach: float) -> str:
    """The words for masses that are far too small; none if they are not."""
    enough = sum(carried) > _SMALLEST_DENSITY * reach**3 or reach > _LONG_REACH
    if len(carried) < _ENOUGH_LINKS or enough:
        return ""
    return _compared(sum(carried), reach)


def _compared(mass: float, reach: float) -> str:
    return (
        f"the links that move weigh {rounded(mass)} kg, where robots with a reach of {reach:.2g} m "
        f"weigh some {rounded(_USUAL_DENSITY * reach**3, 2)} kg"
    )


def _count_odd(links: Sequence[WeighedLink]) -> int:
    return len(oversized(links)) + len(too_dense(links))


def _weighed(
    description: RobotDescription,
    masses: Mapping[str, float],
    offsets: Mapping[str, float],
    centers: Mapping[str, float],
    body_of: Mapping[str, int],
) -> list[WeighedLink]:
    """The links whose inertia counts."""
    of_body = dict.fromkeys(body_of.values(), 0.0)
    length = {link: centers[link] for link in masses}
    for link, body in body_of.items():
        of_body[body] += masses[link]
    for joint in description.joints:
        length[joint.parent] = max(length[joint.parent], offsets[joint.name])
    total = sum(mass for body, mass in of_body.items() if body)
    weighed = []
    for link, matrix in description.inertias.items():
        body, mass, inertia = body_of[link], masses[link], link_inertia_of(link, matrix)
        counts = mass >= max(_PART_OF_ROBOT * total, _PART_OF_BODY * of_body[body])
        if body and mass > 0.0 and counts and is_of_real_body(inertia):
            weighed.append(WeighedLink(replace(inertia, mass=mass), length[link]))
    return weighed


@dataclass(frozen=True)
class _RobotSize:
    """Of each link with all that it carries.

    Attributes:
        mass: [kg].
        reach: from the link's origin over those of the links beyond it to the last center of mass,
            [m].
        moment: of mass about the link's origin, at most, whatever the positions, [kg m].
    """

    mass: dict[str, float]
    reach: dict[str, float]
    moment: dict[str, float]


def _joint_offsets(description: RobotDescription) -> dict[str, float]:
    """How far each joint is from the origin of its parent link, [m]."""
    return {joint.name: float(np.linalg.norm(joint.translation)) for joint in description.joints}


def _centers_of_mass(description: RobotDescription) -> dict[str, float]:
    """How far the center of mass of each link is from the link's origin, [m]; 0 without mass."""
    return {
        link: float(np.linalg.norm(J[:3, 3]) / J[3, 3]) if J[3, 3] > 0.0 else 0.0
        for link, J in description.inertias.items()
    }


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


def _size_of(
    description: RobotDescription,
    masses: Mapping[str, float],
    offsets: Mapping[str, float],
    centers: Mapping[str, float],
) -> _RobotSize:
    """The size of a robot with these masses of links [kg], offsets of joints and distances of
    centers of mass [m], which may be other than those of the description."""
    mass, reach = dict(masses), dict(centers)
    moment = {link: mass[link] * centers[link] for link in mass}
    for joint in reversed(description.joints):
        parent, child, offset = joint.parent, joint.child, offsets[joint.name]
        reach[parent] = max(reach[parent], offset + reach[child])
        moment[parent] += moment[child] + mass[child] * offset
        mass[parent] += mass[child]
    return _RobotSize(mass, reach, moment)
