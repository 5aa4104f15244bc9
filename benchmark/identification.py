"""Identification of the Panda from many samples, and beside FIGAROH on the same ones.

FIGAROH is not among the requirements; without it, its rows are left out.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from benchmark_robots import PANDA_JOINTS, load, pinocchio_model
from measuring import medians
from table import Table, show

from rnea_control.analysis import base_parameters, inverse_dynamics_batch
from rnea_control.identification.identify import identify
from rnea_control.identification.motion import motion_of
from rnea_control.identification.recording import Recording
from rnea_control.identification.torque_equations import TorqueEquations, identified_robot
from rnea_control.model import RobotModel

COUNTS = (100_000, 1_000_000)
RATE = 1000.0
NOISE = 0.02  # standard deviation of the effort noise [effort limits]
PEER_SAMPLES = 5_000  # samples beside the peer, which computes all regressors in a loop of Python
ROUNDS = 5
FAST = 0.1  # velocity far above which the peer's sign and our tanh give the same friction [rad/s]


def tables() -> list[Table]:
    """A table of many samples, and a table beside the peer."""
    found = [_bulk()]
    if importlib.util.find_spec("figaroh") is not None:
        found.append(_beside_figaroh())
    return found


def _robot() -> RobotModel:
    """The Panda with friction, rotors and offsets that its URDF does not have."""
    robot = load("panda", PANDA_JOINTS)
    size = robot.effort_limit
    robot.armature, robot.damping = 0.002 * size, 0.01 * size
    robot.friction, robot.torque_offset = 0.02 * size, 0.005 * size
    return robot


def _recording(samples: int) -> Recording:
    rng = np.random.default_rng(0)
    robot = _robot()
    t = np.arange(samples) / RATE
    q = np.zeros((samples, robot.nv))
    v, a = np.zeros_like(q), np.zeros_like(q)
    for j in range(robot.nv):
        for w in 2.0 * np.pi * rng.uniform(0.05, 0.6, 6):
            size, phase = rng.uniform(0.05, 0.15), rng.uniform(0.0, 2.0 * np.pi)
            q[:, j] += size * np.sin(w * t + phase)
            v[:, j] += size * w * np.cos(w * t + phase)
            a[:, j] -= size * w**2 * np.sin(w * t + phase)
    q += 0.5 * (robot.lower + robot.upper)
    effort = inverse_dynamics_batch(robot, q, v, a)
    effort += NOISE * robot.effort_limit * rng.standard_normal(q.shape)
    return Recording("simulated", robot.joint_names, t, q, effort)


def _bulk() -> Table:
    table = Table(
        "Identification: the Panda's 69 base parameters, and the consistent ones",
        ("samples", "filter and differentiate [s]", "fit [s]", "memory beside the data [MB]"),
    )
    for count in COUNTS:
        # In a process of its own: what was the most memory before does not hide this.
        with get_context("spawn").Pool(1) as process:
            table.rows.append(process.apply(_identified, (count,)))
    table.notes.append(
        "One run each. The fit: diagnosis, delay, weights by each joint's residual, torque ripple "
        "and Stribeck friction, standard deviations, physically consistent parameters of every "
        "link. The data are 7 joints of float64."
    )
    return table


def _identified(count: int) -> tuple[str, ...]:
    """The row of `count` samples."""
    model = load("panda", PANDA_JOINTS)
    identify(model, motion_of(_recording(10_000)))  # compiles
    recording = _recording(count)
    start = time.perf_counter()
    motion = motion_of(recording)
    middle = time.perf_counter()
    before = _most_memory()
    identify(model, motion)
    end = time.perf_counter()
    more = _most_memory() - before
    return f"{count}", f"{middle - start:.2f}", f"{end - middle:.2f}", f"{more:.0f}"


def _most_memory() -> float:
    """The most that this process has had, [MB]; `ru_maxrss` counts its parent's."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) / 1024.0


def _beside_figaroh() -> Table:
    """The same least squares of the same samples: regressor, base parameters, solution."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from figaroh.tools.qrdecomposition import QRDecomposer  # noqa: PLC0415
        from figaroh.tools.regressor import build_regressor_basic  # noqa: PLC0415

    motion = motion_of(_recording(40 * PEER_SAMPLES))
    fast = np.flatnonzero((motion.counts & (np.abs(motion.v) > FAST)).all(axis=1))
    spread = fast[np.linspace(0, len(fast) - 1, PEER_SAMPLES).astype(int)]
    chosen = motion.take([slice(int(k), int(k) + 1) for k in spread])
    assert len(chosen.time) == PEER_SAMPLES
    model = load("panda", PANDA_JOINTS)
    peer = _Peer(pinocchio_model("panda", model))
    settings = {
        "has_friction": True,
        "has_actuator_inertia": True,
        "has_joint_offset": True,
        "is_joint_torques": True,
        "act_idxv": list(range(7)),
    }
    tau = chosen.effort.T.ravel()

    def by_figaroh() -> tuple[np.ndarray, np.ndarray]:
        W = build_regressor_basic(peer, chosen.q, chosen.v, chosen.a, settings)
        kept = np.flatnonzero((W**2).sum(axis=0) >= 1e-6)
        result = QRDecomposer().double_decomposition(tau, W[:, kept], [f"p{k}" for k in kept])
        return np.asarray(result[0]), np.asarray(result[3])

    def by_us() -> np.ndarray:
        base = base_parameters(model)
        equations = TorqueEquations(identified_robot(model), base.independent, chosen)
        information, vector = equations.normal().weighted(np.ones(model.nv))
        return equations.predicted(np.linalg.solve(information, vector))

    W_base, theirs = by_figaroh()
    ours = by_us()
    same = np.linalg.lstsq(W_base, ours.T.ravel(), rcond=None)[0]
    off = float(np.abs(same - theirs).max() / np.abs(theirs).max())
    times = medians({way: (way, ()) for way in (by_us, by_figaroh)}, ROUNDS, 1)
    here, there = 1e-6 * times[by_us], 1e-6 * times[by_figaroh]
    table = Table(
        f"Identification beside FIGAROH: least squares of {len(chosen.time)} samples, Panda",
        ("way", "time [s]", "times FIGAROH"),
    )
    table.rows.append(("rnea_control", f"{here:.3f}", f"{here / there:.3f}"))
    table.rows.append(("FIGAROH", f"{there:.3f}", "1"))
    table.notes.append(
        f"Regressors, base parameters by QR, ordinary least squares; medians of {ROUNDS} rounds. "
        f"FIGAROH's {len(theirs)} base parameters are the same by both, to {off:.0e} of the "
        "largest."
    )
    return table


class _Peer:
    """The interface of a robot for FIGAROH."""

    def __init__(self, model: object) -> None:
        self.model = model
        self.data = model.createData()  # type: ignore[attr-defined]


if __name__ == "__main__":
    show(tables())
