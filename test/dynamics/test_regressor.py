"""The regressor against inverse dynamics and Pinocchio's, and its parameters against the URDF."""

from __future__ import annotations

import warnings

import numpy as np
import pinocchio as pin
import pytest
from allocation import allocated
from hypothesis import given, settings
from hypothesis import strategies as st
from pinocchio_peer import Peer
from robots import (
    PANDA_JOINTS,
    PLANAR,
    example_robot,
    load_quietly,
    random_mechanism,
    two_link_arm,
)

from rnea_control.dynamics import Workspace, inverse_dynamics
from rnea_control.dynamics.friction import STICKING_VELOCITY
from rnea_control.dynamics.regressor import (
    inertial_parameters,
    parameter_count,
    parameter_names,
    regressor,
)
from rnea_control.exceptions import ArgumentError
from rnea_control.model import Joint, Mimic, RobotModel, pseudo_inertia
from rnea_control.model.inertia import ten_parameters

RTOL = 1e-12
STATES = 5
PINOCCHIO_RTOL = 1e-10
# Pinocchio orders the inertia xx, xy, yy, xz, yz, zz.
FROM_PINOCCHIO = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9]
NOTHING = {"held": 0, "peak": 0, "page faults": 0}

seeds = st.integers(0, 2**32)
counts = st.integers(1, 12)


class Case:
    """A robot in a random state."""

    def __init__(self, model: RobotModel, seed: int = 0) -> None:
        self.model, self.ws = model, Workspace(model)
        rng = np.random.default_rng(seed)
        self.q = model.random(rng)
        self.v, self.a = rng.standard_normal((2, model.nv))

    def Y(self) -> np.ndarray:
        Y = np.full((self.model.nv, parameter_count(self.model)), np.nan)
        assert regressor(self.model, self.ws, self.q, self.v, self.a, Y) is Y
        return Y

    def torque(self) -> np.ndarray:
        tau = np.zeros(self.model.nv)
        return inverse_dynamics(self.model, self.ws, self.q, self.v, self.a, tau)


def mechanism(seed: int, count: int, mimics: bool = True) -> RobotModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RobotModel.from_joints("mechanism", *random_mechanism(seed, count, mimics=mimics))


def robot(name: str, floating_base: bool = False) -> RobotModel:
    joints = PANDA_JOINTS if name == "panda" else None
    return load_quietly(example_robot(name), joints, floating_base)


def assert_torque_is_Y_phi(case: Case) -> None:
    tau = case.torque()
    scale = np.abs(tau).max(initial=0.0)
    np.testing.assert_allclose(
        case.Y() @ inertial_parameters(case.model), tau, rtol=0.0, atol=RTOL * scale
    )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seeds, counts)
def test_torque_is_regressor_times_parameters(seed: int, count: int) -> None:
    case = Case(mechanism(seed, count), seed)
    case.model.torque_offset = np.random.default_rng(seed).standard_normal(case.model.nv)
    assert_torque_is_Y_phi(case)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds, counts)
def test_regressor_does_not_depend_on_the_parameters(seed: int, count: int) -> None:
    """So the torque is linear in them: what changes the robot changes phi alone."""
    case = Case(mechanism(seed, count), seed)
    model, rng = case.model, np.random.default_rng(seed)
    before = case.Y()
    model.damping, model.friction, model.armature = rng.uniform(0.0, 2.0, (3, model.nv))
    link = str(rng.choice(model.link_names))
    model.set_payload(link, 3.0, rng.standard_normal(3), np.diag([0.2, 0.3, 0.4]))
    np.testing.assert_array_equal(case.Y(), before)
    assert_torque_is_Y_phi(case)


@pytest.mark.parametrize(
    ("name", "floating_base"),
    [
        ("panda", False),
        ("ur5_robot", False),
        ("tiago_dual", False),
        ("panda", True),
        ("talos_reduced", True),
    ],
)
def test_robot_agrees_with_pinocchio(name: str, floating_base: bool) -> None:
    path = example_robot(name)
    model = load_quietly(path, floating_base=floating_base)
    compare(model, Peer.from_urdf(path, model, floating_base))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seeds, counts)
def test_mechanism_of_all_joint_types_agrees_with_pinocchio(seed: int, count: int) -> None:
    joints, inertias = random_mechanism(seed, count)
    model = RobotModel.from_joints("mechanism", joints, inertias)
    if model.nv:
        compare(model, Peer.from_joints(model, joints, inertias))


def compare(model: RobotModel, peer: Peer) -> None:
    """Columns and parameters of all bodies."""
    joints = (*model.joint_names, *model.mimic_joints)
    numbers = [peer.model.getJointId(name) for name in joints]
    phi = [peer.model.inertias[k].toDynamicParameters()[FROM_PINOCCHIO] for k in numbers]
    bodies = inertial_parameters(model)[: 10 * len(joints)].reshape(-1, 10)
    np.testing.assert_allclose(bodies, np.reshape(phi, (-1, 10)), rtol=1e-9, atol=1e-12)
    columns = [10 * (k - 1) + part for k in numbers for part in FROM_PINOCCHIO]
    for seed in range(STATES):
        case = Case(model, seed)
        q, v, a = peer.q(case.q), peer.v(case.v), peer.v(case.a)
        theirs = pin.computeJointTorqueRegressor(peer.model, peer.data, q, v, a)
        theirs = peer.G.T @ np.reshape(theirs, (peer.model.nv, -1))[:, columns]
        ours = case.Y()[:, : 10 * len(joints)]
        scale = np.abs(theirs).max(initial=0.0)
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=PINOCCHIO_RTOL * scale)


def test_parameters_are_those_of_the_urdf() -> None:
    """Of the arm in the x-z plane, whose axes are not z."""
    model = RobotModel.from_urdf_string(two_link_arm())
    p = PLANAR
    about_joint = p["I1"] + p["m1"] * p["r1"] ** 2
    phi = dict(zip(parameter_names(model), inertial_parameters(model), strict=True))
    upper = {k: v for k, v in phi.items() if k.startswith("upper.") and abs(v) > 1e-15}
    assert upper == pytest.approx(
        {
            "upper.m": p["m1"],
            "upper.mcx": p["m1"] * p["r1"],
            "upper.Ixx": p["I1"],
            "upper.Iyy": about_joint,
            "upper.Izz": about_joint,
        }
    )


def test_drive_columns() -> None:
    case = Case(robot("panda"))
    drives = case.Y()[:, 70:]
    expected = [case.a, case.v, np.tanh(case.v / STICKING_VELOCITY), np.ones(7)]
    np.testing.assert_allclose(drives, np.hstack([np.diag(row) for row in expected]))


def test_columns_follow_the_chosen_order_of_joints() -> None:
    path = example_robot("panda")
    forward = load_quietly(path, PANDA_JOINTS)
    jumbled = load_quietly(path, tuple(reversed(PANDA_JOINTS)))
    names = parameter_names(jumbled)
    assert names[0] == "panda_link7.m" and names[70] == "panda_joint7.armature"
    place = [parameter_names(forward).index(name) for name in names]
    np.testing.assert_allclose(inertial_parameters(jumbled), inertial_parameters(forward)[place])
    case, other = Case(forward), Case(jumbled)
    other.q, other.v, other.a = (x[::-1].copy() for x in (case.q, case.v, case.a))
    np.testing.assert_allclose(other.Y(), case.Y()[::-1, place], rtol=0.0, atol=1e-12)


def test_names() -> None:
    names = parameter_names(robot("panda"))
    assert len(set(names)) == len(names) == 98
    assert names[:2] == ("panda_link1.m", "panda_link1.mcx") and names[21] == "panda_link3.mcx"
    assert names[70] == "panda_joint1.armature" and names[-1] == "panda_joint7.torque_offset"
    assert "root_joint[5].damping" in parameter_names(robot("panda", floating_base=True))


def test_mimic_joint_has_a_body_and_its_rotor_counts_at_the_leader() -> None:
    joints = [
        Joint("leader", "revolute", "base", "one", armature=0.1),
        Joint("follower", "revolute", "one", "two", armature=0.2, mimic=Mimic("leader", -3.0)),
    ]
    body = pseudo_inertia(1.0, np.array([0.1, 0.2, 0.3]), np.eye(3))
    model = RobotModel.from_joints("pair", joints, {"one": body, "two": 2.0 * body})
    phi = dict(zip(parameter_names(model), inertial_parameters(model), strict=True))
    assert len(phi) == 24
    assert phi["two.m"] == pytest.approx(2.0)
    assert phi["leader.armature"] == pytest.approx(0.1 + 9.0 * 0.2)
    assert_torque_is_Y_phi(Case(model))


def test_payload_adds_its_ten_parameters_to_its_body() -> None:
    model = robot("panda")
    before = inertial_parameters(model)
    center, inertia = np.array([0.01, -0.02, 0.1]), np.diag([0.02, 0.03, 0.04])
    model.set_payload("panda_link7", 1.5, center, inertia)
    change = inertial_parameters(model) - before
    expected = ten_parameters(pseudo_inertia(1.5, center, inertia))
    np.testing.assert_allclose(change[60:70], expected, rtol=0.0, atol=1e-14)
    assert not np.delete(change, np.arange(60, 70)).any()


def test_parameters_return_when_the_payload_is_taken_off() -> None:
    model = robot("panda")
    before = inertial_parameters(model)
    model.set_payload("panda_hand", 1.5)  # fixed to link 7
    mass = parameter_names(model).index("panda_link7.m")
    assert inertial_parameters(model)[mass] == pytest.approx(before[mass] + 1.5)
    model.set_payload("panda_hand", 0.0)
    np.testing.assert_array_equal(inertial_parameters(model), before)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"q": np.zeros(6)}, "q is of float64 and shape"),
        ({"a": [0.0] * 7}, "a is a list"),
        ({"Y": np.zeros((7, 97))}, r"Y .* shape \(7, 97\); .* \(7, 98\)"),
        ({"Y": np.zeros((6, 98))}, r"Y .* shape \(6, 98\)"),
        ({"Y": np.zeros((7, 98), order="F")}, "Y is a read-only or strided view"),
        ({"Y": np.zeros((7, 98), dtype=np.float32)}, "Y is of float32"),
        ({"model": None}, "the first two arguments"),
    ],
)
def test_wrong_argument_is_named(wrong: dict, words: str) -> None:
    model = robot("panda")
    right = {"model": model, "ws": Workspace(model), "Y": np.zeros((7, 98))}
    right.update({name: np.zeros(7) for name in "qva"})
    with pytest.raises(ArgumentError, match=words):
        regressor(**{**right, **wrong})


def test_regressor_allocates_nothing() -> None:
    case = Case(robot("panda"))
    Y = case.Y()
    assert allocated(lambda: regressor(case.model, case.ws, case.q, case.v, case.a, Y)) == NOTHING
