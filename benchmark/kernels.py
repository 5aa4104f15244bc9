"""Time of one call from Python, against Pinocchio and MuJoCo in the same run.

The three take turns in short rounds, so that a busy machine slows them alike; what counts is the
ratio of the medians over the rounds.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from importlib import metadata

import mujoco
import numpy as np
import pinocchio as pin
from benchmark_robots import PANDA_JOINTS, load, urdf_path
from rich.console import Console
from rich.table import Table

from rnea_control.control import Controller, ControllerSettings, Gains, Waypoint
from rnea_control.dynamics import Workspace, gravity, rnea
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, urdf_for_mujoco

ROUNDS = 41
CALLS = 5000


def medians(calls: dict[str, tuple[Callable[..., object], tuple]]) -> dict[str, float]:
    """Median time of one call of each function with its arguments, [us]."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, (function, arguments) in calls.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                function(*arguments)
            times[name].append(1e6 * (time.perf_counter() - start) / CALLS)
    return {name: statistics.median(rounds) for name, rounds in times.items()}


def main() -> None:
    model = load("panda", PANDA_JOINTS)
    ws, tau = Workspace(model), np.zeros(7)
    q, v, a = (row.copy() for row in np.random.default_rng(0).uniform(-1.0, 1.0, (3, 7)))

    peer = pin.buildModelFromUrdf(str(urdf_path("panda")))
    fingers = [peer.getJointId(f"panda_finger_joint{i}") for i in (1, 2)]
    peer = pin.buildReducedModel(peer, fingers, pin.neutral(peer))
    data = peer.createData()

    text = urdf_for_mujoco(urdf_path("panda").read_text(), model, {}, ModelErrors())
    physics = mujoco.MjModel.from_xml_string(text)
    state = mujoco.MjData(physics)
    state.qpos[:], state.qvel[:], state.qacc[:] = q, v, a

    largest = np.abs(rnea(model, ws, q, v, a, tau) - pin.rnea(peer, data, q, v, a)).max()
    controller = Controller(model, ControllerSettings(Gains.uniform(7, 400.0, 40.0)))
    controller.hold(0.0, q)
    middle = 0.5 * (model.lower + model.upper)
    controller.follow(0.0, [Waypoint(10.0, middle, np.zeros(7), np.zeros(7))], 0.0)

    results = medians(
        {
            "rnea": (rnea, (model, ws, q, v, a, tau)),
            "pin.rnea": (pin.rnea, (peer, data, q, v, a)),
            "mj_inverse": (mujoco.mj_inverse, (physics, state)),
            "gravity": (gravity, (model, ws, q, tau)),
            "pin.computeGeneralizedGravity": (pin.computeGeneralizedGravity, (peer, data, q)),
            "Controller.step": (controller.step, (1.0, q, v, tau)),
        }
    )
    table = Table(title="panda, 7 joints: one call from Python, median")
    table.add_column("function")
    table.add_column("us", justify="right")
    table.add_column("part of pin.rnea", justify="right")
    for name, result in results.items():
        table.add_row(name, f"{result:.3f}", f"{result / results['pin.rnea']:.2f}")
    console = Console()
    console.print(table)
    ratio = results["gravity"] / results["pin.computeGeneralizedGravity"]
    console.print(f"gravity takes {ratio:.2f} of pin.computeGeneralizedGravity's time")
    console.print(f"largest difference between rnea and pin.rnea: {largest:.1e} Nm")
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numba", "pin", "mujoco"))
    console.print(f"Python {platform.python_version()}, {versions}, {platform.machine()}")


if __name__ == "__main__":
    main()
