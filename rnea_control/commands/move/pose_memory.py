"""`PoseMemory`: file with the position at which the last rnea_move of a controller started. No
ROS."""

from __future__ import annotations

import json
import math
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.exceptions import TrajectoryPointsError, listed

LARGEST = 1_000_000  # largest size of the file [bytes]


class Pose(NamedTuple):
    """A stored pose."""

    position: FloatArray  # shape (nv,), [rad] or [m]
    age: float  # [s]


class PoseMemory:
    """The file of one controller: in the folder rnea_control of $ROS_HOME, else of $XDG_STATE_HOME
    or ~/.local/state.

    Args:
        controller: full name of the controller's node.
        environment: environment of the process; ROS_DOMAIN_ID is part of the file's name.
    """

    def __init__(self, controller: str, environment: Mapping[str, str] = os.environ) -> None:
        state = environment.get("XDG_STATE_HOME") or "~/.local/state"
        home = Path(environment.get("ROS_HOME") or state).expanduser()
        domain = environment.get("ROS_DOMAIN_ID") or "0"
        name = quote(f"move_domain_{domain}{controller}", safe="")
        self.path = home / "rnea_control" / f"{name}.json"

    def read(self, joint_names: Sequence[str]) -> Pose:
        """The stored pose of these joints.

        Raises:
            TrajectoryPointsError: no pose is stored, or the pose has other joints.
        """
        what = f"the start of the last rnea_move is unknown ({self.path}"
        try:
            if self.path.stat().st_size > LARGEST:
                raise ValueError("it is too large")
            content = json.loads(self.path.read_text(encoding="utf-8"))
            pose, when = content["positions"], float(content["time"])
            if sorted(pose) != sorted(joint_names):
                raise TrajectoryPointsError(
                    f"{what}: it has the joints {listed(sorted(map(str, pose)))}; the controller "
                    f"has {listed(joint_names)}). Give the pose by --to"
                )
            position = np.array([float(pose[name]) for name in joint_names])
            if not (np.isfinite(position).all() and math.isfinite(when)):
                raise ValueError("a number is not finite")
        except FileNotFoundError:
            raise TrajectoryPointsError(f"{what} does not exist). Give the pose by --to") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            if isinstance(error, TrajectoryPointsError):
                raise
            raise TrajectoryPointsError(
                f"{what} cannot be used: {type(error).__name__}: {error}). Give the pose by --to"
            ) from error
        return Pose(position, max(time.time() - when, 0.0))

    def write(self, joint_names: Sequence[str], position: FloatArray) -> bytes | None:
        """Stores a pose; returns the previous content of the file, for `restore`.

        Raises:
            OSError: the file cannot be written.
        """
        before = None
        with suppress(OSError):
            if self.path.stat().st_size <= LARGEST:
                before = self.path.read_bytes()
        pose = dict(zip(joint_names, map(float, position), strict=True))
        self.restore(json.dumps({"positions": pose, "time": time.time()}, indent=1).encode())
        return before

    def restore(self, content: bytes | None) -> None:
        """Replaces the content of the file atomically; None removes the file.

        Raises:
            OSError: the file cannot be written.
        """
        if content is None:
            self.path.unlink(missing_ok=True)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=".move")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(name).replace(self.path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
