r"""The torques that a trajectory asks for, against the effort limits, before the arm moves.

Run k times slower, a trajectory has velocities v / k and accelerations a / k^2, so that with
x = 1 / k its torque is

.. math:: \tau(x) = g + e + (\tau_{rigid} - g) \, x^2 + \tau_f(v x)

with the gravity torque g, the trajectory's own effort e, and the friction of dynamics/friction.py
[Hollerbach 1984].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.trajectory import Trajectory, evaluate_segment
from rnea_control.dynamics import Workspace
from rnea_control.dynamics.friction import friction_torque
from rnea_control.dynamics.rnea import add_armature, gravity_outward_pass, inward_pass, outward_pass
from rnea_control.exceptions import ArgumentError
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel
from rnea_control.model import RobotModel
from rnea_control.model.bodies import FRICTION_ROWS

# Between samples, [s]; wider if there would be more of them than this.
SAMPLE_TIME = 0.004
MOST_SAMPLES = 20_000

# Each narrows the stretch to that of the sample that needs most; two or three are usual.
_PASSES = 20
# Bisections that find a number from 0 to 1 to rounding.
_BISECTIONS = 53
_ROUNDING = 1e-12

# Rows of the scratch array: desired state and effort, torques, and velocities when slower.
_POSITION, _VELOCITY, _ACCELERATION, _EFFORT, _TORQUE, _GRAVITY, _SLOWER = range(7)
_SCRATCH_ROWS = 7
# Of the array that holds the worst sample so far.
_RATIO, _JOINT, _TIME, _PEAK = range(4)


@dataclass(frozen=True)
class EffortPeak:
    """Where a trajectory asks for the largest part of an effort limit.

    Attributes:
        joint: its index.
        time: of the trajectory, [s].
        torque: what is asked of it there, [Nm] or [N].
        limit: what it has, [Nm] or [N]; infinite if no joint has a limit.
        ratio: part of the limit that is asked for; infinite for a torque that is not finite.
        stretch: how many times slower the trajectory must be for all joints to be within their
            limits: 1 if they are, infinite if even gravity and effort at rest are beyond them.
    """

    joint: int
    time: float
    torque: float
    limit: float
    ratio: float
    stretch: float


def peak_efforts(
    model: RobotModel,
    ws: Workspace,
    trajectory: Trajectory,
    begin: float,
    end: float,
    effort_limit: FloatArray,
    friction: FloatArray,
    hardware_compensates_gravity: bool,
) -> EffortPeak:
    """The peak of the commanded torques from `begin` to `end`, each segment's ends included.

    Other Python threads may run meanwhile.

    Args:
        model, ws: the robot, and a workspace made for it.
        trajectory, begin, end: to be checked, and the times between which it is sampled, [s].
        effort_limit: shape (nv,), [Nm] or [N]; may be infinite.
        friction: rows as of `model.friction_parameters`, shape (3, nv); zeros if the controller
            does not compensate friction.
        hardware_compensates_gravity: whether commands leave out the gravity torque.

    Raises:
        ArgumentError: times that are not finite or do not rise, arrays of a wrong size.
    """
    if not (math.isfinite(begin) and math.isfinite(end) and begin <= end):
        raise ArgumentError(f"begin and end are {begin} and {end}; they must be finite, and rise")
    nv = model.nv
    sizes = (trajectory.nv, np.shape(effort_limit), np.shape(friction), ws.model.bodies.shape)
    if sizes != (nv, (nv,), (len(FRICTION_ROWS), nv), model.bodies.shape):
        raise ArgumentError(
            f"trajectory, effort_limit, friction and workspace must be of {nv} joints, the model's"
        )
    limit = np.array(effort_limit, dtype=np.float64)
    first = max(int(np.searchsorted(trajectory.starts, begin, side="right")) - 1, 0)
    given = (
        *(model.bodies, ws.memory, np.array(friction, dtype=np.float64, order="C"), limit),
        *(trajectory.starts[first:], trajectory.coefficients[first:], float(begin), float(end)),
        max(SAMPLE_TIME, (end - begin) / MOST_SAMPLES),
        bool(hardware_compensates_gravity),
    )
    scratch, peak = np.zeros((_SCRATCH_ROWS, nv)), np.array([0.0, 0.0, begin, 0.0])
    speed = _check(*given, 1.0, scratch, peak)
    joint, time, torque = int(peak[_JOINT]), float(peak[_TIME]), float(peak[_PEAK])
    # Friction may be holding a joint back: run slower, a sample that was within its limits may
    # leave them. So all samples are checked again, until the speed suits all of them.
    for _ in range(_PASSES):
        before = speed
        if before in (0.0, 1.0):
            break
        speed = _check(*given, before, scratch, peak)
        if speed >= before * (1.0 - _ROUNDING):
            break
    stretch = 1.0 / speed if speed > 0.0 else math.inf
    ratio = float(peak[_RATIO])
    allowed = float(limit[joint]) if ratio > 0.0 else math.inf
    return EffortPeak(joint, time, torque, allowed, ratio, stretch)


@inlined
def _torque(
    friction: FloatArray, scratch: FloatArray, static: float, j: int, speed: float
) -> float:
    """tau(x) of joint j, which at rest is `static` without friction, at x = `speed`."""
    scratch[_SLOWER, j] = speed * scratch[_VELOCITY, j]
    dynamic = (scratch[_TORQUE, j] - scratch[_GRAVITY, j]) * speed**2
    return static + dynamic + friction_torque(friction, scratch[_SLOWER], j)


@inlined
def _slowed(
    friction: FloatArray, scratch: FloatArray, static: float, j: int, limit: float, speed: float
) -> float:
    """The speed below `speed` at which joint j just keeps the limit that it exceeds at `speed`; 0
    if there is none."""
    within = 0.0
    if not abs(_torque(friction, scratch, static, j, within)) <= limit:
        return 0.0
    beyond = speed
    for _ in range(_BISECTIONS):
        middle = 0.5 * (within + beyond)
        if abs(_torque(friction, scratch, static, j, middle)) <= limit:
            within = middle
        else:
            beyond = middle
    return within


@kernel(
    "f8(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], f8[:,:,::1], f8, f8, f8, b1, f8, "
    "f8[:,::1], f8[::1])",
    nogil=True,
)
def _check(
    bodies: FloatArray,
    memory: FloatArray,
    friction: FloatArray,
    limit: FloatArray,
    starts: FloatArray,
    coefficients: FloatArray,
    begin: float,
    end: float,
    interval: float,
    without_gravity: bool,
    speed: float,
    scratch: FloatArray,
    peak: FloatArray,
) -> float:
    """Finds the peak; returns the speed, at most `speed`, that brings the samples beyond their
    limits within them."""
    last = starts.shape[0] - 1
    for i in range(last + 1):
        left = begin if i == 0 else starts[i]
        right = end if i == last else min(starts[i + 1], end)
        if not (left < right or i == 0):
            break
        samples = max(math.ceil((right - left) / interval - 1e-6), 1)
        for k in range(samples + 1):
            time = left + (right - left) * k / samples
            evaluate_segment(coefficients, i, time - starts[i], scratch)
            outward_pass(
                bodies, memory, scratch[_POSITION], scratch[_VELOCITY], scratch[_ACCELERATION]
            )
            inward_pass(bodies, memory, scratch[_TORQUE])
            add_armature(bodies, scratch[_ACCELERATION], scratch[_TORQUE])
            gravity_outward_pass(bodies, memory, scratch[_POSITION])
            inward_pass(bodies, memory, scratch[_GRAVITY])
            for j in range(limit.shape[0]):
                static = scratch[_EFFORT, j]
                if not without_gravity:
                    static += scratch[_GRAVITY, j]
                torque = _torque(friction, scratch, static, j, 1.0)
                ratio = abs(torque) / limit[j] if math.isfinite(torque) else math.inf
                if ratio > peak[_RATIO]:
                    peak[_RATIO], peak[_JOINT], peak[_TIME], peak[_PEAK] = ratio, j, time, torque
                if not abs(_torque(friction, scratch, static, j, speed)) <= limit[j]:
                    speed = _slowed(friction, scratch, static, j, limit[j], speed)
    return speed
