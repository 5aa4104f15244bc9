"""Arms that are not as their URDF says, under computed torque: the model alone, the defaults,
and with a feedback inertia no observer and three of them.

    python benchmark/wrong_arms.py            the table of docs/tuning.md
    python benchmark/wrong_arms.py panda      one arm

The forms get the same torque bound, and commands act a period late:

- momentum: the residual of the momentum, as in control/disturbance_observer.py;
- acceleration: tau - RNEA(q, v, a) with the acceleration by the difference of two velocities,
  through the same filter;
- adaptive: base parameters adapted by the regressor [Slotine, Li 1987].
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "test")]

from benchmark_robots import load  # noqa: E402

from rnea_control.control import Controller, ControllerSettings, Gains, Waypoint  # noqa: E402
from rnea_control.control.observer_margin import Delays, judge  # noqa: E402
from rnea_control.control.settings import SafetySettings  # noqa: E402
from rnea_control.dynamics import Workspace, forward_dynamics, gravity, rnea  # noqa: E402
from rnea_control.dynamics.regressor import inertial_parameters, regressor  # noqa: E402
from rnea_control.model import RobotModel  # noqa: E402
from rnea_control.model.bodies import PARAMETERS  # noqa: E402
from rnea_control.parameters.table import OBSERVER  # noqa: E402

PERIOD = 0.001
SUBSTEPS = 4
DURATION = 6.0
SETTLED = 1.5  # time from which errors count [s]
P = 400.0  # position gain [1/s^2]
D = 40.0  # velocity gain [1/s]
BANDWIDTH = 25.0  # bandwidth of the observers [rad/s]
BOUND = 0.3  # bound of the compensation, as a part of the effort limit
ADAPTATION = 2.0  # gain of the adaptive form, relative to the square of each parameter
ROOM = 4.0  # least effort limit as a multiple of the torque that holds the arm
WITHOUT_LIMIT = 100.0  # effort limit of a joint that has none [Nm] or [N]
ARMS = {  # with the names of their joints
    "panda": r"panda_joint\d",
    "ur5_robot": r".*_joint",
    "ur10_robot": r".*_joint",
    "kinova": r".*",
    "xarm7": r"joint\d",
    "z1": r"joint\d",
    "talos_left_arm": r"arm_left_\d_joint",
    "baxter": r"left_[sew]\d",
    "tiago": r"arm_\d_joint",
    "pr2": r"l_(shoulder|upper|elbow|forearm|wrist).*_joint",
}


@dataclass
class Wrong:
    """How an arm differs from its model.

    Attributes:
        mass: factor of all masses.
        center: displacement of the centers of mass along the axes of the joints' frames [m].
        rotor: inertia of the rotors [kg m^2].
        payload: mass at the last link [kg]; from `grabbed` to `dropped` [s].
        coulomb, breakaway: friction, as a part of the effort limit.
        delay: further periods until a torque acts.
        noise: standard deviation of velocities [rad/s].
        quantum: step of the positions; velocities are their differences, smoothed [rad].
    """

    mass: float = 1.0
    center: float = 0.0
    rotor: float = 0.0
    payload: float = 0.0
    grabbed: float = 0.0
    dropped: float = math.inf
    coulomb: float = 0.0
    breakaway: float = 0.0
    delay: int = 0
    noise: float = 0.0
    quantum: float = 0.0


KINDS = {
    "as the URDF says": Wrong(),
    "masses +10 %, rotors": Wrong(mass=1.1, rotor=0.1),
    "centers 1 cm off": Wrong(center=0.01),
    "load grabbed and dropped": Wrong(payload=1.0, grabbed=2.0, dropped=4.0),
    "rotors": Wrong(rotor=0.3),
    "Coulomb friction 3 %": Wrong(coulomb=0.03),
    "Stribeck friction 3 to 6 %": Wrong(coulomb=0.03, breakaway=0.06),
    "2 ms later": Wrong(delay=2),
    "noise 0.01 rad/s": Wrong(noise=0.01),
    "encoders of 16 bits": Wrong(quantum=2 * math.pi / 2**16),
}
STRIBECK = 0.05  # velocity at which the breakaway torque has decayed [rad/s]


@dataclass
class Case:
    """An arm, and its trajectory."""

    name: str
    model: RobotModel
    limit: np.ndarray = field(init=False)
    start: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.model.damping = self.model.friction = np.zeros(self.model.nv)
        lower = np.maximum(self.model.lower, -2.0)
        upper = np.minimum(self.model.upper, 2.0)
        self.start = 0.6 * lower + 0.4 * upper
        frequencies = 2.0 * np.pi * np.linspace(0.23, 0.45, self.model.nv)
        slow = 0.3 * self.model.velocity_limit / frequencies
        self.amplitude = np.minimum(np.minimum(0.4, slow), 0.3 * (upper - lower))
        # Some URDFs say less than what holds the arm, as it has springs against gravity.
        nv = self.model.nv
        holding = gravity(self.model, Workspace(self.model), self.start, np.zeros(nv))
        self.limit = np.fmax(self.model.effort_limit, ROOM * np.abs(holding))
        self.limit[~np.isfinite(self.limit)] = WITHOUT_LIMIT

    def desired(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sines of 0.23 to 0.45 Hz that begin smoothly."""
        n = self.model.nv
        w = 2.0 * np.pi * np.linspace(0.23, 0.45, n)
        s, ds, dds = 1.0, 0.0, 0.0
        if t < 1.0:
            s = 10 * t**3 - 15 * t**4 + 6 * t**5
            ds = 30 * t**2 - 60 * t**3 + 30 * t**4
            dds = 60 * t - 180 * t**2 + 120 * t**3
        b, db, ddb = np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)
        return (
            self.start + self.amplitude * s * b,
            self.amplitude * (ds * b + s * db),
            self.amplitude * (dds * b + 2 * ds * db + s * ddb),
        )


class Arm:
    """The arm as it is."""

    def __init__(self, case: Case, wrong: Wrong, seed: int = 0) -> None:
        self.case, self.wrong = case, wrong
        self.model = case.model.copy()
        inertias = self.model.bodies[1:, PARAMETERS]
        for row in inertias:  # mass about the body's origin, moved along all axes
            move = row[0] * wrong.center
            row[1:4] += move
        inertias *= wrong.mass
        self.model.armature = self.model.armature + wrong.rotor
        self.loaded = self.model.copy()
        if wrong.payload:
            self.loaded.set_payload(case.model.child_links[-1], wrong.payload, (0.0, 0.0, 0.1))
        self.ws = Workspace(self.model)
        self.q, self.v = case.start.copy(), np.zeros(case.model.nv)
        self.rng = np.random.default_rng(seed)
        self._seen = self.q.copy()
        self._rate = self.v.copy()

    def step(self, t: float, tau: np.ndarray) -> None:
        """Lets a period pass."""
        wrong, dt = self.wrong, PERIOD / SUBSTEPS
        has_load = wrong.payload and wrong.grabbed <= t < wrong.dropped
        model = self.loaded if has_load else self.model
        limit = self.case.limit
        for _ in range(SUBSTEPS):
            level = wrong.coulomb + (wrong.breakaway - wrong.coulomb) * np.exp(
                -((self.v / STRIBECK) ** 2)
            ) * (wrong.breakaway > 0.0)
            rub = level * limit * np.tanh(self.v / 0.005)
            a = forward_dynamics(model, self.ws, self.q, self.v, tau - rub, np.zeros(len(tau)))
            self.v = self.v + dt * a
            self.q = self.q + dt * self.v

    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        q, v = self.q, self.v
        if self.wrong.noise:
            v = v + self.wrong.noise * self.rng.standard_normal(len(v))
        if self.wrong.quantum:
            q = np.round(q / self.wrong.quantum) * self.wrong.quantum
            self._rate += 0.2 * ((q - self._seen) / PERIOD - self._rate)
            self._seen, v = q, self._rate.copy()
        return q, v


class Acceleration:
    """Disturbance by the difference of velocities."""

    def __init__(self, case: Case) -> None:
        self.model, self.ws = case.model, Workspace(case.model)
        self.estimate, self.last = np.zeros(case.model.nv), None
        self.bound = BOUND * case.limit

    def torque(self, q, v, acted, desired) -> np.ndarray:
        if self.last is not None:
            a = (v - self.last) / PERIOD
            seen = rnea(self.model, self.ws, q, 0.5 * (v + self.last), a, np.zeros(len(q))) - acted
            self.estimate += -math.expm1(-BANDWIDTH * PERIOD) * (seen - self.estimate)
        self.last = v.copy()
        return -np.clip(self.estimate, -self.bound, self.bound)


class Adaptive:
    """Parameters that are adapted by the regressor at the desired motion."""

    def __init__(self, case: Case) -> None:
        self.model, self.ws = case.model, Workspace(case.model)
        phi = inertial_parameters(case.model)
        scale, inertias, n = np.abs(phi), len(phi) - 4 * case.model.nv, case.model.nv
        scale[:inertias] += 0.02 * np.repeat(scale[:inertias:10], 10)
        scale[inertias : inertias + n] = 0.1
        scale[inertias + n :] = 0.02 * np.tile(case.limit, 3)
        self.gain = ADAPTATION * scale**2
        self.change, self.Y = np.zeros(len(phi)), np.zeros((case.model.nv, len(phi)))
        self.bound = BOUND * case.limit

    def torque(self, q, v, acted, desired) -> np.ndarray:
        q_d, v_d, a_d = desired
        Y = regressor(self.model, self.ws, q, v_d, a_d, self.Y)
        s = (v_d - v) + 0.5 * D * (q_d - q)
        self.change += PERIOD * self.gain * (Y.T @ s)
        return np.clip(Y @ self.change, -self.bound, self.bound)


FORMS: dict[str, Callable[[Case], object] | None] = {
    "model alone": None,
    "defaults": None,
    "none": None,
    "momentum": None,
    "acceleration": Acceleration,
    "adaptive": Adaptive,
}


def run(case: Case, wrong: Wrong, form: str, feedback_inertia: float) -> tuple[float, float]:
    """RMS of the position errors [mrad], infinite for an arm that is lost, and mean change of the
    torque in a tick [Nm]. The `feedback_inertia` [kg m^2] is that of the last four forms."""
    model, n = case.model, case.model.nv
    safety = replace(SafetySettings.none(n), effort_limit=case.limit)
    zero, told = np.zeros(n), {"model alone": 0.0, "defaults": math.nan}
    settings = ControllerSettings(
        Gains(np.full(n, P), np.full(n, D), zero, zero, zero),
        safety=safety,
        feedback_inertia=np.full(n, told.get(form, feedback_inertia)),
        dead_time=PERIOD,
        more={OBSERVER: math.nan if form == "defaults" else 0.0},
    )
    controller = Controller(model, settings)
    if form == "momentum":
        controller.rows.bandwidth = BANDWIDTH
    elif form == "defaults":  # as the supervisor decides them
        found = judge(model, settings, Delays(PERIOD, PERIOD, PERIOD))
        controller.rows.added_inertia = found.added_inertia
        controller.rows.bandwidth = found.bandwidth
    kind = FORMS[form]
    observer = kind(case) if kind else None
    arm = Arm(case, wrong)
    controller.start(0.0, case.start)
    controller.watch = 1
    times = np.arange(0.0, DURATION + 0.3, 0.02)
    points = [Waypoint(t, *case.desired(t)) for t in times[1:]]
    points.append(Waypoint(times[-1] + 2.0, case.start, zero, zero))
    controller.follow(0.0, points, 0.0)
    waiting = [gravity(model, Workspace(model), case.start, np.zeros(n))] * (2 + wrong.delay)
    errors, changes, tau = [], [], np.zeros(n)
    for k in range(round(DURATION / PERIOD)):
        t = k * PERIOD
        q, v = arm.measured()
        controller.step(t, q, v, tau)
        sent = tau.copy()
        if observer is not None:
            compensation = observer.torque(q, v, waiting[1], case.desired(t))
            sent = np.clip(tau + compensation, -case.limit, case.limit)
            controller.rows.command[:] = sent
        changes.append(np.abs(sent - waiting[-1]).mean())
        waiting = [*waiting[1:], sent]
        arm.step(t, waiting[0])
        if not np.abs(arm.q).max() < 20.0:
            return math.inf, math.inf
        if t >= SETTLED:
            errors.append(case.desired(t + PERIOD)[0] - arm.q)
    return 1e3 * float(np.sqrt(np.mean(np.square(errors)))), float(np.mean(changes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arms", nargs="*", default=list(ARMS))
    parser.add_argument("--feedback-inertia", type=float, default=0.1, help="of the last four")
    given = parser.parse_args()
    for name in given.arms:
        joints = [each for each in load(name).joint_names if re.fullmatch(ARMS[name], each)]
        case = Case(name, load(name, joints))
        print(f"{name}: {case.model.nv} joints; {', '.join(FORMS)}", flush=True)
        for words, wrong in KINDS.items():
            cells = [run(case, wrong, form, given.feedback_inertia) for form in FORMS]
            text = "  ".join(f"{rms:8.3f} ({change:.3f})" for rms, change in cells)
            print(f"  {words:28} {text}", flush=True)


if __name__ == "__main__":
    main()
