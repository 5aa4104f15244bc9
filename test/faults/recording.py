"""What an arm went through, in a memory-mapped file: it outlives the arm, and others may read it
while it grows."""

from __future__ import annotations

from pathlib import Path

import numpy as np

LONGEST = 120_000  # periods
MOST_COMMANDS = 3 * LONGEST
# Flags of a period: whether a fault of the states or of the effort controller was in force, and
# whether the arm waited for an answer.
FAULTY, PATIENT = 1, 2


def _periods(nv: int) -> np.dtype:
    joints = ("q", "v", "command", "torque")
    numbers = [("wall", "f8"), ("stamp", "i8"), ("commands", "i4"), ("flags", "i4")]
    return np.dtype([*numbers, *((name, "f8", nv) for name in joints)])


def _commands(nv: int) -> np.dtype:
    numbers = [("tick", "i8"), ("wall", "f8"), ("publisher", "S16"), ("values", "i4")]
    return np.dtype([*numbers, ("torque", "f8", nv)])


class Recording:
    """Periods and commands of a run.

    Args:
        folder: where the files are.
        nv: number of joints.
        create: whether to begin new ones.

    Attributes:
        counts: of periods and of commands so far, shape (2,).
        periods: a period of the arm each: when it began by the steady clock [s], the stamp of the
            state that was published (0 for none), how many commands came, its flags, q and v at its
            begin, the command in force during it, and the torque at the joints.
        commands: those received: in which period, when, the publisher's GID (empty where it is not
            known), how many numbers, and the numbers.
    """

    def __init__(self, folder: Path, nv: int, create: bool = False) -> None:
        mode = "w+" if create else "r"

        def array(name: str, dtype: np.dtype, size: int) -> np.memmap:
            return np.memmap(folder / name, dtype, mode, shape=(size,))

        self.periods = array("periods", _periods(nv), LONGEST)
        self.commands = array("commands", _commands(nv), MOST_COMMANDS)
        self.counts = array("counts", np.dtype("i8"), 2)

    def add_command(self, row: tuple) -> None:
        """Keeps a command."""
        i = self.counts[1]
        if i < MOST_COMMANDS:
            self.commands[i] = row
            self.counts[1] = i + 1

    def add_period(self, row: tuple) -> None:
        """Keeps a period."""
        i = self.counts[0]
        self.periods[i] = row
        self.counts[0] = i + 1

    @property
    def full(self) -> bool:
        return bool(self.counts[0] >= LONGEST)
