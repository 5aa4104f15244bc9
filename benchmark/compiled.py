"""Compiled robots: how long it takes to compile them, alone against `pin.rnea`, and in bulk."""

from __future__ import annotations

import os
import time

import numpy as np
import pinocchio as pin
from benchmark_robots import PANDA_JOINTS, load, pinocchio_model
from measuring import medians
from table import Table, show

from rnea_control.compiled import Order, compile_robot
from rnea_control.compiled.machine_code import assembled, assembly, lanes
from rnea_control.compiled.programs import Program, trace
from rnea_control.dynamics import Workspace, rnea

ROBOTS = {"ur5_robot": None, "panda": PANDA_JOINTS, "talos_reduced": None}
NUMBERS = 14_000_000  # numbers in an array of many samples
FEWER = 2_000  # samples of a loop in Python
ROUNDS = 21


def tables() -> list[Table]:
    """Tables of the compilation, of one sample a call, and of many samples a call."""
    return [_compilation(), _alone(), _bulk()]


def _compilation() -> Table:
    table = Table(
        "Compiled robots: what rnea becomes",
        (
            "robot, joints",
            "multiplications",
            "additions",
            "both with base parameters",
            "trace [ms]",
            "compile [ms]",
            "bulk [ms]",
        ),
    )
    for name, joints in ROBOTS.items():
        model = load(name, joints)
        start = time.perf_counter()
        program = trace("rnea", model)
        traced = time.perf_counter() - start
        counts = _counts(program)
        base = ", ".join(map(str, _counts(trace("rnea", model, base_parameters=True))))
        times = [traced]
        for order in (None, Order.sample_major):
            start = time.perf_counter()
            assembled(str(assembly(program, order)))
            times.append(time.perf_counter() - start)
        milliseconds = (f"{1e3 * each:.0f}" for each in times)
        table.rows.append((f"{name}, {model.nv}", *map(str, counts), base, *milliseconds))
    table.notes.append("Sines and cosines, one of each a joint, are not counted.")
    return table


def _counts(program: Program) -> tuple[int, int]:
    names = [program.graph.operations[index].name for index in program.order]
    products = sum(name in ("multiply", "divide") for name in names)
    return products, sum(name in ("add", "subtract") for name in names)


def _alone() -> Table:
    table = Table(
        "Compiled robots: rnea, one call [us]",
        (
            "robot, joints",
            "compiled",
            "bound arrays",
            "and base parameters",
            "loop kernel",
            "pin",
            "parts of pin",
        ),
    )
    for name, joints in ROBOTS.items():
        model = load(name, joints)
        robot, ws, rng = compile_robot(model), Workspace(model), np.random.default_rng(0)
        q, tau = model.random(rng), np.zeros(model.nv)
        v, a = rng.uniform(-1.0, 1.0, (2, model.nv))
        regrouped = compile_robot(model, base_parameters=True)
        peer = pinocchio_model(name, model)
        data = peer.createData()
        times = medians(
            {
                "compiled": (robot.rnea, (q, v, a, tau)),
                "bound": (robot.bind("rnea", q, v, a, tau), ()),
                "base": (regrouped.bind("rnea", q, v, a, tau), ()),
                "loop": (rnea, (model, ws, q, v, a, tau)),
                "pin": (pin.rnea, (peer, data, pin.neutral(peer), v, a)),
            }
        )
        ours = (times[way] / times["pin"] for way in ("compiled", "bound", "base"))
        part = ", ".join(f"{each:.2f}" for each in ours)
        table.rows.append(
            (f"{name}, {model.nv}", *(f"{each:.3f}" for each in times.values()), part)
        )
    return table


def _bulk() -> Table:
    cores = os.cpu_count() or 1
    table = Table(
        "Compiled robots: rnea in bulk [million samples/s]",
        (
            "robot, joints",
            "(N, nv), 1 thread",
            f"(N, nv), {cores} threads",
            "(nv, N), 1 thread",
            f"(nv, N), {cores} threads",
            "Python loop over pin.rnea",
            "times pin",
        ),
    )
    for name, joints in ROBOTS.items():
        model = load(name, joints)
        robot, rng = compile_robot(model), np.random.default_rng(0)
        count = NUMBERS // model.nv // 100 * 100
        q = np.array([model.random(rng) for _ in range(100)]).repeat(count // 100, axis=0)
        v, a = rng.uniform(-1.0, 1.0, (2, count, model.nv))
        turned = [np.ascontiguousarray(each.T) for each in (q, v, a)]
        out, out_turned = np.empty((count, model.nv)), np.empty((model.nv, count))
        peer = pinocchio_model(name, model)
        data, neutral = peer.createData(), pin.neutral(peer)

        def loop_over_pinocchio(peer=peer, data=data, neutral=neutral, v=v, a=a) -> None:
            for k in range(FEWER):
                pin.rnea(peer, data, neutral, v[k], a[k])

        def in_rows(workers: int, robot=robot, arrays=(q, v, a), out=out) -> None:
            robot.batch("rnea", *arrays, out=out, workers=workers)

        def in_columns(workers: int, robot=robot, arrays=turned, out=out_turned) -> None:
            robot.batch("rnea", *arrays, out=out, order=Order.entry_major, workers=workers)

        ways = (
            lambda run=in_rows: run(1),
            lambda run=in_rows: run(cores),
            lambda run=in_columns: run(1),
            lambda run=in_columns: run(cores),
            loop_over_pinocchio,
        )
        counts = (*[count] * 4, FEWER)
        times = medians({k: (way, ()) for k, way in enumerate(ways)}, ROUNDS, 1)
        rates = [n / times[k] for k, n in enumerate(counts)]
        table.rows.append(
            (
                f"{name}, {model.nv}",
                *(f"{rate:.2f}" for rate in rates),
                f"{max(rates[:4]) / rates[4]:.0f}",
            )
        )
    table.notes.append(
        f"{lanes()} samples at a time; {NUMBERS} numbers in an array, as of two million samples of "
        "the panda."
    )
    return table


if __name__ == "__main__":
    show(tables())
