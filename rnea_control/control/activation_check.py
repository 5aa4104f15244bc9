r"""Whether an arm answers to torques as its model says, before anything is fed back.

For some 80 ms the commands are the gravity torque plus, at each joint, its own sequence of
:math:`\pm a`: rows of a Hadamard matrix, orthogonal and of zero mean, so that each joint's answer
is told from those of all others, and the arm stays about where it is. The amplitude is a few
percent of the effort limit. A joint whose answer drowns in friction is asked again with twice as
much, while the others are held.

A wrong sign, order or unit shows in the answer (arm_answer.py); which it is, in miswiring.py. An
arm that moves off too fast ends the check at once. Knows no mode and no topic: it is given states,
and gives torques.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from rnea_control.array_types import BoolArray, FloatArray
from rnea_control.control import feasibility, violations
from rnea_control.control.arm_answer import MOST_LOSS_OF_MANY, Answer, Fit, Judge, limits
from rnea_control.control.controller import Controller, Recorded
from rnea_control.control.miswiring import EVIDENCE, explain
from rnea_control.control.settings import ControllerSettings, reference_speed
from rnea_control.dynamics import Workspace, crba, gravity
from rnea_control.exceptions import listed
from rnea_control.model import RobotModel
from rnea_control.model.robot_model import units

QUIET_STATES = 10  # states at the beginning that tell period and noise
LONGEST_PERIOD = 0.005  # states further apart are too few to tell an answer [s]
CHIP, MANY_CHIP = 0.010, 0.006  # length of one element of a code, for few and for many joints [s]
FEW_JOINTS = 7
PAUSE = 0.04  # time between two attempts, in which joints that have answered are held [s]
ATTEMPTS = 5
FIRST_AMPLITUDE, MOST_AMPLITUDE = 0.03, 0.25  # parts of the effort limit
SWING = 0.1  # speed that a code may give a joint, as a part of its velocity limit
SWING_WAY = 0.3  # how far it may lead a joint, as a part of the furthest way
MOST_INTERRUPTIONS = 3  # by missing states, before there is no check
LONGEST_STANDSTILL = 0.5  # part of an element for which time may stand still from state to state
OPENING = 2.0  # time that brakes may take to open [s]
UNMOVED = 2e-4  # a joint that has moved less stands still [rad] or [m]
MOST_SPEED = 0.3  # part of the velocity limit at which the check ends
ABSURD = 100.0  # part of the velocity limit beyond which a velocity is taken for that much
AVERAGED = 6  # velocities whose mean is compared with it
FURTHEST, FURTHEST_SLIDING = 0.06, 0.02  # way from the start at which it ends [rad] and [m]
PARTS = 10  # parts of an attempt whose mean positions tell whether a joint moves
BETTER = 0.5  # part of a score that another explanation may have
WRONG = 25.0  # score of a joint whose answer is not that of the model
LOST = 0.75  # part of what was sent that a joint may lose and still have answered
PUSHED = 0.2  # constant torque that is not gravity's, as a part of the effort limit, that is wrong
DOUBTFUL = 0.1  # the same that is told
DELAYS = (0.002, 0.004, 0.006, 0.008, 0.011, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05)  # tried [s]
SHORT_DELAYS = tuple(0.001 * k for k in range(16))  # among which `seen_delay` looks [s]
DELAY_EVIDENCE = 4.0  # difference of scores that separates one delay from another
DELAY_RANGE = 0.004  # range of the delays that may explain an answer alike [s]
DOUBTFUL_EVIDENCE = 40.0  # for a mistake that is told though nothing is surely wrong
RATIO = 0.6, 1.6  # positions against integrated velocities: between these is right
HOLDING = 100.0, 20.0  # gains by which joints that have answered are held [1/s^2], [1/s]


class Strictness(Enum):
    """The treatment of what the check finds."""

    off = "off"
    warn = "warn"
    refuse = "refuse"


@dataclass
class Verdict:
    """What a check has found.

    Attributes:
        wrong: whether no torque should be fed back: a sign, an order, a unit or a velocity is
            wrong, or a torque acts that no command explains.
        words: what was seen, in a sentence; empty if all is well.
        answer: that of the arm; None if it was not asked.
        verified: the joints whose answer had the right direction, shape (nv,).
        delay: after which torques act, [s]; NaN where it is not known.
    """

    wrong: bool
    words: str
    answer: Answer | None
    verified: BoolArray
    delay: float = float("nan")
    told: bool = False  # whether `words` name the cause already

    @property
    def failed(self) -> bool:
        """True if something is wrong, or if no joint has responded; not if none was asked."""
        return self.wrong or (self.answer is not None and not self.verified.any())

    def likely(self, model: RobotModel) -> str:
        """The mistake that is likely, in a sentence; empty if none is, or it is in `words` already.
        Takes tenths of a second."""
        if self.told or self.answer is None or not self.words:
            return ""
        evidence = EVIDENCE if self.wrong else DOUBTFUL_EVIDENCE
        return explain(model, self.answer, evidence).words

    def explanation(self, likely: str) -> str:
        """What was seen, for people, behind what is likely."""
        seen = f"the check of the wires at activation: {self.words}"
        return f"{likely} ({seen})" if likely else seen


def _hadamard(n: int) -> FloatArray:
    """The Hadamard matrix of a power of two, after Sylvester."""
    matrix = np.ones((1, 1))
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


class ActivationCheck:
    """One check.

    Args:
        model: the robot.
        settings: of its controller.

    Attributes:
        limit: bound of the torques, shape (nv,), [Nm] or [N].
        verdict: what was found; None while it runs.
    """

    def __init__(self, model: RobotModel, settings: ControllerSettings) -> None:
        self._model, self._workspace = model, Workspace(model)
        self._wanted = np.zeros(model.nv)
        self.limit = np.minimum(limits(model), settings.effort_limit(model))
        self._speed = reference_speed(model)
        self._adds_gravity = settings.hardware_compensates_gravity
        self._delay = settings.dead_time
        slides = np.array([kind == "prismatic" for kind in model.joint_types])
        self._furthest = np.where(slides, FURTHEST_SLIDING, FURTHEST)
        many = model.nv > FEW_JOINTS
        rows = 8
        while rows <= model.nv:
            rows *= 2
        self._codes = _hadamard(rows)[1 : model.nv + 1]
        self._chip = MANY_CHIP if many else CHIP
        self.verdict: Verdict | None = None
        self._open = np.ones(model.nv, dtype=bool)  # the joints whose answer is still asked for
        self._rows: list[tuple[float, FloatArray, FloatArray, FloatArray]] = []
        self._aborted: bool | None = None  # whether the codes were; None while they run
        self._begun_at = self._period = float("nan")
        self._attempt_at, self._amplitude = float("inf"), np.zeros(model.nv)
        self._interruptions = self._standing = 0  # standing: states in a row of the same time
        self._stood_still = False  # for so long that torques led the arm on unseen
        self._states, self._repeats = 0, False  # since the beginning; whether a time came twice
        self._obeyed = False  # whether the last command was the wanted torque
        self._judged: Recorded | None = None  # states and commands of the last attempt

    def warm_up(self, q: FloatArray) -> None:
        """Has everything loaded that a check needs, with an arm that stands still at `q`, shape
        (nv,). The check is of no use then."""
        v, tau, period = np.zeros_like(q), np.zeros_like(q), 0.001
        states = QUIET_STATES + int(self._codes.shape[1] * self._chip / period) + 5
        for k in range(states):  # past a first judgement
            self.torque(period * k, q, v, tau)
            self.sent(period * k, q, v, tau)

    def answer(
        self,
        controller: Controller,
        t: float,
        q: FloatArray,
        v: FloatArray,
        longest_gap: float,
        tau: FloatArray,
    ) -> bool:
        """Has the controller fill `tau` with the torques for a state, within its rate limit;
        whether the check goes on: if not, `tau` is untouched.

        Args:
            controller: of the arm.
            t, q, v: time [s], positions and velocities of the state, shapes (nv,); finite.
            longest_gap: time between two states, above which states were missing, [s].
            tau: output, shape (nv,), [Nm] or [N].
        """
        elapsed = t - controller.time
        self._standing = self._standing + 1 if elapsed == 0.0 else 0
        stands = self._standing * self._period > LONGEST_STANDSTILL * self._chip
        self._states, self._repeats = self._states + 1, self._repeats or elapsed == 0.0
        # Stamps that repeat are no state's own: they also catch up.
        shift = abs(t - self._begun_at - self._states * self._period)
        ahead = self._repeats and shift > LONGEST_STANDSTILL * self._chip
        self._stood_still |= stands or ahead
        if elapsed > longest_gap or elapsed < 0.0 or stands:
            self.interrupt()
        if not self.torque(t, q, v, self._wanted):
            return False
        controller.command(t, q, v, self._wanted, elapsed, tau)
        self.sent(t, q, v, tau)
        return True

    def interrupt(self) -> None:
        """States were missing, or their time stood still while a torque went on acting: it begins
        anew, or gives up where that happens again and again."""
        self._begun_at, self._standing = float("nan"), 0
        self._interruptions += 1
        if self._interruptions > MOST_INTERRUPTIONS:
            self._end(False, "not checked: states are repeatedly missing or late", None)

    def torque(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> bool:
        """Fills `tau`, shape (nv,), with the torques wanted for a state; whether the check goes
        on: if not, `verdict` is there, and `tau` is the gravity torque."""
        if self.verdict is None:
            if np.isnan(self._begun_at):
                self._begin(t, q)
            self._go_on(t, q)
        self._support(q, tau)
        if self.verdict is not None:
            return False
        tau[~self._open] += self._held(q, v)[~self._open]
        if self._aborted is None and t >= self._attempt_at:
            chip = int((t - self._attempt_at) / self._chip)
            tau += self._codes[:, chip] * self._amplitude * self._open
        np.clip(tau, -self.limit, self.limit, out=tau)
        self._wanted = tau.copy()
        return True

    def hold(self, q: FloatArray, v: FloatArray, tau: FloatArray) -> None:
        """Fills `tau`, shape (nv,), for a state after the codes: with the gravity torque, and at
        the joints whose answer was right with what holds them in place."""
        self._support(q, tau)
        if self.verdict is not None:
            tau += self._held(q, v) * self.verdict.verified
        np.clip(tau, -self.limit, self.limit, out=tau)

    def sent(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> None:
        """The torques that were commanded for this state; one of the same time as the state before,
        as a simulation's clock that is late makes them, takes its place."""
        most = ABSURD * self._speed
        self._obeyed = bool((tau == self._wanted).all())
        if self._rows and self._rows[-1][0] == t:
            self._rows.pop()
        self._rows.append((t, q.copy(), np.clip(v, -most, most), tau.copy()))
        quiet = len(self._rows) == QUIET_STATES and np.isnan(self._period)
        if quiet and self.verdict is None:
            self._period = float(np.median(np.diff([row[0] for row in self._rows])))
            self._chip = max(self._chip, 2.0 * self._period)
            self._attempt_at = t + self._period
            if not self._period <= LONGEST_PERIOD:
                rate = f"{1.0 / self._period:.0f} Hz" if self._period > 0.0 else "no rate"
                needed = f"the answer of the arm needs {1.0 / LONGEST_PERIOD:.0f} Hz"
                self._end(False, f"not checked: states come at {rate}, and {needed}", None)

    def _go_on(self, t: float, q: FloatArray) -> None:
        """Ends the codes when they are over, or the arm moves off; when the torque has faded to
        that of gravity, which the rate limit may delay, judges them. That takes longer than a
        tick."""
        duration = self._codes.shape[1] * self._chip
        if self._aborted is not None:
            if self._obeyed:
                self._judge(self._aborted, t, q)
        elif self.moves_off(q) or t - self._attempt_at >= duration:
            self._aborted = t - self._attempt_at < duration

    def _begin(self, t: float, q: FloatArray) -> None:
        self._begun_at, self._attempt_at, self._period = t, np.inf, float("nan")
        self._states, self._repeats = 0, False
        self._rows.clear()
        self._open[:] = True
        self._aborted = None
        self._start = self._place = q.copy()
        model = self._model
        matrix = crba(model, self._workspace, q.copy(), np.zeros((model.nv, model.nv)))
        self._inertia = np.diag(matrix).copy()
        # What speed a code of each joint gives every joint, and how far it leads it, per Nm.
        response = np.abs(np.linalg.inv(matrix))
        speeds = np.cumsum(self._codes, axis=1) * self._chip
        ways = np.cumsum(speeds, axis=1) * self._chip
        with np.errstate(divide="ignore"):  # a joint that another one's torque does not move
            by_speed = SWING * self._speed[:, None] / (response * np.abs(speeds).max(axis=1))
            by_way = SWING_WAY * self._furthest[:, None] / (response * np.abs(ways).max(axis=1))
        swing = np.minimum(by_speed, by_way).min(axis=0)
        self._first = np.minimum(FIRST_AMPLITUDE * self.limit, swing)
        self._amplitude, self._attempts = self._first.copy(), 0

    def _support(self, q: FloatArray, tau: FloatArray) -> None:
        """Fills `tau` with the gravity torque, as far as the hardware does not add it."""
        np.copyto(tau, 0.0 if self._adds_gravity else gravity(self._model, self._workspace, q, tau))

    def _held(self, q: FloatArray, v: FloatArray) -> FloatArray:
        p, d = HOLDING
        return self._inertia * (p * (self._place - q) - d * v)

    def moves_off(self, q: FloatArray) -> bool:
        """Whether the arm, at positions `q`, shape (nv,), is further from its start or faster than
        the check allows."""
        return bool((self._excess(q) > 1.0).any())

    def _excess(self, q: FloatArray) -> FloatArray:
        """Way from the start and speed of each joint, the larger one as a part of the allowed."""
        ways = np.abs(q - self._start) / self._furthest
        last = [row[2] for row in self._rows[-AVERAGED:]]
        if len(last) < AVERAGED:
            return ways
        return np.maximum(ways, np.abs(np.mean(last, axis=0)) / (MOST_SPEED * self._speed))

    def _judge(self, aborted: bool, t: float, q: FloatArray) -> None:
        """After an attempt: ends the check, or begins another attempt."""
        t_rows, q_rows, v_rows, tau_rows = (
            np.array(rows) for rows in zip(*self._rows, strict=True)
        )
        now = t_rows, q_rows, v_rows, tau_rows
        answer = Answer.of(*now, self._delay, self._adds_gravity)
        self._judged = now
        if len(answer) < QUIET_STATES // 2:
            return
        if words := self._contradiction(answer):
            self._end(True, words, answer, told=True)
            return
        joints = range(self._model.nv)
        judge = Judge(self._model, answer)
        # Where gravity alone has moved it, the constant torque is what tells.
        fits = [judge.fit(j, answer.tau[:, j], freely=not aborted) for j in joints]
        wrong, least = self._wrong(judge, answer, fits, aborted)
        delay = self._delay
        if wrong and not aborted and (late := self._late_answer(now, least)):
            delay, answer, fits = late
            wrong = []
        if wrong and not aborted:
            names = listed([self._model.joint_names[j] for j in wrong])
            words = f"{names} did not respond to torques as the model predicts"
            self._end(True, words, answer, delay)
            return
        free = [judge.fit(j, answer.tau[:, j], freely=True) for j in joints] if aborted else fits
        pushed = np.array([abs(fit.constant) for fit in free]) / self.limit
        if aborted:
            j = int(np.argmax(pushed))
            words = self._pushed_words(j, free)
            if pushed[j] <= DOUBTFUL:  # that has not moved it
                words = self._loose_words(int(np.argmax(self._excess(q))))
            self._end(bool(wrong) or bool(pushed[j] > PUSHED), words, answer)
            return
        self._attempts += 1
        places = [part.mean(axis=0) for part in np.array_split(q_rows, PARTS)]
        stood_still = bool((np.ptp(places, axis=0) < UNMOVED).all())
        answered = np.array([fit.loss < LOST and fit.score <= WRONG for fit in fits])
        self._open &= ~answered
        if not self._open.any():
            self._conclude(fits, pushed, answer, delay)
        elif stood_still and t - self._begun_at < OPENING:
            self._attempts = 0  # brakes may still open
            self._again(t, q)
        elif self._attempts == ATTEMPTS:
            self._conclude(fits, pushed, answer, delay)
        else:
            # From the first amplitude to the largest one.
            part = self._attempts / (ATTEMPTS - 1)
            amplitude = self._first ** (1.0 - part) * (MOST_AMPLITUDE * self.limit) ** part
            self._amplitude = np.where(self._open, amplitude, 0.0)
            self._again(t, q)

    def _again(self, t: float, q: FloatArray) -> None:
        self._rows.clear()
        self._aborted, self._attempt_at, self._place = None, t + PAUSE, q.copy()

    def _wrong(
        self, judge: Judge, answer: Answer, fits: list[Fit], aborted: bool
    ) -> tuple[list[int], float]:
        """The joints that have answered to their torque with the other sign or by another factor,
        or to that of another joint whose answer is doubtful too; and the score of all joints that
        were asked, with that."""
        asked = [j for j in range(self._model.nv) if self._open[j]]
        doubtful = [j for j in asked if fits[j].score > WRONG]
        total, wrong, freely = sum(fits[j].score for j in asked), [], not aborted
        for j in doubtful:
            own, score = answer.tau[:, j], fits[j].score
            others = [answer.tau[:, i] for i in doubtful if i != j]
            scores = [judge.fit(j, each, freely).score for each in (-own, *others)]
            if aborted:
                scores.append(judge.fit(j, 0.0 * own, freely).score)
            for factor in (10.0, 100.0):
                scores.append(judge.fit(j, factor * own, freely, MOST_LOSS_OF_MANY).score)
            if min(scores) < BETTER * score:
                wrong.append(j)
                total += min(scores) - score
        return wrong, total

    def _late_answer(self, rows: Recorded, least: float) -> tuple[float, Answer, list[Fit]] | None:
        """The delay of torques that explains the answer better than wrong joints do, whose score is
        `least`, [s], and the answer to torques that act so late; None if there is none."""
        asked = [j for j in range(self._model.nv) if self._open[j]]
        found = None
        for delay in DELAYS:
            # What acted until the first command did so is not known, and not judged.
            answer = Answer.of(*rows, delay, self._adds_gravity)
            if not delay > self._delay or len(answer) < len(rows[0]) // 2:
                continue
            judge = Judge(self._model, answer)
            fits = [judge.fit(j, answer.tau[:, j], freely=True) for j in range(self._model.nv)]
            scores = [fits[j].score for j in asked]
            if sum(scores) < least and max(scores) <= WRONG:
                found, least = (delay, answer, fits), sum(scores)
        return found

    def seen_delay(self) -> float:
        """The delay that explains the last answer best, [s]; NaN if there is no answer, or delays
        that are far apart explain it alike. Takes tenths of a second."""
        if self._judged is None:
            return float("nan")
        delays = np.union1d(SHORT_DELAYS, DELAYS)
        scores = np.zeros(len(delays))
        for k, delay in enumerate(delays):
            answer = Answer.of(*self._judged, float(delay), self._adds_gravity)
            judge = Judge(self._model, answer)
            fits = (judge.fit(j, answer.tau[:, j], freely=True) for j in range(self._model.nv))
            scores[k] = sum(fit.score for fit in fits)
        alike = delays[scores < scores.min() + DELAY_EVIDENCE]
        return float(delays[scores.argmin()]) if np.ptp(alike) <= DELAY_RANGE else float("nan")

    def _contradiction(self, answer: Answer) -> str:
        """What is wrong with the velocities, as the positions tell; empty if nothing is."""
        h = np.diff(answer.t)[:, None]
        by_velocity = np.vstack([0.0 * answer.v[:1], np.cumsum(h * answer.v[1:], axis=0)])
        by_position = answer.q - answer.q[0]
        noise = np.diff(answer.v, axis=0).std(axis=0) * float(h.mean()) * np.sqrt(len(answer))
        for j, name in enumerate(self._model.joint_names):
            x, y = by_velocity[:, j] - by_velocity[:, j].mean(), by_position[:, j]
            y = y - y.mean()
            if max(np.ptp(x), np.ptp(y)) < 10.0 * UNMOVED + 4.0 * noise[j]:
                continue
            ratio = float(x @ y) / max(float(x @ x), 1e-12)
            if np.ptp(x) < 0.05 * np.ptp(y):
                return violations.contradiction(name, 1.0, 0.0)
            if not RATIO[0] < ratio < RATIO[1]:
                return violations.contradiction(name, ratio, 1.0)
        return ""

    def _pushed_words(self, j: int, fits: list[Fit]) -> str:
        name, unit = self._model.joint_names[j], units(self._model, j).effort
        return f"{name} is pushed by {fits[j].constant:.3g} {unit} that no command explains"

    def _loose_words(self, j: int) -> str:
        return (
            f"{self._model.joint_names[j]} moved further or faster than its small torques explain: "
            "has its friction broken loose, has it less inertia than its model, or is a sign or "
            "unit wrong?"
        )

    def _conclude(self, fits: list[Fit], pushed: FloatArray, answer: Answer, delay: float) -> None:
        """Ends the check of an arm in which nothing has answered wrongly."""
        said, names = [], self._model.joint_names
        if self._open.any():
            which = (
                "no joint"
                if self._open.all()
                else listed([names[j] for j in np.flatnonzero(self._open)])
            )
            answers = "answers" if self._open.all() else "did not answer"
            part = f"{100.0 * MOST_AMPLITUDE:.0f} % of the effort limit"
            said.append(
                f"{which} {answers} to {part}: is a brake closed, a drive off, the friction high, "
                "or the rotor inertia (armature) not set?"
            )
        free = np.where(self._at_stop(), 0.0, pushed)
        j = int(np.argmax(free))
        if free[j] > DOUBTFUL:
            said.append(self._pushed_words(j, fits) + ": are masses, payload and gravity right?")
        if words := feasibility.lateness(delay, self._delay, self._period):
            said.append(words)
        self._end(bool(free[j] > PUSHED), "; ".join(said), answer, delay)

    def _at_stop(self) -> BoolArray:
        """The joints that may rest on a mechanical stop."""
        model = self._model
        room = np.minimum(self._start - model.lower, model.upper - self._start)
        stops: BoolArray = room < 0.5 * self._furthest
        return stops

    def _end(
        self,
        wrong: bool,
        words: str,
        answer: Answer | None,
        delay: float = float("nan"),
        told: bool = False,
    ) -> None:
        if wrong and self._stood_still:
            wrong, answer = False, None
            words += (
                ". This is no proof: the time of the states stood still meanwhile, so that torques "
                "acted for longer than planned. Is the simulation's /clock late, for want of CPU "
                "time?"
            )
        if not (wrong or self._open.all()):
            answer = None  # joints that are held answer to more than codes
        verified = ~self._open if not wrong else np.zeros_like(self._open)
        self.verdict = Verdict(wrong, words, answer, verified, delay, told)
