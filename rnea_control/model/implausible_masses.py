r"""Masses, lengths and inertias that no known robot has, with the unit that they are probably in.

A URDF is in SI units by convention only: numbers in mm, g or degrees load like any others. The
thresholds here and in suspicions.py come from the 68 URDFs of example-robot-data 6.0 (arms, hands,
legged and flying robots of 0.6 to 260 kg): they lie between what is real among these and what the
same numbers would be in another unit. How large and heavy the parts of a robot are is the measure
for its other numbers.

The radius of gyration k = sqrt(I / m) of bodies of one shape and density grows with the cube root
of their mass, so that

.. math:: s = k / m^{1/3}

says how stretched and how light a body is, whatever its size: 0.0146 m/kg^(1/3) for a ball of
tungsten, 0.028 for one of aluminium. In the URDFs of example-robot-data it is 0.02 to 0.31 for the
links that weigh something (0.06 in the middle), but for placeholders and mistakes. Inertias in
g m^2 make it 32 times as large, in kg mm^2 1000, in g cm^2 3200, in g mm^2 32 000 times; masses
in g make it 316 times smaller.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import named, rounded
from rnea_control.model import rigid_body
from rnea_control.model.rigid_body import LinkInertia, impossible_inertias, link_inertia_of
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

# Its mass at its center makes up 0.75 of a rod's second moment about its end, and would be 3 times
# that about its center. So many long links tell the one from the other: of known robots with such
# links only one has none with more than all of it, and no link above 0.71.
_ROD, _ENOUGH_LONG = 0.74, 2

# So many links tell how heavy a robot is, and so many of them what is usual for it; the reach of
# robots with fewer joints tells less of their size.
_ENOUGH_LINKS = 3

# What a link weighs at least, as part of what moves and of what it is fixed to, for its inertia to
# count: the lighter ones are frames and sensors with made-up numbers.
_PART_OF_ROBOT, _PART_OF_BODY = 2e-3, 0.1

# Of s.
_USUAL, _LARGEST, _SMALLEST = 0.06, 0.5, 0.5 * 0.0146

# A light rod is stretched too, but its radius of gyration is shorter than itself.
_LARGEST_OF_LENGTH = 1.5

# Smaller than any body's, what rounding leaves of 0, [m].
_NO_RADIUS = 1e-6

# How many of a unit are 1 kg m^2.
_UNITS = ((1e3, "g m^2"), (1e6, "kg mm^2"), (1e7, "g cm^2"), (1e9, "g mm^2"))

# What some links have more than usual may be so far below the smallest of these.
_SMALLEST_UNIT = 300.0

# Two units are named if one is no more than this factor nearer than the other.
_DOUBT = 3.0


@dataclass(frozen=True, eq=False)
class _Link(LinkInertia):
    """A link that moves and weighs something; `length`: how far its joints and its center of mass
    are from its origin, at most, [m]."""

    length: float = 0.0

    @property
    def radius(self) -> float:
        """The largest radius of gyration about the center of mass, [m]."""
        return math.sqrt(max(0.0, float(np.linalg.eigvalsh(self.inertia)[-1])) / self.mass)

    @property
    def stretch(self) -> float:
        """s in the equation above, [m/kg^(1/3)]."""
        return self.radius / self.mass ** (1 / 3)

    def has_less_than_about_origin(self, factor: float) -> bool:
        """Whether the inertia is less than its point mass, times a factor, has about the origin."""
        point = factor * self.mass * np.outer(self.center_of_mass, self.center_of_mass)
        least = float(np.linalg.eigvalsh(rigid_body.second_moment(self.inertia) - point)[0])
        return least < -1e-6 * float(np.trace(self.inertia))

    @property
    def size(self) -> str:
        """Of the inertia: "none", "small" (denser than the densest metal), "usual", or larger than
        any known robot's and than a body of its length can have: "placeholder" or "large"."""
        if self.radius < _NO_RADIUS:
            return "none"
        if self.stretch < _SMALLEST:
            return "small"
        if self.stretch <= _LARGEST or self.radius <= _LARGEST_OF_LENGTH * self.length:
            return "usual"
        moments = np.diag(self.inertia)  # the same power of ten about all axes?
        same = np.allclose(moments, moments[0], rtol=1e-9, atol=0.0)
        return "placeholder" if same and is_power_of_ten(float(moments[0])) else "large"


class _Robot:
    """How heavy and long the parts of a robot are, as far as known in SI units.

    Attributes:
        given: the links as they are in the description.
        masses: of each link, [kg].
        offsets: how far each joint is from the origin of its parent link, [m].
        centers: how far the center of mass of each link is from the link's origin, [m]; 0 without
            mass.
    """

    def __init__(self, description: RobotDescription, body_of: Mapping[str, int]) -> None:
        self.root, self.joints, self.body_of = description.root, description.joints, body_of
        self.given = [link_inertia_of(*item) for item in description.inertias.items()]
        self.masses = {link.link: link.mass for link in self.given}
        self.centers = {link.link: _length(link.center_of_mass) for link in self.given}
        self.offsets = {joint.name: _length(joint.translation) for joint in self.joints}

    def reach(self, centers: Mapping[str, float]) -> float:
        """From the root over the links' origins to the last center of mass, [m]."""
        reach = dict(centers)
        for joint in reversed(self.joints):
            far = self.offsets[joint.name] + reach[joint.child]
            reach[joint.parent] = max(reach[joint.parent], far)
        return reach[self.root]

    def moments(self) -> dict[str, float]:
        """Moment of mass of each link, with all that it carries, about the link's origin, at most,
        whatever the positions, [kg m]."""
        mass = dict(self.masses)
        moment = {link: mass[link] * self.centers[link] for link in mass}
        for joint in reversed(self.joints):
            parent, child = joint.parent, joint.child
            moment[parent] += moment[child] + mass[child] * self.offsets[joint.name]
            mass[parent] += mass[child]
        return moment

    def carried(self) -> dict[str, float]:
        """Masses of the links that have one and that joints carry: not of a base, fixed or
        floating, which may be of any mass."""
        floating = [joint.child for joint in self.joints if joint.type == "floating"]
        bases = {0, *map(self.body_of.get, floating)}
        return {
            link: mass
            for link, mass in self.masses.items()
            if mass > 0.0 and self.body_of[link] not in bases
        }

    def links(self, masses: Mapping[str, float]) -> list[_Link]:
        """The links whose inertia counts, if they had these masses."""
        of_body = dict.fromkeys(self.body_of.values(), 0.0)
        for link, body in self.body_of.items():
            of_body[body] += masses[link]
        total = sum(mass for body, mass in of_body.items() if body)
        length = dict(self.centers)
        for joint in self.joints:
            length[joint.parent] = max(length[joint.parent], self.offsets[joint.name])
        found = []
        for given in self.given:
            body, mass = self.body_of[given.link], masses[given.link]
            counts = mass >= max(_PART_OF_ROBOT * total, _PART_OF_BODY * of_body[body])
            if body and mass > 0.0 and counts and not impossible_inertias([given]):
                found.append(_Link(**{**vars(given), "mass": mass, "length": length[given.link]}))
        return found


def implausible_masses(
    description: RobotDescription, body_of: Mapping[str, int]
) -> tuple[list[str], dict[str, float], float]:
    """A sentence for each kind of mass, length or inertia that no known robot has; and what the
    robot weighs with these corrected: the moment of mass of each link with all that it carries, and
    of the whole robot, [kg m]; 0 if it has too few joints, or too little mass, to be a measure.

    `body_of` is the row of the body that each link is part of; row 0 does not move.
    """
    robot = _Robot(description, body_of)
    notes = _correct_lengths(robot)
    reach, masses = robot.reach(robot.centers), robot.masses
    carried = robot.carried()
    heavy, words = _heavy(carried, reach)
    masses |= {link: 1e-3 * masses[link] for link in heavy}
    links = robot.links(masses)
    if heavy:
        of_heavy = [link for link in links if link.link in heavy]
        swollen = [link for link in of_heavy if link.size in ("placeholder", "large")]
        if 2 * len(swollen) > len(of_heavy):
            words += f", and inertias in {_likely_unit(swollen, _usual_stretch(links))}"
            links = [link for link in links if link not in swollen]
        notes.append(f"{words}. Give kg and kg m^2")
    total = sum(masses[link] for link in carried)
    enough_mass = total > _SMALLEST_DENSITY * reach**3 or reach > _LONG_REACH
    light = len(carried) >= _ENOUGH_LINKS and not enough_mass
    if light:
        how, in_kg = "made up", {link: 1e3 * mass for link, mass in masses.items()}
        better = robot.links(in_kg)
        odd, still_odd = (
            sum(link.size not in ("none", "usual") for link in each) for each in (links, better)
        )
        invented = all(is_power_of_ten(masses[link]) for link in carried)
        if 2 * still_odd < odd and not invented:
            how, robot.masses, links = "given in t", in_kg, better
        notes.append(f"{_compared(total, reach)}, as if masses were {how}. Give kg")
    notes += _implausible_inertias(links)
    notes += _centers_at_zero(robot, carried) or ([] if notes else _about_origins(links))
    robot.masses |= {link.link: 1e-3 * link.mass for link in links if link.size == "small"}
    moments = robot.moments()
    enough = sum(joint.nv == 1 for joint in description.joints) >= _ENOUGH_LINKS
    return notes, moments, moments[description.root] if enough and not light else 0.0


def _correct_lengths(robot: _Robot) -> list[str]:
    """Says which lengths are probably in mm, and takes them as such."""
    offsets, centers = robot.offsets, robot.centers
    longest = max(offsets.values(), default=0.0)
    joints = [name for name, offset in offsets.items() if offset > _LARGEST_LENGTH]
    offsets |= {name: 1e-3 * offsets[name] for name in joints}
    reach = robot.reach(dict.fromkeys(centers, 0.0))
    far = max(_SMALLEST_FAR, _LARGEST_OF_REACH * reach) if reach else _LARGEST_LENGTH
    links = [link for link, center in centers.items() if center > min(far, _LARGEST_LENGTH)]
    longest = max(longest, *centers.values())
    centers |= {link: 1e-3 * centers[link] for link in links}
    where = [named("joint", joints)] if joints else []
    where += [f"the <inertial> of {named('link', links)}"] if links else []
    unit = "mm" if longest > _SURELY_MM else "mm or cm"
    sentence = (
        f"<origin xyz> of {' and of '.join(where)} is up to {rounded(longest)} m long, as if given "
        f"in {unit}. Give m"
    )
    return [sentence] if where else []


def _heavy(carried: Mapping[str, float], reach: float) -> tuple[set[str], str]:
    """The links whose masses are probably in g, and the words for it."""
    largest = _LARGEST_DENSITY * reach**3
    total = sum(carried.values())
    if len(carried) < _ENOUGH_LINKS or not total > largest > 0.0:
        return set(), ""
    heaviest = max(carried, key=carried.__getitem__)
    rest = total - carried[heaviest]
    if 0.0 < rest < largest and carried[heaviest] > _FAR_HEAVIER * rest:
        times = rounded(carried[heaviest] / rest)
        return {heaviest}, (
            f"link {heaviest!r} weighs {rounded(carried[heaviest])} kg, {times} times as much as "
            "all others that move, as if the mass were given in g"
        )
    return set(carried), f"{_compared(total, reach)}, as if masses were given in g"


def _compared(mass: float, reach: float) -> str:
    return (
        f"the links that move weigh {rounded(mass)} kg, where robots with a reach of {reach:.2g} m "
        f"weigh some {rounded(_USUAL_DENSITY * reach**3, 2)} kg"
    )


def _centers_at_zero(robot: _Robot, carried: Collection[str]) -> list[str]:
    """A sentence if no center of mass is given, though several links lead to joints elsewhere."""
    long = {joint.parent for joint in robot.joints if robot.offsets[joint.name] > 0.0}
    if len(long.intersection(carried)) < _ENOUGH_LINKS or any(map(robot.centers.get, carried)):
        return []
    return [
        "the centers of mass of all links that move are at 0 0 0, as if not measured. Give the "
        "<origin> of each <inertial>"
    ]


def _about_origins(links: Sequence[_Link]) -> list[str]:
    """A sentence if the inertias are probably about the links' origins."""
    near = [link for link in links if link.has_less_than_about_origin(1.0 / _ROD)]
    impossible = any(link.has_less_than_about_origin(1.0) for link in links)
    if impossible or len(near) < _ENOUGH_LONG or len(links) < _ENOUGH_LINKS:
        return []
    return [
        f"{_named(near)}: the inertia is little more than the mass at the center of mass has about "
        "the link's origin, and no link has less, as if inertias were given about the links' "
        "origins. Give them about the centers of mass"
    ]


def _implausible_inertias(links: Sequence[_Link]) -> Iterator[str]:
    """A sentence for each kind of inertia that no known robot has."""
    sizes = "none", "small", "placeholder", "large"
    without, small, placeholders, large = ([x for x in links if x.size == s] for s in sizes)
    if without:
        yield (
            f"{_named(without)}: the inertia is 0, though the mass is up to "
            f"{max(link.mass for link in without):.3g} kg; no torque is computed for "
            "turning it about its center of mass. Give the <inertia> of the link's shape"
        )
    if small:
        densest = min(small, key=lambda link: link.stretch)
        yield (
            f"{_named(small)}: {densest.mass:.4g} kg with a radius of gyration of "
            f"{1e3 * densest.radius:.2g} mm {_of(densest, small)}is denser than any metal, as if "
            "the mass were given in g, or the inertia scaled down. Give kg and kg m^2"
        )
    if placeholders:
        yield (
            f"{_named(placeholders)}: {_excess(placeholders)}, the same power of ten about "
            "all axes: a placeholder. Give the <inertia> of the link's shape, in kg m^2"
        )
    if large:
        cause = "more than a body of that size can have. Check it"
        if _times(large, _USUAL) >= _SMALLEST_UNIT:
            unit = _likely_unit(large, _usual_stretch(links))
            cause = f"as if given in {unit}. Give it in kg m^2"
        yield f"{_named(large)}: {_excess(large)}, {cause}"


def _usual_stretch(links: Sequence[_Link]) -> float:
    """s of this robot's links of usual size; that of other robots' if there are too few."""
    usual = [link.stretch for link in links if link.size == "usual"]
    return float(np.median(usual)) if len(usual) >= _ENOUGH_LINKS else _USUAL


def _likely_unit(links: Sequence[_Link], usual: float) -> str:
    """The unit that makes the inertias of these links usual; two where they leave it open."""
    excess = _times(links, usual)
    distances = sorted((abs(math.log(excess / size)), unit) for size, unit in _UNITS)
    (nearest, unit), (second, other) = distances[:2]
    return f"{unit} or {other}" if second - nearest < math.log(_DOUBT) else unit


def _times(links: Sequence[_Link], usual: float) -> float:
    """How many times larger than usual the inertias are, in the middle."""
    return float(np.median([(link.stretch / usual) ** 2 for link in links]))


def _excess(links: Sequence[_Link]) -> str:
    widest = max(links, key=lambda link: link.radius)
    radius = f"{rounded(widest.radius)} m {_of(widest, links)}"
    return (
        f"the inertia is about {rounded(_times(links, _USUAL), 2)} times what robots' links of "
        f"that mass have (a radius of gyration of {radius}for {rounded(widest.mass)} kg)"
    )


def _named(links: Sequence[_Link]) -> str:
    return named("link", [link.link for link in links])


def _of(link: _Link, links: Sequence[_Link]) -> str:
    return f"of {link.link!r} " if len(links) > 1 else ""


def _length(vector: FloatArray) -> float:
    return float(np.linalg.norm(vector))


def is_power_of_ten(value: float) -> bool:
    """Whether a number is such, as made-up ones often are."""
    return value > 0.0 and abs(math.log10(value) - round(math.log10(value))) < 1e-9
