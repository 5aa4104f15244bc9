"""How a controller process ends: it brakes first, and what it commands last."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from trajectory_bench import START, STILL, TrajectoryBench, trajectory_bench

from rnea_control.dynamics import Workspace, gravity

DOMAIN = 76
POINTS = [(0.5, START + 0.5, STILL), (1.0, START, STILL)]


@contextmanager
def moving(**parameters: object) -> Iterator[TrajectoryBench]:
    with trajectory_bench(DOMAIN, **parameters) as bench:
        bench.follow(POINTS)
        bench.run(0.25)
        assert np.abs(bench.arm.node.v).max() > 0.3
        yield bench


def end(bench: TrajectoryBench) -> None:
    """Steps for as long as the controller answers."""
    for _ in range(1000):
        if bench.process.process.poll() is not None or not bench.arm.answers():
            break
    bench.wait(lambda: bench.process.process.poll() is not None)
    assert bench.process.process.poll() == 0


def last_command(bench: TrajectoryBench) -> np.ndarray:
    return bench.arm.node.effort_controller._command


def test_gravity_torque_after_braking() -> None:
    with moving() as bench:
        bench.process.process.send_signal(signal.SIGTERM)
        end(bench)
        assert np.abs(bench.arm.node.v).max() < 0.05
        model = bench.arm.node.model
        expected = gravity(model, Workspace(model), bench.arm.node.q, np.zeros(2))
        np.testing.assert_allclose(last_command(bench), expected, atol=0.02)
        assert "like a pencil on its tip" in bench.process.output


def test_zero_torque_is_approached_within_the_rate() -> None:
    rate = {"shoulder": 500.0, "elbow": 500.0}
    with moving(last_command="zero", torque_rate_limits=rate) as bench:
        commands: list[np.ndarray] = []
        receive = bench.arm.node.effort_controller.receive

        def record(values: object) -> str | None:
            commands.append(np.array(values))
            return receive(values)

        bench.arm.node.effort_controller.receive = record
        bench.process.process.send_signal(signal.SIGTERM)
        end(bench)
        np.testing.assert_array_equal(commands[-1], 0.0)
        steps = np.abs(np.diff(commands[-10:], axis=0)).max()
        assert 0.0 < steps <= 500.0 * 0.001 * 5.0  # on a busy machine the reader overwrites some
        assert "zero torque" in bench.process.output


def test_holds_on_until_a_second_signal() -> None:
    with moving(hold_on_shutdown=-1.0) as bench:
        process = bench.process.process
        process.send_signal(signal.SIGINT)
        bench.wait(lambda: "until nobody takes the commands" in bench.process.output)
        bench.run(1.5)
        assert process.poll() is None
        assert np.abs(bench.arm.node.v).max() < 1e-3  # braked, and held
        process.send_signal(signal.SIGINT)
        end(bench)
