"""`Postures`: file with named postures of an arm. No ROS."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
import yaml

from rnea_control.array_types import FloatArray

LARGEST = 1_000_000  # largest size of the file [bytes]
MOST = 100  # postures of an arm
LONGEST_NAME = 40  # characters


class Postures:
    """Postures of an arm by name. They are in the folder rnea_control of $ROS_HOME, else of
    $XDG_STATE_HOME or ~/.local/state.

    Args:
        controller: full name of the controller's node.
        joint_names: joints of the arm; postures of other joints are left out.
        environment: environment of the process.

    Attributes:
        path: the file.
    """

    def __init__(
        self,
        controller: str,
        joint_names: Sequence[str],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        state = environment.get("XDG_STATE_HOME") or "~/.local/state"
        home = Path(environment.get("ROS_HOME") or state).expanduser()
        name = quote(f"postures{controller}", safe="")
        self.path = home / "rnea_control" / f"{name}.yaml"
        self._joints = tuple(joint_names)

    def read(self) -> dict[str, FloatArray]:
        """Positions in the order of the joints, shape (nv,), [rad] or [m], by name; none from a
        file that is not one of this class."""
        found = {}
        try:
            if self.path.stat().st_size > LARGEST:
                return {}
            content = yaml.safe_load(self.path.read_text(encoding="utf-8"))
            for name, posture in content.items():
                positions = np.array([float(posture[joint]) for joint in self._joints])
                if np.isfinite(positions).all():
                    found[str(name)[:LONGEST_NAME]] = positions
        except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
            pass
        return found

    def write(self, postures: Mapping[str, FloatArray]) -> None:
        """Replaces the content of the file atomically.

        Raises:
            OSError: the file cannot be written.
        """
        content = {
            name: dict(zip(self._joints, map(float, positions), strict=True))
            for name, positions in postures.items()
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=".postures")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                yaml.safe_dump(content, file, sort_keys=False)
            Path(name).replace(self.path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
