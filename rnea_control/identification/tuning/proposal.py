r"""Parameters of the controller from what was measured of the joints.

**Gains.** With p = w^2 and d = 2 w the loop of a joint is (2 w s + w^2) / s^2 e^{-s T}. It crosses
1 at 2.058 w, whatever w is, with a phase margin of 76.3 degrees less 2.058 w T. So

.. math:: w = 31.3 \pi / 180 / (2.058 \, T) = 0.266 / T

leaves 45 degrees. Three bounds may be lower: the noise of the velocity becomes a torque through d,
the crossing must be at a frequency at which the joint was seen to be a rigid inertia, and a joint
that was pushed must come to rest although the controller bounds torques and their rate. With the
time r from no torque to the largest one, it does so from any velocity for all w up to

.. math::

    w = 1 / (T + 0.59 r)

by simulation, within an eighth for r from 5 to 100 ms, T up to 0.6 r and a model that is right.
Beyond, it swings from limit to limit.

**Thresholds of collisions.** A joint at rest may hide its breakaway torque and the torque that the
model lacks, and the observer of external torques takes both for a contact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.identification.tuning.joint_experiment import JointEstimate
from rnea_control.model import RobotModel
from rnea_control.parameters.table import DEFAULT, OBSERVER

CROSSING = math.sqrt(2.0 + math.sqrt(5.0))  # frequency at which the loop crosses 1, over w
RISE = 0.59  # part of the rise time of the torque that acts like a dead time
RISE_SHARE = 2.0 / 3.0  # part of the bandwidth that the rise time allows; for errors of the model
MARGIN = math.pi / 4.0  # phase margin that the dead time leaves [rad]
NOISE_SHARE = 0.01  # standard deviation of the torque from noise, as a part of the effort limit
LEAST_DEVIATIONS = 2.0  # deviations that a rotor or a damping must have to be proposed
COULOMB_SHARE = 0.8  # part of the Coulomb friction that is compensated; all may make a joint hum
CONTACT_MARGIN = 2.0  # threshold of a collision, over the torques that a joint hides
LEAST_CONTACT = 0.05  # the same, as a part of the effort limit, at least
STREAM_SHARE = 0.5  # bandwidth of streams, as a part of that of the slowest joint
STREAM_RANGE = 5.0, 100.0  # bandwidth of streams, at least and at most [rad/s]
LEAST_PERIODS = 1.5  # dead time for the gains, at least, in periods of the states
DEAD_TIME_RANGE = 0.0, 0.02  # range of the parameter `dead_time` [s]
Values = dict[str, float | bool]  # parameters by full name
DEAD_TIME, NOISE, FREQUENCIES = "dead time", "noise of the velocity", "measured frequencies"
TORQUE_RATE = "rate of the torque"


@dataclass(frozen=True)
class JointProposal:
    """Parameters of one joint.

    Attributes:
        armature: [kg m^2] or [kg].
        armature_deviation: its standard deviation.
        coulomb, damping: friction to compensate, [Nm] or [N], and per [rad/s] or [m/s].
        bounds: bandwidths by what bounds them, [rad/s].
        torque_noise: standard deviation of the torque that the noise of the velocity makes, [Nm] or
            [N].
        contact: threshold of a collision, [Nm] or [N].
    """

    armature: float
    armature_deviation: float
    coulomb: float
    damping: float
    bounds: dict[str, float]
    torque_noise: float
    contact: float

    @property
    def bound(self) -> str:
        """Name of the bound in force."""
        return min(self.bounds, key=lambda name: self.bounds[name])

    @property
    def bandwidth(self) -> float:
        """w, [rad/s]."""
        return self.bounds[self.bound]

    @property
    def feedback_inertia(self) -> float:
        """Value of the parameter: 0 with an armature, which is in the feedback too; else the rotor
        is not known, and the controller adds what is safe."""
        return 0.0 if self.armature > 0.0 else DEFAULT

    @property
    def p(self) -> float:
        return self.bandwidth**2

    @property
    def d(self) -> float:
        return 2.0 * self.bandwidth


@dataclass(frozen=True)
class Proposal:
    """Parameters of the controller.

    Attributes:
        joints: proposals by the joint's name.
        dead_time: mean of the joints, weighted by their deviations, [s].
        dead_time_deviation: its standard deviation, with the scatter of the joints.
        stream_bandwidth: [rad/s].
        observer_bandwidth: bandwidth of the disturbance observer, [rad/s]; -1 for the default.
    """

    joints: dict[str, JointProposal]
    dead_time: float
    dead_time_deviation: float
    stream_bandwidth: float
    observer_bandwidth: float = DEFAULT

    @property
    def observer_words(self) -> str:
        """Bandwidth of the disturbance observer in words."""
        if self.observer_bandwidth == DEFAULT:
            return "default, as each joint allows"
        return f"{self.observer_bandwidth:.3g} rad/s"

    def stages(self) -> list[tuple[str, Values]]:
        """Parameters by full name, in the order in which they are set: what the model lacks, then
        the friction, then the gains in two steps, then the observer."""
        model: Values = {"dead_time": self.dead_time, OBSERVER: 0.0}
        friction: Values = {"friction_compensation": True}
        half: Values = {}
        full: Values = {"stream.bandwidth": self.stream_bandwidth}
        for name, each in self.joints.items():
            model[f"armature.{name}"] = each.armature
            model[f"feedback_inertia.{name}"] = each.feedback_inertia
            friction[f"friction.{name}.coulomb"] = each.coulomb
            friction[f"friction.{name}.damping"] = each.damping
            for part, stage in ((0.5, half), (1.0, full)):
                stage[f"gains.{name}.p"] = part**2 * each.p
                stage[f"gains.{name}.d"] = part * each.d
        return [
            ("rotors and dead time", model),
            ("friction", friction),
            ("half of the bandwidth", half),
            ("gains", full),
            ("disturbance observer", {OBSERVER: self.observer_bandwidth}),
        ]

    def values(self) -> Values:
        """All parameters by full name, with those that are proposed and not set: thresholds are a
        decision about safety."""
        values = {name: value for _, stage in self.stages() for name, value in stage.items()}
        contacts = {
            f"collision_detection.threshold.{name}": each.contact
            for name, each in self.joints.items()
        }
        return {**values, **contacts}


def scaled(values: Values, part: float) -> Values:
    """The same parameters with a part of the bandwidths of feedback and observer."""

    def power(name: str) -> int:
        if name == OBSERVER:
            return 0 if values[name] == DEFAULT else 1
        return {"p": 2, "d": 1}.get(name.rpartition(".")[2], 0) if name.startswith("gains.") else 0

    return {
        name: value * part ** power(name) if power(name) else value
        for name, value in values.items()
    }


def bandwidth_for(dead_time: float) -> float:
    """Bandwidth w that leaves the phase margin, [rad/s]."""
    return (math.atan(2.0 * CROSSING) - MARGIN) / (CROSSING * max(dead_time, 1e-6))


def bandwidth_for_rise(dead_time: float, rise: float) -> float:
    """Largest bandwidth w at which a pushed joint comes to rest, [rad/s].

    Args:
        dead_time: time from a measurement until its torque acts, [s].
        rise: time from no torque to the effort limit at the torque rate limit, [s].
    """
    return 1.0 / max(dead_time + RISE * rise, 1e-6)


def propose(
    model: RobotModel, period: float, estimates: Sequence[JointEstimate], rise: FloatArray
) -> Proposal:
    """Parameters of the controller, but for the disturbance observer.

    Args:
        model: model of the controller.
        period: period of the states, [s].
        estimates: of at least one joint.
        rise: time from no torque to the effort limit at the torque rate limit, shape (nv,), [s].
    """
    times = np.array([each.inertia.dead_time for each in estimates])
    deviations = np.array([max(each.inertia.dead_time_deviation, 1e-9) for each in estimates])
    weights = deviations**-2.0 / (deviations**-2.0).sum()
    dead_time = float(weights @ times)
    scatter = ((times - dead_time) / deviations) ** 2
    excess = max(float(scatter.sum()) / max(len(times) - 1, 1), 1.0)
    deviation = math.sqrt(excess / float((deviations**-2.0).sum()))
    for_gains = max(dead_time, LEAST_PERIODS * period)
    joints = {
        model.joint_names[each.joint]: _of_joint(model, each, for_gains, rise[each.joint])
        for each in estimates
    }
    slowest = min(each.bandwidth for each in joints.values())
    return Proposal(
        joints,
        float(np.clip(dead_time, *DEAD_TIME_RANGE)),
        deviation,
        float(np.clip(STREAM_SHARE * slowest, *STREAM_RANGE)),
    )


def _of_joint(
    model: RobotModel, each: JointEstimate, dead_time: float, rise: float
) -> JointProposal:
    inertia, friction = each.inertia, each.friction
    rotor, deviation = inertia.inertia - each.model_inertia, inertia.inertia_deviation
    limit = float(model.effort_limit[each.joint])
    bounds = {
        DEAD_TIME: bandwidth_for(dead_time),
        NOISE: NOISE_SHARE * limit / max(2.0 * inertia.inertia * each.noise, 1e-12),
        FREQUENCIES: float(inertia.frequencies[-1]) / CROSSING,
        TORQUE_RATE: RISE_SHARE * bandwidth_for_rise(dead_time, float(rise)),
    }
    damped = friction.damping > LEAST_DEVIATIONS * friction.damping_deviation
    hidden = abs(friction.offset) + float(np.nanmax([friction.coulomb, *friction.breakaway]))
    return JointProposal(
        rotor if rotor > LEAST_DEVIATIONS * deviation else 0.0,
        deviation,
        max(COULOMB_SHARE * friction.coulomb, 0.0),
        friction.damping if damped else 0.0,
        bounds,
        2.0 * min(bounds.values()) * inertia.inertia * each.noise,
        max(CONTACT_MARGIN * hidden, LEAST_CONTACT * limit),
    )
