r"""Checks that the model's gravity torques hold the robot at rest, and finds the cause if not.

At rest, all of a joint's torque holds it against gravity, and should be g(q). There are two sources
for the real holding torque: the measured effort, and the controller's own feedback, which
compensates errors of the model. The torques of all joints together separate the causes:

==================  ======================================================================
torque              cause
==================  ======================================================================
0                   firmware that compensates gravity, or an effort that is not measured
-g, or :math:`G a`  another direction of gravity; G has g(q) for a unit vector along each axis
k g                 the unit of the effort, such as ampere; by the feedback, masses, or gravity
                    that is compensated twice, or not at all where the firmware should
:math:`g + J^T F`   a point mass fixed to the last link, or one that the model has too many
==================  ======================================================================
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.dynamics import Workspace, forward_kinematics, gravity, jacobian
from rnea_control.model import RobotModel
from rnea_control.plausibility.causes import (
    GRAVITY,
    PAYLOAD,
    UNIT,
    UNKNOWN,
    Cause,
    Contribution,
    effort_words,
    gravity_words,
    scale_words,
    told,
)

# A cause explains the torques if the remaining differences from the model are within the bounds,
# and are at most this part of all differences, over all joints.
UNEXPLAINED = 0.25
OTHER_STRENGTH = 0.05  # relative change of gravity's strength that is more than a direction
LONGEST_LOAD = 0.5  # distance of a load from the last link's frame, at most [m]


class Witness(Enum):
    """The source of the holding torque."""

    effort = "measured"
    feedback = "held with"


@dataclass(frozen=True)
class ModelCheck:
    """Result of a check.

    Attributes:
        difference: holding torque minus g(q), shape (nv,), [Nm] or [N]; NaN where it is not known.
        torques: both torques of each joint whose difference is beyond the bound, in words.
        likely: the likely cause; None if nothing differs.
        values: numbers of the cause: gravity in the root link's frame, [m/s^2]; the factor of the
            efforts; or a load's mass, [kg], and center of mass, [m].
    """

    difference: FloatArray
    torques: tuple[str, ...] = ()
    likely: Contribution | None = None
    values: FloatArray = field(default_factory=lambda: np.zeros(0))


class _Guess(NamedTuple):
    """A possible explanation of the holding torque in place of g(q)."""

    more: FloatArray  # torque in addition to g(q), shape (nv,)
    fitted: int  # how many numbers were fitted
    cause: Cause
    values: FloatArray  # see `ModelCheck`
    names: dict[str, Any]  # values for the words of the table of causes


# Gives the smallest numbers x with columns x closest to the missing torque, and their rank.
Fit = Callable[[FloatArray], tuple[FloatArray, int]]


def check_model(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    torque: FloatArray,
    bound: FloatArray,
    witness: Witness,
    link: str | None = None,
) -> ModelCheck:
    """Compares the torques that hold the robot at rest with the model's. Allocates; compiles at its
    first call.

    Args:
        model, ws: the robot, and a workspace made for it.
        q: position of rest, shape (nq,), [rad] or [m].
        torque: torque that holds the robot there, shape (nv,), [Nm] or [N]; NaN for joints where it
            is not known.
        bound: differences that are allowed, such as static friction, shape (nv,), [Nm] or [N]; a
            joint with a bound of 0 is not judged.
        witness: the source of `torque`.
        link: the link with a payload; by default the link that the last joint moves.
    """
    g = gravity(model, ws, q, np.zeros(model.nv))
    difference = np.asarray(torque, dtype=np.float64) - g
    known = np.isfinite(difference) & (bound > 0.0)
    weight = np.divide(1.0, bound, out=np.zeros(model.nv), where=known)
    missing = np.where(known, difference, 0.0)
    differing = np.abs(weight * missing) > 1.0
    if not differing.any():
        return ModelCheck(difference)

    def fit(columns: FloatArray) -> tuple[FloatArray, int]:
        x, _, rank, _ = np.linalg.lstsq(weight[:, None] * columns, weight * missing, rcond=1e-6)
        return x.astype(np.float64), int(rank)

    fewest, least, best = math.inf, math.inf, None
    for guess in _guesses(model, ws, q, fit, witness, link or model.child_links[-1]):
        rest, change = weight * (missing - guess.more), weight * guess.more
        left = round(float(np.linalg.norm(rest) / np.linalg.norm(weight * missing)), 9)
        # With a fitted number for each joint that changes, anything could be explained.
        telling = np.count_nonzero(np.abs(change) > UNEXPLAINED)
        explains = np.abs(rest).max() <= 1.0 and left <= UNEXPLAINED and telling > guess.fitted
        if explains and (guess.fitted, left) < (fewest, least):
            fewest, least, best = guess.fitted, left, guess
    likely, values = told(UNKNOWN, model, differing), np.zeros(0)
    if best is not None:
        part = 1.0 - least
        likely, values = told(best.cause, model, differing, part=part, **best.names), best.values
    torques = tuple(
        f"{model.joint_names[j]}: model {effort_words(model, j, g, '.1f')}, {witness.value} "
        f"{effort_words(model, j, torque, '.1f')}"
        for j in map(int, np.flatnonzero(differing))
    )
    return ModelCheck(difference, torques, likely, values)


def _guesses(
    model: RobotModel, ws: Workspace, q: FloatArray, fit: Fit, witness: Witness, link: str
) -> Iterator[_Guess]:
    """Explanations of the torque that holds the robot at `q`; payloads are on `link`."""
    own, by_effort = model.gravity, witness is Witness.effort
    G = _gravity_columns(model, ws, q)

    def of_gravity(other: FloatArray, fitted: int, more: str = "") -> _Guess:
        what = gravity_words(model, other) + more
        return _Guess(G @ (other - own), fitted, GRAVITY, other, {"what": what})

    if own.any():
        yield of_gravity(0.0 * own, 0)
        yield of_gravity(-own, 0, "; or the sign of the efforts is reversed" if by_effort else "")
        change, rank = fit(G)
        if abs(np.linalg.norm(own + change) / np.linalg.norm(own) - 1.0) <= OTHER_STRENGTH:
            # Gravity's strength, which was not fitted to, agrees.
            yield of_gravity(own + change, rank - 1)
        (part,), rank = fit(G @ own[:, None])
        if rank and by_effort:
            names = {"what": scale_words(1.0 + part)}
            yield _Guess(part * G @ own, 1, UNIT, np.array([1.0 + part]), names)
        elif rank:
            yield of_gravity((1.0 + part) * own, 1, "; or all masses are")
    J = jacobian(model, ws, q, link, np.zeros((6, model.nv)))
    # m g at the origin of the frame, and (m R c) x g about it: the columns are for m and m R c.
    columns = np.hstack([-J[:3].T @ own[:, None], -J[3:].T @ np.cross(np.eye(3), own).T])
    poses = np.zeros((len(model.link_names), 4, 4))
    forward_kinematics(model, ws, q, poses)
    rotation = poses[model.link_names.index(link), :3, :3]
    for count in (1, 4):  # at the origin, or anywhere near
        x, rank = fit(columns[:, :count])
        mass = x[0]
        if rank == 0 or mass == 0.0:
            continue
        center = rotation.T @ np.pad(x[1:], (0, 4 - count)) / mass
        if np.linalg.norm(center) <= LONGEST_LOAD:
            where = ", ".join(f"{c:.3f}" for c in center)
            names = {"mass": mass, "link": link, "center": where}
            load = np.array([mass, *center])
            yield _Guess(columns[:, :count] @ x, rank, PAYLOAD, load, names)


def _gravity_columns(model: RobotModel, ws: Workspace, q: FloatArray) -> FloatArray:
    """G above, shape (nv, 3)."""
    turned = copy.copy(model)
    turned.bodies = model.bodies.copy()  # all that `gravity` reads
    G = np.zeros((model.nv, 3))
    for k, axis in enumerate(np.eye(3)):
        turned.gravity = axis
        G[:, k] = gravity(turned, ws, q, np.zeros(model.nv))
    return G
