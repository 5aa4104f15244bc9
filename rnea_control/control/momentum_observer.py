r"""External joint torques without a force sensor, by the generalized momentum of the arm.

With the momentum p = M v, its rate of change without external torques is
:math:`\beta = \tau + C^T v - g` [dynamics/energy_and_momentum.py]. The residual

.. math::

    r = K_O \left( p - p(0) - \int (\beta + r) \, dt \right), \quad
    \dot r = K_O (\tau_{ext} - r)

follows the external torque as a first-order filter, joint by joint, without accelerations and
without an inverse of M [De Luca, Mattone 2005; De Luca et al. 2006]. A residual beyond its joint's
threshold hints at a collision, or at an error of the model: other masses, friction, a payload.

Discretized so that a constant external torque gives the exact filter, whatever the step h:

.. math::

    r_{k+1} = e^{-K_O h} r_k
        + \frac{1 - e^{-K_O h}}{h} \left( p_{k+1} - p_k - h \bar\beta \right)

with :math:`\bar\beta` the mean of both ends but for the torque, which is constant between. It is
stable for every gain and step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rnea_control.array_types import FloatArray, Matrix, Vector
from rnea_control.dynamics import Workspace
from rnea_control.dynamics.energy_and_momentum import momentum_passes
from rnea_control.dynamics.friction import friction_torque
from rnea_control.dynamics.workspace import fit, require
from rnea_control.exceptions import ArgumentError, ControllerError
from rnea_control.kernels.compilation import address
from rnea_control.kernels.inlining import inlined
from rnea_control.kernels.kernel import kernel_on_demand
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# Rows of the state array, one column a joint; the last two have their numbers in entry 0.
_RESIDUAL, _MOMENTUM, _RATE, _NEXT_MOMENTUM, _NEXT_RATE, _TIME, _STARTED = range(7)
_STATE_ROWS = 7
# Rows of the settings array; from GAIN on, entry 0 is that of the arm.
_THRESHOLD, _GAIN, _GRAVITY_SHARE = range(3)
_SETTINGS_ROWS = 3
# The observer starts anew after a longer gap between states, [s].
LONGEST_GAP = 0.1
# Default thresholds as a part of the effort limits: if all masses are 10 % off, torques within the
# effort limits are never off by more.
THRESHOLD_SHARE = 0.1
# What the kernel reports in place of a joint.
NONE = -1
Arrays = tuple[FloatArray, ...]


def default_thresholds(effort_limit: FloatArray) -> FloatArray:
    """Thresholds from effort limits, shape (nv,), [Nm] or [N]; infinite where there is no limit."""
    return THRESHOLD_SHARE * effort_limit


class MomentumObserver:
    """Finds joints at which an external torque acts.

    It reads the model as it is: with another payload or gravity, `reset` it.

    Args:
        model: the robot.
        gain: K_O, the bandwidth of the residual, [1/s].
        thresholds: of each joint's residual, shape (nv,), [Nm] or [N]; infinite for none.
        friction: whether the model's friction is taken off the torques. A joint at rest may hold
            any torque within its Coulomb friction: thresholds must exceed it.
        hardware_compensates_gravity: whether the hardware adds the gravity torque to the commands.

    Attributes:
        residual: the external torques that the last update saw, shape (nv,), [Nm] or [N].
        thresholds: those of the residual, which may be changed.
        applied: the torques that the last state was answered with, shape (nv,), [Nm] or [N].

    Raises:
        ControllerError: a gain or threshold that is not above 0, or thresholds of a wrong size; a
            model without joints.
    """

    def __init__(
        self,
        model: RobotModel,
        gain: float,
        thresholds: Sequence[float] | FloatArray,
        friction: bool = False,
        hardware_compensates_gravity: bool = False,
    ) -> None:
        if model.nv == 0:
            raise ControllerError(f"{model.name!r} has no joint that moves; nothing to observe")
        if np.shape(thresholds) != (model.nv,):
            wanted = f"they need one number for each of the {model.nv} velocities"
            raise ControllerError(f"thresholds have shape {np.shape(thresholds)}; {wanted}")
        numbers = {f"threshold[{j}]": value for j, value in enumerate(thresholds)}
        for what, value in {"gain": gain, **numbers}.items():
            if not value > 0.0 or (value == math.inf and what == "gain"):
                raise ControllerError(f"{what} is {value}; it must be above 0")
        self.model = model
        self._workspace = Workspace(model)
        self._state = np.zeros((_STATE_ROWS, model.nv))
        self._settings = np.zeros((_SETTINGS_ROWS, model.nv))
        self.residual, self.thresholds = self._state[_RESIDUAL], self._settings[_THRESHOLD]
        self.thresholds[:] = thresholds
        self._settings[_GAIN] = gain
        self._settings[_GRAVITY_SHARE] = 0.0 if hardware_compensates_gravity else 1.0
        self._friction = model.friction_parameters
        if not friction:
            self._friction = np.zeros_like(model.friction_parameters)
        self.applied = zeros = np.zeros(model.nv)
        self.update(0.0, model.neutral(), zeros, zeros)  # compiles
        self.reset()

    def collision(self, j: int) -> str:
        """That joint j is pushed, in words."""
        push = f"{self.residual[j]:.3g} {units(self.model, j).effort}"
        where = f"act on {self.model.joint_names[j]} from outside"
        return f"collision? {push} {where}, more than {self.thresholds[j]:.3g}"

    @property
    def arrays(self) -> Arrays:
        """What `observe` works on, for machine code that answers states, and the torques applied
        before."""
        robot = self.model.bodies, self._workspace.memory, self._friction
        return *robot, self._settings, self._state, self.applied

    def reset(self) -> None:
        """Forgets all states: the next one starts with a residual of 0."""
        self._state[:] = 0.0

    def update(self, t: float, q: FloatArray, v: FloatArray, tau_applied: FloatArray) -> int:
        """Takes a state. Performs no allocation.

        A repeated stamp changes nothing. After a stamp that runs backward or jumps, or a state that
        is not finite, the observer starts anew.

        Args:
            t, q, v: as measured, shapes (nq,) and (nv,), [s], [rad] or [m], and [rad/s] or [m/s].
            tau_applied: torques that were commanded from the state before to this one, shape (nv,),
                [Nm] or [N]. Where the hardware applies a command later, the residual is off by how
                much the torque changes meanwhile.

        Returns:
            The velocity index of the joint whose residual is furthest beyond its threshold, or -1.

        Raises:
            ArgumentError: an array that is not C-contiguous float64 of the size given above.
        """
        try:
            joint: int = observe(*self.arrays[:-1], t, q, v, tau_applied)
        except TypeError as error:
            raise ArgumentError(
                f"q, v and tau_applied must each be a C-contiguous float64 array, q of shape "
                f"({self.model.nq},), the others of shape ({self.model.nv},)"
            ) from error
        return joint


@inlined
def _furthest_beyond(settings: Matrix, state: Matrix) -> int:
    """The joint whose residual is the largest part of its threshold, if that is above 1."""
    joint, largest = NONE, 1.0
    for j in range(state.shape[1]):
        part = abs(state[_RESIDUAL, j]) / settings[_THRESHOLD, j]
        if part > largest:
            joint, largest = j, part
    return joint


@kernel_on_demand()
def observe(
    bodies: Matrix,
    memory: Matrix,
    friction_parameters: Matrix,
    settings: Matrix,
    state: Matrix,
    t: float,
    q: Vector,
    v: Vector,
    tau: Vector,
) -> int:
    """`MomentumObserver.update`."""
    nv = state.shape[1]
    require(fit(bodies, memory, q, v, tau, tau) and v.shape[0] == nv)
    h = t - state[_TIME, 0]
    started = state[_STARTED, 0] != 0.0
    if started and h == 0.0:
        return _furthest_beyond(settings, state)
    next_momentum, next_rate = state[_NEXT_MOMENTUM], state[_NEXT_RATE]
    momentum_passes(bodies, memory, q, v, settings[_GRAVITY_SHARE, 0], next_momentum, next_rate)
    for j in range(nv):
        next_rate[j] -= friction_torque(friction_parameters, v, j)
    starts = not (started and 0.0 < h <= LONGEST_GAP)
    decay = -math.expm1(-settings[_GAIN, 0] * h) if not starts else 0.0
    finite = math.isfinite(t)
    for j in range(nv):
        if starts:
            state[_RESIDUAL, j] = 0.0
        else:
            rate = tau[j] + 0.5 * (state[_RATE, j] + next_rate[j])
            seen = (next_momentum[j] - state[_MOMENTUM, j]) / h - rate
            state[_RESIDUAL, j] += decay * (seen - state[_RESIDUAL, j])
        state[_MOMENTUM, j], state[_RATE, j] = next_momentum[j], next_rate[j]
        sound = state[_MOMENTUM, j] + state[_RATE, j] + state[_RESIDUAL, j]
        finite = finite and math.isfinite(sound)
    state[_TIME, 0], state[_STARTED, 0] = t, 1.0
    if not finite:
        state[:] = 0.0
    return _furthest_beyond(settings, state)


_NOTHING = tuple(np.zeros((0, 0)) for _ in range(5))


def observed(observer: MomentumObserver | None) -> tuple[int, Arrays]:
    """Where the code of `observe` is, and what it works on: arrays of no size where nothing is
    observed."""
    if observer is None:
        return 0, (*_NOTHING, np.zeros(0))
    return address(observe) or 0, observer.arrays
