"""Robots in random states, with their peers: the example robots, loaded once for all the tests, and
random mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pinocchio_peer import Peer
from robots import example_robots, load_quietly, random_mechanism

from rnea_control.dynamics import Workspace, integrate
from rnea_control.model import RobotModel
from rnea_control.model.joints import POSITIONS

RTOL = 1e-10
STATES = 20

# Robots that are left out, and why. All others must agree.
NOT_LOADED = {"ur3": "the <robot> has no name, which urdf_parser_py requires"}
# These are compared on a floating base only.
NO_JOINT_MOVES = ("quadrotor_base", "iris_simple")

# Robots, by the names in their URDFs, with joints that move nothing, which no torque can accelerate
# in any certain way.
SINGULAR = {
    "romeo": "LHand and RHand move no inertia",
    "RomeoH37": "its grippers move no inertia",
}


@dataclass(frozen=True)
class State:
    """Positions, velocities, accelerations, and forces on the links in their frames."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    forces: np.ndarray


class Case:
    """A robot and random states of it."""

    peer: Peer

    def __init__(self, model: RobotModel, seed: int = 0, states: int = 1) -> None:
        self.model, self.ws, self.n = model, Workspace(model), model.nv
        self.rng = np.random.default_rng(seed)
        self.states = [random_state(model, self.rng) for _ in range(states)]

    @property
    def state(self) -> State:
        return self.states[0]

    @cached_property
    def conditions(self) -> list[float]:
        """Condition numbers of the mass matrix in the states."""
        return [condition(self.peer.mass_matrix(state.q)) for state in self.states]

    def zeros(self, *shape: int) -> np.ndarray:
        return np.zeros(shape or self.n)

    def moved(self, state: State, time: float) -> np.ndarray:
        """The position after a motion of constant acceleration, right to the third power."""
        step = time * state.v + 0.5 * time**2 * state.a
        return integrate(self.model, self.ws, state.q, step, np.zeros(self.model.nq))


def random_state(model: RobotModel, rng: np.random.Generator) -> State:
    q = model.random(rng)
    v, a = rng.standard_normal((2, model.nv))
    return State(q, v, a, rng.standard_normal((len(model.link_names), 6)))


def without_huge_angles(q: np.ndarray) -> np.ndarray:
    """Limits of 1e16 rad leave no digits for differences."""
    return np.where(np.abs(q) > 1e3, 1.0, q)


class Example(Case):
    """A robot of example-robot-data."""

    def __init__(self, path: Path, floating_base: bool) -> None:
        super().__init__(load_quietly(path, floating_base=floating_base), 0, STATES)
        self.peer = Peer.from_urdf(path, self.model, floating_base)


class Mechanism(Case):
    """A random tree of joints of all types."""

    def __init__(
        self, seed: int, count: int, mimics: bool, states: int, types: Sequence[str]
    ) -> None:
        self.joints, self.inertias = random_mechanism(seed, count, types, mimics)
        model = RobotModel.from_joints("mechanism", self.joints, self.inertias)
        assume(model.nv > 0)
        super().__init__(model, seed, states)

    @cached_property
    def peer(self) -> Peer:
        return Peer.from_joints(self.model, self.joints, self.inertias)


@cache
def example(path: Path, floating_base: bool) -> Example:
    """One for all tests, so none of them may change its model: `load_quietly` makes others."""
    made = Example(path, floating_base)
    _SHARED[f"{path.stem}, floating_base={floating_base}"] = made.model, _numbers_of(made.model)
    return made


_SHARED: dict[str, tuple[RobotModel, bytes]] = {}


def changed_examples() -> list[str]:
    """Shared robots whose numbers are no longer what they were."""
    return [name for name, (model, before) in _SHARED.items() if _numbers_of(model) != before]


def _numbers_of(model: RobotModel) -> bytes:
    return b"".join(
        array.tobytes() for array in (model.bodies, model.links, model.friction_parameters)
    )


# Robots that differ, on a floating base; the others on one are explored.
FLOATING = ("panda", "talos_reduced", "hyq_no_sensors", "kinova", "solo12", "pr2")


def compared_robots() -> list[Any]:
    """The example robots, each on its own base and on a floating one: parameters of pytest."""
    return [
        pytest.param(
            (path, floating_base),
            marks=[pytest.mark.explores] if floating_base and path.stem not in FLOATING else [],
        )
        for path in example_robots()
        for floating_base in (False, True)
        if path.stem not in NOT_LOADED and (floating_base or path.stem not in NO_JOINT_MOVES)
    ]


def mechanisms(
    examples: int,
    joints: int = 12,
    mimics: bool = True,
    states: int = 1,
    types: Sequence[str] = tuple(POSITIONS),
) -> Callable[[Callable], Callable]:
    """Decorator: runs a test with that many random mechanisms, some with mimicking joints."""
    drawn = st.builds(
        Mechanism,
        st.integers(0, 2**32),
        st.integers(1, joints),
        st.booleans() if mimics else st.just(False),
        st.just(states),
        st.just(types),
    )
    return lambda test: settings(max_examples=examples, deadline=None, derandomize=True)(
        given(drawn)(test)
    )


def every_robot(
    examples: int, joints: int = 12, **options: Any
) -> Callable[[Callable[[Case], None]], Callable]:
    """Decorator: runs a test with every example robot, and with random `mechanisms`."""
    robots = [*compared_robots(), None]

    def decorate(test: Callable[[Case], None]) -> Callable:
        run_mechanisms = mechanisms(examples, joints, **options)(test)

        @pytest.mark.parametrize("robot", robots, ids=_name)
        def run(robot: tuple[Path, bool] | None) -> None:
            if robot is None:
                run_mechanisms()
            else:
                test(example(*robot))

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


def _name(robot: tuple[Path, bool] | None) -> str:
    if robot is None:
        return "mechanisms"
    path, floating_base = robot
    return f"{path.stem}-{'floating' if floating_base else 'fixed'}"


def assert_agree(ours: np.ndarray, theirs: np.ndarray, rounding: float = 1e-14) -> None:
    """To ten digits of the largest value; values that are zero by symmetry are rounding errors."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape
    scale = np.abs(theirs).max(initial=0.0)
    assert np.abs(ours - theirs).max(initial=0.0) <= RTOL * scale + rounding


def acceleration_tolerance(case: Case, state: State, tau: np.ndarray, condition: float) -> float:
    """How exactly accelerations can be found from torques, with this mass matrix."""
    M = case.peer.mass_matrix(state.q)
    scale = np.abs(state.a).max() + np.abs(np.linalg.solve(M, tau)).max()
    return RTOL * max(1.0, 1e-4 * condition) * scale


def rounding_of_accelerations(case: Case) -> float:
    """What is left of accelerations that go to torques and back, in the first state."""
    assert np.isfinite(case.conditions[0])
    scale = 1.0 + np.abs(case.state.forces).max() + np.abs(case.state.v).max() ** 2
    return 1e-9 + 1e-11 * case.conditions[0] * scale


def condition(M: np.ndarray) -> float:
    """Of a mass matrix; infinite if it is singular to within rounding."""
    values = np.linalg.svd(M, compute_uv=False)
    if values[-1] <= values[0] * len(M) * np.finfo(float).eps:
        return np.inf
    return float(values[0] / values[-1])
