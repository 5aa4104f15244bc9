"""The example robots, each on its own base and on a floating one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import states
from states import Example, changed_examples, compared_robots


def _name(case: tuple[Path, bool]) -> str:
    path, floating_base = case
    return f"{path.stem}-{'floating' if floating_base else 'fixed'}"


@pytest.fixture(params=compared_robots(), ids=_name)
def example(request: pytest.FixtureRequest) -> Example:
    """Shared by all tests: to be left as it is."""
    return states.example(*request.param)


@pytest.fixture(scope="module", autouse=True)
def shared_robots_are_left_as_they_were() -> Iterator[None]:
    yield
    assert changed_examples() == []
