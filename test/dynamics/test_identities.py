"""What holds for every URDF: random trees of revolute, continuous, prismatic and fixed joints."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import random_tree

from rnea_control.dynamics import Workspace, gravity, rnea
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

trees = st.builds(random_tree, st.integers(0, 2**32), st.integers(1, 12))
CASES = settings(max_examples=40, deadline=None, derandomize=True)


class Case:
    """A random robot in a random state."""

    def __init__(self, urdf: str) -> None:
        self.model = RobotModel.from_urdf_string(urdf)
        self.n = self.model.nv
        self.ws = Workspace(self.model)
        self.q, self.v, self.a = np.random.default_rng(self.n).standard_normal((3, self.n))

    def rnea(self, q, v, a) -> np.ndarray:
        return rnea(self.model, self.ws, q, v, np.ascontiguousarray(a), np.zeros(self.n))


def cases(test):
    return CASES(given(trees)(test))


@cases
def test_torque_is_linear_in_the_inertial_parameters(urdf: str) -> None:
    case = Case(urdf)
    if not case.n:
        return
    columns = slice(layout.INERTIA, layout.INERTIA + 10)
    rng = np.random.default_rng(1)
    first, second = rng.standard_normal((2, case.n, 10))
    torques = []
    for parameters in (first, second, 2.0 * first - 3.0 * second):
        case.model.bodies[1:, columns] = parameters
        torques.append(case.rnea(case.q, case.v, case.a))
    expected = 2.0 * torques[0] - 3.0 * torques[1]
    np.testing.assert_allclose(torques[2], expected, atol=1e-11 * np.abs(torques).max())


@cases
def test_gravity_is_rnea_at_rest(urdf: str) -> None:
    case = Case(urdf)
    if not case.n:
        return
    zero = np.zeros(case.n)
    g = gravity(case.model, case.ws, case.q, np.zeros(case.n))
    np.testing.assert_allclose(g, case.rnea(case.q, zero, zero), atol=1e-12 * (1 + np.abs(g).max()))


@cases
def test_merging_fixed_joints_changes_nothing(urdf: str) -> None:
    """The same tree with its fixed joints as joints that keep still."""
    case = Case(urdf)
    limit = '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    head, *joints = urdf.split("<joint ")
    loose = [
        text.replace('type="fixed"', 'type="revolute"').replace("</joint>", limit)
        if 'type="fixed"' in text
        else text
        for text in joints
    ]
    free = RobotModel.from_urdf_string("<joint ".join([head, *loose]))
    place = [free.joint_names.index(name) for name in case.model.joint_names]
    q, v, a = np.zeros((3, free.nv))
    q[place], v[place], a[place] = case.q, case.v, case.a
    tau = rnea(free, Workspace(free), q, v, a, np.zeros(free.nv))[place]
    expected = case.rnea(case.q, case.v, case.a)
    np.testing.assert_allclose(
        tau, expected, rtol=1e-9, atol=1e-9 * (1 + np.abs(tau).max(initial=0))
    )
