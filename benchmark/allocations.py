"""Bytes allocated by the algorithms and by the control step."""

from __future__ import annotations

import numpy as np
from allocation import CALLS, allocated
from benchmark_robots import PANDA_JOINTS, load
from rich.console import Console
from rich.table import Table

from rnea_control.control import Controller, ControllerSettings, Gains
from rnea_control.dynamics import Workspace, gravity, rnea


def main() -> None:
    model = load("panda", PANDA_JOINTS)
    ws, tau = Workspace(model), np.zeros(7)
    q, v, a = (row.copy() for row in np.random.default_rng(0).uniform(-1.0, 1.0, (3, 7)))
    controller = Controller(model, ControllerSettings(Gains.uniform(7, 400.0, 40.0)))
    controller.hold(0.0, q)
    functions = {
        "rnea": lambda: rnea(model, ws, q, v, a, tau),
        "gravity": lambda: gravity(model, ws, q, tau),
        "Controller.step": lambda: controller.step(1.0, q, v, tau),
    }
    table = Table(title=f"panda: allocated over {CALLS} calls")
    table.add_column("function")
    for column in ("bytes held after", "bytes at the peak", "page faults"):
        table.add_column(column, justify="right")
    for name, function in functions.items():
        table.add_row(name, *(str(count) for count in allocated(function).values()))
    Console().print(table)


if __name__ == "__main__":
    main()
