r"""The control laws: the torques of the joints, before any limit.

With the errors e = q_d - q (the shortest way round for continuous joints) and de = v_d - v, and the
feedback u = Kp e + Kd de + integral of Ki e,

    tau = model + u,   or   tau = model with the acceleration a_d + u

laws.py is the table of the laws: where they take the model's torque, and whether the feedback is an
acceleration or a torque [Siciliano et al. 2009, sec. 8.5; Craig 2005, ch. 10]. With
friction_compensation the friction (dynamics/friction.py) is added. All laws that hold a position
add the effort of its waypoints.

All this is for the moment when the torque acts, a dead time after the measurement: the law takes
the desired motion of that moment, and carries the measured state on with the desired acceleration.

A wrist whose model lacks its rotor inertia has hardly any feedback under computed_torque, as the
feedback is an acceleration. A least inertia f of a joint's feedback gives it that of a joint with
the inertia f: max(0, f - M_jj) u is added.

While a hand guides the arm, the desired position is the measured one, and the feedback a part of
the velocity gain. While no state comes, the law is computed_torque on a predicted state: position
and velocity keep the errors of the last measured ones, and the velocity error decays,

    tau = RNEA(q, v, a_d + k de),   de' = -k de
"""

from __future__ import annotations

import math

from rnea_control.array_types import FloatArray
from rnea_control.control import laws
from rnea_control.control.layout import (
    CONTINUOUS,
    D_GAIN,
    DEAD_TIME,
    DESIRED_ACCELERATION,
    DESIRED_EFFORT,
    DESIRED_POSITION,
    DESIRED_VELOCITY,
    FEEDBACK,
    FEEDBACK_INERTIA,
    FRICTION,
    GRAVITY_TORQUE,
    GUIDED,
    GUIDING_DAMPING,
    HARDWARE_ADDS_GRAVITY,
    I_CLAMP_MAX,
    I_CLAMP_MIN,
    I_GAIN,
    INTEGRAL,
    LAST_POSITION,
    LAW,
    MODEL_ACCELERATION,
    MODEL_POSITION,
    MODEL_VELOCITY,
    P_GAIN,
    POSITION_ERROR,
    PREDICTED_POSITION,
    PREDICTED_VELOCITY,
    TORQUE,
    VELOCITY_ERROR,
)
from rnea_control.dynamics.crba import mass_matrix
from rnea_control.dynamics.friction import friction_torque
from rnea_control.dynamics.rnea import add_armature, gravity_outward_pass, inward_pass, outward_pass
from rnea_control.kernels.inlining import inlined
from rnea_control.parameters.table import tick_row

# The law in force while no state comes.
PREDICTING_LAW = int(laws.ControlLaw.computed_torque)

_ERROR_DEADBAND = tick_row("gains.<joint>.error_deadband")
# Of the velocity error while no state comes, [1/s].
PREDICTED_DECAY = 10.0


@inlined
def update_feedback(
    settings: FloatArray, state: FloatArray, q: FloatArray, v: FloatArray, dt: float
) -> None:
    """The state when the torque will act, its errors, clamped integral and feedback u.

    `dt` is the time since the last tick, [s].
    """
    guided = state[GUIDED, 0] != 0.0
    ahead = settings[DEAD_TIME, 0]
    for j in range(q.shape[0]):
        if guided:
            state[DESIRED_VELOCITY, j] = 0.0
            state[DESIRED_ACCELERATION, j] = 0.0
            state[DESIRED_EFFORT, j] = 0.0
        change = ahead * state[DESIRED_ACCELERATION, j]
        state[PREDICTED_POSITION, j] = q[j] + ahead * (v[j] + 0.5 * change)
        state[PREDICTED_VELOCITY, j] = v[j] + change
        if guided:
            state[DESIRED_POSITION, j] = state[PREDICTED_POSITION, j]
        e = state[DESIRED_POSITION, j] - state[PREDICTED_POSITION, j]
        if settings[CONTINUOUS, j] != 0.0:
            e -= 2.0 * math.pi * math.floor(e / (2.0 * math.pi) + 0.5)
        de = state[DESIRED_VELOCITY, j] - state[PREDICTED_VELOCITY, j]
        integral = state[INTEGRAL, j]
        if not abs(e) <= settings[_ERROR_DEADBAND, j]:
            integral += settings[I_GAIN, j] * e * dt
        if settings[I_GAIN, j] == 0.0:
            integral -= dt * integral  # switched off while running: fades within seconds
        integral = min(max(integral, settings[I_CLAMP_MIN, j]), settings[I_CLAMP_MAX, j])
        damping = settings[D_GAIN, j]
        if guided:
            damping *= settings[GUIDING_DAMPING, 0]
        state[POSITION_ERROR, j] = e
        state[VELOCITY_ERROR, j] = de
        state[INTEGRAL, j] = integral
        state[FEEDBACK, j] = settings[P_GAIN, j] * e + damping * de + integral


@inlined
def predict_state(
    settings: FloatArray, state: FloatArray, q: FloatArray, v: FloatArray, dt: float
) -> None:
    """Carries the errors of the last state on by `dt`, and fills `q`, `v` and the feedback from
    them."""
    guided = state[GUIDED, 0] != 0.0
    decay = math.exp(-PREDICTED_DECAY * dt)
    accelerating = laws.FEEDBACK[int(settings[LAW, 0])] == laws.AS_ACCELERATION
    for j in range(q.shape[0]):
        if guided:  # it comes to rest about where it was seen last
            state[DESIRED_POSITION, j] = state[LAST_POSITION, j]
            state[DESIRED_VELOCITY, j] = 0.0
            state[DESIRED_ACCELERATION, j] = 0.0
            state[DESIRED_EFFORT, j] = 0.0
        de = state[VELOCITY_ERROR, j]
        state[POSITION_ERROR, j] += de * (1.0 - decay) / PREDICTED_DECAY
        state[VELOCITY_ERROR, j] = de * decay
        q[j] = state[DESIRED_POSITION, j] - state[POSITION_ERROR, j]
        v[j] = state[DESIRED_VELOCITY, j] - state[VELOCITY_ERROR, j]
        state[FEEDBACK, j] = PREDICTED_DECAY * state[VELOCITY_ERROR, j]
        if accelerating:
            state[FEEDBACK, j] += state[INTEGRAL, j]


@inlined
def gravity_torque(
    bodies: FloatArray, memory: FloatArray, settings: FloatArray, state: FloatArray, q: FloatArray
) -> None:
    """Fills row GRAVITY_TORQUE with the commands that hold the arm: zeros where the hardware adds
    the gravity torque, or the law does without a model."""
    holding = state[GRAVITY_TORQUE]
    model = laws.MODEL[int(settings[LAW, 0])]
    if settings[HARDWARE_ADDS_GRAVITY, 0] != 0.0 or model == laws.NO_MODEL:
        for j in range(q.shape[0]):
            holding[j] = 0.0
        return
    gravity_outward_pass(bodies, memory, q)
    inward_pass(bodies, memory, holding)


@inlined
def _add_feedback_inertia(
    bodies: FloatArray,
    memory: FloatArray,
    matrix: FloatArray,
    settings: FloatArray,
    state: FloatArray,
    q: FloatArray,
) -> None:
    """Adds to row TORQUE the feedback that is missing where the model's inertia is below the
    least."""
    wanted = False
    for j in range(q.shape[0]):
        wanted |= settings[FEEDBACK_INERTIA, j] > 0.0
    if not wanted:
        return
    mass_matrix(bodies, memory, None, q, matrix)
    for j in range(q.shape[0]):
        lacking = max(settings[FEEDBACK_INERTIA, j] - matrix[j, j], 0.0)
        state[TORQUE, j] += lacking * state[FEEDBACK, j]


@inlined
def control_torque(
    bodies: FloatArray,
    memory: FloatArray,
    matrix: FloatArray,
    settings: FloatArray,
    state: FloatArray,
    q: FloatArray,
    v: FloatArray,
    predicted: bool,
) -> None:
    """Fills row TORQUE of `state` by the control law; needs the desired state and the feedback in
    `state`.

    Args:
        bodies, memory: of the model and of a workspace made for it.
        matrix: shape (nv, nv), overwritten.
        settings, state: see layout.py.
        q, v: the measured or predicted state, shape (nv,).
        predicted: whether it is predicted.
    """
    own_law = int(settings[LAW, 0])
    law = PREDICTING_LAW if predicted else own_law
    model, feedback, friction_at = laws.MODEL[law], laws.FEEDBACK[law], laws.FRICTION[law]
    torque = state[TORQUE]
    for j in range(q.shape[0]):
        state[MODEL_POSITION, j] = state[DESIRED_POSITION, j] if model == laws.DESIRED else q[j]
        state[MODEL_VELOCITY, j] = state[MODEL_ACCELERATION, j] = 0.0
        if model in (laws.MEASURED, laws.DESIRED):
            moving = v[j] if model == laws.MEASURED else state[DESIRED_VELOCITY, j]
            state[MODEL_VELOCITY, j] = moving
            state[MODEL_ACCELERATION, j] = state[DESIRED_ACCELERATION, j]
        if feedback == laws.AS_ACCELERATION:
            state[MODEL_ACCELERATION, j] += state[FEEDBACK, j]
    if model == laws.NO_MODEL:
        torque[:] = 0.0
    else:
        position, velocity = state[MODEL_POSITION], state[MODEL_VELOCITY]
        acceleration = state[MODEL_ACCELERATION]
        outward_pass(bodies, memory, position, velocity, acceleration)
        inward_pass(bodies, memory, torque)
        add_armature(bodies, acceleration, torque)
    if feedback == laws.AS_ACCELERATION:
        _add_feedback_inertia(bodies, memory, matrix, settings, state, q)
    parameters = settings[FRICTION : FRICTION + 3]
    for j in range(q.shape[0]):
        resistance = 0.0
        if friction_at == laws.FRICTION_AT_DESIRED:
            resistance = friction_torque(parameters, state[DESIRED_VELOCITY], j)
        elif friction_at == laws.FRICTION_AT_MEASURED:
            resistance = friction_torque(parameters, v, j)
        if feedback == laws.DAMPING:
            resistance -= settings[D_GAIN, j] * v[j]
        else:
            torque[j] += state[DESIRED_EFFORT, j]
        if feedback == laws.AS_TORQUE:
            torque[j] += state[FEEDBACK, j]
        torque[j] += resistance
        if predicted and laws.FEEDBACK[own_law] == laws.AS_TORQUE:
            torque[j] += state[INTEGRAL, j]
    if settings[HARDWARE_ADDS_GRAVITY, 0] != 0.0 and model != laws.NO_MODEL:
        gravity_outward_pass(bodies, memory, q)
        inward_pass(bodies, memory, state[GRAVITY_TORQUE])
        for j in range(q.shape[0]):
            torque[j] -= state[GRAVITY_TORQUE, j]
