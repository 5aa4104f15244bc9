"""The usable parts of a recording: stamps that rise, without gaps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.identification.recording import Recording

# A stamp that falls by more than this begins another motion; by less, the message is late, [s].
RESTART = 0.5
# A gap is a time without states of more than so many periods.
GAP_PERIODS = 5.0
# So short a time is bridged, however many periods it has, [s].
SHORT_GAP = 0.01
# A part between two gaps counts if it is at least this long, [s].
SHORTEST = 1.0
# And of so many samples, as the filter needs them.
LEAST_SAMPLES = 50


def cleaned(
    recording: Recording, notes: list[str]
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Time, positions and efforts that can be used, and where the time starts again."""
    time = recording.time
    whole = np.isfinite(recording.q).all(axis=1) & np.isfinite(recording.effort).all(axis=1)
    whole &= np.isfinite(time)
    if not whole.all():
        notes.append(
            f"{recording.source}: {np.count_nonzero(~whole)} of {len(time)} states lack a position "
            "or an effort; they were left out"
        )
    restarts = np.concatenate([[False], np.diff(time) < -RESTART])
    motions = np.cumsum(restarts)
    latest = np.full(len(time), -np.inf)
    for k in range(int(motions[-1]) + 1 if len(time) else 0):
        rows = np.flatnonzero(motions == k)
        latest[rows[1:]] = np.maximum.accumulate(time[rows])[:-1]
    in_order = time > latest
    dropped = np.count_nonzero(~in_order)
    if dropped:
        notes.append(
            f"{recording.source}: the stamps of {dropped} states fall or repeat; they were left out"
        )
    if motions.size and motions[-1]:
        notes.append(
            f"{recording.source}: the stamps start again {motions[-1]} times; each part counts by "
            "itself"
        )
    kept = whole & in_order
    moved = motions[kept]
    starts = np.concatenate([[False], np.diff(moved) > 0]) if len(moved) else restarts[:0]
    return time[kept], recording.q[kept], recording.effort[kept], starts


def continuous(
    recording: Recording, time: FloatArray, starts: BoolArray, period: float, notes: list[str]
) -> list[slice]:
    """The parts without gaps that are long enough."""
    if len(time) < 2:
        return []
    widest_hole = max(GAP_PERIODS * period, SHORT_GAP)
    gaps = np.concatenate([[False], np.diff(time) > widest_hole]) & ~starts
    cuts = [0, *np.flatnonzero(gaps | starts).tolist(), len(time)]
    parts = [slice(*pair) for pair in pairwise(cuts)]
    least = max(SHORTEST / period, LEAST_SAMPLES)
    long = [part for part in parts if part.stop - part.start >= least]
    if gaps.any():
        widest = float(np.diff(time)[gaps[1:]].max())
        notes.append(
            f"{recording.source}: {np.count_nonzero(gaps)} gaps, the longest of {widest:.3g} s; "
            "what is between them counts part by part"
        )
    lost = sum(part.stop - part.start for part in parts) - sum(
        part.stop - part.start for part in long
    )
    if lost and long:
        notes.append(
            f"{recording.source}: {lost} states in parts of less than {SHORTEST:g} s were left out"
        )
    return long
