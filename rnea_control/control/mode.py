"""State machine of a controller's modes: the events that change the mode, and the act of the arm.

An `Event` counts in the modes of its row. Only events change the mode; `Machine.happen` handles
them. An emergency stop or a fault that was not resumed replaces every mode in which the arm would
be free.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from rnea_control.array_types import FloatArray
from rnea_control.control import motion_watch
from rnea_control.control.controller import Controller
from rnea_control.control.laws import ControlLaw
from rnea_control.control.motion import Act, Ending, EndKind, Motion
from rnea_control.control.planner import Plan, Situation, check_law
from rnea_control.control.settings import ControllerSettings
from rnea_control.exceptions import ControllerError, TrajectoryModeError, listed
from rnea_control.model import RobotModel

# A law shakes the arm if the arm gives way MOST_GIVEN_WAY times within GIVING_WAY.
MOST_GIVEN_WAY = 4  # number of times
GIVING_WAY = 3.0  # period [s]

State = tuple[float, FloatArray, FloatArray]
ENDS = "the controller is bringing the arm to rest, to stop"


class Mode(Enum):
    """The modes of a controller; docs/safety.md draws the transitions."""

    INACTIVE = "inactive"
    """Answers no state."""
    WAITING = "waiting"
    """For a state that it may start from, or for somebody who takes the commands."""
    CHECKING = "checking"
    """Asks the joints for their answers to small torques, before anything is fed back."""
    HOLDING = "holding"
    MOVING = "moving"
    """Follows a trajectory."""
    STREAMING = "streaming"
    """Follows a stream of targets."""
    BRAKING = "braking"
    """Comes to rest after a motion that did not end at its goal, or moves although it is held."""
    GRAVITY_COMPENSATION = "gravity_compensation"
    """A hand guides the arm."""
    EMERGENCY_STOP = "emergency_stop"
    """Brakes, holds, and takes no trajectory."""
    FAULT = "fault"
    """The same, until the fault is reset."""
    BLIND = "blind"
    """No usable state comes: brakes and holds by the model."""
    GUARDED = "guarded"
    """The sentinel commands the arm."""
    POWERLESS = "powerless"
    """Braking did not help: commands no torque until it is activated anew."""


# Groups of modes: trajectories are accepted; the arm is free; the arm brakes and holds, whatever
# the law; the controller has the arm.
TAKES_TRAJECTORIES = (Mode.HOLDING, Mode.MOVING, Mode.BRAKING)
STREAMS = (*TAKES_TRAJECTORIES, Mode.STREAMING)  # a stream of targets may begin, or goes on
FREE = (*STREAMS, Mode.GRAVITY_COMPENSATION)
STOPPED = (Mode.EMERGENCY_STOP, Mode.FAULT)
HAS_ARM = (*FREE, *STOPPED, Mode.CHECKING, Mode.BLIND)
# The controller gets the arm back without an operator if it lost the arm by a pause.
RETURNS = (*FREE, Mode.BLIND)
SILENT = (Mode.INACTIVE, Mode.GUARDED)  # the controller commands nothing
# A state needs more than a step of the controller.
UNUSUAL = (*SILENT, Mode.WAITING, Mode.CHECKING, Mode.BLIND)
_AT_REST = (Mode.HOLDING, Mode.BRAKING, *STOPPED, Mode.BLIND)  # or coming to rest

# Reasons for rejecting trajectories in the other modes.
REFUSALS = {
    Mode.INACTIVE: "the controller is not active; activate it first",
    Mode.WAITING: "the controller waits, {reason}; send it again later",
    Mode.CHECKING: "the controller checks the wires of the arm; send it again in a second",
    Mode.GRAVITY_COMPENSATION: "a hand guides the arm; call ~/resume first",
    Mode.EMERGENCY_STOP: "emergency stop; release it and call ~/resume first",
    Mode.FAULT: "{reason}; call ~/reset_fault first",
    Mode.BLIND: "{reason}; send it again when states are back",
    Mode.GUARDED: "{reason}; send it again when the controller has the arm",
    Mode.POWERLESS: "{reason}; mend that, then deactivate and activate the controller",
}


class Row(NamedTuple):
    """An event."""

    modes: tuple[Mode, ...]  # modes in which it counts
    to: Mode  # mode that follows; HOLDING means the law's own mode at rest
    act: Act | None = None  # act of the arm, whose motion ends; None if the motion continues
    besides: tuple[Mode, ...] = ()  # modes that stay, while the arm acts in the same way


class Event(Enum):
    """The events of a controller."""

    ACTIVATED = Row((Mode.INACTIVE,), Mode.WAITING)
    DEACTIVATED = Row(
        (*HAS_ARM, Mode.WAITING, Mode.GUARDED, Mode.POWERLESS), Mode.INACTIVE, Act.GOES_ON
    )
    LISTENERS_CHANGED = Row((*HAS_ARM, Mode.WAITING), Mode.WAITING, Act.GOES_ON)
    """Somebody takes the commands now, or nobody does."""
    WAITS_ON = Row((Mode.WAITING,), Mode.WAITING)
    """For another reason."""
    TAKEN_OVER = Row((*HAS_ARM, Mode.WAITING, Mode.GUARDED), Mode.GUARDED, Act.GOES_ON)
    """The sentinel has the arm, or another node, which may turn out to be the sentinel."""
    CHECKS = Row((Mode.WAITING,), Mode.CHECKING)
    """The arm is asked for its answer to small torques."""
    STARTED = Row((Mode.WAITING, Mode.CHECKING), Mode.HOLDING)
    CAUGHT = Row(
        (Mode.WAITING, Mode.CHECKING, Mode.BLIND, Mode.GUARDED), Mode.BRAKING, Act.IS_CAUGHT
    )
    """The controller has an arm again that may move."""
    ADOPTED = Row(TAKES_TRAJECTORIES, Mode.MOVING)
    """It follows another trajectory."""
    STREAMED = Row(TAKES_TRAJECTORIES, Mode.STREAMING)
    """It follows a stream of targets."""
    STREAM_ENDED = Row((Mode.STREAMING,), Mode.BRAKING)
    """Targets are missing."""
    HELD = Row(FREE, Mode.BRAKING, Act.BRAKES)
    """Told to hold, or the client cancels the motion."""
    ENDING = Row(
        (Mode.MOVING, Mode.STREAMING, Mode.GRAVITY_COMPENSATION), Mode.BRAKING, Act.BRAKES, _AT_REST
    )
    """It is to be deactivated."""
    GUIDED = Row((Mode.HOLDING,), Mode.GRAVITY_COMPENSATION, Act.IS_GUIDED)
    YIELDS = Row(FREE, Mode.GRAVITY_COMPENSATION, Act.IS_GUIDED)
    """The control law is now one that holds no position."""
    LOST = Row((*FREE, *STOPPED, Mode.CHECKING), Mode.BLIND, Act.BRAKES)
    """No state can be used."""
    DOUBTED = Row((Mode.BLIND,), Mode.BLIND)
    """States come that cannot be true."""
    PRESSED = Row((*FREE, *STOPPED, Mode.CHECKING), Mode.EMERGENCY_STOP, Act.BRAKES, (Mode.BLIND,))
    FAILED = Row(
        (*FREE, Mode.FAULT, Mode.CHECKING),
        Mode.FAULT,
        Act.IS_CAUGHT,
        (Mode.EMERGENCY_STOP, Mode.BLIND),
    )
    TRIPPED = Row((*FREE, Mode.FAULT), Mode.FAULT, None, (Mode.EMERGENCY_STOP, Mode.BLIND))
    """A step has found a bound of the motion violated, and has made the arm brake."""
    LET_GO = Row((*HAS_ARM, Mode.WAITING, Mode.GUARDED), Mode.POWERLESS, Act.GOES_ON)
    """A step has found that braking does not help, and commands no torque any more."""
    RELEASED = Row(STOPPED, Mode.BRAKING)
    """The emergency stop is resumed, or the fault reset."""
    BRAKED = Row(FREE, Mode.BRAKING)
    """A step has made the arm brake."""
    RESTED = Row((Mode.MOVING, Mode.BRAKING), Mode.HOLDING)


class Machine:
    """Mode of a controller, its changes by steps, and requests of trajectory senders and operators.

    `on_change` is called at every change of the mode or its reason with the old mode, the new mode
    and the reason, maybe in a tick: it must be quick.

    Attributes:
        mode: the present mode; only events change it.
        reason: why the controller is in this mode.
        off_goal: True if the last motion came to rest away from its goal.
        unexplained: True while the cause of a fault is still to be searched; see `tell_cause`.
    """

    def __init__(
        self, controller: Controller, on_change: Callable[[Mode, Mode, str], None]
    ) -> None:
        self.controller = controller
        self.mode, self.reason = Mode.INACTIVE, "not activated yet"
        self._on_change = on_change
        self._holders: set[Hashable] = set()  # publishers that hold the emergency stop
        self._gave_way_at: deque[float] = deque(maxlen=MOST_GIVEN_WAY)
        self.forget()

    def forget(self) -> None:
        """Resets the values that apply to one activation only."""
        self.controller.forget()
        # Modes that replace the free modes until they are resumed or reset, and their reasons.
        self._latched = {Mode.EMERGENCY_STOP: "emergency stop"} if self._holders else {}
        self._law_failed = False  # the law stays out of use until the fault is reset
        self._lost_in = self.mode  # the mode in which the sentinel has taken the arm
        self._ending = self.unexplained = self.off_goal = False
        self._seen = ""  # observation in a fault, whatever its cause

    def happen(
        self, event: Event, reason: str, state: State | None = None, kind: EndKind = EndKind.DROPPED
    ) -> bool:
        """Handles an event by the table; returns True if it counts in this mode.

        Args:
            event: the event.
            reason: reason of the new mode.
            state: time and measured state, if the arm is caught.
            kind: kind of the motion's end.
        """
        row, controller, guided = event.value, self.controller, self.controller.guided
        if self.mode in row.modes:
            self._change(row.to, reason)
        elif self.mode in row.besides:
            self._change(self.mode, self.reason)  # the arm may have to be braced now
        else:
            return False
        if row.act is not None:
            guided = guided or controller.guided
            controller.finish(reason, row.act, kind, state, guided)
        return True

    def _change(self, mode: Mode, reason: str) -> None:
        """Changes the mode or its reason, and updates whether the arm is braced. A braced arm
        brakes and holds under every law, and after a failure of the law."""
        latch = next((each for each in STOPPED if each in self._latched), None)
        if mode in FREE and latch is not None:
            mode, reason = latch, self._latched[latch]
        elif mode is Mode.HOLDING:
            mode = self._rest
        old, changed = self.mode, mode is not self.mode or reason != self.reason
        if old is not Mode.GUARDED:
            self._lost_in = old
        self.mode, self.reason = mode, reason
        if changed:
            self._on_change(old, mode, reason)
        watch = motion_watch.FREE if mode in FREE else motion_watch.UNWATCHED
        self.controller.watch = motion_watch.STOPPED if mode in STOPPED else watch
        law = self.controller.settings.control_law
        takes = mode in STREAMS and law.follows_trajectories and not self._ending
        self.controller.arm.takes_streams = takes
        failed = self._law_failed and mode in (*STOPPED, Mode.BLIND)
        braced = failed or (mode in STOPPED and self._rest is not Mode.HOLDING)
        if braced != self.controller.braced:
            self.controller.braced = braced

    @property
    def may_return(self) -> bool:
        """True if the controller may get the arm back without an operator after losing it. False if
        the arm was stopped, faulty, let go or still being checked, is being deactivated, or was
        measured where no motion leads."""
        lost_in = self._lost_in if self.mode is Mode.GUARDED else self.mode
        stopped = bool(self._latched) or self._ending or self.controller.doubts
        return lost_in in RETURNS and not stopped

    @property
    def _rest(self) -> Mode:
        """The mode of an arm at rest without any fault."""
        follows = self.controller.settings.control_law.follows_trajectories
        return Mode.HOLDING if follows else Mode.GRAVITY_COMPENSATION

    def change(self, model: RobotModel, settings: ControllerSettings) -> None:
        """Takes another model and other settings. An arm at rest takes up the reference that the
        control law has there.

        Raises:
            ControllerError: settings that do not fit the model; all stays as it was.
        """
        before, law = self._rest, settings.control_law
        self.controller.change(model, settings)
        if self._rest is before:
            return
        reason = f"control_law is {law.name}"
        if not law.follows_trajectories:
            self.happen(Event.YIELDS, reason)
        elif self.mode is Mode.GRAVITY_COMPENSATION:
            self.happen(Event.HELD, reason)

    def task_law_objection(self, law: ControlLaw) -> str:
        """Why the law of the tip cannot change to `law` now; empty if it can."""
        controller = self.controller
        if law is controller.settings.task_law or not controller.follows_poses:
            return ""
        return f"task.control_law cannot change to {law.name} while the tip follows poses"

    def law_objection(self, law: ControlLaw) -> str:
        """Why the control law cannot change to `law` now; empty if it can."""
        rests = self.mode not in HAS_ARM or self.mode in (Mode.HOLDING, Mode.GRAVITY_COMPENSATION)
        stays = self.mode in STOPPED and law.follows_trajectories
        if rests or stays or law is self.controller.settings.control_law:
            return ""
        return (
            f"control_law cannot change to {law.name} in mode {self.mode.value} ({self.reason}), "
            "only while the arm rests in mode holding or gravity_compensation"
        )

    def end(self, reason: str) -> bool:
        """Begins to bring the arm to rest before a deactivation; returns True while it moves."""
        if self.mode not in HAS_ARM:
            return False
        if not self._ending:
            self._ending = True  # no stream begins any more
            self._ending = self.happen(Event.ENDING, reason)
        return self.controller.is_moving or self.controller.joints_move

    def emergency_stop(self, pressed: bool, who: Hashable = None) -> None:
        """Brakes, holds, and rejects trajectories until all publishers that pressed the emergency
        stop have released it and the controller is resumed. `pressed` is False for a release; the
        last argument is any value that identifies the publisher.
        """
        if not pressed:
            self._holders.discard(who)
            return
        is_first = not self._holders
        self._holders.add(who)
        self._latched[Mode.EMERGENCY_STOP] = "emergency stop"
        if is_first:
            self.happen(Event.PRESSED, "emergency stop")

    def stop_holders(self, present: Mapping[Hashable, str] | None = None) -> list[str]:
        """Names of the publishers that hold the emergency stop.

        Args:
            present: names of all publishers that could release it, by the values that identify them
                in `emergency_stop`; None if they are not known. A publisher that has ended holds
                nothing.
        """
        there = self._holders if present is None else self._holders & present.keys()
        return sorted((present or {}).get(who) or "somebody" for who in there)

    def fail(
        self, reason: str, t: float, q: FloatArray, v: FloatArray, law_failed: bool = False
    ) -> None:
        """Brakes from the last state, holds, and rejects trajectories until the fault is reset. If
        the control law has failed, a law that holds any arm brakes."""
        self._latched[Mode.FAULT] = reason
        self._law_failed |= law_failed
        self.happen(Event.FAILED, reason, (t, q, v))

    def follow_up(self, found: Sequence[Ending] = ()) -> None:
        """Changes the mode after the last steps, by their findings."""
        controller = self.controller
        ended = "the motion has ended"
        for end in found:
            self.off_goal = end.off_goal
            if end.off_goal or end.stream_ended:
                ended = end.text
            elif end.let_go:
                self._seen = f"{self._seen}; {end.text}".lstrip("; ")
                self.unexplained = self.happen(Event.LET_GO, self._seen)
            elif end.faulty:
                self._latched[Mode.FAULT] = self._seen = end.text
                self.unexplained = self.happen(Event.TRIPPED, end.text)
            elif end.gave_way:
                self._give_way(end)
            elif end.restless:
                self.happen(Event.BRAKED, end.text)
        if controller.predicting:  # machine code may have begun to predict only now
            return
        if controller.streams and self.mode in TAKES_TRAJECTORIES:
            self.happen(Event.STREAMED, "following a stream of targets")
        elif self.mode is Mode.STREAMING and not controller.streams:
            self.happen(Event.STREAM_ENDED, ended)
        if self.mode is Mode.MOVING and controller.motion is None:
            event = Event.BRAKED if controller.is_moving else Event.RESTED
            self.happen(event, ended)
        elif self.mode is Mode.BRAKING and not (controller.is_moving or controller.restless):
            self.happen(Event.RESTED, "at rest")

    def let_go(self, reason: str) -> bool:
        """Commands no torque until the next activation; returns False if that is so already."""
        if self.mode in (Mode.INACTIVE, Mode.POWERLESS):
            return False
        self.controller.let_go()
        self._seen = reason
        return self.happen(Event.LET_GO, reason)

    def tell_cause(self, words: str) -> None:
        """Puts the likely cause in front of the reason of a fault or of mode powerless."""
        if self.mode in (Mode.FAULT, Mode.POWERLESS):
            reason = f"{words} ({self._seen or self.reason})"
            if self.mode is Mode.FAULT:
                self._latched[Mode.FAULT] = reason
            self._change(self.mode, reason)

    def _give_way(self, end: Ending) -> None:
        """Brakes after the desired position was taken from the arm, or fails if the law shakes the
        arm."""
        controller, times, reason = self.controller, self._gave_way_at, end.text
        often = False
        if not controller.arresting:  # an arm that is caught may give way repeatedly
            times.append(controller.time)
            often = len(times) == MOST_GIVEN_WAY and times[-1] - times[0] < GIVING_WAY
        if often:
            times.clear()
            how_often = f"gave way {MOST_GIVEN_WAY} times within {GIVING_WAY:g} s"
            doubt = "are gains, payload and limits right?"
            reason = f"{how_often} ({doubt}), the last time as {reason}"
        if often or end.shaken:
            q, v = controller.last_state
            self.fail(reason, controller.time, q, v, law_failed=True)
        elif self.mode is not Mode.GRAVITY_COMPENSATION or not controller.guided:
            self.happen(Event.BRAKED, reason)

    # Requests of trajectory senders.

    def situation(self, t: float, ends_stream: bool = True) -> Situation:
        """The state that a new trajectory starts from.

        Args:
            t: time now [s].
            ends_stream: True if the arm brakes, should it follow a stream; else the state is the
                one at rest where the arm is in the stream.

        Raises:
            TrajectoryModeError: no trajectory may be followed now.
        """
        if self.mode is Mode.GRAVITY_COMPENSATION:
            check_law(self.controller.settings.control_law)
        if self.controller.streams and ends_stream:
            self.happen(Event.HELD, "a trajectory replaces the stream")
        if self.mode not in STREAMS:
            raise TrajectoryModeError(REFUSALS[self.mode].format(reason=self.reason))
        if self._ending:
            raise TrajectoryModeError(ENDS)
        return self.controller.situation(t)

    def adopt(self, plan: Plan) -> bool:
        """Changes to a plan; returns False if it is too late for it or the mode has changed."""
        if self.mode not in TAKES_TRAJECTORIES or self._ending:
            return False
        return self.controller.adopt(plan) and self.happen(Event.ADOPTED, "following a trajectory")

    def catch_up(self, plan: Plan, motion: Motion) -> bool:
        """Has the present motion continue by a plan; returns True if it does."""
        if self.mode is not Mode.MOVING or self._ending or motion is not self.controller.motion:
            return False
        return self.controller.adopt(plan, motion)

    def cancel(self, motion: Motion) -> None:
        """Brings the arm to rest if it still follows this motion."""
        if motion is self.controller.motion:
            self.happen(Event.HELD, "canceled by the client", kind=EndKind.CANCELLED)

    # Operator requests. Each returns a status message, or raises ControllerError if the request is
    # not possible in this mode.

    def hold(self) -> str:
        """Brings the arm to rest and holds it."""
        self._demand(FREE, "hold")
        if self._rest is Mode.GRAVITY_COMPENSATION:
            law = self.controller.settings.control_law.name
            raise ControllerError(f"control_law is {law}, which holds no position")
        self.happen(Event.HELD, "requested by ~/hold")
        return "braking, then holding"

    def guide(self) -> str:
        """Lets a hand guide the arm."""
        self._demand((Mode.HOLDING, Mode.GRAVITY_COMPENSATION), "begin gravity compensation")
        if self._ending:
            raise ControllerError(ENDS)
        self.happen(Event.GUIDED, "requested by ~/gravity_compensation")
        again = "; ~/resume holds the arm again" if self._rest is Mode.HOLDING else ""
        return f"the arm follows the hand{again}"

    def resume(self, present: Mapping[Hashable, str] | None = None) -> str:
        """Ends hand guiding or an emergency stop, or accepts a position that no motion leads to.
        Succeeds if trajectories are accepted already, as that is the purpose of the request.

        Args:
            present: names of all publishers that could release an emergency stop, by the values
                that identify them in `emergency_stop`; None if they are not known. An emergency
                stop whose publisher has ended is overridden.
        """
        if self.mode is Mode.BLIND and self.controller.doubts:
            self.controller.believe()
            return "the measured positions are accepted"
        if self.mode in STREAMS:
            waited, self.controller.arm.stream_waits = self.controller.arm.stream_waits, False
            if waited:
                return "a stream of targets may begin"
            return f"already {self.mode.value}: there was nothing to resume"
        self._demand((Mode.GRAVITY_COMPENSATION, Mode.EMERGENCY_STOP), "resume")
        if names := self.stop_holders(present):
            raise ControllerError(
                f"the emergency stop is still on, held by {listed(names)}: publish false there "
                "first"
            )
        gone = len(self._holders)
        self._holders.clear()
        self._latched.pop(Mode.EMERGENCY_STOP, None)
        guided = self.mode is Mode.GRAVITY_COMPENSATION
        self.happen(Event.HELD if guided else Event.RELEASED, "requested by ~/resume")
        self.controller.arm.stream_waits = False
        if self.mode is Mode.FAULT:
            return self.reason
        over = f", despite the emergency stop of {gone} publisher(s) that have ended"
        return self._rest.value + (over if gone else "")

    def _demand(self, modes: tuple[Mode, ...], what: str) -> None:
        if self.mode not in modes:
            raise ControllerError(
                f"cannot {what} in mode {self.mode.value} ({self.reason}), only in "
                f"{', '.join(mode.value for mode in modes)}"
            )
