"""A law of a user in a node: named at the start only, with its own parameters."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from dds import JOINTS, ros
from node_bench import GOOD, GRAVITY, Bench, Q

from rnea_control.node.controller_node import ControllerNode

EXAMPLES = Path(__file__).parents[2] / "examples"
DOMAIN = 57
LAW = {
    **GOOD,
    "control_law": "own",
    "own_law.function": "soft_spring.soft_spring",
    "own_law.damping.elbow": 4.0,
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
    v = np.array([0.1, -0.2])
    off = np.array([0.05, 0.03])
    torque = bench.answer(Q - off, v)
    own = bench.node.loop.controller.arrays.settings[0].own
    assert own[1].tolist() == [10.0, 4.0]
    pull = 20.0 * np.tanh(100.0 * off / 20.0)
    damping = np.array([10.0, 4.0]) * v
    moved = torque - GRAVITY - pull + damping
    assert np.abs(moved).max() < 2.0, moved  # gravity at another position
    assert bench.set(own_law__stiffness__elbow=50.0) == ""
    softer = bench.answer(Q - off, v)
    half = 20.0 * np.tanh(50.0 * off[1] / 20.0)
    assert torque[1] - softer[1] == pytest.approx(pull[1] - half, rel=1e-6)
    # A stop is simulated with the law, and what could not be braked is refused.
    refused = bench.set(own_law__stiffness__elbow=0.0)
    assert refused.startswith("own_law.stiffness.elbow is 0, at least ")
    assert bench.node.get_parameter("own_law.most.shoulder").value == 20.0


def test_function_cannot_be_named_while_the_process_runs(bench: Bench) -> None:
    refused = bench.set(own_law__function="os.system")
    assert "'own_law.function' cannot change: it is read when the process starts" in refused
    bench.node.trigger_deactivate()
    bench.node.trigger_cleanup()
    refused = bench.set(own_law__function="soft_spring.another")
    assert "'own_law.function' cannot change: it is read when the process starts" in refused


def test_law_changes_to_one_that_is_built_in_and_back(bench: Bench) -> None:
    bench.answer()
    assert bench.set(control_law="computed_torque") == ""
    bench.answer()
    assert bench.set(control_law="own") == ""
    bench.answer()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"own_law.function": ""}, "own_law.function must name the function"),
        ({"own_law.function": "soft_spring.math"}, "with the decorator own_law"),
        ({"own_law.function": "nowhere.law"}, "cannot be imported: ModuleNotFoundError"),
        ({"own_law.stiffness.elbow": "high"}, "own_law.stiffness.elbow"),
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
    bench = Bench(**{**LAW, f"own_law.stifness.{JOINTS[0]}": 1.0})
    try:
        assert "own_law.stifness" in capfd.readouterr().err
        assert isinstance(bench.node, ControllerNode)
    finally:
        bench.destroy()
