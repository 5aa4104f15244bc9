r"""The control laws: the torques of the joints, before any limit.

A law is a row of `ControlLaw`, and a function that fills in the torque by its formula;
`control_torque` calls the function of the law in force. All other code asks the row.

With the desired motion q_d, v_d, a_d of a reference (references.py) and the feedback u
(feedback.py), a law computes the torque from the model, and u is an acceleration or a torque
[Siciliano et al. 2009, sec. 8.5; Craig 2005, ch. 10]. With friction_compensation the friction
(dynamics/friction.py) is added. All laws that follow a trajectory add the effort of its waypoints.

A wrist whose model lacks its rotor inertia has hardly any feedback under computed_torque, as the
feedback is an acceleration. A least inertia f of a joint's feedback gives the joint as much as an
inertia f would have: max(0, f - M_jj) u is added. Without f, a joint whose model has no rotor gets
as much as the delay of the torques allows (observer_margin.py).

An estimated disturbance is taken off the torque of each law (disturbance_observer.py).

A planner's gains K are about a state x_0, with torque tau_0 (gains_stream.py).

The laws of task space move the tip (tip.py, task_space.py), with its desired pose x_d, the error e
of the pose, and the desired position q_n in the motions that leave the tip where it is, with torque
tau_n.

While no state comes, the law is computed_torque on a predicted state.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any

from rnea_control.array_types import RecordArray, Vector
from rnea_control.control import task_space, tip
from rnea_control.control.layout import Arm, Settings, State
from rnea_control.control.own_law import own_torque
from rnea_control.control.references import (
    HAND,
    Reference,
    is_guided,
    is_of_task,
    moves_joints,
)
from rnea_control.control.robot import Robot
from rnea_control.dynamics.crba import mass_matrix
from rnea_control.dynamics.friction import friction_torque
from rnea_control.dynamics.rnea import add_armature, gravity_outward_pass, inward_pass, outward_pass
from rnea_control.jit.inlining import inlined, shared
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import linked
from rnea_control.spatial.symmetric import SIZE


class Model(IntEnum):
    """The state at which a law computes the model's torque."""

    none = 0
    gravity = 1  # at the measured position, at rest
    measured = 2  # at the measured position and velocity, with the desired acceleration
    desired = 3  # at the desired position, velocity and acceleration


class Friction(IntEnum):
    """The velocity at which a law computes the friction, if it is compensated."""

    none = 0
    desired = 1  # as the measured velocity would feed back its noise
    measured = 2


# References of the laws with a feedback of the position.
_POSITIONS = Reference.trajectory, Reference.hand, Reference.joint_stream


class ControlLaw(IntEnum):
    """The control laws by their names in the YAML.

    Attributes:
        references: references that the law follows; an arm at rest has the first one. A hand is
            followed by computed_torque where the law yields.
        model: state at which the model's torque is computed.
        friction: velocity at which the friction is computed.
        feeds_back_acceleration: True if the feedback is an acceleration, and gains have its units;
            otherwise it is a torque.
        equation: the law, without friction and the effort of the waypoints.
        use: the purpose of the law.
    """

    computed_torque = (
        *(_POSITIONS, Model.measured, Friction.desired, True),
        "RNEA(q, v, a_d + u)",
        "feedback through the mass matrix: the same gains fit any arm",
    )
    feedforward_pd = (
        *(_POSITIONS, Model.desired, Friction.desired, False),
        "RNEA(q_d, v_d, a_d) + u",
        "torques of the desired trajectory plus PD: the model sees no noise",
    )
    gravity_compensation = (
        *((Reference.hand,), Model.gravity, Friction.measured, False),
        "g(q) - Kd v",
        "hand guiding; accepts no trajectories",
    )
    pd = (
        *(_POSITIONS, Model.none, Friction.none, False),
        "u",
        "no model, as joint_trajectory_controller",
    )
    pd_gravity = (
        *(_POSITIONS, Model.gravity, Friction.desired, False),
        "g(q) + u",
        "PD with gravity compensation: needs only the masses of the model",
    )

    cartesian_impedance = (
        *((*_POSITIONS, Reference.pose_stream), Model.measured, Friction.desired, True),
        "RNEA(q, v, a_d) + J^T (K e + D (x'_d - J v) + W) + (1 - J^T Jbar^T) tau_n",
        "a tip that yields: the same damping ratio in all directions, for any arm",
    )
    task_computed_torque = (
        *((Reference.pose_stream,), Model.measured, Friction.desired, True),
        "RNEA(q, v, Jbar (x''_d + p e + d e' - J' v) + (1 - Jbar J) a_n)",
        "a tip that follows exactly: the same bandwidth fits any arm",
    )

    own = (
        *(_POSITIONS, Model.measured, Friction.none, True),
        "a function of yours",
        "research: `own_law.function` names it ([own_law.md](own_law.md))",
    )

    linear_feedback = (
        *((Reference.feedback_gains,), Model.measured, Friction.none, False),
        "tau_0 + K (x_0 - x)",
        "gains of a planner, such as a model predictive controller",
    )

    references: tuple[Reference, ...]
    model: Model
    friction: Friction
    feeds_back_acceleration: bool
    equation: str
    use: str

    def __new__(cls, *row: Any) -> ControlLaw:
        law = int.__new__(cls, len(cls.__members__))
        law._value_ = len(cls.__members__)
        law.references, law.model, law.friction, law.feeds_back_acceleration = row[:4]
        law.equation, law.use = row[4:]
        return law

    @property
    def follows_trajectories(self) -> bool:
        """True if the law follows trajectories, and holds positions."""
        return Reference.trajectory in self.references

    @property
    def has_joint_gains(self) -> bool:
        """True if the law follows trajectories by p and d of each joint."""
        others = ControlLaw.cartesian_impedance, ControlLaw.own
        return self.follows_trajectories and self not in others


# Laws that a constant disturbance shall not move from the desired motion.
_HOLD_IN_PLACE = (
    ControlLaw.computed_torque,
    ControlLaw.feedforward_pd,
    ControlLaw.pd_gravity,
    ControlLaw.task_computed_torque,
)
JOINT_LAWS = tuple(law for law in ControlLaw if not law.references[0].is_stream)
TASK_LAWS = tuple(law for law in ControlLaw if Reference.pose_stream in law.references)


def _own_law(reference: Reference) -> ControlLaw | None:
    """The only law that follows a reference; None if the settings choose one of several."""
    laws = [law for law in ControlLaw if reference in law.references]
    return laws[0] if len(laws) == 1 else None


# Laws of the references that a single law follows.
OWN_LAWS = {each: law for each in Reference if (law := _own_law(each)) is not None}

# The rows for kernels, by the numbers of the laws.
_RESTING_REFERENCE = tuple(int(law.references[0]) for law in ControlLaw)
_USES_MODEL = tuple(law.model is not Model.none for law in ControlLaw)
_FEEDS_BACK_ACCELERATION = tuple(law.feeds_back_acceleration for law in ControlLaw)
_YIELDS = tuple(any(each.of_task for each in law.references) for law in ControlLaw)
_OWN_LAW = tuple(int(OWN_LAWS.get(each, -1)) for each in Reference)
_COMPENSATES = tuple(law in _HOLD_IN_PLACE for law in ControlLaw)
_COMPUTED_TORQUE = int(ControlLaw.computed_torque)
_FEEDFORWARD_PD = int(ControlLaw.feedforward_pd)
_GRAVITY_COMPENSATION = int(ControlLaw.gravity_compensation)
_PD_GRAVITY = int(ControlLaw.pd_gravity)
_CARTESIAN_IMPEDANCE = int(ControlLaw.cartesian_impedance)
_TASK_COMPUTED_TORQUE = int(ControlLaw.task_computed_torque)
_OWN = int(ControlLaw.own)
_own_torque = linked(own_torque)
_LINEAR_FEEDBACK = int(ControlLaw.linear_feedback)


def markdown() -> str:
    """The table of the laws, for the documentation."""
    rows = [["`control_law`", "torque", "what for"], ["---"] * 3]
    rows += [[f"`{law.name}`", f"`{law.equation}`", law.use] for law in ControlLaw]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


@inlined
def law_in_force(settings: Settings, state: State) -> int:
    """Number of the law in force, which is that of the reference in force.

    References of joints have the `control_law` of the settings, which is computed_torque while the
    arm is braced, and while a hand guides an arm that yields. References of task space have the
    `task_law` of the settings. A reference that a single law follows has this law.
    """
    own = _OWN_LAW[int(state.reference)]
    if own >= 0:
        return own
    if is_of_task(state):
        return int(settings.task_law)
    law = int(settings.joint_law)
    return _COMPUTED_TORQUE if _YIELDS[law] and is_guided(state) else law


@inlined
def resting_reference(settings: Settings) -> int:
    """Number of the reference of an arm at rest."""
    return _RESTING_REFERENCE[int(settings.joint_law)]


@inlined
def only_a_hand_moves(settings: Settings) -> bool:
    """True if an arm at rest is held by no law."""
    return resting_reference(settings) == HAND


@inlined
def yields_at_tip(settings: Settings, state: State) -> bool:
    """True if a law of task space is in force."""
    return _YIELDS[law_in_force(settings, state)]


@inlined
def yields(settings: Settings, state: State) -> bool:
    """True if a push moves the arm, by its reference or by its law."""
    return not moves_joints(state) or yields_at_tip(settings, state)


@inlined
def is_impedance(settings: Settings, state: State) -> bool:
    """True if the law in force is cartesian_impedance."""
    return law_in_force(settings, state) == _CARTESIAN_IMPEDANCE


@inlined
def uses_model(settings: Settings, state: State) -> bool:
    """True if the law in force computes a torque of the model."""
    return _USES_MODEL[law_in_force(settings, state)]


@inlined
def feeds_back_acceleration(settings: Settings, state: State) -> bool:
    """True if the feedback of the law in force is an acceleration."""
    return _FEEDS_BACK_ACCELERATION[law_in_force(settings, state)]


@inlined
def compensates_disturbance(settings: Settings, state: State) -> bool:
    """True if the law in force compensates disturbances (disturbance_observer.py)."""
    return _COMPENSATES[law_in_force(settings, state)] and not is_guided(state)


@inlined
def gravity_torque(robot: Robot, settings: Settings, state: State, q: Vector) -> None:
    """Fills `gravity_torque` with the commands that hold the arm: zeros if the hardware adds the
    gravity torque, or the law uses no model."""
    bodies, memory = robot.bodies, robot.memory
    if settings.hardware_adds_gravity != 0.0 or not uses_model(settings, state):
        state.gravity_torque[:] = 0.0
        return
    gravity_outward_pass(bodies, memory, q)
    inward_pass(bodies, memory, state.gravity_torque)


# Parts of the laws: each fills `torque`, or adds to it.


@inlined
def _evaluate_at(state: State, q: Vector, v: Vector) -> None:
    """Keeps the state at which the model is evaluated, for the terms of the torque."""
    for j in range(q.shape[0]):
        state.model_position[j], state.model_velocity[j] = q[j], v[j]


@shared
def _inverse_dynamics(robot: Robot, state: State, q: Vector, v: Vector, a: Vector) -> None:
    """RNEA(q, v, a)."""
    bodies, memory = robot.bodies, robot.memory
    _evaluate_at(state, q, v)
    outward_pass(bodies, memory, q, v, a)
    inward_pass(bodies, memory, state.torque)
    add_armature(bodies, a, state.torque)


@shared
def _gravity(robot: Robot, state: State, q: Vector) -> None:
    """g(q)."""
    bodies, memory = robot.bodies, robot.memory
    for j in range(q.shape[0]):
        state.model_position[j], state.model_velocity[j] = q[j], 0.0
    gravity_outward_pass(bodies, memory, q)
    inward_pass(bodies, memory, state.torque)


@inlined
def _add(state: State, torque: Vector) -> None:
    """Adds a torque."""
    for j in range(torque.shape[0]):
        state.torque[j] += torque[j]


@inlined
def _add_friction(settings: Settings, state: State, v: Vector) -> None:
    """Adds the friction at velocities `v`."""
    for j in range(v.shape[0]):
        state.torque[j] += friction_torque(settings.friction, v, j)


@inlined
def _add_feedback_inertia(robot: Robot, settings: Settings, state: State, q: Vector) -> None:
    """Adds the missing feedback of joints whose inertia in the model is below the least inertia, or
    whose rotor the model lacks."""
    wanted = False
    for j in range(q.shape[0]):
        least = settings.feedback_inertia[j]
        wanted |= least > 0.0
        if math.isnan(least):
            added = state.added_share * state.added_inertia[j]
            state.torque[j] += added * state.feedback[j]
    if not wanted:
        return
    bodies, memory, matrix = robot.bodies, robot.memory, robot.matrix
    mass_matrix(bodies, memory, q, matrix)
    for j in range(q.shape[0]):
        least = settings.feedback_inertia[j]
        if least > matrix[j, j]:  # false for NaN
            state.torque[j] += (least - matrix[j, j]) * state.feedback[j]


# The laws: functions of the measured state, that the feedback was computed for.


@inlined
def _computed_torque(robot: Robot, settings: Settings, state: State, q: Vector, v: Vector) -> None:
    """tau = RNEA(q, v, a_d + u)."""
    a = state.model_acceleration
    for j in range(q.shape[0]):
        a[j] = state.desired_acceleration[j] + state.feedback[j]
    _inverse_dynamics(robot, state, q, v, a)
    _add_feedback_inertia(robot, settings, state, q)
    _add(state, state.desired_effort)
    _add_friction(settings, state, state.desired_velocity)


@inlined
def _feedforward_pd(robot: Robot, settings: Settings, state: State, q: Vector, v: Vector) -> None:
    """tau = RNEA(q_d, v_d, a_d) + u."""
    q_d, v_d, a_d = state.desired_position, state.desired_velocity, state.desired_acceleration
    _inverse_dynamics(robot, state, q_d, v_d, a_d)
    _add(state, state.desired_effort)
    _add(state, state.feedback)
    _add_friction(settings, state, v_d)


@inlined
def _pd_gravity(robot: Robot, settings: Settings, state: State, q: Vector, v: Vector) -> None:
    """tau = g(q) + u."""
    _gravity(robot, state, q)
    _add(state, state.desired_effort)
    _add(state, state.feedback)
    _add_friction(settings, state, state.desired_velocity)


@inlined
def _pd(state: State) -> None:
    """tau = u."""
    state.torque[:] = 0.0
    _add(state, state.desired_effort)
    _add(state, state.feedback)


@inlined
def _gravity_compensation(
    robot: Robot, settings: Settings, state: State, q: Vector, v: Vector
) -> None:
    """tau = g(q) - Kd v."""
    _gravity(robot, state, q)
    for j in range(q.shape[0]):
        state.torque[j] += friction_torque(settings.friction, v, j) - settings.d_gain[j] * v[j]


@inlined
def _find_desired_velocity(robot: Robot, state: State) -> None:
    """Fills in the velocity of the joints that moves the tip with its desired twist."""
    for r in range(SIZE):
        state.coordinates[r] = state.desired_twist[r]
    tip.consistent_inverse(robot, state, state.coordinates, state.desired_velocity)


@shared
def _cartesian_impedance(
    robot: Robot, settings: Settings, state: State, q: Vector, v: Vector
) -> None:
    """tau = RNEA(q, v, a_d) + J^T (K e + D (x'_d - J v) + W) + (1 - J^T Jbar^T) tau_n, where a
    desired motion of the joints gives the pose and the posture, and a_d is zero without one."""
    of_joints = moves_joints(state)
    if of_joints:
        tip.aim_with_joints(robot, settings, state)
    tip.observe_tip(robot, settings, state, q, v)
    task_space.find_error(settings, state)
    task_space.find_wrench(settings, state)
    _inverse_dynamics(robot, state, q, v, state.desired_acceleration)
    task_space.add_impedance_torque(robot, settings, state, v)
    task_space.find_null_torque(robot, settings, state, q, v, of_joints)
    task_space.add_null_torque(robot, state)
    _add(state, state.desired_effort)
    if not of_joints:
        _find_desired_velocity(robot, state)
    _add_friction(settings, state, state.desired_velocity)


@shared
def _task_computed_torque(
    robot: Robot, settings: Settings, state: State, q: Vector, v: Vector
) -> None:
    """tau = RNEA(q, v, Jbar (x''_d + p e + d e' - J' v) + (1 - Jbar J) a_n)."""
    tip.observe_tip(robot, settings, state, q, v)
    task_space.find_error(settings, state)
    task_space.find_null_torque(robot, settings, state, q, v, False)
    a = state.model_acceleration
    task_space.accelerate_tip(robot, settings, state, q, v, a)
    _inverse_dynamics(robot, state, q, v, a)
    _find_desired_velocity(robot, state)
    _add_friction(settings, state, state.desired_velocity)


@inlined
def _linear_feedback(robot: Robot, state: State, q: Vector, v: Vector) -> None:
    """tau = tau_0 + K (x_0 - x). The planner's torque contains that of the model."""
    _evaluate_at(state, q, v)
    K, nv = robot.gains, q.shape[0]
    for i in range(nv):
        torque = state.target_effort[i]
        for j in range(nv):
            torque += K[i, j] * state.position_error[j] + K[i, nv + j] * state.velocity_error[j]
        state.torque[i] = torque


@inlined
def _keep_integral(settings: Settings, state: State) -> None:
    """Adds the integral of a law whose feedback is a torque, while computed_torque replaces it."""
    if not (feeds_back_acceleration(settings, state) or only_a_hand_moves(settings)):
        _add(state, state.integral)


@inlined
def _compensate_disturbance(state: State) -> None:
    """Takes the estimated disturbance off; it fades where the law does not compensate."""
    for j in range(state.shape[1]):
        state.compensation[j] = -state.disturbance[j]
        state.torque[j] += state.compensation[j]


@inlined
def control_torque(
    arm: Arm,
    robot: Robot,
    settings: Settings,
    state: State,
    q: Vector,
    v: Vector,
    predicted: bool,
) -> None:
    """Fills `torque` of `state` by the law in force; needs the desired motion and the feedback in
    `state`. The state `q`, `v`, shape (nv,), is measured or `predicted`."""
    law = law_in_force(settings, state)
    if predicted or law == _COMPUTED_TORQUE:
        _computed_torque(robot, settings, state, q, v)
    elif law == _FEEDFORWARD_PD:
        _feedforward_pd(robot, settings, state, q, v)
    elif law == _PD_GRAVITY:
        _pd_gravity(robot, settings, state, q, v)
    elif law == _GRAVITY_COMPENSATION:
        _gravity_compensation(robot, settings, state, q, v)
    elif law == _CARTESIAN_IMPEDANCE:
        _cartesian_impedance(robot, settings, state, q, v)
    elif law == _TASK_COMPUTED_TORQUE:
        _task_computed_torque(robot, settings, state, q, v)
    elif law == _OWN:
        _evaluate_at(state, q, v)
        _own_torque(arm.own_code, (arm, settings, state, q, v, state.torque))
        _add(state, state.desired_effort)
    elif law == _LINEAR_FEEDBACK:
        _linear_feedback(robot, state, q, v)
    else:
        _pd(state)
    if predicted:
        _keep_integral(settings, state)
    _compensate_disturbance(state)
    if settings.hardware_adds_gravity != 0.0 and (predicted or uses_model(settings, state)):
        bodies, memory = robot.bodies, robot.memory
        gravity_outward_pass(bodies, memory, q)
        inward_pass(bodies, memory, state.gravity_torque)
        for j in range(q.shape[0]):
            state.torque[j] -= state.gravity_torque[j]


@kernel("void(Arm[::1], Settings, State, f8[::1], f8[::1], f8[::1])")
def own_torque_once(
    arms: RecordArray, settings: Settings, state: State, q: Vector, v: Vector, tau: Vector
) -> None:
    """Fills `tau` by the law of a user."""
    _own_torque(arms[0].own_code, (arms[0], settings, state, q, v, tau))
