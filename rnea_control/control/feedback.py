r"""The feedback of the control laws, for the moment when the torque acts.

With the errors e = q_d - q (the shortest way round for continuous joints) and de = v_d - v,

    u = Kp e + Kd de + integral of Ki e

The desired motion is that of a dead time after the measurement, and the measured state is predicted
for that moment with the desired acceleration. Where the joints have no desired motion, the desired
position is the measured one; where a hand guides the arm, the feedback is a part of the velocity
gain.

While no state comes, the errors go on from those of the last state: the velocity error decays, and
the position error changes by its integral,

    u = k de,   de' = -k de,   e' = de

and the integral is added where the feedback is an acceleration.
"""

from __future__ import annotations

import math

from rnea_control.array_types import Vector
from rnea_control.control.laws import feeds_back_acceleration
from rnea_control.control.layout import Settings, State
from rnea_control.control.references import has_path, is_guided, moves_joints
from rnea_control.jit.inlining import inlined

PREDICTED_DECAY = 10.0  # decay rate of the velocity error while states are missing [1/s]


@inlined
def shortest_way(settings: Settings, j: int, way: float) -> float:
    """Distance that joint j has to move, the shortest way round if it is continuous."""
    if settings.continuous[j] != 0.0:
        way -= 2.0 * math.pi * math.floor(way / (2.0 * math.pi) + 0.5)
    return way


@inlined
def update_feedback(
    settings: Settings, state: State, q: Vector, v: Vector, dt: float, stopped: bool
) -> None:
    """Computes the state when the torque will act, its errors, the clamped integral and the
    feedback u.

    `dt` is the time since the last tick, [s]. If the arm is `stopped` and pushed out of its place,
    its feedback does not grow beyond that of `max_position_errors`.
    """
    guided, yields = is_guided(state), not moves_joints(state)
    ahead = settings.dead_time
    for j in range(q.shape[0]):
        change = ahead * state.desired_acceleration[j]
        state.predicted_position[j] = q[j] + ahead * (v[j] + 0.5 * change)
        state.predicted_velocity[j] = v[j] + change
        if yields:
            state.desired_position[j] = state.predicted_position[j]
        e = state.desired_position[j] - state.predicted_position[j]
        e = shortest_way(settings, j, e)
        de = state.desired_velocity[j] - state.predicted_velocity[j]
        integral = state.integral[j]
        if not abs(e) <= settings.error_deadband[j]:
            integral += settings.i_gain[j] * e * dt
        if settings.i_gain[j] == 0.0:
            integral -= dt * integral  # switched off while running: fades within seconds
        integral = max(integral, settings.i_clamp_min[j])
        integral = min(integral, settings.i_clamp_max[j])
        damping = settings.d_gain[j]
        if guided:
            damping *= settings.guiding_damping
        state.position_error[j] = e
        state.velocity_error[j] = de
        state.integral[j] = integral
        if stopped:
            most = settings.max_position_error[j]
            e = min(max(e, -most), most)
        feedback = settings.p_gain[j] * e + damping * de + integral
        state.feedback[j] = state.feedback_share * feedback


@inlined
def predict_state(
    settings: Settings, state: State, q: Vector, v: Vector, dt: float, begins: bool
) -> None:
    """Predicts the errors of the last state `dt` [s] later, and fills `q`, `v` and the feedback
    from them. `begins`: True for the first prediction after a state."""
    yields = not moves_joints(state)
    decay = math.exp(-PREDICTED_DECAY * dt)
    accelerating = feeds_back_acceleration(settings, state)
    for j in range(q.shape[0]):
        if yields:  # the arm comes to rest at about its last measured position
            state.desired_position[j] = state.last_position[j]
        de = state.velocity_error[j]
        change, left = de * (1.0 - decay) / PREDICTED_DECAY, de * decay
        if begins and not has_path(state):  # nothing has braked the motion in the gap
            change, left = de * dt, de
        state.position_error[j] += change
        state.velocity_error[j] = left
        q[j] = state.desired_position[j] - state.position_error[j]
        v[j] = state.desired_velocity[j] - state.velocity_error[j]
        state.feedback[j] = PREDICTED_DECAY * state.velocity_error[j]
        if accelerating:
            state.feedback[j] += state.integral[j]
