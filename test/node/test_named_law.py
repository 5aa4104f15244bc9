"""A law of a user in a node: named at the start only, with its own parameters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dds import JOINTS, ros
from node_bench import GOOD, MODEL, Bench, Q, gravity_torque

from rnea_control.dynamics import Workspace, crba
from rnea_control.node.controller_node import ControllerNode

EXAMPLES = Path(__file__).parents[2] / "examples"
DOMAIN = 63
LAW = {
    **GOOD,
    "control_law": "own",
    "own_law.function": "soft_spring.soft_spring",
    "own_law.most.elbow": 4.0,
}


@pytest.fixture(scope="module", autouse=True)
def _found() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
        with ros(DOMAIN):
            yield


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench(**LAW)
    yield bench
    bench.destroy()


def test_arm_is_held_by_the_function_and_its_parameters(bench: Bench) -> None:
    bench.answer()
    v, off = np.array([0.1, -0.2]), np.array([0.05, 0.03])

    def expected(w: float, most: np.ndarray) -> np.ndarray:
        q = Q - off
        inertia = np.diag(crba(MODEL, Workspace(MODEL), q, np.zeros((2, 2))))
        pull = most * np.tanh(inertia * w * w * off / most)
        return gravity_torque(q) + pull - 2.0 * inertia * w * v

    torque = bench.answer(Q - off, v)
    np.testing.assert_allclose(torque, expected(15.0, np.array([20.0, 4.0])), rtol=1e-9)
    assert bench.set(own_law__bandwidth=12.0) == ""
    torque = bench.answer(Q - off, v)
    np.testing.assert_allclose(torque, expected(12.0, np.array([20.0, 4.0])), rtol=1e-9)
    # A stop is simulated with the law, and what could not be braked is refused.
    refused = bench.set(own_law__bandwidth=0.0)
    assert refused.startswith("own_law.bandwidth is 0, at least ")


def test_function_cannot_be_named_while_the_process_runs(bench: Bench) -> None:
    refused = bench.set(own_law__function="os.system")
    assert "'own_law.function' cannot change: it is read when the process starts" in refused
    bench.node.trigger_deactivate()
    bench.node.trigger_cleanup()
    refused = bench.set(own_law__function="soft_spring.another")
    assert "'own_law.function' cannot change: it is read when the process starts" in refused


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"own_law.function": ""}, "own_law.function must name the function"),
        ({"own_law.function": "soft_spring.math"}, "with the decorator own_law"),
        ({"own_law.function": "nowhere.law"}, "cannot be imported: ModuleNotFoundError"),
        ({"own_law.most.elbow": "high"}, "own_law.most.elbow"),
    ],
)
def test_node_says_what_is_wrong_with_the_law(change: dict, words: str) -> None:
    bench = Bench(start=False, **{**LAW, **change})
    try:
        bench.node.autostart()
        assert not bench.node.active and words in bench.node.fault, bench.node.fault
    finally:
        bench.destroy()


def test_misspelled_parameter_of_the_law_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    bench = Bench(**{**LAW, f"own_law.mots.{JOINTS[0]}": 1.0})
    try:
        assert "own_law.mots" in capfd.readouterr().err
        assert isinstance(bench.node, ControllerNode)
    finally:
        bench.destroy()
