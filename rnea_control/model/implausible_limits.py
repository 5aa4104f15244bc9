"""Limits of joints that no known robot has, with the unit that they are probably in.

The thresholds come from the URDFs of example-robot-data: revolute joints of these turn by up to
10 rad and 60 rad/s, prismatic ones slide by up to 0.35 m and 5 m/s; their effort limits are 0.13 to
22 times what holds what they carry (the whole robot, in the second case) stretched out. Beyond
that there are only round placeholders such as 1000, which say "no limit".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Container, Mapping, Sequence

from rnea_control.exceptions import listed, rounded
from rnea_control.model.implausible_inertias import is_power_of_ten
from rnea_control.model.joints import Joint

_GRAVITY = 9.81

# [rad], [rad/s]; then [m], [m/s]. Two turns to either side and no more: 30 degrees are 30.
_LARGEST_ANGLE, _NO_LIMIT = 4.0 * math.pi, 2000.0
_LARGEST_RATE = 60.0
_LARGEST_TRAVEL = _LARGEST_SPEED = 20.0

# Of the moment of weight of the whole robot, and of what the joint carries.
_LARGEST_EFFORT, _SMALLEST_EFFORT = 50.0, 0.02


def implausible_limits(
    joints: Sequence[Joint], moments: Mapping[str, float], whole: float, loaded: Container[str]
) -> list[str]:
    """A sentence for each kind of limit that no known robot has.

    Args:
        joints: whose limits count.
        moments: of mass, of each link with all that it carries, [kg m].
        whole: the same of the whole robot; 0 if it has too few joints to be compared.
        loaded: names of the joints that bear weight.
    """
    turning = [joint for joint in joints if joint.type == "revolute"]
    sliding = [joint for joint in joints if joint.type == "prismatic"]
    angles = _over(turning, _range, lambda angle: angle > _LARGEST_ANGLE and not _in_turns(angle))
    rates = _over(turning, _velocity, lambda rate: rate > _LARGEST_RATE)
    travels = _over(sliding, _range, lambda travel: travel > _LARGEST_TRAVEL)
    speeds = _over(sliding, _velocity, lambda speed: speed > _LARGEST_SPEED)
    if rates:
        continuous = [joint for joint in joints if joint.type == "continuous"]
        rates |= _over(continuous, _velocity, lambda rate: rate > _LARGEST_RATE)
    notes = []
    if angles:
        turns = max(angles.values()) / math.tau
        go = f"go to {_most(angles)} rad, {turns:.2g} turns"
        notes.append(_sentence("lower and upper", angles, go, "degrees", "rad"))
    if rates:
        go = f"is up to {_most(rates)} rad/s, known ones turn at up to {_LARGEST_RATE:g}"
        notes.append(_sentence("velocity", rates, go, "degrees/s or rpm", "rad/s"))
    if travels:
        go = f"go to {_most(travels)} m"
        notes.append(_sentence("lower and upper", travels, go, "mm", "m"))
    if speeds:
        go = f"is up to {_most(speeds)} m/s"
        notes.append(_sentence("velocity", speeds, go, "mm/s", "m/s"))
    return notes + _efforts(joints, moments, whole, loaded)


def _efforts(
    joints: Sequence[Joint], moments: Mapping[str, float], whole: float, loaded: Container[str]
) -> list[str]:
    turning = [joint for joint in joints if joint.type in ("revolute", "continuous")]
    weight = _GRAVITY * whole
    strong = _over(turning, _effort, lambda effort: effort > _LARGEST_EFFORT * weight > 0.0)
    weak = [
        joint
        for joint in turning
        if joint.name in loaded
        and 0.0 < joint.effort_limit < _SMALLEST_EFFORT * _GRAVITY * moments[joint.child]
    ]
    notes = []
    if strong:
        times = rounded(max(strong.values()) / weight)
        go = f"is up to {_most(strong)} Nm, {times} times what holds the whole robot stretched out"
        notes.append(_sentence("effort", strong, go, "N mm or made up", "Nm"))
    if weak:
        worst = min(weak, key=lambda joint: joint.effort_limit / moments[joint.child])
        go = (
            f"is close to 0: {rounded(worst.effort_limit)} Nm where what {worst.name} carries can "
            f"weigh up to {rounded(_GRAVITY * moments[worst.child])} Nm"
        )
        notes.append(_sentence("effort", [joint.name for joint in weak], go, "kN m", "Nm"))
    return notes


def _sentence(limit: str, joints: Collection[str], go: str, unit: str, wanted: str) -> str:
    what = f"<limit {limit}>" if " " not in limit else f"<limit> {limit}"
    return f"{what} of {listed(joints)} {go}, as if given in {unit}. Give {wanted}"


def _most(values: dict[str, float]) -> str:
    return rounded(max(values.values()))


def _over(
    joints: Sequence[Joint], value: Callable[[Joint], float], too_large: Callable[[float], bool]
) -> dict[str, float]:
    """The joints with a value that is too large and no placeholder, by name."""
    values = {joint.name: value(joint) for joint in joints}
    return {name: x for name, x in values.items() if too_large(x) and not _is_made_up(x)}


def _range(joint: Joint) -> float:
    """How far its limits are from 0, [rad] or [m]; 0 for those that are no limits."""
    ends = [abs(end) for end in (joint.lower, joint.upper) if abs(end) < _NO_LIMIT]
    return max(ends, default=0.0)


def _velocity(joint: Joint) -> float:
    return joint.velocity_limit


def _effort(joint: Joint) -> float:
    return joint.effort_limit


def _in_turns(angle: float) -> bool:
    """Whether it is so many half turns, in rad with at least four digits."""
    half_turns = round(angle / math.pi)
    return angle != round(angle) and abs(angle - half_turns * math.pi) < 2e-4 * angle


def _is_made_up(value: float) -> bool:
    """Whether it is a power of ten or only nines, which says that there is no limit."""
    return not math.isfinite(value) or f"{value:.10g}".strip("9") == "" or is_power_of_ten(value)
