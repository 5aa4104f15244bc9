r"""Checks that an arm responds to torques as its model predicts, before any feedback.

For some 80 ms the commands are the gravity torque plus, at each joint, its own sequence of
:math:`\pm a`: rows of a Hadamard matrix. The rows are orthogonal and of zero mean, so that the
answers of the joints can be separated, and the arm stays about where it is. The amplitude is a few
percent of the effort limit. Where friction hides the answer of a joint, the joint is excited again
with a larger amplitude, while the joints that have answered are held.

A wrong sign, order or unit shows in the answer (arm_answer.py); miswiring.py finds the mistake. An
arm that moves off too fast ends the check at once. The check knows no modes and no topics: its
inputs are states, its outputs torques.
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

QUIET_STATES = 10  # states at the beginning that give the period and the noise
LONGEST_PERIOD = 0.005  # longest period of the states with enough of them for an answer [s]
CHIP = 0.010  # length of one element of a code, for few joints [s]
MANY_CHIP = 0.006  # length of one element of a code, for many joints [s]
FEW_JOINTS = 7
PAUSE = 0.04  # time between two attempts, in which joints that have answered are held [s]
ATTEMPTS = 5
FIRST_AMPLITUDE = 0.03  # amplitude of the first attempt, as a part of the effort limit
MOST_AMPLITUDE = 0.25  # amplitude of the last attempt, as a part of the effort limit
SWING = 0.1  # speed that a code may give a joint, as a part of its velocity limit
SWING_WAY = 0.3  # how far it may lead a joint, as a part of the furthest way
MOST_INTERRUPTIONS = 3  # by missing states, before there is no check
LONGEST_STANDSTILL = 0.5  # part of an element for which time may stand still from state to state
OPENING = 2.0  # time that brakes may take to open [s]
UNMOVED = 2e-4  # a joint that has moved less stands still [rad] or [m]
MOST_SPEED = 0.3  # part of the velocity limit at which the check ends
ABSURD = 100.0  # factor of the velocity limit at which measured velocities are clipped
AVERAGED = 6  # velocities whose mean is compared with MOST_SPEED
FURTHEST = 0.06  # distance of a revolute joint from the start that ends the check [rad]
FURTHEST_SLIDING = 0.02  # distance of a prismatic joint from the start that ends the check [m]
PARTS = 10  # parts of an attempt whose mean positions show whether a joint moves
BETTER = 0.5  # part of a score that another explanation may have
WRONG = 25.0  # score of a joint that does not answer as the model predicts
LOST = 0.75  # part of what was sent that a joint may lose and still have answered
PUSHED = 0.2  # unexplained constant torque that is wrong, as a part of the effort limit
DOUBTFUL = 0.1  # unexplained constant torque that is reported, as a part of the effort limit
DELAYS = (0.002, 0.004, 0.006, 0.008, 0.011, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05)  # tried [s]
SHORT_DELAYS = tuple(0.001 * k for k in range(16))  # among which `seen_delay` looks [s]
DELAY_EVIDENCE = 4.0  # difference of scores that separates one delay from another
DELAY_RANGE = 0.004  # range of the delays that may explain an answer alike [s]
DOUBTFUL_EVIDENCE = 40.0  # for a mistake that is reported though nothing is surely wrong
RATIO = 0.6, 1.6  # positions against integrated velocities: between these is right
HOLDING = 100.0, 20.0  # gains by which joints that have answered are held [1/s^2], [1/s]


class Strictness(Enum):
    """The treatment of what the check finds."""

    off = "off"
    warn = "warn"
    refuse = "refuse"


@dataclass
class Verdict:
    """The result of a check.

    Attributes:
        wrong: True if no torque should be fed back: a sign, an order, a unit or a velocity is
            wrong, or a torque acts that no command explains.
        words: description of the observation, a sentence; empty if all is well.
        answer: the answer of the arm; None if there is none to judge.
        verified: mask of the joints that answered in the right direction, shape (nv,).
        delay: time after which torques act, [s]; NaN where it is not known.
        told: True if `words` name the cause already.
    """

    wrong: bool
    words: str
    answer: Answer | None
    verified: BoolArray
    delay: float = float("nan")
    told: bool = False

    @property
    def failed(self) -> bool:
        """True if something is wrong, or if the arm was excited and no joint has responded."""
        return self.wrong or (self.answer is not None and not self.verified.any())

    def likely(self, model: RobotModel) -> str:
        """The likely mistake, in a sentence; empty if no mistake is likely, or `words` name it
        already. Takes tenths of a second."""
        if self.told or self.answer is None or not self.words:
            return ""
        evidence = EVIDENCE if self.wrong else DOUBTFUL_EVIDENCE
        return explain(model, self.answer, evidence).words

    def explanation(self, likely: str) -> str:
        """The observation in words, preceded by the likely mistake."""
        seen = f"the check of the wires at activation: {self.words}"
        return f"{likely} ({seen})" if likely else seen


def _hadamard(n: int) -> FloatArray:
    """The Hadamard matrix of a power of two, after Sylvester."""
    matrix = np.ones((1, 1))
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


class ActivationCheck:
    """A check of one activation.

    Args:
        model: the robot.
        settings: settings of the robot's controller.

    Attributes:
        limit: bound of the torques, shape (nv,), [Nm] or [N].
        verdict: the result; None while the check runs.
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
        self._open = np.ones(model.nv, dtype=bool)  # joints that have not answered yet
        self._rows: list[tuple[float, FloatArray, FloatArray, FloatArray]] = []
        self._aborted: bool | None = None  # True if the codes were aborted; None while they run
        self._begun_at = self._period = float("nan")
        self._attempt_at, self._amplitude = float("inf"), np.zeros(model.nv)
        self._interruptions = self._standing = 0  # standing: states in a row of the same time
        self._stood_still = False  # time stood still while torques moved the arm unseen
        self._states, self._repeats = 0, False  # since the beginning; True if a time came twice
        self._obeyed = False  # True if the last command was the wanted torque
        self._judged: Recorded | None = None  # states and commands of the last attempt

    def warm_up(self, q: FloatArray) -> None:
        """Runs all code that a check needs, with an arm that stands still at `q`, shape (nv,). This
        check object is of no further use."""
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
        """Has the controller fill `tau` with the torques for a state, within its rate limit.
        Returns False if the check is over: then `tau` is untouched.

        Args:
            controller: controller of the arm.
            t, q, v: time [s], positions and velocities of the state, shapes (nv,); finite.
            longest_gap: time between two states, above which states were missing, [s].
            tau: output, shape (nv,), [Nm] or [N].
        """
        elapsed = t - controller.time
        self._standing = self._standing + 1 if elapsed == 0.0 else 0
        stands = self._standing * self._period > LONGEST_STANDSTILL * self._chip
        self._states, self._repeats = self._states + 1, self._repeats or elapsed == 0.0
        # Repeated stamps are not the times of their states: time also catches up.
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
        """Begins the check anew, as states were missing, or their time stood still while a torque
        went on acting. Gives up after repeated interruptions."""
        self._begun_at, self._standing = float("nan"), 0
        self._interruptions += 1
        if self._interruptions > MOST_INTERRUPTIONS:
            self._end(False, "not checked: states are repeatedly missing or late", None)

    def torque(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> bool:
        """Fills `tau`, shape (nv,), with the torques wanted for a state. Returns False if the check
        is over: then `verdict` is set, and `tau` is the gravity torque."""
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
        the joints that answered in the right direction with the torque that holds them in place."""
        self._support(q, tau)
        if self.verdict is not None:
            tau += self._held(q, v) * self.verdict.verified
        np.clip(tau, -self.limit, self.limit, out=tau)

    def sent(self, t: float, q: FloatArray, v: FloatArray, tau: FloatArray) -> None:
        """Takes the torques that were commanded for this state. A state with the time of the state
        before, as from a late simulation clock, replaces that state."""
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
        """Ends the codes after their duration, or if the arm moves off. Judges them once the torque
        has faded to the gravity torque, which the rate limit may delay. Judging takes longer than a
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
        # Largest speed and distance of every joint (row) by each joint's code (column), per Nm.
        response = np.abs(np.linalg.inv(matrix))
        speeds = np.cumsum(self._codes, axis=1) * self._chip
        ways = np.cumsum(speeds, axis=1) * self._chip
        with np.errstate(divide="ignore"):  # for joints that a torque does not move
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
        """True if the arm, at positions `q`, shape (nv,), is further from its start or faster than
        the check allows."""
        return bool((self._excess(q) > 1.0).any())

    def _excess(self, q: FloatArray) -> FloatArray:
        """Distance from the start and speed of each joint, the larger one relative to its bound."""
        ways = np.abs(q - self._start) / self._furthest
        last = [row[2] for row in self._rows[-AVERAGED:]]
        if len(last) < AVERAGED:
            return ways
        return np.maximum(ways, np.abs(np.mean(last, axis=0)) / (MOST_SPEED * self._speed))

    def _judge(self, aborted: bool, t: float, q: FloatArray) -> None:
        """Judges an attempt: ends the check, or begins another attempt."""
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
        # If gravity alone has moved the arm, the constant torque is the evidence.
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
            if pushed[j] <= DOUBTFUL:  # too little to have moved the joint
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
        or to the torque of another doubtful joint; and the total score of all open joints with
        these explanations."""
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
        `least`, [s], the answer to torques delayed by it, and the fits; None if there is none."""
        asked = [j for j in range(self._model.nv) if self._open[j]]
        found = None
        for delay in DELAYS:
            # States before the first command acts are left out: the torque then is not known.
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
        """The delay that explains the last answer best, [s]; NaN if there is no answer, or if
        delays far apart explain it equally well. Takes tenths of a second."""
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
        """The contradiction of velocities and positions, in words; empty if there is none."""
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
