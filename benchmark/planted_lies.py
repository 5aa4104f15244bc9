"""Recordings with wrong efforts ("lies"): checks that the right cause is first and that `fit`
refuses them. Correct ("honest") recordings must raise no doubt.

Each robot has masses, friction, rotors and offsets that its URDF does not have, and noise.
`python benchmark/planted_lies.py [ROBOT]` prints Markdown tables.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from benchmark_robots import load
from table import Table

from rnea_control.analysis import inertial_parameters, inverse_dynamics_batch
from rnea_control.exceptions import RneaControlError
from rnea_control.identification.consistent_parameters import parameters_in_body
from rnea_control.identification.diagnosis import diagnose
from rnea_control.identification.identify import Identification, identify
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording
from rnea_control.identification.torque_equations import TorqueEquations, identified_robot
from rnea_control.identification.verdict import Residuals, is_better, residuals_of
from rnea_control.model import RobotModel, RobotModelWarning
from rnea_control.model.bodies import INERTIA
from rnea_control.model.rigid_body import ten_parameters

SECONDS = 25.0  # length of a recording [s]
HELD_OUT = 0.2  # share of a recording that is not fitted
RATES = (100.0, 500.0)  # states a second [Hz]
NOISE = 0.005  # standard deviation of the effort noise [effort limits]
ENCODER = 1e-5  # standard deviation of the position noise [rad]
SLOW = 0.002  # amplitude of slow effort noise [effort limits]
HONEST = 20  # number of correct recordings

ARM = """<robot name="arm">{links}{joints}</robot>"""
LINK = (
    '<link name="{0}"><inertial><mass value="{1}"/><origin xyz="{2} 0 0.02"/>'
    '<inertia ixx="{3}" iyy="{4}" izz="{4}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
)
JOINT = (
    '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/>'
    '<origin xyz="{3} 0 0.1"/><axis xyz="{4}"/>'
    '<limit lower="-2.5" upper="2.5" effort="{5}" velocity="2.5"/></joint>'
)


def three_axes() -> RobotModel:
    """A light arm that turns, lifts and bends."""
    links = [LINK.format(*row) for row in (
        ("base", 1.0, 0.0, 0.01, 0.01), ("turn", 2.0, 0.02, 0.01, 0.012),
        ("upper", 2.0, 0.2, 0.004, 0.03), ("lower", 1.0, 0.17, 0.002, 0.015),
    )]  # fmt: skip
    joints = [JOINT.format(*row) for row in (
        ("yaw", "base", "turn", 0.0, "0 0 1", 20.0),
        ("shoulder", "turn", "upper", 0.0, "0 1 0", 25.0),
        ("elbow", "upper", "lower", 0.4, "0 1 0", 10.0),
    )]  # fmt: skip
    return RobotModel.from_urdf_string(ARM.format(links="".join(links), joints="".join(joints)))


ROBOTS: dict[str, Callable[[], RobotModel]] = {
    "3R arm": three_axes,
    "UR10": lambda: load("ur10_robot"),
    "geared UR10": lambda: load("ur10_robot"),
    "xArm7": lambda: load("xarm7", [f"joint{i}" for i in range(1, 8)]),
}
# Friction, damping and rotors of these joints are those of a real UR10e, as parts of the effort
# limits: the wrist feels friction and hardly any mass.
GEARED = {"geared UR10": (0.06, 0.055, 0.015)}


@dataclass(frozen=True, eq=False)
class Moved(Recording):
    """A recording whose velocities are known, shape (samples, joints), [rad/s]."""

    v: np.ndarray = field(kw_only=True)


@dataclass
class Case:
    """A robot as it is described, as it is, and what was measured of it."""

    described: RobotModel
    robot: RobotModel
    measured: Moved
    rng: np.random.Generator


def hidden(model: RobotModel, rng: np.random.Generator) -> RobotModel:
    """The robot as it may be: masses up to a fifth off, centers of mass, and actuators."""
    robot = copy.deepcopy(model)
    for row in robot.bodies[1:]:
        row[INERTIA : INERTIA + 10] *= rng.uniform(0.8, 1.2)
    size = robot.effort_limit
    robot.armature = rng.uniform(0.001, 0.004, model.nv) * size
    robot.damping = rng.uniform(0.005, 0.02, model.nv) * size
    robot.friction = rng.uniform(0.005, 0.04, model.nv) * size
    robot.torque_offset = rng.uniform(-0.01, 0.01, model.nv) * size
    return robot


def moved(model: RobotModel, rate: float, rng: np.random.Generator) -> Moved:
    """A motion of the joints, within their limits; efforts are 0."""
    t = np.arange(0.0, SECONDS, 1.0 / rate)
    w = 2.0 * np.pi / 10.0 * np.arange(1, 6)[:, None, None]
    sines, cosines = rng.standard_normal((2, 5, 1, model.nv)) / np.arange(1, 6)[:, None, None]
    q = (sines * np.sin(w * t[:, None]) + cosines * np.cos(w * t[:, None])).sum(axis=0)
    v = (w * (sines * np.cos(w * t[:, None]) - cosines * np.sin(w * t[:, None]))).sum(axis=0)
    reach = np.minimum(model.upper, np.pi) - np.maximum(model.lower, -np.pi)
    speed = 0.5 * np.minimum(model.velocity_limit, 3.0)
    size = np.minimum(0.8 * reach / np.ptp(q, axis=0), speed / np.abs(v).max(axis=0))
    middle = 0.5 * (np.minimum(model.upper, np.pi) + np.maximum(model.lower, -np.pi))
    q = middle + size * (q - 0.5 * (q.max(axis=0) + q.min(axis=0)))
    return Moved("planted", model.joint_names, t, q, 0.0 * q, v=size * v)


def torques(robot: RobotModel, motion: Moved, delay: float = 0.0) -> np.ndarray:
    """The robot's torques along a motion."""
    period = motion.time[1] - motion.time[0]
    a = np.gradient(motion.v, period, axis=0)
    tau = inverse_dynamics_batch(robot, motion.q, motion.v, a)
    if not delay:
        return tau
    t = motion.time
    return np.stack([np.interp(t - delay, t, column) for column in tau.T], axis=1)


def measured(case: Case, tau: np.ndarray) -> Moved:
    """Recording of these torques with white and slow noise."""
    size, rng, t = case.robot.effort_limit, case.rng, case.measured.time
    waves = np.zeros_like(tau)
    for frequency in rng.uniform(0.3, 3.0, 12):
        phase = rng.uniform(0.0, 2.0 * np.pi, tau.shape[1])
        waves += np.sin(2.0 * np.pi * frequency * t[:, None] + phase) / np.sqrt(6.0)
    noise = NOISE * rng.standard_normal(tau.shape) + SLOW * waves
    q = case.measured.q + ENCODER * rng.standard_normal(tau.shape)
    return replace(case.measured, q=q, effort=tau + noise * size)


def case_of(name: str, rate: float, seed: int, delay: float = 0.0) -> Case:
    """An honest recording."""
    rng = np.random.default_rng(seed)
    model = ROBOTS[name]()
    robot = hidden(model, rng)
    if name in GEARED:
        sizes = np.outer(GEARED[name], model.effort_limit)
        robot.friction, robot.damping, robot.armature = sizes
    case = Case(model, robot, moved(model, rate, rng), rng)
    return replace(case, measured=measured(case, torques(case.robot, case.measured, delay)))


def efforts(case: Case, values: np.ndarray) -> Case:
    """The case with other efforts."""
    return replace(case, measured=replace(case.measured, effort=values))


def with_gravity(case: Case, gravity: tuple[float, ...]) -> Case:
    robot = copy.deepcopy(case.robot)
    robot.gravity = gravity
    return replace(case, robot=robot, measured=measured(case, torques(robot, case.measured)))


def placeholder(case: Case) -> Case:
    case.described.damping = np.full(case.described.nv, 10.0)
    return case


def scaled(case: Case, *factors: float) -> Case:
    pattern = np.resize(factors, case.described.nv)
    return efforts(case, case.measured.effort * pattern)


def exchanged(case: Case, *joints: int) -> Case:
    order = np.arange(case.described.nv)
    order[list(joints)] = np.roll(joints, 1)
    return efforts(case, case.measured.effort[:, order])


def one(case: Case, joint: int, factor: float) -> Case:
    return scaled(case, *(factor if j == joint else 1.0 for j in range(case.described.nv)))


def known(case: Case, change: Callable[[RobotModel], None], of_described: bool = False) -> Case:
    """One thing alone is other than described."""
    described, robot = copy.deepcopy(case.robot), copy.deepcopy(case.robot)
    change(described if of_described else robot)
    return replace(
        case,
        described=described,
        robot=robot,
        measured=measured(case, torques(robot, case.measured)),
    )


def load_of(robot: RobotModel) -> None:
    weight = 0.03 * robot.effort_limit[1]
    robot.set_payload(robot.child_links[-1], weight / 9.81 / 0.3, (0.0, 0.03, 0.08))


def heavy(robot: RobotModel) -> None:
    for row in robot.bodies[2:4]:
        row[INERTIA : INERTIA + 10] *= 1.6


def clipped(case: Case) -> Case:
    limit = 0.5 * np.abs(case.measured.effort).max(axis=0)
    return efforts(case, np.clip(case.measured.effort, -limit, limit))


def rounded(case: Case) -> Case:
    step = np.std(case.measured.effort, axis=0)
    return efforts(case, step * np.round(case.measured.effort / step))


def other_clock(case: Case) -> Case:
    t = case.measured.time
    later = t - 0.1 * (t / t[-1])
    columns = case.measured.effort.T
    return efforts(case, np.stack([np.interp(later, t, column) for column in columns], axis=1))


def of_other_motion(case: Case) -> Case:
    other = moved(case.robot, 1.0 / case.measured.time[1], np.random.default_rng(99))
    return efforts(case, measured(case, torques(case.robot, other)).effort)


def set_friction(robot: RobotModel) -> None:
    robot.friction, robot.damping = 3.0 * robot.friction, 5.0 * robot.damping


def set_rotors(robot: RobotModel) -> None:
    robot.armature = 0.02 * robot.effort_limit


def set_offsets(robot: RobotModel) -> None:
    robot.torque_offset = 0.08 * robot.effort_limit * (-1.0) ** np.arange(robot.nv)


def weak(case: Case) -> Case:
    largest = np.quantile(np.abs(case.measured.effort), 0.9, axis=0)
    case.described.effort_limit = np.where(np.arange(len(largest)) == 1, 0.7 * largest, np.inf)
    return case


G = 9.81
# Name, the cause that must be first, and what is planted.
LIES: tuple[tuple[str, str, Callable[[Case], Case]], ...] = (
    ("gravity is not in the efforts", "gravity", lambda c: with_gravity(c, (0, 0, 0))),
    ("the same, URDF with damping 10", "gravity",
     lambda c: placeholder(with_gravity(c, (0, 0, 0)))),
    ("gravity upside down", "gravity", lambda c: with_gravity(c, (0, 0, G))),
    ("gravity along a wall", "gravity", lambda c: with_gravity(c, (G, 0, 0))),
    ("gravity tilted by 30 degrees", "gravity",
     lambda c: with_gravity(c, (0.5 * G, 0, -0.866 * G))),
    ("half of gravity compensated", "gravity", lambda c: with_gravity(c, (0, 0, -0.5 * G))),
    ("efforts times 4", "unit", lambda c: scaled(c, 4.0)),
    ("efforts times 10", "unit", lambda c: scaled(c, 10.0)),
    ("efforts in Nmm", "unit", lambda c: scaled(c, 1e3)),
    ("motor currents", "unit", lambda c: scaled(c, 0.02, 0.05, 0.1)),
    ("motor currents, damping 10", "unit", lambda c: placeholder(scaled(c, 0.02, 0.05, 0.1))),
    ("one joint times 1.3", "unit", lambda c: one(c, 1, 1.3)),
    ("one joint without its gear ratio", "unit", lambda c: one(c, 1, 0.01)),
    ("two joints exchanged", "exchange", lambda c: exchanged(c, 1, 2)),
    ("the first and the last exchanged", "exchange",
     lambda c: exchanged(c, 0, c.described.nv - 1)),
    ("three joints in turn", "exchange", lambda c: exchanged(c, 0, 1, 2)),
    ("sign of one joint", "sign", lambda c: one(c, 1, -1.0)),
    ("sign of the first joint", "sign", lambda c: one(c, 0, -1.0)),
    ("sign of all joints", "sign", lambda c: scaled(c, -1.0)),
    ("efforts clipped at half", "clipping", clipped),
    ("efforts in steps of their size", "rounding", rounded),
    ("a clock that differs by 100 ms in the end", "clock", other_clock),
    ("efforts of another motion", "unknown", of_other_motion),
    ("efforts beyond the limit of one joint", "limit", weak),
    ("friction of the model too little", "friction", lambda c: known(c, set_friction)),
    ("friction of the model too much", "friction", lambda c: known(c, set_friction, True)),
    ("rotors unknown", "rotor", lambda c: known(c, set_rotors)),
    ("offsets unknown", "offset", lambda c: known(c, set_offsets)),
    ("a load that is not declared", "payload", lambda c: known(c, load_of)),
    ("a load that is not there", "payload", lambda c: known(c, load_of, True)),
    ("two links heavier by 60 %", "masses", lambda c: known(c, heavy)),
    ("efforts 60 ms late", "delay",
     lambda c: efforts(known(c, lambda r: None), torques(c.robot, c.measured, 0.06))),
)  # fmt: skip
# Causes that the fit corrects: its parameters are then those of the robot.
FITTED = {"friction", "rotor", "offset", "payload", "masses", "delay"}


@dataclass
class Result:
    """First cause, whether fit exits with 0, and the torque errors of URDF and fit on an honest
    motion, in units of the noise."""

    first: str
    words: str
    exits_0: bool
    before: float
    after: float


def judged(case: Case, robot: RobotModel) -> Result:
    """Result of diagnosis and fit, and torque errors on a motion of the true robot."""
    model, motion = case.described, motion_of(case.measured)
    rng = np.random.default_rng(99)
    honest = Case(model, robot, moved(model, RATES[0], rng), rng)
    fitted, kept = motion.split(HELD_OUT)
    diagnosis = diagnose(model, motion)
    causes = diagnosis.contributions
    first, words = (causes[0].cause.name, causes[0].sentence) if causes else ("none", "")
    try:
        found = identify(model, fitted)
    except RneaControlError as refusal:
        return Result(first, f"{words} [{refusal}]", False, np.nan, np.nan)
    held_out = kept.delayed(found.delay)
    own = replace(residuals_of(model, model, held_out, True), after=predicted(found, held_out))
    other = motion_of(measured(honest, torques(robot, honest.measured)))
    true = replace(residuals_of(model, model, other, True), after=predicted(found, other))
    errors = [error(true, each) for each in (true.before, true.after)]
    return Result(first, words, not found.doubts and is_better(model, [own]), *errors)


def predicted(found: Identification, motion) -> np.ndarray:
    """Torques by the consistent parameters; what the model has beside its links stays."""
    model = found.model
    phi = inertial_parameters(model).copy()
    for link, matrix in found.inertias.items():
        body, to_body = parameters_in_body(model, link)
        change = ten_parameters(matrix - model.link_inertias[link])
        phi[10 * body : 10 * body + 10] += to_body @ change
    rows = [found.armature, found.damping, found.friction, found.torque_offset]
    phi[-4 * model.nv :] = np.concatenate(rows)
    tau = TorqueEquations(identified_robot(model), np.arange(len(phi)), motion).predicted(phi)
    return np.where(motion.counts, tau, np.nan)


def error(residuals: Residuals, torque: np.ndarray) -> float:
    """RMS over all joints, in units of the noise."""
    return float(np.sqrt(np.nanmean(((residuals.measured - torque) / residuals.noise) ** 2)))


def of_lies(robots: list[str]) -> Table:
    """Every lie on every robot at every rate."""
    table = Table(
        "Planted lies",
        ("lie", "first cause must be", "right", "fit exits 0", "of these worse than the URDF"),
    )
    totals = np.zeros(4, int)
    for name, cause, plant in LIES:
        counts = np.zeros(4, int)
        for robot in robots:
            for k, rate in enumerate(RATES):
                case = case_of(robot, rate, 3 + k)
                planted = plant(copy.deepcopy(case))
                result = judged(planted, planted.robot if cause in FITTED else case.robot)
                right = result.first == cause
                zero = result.exits_0 and cause not in FITTED
                worse = zero and result.after > result.before
                counts += right, result.exits_0, worse, 1
                if not right or result.exits_0 != (cause in FITTED):
                    tell(f"{name}; {robot}, {rate:g} Hz", result)
        right, zero, worse, count = counts
        totals += counts
        table.rows.append((name, cause, f"{right} of {count}", f"{zero}", f"{worse}"))
    table.rows.append(("all", "", f"{totals[0]} of {totals[3]}", f"{totals[1]}", f"{totals[2]}"))
    return table


def of_honest(robots: list[str]) -> Table:
    """Robots that differ from their URDFs in what a fit finds."""
    table = Table("Honest recordings", ("robot", "doubts", "fit exits 0"))
    for robot in robots:
        doubts = zeros = 0
        for seed in range(HONEST):
            case = case_of(robot, RATES[seed % 2], 100 + seed, 0.002 * (seed % 4))
            result = judged(case, case.robot)
            wrong = result.first not in (*FITTED, "none")
            doubts, zeros = doubts + wrong, zeros + result.exits_0
            if wrong or not result.exits_0:
                tell(f"honest {seed}; {robot}", result)
        table.rows.append((robot, f"{doubts} of {HONEST}", f"{zeros} of {HONEST}"))
    return table


def tell(what: str, result: Result) -> None:
    """Says at once what went wrong."""
    numbers = f"exits 0: {result.exits_0}, error {result.before:.2f} -> {result.after:.2f}"
    print(f"{what}: {result.first}; {numbers}; {result.words}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", RobotModelWarning)
    names = sys.argv[1:] or list(ROBOTS)
    for table in (of_lies(names), of_honest(names)):
        print(table.markdown())
