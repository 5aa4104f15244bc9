"""Efforts in another unit, or with another sign."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.identification.hypotheses.hypothesis import Alternative
from rnea_control.identification.reading import Fit, Outlook, Proposal, Reading
from rnea_control.identification.torque_evidence import CLOSE, TRUST
from rnea_control.plausibility.causes import UNIT, Cause, Contribution, scale_words, told

SCALE = 0.12  # largest logarithm of a correct scale
# Initial values of a common scale, as multiples of the mean of the joints' scales. Masses and a
# common scale compensate each other, so that a fit stays near its initial value.
STARTS = tuple(1.25**k for k in (0, 1, -1, 2, -2, 3, -3))
SIGN = Cause(
    "sign",
    "the sign of the efforts of {joints} is reversed",
    "Reverse the sign in the hardware interface: an effort must push its joint towards larger "
    "positions",
    "a joint that moves alone, fast to and fro: friction must brake it",
)


class Unit(Alternative):
    """A scale for each joint, a common scale, a scale for one joint."""

    cause = UNIT

    def proposals(self, seen: Outlook) -> Iterator[Proposal]:
        now, nv, number = seen.best.reading, seen.model.nv, seen.number
        own, certainty = seen.scales[np.arange(nv), now.order], seen.certainty_of(now)
        own_scale, common = starting_scales(own, certainty)
        every = np.ones(nv, np.bool_)
        starts = tuple(replace(now, scale=start) for start in (own_scale, own))
        yield Proposal(every, nv * number, starts, np.arange(nv))
        starts = tuple(replace(now, scale=np.full(nv, common * multiple)) for multiple in STARTS)
        yield Proposal(every, number, starts, np.zeros(nv, np.int64), CLOSE)
        for mask in np.eye(nv, dtype=np.bool_):
            alone = (replace(now, scale=np.where(mask, own_scale, now.scale)),)
            yield Proposal(mask, number + math.log(nv), alone, np.where(mask, 0, -1))

    def is_relevant(self, before: Reading, after: Reading) -> bool:
        changed = after.scale / before.scale
        return bool((_is_wrong(changed) | (changed < 0.0)).any())

    def found(self, seen: Outlook, joints: BoolArray, after: Fit, part: float) -> Contribution:
        changed = after.reading.scale / seen.best.reading.scale
        if (changed[joints] < 0.0).all():
            return told(SIGN, seen.model, joints, part=part)
        if joints.sum() > 1 and np.ptp(changed) == 0.0:
            what = scale_words(changed[0])
            return told(self.cause, seen.model, joints, part=part, what=what)
        wrong, names = _is_wrong(changed), seen.model.joint_names
        factors = (f"{names[j]} {changed[j]:.3g} times" for j in np.flatnonzero(wrong))
        what = f"are not the torques of the robot: {', '.join(factors)} their size"
        return told(self.cause, seen.model, wrong, part=part, what=what)


class Sign(Alternative):
    """The reversed sign of all joints, of one joint."""

    cause = SIGN

    def proposals(self, seen: Outlook) -> Iterator[Proposal]:
        now, nv = seen.best.reading, seen.model.nv
        yield Proposal(np.ones(nv, np.bool_), 0.0, (replace(now, scale=-now.scale),))
        for mask in np.eye(nv, dtype=np.bool_):
            turned = (replace(now, scale=np.where(mask, -now.scale, now.scale)),)
            yield Proposal(mask, math.log(nv), turned)

    def found(self, seen: Outlook, joints: BoolArray, after: Fit, part: float) -> Contribution:
        return told(self.cause, seen.model, joints, part=part)


def starting_scales(scale: FloatArray, certainty: FloatArray) -> tuple[FloatArray, float]:
    """Initial scales of fits: one for each joint, shape (nv,), and one for all joints.

    The common scale is the geometric mean, weighted by the certainty of each joint's scale: by its
    joint's effort, bounded by the uncertainty of the URDF's masses. A wrist whose effort is
    friction has no weight, and starts with the common scale.

    Args:
        scale: factor with which the URDF's torques fit each effort, shape (nv,).
        certainty: certainty of each factor, see `TorqueEvidence.described`, shape (nv,).
    """
    weight = 1.0 / (1.0 / np.maximum(certainty, 1e-9) + TRUST**2)
    size = np.maximum(np.abs(scale), 1e-12)
    common = math.exp(float(weight @ np.log(size)) / float(weight.sum()))
    common = math.copysign(common, float(weight @ np.sign(scale)))
    return np.where(certainty > 1.0, scale, common), common


def _is_wrong(scale: FloatArray) -> BoolArray:
    """True if the scale of efforts is not 1, shape as `scale`."""
    return np.asarray((np.abs(scale) < math.exp(-SCALE)) | (np.abs(scale) > math.exp(SCALE)))


HYPOTHESES = (Unit(), Sign())
