"""Mistakes of signs, orders and units between a controller and its arm, and the search for the
mistake that explains how an arm has answered to torques (arm_answer.py).

A `Mistake` defines how commands change on their way to the joints, and states on their way back.
The mistake with the best explanation is the likeliest one, if the explanation is much better than
without a mistake, and better than by a push: torques from outside that begin at some time, at any
joints.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.control.arm_answer import (
    MOST_LOSS,
    MOST_LOSS_OF_MANY,
    Answer,
    Judge,
    limits,
)
from rnea_control.dynamics import Workspace, gravity
from rnea_control.model import RobotModel

UNEXPLAINED = 0.2  # part of the score without a mistake that a mistake may keep
USUAL = 13.0  # score of each joint that a right explanation may have
EVIDENCE = 12.0  # least difference of the scores without and with a mistake
EARTH = (8.0, 11.5)  # gravity that an arm can feel [m/s^2]
UNITS = (-1.0, 0.0, 1e-3, 0.1, 10.0, 100.0, 1e3)  # factors by which all torques may arrive
JOINT_UNITS = (-1.0, 0.0, 0.1, 10.0)  # factors by which the torque of a single joint may arrive
GEARS = (0.5, 2.0)  # factors by which a joint may turn further than its positions say
OFFSETS = (-90, -60, -45, -30, -15, 15, 30, 45, 60, 90)  # offsets of encoders [degrees]
ALIKE = 6.0  # difference of scores within which two mistakes are equally likely
PUSH = 6.0  # cost of a push at a joint, which has two parameters
ONSETS = 15  # times at which a push is tried
STATES = 100  # number of states to which a longer answer is reduced

Rows = Callable[[FloatArray], FloatArray]


class Mistake(NamedTuple):
    """A possible mistake, and its effect on rows of shape (n, nv); None for no change."""

    kind: str = ""  # sign, order, unit, velocity, gear, encoder or gravity; empty for no mistake
    joints: tuple[int, ...] = ()  # joints with the mistake; empty for all
    words: str = ""
    torques: Rows | None = None  # commands to the torques of the joints, before the effort limits
    positions: Rows | None = None  # measured positions to true ones
    velocities: Rows | None = None
    hardware_adds_gravity: bool | None = None
    gravity: tuple[float, ...] | None = None
    most_loss: float = MOST_LOSS  # part of the torques that friction may take
    cost: float = 0.0  # improbability of the mistake beforehand, as a difference of scores


NONE = Mistake()


def _scaled(factor: float, j: int | None = None) -> Rows:
    def rows(values: FloatArray) -> FloatArray:
        values = values.copy()
        values[:, slice(None) if j is None else j] *= factor
        return values

    return rows


def _shifted(offset: float, j: int) -> Rows:
    def rows(values: FloatArray) -> FloatArray:
        values = values.copy()
        values[:, j] += offset
        return values

    return rows


def _exchanged(order: list[int]) -> Rows:
    return lambda values: values[:, order]


def _factor_words(what: str, arrives: str, factor: float) -> tuple[str, str]:
    """Kind and words of torques that arrive by a factor."""
    if factor == -1.0:
        return "sign", f"{what} {'have' if arrives == 'arrive' else 'has'} the wrong sign"
    if factor == 0.0:
        return "unit", f"{what} {arrives} not at all: are the drives enabled, the brakes open?"
    if factor > 1.0:
        times = f"{factor:g} times as large"
    else:  # torques that are late are small meanwhile
        times = f"{1.0 / factor:g} times too small, or too late"
    return "unit", f"{what} {arrives} {times}: check the unit of the commands, Nm or N"


def mistakes(model: RobotModel) -> Iterator[Mistake]:
    """All mistakes of wires to be tried."""
    names, nv = model.joint_names, model.nv
    for factor in UNITS:
        kind, words = _factor_words("the torques of all joints", "arrive", factor)
        loss = MOST_LOSS_OF_MANY if factor > 1.0 else MOST_LOSS
        yield Mistake(kind, (), words, _scaled(factor), most_loss=loss)
    if nv > 2:
        words = "the torques arrive in reverse order: check the order of `joints`"
        yield Mistake("order", (), words, _exchanged(list(range(nv))[::-1]), cost=8.0)
    for j, name in enumerate(names):
        for factor in JOINT_UNITS:
            kind, words = _factor_words(f"the torque of {name}", "arrives", factor)
            loss = MOST_LOSS_OF_MANY if factor > 1.0 else MOST_LOSS
            yield Mistake(kind, (j,), words, _scaled(factor, j), most_loss=loss, cost=2.0)
        words = f"the position of {name} has the wrong sign, or its torque"
        flip = _scaled(-1.0, j)
        yield Mistake("sign", (j,), words, positions=flip, velocities=flip, cost=4.0)
        words = f"the velocity of {name} has the wrong sign"
        yield Mistake("velocity", (j,), words, velocities=flip, cost=4.0)
        for factor in GEARS:
            words = f"{name} moves {factor:g} times as far as its positions say: check its gear "
            scale = _scaled(factor, j)
            yield Mistake("gear", (j,), words + "ratio", None, scale, scale, cost=6.0)
        if model.joint_types[j] != "prismatic":
            for offset in OFFSETS:
                words = f"the zero of {name} is off by about {abs(offset)} degrees: calibrate it"
                turn = _shifted(math.radians(offset), j)
                yield Mistake("encoder", (j,), words, positions=turn, cost=8.0)
        for i in range(j):
            order = list(range(nv))
            order[i], order[j] = j, i
            both, swap = (
                f"{names[i]} and {name} are exchanged: check the order of",
                _exchanged(order),
            )
            words = f"commands of {both} `joints` in the effort controller's YAML"
            yield Mistake("order", (i, j), words, swap, cost=5.0)
            words = f"states of {both} the joints in the hardware's driver"
            yield Mistake("order", (i, j), words, None, swap, swap, cost=7.0)


def _gravities(model: RobotModel, answer: Answer, constant: FloatArray) -> Iterator[Mistake]:
    """Mistakes of gravity; `constant`: additional constant torque at each joint, shape (nv,)."""
    adds = not answer.hardware_adds_gravity
    what = "adds the gravity torque itself" if adds else "does not add the gravity torque"
    words = f"the hardware {what}: set hardware_compensates_gravity to {str(adds).lower()}"
    yield Mistake("gravity", (), words, hardware_adds_gravity=adds)
    ws, q, columns = Workspace(model), answer.q[0].copy(), np.zeros((model.nv, 3))
    for k, axis in enumerate(np.eye(3)):
        columns[:, k] = gravity(_with_gravity(model, axis), ws, q, np.zeros(model.nv))
    weight = 1.0 / limits(model)
    change = np.linalg.lstsq(weight[:, None] * columns, -weight * constant, rcond=1e-6)[0]
    real = model.gravity + change
    if EARTH[0] < np.linalg.norm(real) < EARTH[1]:
        where = ", ".join(f"{value:.1f}" for value in real)
        words = f"gravity points to ({where}) m/s^2 in the root link's frame: set gravity"
        yield Mistake("gravity", (), words, gravity=tuple(real), cost=6.0)


def _with_gravity(model: RobotModel, acceleration: FloatArray | tuple[float, ...]) -> RobotModel:
    turned = copy.copy(model)
    turned.bodies = model.bodies.copy()
    turned.gravity = acceleration
    return turned


def explain(
    model: RobotModel, answer: Answer, evidence: float = EVIDENCE, push_factor: float = 1.0
) -> Mistake:
    """The likeliest mistake behind an answer; `NONE` if none explains it much better than no
    mistake. Takes tenths of a second.

    Args:
        model: the robot.
        answer: motion and torques; the torques act at their times, by the known delay.
        evidence: least difference of the scores without and with a mistake.
        push_factor: largest score of a mistake, relative to the score of a push.
    """
    step = max(len(answer) // STATES, 1)
    if step > 1:
        whole = (len(answer) - 1) // step
        tau = answer.tau[: whole * step].reshape(whole, step, -1).mean(axis=1)
        kept = slice(0, whole * step + 1, step)
        adds = answer.hardware_adds_gravity
        answer = Answer(answer.t[kept], answer.q[kept], answer.v[kept], tau, adds)
    judge = Judge(model, answer)
    joints = range(model.nv)
    own = np.array([judge.fit(j, answer.tau[:, j]).score for j in joints])
    constant = np.array([judge.fit(j, answer.tau[:, j], freely=True).constant for j in joints])
    without = float(own.sum())
    found = [
        (each.cost + _score(model, answer, judge, own, each), each)
        for each in (*mistakes(model), *_gravities(model, answer, constant))
    ]
    least, best = min(found, key=lambda pair: pair[0])
    usual = max(USUAL * model.nv, UNEXPLAINED * without)
    most = min(usual, without - evidence, push_factor * _push_score(answer, judge, own))
    if least > most:
        return NONE
    others = [pair for pair in found if pair[1].kind != best.kind]
    second, other = min(others, key=lambda pair: pair[0])
    if second - least > ALIKE:
        return best
    return best._replace(words=f"either {best.words}; or {other.words}")


def _push_score(answer: Answer, judge: Judge, own: FloatArray) -> float:
    """The score of an answer if torques from outside have acted since the likeliest time."""
    least = math.inf
    for onset in answer.t[np.unique(np.linspace(0, len(answer) - 3, ONSETS).astype(int))]:
        pushes = judge.push(float(onset))
        scores = (judge.fit(j, answer.tau[:, j], pushes=pushes).score for j in range(len(own)))
        least = min(least, sum(min(a, PUSH + b) for a, b in zip(own, scores, strict=True)))
    return least


def _score(
    model: RobotModel, answer: Answer, judge: Judge, own: FloatArray, mistake: Mistake
) -> float:
    """The score of an answer with a mistake; `judge` and `own`: the judge and the scores by joint,
    without a mistake."""
    if mistake.velocities is not None and mistake.positions is None:
        velocities = mistake.velocities(answer.v)
        if not _contradiction(answer, velocities) < _contradiction(answer, answer.v):
            return math.inf
    if mistake.torques is not None:
        tau = mistake.torques(answer.tau)
        changed = np.flatnonzero((tau != answer.tau).any(axis=0))
        scores = own.copy()
        for j in changed:
            scores[j] = judge.fit(int(j), tau[:, j], most_loss=mistake.most_loss).score
        return float(scores.sum())
    adds = mistake.hardware_adds_gravity
    real = Answer(
        answer.t,
        answer.q if mistake.positions is None else mistake.positions(answer.q),
        answer.v if mistake.velocities is None else mistake.velocities(answer.v),
        answer.tau,
        answer.hardware_adds_gravity if adds is None else adds,
    )
    turned = model if mistake.gravity is None else _with_gravity(model, mistake.gravity)
    other = Judge(turned, real)
    return sum(other.fit(j, real.tau[:, j]).score for j in range(model.nv))


def _contradiction(answer: Answer, v: FloatArray) -> float:
    """Difference between the changes of position and the integral of velocities `v`, shape (n, nv);
    a norm over all states and joints, [rad] or [m]."""
    by_velocity = np.cumsum(np.diff(answer.t)[:, None] * 0.5 * (v[1:] + v[:-1]), axis=0)
    return float(np.linalg.norm(answer.q[1:] - answer.q[0] - by_velocity))
