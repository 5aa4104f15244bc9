r"""Whether the model's gravity torques are those that hold the robot at rest, and if not, why.

At rest, all of a joint's torque holds it against gravity, and should be g(q). Two witnesses tell
the real holding torque: the measured effort, and the controller's own feedback, which makes up for
errors of the model. The torques of all joints together tell the causes apart:

==================  ======================================================================
torque              cause
==================  ======================================================================
0                   firmware that compensates gravity, or an effort that is not measured
2 g                 gravity compensated twice, or not at all where the firmware should
-g, or :math:`G a`  another direction of gravity; G has g(q) for a unit vector along each axis
k g                 the unit of the effort, such as ampere; masses
:math:`g + J^T F`   a point mass fixed to the last link, or one that the model has too many
==================  ======================================================================
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.laws import ControlLaw, Model
from rnea_control.dynamics import Workspace, crba, forward_kinematics, gravity, jacobian
from rnea_control.exceptions import ControllerError
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

# A cause explains the torques if the differences from the model that it leaves are within the
# bounds, and are at most this part of all differences, over all joints.
UNEXPLAINED = 0.25
# Gravity of another strength than the model's, as a part, is no mere direction.
OTHER_STRENGTH = 0.05
# A load further than this from the last link's frame is none that an arm carries, [m].
LONGEST_LOAD = 0.5


class Witness(Enum):
    """The source of the holding torque."""

    effort = "measured"
    feedback = "held with"


# The likely reason why model and robot differ.
Cause = Enum("Cause", "none no_torque twice opposite direction ratio payload unknown")


@dataclass(frozen=True)
class ModelCheck:
    """What a check has found."""

    # Holding torque minus g(q), shape (nv,), [Nm] or [N]; NaN where it is not known.
    difference: FloatArray
    joints: tuple[int, ...]  # those whose difference is beyond the bound
    cause: Cause  # the likely one
    explanation: str  # the same in words, with what to set; empty if nothing differs
    sentences: tuple[str, ...]  # one for each of `joints`


class _Guess(NamedTuple):
    """A cause, the torques that it would make, and how many numbers were fitted to say so."""

    cause: Cause
    torque: FloatArray
    fitted: int
    explanation: str


def holding_torque_of_feedback(
    model: RobotModel,
    ws: Workspace,
    law: ControlLaw,
    q: FloatArray,
    feedback: FloatArray,
    hardware_compensates_gravity: bool = False,
) -> FloatArray:
    """The torque by which a controller holds an arm at rest, shape (nv,), [Nm] or [N]: the model's
    gravity torque plus the feedback.

    Args:
        law: in force; the other arguments are as of `check_model`.
        feedback: of the law, P and I together (or I alone, where the error is 0), shape (nv,):
            an acceleration or a torque, as the law says.

    Raises:
        ControllerError: a law that holds no position has no feedback.
    """
    if not law.holds_position:
        raise ControllerError(f"{law.name} has no feedback that tells of the model")
    torque = gravity(model, ws, q, np.zeros(model.nv))
    if law.model is Model.none and not hardware_compensates_gravity:
        torque[:] = 0.0
    if law.feeds_back_acceleration:
        feedback = crba(model, ws, q, np.zeros((model.nv, model.nv))) @ feedback
    return torque + feedback


def check_model(
    model: RobotModel,
    ws: Workspace,
    q: FloatArray,
    torque: FloatArray,
    bound: FloatArray,
    witness: Witness,
    hardware_compensates_gravity: bool = False,
    link: str | None = None,
) -> ModelCheck:
    """Compares the torques that hold the robot at rest with the model's. Allocates; it compiles at
    its first call.

    Args:
        model, ws: the robot, and a workspace made for it.
        q: where it rests, shape (nq,), [rad] or [m].
        torque: that holds it there, shape (nv,), [Nm] or [N]; NaN for joints where that is not
            known.
        bound: differences that are allowed, such as static friction, shape (nv,), [Nm] or [N]; a
            joint with a bound of 0 is not judged.
        witness: where `torque` is from.
        hardware_compensates_gravity: whether the controller believes so.
        link: that a payload would be fixed to; by default the one that the last joint moves.
    """
    g = gravity(model, ws, q, np.zeros(model.nv))
    difference = np.asarray(torque, dtype=np.float64) - g
    known = np.isfinite(difference) & (bound > 0.0)
    joints = tuple(int(j) for j in np.flatnonzero(known & (np.abs(difference) > bound)))
    if not joints:
        return ModelCheck(difference, (), Cause.none, "", ())
    weight = np.where(known, 1.0 / np.where(known, bound, 1.0), 0.0)
    missing = np.where(known, difference, 0.0)
    judge = _Judge(model, ws, q, g, missing, weight, link or model.child_links[-1])
    guess = judge.likely(witness, hardware_compensates_gravity)
    cause, explanation = Cause.unknown, "payload, gravity vector, or firmware that compensates?"
    if guess is not None:
        cause, explanation = guess.cause, guess.explanation
    sentences = tuple(
        f"{model.joint_names[j]}: model {g[j]:.1f} {units(model, j).effort}, {witness.value} "
        f"{torque[j]:.1f} {units(model, j).effort}: {explanation}"
        for j in joints
    )
    return ModelCheck(difference, joints, cause, explanation, sentences)


@dataclass(frozen=True)
class _Judge:
    """The torques of one posture, and the causes that could make them."""

    model: RobotModel
    ws: Workspace
    q: FloatArray
    g: FloatArray
    missing: FloatArray  # holding torque minus g; 0 where it is not known
    weight: FloatArray  # one over the bound; 0 where the torque is not known
    link: str

    def likely(self, witness: Witness, believes: bool) -> _Guess | None:
        """The guess that explains the torques with the fewest numbers fitted, and best; `believes`:
        whether the controller does, that the hardware compensates gravity."""
        fitted = [self._one_factor(witness), self._load(False), self._load(True)]
        if self.model.gravity.any():
            fitted.append(self._direction())
        guesses = [*self._plain(witness, believes), *(guess for guess in fitted if guess)]
        size = np.linalg.norm(self.weight * self.missing)
        best, chosen = (math.inf, math.inf), None
        for k, guess in enumerate(guesses):
            rest = self.weight * (self.g + self.missing - guess.torque)
            part = float(np.linalg.norm(rest) / size)
            # With as many numbers as joints that tell, anything could be explained.
            telling = np.count_nonzero(self.weight * np.abs(guess.torque - self.g) > UNEXPLAINED)
            explains = np.abs(rest).max() <= 1.0 and part <= UNEXPLAINED and telling > guess.fitted
            if explains and (guess.fitted, part + 1e-9 * k) < best:
                best, chosen = (guess.fitted, part + 1e-9 * k), guess
        return chosen

    def _plain(self, witness: Witness, believes: bool) -> list[_Guess]:
        """Causes without a number."""
        effort = witness == Witness.effort
        x, y, z = self.model.gravity
        vector = f"gravity is [{x:g}, {y:g}, {z:g}] in the frame of {self.model.root_link!r}"
        flag = "hardware_compensates_gravity"
        if effort:
            none = f"does firmware compensate gravity ({flag}), or is the effort not measured?"
            twice = f"does firmware compensate gravity too ({flag}), or is its unit another?"
            if believes:
                none = "the effort leaves out the gravity that firmware compensates"
        else:
            none = f"the feedback takes it all away: does firmware compensate gravity ({flag})?"
            twice = "the feedback adds as much again: are the masses twice the model's?"
            if believes:
                twice = f"{flag} is true, but does the hardware do it?"
        sign = ", or the sign of the efforts" if effort else ""
        return [
            _Guess(Cause.no_torque, 0.0 * self.g, 0, none),
            _Guess(Cause.twice, 2.0 * self.g, 0, twice),
            _Guess(Cause.opposite, -self.g, 0, f"opposite: is that right, {vector}{sign}?"),
        ]

    def _fit(self, columns: FloatArray) -> tuple[FloatArray, int]:
        """The smallest numbers x with columns x closest to the missing torque, and their rank."""
        x, _, rank, _ = np.linalg.lstsq(
            self.weight[:, None] * columns, self.weight * self.missing, rcond=1e-6
        )
        return x.astype(np.float64), int(rank)

    def _one_factor(self, witness: Witness) -> _Guess | None:
        (part,), rank = self._fit(self.g[:, None])
        question = "are all masses so much off?"
        if witness == Witness.effort:
            question = "is the effort a motor current in ampere, or in another unit?"
        words = f"one factor of {1.0 + part:.3g} for all joints: {question}"
        return _Guess(Cause.ratio, (1.0 + part) * self.g, 1, words) if rank else None

    def _direction(self) -> _Guess | None:
        """Gravity of the same strength in another direction."""
        gravity_now, turned = self.model.gravity, copy.copy(self.model)
        turned.bodies = self.model.bodies.copy()  # all that `gravity` reads
        columns = np.zeros((len(self.g), 3))
        for k, axis in enumerate(np.eye(3)):
            turned.gravity = axis
            columns[:, k] = gravity(turned, self.ws, self.q, np.zeros(len(self.g)))
        change, rank = self._fit(columns)
        vector, strength = gravity_now + change, np.linalg.norm(gravity_now)
        if abs(np.linalg.norm(vector) / strength - 1.0) > OTHER_STRENGTH:
            return None
        x, y, z = vector
        words = (
            f"gravity along [{x:.2f}, {y:.2f}, {z:.2f}] in the frame of {self.model.root_link!r} "
            "would do this: parameter gravity?"
        )
        # Its strength, which was not fitted to, agrees.
        return _Guess(Cause.direction, self.g + columns @ change, rank - 1, words)

    def _load(self, off_the_origin: bool) -> _Guess | None:
        """A point mass on the last link, at its frame's origin or anywhere near."""
        J = jacobian(self.model, self.ws, self.q, self.link, np.zeros((6, len(self.g))))
        # m g at the origin, and (m R c) x g about it: the columns are for m and m R c.
        columns = -J[:3].T @ self.model.gravity[:, None]
        if off_the_origin:
            moments = np.cross(np.eye(3), self.model.gravity)
            columns = np.hstack([columns, -J[3:].T @ moments.T])
        x, rank = self._fit(columns)
        mass, moment = x[0], x[1:]
        if rank == 0 or mass == 0.0:
            return None
        center = np.zeros(3)
        if off_the_origin:
            poses = np.zeros((len(self.model.link_names), 4, 4))
            forward_kinematics(self.model, self.ws, self.q, poses)
            rotation = poses[self.model.link_names.index(self.link), :3, :3]
            center = rotation.T @ moment / mass
            if np.linalg.norm(center) > LONGEST_LOAD:
                return None
        where = f"at [{', '.join(f'{c:.2f}' for c in center)}] m of {self.link!r}"
        words = f"a payload of {mass:.2f} kg {where} would do this: payload.mass?"
        if mass < 0.0:
            words = f"{-mass:.2f} kg less {where} would do this: is the payload dropped?"
        return _Guess(Cause.payload, self.g + columns @ x, rank, words)
