"""Time of one call of rnea and gravity from Python, against Pinocchio, MuJoCo and dynibo."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.etree import ElementTree

import dynibo
import mujoco
import numpy as np
import pinocchio as pin
from benchmark_robots import PANDA_JOINTS, load, urdf_path
from table import Table
from timing import medians

from rnea_control.dynamics import Workspace, gravity, rnea
from rnea_control.simulation.urdf_for_mujoco import ModelErrors, urdf_for_mujoco

# Arms and humanoids, with the joints that move where that is not all.
ROBOTS = {"panda": PANDA_JOINTS, "ur5_robot": None, "simple_humanoid": None, "talos_reduced": None}


def main() -> None:
    for table in tables():
        table.show()


def tables() -> list[Table]:
    """One table of all robots."""
    table = Table(
        "Kernels, one call from Python [us]",
        (
            "robot, joints",
            "rnea",
            "pin.rnea",
            "part",
            "mj_inverse",
            "dynibo",
            "gravity",
            "pin gravity",
            "part",
        ),
    )
    for name, joints in ROBOTS.items():
        table.rows.append(_row(name, joints))
    table.notes.append("part: of Pinocchio's time; -: the robot cannot be loaded.")
    return [table]


def _row(name: str, joints: list[str] | None) -> tuple[str, ...]:
    model = load(name, joints)
    n = model.nv
    ws, tau = Workspace(model), np.zeros(n)
    q, v, a = (row.copy() for row in np.random.default_rng(0).uniform(-1.0, 1.0, (3, n)))

    peer = pin.buildModelFromUrdf(str(urdf_path(name)))
    locked = [i for i, joint in enumerate(peer.names) if i and joint not in model.joint_names]
    peer = pin.buildReducedModel(peer, locked, pin.neutral(peer))
    data, q_pin = peer.createData(), pin.neutral(peer)
    if peer.nq == n:
        q_pin = q

    text = urdf_for_mujoco(urdf_path(name).read_text(), model, {}, ModelErrors())
    physics = mujoco.MjModel.from_xml_string(text)
    state = mujoco.MjData(physics)
    state.qpos[:], state.qvel[:], state.qacc[:] = q, v, a

    calls = {
        "rnea": (rnea, (model, ws, q, v, a, tau)),
        "pin.rnea": (pin.rnea, (peer, data, q_pin, v, a)),
        "mj_inverse": (mujoco.mj_inverse, (physics, state)),
        "gravity": (gravity, (model, ws, q, tau)),
        "pin gravity": (pin.computeGeneralizedGravity, (peer, data, q_pin)),
    }
    other = _dynibo_robot(name, model.joint_names)
    if other is not None:
        out = np.zeros(n)
        calls["dynibo"] = (other.inverse_dynamics, (q, v, a, None, out))
    times = medians(calls)

    def us(what: str) -> str:
        return f"{times[what]:.3f}" if what in times else "-"

    return (
        f"{name}, {n}",
        us("rnea"),
        us("pin.rnea"),
        f"{times['rnea'] / times['pin.rnea']:.2f}",
        us("mj_inverse"),
        us("dynibo"),
        us("gravity"),
        us("pin gravity"),
        f"{times['gravity'] / times['pin gravity']:.2f}",
    )


def _dynibo_robot(name: str, joint_names: tuple[str, ...]) -> dynibo.Robot | None:
    """The robot with all joints but these made fixed; dynibo takes no mimic joints."""
    root = ElementTree.fromstring(urdf_path(name).read_text())
    for joint in root.iter("joint"):
        if joint.get("type") and joint.get("name") not in joint_names:
            joint.set("type", "fixed")
            for mimic in joint.findall("mimic"):
                joint.remove(mimic)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(ElementTree.tostring(root, encoding="unicode"))
        try:
            robot = dynibo.Robot.from_urdf(str(path))
        except dynibo.DyniboError:
            return None
    return robot if robot.generalized_count == len(joint_names) else None


if __name__ == "__main__":
    main()
