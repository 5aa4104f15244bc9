"""Residual of the momentum observer in the demo's motion and in collisions, on a simulated Panda.

The arm is MuJoCo's, at 1 kHz, under computed torque; the observer has the model of the URDF. This
is where its default gain and `motion_bounds.driving_torque` come from. Its time is part of a
step's (control.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from table import Table, show

from rnea_control.control import Controller, ControllerSettings, Gains, SafetySettings
from rnea_control.demo.controller import BANDWIDTH
from rnea_control.demo.robots import DemoRobot, load_robot
from rnea_control.model import RobotModelWarning
from rnea_control.simulation.mujoco_arm import MujocoArm
from rnea_control.simulation.urdf_for_mujoco import ModelErrors

GAIN = 25.0
RATE = 1000.0
SETTLING = 0.5
COLLISION = 3.3  # time of the collision, in fast motion [s]
STOP_STIFFNESS = 1e4  # stiffness of a hard stop [Nm/rad]
STOP_DAMPING = 50.0  # damping of a hard stop [Nm s/rad]
BOUND = 0.25  # bound of the residual [effort limits]
SENSITIVE = np.array([3.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0])

External = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Case:
    """One run of the demo's motion.

    Attributes:
        errors: difference between the arm and the model.
        delay: states after which a command takes effect, beyond the first.
        noise: standard deviation of the measured velocity [rad/s].
        external: external torque as a function of time, positions and velocities, shape (nv,),
            [Nm].
        gain: gain of the observer [1/s].
    """

    errors: ModelErrors | None = None
    delay: int = 0
    noise: float = 0.0
    external: External | None = None
    gain: float = GAIN


def residuals(robot: DemoRobot, case: Case) -> np.ndarray:
    """The residual at each state of the demo's motion, shape (states, nv), [Nm]."""
    model, n = robot.model, robot.model.nv
    start = dict(zip(model.joint_names, robot.start, strict=True))
    arm = MujocoArm(robot.urdf, model, 1.0 / RATE, start, case.errors)
    gains = Gains.uniform(n, BANDWIDTH**2, 2.0 * BANDWIDTH)
    safety = replace(SafetySettings.none(n), observer_gain=case.gain)
    controller = Controller(model, ControllerSettings(gains, safety=safety))
    controller.hold(0.0, robot.start)
    end = controller.follow(0.0, robot.waypoints, SETTLING).end
    rng, tau, seen = np.random.default_rng(0), np.zeros(n), []
    sent = [controller.holding_torque(robot.start, np.zeros(n))] * (case.delay + 1)
    for k in range(round((end + SETTLING) * RATE)):
        t, q, v = k / RATE, arm.q, arm.v
        measured = v + case.noise * rng.standard_normal(n)
        controller.step(t, q, measured, tau)
        seen.append(controller.snapshot().external_torque.copy())
        sent = [*sent[1:], tau.copy()]
        arm.step(sent[0] + (case.external(t, q, v) if case.external else 0.0))
    return np.array(seen)


def false_alarms(robot: DemoRobot) -> Table:
    """Residuals where nothing touches the arm."""
    heavy = ModelErrors(mass_scale=1.1)
    cases = {
        "exact model": Case(),
        "command a state late": Case(delay=1),
        "two states late": Case(delay=2),
        "masses +10 %": Case(heavy),
        "masses -10 %": Case(ModelErrors(mass_scale=0.9)),
        "+10 %, two late": Case(heavy, 2),
        "+10 %, gain 100/s": Case(heavy, gain=100.0),
        "noise 0.01 rad/s": Case(noise=0.01),
        "noise, gain 100/s": Case(noise=0.01, gain=100.0),
        "friction 1 Nm": Case(ModelErrors(joint_friction=1.0)),
        "payload 1 kg": Case(ModelErrors(payload_mass=1.0)),
    }
    n = robot.model.nv
    title = f"Largest residual by joint in the demo's motion, panda, {GAIN:g}/s [Nm]"
    table = Table(title, ("", *(str(j + 1) for j in range(n))))
    for name, case in cases.items():
        largest = np.abs(residuals(robot, case)).max(axis=0)
        table.rows.append((name, *(f"{value:.2f}" for value in largest)))
    limits = BOUND * robot.model.effort_limit
    table.rows.append(("default bound", *(f"{limit:.2f}" for limit in limits)))
    table.notes.append("Noise is that of the measured velocity. What is named is not modelled.")
    return table


def collisions(robot: DemoRobot) -> Table:
    """How long the observer takes to find what touches the arm."""
    n = robot.model.nv

    def push(j: int, torque: float) -> External:
        return lambda t, q, v: torque * (np.arange(n) == j) * (t >= COLLISION)

    def hard_stop(j: int) -> External:
        place: list[float] = []

        def external(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
            if t >= COLLISION and not place:
                place.extend([q[j], np.sign(v[j])])
            torque = np.zeros(n)
            if place and (beyond := place[1] * (q[j] - place[0])) > 0.0:
                torque[j] = -place[1] * STOP_STIFFNESS * beyond - STOP_DAMPING * v[j]
            return torque

        return external

    table = Table(
        f"Time until a collision is found, panda, {GAIN:g}/s [ms]",
        ("", "default bounds", "3 Nm, wrist 1 Nm"),
    )
    cases = {f"5 Nm at joint {j + 1}": push(j, 5.0) for j in (0, 3, 5)}
    cases.update({f"20 Nm at joint {j + 1}": push(j, 20.0) for j in (0, 3)})
    cases.update({f"hard stop of joint {j + 1}": hard_stop(j) for j in (0, 3, 5)})
    for name, external in cases.items():
        seen = np.abs(residuals(robot, Case(external=external)))
        times = []
        for thresholds in (BOUND * robot.model.effort_limit, SENSITIVE):
            found = np.flatnonzero((seen > thresholds).any(axis=1))
            times.append(f"{1e3 * (found[0] / RATE - COLLISION):.0f}" if len(found) else "never")
        table.rows.append((name, *times))
    return table


def tables() -> list[Table]:
    """Both."""
    warnings.simplefilter("ignore", RobotModelWarning)
    robot = load_robot("panda")
    return [false_alarms(robot), collisions(robot)]


if __name__ == "__main__":
    show(tables())
