"""How the time of rnea and aba grows with the number of joints, on serial chains of 1 to 100."""

from __future__ import annotations

import numpy as np
from measuring import medians
from table import Table, show

from rnea_control.dynamics import Workspace, aba, rnea
from rnea_control.model import RobotModel

JOINTS = (1, 2, 5, 10, 20, 50, 100)


def tables() -> list[Table]:
    """The times, and the exponents of the power laws through them."""
    calls: dict[tuple[str, int], tuple] = {}
    for n in JOINTS:
        model = RobotModel.from_urdf_string(chain(n))
        q, v, a, tau = np.random.default_rng(n).uniform(-1.0, 1.0, (4, n)).copy()
        calls["rnea", n] = (rnea, (model, Workspace(model), q, v, a, tau))
        calls["aba", n] = (aba, (model, Workspace(model), q, v, a, tau))
    times = medians(calls)
    table = Table(
        "Growth with the number of joints [us]",
        ("joints", "rnea", "a joint", "aba", "a joint"),
    )
    for n in JOINTS:
        pairs = ((times[name, n], times[name, n] / n) for name in ("rnea", "aba"))
        table.rows.append((str(n), *(f"{x:.4g}" for pair in pairs for x in pair)))
    for name in ("rnea", "aba"):
        values = np.log([times[name, n] for n in JOINTS])
        exponent = np.polyfit(np.log(JOINTS), values, 1)[0]
        large = np.polyfit(np.log(JOINTS[3:]), values[3:], 1)[0]
        table.notes.append(
            f"Fitted exponent of {name}: {exponent:.2f} over all, {large:.2f} from {JOINTS[3]} "
            "joints on."
        )
    return [table]


def chain(n: int) -> str:
    """The URDF of `n` revolute joints one after the other."""
    inertial = (
        '<inertial><origin xyz="0.1 0.02 0.03"/><mass value="1.0"/>'
        '<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    links = "".join(f'<link name="l{i}">{inertial}</link>' for i in range(n + 1))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="0.2 0 0.01" rpy="0.3 0.2 0.1"/><axis xyz="0 {i % 2} {1 - i % 2}"/>'
        '<limit lower="-3" upper="3" effort="100000" velocity="3"/></joint>'
        for i in range(n)
    )
    return f'<robot name="chain">{links}{joints}</robot>'


if __name__ == "__main__":
    show(tables())
