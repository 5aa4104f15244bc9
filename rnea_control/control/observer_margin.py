r"""Feedback and disturbance observer of an arm whose inertia is not known: how much it allows.

Under computed_torque each joint is a double integrator by itself. Its loop is computed as it runs:
the torque is held for a period h and acts a delay T after its measurement, the feedback is
:math:`\beta (p e + d \dot e)`, with beta the inertia of the feedback as a multiple of the model's,
and the estimate of the observer (disturbance_observer.py) is a state later in the torque. The loop
is a matrix; it is stable if all eigenvalues are within the unit circle.

The inertia of the real joint, as a multiple of the model's, is not known. The loop must be stable
from `LEAST_INERTIA` to `MOST_INERTIA` times that of the feedback, and for a rotor of `ROTOR` where
neither `armature` nor `feedback_inertia` is known. With K without delay the bound is

.. math::

    \alpha < (\beta d + K) (p + d K) / (p K)

**Defaults.** A joint whose rotor is not told gets `ROTOR / 2` more in its feedback, or what its
gain d and the delay T allow: d T = `LIVELY` with its least inertia, the other joints being free.
The bandwidth is `USUAL`, or `SHARE` of the largest one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.settings import ControllerSettings
from rnea_control.dynamics import Workspace, crba
from rnea_control.exceptions import distinct
from rnea_control.model import RobotModel
from rnea_control.parameters.table import OBSERVER

LEAST_INERTIA = 0.7  # inertia of the real joint as a multiple of the model's
MOST_INERTIA = 2.5
ROTOR = 0.2  # inertia that a rotor may add where the model has none [kg m^2]
LIVELY = 0.45  # product d T of a joint whose inertia was added, at most
USUAL = 20.0  # bandwidth by default [rad/s]
SHARE = 0.5  # part of the largest bandwidth that is used by default
POSTURES = 64  # random postures in which the least inertia is searched
# Remedy for a joint whose rotor is not told.
REMEDY = ". Its rotor is not known: give armature.{joint} or feedback_inertia.{joint}"
LATE = 2.0  # age of a state that is too old, a period less, as a multiple of the delay
BISECTIONS = 12  # steps of the search for the largest bandwidth
INERTIAS = 6  # inertias between the bounds at which the loop is computed


def spectral_radius(
    p: float,
    d: float,
    bandwidth: float,
    feedback_ratio: float,
    inertia_ratio: float,
    delay: float,
    dead_time: float,
    period: float,
) -> float:
    """Largest absolute value of the eigenvalues of a joint's loop; below 1 it is stable.

    Args:
        p, d: gains [1/s^2], [1/s].
        bandwidth: bandwidth of the observer [rad/s].
        feedback_ratio: inertia of the feedback as a multiple of the model's.
        inertia_ratio: inertia of the real joint as a multiple of the model's.
        delay: time from a measurement until its torque acts [s].
        dead_time: the delay that the observer takes for the true one [s].
        period: period of the states [s].
    """
    late = max(math.ceil(delay / period - 1e-9), 1)  # whole periods
    # The state: position, velocity, the torque that has acted in the last period, the torques on
    # their way, oldest first, the torque that the observer takes for acting, and the estimate.
    x, v, acted, oldest, newest = 0, 1, 2, 3, 2 + late
    assumed, estimate = 3 + late, 4 + late
    loop = np.zeros((5 + late, 5 + late))
    of = np.eye(5 + late)
    acceleration = of[oldest] / inertia_ratio
    loop[x] = of[x] + period * of[v] + 0.5 * period**2 * acceleration
    loop[v] = of[v] + period * acceleration
    loop[acted:newest] = of[oldest : newest + 1]
    loop[newest] = -feedback_ratio * (p * of[x] + d * of[v]) - of[estimate]
    lag, lag_left = 0.0, 0.0
    if dead_time > 0.0:
        lag_left = math.exp(-period / dead_time)
        lag = dead_time / period * (1.0 - lag_left)
    behind = of[assumed] - of[newest]
    loop[assumed] = of[newest] + lag_left * behind
    seen = of[acted] / inertia_ratio - (of[newest] + lag * behind)
    loop[estimate] = of[estimate] - math.expm1(-bandwidth * period) * (seen - of[estimate])
    return float(np.abs(np.linalg.eigvals(loop)).max())


def is_stable(
    p: float,
    d: float,
    bandwidth: float,
    feedback_ratio: float,
    most_inertia: float,
    delay: float,
    dead_time: float,
    period: float,
) -> bool:
    """True if a joint's loop is stable for every inertia up to `most_inertia`; others: see
    `spectral_radius`."""
    inertias = np.geomspace(LEAST_INERTIA, most_inertia, INERTIAS)
    return all(
        spectral_radius(p, d, bandwidth, feedback_ratio, inertia, delay, dead_time, period) < 1.0
        for inertia in inertias
    )


def largest_bandwidth(
    wanted: float,
    p: float,
    d: float,
    feedback_ratio: float,
    most_inertia: float,
    delay: float,
    dead_time: float,
    period: float,
) -> float:
    """Largest bandwidth of the observer that a joint allows, up to the one that is `wanted`,
    [rad/s]; 0 if there is none. Others: see `is_stable`."""
    of_joint = feedback_ratio, most_inertia, delay, dead_time, period
    if not p > 0.0:
        return 0.0
    if is_stable(p, d, wanted, *of_joint):
        return wanted
    low, high = 0.0, wanted
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if is_stable(p, d, middle, *of_joint):
            low = middle
        else:
            high = middle
    return low


class Delays(NamedTuple):
    """Times of the loop [s]."""

    period: float  # period of the states
    delay: float  # from a measurement until its torque acts
    dead_time: float  # the delay in the settings


class Robustness(NamedTuple):
    """Feedback and observer of an arm whose inertia is not known.

    Attributes:
        added_inertia: inertia that is added in the feedback, shape (nv,), [kg m^2] or [kg].
        bandwidth: bandwidth of the disturbance observer, shape (nv,), [rad/s].
        objection: why the bandwidth in the settings is too large, in a sentence with the largest
            one; empty if it is not. `bandwidth` is the largest one then.
        longest_age: largest age of a state for which they are [s].
    """

    added_inertia: FloatArray
    bandwidth: FloatArray
    objection: str = ""
    longest_age: float = math.inf

    @classmethod
    def none(cls, nv: int) -> Robustness:
        """Nothing is added or estimated."""
        return cls(np.zeros(nv), np.zeros(nv))


def free_inertia(model: RobotModel) -> tuple[FloatArray, float]:
    """Least inertia of each joint with the others free in some postures, shape (nv,), [kg m^2] or
    [kg]; and the largest eigenvalue of diag(these) times the inverse of the mass matrix there, as
    joints with parallel axes may move together."""
    rng, ws = np.random.default_rng(0), Workspace(model)
    inverses = [
        np.linalg.inv(crba(model, ws, q, ws.matrix))
        for q in (model.neutral(), *(model.random(rng) for _ in range(POSTURES)))
    ]
    found = np.min([1.0 / np.diag(inverse) for inverse in inverses], axis=0)
    root = np.sqrt(found)
    largest = max(np.linalg.eigvalsh(root[:, None] * each * root)[-1] for each in inverses)
    return found, float(largest)


def bandwidth_objection(model: RobotModel, settings: ControllerSettings, delays: Delays) -> str:
    """Why the bandwidth in the settings is too large, in a sentence; empty if it is not. Takes no
    time for the default, which is never too large."""
    is_number = settings[OBSERVER] > 0.0  # false for NaN
    return judge(model, settings, delays).objection if is_number else ""


def judge(model: RobotModel, settings: ControllerSettings, delays: Delays) -> Robustness:
    """Decides the inertia that is added, and the bandwidths. Takes some milliseconds."""
    asked, told = float(settings[OBSERVER]), settings.feedback_inertia
    if told is None:
        told = np.full(model.nv, math.nan)
    if asked == 0.0 and not np.isnan(told).any():
        return Robustness.none(model.nv)
    inertia, together = free_inertia(model)
    turns = np.array([kind != "prismatic" for kind in model.joint_types])
    may_have_rotor = turns & (model.armature == 0.0)
    uses_inertia = settings.control_law.feeds_back_acceleration  # else gains are in Nm
    if not uses_inertia:
        told = np.full(model.nv, math.nan)
    delay = max(delays.delay, delays.period)
    p, d = settings.gains.p, settings.gains.d
    if not uses_inertia:
        ws = Workspace(model)
        held = np.diag(crba(model, ws, model.neutral(), ws.matrix))
        p, d = p / held, d / held
    lively = np.maximum(LIVELY / (np.maximum(d, 1e-9) * (delay + 0.5 * delays.period)) - 1.0, 0.0)
    added = np.minimum(0.5 * ROTOR, lively * inertia / together)
    unknown = may_have_rotor & np.isnan(told)
    added = np.where(unknown & uses_inertia, added, 0.0)
    ratio = (np.fmax(inertia, told) + added) / inertia
    with_rotor = (inertia + ROTOR) / inertia
    bandwidth, objection = np.zeros(model.nv), ""
    is_default = math.isnan(asked)
    wanted = USUAL / SHARE if is_default else asked
    for j in range(model.nv if wanted > 0.0 else 0):
        most = max(with_rotor[j] if unknown[j] else 0.0, MOST_INERTIA * ratio[j])
        gains = float(p[j]), float(d[j])
        of_joint = *gains, float(ratio[j]), most, delay, delays.dead_time, delays.period
        largest = largest_bandwidth(wanted, *of_joint)
        bandwidth[j] = SHARE * largest if is_default else largest
        if largest < wanted and not is_default and not objection:
            allowed, has = distinct(largest, asked, digits=3)
            objection = (
                f"{OBSERVER} is {has} rad/s; at {model.joint_names[j]}, whose feedback has "
                f"{ratio[j]:.3g} times the inertia of the model, states at "
                f"{1.0 / delays.period:.0f} Hz and torques that act after {delay:.3g} s allow "
                f"{allowed} at most: with more the joint swings"
                f"{REMEDY.format(joint=model.joint_names[j]) if unknown[j] else ''}"
            )
    return Robustness(added, bandwidth, objection, LATE * delay + delays.period)
