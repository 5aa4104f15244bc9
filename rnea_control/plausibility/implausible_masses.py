r"""Masses, lengths and inertias that no known robot has, with the unit that they are probably in.

A URDF is in SI units by convention only: numbers in mm, g or degrees load like any others. The
thresholds here and in suspicions.py come from the 68 URDFs of example-robot-data 6.0 (arms, hands,
legged and flying robots of 0.6 to 260 kg). They lie between the real values of these robots and the
same values in another unit. Size and mass of a robot's parts are the measure for its other numbers.

The radius of gyration k = sqrt(I / m) of bodies of one shape and density grows with the cube root
of their mass, so that

.. math:: s = k / m^{1/3}

measures how stretched and how light a body is, independent of its size: 0.0146 m/kg^(1/3) for a
ball of tungsten, 0.028 for a ball of aluminum. In the URDFs of example-robot-data it is 0.02 to
0.31 for the links with a mass (median 0.06), apart from placeholders and mistakes. Inertias in
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

# In known robots joints are up to 0.9 m from the origin of their parent link. Centers of mass are
# up to 0.45 m from their link's origin, which is at most about the robot's reach. A length of 3 cm
# is 30 in mm.
_LARGEST_LENGTH = 10.0  # largest plausible distance from a link's origin [m]
_LARGEST_OF_REACH = 3.0  # largest plausible distance of a center of mass, in reaches
_SMALLEST_FAR = 2.0  # distance of a center of mass that is always plausible [m]
_SURELY_MM = 100.0  # length above which the unit is mm and not cm [m]

# The moving mass divided by the cube of the reach is 2 to 56 kg/m^3 for arms, hands and legs, 1 for
# drones, and 0.3 to 230 for other robots; in g it would begin with 1000. Robots with a long reach,
# such as cranes, are more slender.
_SMALLEST_DENSITY = 0.15  # smallest plausible mass over cube of the reach [kg/m^3]
_USUAL_DENSITY = 20.0  # usual mass over cube of the reach [kg/m^3]
_LARGEST_DENSITY = 800.0  # largest plausible mass over cube of the reach [kg/m^3]
_LONG_REACH = 3.0  # reach above which no smallest density holds [m]

_FAR_HEAVIER = 10.0  # smallest ratio of one link's mass in g to that of all others in kg

# The mass of a rod, concentrated at its center, makes up 0.75 of the rod's second moment about its
# end, and 3 times the second moment about its center. Several long links show which of the two is
# given: in known robots with such links at least one link has less than the mass alone would have,
# with one exception, and no link is above 0.71.
_ROD = 0.74  # smallest such share of a link that looks given about its origin
_ENOUGH_LONG = 2  # number of such links that decide

# Number of links that show how heavy a robot is, and number of usual links that show what is usual
# for it. The reach of robots with fewer joints shows less of their size.
_ENOUGH_LINKS = 3

# Smallest mass of a link whose inertia is judged. Lighter links are frames and sensors with
# invented numbers.
_PART_OF_ROBOT = 2e-3  # as a fraction of the moving mass
_PART_OF_BODY = 0.1  # as a fraction of the mass of the body that the link is part of

_USUAL = 0.06  # usual s [m/kg^(1/3)]
_LARGEST = 0.5  # largest plausible s [m/kg^(1/3)]
_SMALLEST = 0.5 * 0.0146  # smallest plausible s [m/kg^(1/3)]

# A light rod has a large s too, but its radius of gyration is shorter than the rod.
_LARGEST_OF_LENGTH = 1.5  # largest radius of gyration, in lengths of the link

_NO_RADIUS = 1e-6  # largest radius of gyration that is rounding of 0 [m]

# Number of each unit that equals 1 kg m^2.
_UNITS = ((1e3, "g m^2"), (1e6, "kg mm^2"), (1e7, "g cm^2"), (1e9, "g mm^2"))

# Excess of the inertia from which a unit is named; below the smallest of _UNITS, as the usual
# inertia is not known better.
_SMALLEST_UNIT = 300.0

_DOUBT = 3.0  # two units are named if one is nearer by less than this factor


@dataclass(frozen=True, eq=False)
class _Link(LinkInertia):
    """A moving link with a mass; `length`: largest distance of its joints and its center of mass
    from its origin, [m]."""

    length: float = 0.0

    @property
    def radius(self) -> float:
        """The largest radius of gyration about the center of mass, [m]."""
        return math.sqrt(max(0.0, float(np.linalg.eigvalsh(self.inertia)[-1])) / self.mass)

    @property
    def stretch(self) -> float:
        """s in the equation of the module, [m/kg^(1/3)]."""
        return self.radius / self.mass ** (1 / 3)

    def has_less_than_about_origin(self, factor: float) -> bool:
        """True if the inertia is less than that of the concentrated mass, times a factor, about the
        link's origin."""
        point = factor * self.mass * np.outer(self.center_of_mass, self.center_of_mass)
        least = float(np.linalg.eigvalsh(rigid_body.second_moment(self.inertia) - point)[0])
        return least < -1e-6 * float(np.trace(self.inertia))

    @property
    def size(self) -> str:
        """Class of the inertia: "none", "small" (denser than the densest metal), "usual", or
        "placeholder" or "large" (larger than in any known robot, and than a body of this length can
        have)."""
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
    """Masses and lengths of the parts of a robot, in SI units as far as known.

    Attributes:
        given: links as in the description.
        masses: mass of each link, [kg].
        offsets: distance of each joint from the origin of its parent link, [m].
        centers: distance of each link's center of mass from the link's origin, [m]; 0 without
            mass.
    """

    def __init__(self, description: RobotDescription, body_of: Mapping[str, int]) -> None:
        self.root, self.joints, self.body_of = description.root, description.joints, body_of
        self.given = [link_inertia_of(*item) for item in description.inertias.items()]
        self.masses = {link.link: link.mass for link in self.given}
        self.centers = {link.link: _length(link.center_of_mass) for link in self.given}
        self.offsets = {joint.name: _length(joint.translation) for joint in self.joints}

    def reach(self, centers: Mapping[str, float]) -> float:
        """Length of the longest chain from the root over the links' origins to a center of mass,
        [m]."""
        reach = dict(centers)
        for joint in reversed(self.joints):
            far = self.offsets[joint.name] + reach[joint.child]
            reach[joint.parent] = max(reach[joint.parent], far)
        return reach[self.root]

    def moments(self) -> dict[str, float]:
        """Largest moment of mass of each link and all links that it carries, about the link's
        origin, over all positions, [kg m]."""
        mass = dict(self.masses)
        moment = {link: mass[link] * self.centers[link] for link in mass}
        for joint in reversed(self.joints):
            parent, child = joint.parent, joint.child
            moment[parent] += moment[child] + mass[child] * self.offsets[joint.name]
            mass[parent] += mass[child]
        return moment

    def carried(self) -> dict[str, float]:
        """Masses of the links that joints carry and that have a mass. A base, fixed or floating, is
        left out: it may have any mass."""
        floating = [joint.child for joint in self.joints if joint.type == "floating"]
        bases = {0, *map(self.body_of.get, floating)}
        return {
            link: mass
            for link, mass in self.masses.items()
            if mass > 0.0 and self.body_of[link] not in bases
        }

    def links(self, masses: Mapping[str, float]) -> list[_Link]:
        """Links whose inertia is judged, assuming these masses."""
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
    """Finds masses, lengths and inertias that no known robot has.

    Args:
        description: the robot.
        body_of: row of the body that each link is part of; row 0 does not move.

    Returns:
        A sentence for each kind of finding; with the findings corrected, the largest moment of mass
        of each link and all that it carries, [kg m]; and of the whole robot, [kg m], or 0 if the
        robot has too few joints or too little mass to be a measure.
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
    """Finds lengths that are probably in mm, and converts them to m."""
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
    """Links whose masses are probably in g, and the words for the finding."""
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
    """A sentence if no center of mass is given, though several links have joints away from their
    origins."""
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
    """Median s of this robot's links of usual size; the usual s of other robots if this robot has
    too few of them."""
    usual = [link.stretch for link in links if link.size == "usual"]
    return float(np.median(usual)) if len(usual) >= _ENOUGH_LINKS else _USUAL


def _likely_unit(links: Sequence[_Link], usual: float) -> str:
    """Unit that makes the inertias of these links usual; two units if both are about as near."""
    excess = _times(links, usual)
    distances = sorted((abs(math.log(excess / size)), unit) for size, unit in _UNITS)
    (nearest, unit), (second, other) = distances[:2]
    return f"{unit} or {other}" if second - nearest < math.log(_DOUBT) else unit


def _times(links: Sequence[_Link], usual: float) -> float:
    """Median ratio of the inertias to the usual inertia."""
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
    """True for a power of ten, as invented numbers often are."""
    return value > 0.0 and abs(math.log10(value) - round(math.log10(value))) < 1e-9
