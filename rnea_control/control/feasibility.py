r"""Finds states from which no arm may be started, settings that do not work with any arm, and
models that no arm has, before they are used.

**Gains.** A torque acts a delay :math:`T = \max(T_d, h) + h / 2` after the measurement that it was
computed from: T_d is the dead time, and h the period of the states, for which the torque is held. A
joint under :math:`\ddot e = -k_d \dot e` is stable below :math:`k_d T = \pi / 2`. A critically
damped joint, :math:`k_p = k_d^2 / 4`, is stable below :math:`\sqrt{k_p} T = 0.64`. Two thirds of
each bound are allowed.

**Loads.** The torque that holds the arm at its position must be within the effort limits.

**Rotors.** Behind a gear of ratio n a rotor of inertia J adds n^2 J at its joint: a wrist of
0.002 kg m^2 may have 0.1. Where the model lacks this inertia, computed_torque turns accelerations
into too little torque.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control import layout
from rnea_control.control.arrest import MOST_NOISE
from rnea_control.control.laws import ControlLaw, Model
from rnea_control.control.settings import ControllerSettings, SupervisionSettings
from rnea_control.dynamics import Workspace, crba, gravity, jacobian
from rnea_control.exceptions import ControllerError, distinct
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

MOST_DAMPING = 1.0  # largest product k_d T
MOST_BANDWIDTH = 0.42  # largest product sqrt(k_p) T
# Least inertia on which a gain in Nm acts, as a URDF may lack the rotor, [kg m^2] or [kg].
LEAST_INERTIA = 0.1
# Torques are late if they act later than the dead time by more than both of these. A torque is
# computed in the period after its state, and applied in the next one.
LATE = 0.003  # lateness beyond the dead time [s]
LATE_PERIODS = 2.0  # lateness beyond the dead time, in periods of the states
MEASURED_STATES = 50  # states after a start whose shortest period is used as the period of all
RESTING = 0.01  # speed below which an arm is at rest, held by its torque alone [rad/s] or [m/s]
ASKED = 0.2  # speed below which the wires may be checked before the arm is caught [rad/s] or [m/s]
SMALL_INERTIA = 0.02  # inertia of a link below which its rotor counts [kg m^2]


class Obstacle(NamedTuple):
    """Why a controller may not start from a state."""

    kind: str  # in words that stay the same while it lasts
    reason: str  # with the measured value and the remedy, to follow "waiting"


class StatePeriod:
    """The period of the states after a start at time `t`, [s], and the noise of their velocities.

    Attributes:
        shortest: shortest of the first periods, used as the period of all states, [s]; NaN before
            the first period.
        is_known: True if enough states were measured.
    """

    def __init__(self, t: float = math.nan) -> None:
        self.shortest, self.is_known = math.nan, False
        self._last = t
        self._velocities: list[FloatArray] = []

    def measure(self, t: float, v: FloatArray) -> bool:
        """Takes the time of a state, [s], and its velocities, shape (nv,); returns True when the
        period becomes known."""
        if self.is_known or not t > self._last:
            return False
        self.shortest, self._last = float(np.fmin(self.shortest, t - self._last)), t
        self._velocities.append(v.copy())
        self.is_known = len(self._velocities) == MEASURED_STATES
        return self.is_known

    @property
    def velocity_noise(self) -> FloatArray:
        """Standard deviation of the noise of the velocities, shape (nv,), [rad/s] or [m/s]; at most
        `MOST_NOISE`. Computed from differences of successive states, as the arm may move."""
        noise = np.diff(self._velocities, axis=0).std(axis=0) / math.sqrt(2.0)
        return np.minimum(noise, MOST_NOISE)


def momentum_noise(
    model: RobotModel, ws: Workspace, q: FloatArray, velocity_noise: FloatArray
) -> FloatArray:
    """Standard deviation of the noise of the generalized momentum, shape (nv,).

    Args:
        model, ws: the robot, and a workspace made for it.
        q: positions, shape (nv,), [rad] or [m].
        velocity_noise: standard deviation of the velocities, shape (nv,), [rad/s] or [m/s].
    """
    inertia = crba(model, ws, q, ws.matrix)
    return np.sqrt(inertia**2 @ velocity_noise**2)


def lateness(delay: float, dead_time: float, period: float) -> str:
    """Reports torques that act too late, in a sentence; empty if they are in time, or unknown.

    Args:
        delay: time after which torques act, [s]; NaN where it is not known.
        dead_time: dead time in the settings of the controller, [s].
        period: period of the states, [s].
    """
    if not delay > dead_time + max(LATE, LATE_PERIODS * period):
        return ""
    return (
        f"torques act {1e3 * delay:.0f} ms after the states that they answer, and dead_time is "
        f"{1e3 * dead_time:.3g} ms: mend what is late, or set dead_time, and lower the gains"
    )


def controllable(model: RobotModel) -> None:
    """Refuses a model with a joint of several degrees of freedom; raises ControllerError."""
    kinds = zip(model.joint_names, model.joint_types, model.v_slices.values(), strict=True)
    several = [f"{name} ({kind})" for name, kind, part in kinds if part.stop - part.start > 1]
    if several:
        raise ControllerError(
            f"{', '.join(several)} cannot be controlled, only joints with one degree of "
            "freedom can; leave them out of `joints`"
        )


def obstacle_to_start(
    model: RobotModel, settings: SupervisionSettings, q: FloatArray, v: FloatArray, may_move: bool
) -> Obstacle | None:
    """Why a controller may not start from this state; None if it may. `may_move`: True to accept
    any velocity."""
    if not np.isfinite([q, v]).all():
        return Obstacle("joint_states are not finite", "for joint_states that are finite")
    beyond = np.maximum(model.lower - q, q - model.upper)
    j = int(np.argmax(beyond))
    if beyond[j] > settings.start_tolerance:
        unit = units(model, j).position
        at, lower, upper = distinct(q[j], model.lower[j], model.upper[j])
        outside = f"outside its limits {lower} to {upper}"
        return Obstacle(
            f"{model.joint_names[j]} is {outside} {unit}",
            f"as {model.joint_names[j]} is at {at} {unit}, {outside}: bring it back by hand",
        )
    j = int(np.argmax(np.abs(v)))
    if abs(v[j]) > settings.start_velocity and not may_move:
        moves = f"{model.joint_names[j]} moves at {v[j]:.2g} {units(model, j).velocity}"
        remedy = "To have an arm caught that falls, set activation.max_velocity to .inf"
        return Obstacle("the arm moves", f"as {moves}: the arm must be at rest. {remedy}")
    return None


def excessive_gain(
    model: RobotModel,
    ws: Workspace,
    settings: ControllerSettings,
    q: FloatArray,
    period: float,
    seen_delay: float = math.nan,
) -> str:
    """The first gain that is too high at `q`, shape (nv,), with states of this period, [s], and the
    largest value allowed, in a sentence; empty if there is none.

    Args:
        model, ws: the robot, and a workspace made for it.
        settings: settings of the controller.
        q: positions, shape (nv,), [rad] or [m].
        period: period of the states, [s].
        seen_delay: time after which torques act, [s]; NaN where it is not known.
    """
    late = seen_delay > settings.dead_time
    dead_time = seen_delay if late else settings.dead_time
    delay = max(dead_time, period) + 0.5 * period
    inertia = np.ones(model.nv)
    if not settings.control_law.feeds_back_acceleration:
        inertia = np.maximum(np.diag(crba(model, ws, q, ws.matrix)), LEAST_INERTIA)
    for name, gain, most in (
        ("d", settings.gains.d, MOST_DAMPING / delay),
        ("p", settings.gains.p, (MOST_BANDWIDTH / delay) ** 2),
    ):
        j = int(np.argmax(gain / inertia))
        if gain[j] > most * inertia[j]:
            what = f"torques that act after {dead_time:.3g} s"
            if not late:
                what = f"a dead_time of {dead_time:g} s"
            allowed = distinct(most * inertia[j], gain[j], digits=3)[0]
            return (
                f"gains.{model.joint_names[j]}.{name} is {gain[j]:g}; states at "
                f"{1.0 / period:.0f} Hz and {what} allow {allowed} at most: with more the joint "
                "shakes"
            )
    return ""


def largest_tip_frequency(
    law: ControlLaw,
    settings: ControllerSettings,
    rows: layout.Settings,
    period: float,
    seen_delay: float = math.nan,
) -> float:
    """Largest natural frequency of the tip that states of this period allow, [rad/s]. Arguments:
    see `excessive_task_gain`."""
    is_impedance = law is ControlLaw.cartesian_impedance
    ratio = float(rows.task_damping_ratio) if is_impedance else 1.0
    dead_time = seen_delay if seen_delay > settings.dead_time else settings.dead_time
    delay = max(dead_time, period) + 0.5 * period
    return min(0.5 * MOST_DAMPING / ratio, MOST_BANDWIDTH) / delay


def excessive_task_gain(
    model: RobotModel,
    ws: Workspace,
    law: ControlLaw,
    settings: ControllerSettings,
    rows: layout.Settings,
    q: FloatArray,
    period: float,
    seen_delay: float = math.nan,
) -> str:
    """Why the tip would shake at `q`, shape (nv,), in a sentence; empty if it would not.

    Args:
        law: a law of task space.
        rows: the same settings as rows.
        others: see `excessive_gain`.
    """
    what, frequency = "task.bandwidth is", float(rows.task_bandwidth)
    if law is ControlLaw.cartesian_impedance:
        M = crba(model, ws, q, ws.matrix)
        J = jacobian(model, ws, q, model.link_names[int(rows.task_link)], np.zeros((6, model.nv)))
        root = np.sqrt(rows.task_stiffness)
        squares = np.linalg.eigvalsh(root[:, None] * (J @ np.linalg.solve(M, J.T)) * root)
        what = "task.k_pos_x to task.k_rot_z give the tip a natural frequency of"
        frequency = math.sqrt(max(float(squares[-1]), 0.0))
    most = largest_tip_frequency(law, settings, rows, period, seen_delay)
    if frequency <= most:
        return ""
    allowed, has = distinct(most, frequency, digits=3)
    remedy = ""
    if law is ControlLaw.cartesian_impedance:
        remedy = f"; multiply the stiffnesses by {(most / frequency) ** 2:.2g} at most"
    dead_time = seen_delay if seen_delay > settings.dead_time else settings.dead_time
    return (
        f"{what} {has} rad/s; states at {1.0 / period:.0f} Hz and torques that act after "
        f"{dead_time:.3g} s allow {allowed} at most: with more the tip shakes{remedy}"
    )


def excessive_load(
    model: RobotModel, ws: Workspace, settings: ControllerSettings, q: FloatArray
) -> str:
    """The joint whose effort limit is too small to hold the arm, in a sentence; empty if there is
    none.

    Args:
        model, ws: the robot, and a workspace made for it.
        settings: settings of the controller.
        q: positions, shape (nv,), [rad] or [m].
    """
    if settings.control_law.model is Model.none:
        return ""
    offset = model.torque_offset if settings.friction_compensation else 0.0
    torque = np.abs(gravity(model, ws, q, ws.torque) + offset)
    limit = settings.effort_limit(model)
    if settings.hardware_compensates_gravity:  # with the full effort limits of its actuators
        limit = np.maximum(limit, model.effort_limit)
    j = int(np.argmax(torque - limit))
    if torque[j] <= limit[j]:  # false for NaN
        return ""
    needed, allowed = distinct(torque[j], limit[j], digits=4)
    needs = f"{model.joint_names[j]} needs {needed} {units(model, j).effort} to be held"
    has = f"its effort limit is {allowed}"
    return f"{needs}, and {has}: see payload, gravity and the effort limits"


def light_joints(
    model: RobotModel, q: FloatArray, feedback_inertia: FloatArray | None = None
) -> list[str]:
    """Names and inertias of the joints that move less than `SMALL_INERTIA` at `q`, shape (nq,), and
    have no armature; joints with a `feedback_inertia` (`ControllerSettings`) are left out."""
    inertia = np.diag(crba(model, Workspace(model), q, np.zeros((model.nv, model.nv))))
    told = 0.0 if feedback_inertia is None else np.fmax(feedback_inertia, 0.0)
    given = model.armature + told
    kinds = zip(model.joint_names, model.joint_types, model.v_slices.values(), strict=True)
    return [
        f"{name} ({inertia[part].min():.2g} kg m^2)"
        for name, kind, part in kinds
        if kind != "prismatic" and inertia[part].min() < SMALL_INERTIA and not given[part].any()
    ]
