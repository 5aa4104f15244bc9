"""Samples per second of inverse dynamics over a recorded motion: in one call, and in loops."""

from __future__ import annotations

import os

import numpy as np
import pinocchio as pin
from benchmark_robots import PANDA_JOINTS, load, pinocchio_model
from measuring import medians
from table import Table, show

from rnea_control.analysis.batch import inverse_dynamics_batch
from rnea_control.dynamics import Workspace, rnea

SAMPLES = 20_000


def tables() -> list[Table]:
    """One table of the ways to do it."""
    model = load("panda", PANDA_JOINTS)
    ws = Workspace(model)
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, SAMPLES, model.nv))
    tau = np.zeros((SAMPLES, model.nv))

    peer = pinocchio_model("panda", model)
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
    times = medians({name: (way, ()) for name, way in ways.items()}, calls_a_round=1)
    rates = {name: SAMPLES / time for name, time in times.items()}

    title = f"Inverse dynamics of a recorded motion, panda, {SAMPLES} samples"
    table = Table(title, ("way", "million samples/s", "times pin.rnea"))
    slowest = rates["Python loop over pin.rnea"]
    for name, rate in rates.items():
        table.rows.append((name, f"{rate:.2f}", f"{rate / slowest:.1f}"))
    table.notes.append(f"{cores} CPUs. The batch adds friction and offset, the loops do not.")
    return [table]


if __name__ == "__main__":
    show(tables())
