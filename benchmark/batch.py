"""Samples per second of inverse dynamics over a recorded motion: in one call, and in loops."""

from __future__ import annotations

import os
import statistics
import time

import numpy as np
import pinocchio as pin
from benchmark_robots import PANDA_JOINTS, load, urdf_path
from table import Table

from rnea_control.analysis.batch import inverse_dynamics_batch
from rnea_control.dynamics import Workspace, rnea

SAMPLES = 20_000
ROUNDS = 41


def main() -> None:
    for table in tables():
        table.show()


def tables() -> list[Table]:
    """One table of the ways to do it."""
    model = load("panda", PANDA_JOINTS)
    ws = Workspace(model)
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, SAMPLES, model.nv))
    tau = np.zeros((SAMPLES, model.nv))

    peer = pin.buildModelFromUrdf(str(urdf_path("panda")))
    locked = [i for i, joint in enumerate(peer.names) if i and joint not in model.joint_names]
    peer = pin.buildReducedModel(peer, locked, pin.neutral(peer))
    data = peer.createData()

    def loop_over_rnea() -> None:
        for k in range(SAMPLES):
            rnea(model, ws, q[k], v[k], a[k], tau[k])

    def loop_over_pinocchio() -> None:
        for k in range(SAMPLES):
            tau[k] = pin.rnea(peer, data, q[k], v[k], a[k])

    cores = os.cpu_count() or 1
    ways = {
        f"batch, {cores} threads": lambda: inverse_dynamics_batch(model, q, v, a, tau),
        "batch, 1 thread": lambda: inverse_dynamics_batch(model, q, v, a, tau, workers=1),
        "Python loop over rnea": loop_over_rnea,
        "Python loop over pin.rnea": loop_over_pinocchio,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            times[name].append(time.perf_counter() - start)
    rates = {name: SAMPLES / statistics.median(rounds) for name, rounds in times.items()}

    title = f"Inverse dynamics of a recorded motion, panda, {SAMPLES} samples"
    table = Table(title, ("way", "million samples/s", "times pin.rnea"))
    slowest = rates["Python loop over pin.rnea"]
    for name, rate in rates.items():
        table.rows.append((name, f"{1e-6 * rate:.2f}", f"{rate / slowest:.1f}"))
    table.notes.append(f"{cores} CPUs. The batch adds friction and offset, the loops do not.")
    return [table]


if __name__ == "__main__":
    main()
