r"""Inertias that no known robot has for its masses, with the unit that they are probably in.

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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnea_control.exceptions import named, rounded
from rnea_control.model.links import LinkInertia

_USUAL, _LARGEST, _SMALLEST = 0.06, 0.5, 0.5 * 0.0146

# A light rod is stretched too, but its radius of gyration is shorter than itself.
_LARGEST_OF_LENGTH = 1.5

# Smaller than any body's, what rounding leaves of 0, [m].
_NO_RADIUS = 1e-6

# So many links of a robot say what is usual for it.
_ENOUGH_LINKS = 3

# How many of a unit are 1 kg m^2.
_UNITS = ((1e3, "g m^2"), (1e6, "kg mm^2"), (1e7, "g cm^2"), (1e9, "g mm^2"))

# What some links have more than usual may be so far below the smallest of these.
_SMALLEST_UNIT = 300.0

# Two units are named if one is no more than this factor nearer than the other.
_DOUBT = 3.0


@dataclass(frozen=True, eq=False)
class WeighedLink:
    """A link that moves and weighs something.

    Attributes:
        inertia: of the link.
        length: how far its joints and its center of mass are from its origin, at most, [m].
    """

    inertia: LinkInertia
    length: float

    @property
    def radius(self) -> float:
        """The largest radius of gyration about the center of mass, [m]."""
        moment = max(0.0, float(np.linalg.eigvalsh(self.inertia.inertia)[-1]))
        return math.sqrt(moment / self.inertia.mass)

    @property
    def stretch(self) -> float:
        """s in the equation above, [m/kg^(1/3)]."""
        return self.radius / self.inertia.mass ** (1 / 3)

    @property
    def is_placeholder(self) -> bool:
        """Whether the moments about all axes are the same power of ten."""
        moments = np.diag(self.inertia.inertia)
        same = np.allclose(moments, moments[0], rtol=1e-9, atol=0.0)
        return same and is_power_of_ten(float(moments[0]))


def implausible_inertias(links: Sequence[WeighedLink]) -> list[str]:
    """A sentence for each kind of inertia that no known robot has."""
    without = [link for link in links if link.radius < _NO_RADIUS]
    small = too_dense(links)
    large, usual = oversized(links), usual_stretch(links)
    placeholders = [link for link in large if link.is_placeholder]
    large = [link for link in large if link not in placeholders]
    notes = []
    if without:
        notes.append(
            f"{_named(without)}: the inertia is 0, though the mass is up to "
            f"{max(link.inertia.mass for link in without):.3g} kg; no torque is computed for "
            "turning it about its centre of mass. Give the <inertia> of the link's shape"
        )
    if small:
        densest = min(small, key=lambda link: link.stretch)
        notes.append(
            f"{_named(small)}: {densest.inertia.mass:.4g} kg with a radius of gyration of "
            f"{1e3 * densest.radius:.2g} mm {_of(densest, small)}is denser than any metal, as if "
            "the mass were given in g, or the inertia scaled down. Give kg and kg m^2"
        )
    if placeholders:
        notes.append(
            f"{_named(placeholders)}: {_excess(placeholders)}, the same power of ten about "
            "all axes: a placeholder. Give the <inertia> of the link's shape, in kg m^2"
        )
    if large:
        notes.append(f"{_named(large)}: {_excess(large)}, {_cause(large, usual)}")
    return notes


def too_dense(links: Sequence[WeighedLink]) -> list[WeighedLink]:
    """Those with less inertia than a body of the densest metal, but not none."""
    return [link for link in links if link.radius >= _NO_RADIUS and link.stretch < _SMALLEST]


def oversized(links: Sequence[WeighedLink]) -> list[WeighedLink]:
    """Those with more inertia than any known robot's, and than a body of their length can have."""
    return [
        link
        for link in links
        if link.stretch > _LARGEST and link.radius > _LARGEST_OF_LENGTH * link.length
    ]


def usual_stretch(links: Sequence[WeighedLink]) -> float:
    """s of this robot's links that are neither too large nor too small; that of others if there
    are too few."""
    odd = [*too_dense(links), *oversized(links)]
    usual = [link.stretch for link in links if link not in odd and link.radius >= _NO_RADIUS]
    return float(np.median(usual)) if len(usual) >= _ENOUGH_LINKS else _USUAL


def likely_unit(links: Sequence[WeighedLink], usual: float) -> str:
    """The unit that makes the inertias of these links usual; two where they leave it open."""
    excess = _times(links, usual)
    distances = sorted((abs(math.log(excess / size)), unit) for size, unit in _UNITS)
    (nearest, unit), (second, other) = distances[:2]
    return f"{unit} or {other}" if second - nearest < math.log(_DOUBT) else unit


def is_power_of_ten(value: float) -> bool:
    """Whether a number is such, as made-up ones often are."""
    return value > 0.0 and abs(math.log10(value) - round(math.log10(value))) < 1e-9


def _cause(links: Sequence[WeighedLink], usual: float) -> str:
    if _times(links, _USUAL) < _SMALLEST_UNIT:
        return "more than a body of that size can have. Check it"
    return f"as if given in {likely_unit(links, usual)}. Give it in kg m^2"


def _times(links: Sequence[WeighedLink], usual: float) -> float:
    """How many times larger than usual the inertias are, in the middle."""
    return float(np.median([(link.stretch / usual) ** 2 for link in links]))


def _excess(links: Sequence[WeighedLink]) -> str:
    widest = max(links, key=lambda link: link.radius)
    radius = f"{rounded(widest.radius)} m {_of(widest, links)}"
    return (
        f"the inertia is about {rounded(_times(links, _USUAL), 2)} times what robots' links of "
        f"that mass have (a radius of gyration of {radius}for {rounded(widest.inertia.mass)} kg)"
    )


def _named(links: Sequence[WeighedLink]) -> str:
    return named("link", [link.inertia.link for link in links])


def _of(link: WeighedLink, links: Sequence[WeighedLink]) -> str:
    return f"of {link.inertia.link!r} " if len(links) > 1 else ""
