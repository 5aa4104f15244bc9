"""`Experiment`: small motions of one joint after the other. Their size follows what the joint did
before, until its friction, inertia and dead time are known well enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import Workspace, crba
from rnea_control.exceptions import IdentificationError
from rnea_control.identification.tuning.joint_estimates import (
    LEAST_BLOCKS,
    Friction,
    Inertia,
    Rough,
    burst_speeds,
    estimate_friction,
    estimate_inertia,
    rough_estimate,
)
from rnea_control.identification.tuning.response import Response
from rnea_control.identification.tuning.small_motion import (
    BURST,
    SLOW,
    SmallMotion,
    burst,
    crest,
    multi_sine_period,
    passes,
)
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

FIRST_BURST = 0.002  # amplitude of the first burst, as a part of the effort limit
LARGEST_BURST = 0.4  # amplitude of the largest burst, as a part of the effort limit
GROWTH = 1.4  # largest growth of a burst
SMALL_GROWTH = 1.05  # growth of a burst while its bias is sought
BURST_SPEED = 0.02  # velocity forward and backward in the last burst [rad/s] or [m/s]
UNEVEN = 2.5  # ratio of the velocities forward and backward from which the burst gets a bias
BIAS_STEP = 0.25  # first change of the bias, as a part of the amplitude
CAUTION = 0.8  # part of first estimates that the controller gets: too little is harmless
BRACED = (
    25.0  # bandwidth of a joint that is measured, at least; stable up to a dead time of 20 ms [1/s]
)
FRICTION_PARTS = (CAUTION, 1.0, 1.2, 1.4)  # parts of the first estimate, until the joint slides
SWING = 0.55  # largest velocity of the multi-sine, as a part of that of the pass
FIRST_SWING = 0.2  # the same, while the inertia is known roughly
MOST_GROWTH = 5.0  # growth of the multi-sine, at most
LESS = 0.5  # part of the multi-sine after one under which the joint did not slide steadily
MOST_REFUSALS = 4  # number of such multi-sines, at most
ENOUGH = 0.01  # relative standard deviation of the inertia at which the motions end
ENOUGH_TIME = 0.03  # the same, of the dead time
LEAST_ROUNDS = 4  # rounds with the full multi-sine, at least; half of them when time is up
MOST_ROUNDS = 8  # rounds with the full multi-sine, at most
ROUNDS = 2  # rounds in a motion

Slides = list[tuple[SmallMotion, Response]]


class Arm(Protocol):
    """The arm under its controller."""

    def perform(self, motion: SmallMotion) -> Response:
        """Carries out a motion; raises RneaControlError if that fails."""

    def brace(self, joint: int, armature: float) -> None:
        """Has the controller hold the joint more firmly: with this rotor inertia, and with gains of
        at least BRACED."""


@dataclass(frozen=True)
class JointEstimate:
    """Estimates of a joint."""

    joint: int
    noise: float  # standard deviation of the velocity at rest [rad/s] or [m/s]
    model_inertia: float  # M_jj of the model without a rotor [kg m^2] or [kg]
    friction: Friction
    inertia: Inertia


class Experiment:
    """Measures the joints of an arm: first `brace`, then `measure` of each joint.

    Args:
        model: model of the controller, with its rotors.
        arm: the arm under its controller.
        noise: standard deviations of the velocities at rest, shape (nv,), [rad/s] or [m/s].
        period: period of the states, [s].
        dead_time: the controller's, [s].
        tell: called with a few words on what is done.
    """

    def __init__(
        self,
        model: RobotModel,
        arm: Arm,
        noise: FloatArray,
        period: float,
        dead_time: float,
        tell: Callable[[str], None] = lambda words: None,
    ) -> None:
        self._model, self._arm, self._noise = model, arm, noise
        self._period, self._dead_time = period, max(dead_time, period)
        self._cycle = multi_sine_period(1.0 / period)
        self._tell = tell
        self._offsets: dict[int, float] = {}  # torques that the model lacks, by joint
        self._rough: dict[int, tuple[Rough, float]] = {}  # first estimates, and M_jj of the model
        self._failures: dict[int, IdentificationError] = {}  # of joints without first estimates

    def brace(self, joints: Sequence[int]) -> None:
        """Has the controller hold all joints more firmly, these with a first estimate of their
        rotors: joints with parallel axes would evade together, and joints that are shaken loose
        would creep.

        Raises:
            RneaControlError: a motion failed.
        """
        for joint, armature in enumerate(self._model.armature):
            self._arm.brace(joint, float(armature))
        for joint in joints:
            try:
                rough, response = self._burst(joint)
            except IdentificationError as error:
                self._failures[joint] = error
                continue
            own = self._own_inertia(joint, response)
            rotor = float(self._model.armature[joint])
            self._arm.brace(joint, rotor + CAUTION * max(rough.inertia - own, 0.0))
            self._rough[joint] = rough, own

    def measure(self, joint: int, until: float = math.inf) -> JointEstimate:
        """Measures a joint that was braced.

        Args:
            joint: the joint.
            until: time by the steady clock after which no more motions are made than needed [s].

        Raises:
            IdentificationError: the joint does not move as a joint with friction and inertia.
            RneaControlError: a motion failed.
        """
        if joint in self._failures:
            raise self._failures[joint]
        name, (rough, own) = self._model.joint_names[joint], self._rough[joint]
        self._offsets.pop(joint, None)
        self._tell(f"{name}: friction")
        slides, friction = self._slide(joint, rough)
        self._tell(f"{name}: inertia and dead time")
        inertia, friction = self._swing(
            joint, slides, friction, max(CAUTION * rough.inertia, 0.5 * own), until
        )
        self._offsets = {**self._offsets, joint: friction.offset}
        rotor = float(self._model.armature[joint])
        return JointEstimate(joint, float(self._noise[joint]), own - rotor, friction, inertia)

    def _own_inertia(self, joint: int, response: Response) -> float:
        """M_jj of the model at the start of a response."""
        model = self._model
        M = crba(model, Workspace(model), response.q[0].copy(), np.zeros((model.nv, model.nv)))
        return float(M[joint, joint])

    def _perform(self, motion: SmallMotion) -> Response:
        """A motion in which the measured joints get the torque that the model lacks."""
        return self._arm.perform(replace(motion, support=self._offsets))

    def _burst(self, joint: int) -> tuple[Rough, Response]:
        """First estimates from bursts that grow until the joint moves both ways, and the last
        response."""
        name, limit = self._model.joint_names[joint], float(self._model.effort_limit[joint])
        unit = units(self._model, joint).effort
        if not 0.0 < limit < math.inf:
            raise IdentificationError(
                f"{name} has no effort limit, of which the first torques are a part: set "
                f"effort_limits.{name}"
            )
        noise = float(self._noise[joint]) * math.sqrt(9.0 * self._period / BURST)
        sure = max(0.25 * BURST_SPEED, 3.0 * noise)
        amplitude, bias = FIRST_BURST * limit, 0.0
        part, last = BIAS_STEP, 0.0
        while amplitude <= LARGEST_BURST * limit:
            self._tell(f"{name}: a burst of {amplitude:.2g} {unit}")
            response = self._perform(burst(joint, amplitude, bias))
            ways = burst_speeds(response, joint)
            slower = min(ways)
            if slower >= max(BURST_SPEED, sure):
                return rough_estimate(self._model, response, joint, self._dead_time), response
            if max(ways) > UNEVEN * max(slower, sure):
                # The torque that holds the joint is not in the middle of its friction.
                side = math.copysign(1.0, ways[0] - ways[1])
                part *= 0.5 if side == -last else 1.0
                bias, last = bias - side * part * amplitude, side
                amplitude *= SMALL_GROWTH
            else:
                amplitude *= GROWTH if slower < sure else min(GROWTH, 1.2 * BURST_SPEED / slower)
        raise IdentificationError(
            f"{name} does not move under {LARGEST_BURST * limit:.3g} {unit}: is a brake engaged, "
            "or does its motor not get the commands? rnea_doctor looks for the cause"
        )

    def _slide(self, joint: int, rough: Rough) -> tuple[Slides, Friction]:
        """Passes without a multi-sine in which the joint slides, and its friction. The effort for
        the friction grows until the joint does."""
        for part in FRICTION_PARTS:
            motion = passes(
                joint, part * rough.friction, rough.offset, fast=True, period=self._cycle
            )
            found = [(motion, self._perform(motion))]
            try:
                return found, estimate_friction(
                    self._model, found, joint, rough.inertia, self._dead_time
                )
            except IdentificationError:
                if part == FRICTION_PARTS[-1]:
                    raise
        raise AssertionError

    def _swing(
        self, joint: int, slides: Slides, friction: Friction, guess: float, until: float
    ) -> tuple[Inertia, Friction]:
        """Passes with a multi-sine, until inertia and dead time are known well enough, or time is
        up."""
        model, name = self._model, self._model.joint_names[joint]
        sine = FIRST_SWING * SLOW / crest(self._cycle) * guess
        first = -(-LEAST_BLOCKS // (2 * len(slides[0][0].passes[0].blocks)))
        sines: Slides = []
        inertia: Inertia | None = None
        rounds = refusals = 0
        while True:
            motion = passes(
                joint,
                max(friction.coulomb + SLOW * friction.damping, 0.0),
                friction.offset,
                sine,
                first if inertia is None else ROUNDS,
                fast=inertia is not None,
                period=self._cycle,
            )
            sines.append((motion, self._perform(motion)))
            slides.append(sines[-1])
            is_first = inertia is None
            try:
                inertia = estimate_inertia(model, sines, joint, self._dead_time)
            except IdentificationError:
                # The joint is lighter than it seemed: other joints give way.
                sines.clear()
                sine *= LESS
                refusals += 1
                if refusals > MOST_REFUSALS:
                    raise
                self._tell(f"{name}: a smaller multi-sine")
                continue
            friction = estimate_friction(model, slides, joint, inertia.inertia, inertia.dead_time)
            if is_first:
                sines.clear()
            sine *= min(SWING / inertia.swing, MOST_GROWTH)
            rounds += 0 if is_first else ROUNDS
            known = inertia.inertia_deviation < ENOUGH * inertia.inertia
            known &= inertia.dead_time_deviation < ENOUGH_TIME * inertia.dead_time
            if time.monotonic() > until:
                enough = LEAST_ROUNDS // 2
            else:
                enough = LEAST_ROUNDS if known else MOST_ROUNDS
            if rounds >= enough:
                return inertia, friction
