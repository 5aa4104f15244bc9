"""Inverse dynamics of many samples on the Panda, by compiled code and by other libraries.

Without arguments it shows the table; with the path of a PNG it draws it too. Libraries that are not
installed are left out: mujoco-mjx, with jax, is not among the requirements.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
import pinocchio as pin
from benchmark_robots import PANDA_JOINTS, dynibo_robot, load, pinocchio_model, urdf_path
from measuring import medians
from table import Table

from rnea_control.compiled import Order, compile_robot
from rnea_control.dynamics import Workspace, rnea
from rnea_control.model import RobotModel
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, urdf_for_mujoco

SAMPLES = 200_000
FEWER = 10_000  # samples of loops in Python and of JAX
ROUNDS = 15
CORES = os.cpu_count() or 1


@dataclass
class Way:
    """A way to compute the torques of `samples` samples; `first` gives those of the first one."""

    name: str
    run: Callable[[], object]
    samples: int
    first: Callable[[], np.ndarray]


def main() -> None:
    (table,) = tables()
    table.show()
    if len(sys.argv) > 1:
        draw(table, sys.argv[1])


def tables() -> list[Table]:
    """Samples per second of each way, in one process, by turns."""
    model = load("panda", PANDA_JOINTS)
    q, v, a = np.random.default_rng(0).uniform(-1.0, 1.0, (3, SAMPLES, model.nv))
    expected = np.zeros(model.nv)
    rnea(model, Workspace(model), q[0], v[0], a[0], expected)
    ways = [*_ours(model, q, v, a), *_pinocchio(model, q, v, a), _mujoco(model, q, v, a)]
    ways.append(_dynibo(model, q, v, a))
    with_jax = importlib.util.find_spec("mujoco.mjx") is not None
    if with_jax:
        ways.append(_mjx(model, q, v, a))
    times = medians({way.name: (way.run, ()) for way in ways}, ROUNDS, 1)
    rates = {way.name: way.samples / times[way.name] for way in ways}
    table = Table(
        f"Compiled robots: rnea of the Panda, {model.nv} joints, against others",
        ("way", "million samples/s", f"times {ONE_THREAD}", "off [Nm]"),
    )
    for way in ways:
        rate, part = rates[way.name], rates[way.name] / rates[ONE_THREAD]
        off = np.abs(np.asarray(way.first(), dtype=float) - expected).max()
        table.rows.append((way.name, f"{rate:.3g}", f"{part:.2g}", f"{off:.0e}"))
    table.notes.append(
        f"{SAMPLES} samples in a call, {FEWER} by loops in Python and by JAX; medians of {ROUNDS} "
        "rounds. Off: from the loop kernel, at the first sample."
    )
    if not with_jax:
        table.notes.append("Not installed: mujoco-mjx.")
    return [table]


ONE_THREAD = "pin.rneaInParallel, 1 thread"


def _ours(model: RobotModel, q, v, a) -> list[Way]:
    ways = []
    for text, base, dtype, order, workers in (
        ("(N, nv), 1 thread", False, np.float64, Order.sample_major, 1),
        (f"(N, nv), {CORES} threads", False, np.float64, Order.sample_major, CORES),
        ("(nv, N), 1 thread", False, np.float64, Order.entry_major, 1),
        ("(nv, N), 1 thread, base parameters", True, np.float64, Order.entry_major, 1),
        (f"(nv, N), {CORES} threads, base parameters", True, np.float64, Order.entry_major, CORES),
        ("(nv, N), 1 thread, float32", False, np.float32, Order.entry_major, 1),
        (f"(nv, N), {CORES} threads, float32", False, np.float32, Order.entry_major, CORES),
    ):
        robot = compile_robot(model, base_parameters=base)
        turned = order is Order.entry_major
        arrays = [np.ascontiguousarray(each.T if turned else each, dtype) for each in (q, v, a)]
        out = np.empty_like(arrays[0])

        def run(robot=robot, arrays=arrays, out=out, order=order, workers=workers) -> None:
            robot.batch("rnea", *arrays, out=out, order=order, workers=workers)

        run()
        first = (lambda out=out: out[:, 0]) if turned else (lambda out=out: out[0])
        ways.append(Way(f"compiled, {text}", run, SAMPLES, first))
    return ways


def _pinocchio(model: RobotModel, q, v, a) -> list[Way]:
    peer = pinocchio_model("panda", model)
    data, out = peer.createData(), np.zeros((FEWER, model.nv))

    def loop() -> None:
        for k in range(FEWER):
            out[k] = pin.rnea(peer, data, q[k], v[k], a[k])

    ways = [Way("pin.rnea, loop in Python", loop, FEWER, lambda: out[0])]
    columns = [np.asfortranarray(each.T) for each in (q, v, a)]
    tau = np.zeros((model.nv, SAMPLES), order="F")
    for workers in sorted({1, CORES}):
        pool = pin.ModelPool(peer, workers)

        def in_parallel(workers: int = workers, pool: pin.ModelPool = pool) -> None:
            pin.rneaInParallel(workers, pool, *columns, tau)

        plural = "s" if workers > 1 else ""
        name = f"pin.rneaInParallel, {workers} thread{plural}"
        ways.append(Way(name, in_parallel, SAMPLES, lambda: tau[:, 0]))
    return ways


def _mujoco_model(model: RobotModel) -> mujoco.MjModel:
    xml = urdf_for_mujoco(urdf_path("panda").read_bytes(), model, ModelErrors())
    peer = mujoco.MjModel.from_xml_string(xml)
    peer.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return peer


def _mujoco(model: RobotModel, q, v, a) -> Way:
    peer = _mujoco_model(model)
    data, out = mujoco.MjData(peer), np.zeros((FEWER, model.nv))

    def loop() -> None:
        for k in range(FEWER):
            data.qpos[:], data.qvel[:], data.qacc[:] = q[k], v[k], a[k]
            mujoco.mj_inverse(peer, data)
            out[k] = data.qfrc_inverse

    return Way("mujoco.mj_inverse, loop in Python", loop, FEWER, lambda: out[0])


def _dynibo(model: RobotModel, q, v, a) -> Way:
    peer = dynibo_robot("panda", model.joint_names)
    assert peer is not None
    out = np.zeros((FEWER, model.nv))

    def loop() -> None:
        for k in range(FEWER):
            out[k] = peer.inverse_dynamics(q[k], v[k], a[k])

    return Way("dynibo, loop in Python", loop, FEWER, lambda: out[0])


def _mjx(model: RobotModel, q, v, a) -> Way:
    import jax  # noqa: PLC0415
    from mujoco import mjx  # noqa: PLC0415

    jax.config.update("jax_enable_x64", True)
    peer = mjx.put_model(_mujoco_model(model))
    data = mjx.make_data(peer)

    def one(q, v, a):
        return mjx.inverse(peer, data.replace(qpos=q, qvel=v, qacc=a)).qfrc_inverse

    many = jax.jit(jax.vmap(one))
    arrays = [jax.numpy.asarray(each[:FEWER]) for each in (q, v, a)]
    first = np.asarray(many(*arrays)[0])
    name = "mjx.inverse (JAX on the CPU), jit of vmap"
    return Way(name, lambda: many(*arrays).block_until_ready(), FEWER, lambda: first)


def draw(table: Table, path: str) -> None:
    """The table as bars."""
    import matplotlib.pyplot as plt  # noqa: PLC0415

    names = [row[0] for row in table.rows][::-1]
    rates = [float(row[1]) for row in table.rows][::-1]
    ours = [name.startswith("compiled") for name in names]
    figure, axes = plt.subplots(figsize=(9, 0.36 * len(names) + 1.2), layout="constrained")
    axes.barh(names, rates, color=["tab:blue" if each else "tab:gray" for each in ours])
    for k, rate in enumerate(rates):
        axes.text(rate, k, f" {rate:.3g}", va="center")
    axes.set_xscale("log")
    axes.set_xlim(right=3.0 * max(rates))
    axes.set_xlabel("million inverse dynamics of the Panda a second")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
