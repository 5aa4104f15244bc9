r"""The control laws: the torques of the joints, before any limit. A law is one row of a table, and
all other code reads the row.

With the errors e = q_d - q (the shortest way round for continuous joints) and de = v_d - v, and the
feedback u = Kp e + Kd de + integral of Ki e,

    tau = model + u,   or   tau = model with the acceleration a_d + u

The row defines the state at which the model's torque is computed, and whether the feedback is an
acceleration or a torque [Siciliano et al. 2009, sec. 8.5; Craig 2005, ch. 10]. With
friction_compensation the friction (dynamics/friction.py) is added. All laws that hold a position
add the effort of its waypoints.

All quantities are for the moment when the torque acts, a dead time after the measurement: the law
takes the desired motion of that moment, and predicts the measured state with the desired
acceleration.

A wrist whose model lacks its rotor inertia has hardly any feedback under computed_torque, as the
feedback is an acceleration. A least inertia f of a joint's feedback gives the joint as much as an
inertia f would have: max(0, f - M_jj) u is added.

While a hand guides the arm, the desired position is the measured one, and the feedback a part of
the velocity gain. While no state comes, the law is computed_torque on a predicted state: position
and velocity keep the errors of the last measurement, and the velocity error decays,

    tau = RNEA(q, v, a_d + k de),   de' = -k de
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any

from rnea_control.array_types import FloatArray, Vector
from rnea_control.control.layout import Arm, Settings, State
from rnea_control.dynamics.crba import mass_matrix
from rnea_control.dynamics.friction import friction_torque
from rnea_control.dynamics.rnea import add_armature, gravity_outward_pass, inward_pass, outward_pass
from rnea_control.jit.inlining import inlined
from rnea_control.jit.linking import array_at

# The bodies of a model; memory and matrix, shape (nv, nv), of a workspace: both are overwritten.
Robot = tuple[FloatArray, FloatArray, FloatArray]


class Model(IntEnum):
    """The state at which the model's torque is computed."""

    none = 0
    gravity = 1  # at the measured position, at rest
    measured = 2  # at the measured position and velocity, with the desired acceleration
    desired = 3  # at the desired position, velocity and acceleration


class Feedback(IntEnum):
    """The kind of feedback."""

    damping = 0  # -Kd v alone, a torque: no position is held, and a hand guides the arm
    torque = 1  # u
    acceleration = 2  # u, added to the model's acceleration


class Friction(IntEnum):
    """The velocity at which the friction is computed, if it is compensated."""

    none = 0
    desired = 1  # as the measured velocity would feed back its noise
    measured = 2


class ControlLaw(IntEnum):
    """The control laws by their names in the YAML.

    Attributes:
        model, feedback, friction: the parts of the law.
        equation: the law, without friction and the effort of the waypoints.
        use: the purpose of the law.
        holds_position: True if the law follows trajectories and holds positions; otherwise a hand
            guides the arm.
        feeds_back_acceleration: True if the feedback is an acceleration, and gains have its units.
    """

    computed_torque = (
        *(Model.measured, Feedback.acceleration, Friction.desired, "RNEA(q, v, a_d + u)"),
        "feedback through the mass matrix: the same gains fit any arm",
    )
    feedforward_pd = (
        *(Model.desired, Feedback.torque, Friction.desired, "RNEA(q_d, v_d, a_d) + u"),
        "torques of the desired trajectory plus PD: the model sees no noise",
    )
    gravity_compensation = (
        *(Model.gravity, Feedback.damping, Friction.measured, "g(q) - Kd v"),
        "hand guiding; accepts no trajectories",
    )
    pd = (
        *(Model.none, Feedback.torque, Friction.none, "u"),
        "no model, as joint_trajectory_controller",
    )
    pd_gravity = (
        *(Model.gravity, Feedback.torque, Friction.desired, "g(q) + u"),
        "PD with gravity compensation: needs only the masses of the model",
    )

    model: Model
    feedback: Feedback
    friction: Friction
    equation: str
    use: str
    holds_position: bool
    feeds_back_acceleration: bool

    def __new__(cls, *row: Any) -> ControlLaw:
        law = int.__new__(cls, len(cls.__members__))
        law._value_ = len(cls.__members__)
        law.model, law.feedback, law.friction, law.equation, law.use = row
        law.holds_position = law.feedback is not Feedback.damping
        law.feeds_back_acceleration = law.feedback is Feedback.acceleration
        return law


# Parts of the laws for kernels, by the number of the law.
MODEL_OF = tuple(int(law.model) for law in ControlLaw)
FEEDBACK_OF = tuple(int(law.feedback) for law in ControlLaw)
FRICTION_OF = tuple(int(law.friction) for law in ControlLaw)
NO_MODEL, GRAVITY, MEASURED, DESIRED = (int(model) for model in Model)
DAMPING, AS_TORQUE, AS_ACCELERATION = (int(feedback) for feedback in Feedback)
FRICTION_AT_DESIRED, FRICTION_AT_MEASURED = int(Friction.desired), int(Friction.measured)

# The law in force while no state comes.
PREDICTING_LAW = int(ControlLaw.computed_torque)
PREDICTED_DECAY = 10.0  # decay rate of the velocity error while states are missing [1/s]


def markdown() -> str:
    """The table of the laws, for the documentation."""
    rows = [["`control_law`", "torque", "what for"], ["---"] * 3]
    rows += [[f"`{law.name}`", f"`{law.equation}`", law.use] for law in ControlLaw]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


@inlined
def robot_of(arm: Arm, nv: int) -> Robot:
    """The model's bodies; memory and matrix of the workspace; `arm`: see layout.py."""
    bodies = array_at(arm.bodies_at, (arm.body_count, arm.body_size))
    memory_shape = arm.memory_rows, arm.memory_columns
    memory = array_at(arm.memory_at, memory_shape)
    return bodies, memory, array_at(arm.matrix_at, (nv, nv))


@inlined
def is_hand_law(settings: Settings) -> bool:
    """True if the law of these settings lets a hand guide the arm."""
    return FEEDBACK_OF[int(settings.law)] == DAMPING


@inlined
def shortest_way(settings: Settings, j: int, way: float) -> float:
    """Distance that joint j has to move, the shortest way round if it is continuous."""
    if settings.continuous[j] != 0.0:
        way -= 2.0 * math.pi * math.floor(way / (2.0 * math.pi) + 0.5)
    return way


@inlined
def _rest(state: State) -> None:
    """Sets the desired motion to rest."""
    state.desired_velocity[:] = 0.0
    state.desired_acceleration[:] = 0.0
    state.desired_effort[:] = 0.0


@inlined
def update_feedback(
    settings: Settings, state: State, q: Vector, v: Vector, dt: float, stopped: bool
) -> None:
    """Computes the state when the torque will act, its errors, the clamped integral and the
    feedback u.

    `dt` is the time since the last tick, [s]. If the arm is `stopped` and pushed out of its place,
    its feedback does not grow beyond that of `max_position_errors`.
    """
    guided = state.guided != 0.0
    ahead = settings.dead_time
    if guided:
        _rest(state)
    for j in range(q.shape[0]):
        change = ahead * state.desired_acceleration[j]
        state.predicted_position[j] = q[j] + ahead * (v[j] + 0.5 * change)
        state.predicted_velocity[j] = v[j] + change
        if guided:
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
def predict_state(settings: Settings, state: State, q: Vector, v: Vector, dt: float) -> None:
    """Predicts the errors of the last state `dt` [s] later, and fills `q`, `v` and the feedback
    from them."""
    guided = state.guided != 0.0
    decay = math.exp(-PREDICTED_DECAY * dt)
    accelerating = FEEDBACK_OF[int(settings.law)] == AS_ACCELERATION
    if guided:
        _rest(state)
    for j in range(q.shape[0]):
        if guided:  # the arm comes to rest at about its last measured position
            state.desired_position[j] = state.last_position[j]
        de = state.velocity_error[j]
        state.position_error[j] += de * (1.0 - decay) / PREDICTED_DECAY
        state.velocity_error[j] = de * decay
        q[j] = state.desired_position[j] - state.position_error[j]
        v[j] = state.desired_velocity[j] - state.velocity_error[j]
        state.feedback[j] = PREDICTED_DECAY * state.velocity_error[j]
        if accelerating:
            state.feedback[j] += state.integral[j]


@inlined
def gravity_torque(robot: Robot, settings: Settings, state: State, q: Vector) -> None:
    """Fills `gravity_torque` with the commands that hold the arm: zeros if the hardware adds the
    gravity torque, or the law uses no model."""
    bodies, memory, _ = robot
    model = MODEL_OF[int(settings.law)]
    if settings.hardware_adds_gravity != 0.0 or model == NO_MODEL:
        state.gravity_torque[:] = 0.0
        return
    gravity_outward_pass(bodies, memory, q)
    inward_pass(bodies, memory, state.gravity_torque)


@inlined
def _add_feedback_inertia(robot: Robot, settings: Settings, state: State, q: Vector) -> None:
    """Adds to `torque` the missing feedback of joints whose inertia in the model is below the least
    inertia."""
    wanted = False
    for j in range(q.shape[0]):
        wanted |= settings.feedback_inertia[j] > 0.0
    if not wanted:
        return
    bodies, memory, matrix = robot
    mass_matrix(bodies, memory, q, matrix)
    for j in range(q.shape[0]):
        lacking = max(settings.feedback_inertia[j] - matrix[j, j], 0.0)
        state.torque[j] += lacking * state.feedback[j]


@inlined
def control_torque(
    robot: Robot, settings: Settings, state: State, q: Vector, v: Vector, predicted: bool
) -> None:
    """Fills `torque` of `state` by the control law; needs the desired state and the feedback in
    `state`. The state `q`, `v`, shape (nv,), is measured or `predicted`."""
    bodies, memory, _ = robot
    own_law = int(settings.law)
    law = PREDICTING_LAW if predicted else own_law
    model, feedback, friction_at = MODEL_OF[law], FEEDBACK_OF[law], FRICTION_OF[law]
    torque = state.torque
    for j in range(q.shape[0]):
        position = state.desired_position[j] if model == DESIRED else q[j]
        state.model_position[j] = position
        state.model_velocity[j] = state.model_acceleration[j] = 0.0
        if model in (MEASURED, DESIRED):
            moving = v[j] if model == MEASURED else state.desired_velocity[j]
            state.model_velocity[j] = moving
            state.model_acceleration[j] = state.desired_acceleration[j]
        if feedback == AS_ACCELERATION:
            state.model_acceleration[j] += state.feedback[j]
    if model == NO_MODEL:
        torque[:] = 0.0
    else:
        position, velocity = state.model_position, state.model_velocity
        acceleration = state.model_acceleration
        outward_pass(bodies, memory, position, velocity, acceleration)
        inward_pass(bodies, memory, torque)
        add_armature(bodies, acceleration, torque)
    if feedback == AS_ACCELERATION:
        _add_feedback_inertia(robot, settings, state, q)
    parameters = settings.friction
    for j in range(q.shape[0]):
        resistance = 0.0
        if friction_at == FRICTION_AT_DESIRED:
            resistance = friction_torque(parameters, state.desired_velocity, j)
        elif friction_at == FRICTION_AT_MEASURED:
            resistance = friction_torque(parameters, v, j)
        if feedback == DAMPING:
            resistance -= settings.d_gain[j] * v[j]
        else:
            torque[j] += state.desired_effort[j]
        if feedback == AS_TORQUE:
            torque[j] += state.feedback[j]
        torque[j] += resistance
        if predicted and FEEDBACK_OF[own_law] == AS_TORQUE:
            torque[j] += state.integral[j]
    if settings.hardware_adds_gravity != 0.0 and model != NO_MODEL:
        gravity_outward_pass(bodies, memory, q)
        inward_pass(bodies, memory, state.gravity_torque)
        for j in range(q.shape[0]):
            torque[j] -= state.gravity_torque[j]
