"""Reads the controlled joints out of JointState messages, and refuses what it cannot trust."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from sensor_msgs.msg import JointState

from rnea_control.exceptions import RneaControlError


class JointStateError(RneaControlError, ValueError):
    """A JointState message without a usable measurement of every controlled joint."""


class JointStateReader:
    """Reads messages into the arrays `q` and `v`, whose order is that of `joints`.

    joint_state_broadcaster keeps no order, mixes in other joints, and leaves fields empty or NaN:
    joints are matched by name, once for every new list of names, and every number is checked.
    """

    def __init__(self, joints: Sequence[str]) -> None:
        self.q = np.zeros(len(joints))
        self.v = np.zeros(len(joints))
        self._joints = tuple(joints)
        self._names: list[str] | None = None
        self._indices: list[int] = []

    def read(self, message: JointState) -> None:
        """Fills `q` and `v`.

        Raises:
            JointStateError: names the joint and what is wrong; `q` and `v` stay as they were.
        """
        if message.name != self._names:
            self._match(message.name)
        position, velocity = message.position, message.velocity
        for name, field in (("position", position), ("velocity", velocity)):
            if len(field) != len(message.name):
                raise JointStateError(
                    f"a joint_states message has {len(field)} {name} values for "
                    f"{len(message.name)} names; "
                    "it must have one for each"
                )
        for joint, i in zip(self._joints, self._indices, strict=True):
            if not (math.isfinite(position[i]) and math.isfinite(velocity[i])):
                raise JointStateError(
                    f"joint_states: joint {joint!r} has position {position[i]} and velocity "
                    f"{velocity[i]}; "
                    "both must be finite. Does its hardware export both state interfaces?"
                )
        for j, i in enumerate(self._indices):
            self.q[j] = position[i]
            self.v[j] = velocity[i]

    def _match(self, names: list[str]) -> None:
        missing = [joint for joint in self._joints if joint not in names]
        if missing:
            raise JointStateError(
                f"joint_states lacks {', '.join(missing)} of `joints`; it has "
                f"{', '.join(names) or 'no names'}"
            )
        if len(set(names)) != len(names):
            raise JointStateError(f"joint_states names a joint twice: {', '.join(names)}")
        self._indices = [names.index(joint) for joint in self._joints]
        self._names = list(names)
