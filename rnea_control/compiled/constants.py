"""Which numbers of a robot are constants of its code, and whether they still are as they were."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from rnea_control.compiled.calls import CHANGES, VARIABLE
from rnea_control.exceptions import ArgumentError
from rnea_control.model import RobotModel
from rnea_control.model import bodies as layout

GRAVITY, ARMATURE = "gravity", "armature"

_OF_GRAVITY = range(layout.BASE_ACCELERATION, layout.BASE_ACCELERATION + 3)
_OF_INERTIA = range(layout.INERTIA, layout.INERTIA + 10)
_OF_ARMATURE = range(layout.ARMATURE, layout.ARMATURE + 1)
# The columns of `model.bodies` that change with each count of `CHANGES`.
_COLUMNS = (_OF_GRAVITY, _OF_INERTIA, _OF_ARMATURE)


class Constants:
    """The numbers of a robot when this was made.

    Args:
        model, variable: as of `compile_robot`.

    Attributes:
        variable: entries of `model.bodies`, (row, column), that are none: code reads them when it
            runs.
        expected: how often a setter has changed each of `CHANGES`, or `VARIABLE`, for `calls`.

    Raises:
        ArgumentError: a word in `variable` that means nothing.
    """

    def __init__(self, model: RobotModel, variable: Collection[str]) -> None:
        self._model = model
        self.variable = frozenset(entry for word in variable for entry in _entries_of(model, word))
        self._numbers = model.bodies.copy()
        self.expected = np.array([model.bodies[0, column] for column in CHANGES])
        for k, columns in enumerate(_COLUMNS):
            if _entries(model, columns) <= self.variable:
                self.expected[k] = VARIABLE

    def check(self) -> None:
        """Accepts what has changed and was set back.

        Raises:
            ArgumentError: a constant has changed.
        """
        now = self._model.bodies
        differs = now != self._numbers
        differs[0, list(CHANGES)] = False
        for entry in self.variable:
            differs[entry] = False
        if differs.any():
            row, column = np.argwhere(differs)[0]
            raise ArgumentError(
                f"{self._model.name!r} has changed since it was compiled ({_name(row, column)}); "
                "compile it again, or name what changes in `variable`"
            )
        for k, column in enumerate(CHANGES):
            if self.expected[k] != VARIABLE:
                self.expected[k] = now[0, column]


def _entries(model: RobotModel, columns: Sequence[int]) -> set[tuple[int, int]]:
    rows = range(1) if columns is _OF_GRAVITY else range(1, len(model.bodies))
    return {(row, column) for row in rows for column in columns}


def _entries_of(model: RobotModel, word: str) -> set[tuple[int, int]]:
    if word == GRAVITY:
        return _entries(model, _OF_GRAVITY)
    if word == ARMATURE:
        return _entries(model, _OF_ARMATURE)
    if word in model.link_names:
        row = int(model.links[model.link_names.index(word), layout.LINK_BODY])
        return {(row, column) for column in _OF_INERTIA}
    raise ArgumentError(
        f"variable has {word!r}; it may have {GRAVITY!r}, {ARMATURE!r} and the links of "
        f"{model.name!r}: {', '.join(model.link_names)}"
    )


def _name(row: int, column: int) -> str:
    """What an entry of `model.bodies` is, in words."""
    if row == 0 and column in _OF_GRAVITY:
        return "gravity"
    if column in _OF_INERTIA:
        return f"the inertia of body {row}"
    return f"the armature of body {row}" if column in _OF_ARMATURE else f"body {row}"
