"""Checks by a simulated stop that an arm can be braked with a model and settings, before their use.

Torque rate, effort limits, gains, inertia, payload and dead time decide together whether a stop
succeeds; a bound of each alone cannot tell. A stop runs through the control step itself, on an arm
that is exactly the model. It succeeds if the step finds nothing wrong and all joints are slow in
the end. Two stops are judged:

- from the present state of the arm,
- from the present position with all joints at the same share of their velocity limits, in either
  direction: a motion may follow.

Each stop is tried with the control law in force and with the law that brakes after a fault. The
gains of the latter are also the default gains of the sentinel.

**Gains.** Torques are bounded, and so is their rate. Gains that are right for small errors may ask
for more than that after a push: the torque comes too late, and the arm swings from limit to limit.
So a push is simulated too: an arm that is held moves with a share of its velocity limits, all
joints at once, in either direction, and must not swing more and more. It must withstand at least a
fifth of the push that it withstands with the gains of the law that brakes after a fault; where it
withstands none with these, gains are not judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray, Matrix
from rnea_control.control import layout, motion_watch, step
from rnea_control.control.arrest import SLOW
from rnea_control.control.controller import Controller
from rnea_control.control.layout import Arm, Settings
from rnea_control.control.motion import Act, ending
from rnea_control.control.robot import robot_of
from rnea_control.control.settings import ControllerSettings, SafetySettings, reference_speed
from rnea_control.control.step import StepArrays
from rnea_control.control.stopping import LONGEST_HALT
from rnea_control.dynamics.crba import mass_matrix
from rnea_control.dynamics.friction import solve
from rnea_control.dynamics.rnea import gravity_outward_pass, inward_pass, outward_pass
from rnea_control.jit.compilation import address
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import linked
from rnea_control.model import RobotModel
from rnea_control.parameters.table import ROWS

SHARES = 0.5, 0.25, 0.12, 0.06, 0.03  # parts of the velocity limits from which stops are tried
ENOUGH = SHARES[0]  # share that needs no comparison with the values in force
SETTLING = 0.3  # time that the arm must rest after a stop [s]
LEAST_PUSH = 0.2  # least push, over that with the bracing gains
HARD_PUSH = 0.25  # share of the velocity limits whose push needs no comparison
INTEGRATION_STEP = 0.001  # longest step of the simulated arm [s]
DEFAULT_PERIOD = 0.001  # period of the states while it is not known [s]

# Rows of the simulated arm.
_POSITION = 0  # [rad] or [m]
_VELOCITY = 1  # [rad/s] or [m/s]
_ACCELERATION = 2  # [rad/s^2] or [m/s^2]
_TORQUE = 3  # torque from the controller [Nm] or [N]
_APPLIED = 4  # torque that acts now, after its delay [Nm] or [N]
_ZERO = 5  # zeros
_ROWS = 6  # number of rows


class ArmState(NamedTuple):
    """A state from which the arm may have to be braked."""

    position: FloatArray  # shape (nv,), [rad] or [m]
    velocity: FloatArray  # shape (nv,), [rad/s] or [m/s]
    torque: FloatArray  # command in force, shape (nv,), [Nm] or [N]; NaN where it is not known
    period: float = math.nan  # period of the states [s]; NaN where it is not known
    delay: float = math.nan  # time after which torques act, as seen [s]; NaN where it is not known


class Candidate(NamedTuple):
    """A model and settings that may be put in force."""

    model: RobotModel
    settings: ControllerSettings


_advance = linked(step.step_once)


@inlined
def _move(arm: Arm, settings: Settings, simulated: Matrix, h: float) -> None:
    """Moves the simulated arm on by `h` [s] with the torques in row _APPLIED. Omits friction, which
    would help the braking."""
    nv = simulated.shape[1]
    robot = robot_of(arm, nv)
    bodies, memory, matrix = robot.bodies, robot.memory, robot.matrix
    q, v, a = simulated[_POSITION], simulated[_VELOCITY], simulated[_ACCELERATION]
    steps = max(math.ceil(h / INTEGRATION_STEP - 1e-6), 1)
    for _ in range(steps):
        outward_pass(bodies, memory, q, v, simulated[_ZERO])
        inward_pass(bodies, memory, a)
        for j in range(nv):
            a[j] = simulated[_APPLIED, j] - a[j]
        if settings.hardware_adds_gravity != 0.0:
            gravity_outward_pass(bodies, memory, q)
            inward_pass(bodies, memory, simulated[_TORQUE])
            for j in range(nv):
                a[j] += simulated[_TORQUE, j]
        mass_matrix(bodies, memory, q, matrix)
        solve(matrix, a)
        for j in range(nv):
            v[j] += a[j] * h / steps
            q[j] += v[j] * h / steps


@kernel(nogil=True)
def _simulate_stop(
    advance_code: int,
    arrays: StepArrays,
    simulated: Matrix,
    commands: Matrix,
    h: float,
) -> int:
    """Simulates the stop of a controller that has caught the arm at time 0. Returns the kind of the
    step's finding, or the fault of a state; UNDER_WAY if there is neither.

    Args:
        advance_code: address of `step.step_once`.
        arrays: arrays of the controller's steps.
        simulated: the simulated arm; see its rows.
        commands: commands on their way to the arm, overwritten; one row for each period that a
            torque takes to act, at least one.
        h: period of the states [s].
    """
    nv, delay = simulated.shape[1], commands.shape[0]
    q, v, tau = simulated[_POSITION], simulated[_VELOCITY], simulated[_TORQUE]
    arm, resting = arrays.arm[0], 0.0
    for k in range(math.ceil((LONGEST_HALT + SETTLING) / h)):
        outcome = _advance(advance_code, (arrays, k * h, q, v, tau, False))
        if outcome >= step.BAD_STATE:
            return outcome
        if outcome // step.FOUND != layout.UNDER_WAY:
            return outcome // step.FOUND
        row = commands[k % delay]
        for j in range(nv):
            simulated[_APPLIED, j], row[j] = row[j], tau[j]
        _move(arm, arrays.settings[arm.braced], simulated, h)
        if arrays.state.last_trajectory_time >= arrays.state.path_end:
            resting += h
        if resting > SETTLING:
            break
    return layout.UNDER_WAY


def stop_fault(candidate: Candidate, start: ArmState) -> str:
    """Why an arm could not be braked from this state, in words; empty if it could."""
    return next(filter(None, (_stop_fault(law, start) for law in _laws(candidate))), "")


def fault_at_speed(candidate: Candidate, now: ArmState, share: float) -> str:
    """Why an arm could not be braked from this share of the velocity limits, at the position of
    `now`, in words; empty if it could."""
    moving = _at_speed(candidate.model, now, share)
    return next(filter(None, (stop_fault(candidate, each) for each in moving)), "")


def push_fault(candidate: Candidate, now: ArmState, share: float) -> str:
    """Why an arm that is held at the position of `now` would swing more and more after a push to
    this share of the velocity limits, in words; empty if it would not."""
    law = next(_laws(candidate))
    pushed = _at_speed(candidate.model, now, share)
    return next(filter(None, (_push_fault(law, each) for each in pushed)), "")


def withstood_push(candidate: Candidate, now: ArmState) -> float:
    """The largest of `SHARES` to which the arm may be pushed; 0 if there is none."""
    return next((each for each in SHARES if not push_fault(candidate, now, each)), 0.0)


def swinging(candidate: Candidate, now: ArmState) -> str:
    """Why the gains are too high for an arm that is pushed, in words; empty if they are not."""
    if not candidate.settings.control_law.has_joint_gains:
        return ""
    if not push_fault(candidate, now, HARD_PUSH):
        return ""
    usual = withstood_push(Candidate(candidate.model, candidate.settings.braced()), now)
    least = min((each for each in SHARES if each >= LEAST_PUSH * usual), default=0.0)
    if usual == 0.0 or not (fault := push_fault(candidate, now, least)):
        return ""
    pushed = f"pushed to {least:g} of its velocity limits, the arm would swing: {fault}"
    return f"{pushed}; lower p and d of the gains together"


def _at_speed(model: RobotModel, now: ArmState, share: float) -> Iterator[ArmState]:
    """The position of `now`, with all joints at a share of their velocity limits in either
    direction."""
    q = np.clip(now.position, model.lower, model.upper)
    for speed in (share * reference_speed(model), -share * reference_speed(model)):
        yield now._replace(position=q, velocity=speed)


def brakable_share(candidate: Candidate, now: ArmState) -> float:
    """The largest of `SHARES` from which the arm can be braked; 0 if there is none."""
    return next((each for each in SHARES if not fault_at_speed(candidate, now, each)), 0.0)


class BrakingCheck:
    """Compares how well an arm could be braked with other values and with the values in force.

    Args:
        present: model and settings in force.
        now: the state of the arm.
        holds: True if the controller holds the arm, so that its present motion counts besides its
            position.
        compared: the name of `present` in a sentence.
        judges_gains: True if gains that are in force already are judged too.
    """

    def __init__(
        self,
        present: Candidate,
        now: ArmState,
        holds: bool,
        compared: str = "the values in force",
        judges_gains: bool = False,
    ) -> None:
        self._present, self._now, self._holds = present, now, holds
        self._compared, self._judges_gains = compared, judges_gains

    @classmethod
    def at_start(cls, given: Candidate, now: ArmState) -> BrakingCheck:
        """Compares the values that a controller has started with and the default torque limits, and
        judges its gains."""
        model, settings = given
        default = np.full(model.nv, math.nan)
        safety = settings.safety or SafetySettings.none(model.nv)
        safety = replace(safety, effort_limit=default, torque_rate_limit=default)
        usual = replace(settings, safety=safety, effort_limit_scale=1.0)
        compared = "the default limits of the torques"
        return cls(Candidate(model, usual), now, True, compared, judges_gains=True)

    @cached_property
    def _stops_now(self) -> bool:
        return not stop_fault(self._present, self._now)

    @cached_property
    def share(self) -> float:
        """The largest of `SHARES` from which the arm can be braked with the values in force."""
        return brakable_share(self._present, self._now)

    @cached_property
    def _swings(self) -> bool:
        return bool(swinging(self._present, self._now))

    @cached_property
    def _withstood(self) -> float:
        return withstood_push(self._present, self._now)

    def objection(self, candidate: Candidate) -> str:
        """Why the arm should not continue with other values, as it could not be braked so well, or
        would swing after a push; empty if there is no reason. Takes some 40 ms for seven
        joints, more before it objects."""
        if self._changes_nothing(candidate):
            return ""
        return self.braking_objection(candidate) or self.gains_objection(candidate)

    def gains_objection(self, candidate: Candidate) -> str:
        """The second kind of objection. Where the gains in force would swing too, the arm may
        continue with others that withstand no smaller push."""
        if not (words := swinging(candidate, self._now)) or self._judges_gains:
            return words
        if self._swings and withstood_push(candidate, self._now) >= self._withstood:
            return ""
        return words

    def braking_objection(self, candidate: Candidate) -> str:
        """The first kind of objection."""
        fault = self._present_fault(candidate)
        if fault:
            return f"the arm could not be braked any more: in a simulated stop from here {fault}"
        if not (fault := fault_at_speed(candidate, self._now, ENOUGH)):
            return ""
        share = brakable_share(candidate, self._now)
        if share >= self.share:
            return ""
        return (
            f"the arm could be braked from {share:g} of its velocity limits, and from "
            f"{self.share:g} with {self._compared}: in a simulated stop from {ENOUGH:g} {fault}"
        )

    def allows(self, candidate: Candidate) -> bool:
        """True if there is no objection."""
        if self._changes_nothing(candidate):
            return True
        if self._present_fault(candidate):
            return False
        if self.share > 0.0 and fault_at_speed(candidate, self._now, self.share):
            return False
        return not self.gains_objection(candidate)

    def allows_any_motion(self, candidate: Candidate) -> bool:
        """True if the arm can be braked from any of `SHARES`."""
        return brakable_share(candidate, self._now) > 0.0

    def _present_fault(self, candidate: Candidate) -> str:
        if not self._holds:
            return ""
        fault = stop_fault(candidate, self._now)
        return fault if fault and self._stops_now else ""

    def _changes_nothing(self, candidate: Candidate) -> bool:
        """True if the arm brakes in the same way with the values in force, and these are not judged
        too."""
        if self._judges_gains:
            return False
        if not np.array_equal(candidate.model.bodies, self._present.model.bodies):
            return False
        return np.array_equal(_rows(candidate), self._present_rows, equal_nan=True)

    @cached_property
    def _present_rows(self) -> list[Settings]:
        return _rows(self._present)


def _rows(candidate: Candidate) -> list[Settings]:
    """The settings of each stop that is simulated."""
    return [law.settings.rows(law.model) for law in _laws(candidate)]


def _laws(candidate: Candidate) -> Iterator[Candidate]:
    """The settings with which the arm is braked. The bounds of the motion are the default ones, as
    the user's settings may have none."""
    model, settings = candidate
    default = np.full(model.nv, math.nan)
    safety = replace(
        settings.safety or SafetySettings.none(model.nv),
        max_position_error=default,
        max_velocity=ROWS["motion_bounds.velocity"].default,
        max_velocity_error=ROWS["motion_bounds.velocity_error"].default,
        max_driving_torque=math.inf,
        max_driving_power=math.inf,
        max_contact_torque=math.inf,
        detects_collisions=False,
        saturation_timeout=math.inf,
        blend_time=0.0,
    )
    judged = replace(settings, safety=safety)
    if settings.control_law.follows_trajectories:
        yield Candidate(model, judged)
    yield Candidate(model, judged.braced())


def _stop_fault(law: Candidate, start: ArmState) -> str:
    fault, simulated = _simulated(law, start, start.velocity)
    if fault:
        return fault
    share = np.abs(simulated[_VELOCITY]) / reference_speed(law.model)
    j = int(np.argmax(share))
    if share[j] > SLOW:
        return f"{law.model.joint_names[j]} still moved at {share[j]:.2g} of its velocity limit"
    return ""


def _push_fault(law: Candidate, start: ArmState) -> str:
    return _simulated(law, start, np.zeros(law.model.nv))[0]


def _simulated(law: Candidate, start: ArmState, caught: FloatArray) -> tuple[str, Matrix]:
    """The finding of the step about a simulated arm, in words, empty if there is none, and the arm
    in the end. `caught`: velocities at which the controller believes to catch the arm, shape
    (nv,)."""
    model = law.model
    controller = Controller(*law)
    rows, position = controller.rows, start.position.copy()
    controller.in_force = start.torque
    controller.start(0.0, position)
    rows.velocity_noise[:] = rows.residual_noise[:] = 0.0
    controller.finish("", Act.IS_CAUGHT, state=(0.0, position, caught.copy()))
    controller.watch = motion_watch.FREE
    rows.braked_since = math.nan  # the bounds of a motion count, not the bounds of an arrest
    period = DEFAULT_PERIOD if math.isnan(start.period) else start.period
    delay = float(np.fmax(law.settings.dead_time, start.delay))
    simulated = np.zeros((_ROWS, model.nv))
    simulated[_POSITION], simulated[_VELOCITY] = position, start.velocity
    commands = np.tile(controller.in_force, (max(math.ceil(delay / period - 1e-6), 1), 1))
    code = address(step.step_once) or 0
    found = _simulate_stop(code, controller.arrays, simulated, commands, period)
    if found >= step.BAD_STATE or not np.isfinite(simulated).all():
        return "the arm did not come to rest", simulated
    if found == layout.UNDER_WAY:
        return "", simulated
    count, findings = int(controller.arm.findings), controller.arrays.findings
    text = ending(model, findings[(count - 1) % layout.MOST_FINDINGS], None).text
    # The causes that follow apply to real arms.
    return text.partition(";")[0].partition(":")[0], simulated
