"""Robots in random states with their peers in Pinocchio: example robots, random mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
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

# Robots that are left out, and why. All others must agree.
NOT_LOADED = {"ur3": "the <robot> has no name, which urdf_parser_py requires"}
# These are compared on a floating base only.
NO_JOINT_MOVES = ("quadrotor_base", "iris_simple")

# Robots, by the names in their URDFs, with joints that move nothing, which no torque can accelerate
# in any certain way.
SINGULAR = {"romeo": "LHand and RHand move no inertia", "RomeoH37": "its grippers move no inertia"}

# Robots that differ, on a floating base; the others on one are explored.
FLOATING = ("panda", "talos_reduced", "hyq_no_sensors", "kinova", "solo12", "pr2")


@dataclass(frozen=True)
class State:
    """Positions, velocities, accelerations, and forces on the links in their frames."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    forces: np.ndarray


class Case:
    peer: Peer

    def __init__(self, model: RobotModel, seed: int, states: int) -> None:
        self.model, self.n = model, model.nv
        self.rng = np.random.default_rng(seed)
        self.states = [random_state(model, self.rng) for _ in range(states)]

    @property
    def ws(self) -> Workspace:
        """A new one: nothing is there that another algorithm has left."""
        return Workspace(self.model)

    @property
    def state(self) -> State:
        return self.states[0]

    def zeros(self, *shape: int) -> np.ndarray:
        return np.zeros(shape or self.n)

    def moved(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        return integrate(self.model, self.ws, q, step, np.zeros(self.model.nq))


def random_state(model: RobotModel, rng: np.random.Generator) -> State:
    q = model.random(rng)
    v, a = rng.standard_normal((2, model.nv))
    return State(q, v, a, rng.standard_normal((len(model.link_names), 6)))


class Example(Case):
    def __init__(self, path: Path, floating_base: bool, states: int) -> None:
        super().__init__(load_quietly(path, floating_base=floating_base), 0, states)
        self.peer = Peer.from_urdf(path, self.model, floating_base)


class Mechanism(Case):
    """A random tree of joints of all types."""

    def __init__(self, seed: int, count: int, mimics: bool, types, states: int) -> None:
        self.joints, self.inertias = random_mechanism(seed, count, types, mimics)
        model = RobotModel.from_joints("mechanism", self.joints, self.inertias)
        assume(model.nv > 0)
        super().__init__(model, seed, states)

    @cached_property
    def peer(self) -> Peer:
        return Peer.from_joints(self.model, self.joints, self.inertias)


def compared_robots() -> list[Any]:
    """The example robots, each on its own base and on a floating one: parameters of pytest."""
    return [
        pytest.param(
            path,
            floating_base,
            marks=[pytest.mark.explores] if floating_base and path.stem not in FLOATING else [],
            id=f"{path.stem}-{'floating' if floating_base else 'fixed'}",
        )
        for path in example_robots()
        for floating_base in (False, True)
        if path.stem not in NOT_LOADED and (floating_base or path.stem not in NO_JOINT_MOVES)
    ]


# Pinocchio's Coriolis matrix leaves out that the axes of these move: C v is wrong there.
COMPOSITES = ("universal", "planar")


def mechanisms(examples: int, joints: int = 12, states: int = 1) -> Callable[[Callable], Callable]:
    """Decorator: runs a test with that many random mechanisms, some with mimicking joints, and some
    without composite ones."""
    simple = tuple(kind for kind in POSITIONS if kind not in COMPOSITES)
    kinds = st.sampled_from([tuple(POSITIONS), simple])
    size = st.integers(0, 2**32), st.integers(1, joints)
    drawn = st.builds(Mechanism, *size, st.booleans(), kinds, st.just(states))
    chosen = settings(max_examples=examples, deadline=None, derandomize=True)
    return lambda test: chosen(given(drawn)(test))
