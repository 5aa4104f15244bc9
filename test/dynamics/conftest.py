"""What holds for all tests of the algorithms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from states import changed_examples


@pytest.fixture(scope="module", autouse=True)
def shared_robots_are_left_as_they_were() -> Iterator[None]:
    yield
    assert changed_examples() == []
