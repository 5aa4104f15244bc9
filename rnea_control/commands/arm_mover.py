"""`move`: the part of `rnea_doctor --move` after all other checks. It asks the user, commands small
torques to each joint, and ends with a last command that was chosen beforehand."""

from __future__ import annotations

import gc
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rclpy.logging import LoggingSeverity
from sensor_msgs.msg import JointState

from rnea_control.commands.command_checks import EFFORT_CONTROLLER_INACTIVE
from rnea_control.commands.controller_checks import SENTINEL_REQUIRED
from rnea_control.commands.evidence import Evidence, Move
from rnea_control.commands.finding import Finding
from rnea_control.commands.live_watch import LiveWatch
from rnea_control.commands.manager_checks import MANAGER_SILENT
from rnea_control.commands.terminal import NO_TERMINAL, is_terminal, refusal_of, say
from rnea_control.control import Controller, SupervisionSettings
from rnea_control.control import activation_check as codes
from rnea_control.control.requested_check import SETTLING, RequestedCheck, warm_up
from rnea_control.exceptions import (
    AnothersState,
    JointStateError,
    OtherJoints,
    RneaControlError,
    listed,
)
from rnea_control.loop.state_intake import StateIntake
from rnea_control.model.robot_model import units
from rnea_control.node.parameters import InForce, in_force
from rnea_control.ros.conventions import NEWEST, QUIET
from rnea_control.ros.effort_command import LAST_WORDS, EffortCommand, send_last
from rnea_control.ros.guarded_node import GuardedNode
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.real_time import RealTime, RealTimeSettings

Running = Callable[[], bool]
LONGEST = 15.0  # time limit of the check [s]
FIRST_STATE = 2.0  # time limit for the first state [s]
WAIT = 0.02  # period at which signals and objections are polled while no state arrives [s]
KEYS = signal.SIGTSTP, signal.SIGQUIT  # signals of keys that end the check, in addition to Ctrl-C


def move(
    evidence: Evidence, found: list[Finding], namespace: str, agreed: bool, running: Running
) -> Move:
    """Moves the arm if no finding forbids it and the user agrees.

    Args:
        evidence: observations of the running system.
        found: findings of the checks.
        namespace: namespace of the arm; empty for none.
        agreed: True to ask no question.
        running: False once the process shall end.
    """
    if not (agreed or is_terminal()):
        return Move(refusal=NO_TERMINAL)
    if refusal := _unsafe(found):
        return Move(refusal=refusal)
    model = evidence.settings.model
    if model is None:
        return Move(refusal="there is no model of the arm")
    try:
        given = in_force(evidence.settings, model)
        with ExitStack() as undo:
            mover = _Mover(evidence, given, namespace, undo)
            if refusal := mover.watch.wait():
                return Move(refusal=refusal)
            say(mover.announcement())
            # The system may have changed before the user answered.
            if not agreed and (
                refusal := refusal_of("Move the arm?", running) or mover.watch.look_again()
            ):
                return Move(refusal=refusal)
            return mover.run(running)
    except RneaControlError as error:
        return Move(refusal=error.with_code)


def _unsafe(found: list[Finding]) -> str:
    """Reason not to move the arm, with the findings that forbid it; empty if none does."""
    # The check needs an absent sentinel and an effort controller that is known to be active.
    needed = EFFORT_CONTROLLER_INACTIVE.name, MANAGER_SILENT.name
    codes_found = [
        each.code
        for each in found
        if (each.level == "error" and each.code != SENTINEL_REQUIRED.name) or each.code in needed
    ]
    named = listed(list(dict.fromkeys(codes_found)))
    return f"it is not safe to move the arm with {named}" if named else ""


class _Mover:
    """Moves the arm by commands of this process; `undo` destroys the entities.

    Attributes:
        watch: objects while the arm must not be moved.
    """

    def __init__(self, evidence: Evidence, given: InForce, namespace: str, undo: ExitStack) -> None:
        values, self._model = given.values, given.model
        self._given = given
        self._simulated = evidence.simulated
        settings = SupervisionSettings.of(values, simulated=self._simulated)
        self._timeout = settings.state_timeout
        self._real_time = RealTime(RealTimeSettings.of(values))
        self._controller = Controller(given.model, given.controller)
        keeps_gravity = values["last_command"] == "gravity"
        self._check = RequestedCheck(self._controller, settings, keeps_gravity)
        # The process id distinguishes several rnea_doctor that run at the same time.
        self._node = GuardedNode(f"rnea_doctor_{os.getpid()}", namespace=namespace, **QUIET)
        undo.callback(self._node.destroy_node)
        self._node.get_logger().set_level(LoggingSeverity.WARN)
        topic, reliability = evidence.commands_topic.name, values["command_reliability"]
        self._command = EffortCommand(self._node, topic, reliability, self._model.nv)
        undo.callback(self._command.destroy)
        self._subscription = RawSubscription(self._node, JointState, "joint_states", NEWEST)
        undo.callback(self._subscription.destroy)
        self._states = StateIntake(self._model.joint_names, self._timeout)
        self.watch = LiveWatch(self._node, evidence, self._model.joint_names, self._command)
        undo.callback(self.watch.destroy)
        warm_up(given.model, given.controller)

    def announcement(self) -> str:
        """Description of the check for the user, before the question."""
        joints = range(self._model.nv)
        torques = [
            f"{self._model.joint_names[j]} {codes.FIRST_AMPLITUDE * limit:.2g} "
            f"({codes.MOST_AMPLITUDE * limit:.3g}) {units(self._model, j).effort}"
            for j, limit in zip(joints, self._check.limit, strict=True)
        ]
        firmware = self._given.controller.hardware_compensates_gravity
        base = "of the hardware" if firmware else f"on {self._command.topic}"
        return (
            f"rnea_doctor will move the arm. For 0.1 to 2 s, each joint gets small torques in both "
            f"directions, in addition to the gravity torque {base}: at most {listed(torques)}. The "
            "torque in parentheses is for a joint that does not respond to less.\n"
            f"The check ends if a joint moves by {codes.FURTHEST:g} rad "
            f"({codes.FURTHEST_SLIDING:g} m), after {LONGEST:g} s, or by Ctrl-C.\n"
            f"Then {self._ending()}\n"
            "Support the arm, keep people out of its reach, and have a hand on the emergency stop."
        )

    def _ending(self) -> str:
        """Description of the last command."""
        zero = "zero torque, by which an arm without brakes falls"
        if self._given.controller.hardware_compensates_gravity:
            return "the last command, which stays in force, is zero torque."
        if self._given.values["last_command"] == "zero":
            return f"the last command, which stays in force, is {zero} (last_command: zero)."
        return (
            f"the arm is held for {SETTLING:g} s, and the last command, which stays in force, is "
            "the gravity torque, under which it drifts away within seconds (last_command: "
            f"gravity). If the wires are wrong, or the arm moves off or out of sight, it is {zero}."
        )

    def run(self, running: Running) -> Move:
        """Runs the check; returns its result."""
        check = self._check
        while self._subscription.poll() is not None:
            pass  # discards the states received before
        with self._undisturbed():
            try:
                self._answer_states(running)
            except RneaControlError as error:
                check.abandon(str(error))
            finally:
                self._send_last()
        return self._outcome()

    def _send_last(self) -> None:
        """Publishes the last command, which the hardware keeps; nothing if none was published."""
        check = self._check
        if not check.has_commanded:
            return
        if not check.is_over:
            check.abandon("rnea_doctor has failed")
        target, torque = check.last_command(), self._command.torque
        send_last(self._controller, target, torque, self._publish)

    def _publish(self) -> bool:
        self._command.publish()
        return True

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Real-time priority of the control loop and no garbage collection; the keys that would
        stop or end the process end the check instead."""

        def stop(signal_number: int, frame: object) -> None:
            self._check.stop("interrupted")

        previous = {number: signal.signal(number, stop) for number in KEYS}
        self._real_time.enter_process()
        gc.disable()
        try:
            self._real_time.enter_thread()
            yield
        finally:
            gc.enable()
            self._real_time.leave()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _answer_states(self, running: Running) -> None:
        """Answers each state with a command, until the check is over."""
        check, began = self._check, time.monotonic()
        while True:
            taken, now = self._subscription.take(WAIT), time.monotonic()
            if self.watch.objection:
                check.abandon(self.watch.objection)
            elif not running():
                check.stop("interrupted")
            elif now - began > LONGEST:
                check.stop(f"it has taken {LONGEST:g} s")
            silence = self._silence(now, began)
            if silence or now - began > LONGEST + FIRST_STATE:
                check.abandon(silence or check.failure)
            if check.is_over:
                return
            if taken is not None and self._is_new(taken, now):
                states = self._states
                if not check.answer(states.time, states.q, states.v, self._command.torque):
                    return
                self._publish()
            elif not (running() or check.has_commanded):
                return  # interrupted before the first command

    def _silence(self, now: float, began: float) -> str:
        """Report that states have stopped or not begun; empty while they arrive."""
        if not self._states.begun:
            late = now - began > FIRST_STATE
            return f"no joint_states came for {FIRST_STATE:g} s" if late else ""
        silent = now - self._states.came_at
        # A pause of a simulation is not a fault.
        if self._simulated or silent <= self._timeout:
            return ""
        return f"no joint_states with a new stamp for {silent:.2g} s"

    def _is_new(self, taken: Any, now: float) -> bool:
        """Reads a message; True if it is a state of the arm with a new stamp.

        Raises:
            CdrError, JointStateError: the message is malformed or not usable, or its stamp jumps.
        """
        states = self._states
        try:
            stamp = states.take(taken.data, taken.count, taken.publisher, now)
        except (OtherJoints, AnothersState):
            return False
        gap = states.gap(stamp)
        if gap < 0.0 or gap > self._timeout:
            raise JointStateError(f"the stamps of joint_states jumped by {gap:+.3f} s")
        if states.begun and gap == 0.0:
            return False
        states.place(stamp, now)
        return True

    def _outcome(self) -> Move:
        """Result of the check."""
        check, verdict = self._check, self._check.verdict
        if not check.has_commanded:
            return Move(refusal=check.failure or "no torque was commanded")
        objection = self.watch.objection
        if verdict is not None and verdict.words and (objection := self.watch.look_again()):
            verdict = None  # the objection explains why the arm did not respond
        if objection:
            check.abandon(objection)
        sent = "gravity" if check.ends_with_gravity else "zero"
        if self._given.controller.hardware_compensates_gravity:
            words = "The last command is zero torque"
        else:
            words = f"rnea_doctor has {LAST_WORDS[sent]}"
        say(words)
        likely, delay = "", math.nan
        if verdict is not None:
            likely = verdict.likely(self._model)
            delay = check.seen_delay() if not verdict.words else verdict.delay
        return Move("", check.failure, words, check.moved_off, verdict, likely, delay)
