"""The neutral position of a robot, and random ones."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.model.joints import POSITIONS

# How far random positions go without limits, [m] or [rad]; pi for all others.
REACHES: dict[str, float | FloatArray] = {
    "prismatic": 1.0,
    "floating": 1.0,
    "cylindrical": np.array([1.0, math.pi]),
    "planar": np.array([1.0, 1.0, math.pi]),
}

_WITH_QUATERNION = ("spherical", "floating")


def neutral_position(types: Sequence[str]) -> FloatArray:
    """Zeros, and the identity for quaternions, for joints of these types in this order."""
    parts = [np.zeros(POSITIONS[kind]) for kind in types]
    for kind, part in zip(types, parts, strict=True):
        if kind in _WITH_QUATERNION:
            part[-1] = 1.0
    return np.concatenate([np.zeros(0), *parts])


def random_position(
    types: Sequence[str], lower: FloatArray, upper: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Uniform within the limits, shape (nq,) each, or within `REACHES` where there are none;
    quaternions uniform over all rotations."""
    q, start = np.empty(len(lower)), 0
    for kind in types:
        part = slice(start, start + POSITIONS[kind])
        reach = REACHES.get(kind, math.pi)
        least, most = lower[part], upper[part]
        low = np.where(np.isfinite(least), least, np.minimum(-reach, most - reach))
        high = np.where(np.isfinite(most), most, np.maximum(reach, low + reach))
        q[part] = rng.uniform(low, high)
        if kind in _WITH_QUATERNION:
            quaternion = rng.standard_normal(4)
            q[part.stop - 4 : part.stop] = quaternion / np.linalg.norm(quaternion)
        start = part.stop
    return q
