"""One control loop twice: once its ticks are Python, once machine code, with the same states.

What rcl and the clocks answer is played by this process; what the arm measures follows from what
the controller wants, with noise, pushes and all that befalls states.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple
from unittest import mock

import numpy as np
from controllers import rules
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from node_bench import JOINTS, MODEL, joint_state
from rclpy.clock import ROSClock
from rclpy.logging import get_logger
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray

from rnea_control.control import Controller, ControllerSettings, Gains, SafetySettings
from rnea_control.control.references import has_path, is_streamed
from rnea_control.dynamics import Workspace, forward_kinematics
from rnea_control.loop.handover import Handover, HandoverTimes
from rnea_control.loop.other_inputs import (
    CONTROL,
    JOG,
    POSITIONS,
    STOP,
    TARGET_JOINT,
    TARGET_POSE,
    TARGET_STIFFNESS,
    TARGET_WRENCH,
    TWIST,
)
from rnea_control.node.control_loop import ControlLoop
from rnea_control.node.python_ticks import LoopSettings
from rnea_control.ros import rcl_calls as rcl
from rnea_control.ros.effort_command import Command
from rnea_control.ros.rcl_calls import Taken
from rnea_control.spatial.rotation import quaternion_of_rotation

PERIOD = 0.001
TIP = "lower"
WORKSPACE = Workspace(MODEL)
# The joints in another order, among others.
NAMES = ["other", *reversed(JOINTS), "third"]
OWN, ANOTHER = bytes(range(16)), bytes(range(16, 32))
# What may befall a state, and how often.
BEFALLS = {"nothing": 0.897, "frozen": 0.003, "repeated": 0.02, "missed": 0.02, "late": 0.02}
BEFALLS |= {"not finite": 0.01, "another's": 0.01, "jump": 0.005, "none": 0.01}
BEFALLS |= {"many missing": 0.004, "gone": 0.001}
# Streams: phases of as many states, in each of which one kind of targets comes, or none.
PHASE = 800  # states of a phase
PAUSE = 450  # states at the begin of a phase without targets
TARGETS = 10  # states from one target to the next
# Of the subscriptions beside the states.
KINDS = (
    STOP,
    TARGET_JOINT,
    POSITIONS,
    JOG,
    TARGET_POSE,
    TWIST,
    TARGET_STIFFNESS,
    TARGET_WRENCH,
    CONTROL,
)
OF_JOINTS, OF_TIP = (TARGET_JOINT, POSITIONS, JOG), (TARGET_POSE, TWIST)
# Kinds of a twin's streams, and kinds of other publishers beside them.
SENDERS = {"joints": (OF_JOINTS, OF_JOINTS), "tip": (OF_TIP, KINDS[1:-1])}
SENDERS |= {"gains": ((CONTROL,), (*OF_JOINTS, CONTROL))}
SENT = {"good": 0.69, "stamped": 0.08, "old stamp": 0.02, "not finite": 0.04, "far": 0.04}
SENT |= {"unknown joint": 0.04, "cut": 0.04, "too many": 0.03, "none": 0.02}
BUTTON = bytes(range(32, 48))  # publisher of the emergency stop


class Beside(NamedTuple):
    """A message beside the states: index of its subscription, from 1 on, and the message."""

    which: int
    data: bytes
    publisher: bytes


class Kept(Command):
    """Keeps what is published."""

    def __init__(self) -> None:
        super().__init__(len(JOINTS))
        self.sent: list[bytes] = []

    def publish(self) -> bytes:
        self.sent.append(super().publish())
        return self.sent[-1]


class Script:
    """The states of an arm, one after the other, and the clocks."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.now, self.stamp, self.number = 50.0, 1000.0, 0
        self.silent = self.frozen = 0
        self.last = b""

    def _pass(self, seconds: float) -> None:
        self.now = round((self.now + seconds) * 1e9) / 1e9  # as clocks tell it

    @property
    def clock(self) -> int:
        """The system's clock, [ns]."""
        return round(self.stamp * 1e9) + 300_000

    def next(self, controller: Controller) -> Taken | None:
        """What comes after another period; None for nothing."""
        rng = self.rng
        self._pass(PERIOD * (1.0 + 0.2 * rng.uniform(-1.0, 1.0)))
        if self.silent:
            self.silent -= 1
            self.stamp += PERIOD
            return None
        befalls = rng.choice(list(BEFALLS), p=list(BEFALLS.values()))
        self.frozen = 40 if befalls == "frozen" else max(self.frozen - 1, 0)
        if self.frozen:
            befalls = "repeated"
        self.silent = {"many missing": 40, "gone": 130}.get(befalls, 0)
        self.stamp += PERIOD
        self.number += 1
        if befalls == "repeated" and self.last:
            return Taken(self.last, self.number, OWN)
        if befalls in ("none", "many missing", "gone"):
            self.number -= 1
            return None
        if befalls == "missed":
            self.number += 3
        if befalls == "late":
            self._pass(0.004)
            self.stamp += 0.004
        q, v = np.zeros(2), np.zeros(2)
        if is_streamed(controller.rows) and not has_path(controller.rows):
            q, v = controller.last_state[0].copy(), controller.rows.desired_velocity.copy()
            q += v * PERIOD
        elif controller.has_trajectory:
            q, v = controller.desired[0] + v * PERIOD, controller.desired[1].copy()
        q += 1e-4 * rng.standard_normal(2)
        v += 1e-4 * rng.standard_normal(2)
        if rng.random() < 0.002:
            q += 0.04
        if befalls == "jump":
            q += 0.5
        if befalls == "not finite":
            q[1] = np.nan
        positions, velocities = [0.0, *q[::-1], 9.0], [0.0, *v[::-1], 9.0]
        message = joint_state(round(self.stamp * 1e9), positions, velocities, NAMES)
        data = serialize_message(message)
        if befalls == "another's":
            return Taken(data, 7, ANOTHER)
        self.last = data
        return Taken(data, self.number, OWN)


def targets(given: int, script: Script, controller: Controller, senders: str) -> list[Beside]:
    """The messages beside the states that arrive with the state of this number, of a row of
    `SENDERS`."""
    rng, phase, within = np.random.default_rng((7, given)), given // PHASE, given % PHASE
    found = []
    if phase % 4 == 3 and within in (PAUSE + 150, PAUSE + 180):  # in the stream
        pressed = serialize_message(Bool(data=within == PAUSE + 150))
        found.append(Beside(1, pressed, BUTTON))
    if within < PAUSE or given % TARGETS:
        return found
    kinds, besides = SENDERS[senders]
    kind = kinds[phase % len(kinds)]
    found.append(Beside(KINDS.index(kind) + 1, target(kind, rng, script, controller), OWN))
    if rng.random() < 0.2:  # of another publisher, by any of the topics
        kind = besides[rng.integers(len(besides))]
        which = KINDS.index(kind) + 1
        if which != found[-1].which:
            found.append(Beside(which, target(kind, rng, script, controller), ANOTHER))
    return sorted(found)


def target(kind: int, rng: np.random.Generator, script: Script, controller: Controller) -> bytes:
    """A message of a stream near the desired position, or one that is to be refused."""
    if kind in OF_TIP:
        return tip_target(kind, rng, script, controller)
    if kind in (TARGET_STIFFNESS, TARGET_WRENCH):
        return tip_setting(kind, rng)
    if kind == CONTROL:
        return gains(rng, script, controller)
    sent = rng.choice(list(SENT), p=list(SENT.values()))
    values = rng.uniform(-0.1, 0.1, 2)
    if kind != JOG:
        values += controller.desired[0]
    if sent == "not finite":
        values[1] = np.nan
    if sent == "far":
        values[0] += 3.0
    if kind == POSITIONS:
        many = [*values, 0.0] if sent == "too many" else list(values)
        data = serialize_message(Float64MultiArray(data=many))
    else:
        message = JointState(name=list(JOINTS))
        some = rng.random() < 0.2
        if some:  # some joints in another order
            message.name, values = [JOINTS[1]], values[1:]
        message.position = list(values)
        if kind == JOG and rng.random() < 0.7:  # the bytes of a JointJog begin like a JointState
            message.position, message.velocity = [], list(values)
        elif rng.random() < 0.3:
            message.velocity = [0.1] * len(values)
            message.effort = [1.0] * len(values)
        if sent in ("stamped", "old stamp"):
            stamp = script.stamp - (0.01 if sent == "stamped" else 5.0)
            seconds, part = divmod(round(stamp * 1e9), 10**9)
            message.header.stamp.sec, message.header.stamp.nanosec = seconds, part
        if sent == "unknown joint":
            message.name = [*message.name[:-1], "gripper"]
        if sent == "none":
            message.name, message.position, message.velocity = [], [], []
        data = serialize_message(message)
    return data[: len(data) // 2] if sent == "cut" else data


def gains(rng: np.random.Generator, script: Script, controller: Controller) -> bytes:
    """A planner's gains about a state near the arm's, or a message that is to be refused."""
    from planned_arm import control  # noqa: PLC0415, the ROS 2 wheels lack its message

    sent = rng.choice(list(SENT), p=list(SENT.values()))
    K, tau = rng.normal(0.0, 5.0, (2, 4)), rng.normal(0.0, 2.0, 2)
    x = rng.uniform(-0.1, 0.1, (2, 2))
    x[0] += controller.rows.last_position
    x[0, 0] += 3.0 if sent == "far" else 0.0
    K[1, 2] = np.nan if sent == "not finite" else K[1, 2]
    tau = np.zeros(3) if sent == "too many" else tau
    turned = rng.random() < 0.3
    names = JOINTS[::-1] if turned else []
    names = ["gripper", *JOINTS[1:]] if sent == "unknown joint" else names
    message = control(K, tau, *x, names)
    if turned:
        state = message.initial_state.joint_state
        state.position, state.velocity = state.position[::-1], state.velocity[::-1]
    if sent == "none":
        message.initial_state.joint_state.velocity = []
    if sent in ("stamped", "old stamp"):
        stamp = script.stamp - (0.01 if sent == "stamped" else 5.0)
        seconds, part = divmod(round(stamp * 1e9), 10**9)
        message.header.stamp.sec, message.header.stamp.nanosec = seconds, part
    data = serialize_message(message)
    return data[: len(data) // 2] if sent == "cut" else data


def tip_target(
    kind: int, rng: np.random.Generator, script: Script, controller: Controller
) -> bytes:
    """A pose near the tip's, or a twist, or one that is to be refused."""
    sent = rng.choice(list(SENT), p=list(SENT.values()))
    message = PoseStamped() if kind == TARGET_POSE else TwistStamped()
    frame = "lower" if kind == TWIST and rng.random() < 0.3 else MODEL.root_link
    message.header.frame_id = "camera" if sent == "unknown joint" else frame
    if sent in ("stamped", "old stamp"):
        stamp = script.stamp - (0.01 if sent == "stamped" else 5.0)
        seconds, part = divmod(round(stamp * 1e9), 10**9)
        message.header.stamp.sec, message.header.stamp.nanosec = seconds, part
    values = rng.uniform(-0.1, 0.1, 6)
    if sent == "not finite":
        values[1] = np.nan
    if kind == TWIST:
        for part, numbers in ((message.twist.linear, values[:3]), (message.twist.angular, values)):
            part.x, part.y, part.z = numbers[-3:].tolist()
    else:
        q = controller.rows.last_position
        poses = np.zeros((len(MODEL.link_names), 4, 4))
        X = forward_kinematics(MODEL, WORKSPACE, q, poses)[MODEL.link_names.index(TIP)]
        values[:3] += X[:3, 3]
        values[0] += 3.0 if sent == "far" else 0.0
        place, turn = message.pose.position, message.pose.orientation
        place.x, place.y, place.z = values[:3].tolist()
        rotation = quaternion_of_rotation(tuple(X[:3, :3].ravel().tolist()))
        turn.x, turn.y, turn.z, turn.w = rotation if sent != "none" else (0.0, 0.0, 0.0, 0.0)
    data = serialize_message(message)
    return data[: len(data) // 2] if sent == "cut" else data


def tip_setting(kind: int, rng: np.random.Generator) -> bytes:
    """A stiffness or a wrench, or one that is to be refused."""
    sent = rng.choice(list(SENT), p=list(SENT.values()))
    values = rng.uniform(0.0, 300.0, 6)
    if sent == "not finite":
        values[1] = np.nan
    if kind == TARGET_STIFFNESS:
        values[0] *= -1.0 if sent == "far" else 1.0
        numbers = np.diag(values).ravel() if rng.random() < 0.5 else values
        message = Float64MultiArray(data=numbers[: -1 if sent == "none" else None].tolist())
    else:
        message = WrenchStamped()
        message.header.frame_id = "camera" if sent == "unknown joint" else MODEL.root_link
        for part, numbers in ((message.wrench.force, values[:3]), (message.wrench.torque, values)):
            part.x, part.y, part.z = (0.01 * numbers[-3:]).tolist()
    data = serialize_message(message)
    return data[: len(data) // 2] if sent == "cut" else data


class Twin:
    """A loop with its script; watched: collisions are looked for; streams: targets arrive, of a row
    of `SENDERS`.

    Attributes:
        beside: messages that arrived with the state of the script, and were not taken.
        changes: of the mode, and why.
        endings: of motions.
    """

    def __init__(self, seed: int, watched: bool = False, streams: str = "") -> None:
        self.script, self.streams = Script(seed), streams
        self.beside: list[Beside] = []
        tolerances = {"path_position": 0.1, "goal_position": 0.05, "goal_time": 0.5}
        rate, error = np.full(2, 4000.0), np.full(2, 0.3)
        limits = {"torque_rate_limit": rate, "max_position_error": error, "check_jumps": True}
        if watched:
            threshold = np.full(2, 0.1)
            limits |= {"detects_collisions": True, "collision_threshold": threshold}
        safety = replace(SafetySettings.none(2), position_margin=np.full(2, 0.05), **limits)
        how = {"trajectories": rules(tolerances=tolerances), "safety": safety, "dead_time": 0.0005}
        settings = ControllerSettings(Gains.uniform(2, 100.0, 20.0, 5.0), tip=TIP, **how)
        self.command = Kept()
        parts = Controller(MODEL, settings), self.command, Handover(HandoverTimes.of_controller())
        logs = get_logger("twin"), ROSClock()
        self.loop = ControlLoop(*parts, LoopSettings(), *logs)
        self.loop.arm_loop.others.arrays.kinds[: len(KINDS)] = KINDS
        self.changes: list[tuple] = []
        self.endings: list[tuple] = []
        self.given = 0

    def next(self) -> Taken | None:
        """The next state; the messages that arrive with it wait in `beside`."""
        taken = self.script.next(self.loop.controller)
        self.beside = []
        if self.streams:
            self.beside = targets(self.given, self.script, self.loop.controller, self.streams)
        return taken

    def hear_beside(self) -> None:
        """Takes the messages beside the states, as `PythonTicks.answer_next` does."""
        waiting = iter([(each.which, Taken(each.data, 0, each.publisher)) for each in self.beside])
        self.beside = []
        self.loop.ticks.hear_beside(waiting)

    @contextmanager
    def clocks(self) -> Iterator[None]:
        """Time is that of the script."""
        with (
            mock.patch("time.monotonic", lambda: self.script.now),
            mock.patch("time.time_ns", lambda: self.script.clock),
        ):
            yield

    def told(self) -> None:
        """Keeps what has changed."""
        self.changes += [(old.value, new.value, why) for old, new, why in self.loop.changes]
        self.loop.changes.clear()

    def python(self, actions: Callable[[Twin, int], None], states: int) -> None:
        """Ticks by Python."""
        loop = self.loop
        with self.clocks():
            loop.start("guarding")
            loop.arm_loop.handover.start(self.script.now, alone=True)
            for self.given in range(states):
                actions(self, self.given)
                taken = self.next()
                self.hear_beside()
                if taken is None or not loop.ticks.tick(*taken):
                    loop.ticks.watch()
                self.told()

    def natively(
        self,
        actions: Callable[[Twin, int], None],
        states: int,
        meanwhile: Callable[[Twin, int], None] = lambda twin, given: None,
    ) -> int:
        """Ticks by machine code, wherever that is possible; how many were.

        Args:
            actions: called before each state, with the number of those that were given.
            states: so many are given.
            meanwhile: as `actions`, but while machine code runs.
        """
        table = FakeTable(self, actions, states, meanwhile)
        loop = self.loop
        loop.arm_loop._table = table
        loop.controller.post = loop.controller.serve  # one thread does it all
        with self.clocks():
            loop.start("guarding")
            loop.arm_loop.handover.start(self.script.now, alone=True)
            while self.given < states:
                taken = None
                if loop.arm_loop.may_run_natively():
                    verdict, taken = loop.arm_loop.run_natively()
                    loop.ticks.act(verdict)
                    loop.attend()
                    if table.pending:
                        loop.arm_loop.shared.interruptions = 0
                        table.pending, table.acted = False, True
                        actions(self, self.given)
                    elif taken is None and self.given < states:
                        loop.ticks.watch()
                else:
                    table.advance(act=True)
                    taken = table.waiting
                    self.hear_beside()
                    if taken is None:
                        loop.ticks.watch()
                if taken is not None and not loop.ticks.tick(*taken):
                    loop.ticks.watch()
                self.told()
        return loop.arm_loop.shared.ticks


class FakeTable:
    """An `RclTable` whose functions are Python's: they play a script."""

    def __init__(
        self,
        twin: Twin,
        actions: Callable[[Twin, int], None],
        states: int,
        meanwhile: Callable[[Twin, int], None],
    ) -> None:
        self._twin, self._actions, self._states = twin, actions, states
        self._meanwhile = meanwhile
        self.waiting: Taken | None = None
        self._more = 0
        self.pending = self.acted = False
        self._kept: list[object] = [None, None, None]
        kinds = {
            rcl.WAIT: (self._wait, 3),
            rcl.TRY: (self._try, 1),
            rcl.TAKE: (self._take, 4),
            rcl.PUBLISH: (self._publish, 3),
            rcl.TRIGGER: (self._trigger, 1),
            rcl.CLOCK: (self._clock, 2),
        }
        self._functions = {
            key: ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * count)(function)
            for key, (function, count) in kinds.items()
        }
        self.array = np.zeros(rcl.TABLE, dtype=np.int64)
        for key, function in self._functions.items():
            self.array[key] = ctypes.cast(function, ctypes.c_void_p).value
        self.array[rcl.COUNT], self.array[rcl.HERE] = 1 + len(KINDS), self.array.ctypes.data
        subscriptions = range(1 + len(KINDS))
        self.array[rcl.SUBSCRIPTIONS :][: len(subscriptions)] = subscriptions
        self._messages = self.array[rcl.MESSAGES : rcl.INFO].reshape(3, 8)
        self._info = self.array[rcl.INFO :]

    def advance(self, act: bool) -> None:
        """The next period; whatever is to be done before it is done here, or asked for."""
        twin = self._twin
        if act and not self.acted:
            self._actions(twin, twin.given)
        self.acted = False
        self.waiting = twin.next()
        twin.given += 1

    def _wait(self, *_: int) -> int:
        twin, nothing = self._twin, -1
        self.waiting = None
        if twin.given >= self._states:
            twin.loop.arm_loop.shared.interruptions = 1
            return nothing
        if not self.acted and acts(twin.given):
            twin.loop.arm_loop.shared.interruptions = 1
            self.pending = True
            return nothing
        self._meanwhile(twin, twin.given)
        self.advance(act=False)
        self._more = len(twin.beside)
        return rcl.OK

    def _try(self, _: int) -> int:
        """There is one message more for each that waits beside the state."""
        self._more -= 1
        return 0 if self._more >= 0 else -1

    def _take(self, subscription: int, message: int, info: int, _: int) -> int:
        which = [row.ctypes.data for row in self._messages].index(message)
        if subscription == 0:
            if self.waiting is None:
                return rcl.TAKE_FAILED
            data, count, gid = self.waiting
        else:
            found = [each for each in self._twin.beside if each.which == subscription]
            if not found:
                return rcl.TAKE_FAILED
            self._twin.beside.remove(found[0])
            data, count, gid = found[0].data, 0, found[0].publisher
        self._kept[which] = buffer = np.frombuffer(data, np.uint8).copy()
        self._messages[which, :2] = buffer.ctypes.data, len(data)
        self._info[2] = count
        self._info[5:7] = np.frombuffer(gid, np.int64)
        return rcl.OK

    def _publish(self, *_: int) -> int:
        self._twin.command.publish()
        return rcl.OK

    def _trigger(self, _: int) -> int:
        self._twin.loop.attend()
        return rcl.OK

    def _clock(self, which: int, _: int) -> int:
        script = self._twin.script
        nanoseconds = round(script.now * 1e9) if which else script.clock
        self.array[rcl.TIME : rcl.TIME + 2] = divmod(nanoseconds, 10**9)
        return 0

    def taken(self, which: int) -> Taken:
        """See `RclTable`."""
        address, length = (int(each) for each in self._messages[which, :2])
        gid = self._info[5:7].tobytes()
        return Taken(ctypes.string_at(address, length), int(self._info[2]), gid)


def acts(index: int) -> bool:
    """Whether something is asked for before this state."""
    return index % 97 == 5
