"""Time of one call of each algorithm from Python, against Pinocchio, MuJoCo and dynibo."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import pinocchio as pin
from benchmark_robots import PANDA_JOINTS, dynibo_robot, load, pinocchio_model, urdf_path
from measuring import medians
from table import Table, show

from rnea_control.dynamics import Workspace, aba, crba, gravity, rnea
from rnea_control.model import RobotModel
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, urdf_for_mujoco

OURS = "rnea_control"
BAXTER_ARM = ("s0", "s1", "e0", "e1", "w0", "w1", "w2")
ARMS = tuple(f"{side}_{part}" for side in ("left", "right") for part in BAXTER_ARM)

# An arm of seven and one of six axes, two arms, humanoids; with the joints that move where that is
# not all.
ROBOTS = {
    "panda": PANDA_JOINTS,
    "ur5_robot": None,
    "baxter": ARMS,
    "simple_humanoid": None,
    "talos_reduced": None,
}


def tables() -> list[Table]:
    """One table of all robots."""
    table = Table(
        "Kernels, one call from Python [us]",
        ("robot, joints", "algorithm", "rnea_control", "pin", "part", "mujoco", "dynibo"),
    )
    for name, joints in ROBOTS.items():
        table.rows.extend(_rows(name, joints))
    table.notes.append(
        "part: of Pinocchio's time; -: there is no such function, or the robot cannot be loaded. "
        "MuJoCo's are mj_inverse, mj_crb after mj_fwdPosition, and mj_forward, which do more."
    )
    return [table]


def _rows(name: str, joints: Sequence[str] | None) -> list[tuple[str, ...]]:
    model = load(name, joints)
    n = model.nv
    ws, out, M = Workspace(model), np.zeros(n), np.zeros((n, n))
    q, v, a = (row.copy() for row in np.random.default_rng(0).uniform(-1.0, 1.0, (3, n)))
    peer = pinocchio_model(name, model)
    q_pin = q if peer.nq == model.nq else pin.neutral(peer)
    data = peer.createData()
    physics, state = _mujoco(name, model, q, v, a)
    calls: dict[tuple[str, str], tuple] = {
        ("rnea", OURS): (rnea, (model, ws, q, v, a, out)),
        ("rnea", "pin"): (pin.rnea, (peer, data, q_pin, v, a)),
        ("rnea", "mujoco"): (mujoco.mj_inverse, (physics, state)),
        ("gravity", OURS): (gravity, (model, ws, q, out)),
        ("gravity", "pin"): (pin.computeGeneralizedGravity, (peer, data, q_pin)),
        ("crba", OURS): (crba, (model, ws, q, M)),
        ("crba", "pin"): (pin.crba, (peer, data, q_pin)),
        ("crba", "mujoco"): (_mass_matrix_of_mujoco, (physics, state)),
        ("aba", OURS): (aba, (model, ws, q, v, a, out)),
        ("aba", "pin"): (pin.aba, (peer, data, q_pin, v, a)),
        ("aba", "mujoco"): (mujoco.mj_forward, (physics, state)),
    }
    other = dynibo_robot(name, model.joint_names)
    if other is not None:
        result = np.zeros(n)
        calls["rnea", "dynibo"] = (other.inverse_dynamics, (q, v, a, None, result))
        calls["gravity", "dynibo"] = (other.gravity, (q, None, result))
        calls["crba", "dynibo"] = (other.mass_matrix, (q,))
        calls["aba", "dynibo"] = (other.forward_dynamics, (q, v, a, None, result))
    times = medians(calls)
    rows = []
    for algorithm in ("rnea", "gravity", "crba", "aba"):
        us = {
            who: f"{times[algorithm, who]:.3f}" if (algorithm, who) in times else "-"
            for who in (OURS, "pin", "mujoco", "dynibo")
        }
        part = f"{times[algorithm, OURS] / times[algorithm, 'pin']:.2f}"
        figures = (us[OURS], us["pin"], part, us["mujoco"], us["dynibo"])
        rows.append((f"{name}, {n}", algorithm, *figures))
    return rows


def _mujoco(
    name: str, model: RobotModel, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> tuple[mujoco.MjModel, mujoco.MjData]:
    text = urdf_for_mujoco(urdf_path(name).read_text(), model, ModelErrors())
    physics = mujoco.MjModel.from_xml_string(text)
    state = mujoco.MjData(physics)
    state.qpos[:], state.qvel[:], state.qacc[:] = q, v, a
    return physics, state


def _mass_matrix_of_mujoco(physics: mujoco.MjModel, state: mujoco.MjData) -> None:
    mujoco.mj_fwdPosition(physics, state)
    mujoco.mj_crb(physics, state)


if __name__ == "__main__":
    show(tables())
