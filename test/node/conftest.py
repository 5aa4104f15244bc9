"""The bench of the tests of trajectories: one controller process a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from trajectory_bench import TrajectoryBench


@pytest.fixture(scope="module")
def shared_bench(request: pytest.FixtureRequest) -> Iterator[TrajectoryBench]:
    """In the file's own `DOMAIN`."""
    from trajectory_bench import trajectory_bench  # noqa: PLC0415

    with trajectory_bench(request.module.DOMAIN) as bench:
        yield bench


@pytest.fixture
def bench(shared_bench: TrajectoryBench) -> Iterator[TrajectoryBench]:
    """The file's bench as it was at first."""
    shared_bench.reset()
    yield shared_bench
    assert "Traceback" not in shared_bench.process.output
