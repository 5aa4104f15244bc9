"""Measured torques beside those of two models."""

from __future__ import annotations

import math

import numpy as np
from scipy.signal import butter, sosfiltfilt

from rnea_control.analysis import inverse_dynamics_batch
from rnea_control.array_types import FloatArray
from rnea_control.identification.motion import ORDER, Motion
from rnea_control.identification.result import Residuals
from rnea_control.model import RobotModel

# A value beyond so many standard deviations is an outlier, and counts as that many.
OUTLYING = 20.0
# So much of normal noise is within so many standard deviations.
USUAL, USUAL_DEVIATIONS = 0.95, 1.96
# Fewer samples cannot be filtered.
SHORTEST_FILTERED = 5 * ORDER


def residuals_of(
    before: RobotModel, after: RobotModel, motion: Motion, held_out: bool
) -> Residuals:
    """The torques of a motion, as measured and by two models, friction included.

    Args:
        before, after: models of the same joints.
        motion: of these, with any delay made up for.
        held_out: whether `after` knows nothing of it.
    """
    arrays = motion.q, motion.v, motion.a
    predicted = [inverse_dynamics_batch(model, *arrays) for model in (before, after)]
    for tau in predicted:
        tau[~motion.counts] = np.nan  # at rest, friction may be anything
    return Residuals(
        motion.source,
        held_out,
        before.joint_names,
        motion.time,
        motion.effort,
        predicted[0],
        predicted[1],
        measurement_noise(motion),
    )


def measurement_noise(motion: Motion) -> FloatArray:
    """Standard deviation of the measured torques about their own smooth course, shape (nv,): the
    part that the filter of the positions would remove from them, for white noise without
    outliers."""
    sos = butter(ORDER, motion.cutoff, fs=1.0 / motion.period, output="sos")
    parts = [part for part in motion.parts if part.stop - part.start > SHORTEST_FILTERED]
    if parts:
        efforts = [motion.effort[part] for part in parts]
        rough = np.concatenate([each - sosfiltfilt(sos, each, axis=0) for each in efforts])
        counts = np.concatenate([motion.counts[part] for part in parts])
    else:
        rough = np.diff(motion.effort, axis=0) / math.sqrt(2.0)
        counts = motion.counts[1:]
    counts = counts | ~counts.any(axis=0)  # a joint that never moves has noise too
    # Noise of feedback comes in bursts: the median is not the usual size.
    sizes = np.where(counts, np.abs(rough), np.nan)
    usual = np.nanquantile(sizes, USUAL, axis=0) / USUAL_DEVIATIONS
    power = np.nanmean(np.minimum(sizes, OUTLYING * usual) ** 2, axis=0)
    kept = 1.0 - 2.0 * motion.cutoff * motion.period
    return np.asarray(np.sqrt(power / kept))
