"""Every algorithm against Pinocchio, on every robot of example-robot-data that both load."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from robots import example_robots, load_quietly

from rnea_control.dynamics import Workspace, gravity, nonlinear_effects, rnea
from rnea_control.model import RobotModel, RobotModelError

RTOL = 1e-10
STATES = 20

# A robot that is left out, and why. Anything else must agree.
LEFT_OUT = {"ur3.urdf": "the <robot> has no name, which urdf_parser_py requires"}

ROBOTS = example_robots()


class Pinocchio:
    """The same robot in Pinocchio, with joint vectors in the order of a `RobotModel`."""

    def __init__(self, path: Path, model: RobotModel) -> None:
        self.model = pin.buildModelFromUrdf(str(path))
        self.data = self.model.createData()
        joints = [self.model.joints[self.model.getJointId(name)] for name in model.joint_names]
        self.q_index = [joint.idx_q for joint in joints]
        self.v_index = [joint.idx_v for joint in joints]
        self.circle = [joint.nq == 2 for joint in joints]  # continuous: cosine and sine

    def q(self, angles: np.ndarray) -> np.ndarray:
        q = pin.neutral(self.model)
        for angle, i, circle in zip(angles, self.q_index, self.circle, strict=True):
            if circle:
                q[i : i + 2] = np.cos(angle), np.sin(angle)
            else:
                q[i] = angle
        return q

    def v(self, values: np.ndarray) -> np.ndarray:
        v = np.zeros(self.model.nv)
        v[self.v_index] = values
        return v

    def rnea(self, q, v, a, forces=None) -> np.ndarray:
        arguments = [self.model, self.data, self.q(q), self.v(v), self.v(a)]
        if forces is not None:
            arguments.append(forces)
        return pin.rnea(*arguments)[self.v_index]


def assert_agree(ours: np.ndarray, theirs: np.ndarray) -> None:
    # Torques that are zero by symmetry are rounding errors on both sides.
    assert np.abs(ours - theirs).max() <= RTOL * np.abs(theirs).max() + 1e-14


@pytest.mark.parametrize("path", ROBOTS, ids=lambda path: path.stem)
def test_robot(path: Path) -> None:
    if path.name in LEFT_OUT:
        with pytest.raises(RobotModelError):
            load_quietly(path)
        pytest.skip(LEFT_OUT[path.name])
    model = load_quietly(path)
    if model.nv == 0:
        pytest.skip("no joint moves")
    peer = Pinocchio(path, model)
    assert peer.model.nv == model.nv
    ws = Workspace(model)
    tau = np.zeros(model.nv)
    zero = np.zeros(model.nv)
    rng = np.random.default_rng(0)
    for _ in range(STATES):
        q = rng.uniform(-np.pi, np.pi, model.nq)
        v, a = rng.standard_normal((2, model.nv))
        assert_agree(rnea(model, ws, q, v, a, tau), peer.rnea(q, v, a))
        assert_agree(gravity(model, ws, q, tau), peer.rnea(q, zero, zero))
        assert_agree(nonlinear_effects(model, ws, q, v, tau), peer.rnea(q, v, zero))


@pytest.mark.parametrize("name", ["panda", "ur5_robot", "tiago_dual", "talos_full_v2", "xarm7"])
def test_external_forces(name: str) -> None:
    path = next(path for path in ROBOTS if path.stem == name)
    model = load_quietly(path)
    peer = Pinocchio(path, model)
    rng = np.random.default_rng(1)
    q, v, a = rng.standard_normal((3, model.nv))
    forces = rng.standard_normal((model.nv, 6))
    theirs = [pin.Force.Zero() for _ in range(peer.model.njoints)]
    for joint, force in zip(model.joint_names, forces, strict=True):
        theirs[peer.model.getJointId(joint)] = pin.Force(force)
    tau = rnea(model, Workspace(model), q, v, a, np.zeros(model.nv), forces)
    assert_agree(tau, peer.rnea(q, v, a, theirs))


def test_how_many_robots(report) -> None:
    """Says how many robots were compared, and fails if robots go missing unnoticed."""
    still = [path.stem for path in ROBOTS if path.name not in LEFT_OUT and not moves(path)]
    compared = len(ROBOTS) - len(LEFT_OUT) - len(still)
    report(f"rnea agrees with Pinocchio on {compared} of the {len(ROBOTS)} example robots")
    for name, reason in LEFT_OUT.items():
        report(f"  left out: {name}: {reason}")
    report(f"  left out: {', '.join(still)}: no joint moves")
    assert compared >= 66


def moves(path: Path) -> bool:
    return load_quietly(path).nv > 0
