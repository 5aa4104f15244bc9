"""What a run did to the arm, in the numbers that the table of docs/faults.md has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnea_control.model import RobotModel

# An arm slower than this is at rest, [rad/s].
STILL = 0.05
# The torque rate is that over so many periods: one more or less between two commands is jitter.
WINDOW = 5
# Of the arm, [s].
PERIOD = 1e-3


@dataclass(frozen=True)
class Measures:
    """Of the periods of a run from a fault on.

    Attributes:
        torque: largest commanded torque, as a share of the effort limit.
        rate: largest change of the command in force within `WINDOW` periods, as a share of the
            effort limit per second.
        rate_nm: the largest such change, [Nm/s].
        speed: largest velocity, as a share of the velocity limit.
        beyond: largest excursion beyond a position limit, [rad]; negative inside.
        astray: largest distance of a joint from the path, [rad].
        rest: periods from the fault until the arm rests for good; -1 if it does not.
        finite: whether every command was finite and of the right size.
        silence: longest time between two commands after the fault, in periods.
        handovers: how often the commands of one publisher are followed by those of another.
        goal: largest distance of a joint from the end of the path, at the end, [rad].
    """

    torque: float
    rate: float
    rate_nm: float
    speed: float
    beyond: float
    astray: float
    rest: int
    finite: bool
    silence: int
    handovers: int
    goal: float


def measure(
    model: RobotModel,
    periods: np.ndarray,
    commands: np.ndarray,
    fault: int,
    end: int,
    path: np.ndarray | None,
) -> Measures:
    """Measures the periods from `fault` to `end`.

    Args:
        model: of the arm.
        periods, commands: of a `Recording`.
        fault: the period in which the fault began.
        end: the first period that does not count.
        path: desired positions, shape (n, nv).
    """
    rows = periods[fault:end]
    sent = commands[(commands["tick"] >= fault) & (commands["tick"] < end)]
    finite = bool(np.isfinite(sent["torque"]).all() and (sent["values"] == model.nv).all())
    torque = np.abs(sent["torque"]) / model.effort_limit
    commanded = periods["command"][max(fault - WINDOW, 0) : end]
    change = np.abs(commanded[WINDOW:] - commanded[:-WINDOW]) / (WINDOW * PERIOD)
    q, v = rows["q"], rows["v"]
    ticks = np.concatenate([[fault], sent["tick"], [end]])
    moving = np.flatnonzero((np.abs(v) > STILL).any(axis=1))
    owner = sent["publisher"][sent["publisher"] != b""]
    rest = int(moving[-1]) + 1 if len(moving) else 0
    return Measures(
        torque=float(np.nanmax(torque, initial=0.0)),
        rate=float((change / model.effort_limit).max(initial=0.0)),
        rate_nm=float(change.max(initial=0.0)),
        speed=float((np.abs(v) / model.velocity_limit).max(initial=0.0)),
        beyond=float(np.maximum(q - model.upper, model.lower - q).max()),
        astray=0.0 if path is None else float(distance(q, path).max()),
        rest=-1 if rest >= len(rows) else rest,
        finite=finite,
        silence=int(np.diff(ticks).max()),
        handovers=int(np.count_nonzero(owner[1:] != owner[:-1])),
        goal=0.0 if path is None else float(np.abs(q[-1] - path[-1]).max()),
    )


def distance(q: np.ndarray, path: np.ndarray) -> np.ndarray:
    """How far each position is from the nearest one of the path, by its worst joint, [rad]."""
    points = path[::5]
    return np.array([np.abs(points - row).max(axis=1).min() for row in q[::5]])
