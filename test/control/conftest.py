"""What the tests of the controller share."""

from __future__ import annotations

from pathlib import Path

import pytest
from robots import PANDA_JOINTS, load_quietly

from rnea_control.model import RobotModel


@pytest.fixture
def panda(panda_urdf: Path) -> RobotModel:
    """The Panda arm, to be changed at will."""
    return load_quietly(panda_urdf, PANDA_JOINTS)
