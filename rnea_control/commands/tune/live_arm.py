"""`LiveArm`: the arm under its controller, for `Experiment`. Small motions by the action, the
messages recorded meanwhile, and settings for the measurement only."""

from __future__ import annotations

import math
import os
import re
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from rnea_control.array_types import FloatArray
from rnea_control.client.connection import LOOK, Running
from rnea_control.client.controller_link import IN_MOTION, ControllerLink
from rnea_control.client.goal import Goal
from rnea_control.client.live_parameters import LiveParameters
from rnea_control.client.profile import MotionLimits, Profile, chained, straight
from rnea_control.client.recorder import Received, Recorder
from rnea_control.commands.tune.temporary_settings import TemporarySettings
from rnea_control.control import ControlLaw, Mode
from rnea_control.exceptions import (
    IdentificationError,
    JointStateError,
    ParameterError,
    Refused,
    RneaControlError,
    TrajectoryLimitsError,
    TrajectoryModeError,
    listed,
)
from rnea_control.identification.tuning.joint_experiment import BRACED
from rnea_control.identification.tuning.report import Swing
from rnea_control.identification.tuning.response import Response, answered_states
from rnea_control.identification.tuning.small_motion import FURTHEST, REACH, REST, SmallMotion
from rnea_control.messages.float64_multi_array import decode_command
from rnea_control.messages.joint_state import JointStateFields, refusal

STOP_AT = 0.046  # distance of a joint from its start at which a motion is canceled [rad] or [m]
FASTEST = 0.5  # velocity of a joint at which a motion is canceled [rad/s] or [m/s]
LEAST_REACH = 0.006  # reach of the swing of a joint that sags [rad] or [m]
SAME = 1e-6  # difference of desired positions that does not count [rad] or [m]
TIGHT = 0.03  # max_position_errors while the arm is measured, beyond the error at rest [rad] or [m]
LONGEST_SAG = 0.03  # largest distance of a held joint from its desired position [rad] or [m]
LONGEST_STOP = 5.0  # time limit for the arm to come to rest [s]
LEAST_ROTOR = 1e-4  # armature that every controller takes [kg m^2] or [kg]
TAKEN = 3.0  # time in which another rnea_tune is discovered [s]
DISCOVERY = 5.0  # time limit for the discovery of the effort commands [s]
AFTER = 0.15  # time after a motion for its last messages [s]
RATES = 0.1, 0.5  # velocity and acceleration of the swing [rad/s], [rad/s^2]
ALL_SIGNALS = 3  # signals after which an end waits for nothing any more
STILL_MOVES = "THE ARM MAY STILL MOVE: no stop was detected"
LEAST_ANSWERED = 0.7  # part of the states that have a command
NANOSECONDS = 1e-9


class Interrupted(Exception):
    """A signal has ended the measurement."""


class LiveArm:
    """The arm under its controller.

    Args:
        link: connection to the controller; has observed.
        running: False after the given number of signals, 1 by default.
        output: folder of the results.

    Attributes:
        settings: parameters of the controller that are set for a time.
        start: measured positions before the first motion, shape (nv,).
        held: desired positions then, shape (nv,).
    """

    def __init__(self, link: ControllerLink, running: Running, output: Path) -> None:
        self._link, self._running = link, running
        self._model, values = link.given.model, link.given.values
        law = link.given.controller.control_law
        if law is not ControlLaw.computed_torque:
            raise ParameterError(
                f"control_law is {law.name}; rnea_tune needs computed_torque, which adds the "
                "efforts of goals, and whose gains it proposes: ros2 param set "
                f"{link.controller} control_law computed_torque, with gains in 1/s^2 and 1/s"
            )
        self._refuse_second()
        # Old settings are set again after signals too.
        parameters = LiveParameters(link.connection, link.controller, ALL_SIGNALS)
        joints = self._model.joint_names
        self.settings = TemporarySettings(parameters, link.controller, joints, output)
        commands, node = str(values["command_topic"]), link.connection.node
        try:
            self._recorder = link.connection.run(lambda: Recorder(node, commands))
        except BaseException:
            self.settings.end()
            raise
        self._gains = link.given.controller.gains
        self._goal: Goal | None = None  # newest motion
        self._guarded = 0  # number of joint states that `_guard` has seen in the motion
        self.start = self.held = self._sag = np.zeros(self._model.nv)
        self._stray = ""  # why a motion was canceled

    def destroy(self) -> None:
        """Ends the recording, and sets the old settings again."""
        self._recorder.stop()
        self.settings.end()

    def _refuse_second(self) -> None:
        """Raises TrajectoryModeError if another rnea_tune runs: it would take the settings of this
        measurement for the old ones."""

        def others() -> set[str]:
            found = map(re.compile("rnea_tune_[0-9]+").match, self._link.names_of_nodes())
            return {match[0] for match in found if match} - {f"rnea_tune_{os.getpid()}"}

        if self._link.until(others, TAKEN):
            raise TrajectoryModeError(
                f"another rnea_tune is running, {listed(sorted(others()))}; wait for its end"
            )

    def prepare(self, joints: list[int]) -> None:
        """Checks that the joints can move, and takes their positions as the start.

        Raises:
            TrajectoryLimitsError: a joint is too near to its limit.
            JointStateError: no commands are received, or a joint sags.
            TrajectoryModeError: the controller accepts no goal.
        """
        model = self._model
        self.held, self.start = self._link.where()
        for j in joints:
            room = min(self.start[j] - model.lower[j], model.upper[j] - self.start[j])
            if room < FURTHEST:
                raise TrajectoryLimitsError(
                    f"{model.joint_names[j]} is at {self.start[j]:.3f}, {max(room, 0.0):.3f} from "
                    f"a position limit; rnea_tune needs {FURTHEST:g} on either side. Move it "
                    f"away by rnea_move --joint {model.joint_names[j]} --by ..."
                )
        sag = np.abs(self.held - self.start)
        if (worst := int(sag.argmax())) >= 0 and sag[worst] > LONGEST_SAG:
            raise JointStateError(
                f"{model.joint_names[worst]} is {sag[worst]:.3f} from its desired position at "
                f"rest, more than {LONGEST_SAG:g}: the masses or the payload of the model are "
                "wrong. rnea_doctor and the log of the controller look for the cause"
            )
        deadline = time.monotonic() + DISCOVERY
        while True:
            self._link.connection.run(self._recorder.follow_commands)
            states, commands = self.watch(0.2)
            if states and commands:
                break
            if time.monotonic() > deadline:
                raise JointStateError(
                    "no effort commands are received on the topic of the controller's "
                    "command_topic: is the effort controller active?"
                )
        self._sag = sag
        self.tighten()

    def tighten(self) -> None:
        """Has the controller end a motion at small position errors."""
        errors = zip(self._model.joint_names, self._sag, strict=True)
        self.settings.set({f"max_position_errors.{n}": float(TIGHT + e) for n, e in errors})

    def watch(self, seconds: float) -> tuple[Received, Received]:
        """Messages of the next seconds: joint states, and commands."""
        self._recorder.taken()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._check()
            self._link.connection.wait(lambda: False, LOOK)
        return self._recorder.taken()

    def at_rest(self, seconds: float) -> Response:
        """Response of the arm that is held."""
        return self._decoded(*self.watch(seconds), math.nan).aligned(0.0)

    # Functions for `Experiment`.

    def perform(self, motion: SmallMotion) -> Response:
        """Carries out a motion of one joint about its start."""
        self.go(self.start)
        shape = (len(motion.times), self._model.nv)
        rows = [np.tile(self.start, (shape[0], 1)), np.zeros(shape), np.zeros(shape)]
        own = motion.position, motion.velocity, motion.acceleration
        for row, values in zip(rows, own, strict=True):
            row[:, motion.joint] += values
        profile = Profile(motion.times, *rows, efforts=motion.efforts(self._model.nv))
        goal, states, commands = self._follow(profile)
        response = self._decoded(states, commands, goal.started)
        return response.aligned(motion.duration - REST)

    def brace(self, joint: int, armature: float) -> None:
        """Has the controller hold a joint more firmly."""
        name = self._model.joint_names[joint]
        values = {
            f"armature.{name}": armature,
            f"gains.{name}.p": max(float(self._gains.p[joint]), BRACED**2),
            f"gains.{name}.d": max(float(self._gains.d[joint]), 2.0 * BRACED),
        }
        while True:
            try:
                return self.settings.set(values)
            except Refused:
                # A rotor that the controller cannot brake: less is held less firmly.
                values[f"armature.{name}"] *= 0.5
                if values[f"armature.{name}"] < LEAST_ROTOR:
                    raise

    def go(self, target: FloatArray) -> None:
        """Moves the desired positions from where the arm is held to others, slowly."""
        held, _ = self._link.where()
        if np.abs(target - held).max() > SAME:
            nv = self._model.nv
            limits = MotionLimits(np.full(nv, RATES[0]), np.full(nv, RATES[1]))
            self._follow(straight(held, target, limits))

    def swing(self, label: str, joints: list[int]) -> Swing:
        """A small swing of these joints, with the position errors of all."""
        held, _ = self._link.where()
        nv = self._model.nv
        limits = MotionLimits(np.full(nv, RATES[0]), np.full(nv, RATES[1]))
        side = np.zeros(nv)
        # A joint that sags is not as far from its start then.
        reach = np.clip(REACH - self._sag, LEAST_REACH, REACH)
        side[joints] = [-reach[j] if j % 2 else reach[j] for j in joints]
        places = [held, held + side, held - side, held]
        legs = [straight(a, b, limits) for a, b in pairwise(places)]
        goal, *_ = self._follow(chained(legs))
        return Swing(label, np.array(goal.times), np.array(goal.errors))

    def stop(self) -> str:
        """Cancels the own goal and waits for its end; how the arm stands then. A motion of another
        client is left alone."""
        goal, own = self._goal, self._goal is not None and not self._goal.has_ended
        if goal is not None and own:
            goal.cancel()
            self._link.follow(goal.watch, lambda: None, signals=ALL_SIGNALS)
        stands = not own or self._link.await_rest(LONGEST_STOP)
        return f"the controller is in mode {self._link.mode}" if stands else STILL_MOVES

    def _follow(self, profile: Profile) -> tuple[Goal, Received, Received]:
        """Carries out a motion; returns it with the messages of joint states and commands.

        Raises:
            Interrupted: a signal was received.
            TrajectoryModeError: the motion was aborted, or a joint left its range.
        """
        self._check()
        self._stray, self._guarded = "", 0
        self._recorder.taken()
        goal = self._goal = Goal(self._link, profile)
        self._link.follow(goal.watch, lambda: self._guard(goal))
        if not self._running():
            raise Interrupted
        if self._stray:
            raise TrajectoryModeError(self._stray)
        if goal.failure is not None:
            raise TrajectoryModeError(f"a motion of rnea_tune failed: {goal.failure}")
        self._link.connection.wait(lambda: False, AFTER)
        return goal, *self._recorder.taken()

    def _check(self) -> None:
        """Raises Interrupted after a signal, and TrajectoryModeError if the controller does not
        hold or move the arm."""
        if not self._running():
            raise Interrupted
        mode = self._link.mode
        if mode not in (Mode.HOLDING.value, *IN_MOTION):
            raise TrajectoryModeError(f"the controller is in mode {mode}; see its log")

    def _guard(self, goal: Goal) -> None:
        """Cancels the motion when a joint is too far from its start, or too fast."""
        messages = self._recorder.states.messages
        names = self._model.joint_names
        if self._stray:
            return
        while self._guarded < len(messages) and not self._stray:
            data, self._guarded = messages[self._guarded][1], self._guarded + 1
            try:
                _, q, v = self._state(data)
            except RneaControlError:
                continue
            way, speed = np.abs(q - self.start), np.abs(v)
            if (j := int(way.argmax())) >= 0 and way[j] > STOP_AT:
                self._stray = (
                    f"{names[j]} was {way[j]:.3f} from its start, and the motion was canceled: "
                    f"more than {FURTHEST:g} is not allowed. Is the model's gravity torque right "
                    "(rnea_doctor)?"
                )
            elif speed[k := int(speed.argmax())] > FASTEST:
                self._stray = (
                    f"{names[k]} had {speed[k]:.2g} rad/s or m/s, and the motion was canceled: "
                    f"more than {FASTEST:g} is not allowed"
                )
        if self._stray:
            goal.cancel()

    def _state(self, data: bytes) -> tuple[float, FloatArray, FloatArray]:
        """Stamp [s], positions and velocities of a message."""
        message, joints = JointStateFields(data), self._model.joint_names
        count = len(message.names)
        if message.positions[1] != count or message.velocities[1] != count:
            raise refusal(data, joints)
        lacking = [name for name in joints if name not in message.names]
        if lacking:
            raise JointStateError(f"joint_states lack {listed(lacking)}")
        places = [message.names.index(name) for name in joints]
        q, v = (message.reader.numbers(x) for x in (message.positions, message.velocities))
        stamp = message.seconds + NANOSECONDS * message.nanoseconds
        return stamp, np.array(q)[places], np.array(v)[places]

    def _decoded(self, states: Received, commands: Received, start: float) -> Response:
        """The response in messages; `start` is the stamp at which the motion starts, NaN for the
        first state."""
        received, rows = [], []
        for came, data in states:
            row = self._state(data)
            if not rows or row[0] > rows[-1][0]:
                received.append(came)
                rows.append(row)
        if len(rows) < 10:
            raise JointStateError("too few joint states were received; see rnea_doctor")
        times, q, v = (np.array(each) for each in zip(*rows, strict=True))
        at = np.array([came for came, _ in commands], dtype=float)
        torques = np.array([decode_command(data, self._model.nv) for _, data in commands])
        places = answered_states(np.array(received, dtype=float), at)
        command = np.full(q.shape, np.nan)
        command[places[places >= 0]] = torques[places >= 0]
        known = np.isfinite(command).all(axis=1)
        start = times[0] if math.isnan(start) else start
        if known.mean() < LEAST_ANSWERED:
            raise IdentificationError(
                f"{100 * known.mean():.0f} % of the joint states have a command: does another node "
                "command the arm, or is this machine too slow?"
            )
        steps = np.arange(len(times))
        for k in range(self._model.nv):
            command[~known, k] = np.interp(steps[~known], steps[known], command[known, k])
        return Response(times - start, q, v, command)
