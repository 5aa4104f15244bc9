"""`ControlLoop`: answers every joint state with an effort command, and logs refused states.

All times are differences of the states' stamps to the first stamp: the code is the same for
simulated and real time. On hardware the steady clock shows when states are missing; in simulated
time a pause or a slow simulator is no fault, and the stamps alone decide.
"""

from __future__ import annotations

import math
import threading
import time
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from rclpy.clock import Clock
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from rnea_control.control import (
    Act,
    Controller,
    ControllerSettings,
    ControllerState,
    Event,
    Mode,
    Situation,
    Supervisor,
    Waypoint,
    observer_margin,
)
from rnea_control.control.activation_check import ActivationCheck, Strictness
from rnea_control.control.braking_check import BrakingCheck
from rnea_control.control.mode import HAS_ARM
from rnea_control.control.stopping import LONGEST_HALT
from rnea_control.control.supervisor import EXPLAINED
from rnea_control.exceptions import ControllerError, TrajectoryError
from rnea_control.jit.linking import barrier
from rnea_control.loop.arm_loop import ArmLoop
from rnea_control.loop.commander import Commander
from rnea_control.loop.handover import Handover
from rnea_control.loop.native_loop import PREDICTION_PERIOD
from rnea_control.loop.other_inputs import MOST_STOPS
from rnea_control.messages.joint_state import measured_efforts
from rnea_control.model import RobotModel
from rnea_control.node.python_ticks import LoopSettings, PythonTicks
from rnea_control.node.shared_arm import SharedArm
from rnea_control.ros.effort_command import Command, send_last
from rnea_control.ros.rcl_calls import Taken

LONGEST_WAIT = 0.05  # upper bound of the thread's wait for a state [s]
LOOKS = 0.3  # upper bound of this wait as a fraction of the lease
# Longest time ahead of the stamps that is not logged [s].
LONGEST_AHEAD = 0.05
# Longest wait for a moving arm to come to rest before the controller ends [s]. It is longer than a
# stop takes, also in a simulation at half the speed, and shorter than a launch file waits.
LONGEST_WAIT_FOR_REST = 3.0
# Number of mode changes that may wait to be published; older ones are dropped.
MOST_CHANGES = 100
# Number of states that a warm-up answers.
WARM_UP = 10
# Modes that are an error in diagnostics.
_ERRORS = (Mode.FAULT, Mode.BLIND, Mode.GUARDED, Mode.POWERLESS)

RAISE_LIMITS = "see torque_rate_limits, effort_limits, effort_limit_scale and the gains"

T = TypeVar("T")


class ControlLoop(Commander):
    """The controller between activation and deactivation: it commands an `ArmLoop`.

    Args:
        controller: computes the torques.
        command: publishes the torques.
        handover: decides whether the arm may be commanded.
        settings: see `LoopSettings`.
        logger: the node's logger.
        clock: the node's clock.

    Attributes:
        controller: computes the torques.
        supervisor: decides the mode.
        settings: see `LoopSettings`.
        arm_loop: takes states and publishes torques, by machine code where that is possible.
        arm: arm that the loop shares with the sentinel.
        ticks: ticks that machine code leaves to Python.
        changes: changes of the mode, oldest first: old mode, new mode and reason.
        changed_at: the time `now` when the mode changed last [s].
        rivals: returns a sentence about other nodes that command the arm, empty without any. The
            owner may set it; it is called after a fault.
    """

    rivals: Callable[[], str] = staticmethod(lambda: "")

    def __init__(
        self,
        controller: Controller,
        command: Command,
        handover: Handover,
        settings: LoopSettings,
        logger: Any,
        clock: Clock,
    ) -> None:
        self.supervisor = Supervisor(controller, settings, self._note_change)
        self.controller, self.settings = controller, settings
        gap, timeout = settings.state_gap, settings.state_timeout
        times = {
            "state_gap": gap,
            "state_timeout": timeout,
            "longest_wait": min(LONGEST_WAIT, 0.5 * gap, LOOKS * handover.times.lease),
            "prediction_period": PREDICTION_PERIOD,
            "longest_hang": settings.longest_hang,
        }
        parts = controller, command, handover, timeout, times, clock, logger
        self.arm_loop, self._clock = ArmLoop(self, *parts), clock
        self.arm = SharedArm(self.arm_loop, self.supervisor)
        self.ticks = PythonTicks(self.arm, self.supervisor, settings)
        self.changes: deque[tuple[Mode, Mode, str]] = deque(maxlen=MOST_CHANGES)
        self._search: threading.Thread | None = None  # searches for the cause of a fault
        self.changed_at, self._halted_at = 0.0, math.inf

    @property
    def running(self) -> bool:
        """True while states are answered."""
        return self.arm.running

    @property
    def now(self) -> float | None:
        """Stamp of the last state minus that of the first [s]; None before the first state."""
        return self.arm_loop.now

    @property
    def without_clock(self) -> bool:
        """True if simulated time is in use, and no message on /clock has been received."""
        return not self.arm_loop.system_time and self._clock.now().nanoseconds == 0

    @property
    def fault(self) -> str:
        """The present fault; empty without one."""
        if self.arm_loop.failure:
            return self.arm_loop.failure
        return self.supervisor.reason if self.supervisor.mode in _ERRORS else self.ticks.refused

    def is_usual(self) -> bool:
        return self.supervisor.steady and not self.ticks.refused

    def answer_next(self, verdict: int | None, taken: Taken | None) -> None:
        self.ticks.answer_next(verdict, taken)

    def start(self, sentinel: str = "") -> None:
        """Answers states from now on; holds the position of the first state that allows it.

        Args:
            sentinel: label of the sentinel's mode; "" without a sentinel.
        """
        self.arm_loop.reset()
        self.ticks.refused, self._halted_at = "", math.inf
        now = self.arm_loop.shared.attended_at = time.monotonic()
        self.arm.start(now, sentinel)

    def stop(self, reason: str = "the controller was deactivated") -> bool:
        """Stops with a defined torque, which the hardware applies from then on; returns True if
        this loop had the arm, and so sent that torque."""
        with self.arm_loop.paused():
            if not self.running:
                return False
            commanded = self.supervisor.mode in HAS_ARM
            if self.supervisor.mode is Mode.POWERLESS:
                self.arm_loop.command.torque[:] = 0.0  # the torque may have been damping
                self.arm.command()
            self.arm_loop.states.reset()
            self.supervisor.happen(Event.DEACTIVATED, reason)
            if commanded:
                self._publish_last_command()
            self.arm_loop.handover.stop(reason)
        self.arm_loop.log.flush()
        if commanded:
            self.arm_loop.log.logger.info(f"since activation: {self.arm_loop.statistics}")
        return commanded

    def fail(self, reason: str) -> None:
        """Stops for good after a bug in this program: brakes by the model, then like `stop`."""
        with self.arm_loop.paused():
            if self.supervisor.mode in HAS_ARM:
                try:
                    self._brake_blindly(reason)
                finally:
                    self._publish_last_command()
            self.supervisor.happen(Event.DEACTIVATED, "the controller has failed")
            self.arm_loop.handover.stop("the controller has failed")

    def halt(self, reason: str) -> bool:
        """Starts to bring a moving arm to rest; returns True while it still moves and its rest may
        be waited for."""
        now = time.monotonic()
        with self.arm_loop.lock:
            if not (self.running and self.supervisor.end(reason)):
                self._halted_at = math.inf
                return False
            self._halted_at = min(self._halted_at, now)
            return now < self._halted_at + LONGEST_WAIT_FOR_REST

    def call(self, request: Callable[[Supervisor], T]) -> T:
        """Passes a request to the supervisor, between two ticks."""
        with self.arm_loop.lock:
            return request(self.supervisor)

    def change(self, model: RobotModel, settings: ControllerSettings) -> None:
        """Applies another model and other settings, between two ticks.

        Raises:
            ControllerError: settings that do not fit the model; all stays as it was.
        """
        with self.arm_loop.lock:
            self.supervisor.change(model, settings)
            self.supervisor.judge_braking_again()

    def judge_braking(self) -> None:
        """Warns, once after a start or a change, if the arm can hardly be braked with the values in
        force. Call outside the ticks."""
        with self.arm_loop.lock:
            to_judge = self.arm_loop.consistent(self.supervisor.braking_to_judge)
        if to_judge is None:
            return
        check, given = to_judge
        hardly = False
        if reason := check.braking_objection(given):
            reason, hardly = f"{reason}; {RAISE_LIMITS}", not check.allows_any_motion(given)
        elif not (reason := check.gains_objection(given)):
            return
        self.arm_loop.log.say("warning", "braking", reason)
        with self.arm_loop.lock:
            self.supervisor.weak_brakes(reason, hardly)

    def judge_robustness(self) -> None:
        """Decides the inertia that the feedback adds and the bandwidth of the disturbance observer,
        once after a start or a change. Call outside the ticks."""
        with self.arm_loop.lock:
            to_judge = self.arm_loop.consistent(self.supervisor.robustness_to_judge)
        if to_judge is None:
            return
        given, delays = to_judge
        found = observer_margin.judge(*given, delays)
        if found.objection:
            self.arm_loop.log.say(
                "warning", "observer", f"{found.objection}; the joint uses the largest one"
            )
        with self.arm_loop.lock:
            self.supervisor.use(found)

    def braking_check(self) -> BrakingCheck:
        """Check of whether the arm could be braked with other values, from the last state."""
        with self.arm_loop.lock:
            return self.arm_loop.consistent(self.supervisor.braking_check)

    def situation(self, ends_stream: bool = True) -> Situation:
        """Situation of the arm, by the last state; see `Supervisor.situation`."""
        with self.arm_loop.lock:
            return self.arm_loop.consistent(
                lambda: self.supervisor.situation(self.arm_loop.states.time, ends_stream)
            )

    def snapshot(self) -> tuple[int, ControllerState] | None:
        """Stamp of the last state [ns], and the controller's state then; None before the first
        state."""
        with self.arm_loop.lock:
            if self.now is None:
                return None
            return self.arm_loop.consistent(
                lambda: (self.arm_loop.states.stamp, self.controller.snapshot())
            )

    def attend(self) -> None:
        """Does the work beside the ticks: shows machine code that the interpreter runs, reports
        findings of machine code in words, and processes the emergency stops received there."""
        shared, now = self.arm_loop.shared, time.monotonic()
        stood = now - shared.attended_at
        shared.attended_at = now
        if shared.hangs:
            shared.hangs = False
            self.arm_loop.log.say("error", "hang", f"the interpreter stood still for {stood:.2f} s")
        with self.arm_loop.lock:
            received = shared.stops_received
            barrier()
            if received - shared.stops_read > MOST_STOPS:
                shared.stops_read = received - MOST_STOPS
                # An overwritten message may have been a pressed stop.
                self.ticks.hear_stop(True, None)
            while shared.stops_read < received:
                stop = self.arm_loop.others.arrays.stops[shared.stops_read % MOST_STOPS]
                shared.stops_read += 1
                publisher = np.array([stop.gid_low, stop.gid_high]).tobytes()
                self.ticks.hear_stop(None if stop.pressed < 0 else bool(stop.pressed), publisher)
            if self.running:
                self.supervisor.follow_up(self.controller.tell())
        self.arm_loop.look_at_clock()
        period = self.supervisor.state_period.shortest
        shared.period = 0 if math.isnan(period) else round(period * 1e9)
        ahead = self.arm_loop.states.most_ahead()
        if ahead > LONGEST_AHEAD:
            self.arm_loop.log.say(
                "warning",
                "stamps",
                f"the stamps of joint_states fell behind by {ahead:.2f} s while the arm moved, as "
                "/clock was late: give its bridge and the simulator more CPU time",
            )
        self.arm_loop.log.flush()

    def explain(self) -> None:
        """Starts a thread that searches for the likely cause of a fault, or of a finding of the
        check at activation, if that was not explained yet. The search takes tenths of a second,
        and must not delay the report of the fault itself."""
        searches = self._search is not None and self._search.is_alive()
        if self.supervisor.unexplained and not searches:
            search = threading.Thread(target=self._find_cause, name="cause", daemon=True)
            try:
                search.start()
            except RuntimeError as error:  # no thread is free
                self.arm_loop.log.say("error", "cause", f"the search for a cause waits: {error}")
                return
            self.supervisor.unexplained, self._search = False, search

    def await_cause(self) -> None:
        """Waits until no thread searches for a cause any more."""
        if self._search is not None:
            self._search.join()

    def _find_cause(self) -> None:
        supervisor = self.supervisor
        with self.arm_loop.lock:
            rows = self.arm_loop.consistent(lambda: self.controller.recorded(EXPLAINED))
        cause = self.rivals() or supervisor.cause(rows)
        with self.arm_loop.lock:
            verdict = supervisor.verdict
            if cause:
                supervisor.tell_cause(cause)
            if verdict is not None and supervisor.mode not in (Mode.FAULT, Mode.POWERLESS):
                supervisor.checked_cause = cause
                severity = "error" if verdict.failed else "warning"
                self.arm_loop.log.say(severity, "check", verdict.explanation(cause))
        self.arm_loop.log.wake()

    def torque_age(self) -> float:
        """Age of the torque that the robot applied when the last state came [s]; NaN if the
        measured efforts match none of the last commands."""
        with self.arm_loop.lock:
            state, seen_at = self.arm_loop.newest(), self.arm_loop.states.came_at
        if state is None:
            return math.nan
        efforts = measured_efforts(state, self.controller.model.joint_names)
        tells = self.arm_loop.shared.has_efforts = np.isfinite(efforts).all()
        return self.arm_loop.applied.age(efforts, seen_at) if tells else math.nan

    def _note_change(self, old: Mode, new: Mode, reason: str) -> None:
        self.changes.append((old, new, reason))
        if new is not old:
            self.changed_at = self.arm_loop.states.time
        severity = "error" if new in (*_ERRORS, Mode.EMERGENCY_STOP) else "info"
        off_goal = new is Mode.HOLDING and old is Mode.MOVING and self.supervisor.off_goal
        restless = new is Mode.BRAKING and self.controller.restless
        if off_goal or restless or (new is Mode.WAITING and self.supervisor.obstacle):
            severity = "warning"
        self.arm_loop.log.say(severity, f"{new.value}: {reason}", f"{new.value}: {reason}")
        self.arm_loop.log.wake()

    def _brake_blindly(self, reason: str) -> None:
        """Brings the arm to rest by the model, without answering any state."""
        start, begin = self.arm_loop.states.time, time.monotonic()
        self.supervisor.happen(Event.LOST, reason)
        while self.controller.is_moving and (elapsed := time.monotonic() - begin) < LONGEST_HALT:
            self.arm_loop.handover.hear_nothing(time.monotonic())
            self.supervisor.answer_gap(start + elapsed, self.arm_loop.command.torque)
            if not self.arm.command():
                return
            time.sleep(PREDICTION_PERIOD)

    def _publish_last_command(self) -> None:
        target = np.zeros(self.controller.model.nv)
        try:
            if self.settings.last_command == "gravity":
                self.controller.holding_torque(self.arm_loop.states.q, target)
        except ControllerError as error:
            self.arm_loop.log.say(
                "error", "holding torque", f"{error}; the last command stays in force"
            )
            return
        send_last(self.controller, target, self.arm_loop.command.torque, self.arm.command)

    def warm_up(self) -> None:
        """Answers a few states and plans a motion in a separate loop with the same settings, which
        sends no commands, so that the first real tick finds code and memory ready."""
        model = self.controller.model
        controller = Controller(model, self.controller.settings)
        handover = Handover(self.arm_loop.handover.times)
        settings = replace(self.settings, activation_check=Strictness.off.value)
        parts = controller, Command(model.nv), handover, settings
        idle = ControlLoop(*parts, self.arm_loop.log.logger, self._clock)
        # Within the limits: elsewhere a controller does not start.
        position, zeros = np.clip(0.0, model.lower, model.upper), np.zeros(model.nv)
        ActivationCheck(model, controller.settings).warm_up(position)
        state = JointState(name=list(model.joint_names), position=array("d", position))
        state.velocity = array("d", zeros)
        idle.start()
        for i in range(WARM_UP):
            state.header.stamp.nanosec = 1 + i
            idle.ticks.tick(serialize_message(state), i)
            if i == WARM_UP // 2:
                with suppress(TrajectoryError):  # none is followed under gravity_compensation
                    controller.follow(idle.now, [Waypoint(100.0, position, zeros, zeros)], idle.now)
                controller.finish("", Act.BRAKES)
