"""The sentinel's parts by themselves: what they take for a wrong command, and the guard with states
whose stamps stand still, or that were held up."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import rclpy
from dds import ros, wait_for
from planar_arm import gravity_torque
from rclpy.clock import ROSClock
from rclpy.executors import SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.serialization import serialize_message
from rclpy.time import Time
from robots import two_link_arm
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from rnea_control.control import Controller, ControllerSettings, Gains, SafetySettings
from rnea_control.control.output_stage import LATENESS
from rnea_control.exceptions import ControllerError
from rnea_control.loop.handover import Handover, HandoverTimes
from rnea_control.messages.float64_multi_array import Float64MultiArrayEncoder
from rnea_control.model import RobotModel
from rnea_control.ros.conventions import LATCHED, NEWEST
from rnea_control.ros.effort_command import Command
from rnea_control.ros.raw_subscription import RawSubscription
from rnea_control.ros.rcl_calls import SEMAPHORE, Taken
from rnea_control.ros.real_time import RealTime, RealTimeSettings
from rnea_control.sentinel.command_watch import CommandWatch
from rnea_control.sentinel.guard import PREDICTION_PERIOD, Guard, GuardSettings
from rnea_control.sentinel.sentinel_node import WAITING, SentinelNode
from rnea_control.sentinel.statements import Statements

MODEL = RobotModel.from_urdf_string(two_link_arm())
GAP = 0.05
AHEAD, RATE = 0.004, 50.0


class Repeated:
    """The same state comes each millisecond, and no command."""

    def __init__(self, message: bytes) -> None:
        self._message = message

    def take(self, timeout: float) -> Taken:
        time.sleep(0.001)
        return self.poll()

    def poll(self, index: int = 0) -> Taken | None:
        return None if index else Taken(self._message)


class Commands(Command):
    """Keeps what would be published."""

    def __init__(self) -> None:
        super().__init__(MODEL.nv)
        self.sent: list[np.ndarray] = []
        self.sent_at: list[float] = []
        self.reasons: list[str] = []  # why the guard changed its mode

    def publish(self) -> bytes:
        self.sent_at.append(time.monotonic())
        self.sent.append(self.torque.copy())
        return super().publish()


class Hurried(Repeated):
    """States that were held up, and come all at once: their stamps are `AHEAD` apart."""

    def __init__(self) -> None:
        super().__init__(b"")
        self._stamp, self._speed = 7 * 10**9, 1.0

    def take(self, timeout: float) -> Taken | None:
        time.sleep(0.0002)
        self._stamp += round(AHEAD * 1e9)
        self._speed *= -1.0
        return Taken(state(self._stamp, self._speed))


class Commanded(Repeated):
    """An arm at rest, and another node that commands it with each state; after a while the arm is
    this fast, or one last command has this torque for the shoulder."""

    def __init__(self, speed: float, torque: float) -> None:
        super().__init__(b"")
        self._stamp, self._speed, self._commands = 7 * 10**9, speed, [(0.5, 0.0)]
        self._last = [(torque, 0.0)] if torque else []

    def take(self, timeout: float) -> Taken:
        time.sleep(0.001)
        self._stamp += 10**6
        late = self._stamp > 72 * 10**8
        if late:
            self._commands, self._last = self._last, []
        else:
            self._commands = [(0.5, 0.0)]
        return Taken(state(self._stamp, self._speed * late))

    def poll(self, index: int = 0) -> Taken | None:
        return Taken(message(*self._commands.pop())) if index and self._commands else None


class Stamped(Repeated):
    """An arm that moves, and a controller that commands it with each state for the first half.

    Attributes:
        given: how many states have come.
    """

    def __init__(self, stamps: list[int]) -> None:
        super().__init__(b"")
        self._stamps, self.given, self._commands = stamps, 0, 0

    @property
    def all_given(self) -> bool:
        return self.given == len(self._stamps)

    def take(self, timeout: float) -> Taken | None:
        time.sleep(0.001)
        if self.all_given:
            return None
        self.given += 1
        self._commands = self.given < len(self._stamps) // 2
        q = [0.3 + 1e-4 * self.given, -0.4]
        return Taken(state(7 * 10**12 + self._stamps[self.given - 1], 0.1, q))

    def poll(self, index: int = 0) -> Taken | None:
        if not (index and self._commands):
            return None
        self._commands = 0
        return Taken(message(0.5 + 1e-3 * self.given, 0.0))


class Paused(Repeated):
    """An arm at rest whose controller falls silent; the sentinel is paused later, for `PAUSE`."""

    PAUSE = 0.2

    def __init__(self, commands: Commands) -> None:
        super().__init__(b"")
        self._stamp, self._commands, self._commanded = 7 * 10**9, commands, 0
        self.paused_after = 0  # number of the sentinel's commands before the pause

    def take(self, timeout: float) -> Taken:
        time.sleep(0.001)
        self._stamp += 10**6
        self._commanded = self._stamp < 73 * 10**8
        if len(self._commands.sent) == 1000 and not self.paused_after:
            self.paused_after = len(self._commands.sent)
            time.sleep(self.PAUSE)
            self._stamp += round(1e9 * self.PAUSE)
        return Taken(state(self._stamp, 0.0))

    def poll(self, index: int = 0) -> Taken | None:
        if not (index and self._commanded):
            return None
        self._commanded = 0
        return Taken(message(0.5, 0.0))


def state(stamp: int, speed: float = 1.0, q: Sequence[float] = (0.3, -0.4)) -> bytes:
    message = JointState(name=list(MODEL.joint_names), position=list(q), velocity=[speed, 0.0])
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    return serialize_message(message)


def guard_that_commands(states: Repeated, commands: Commands, **safety: object) -> Guard:
    guard, now = guard_of(states, commands, **safety), time.monotonic()
    assert guard.handover.receive(now, now)
    return guard


class SimulatedClock:
    """Of a node with use_sim_time."""

    ros_time_is_active = True

    def now(self) -> Time:
        return Time(nanoseconds=7 * 10**12)


def guard_of(
    states: Repeated | RawSubscription,
    commands: Commands,
    clock: ROSClock | SimulatedClock | None = None,
    **safety: object,
) -> Guard:
    limits = replace(SafetySettings.none(MODEL.nv), **safety)
    settings = ControllerSettings(Gains.uniform(MODEL.nv, 100.0, 20.0), safety=limits)
    controller = Controller(MODEL, settings)
    handover = Handover(HandoverTimes.of_sentinel(0.5, 0.8))
    guard = Guard(
        controller,
        commands,
        handover,
        CommandWatch(MODEL.joint_names, MODEL.effort_limit),
        GuardSettings(1.5, GAP),
        clock or ROSClock(),
        get_logger("guard"),
        lambda label: commands.reasons.append(guard.handover.reason),
        Statements(),
    )
    guard.loop.heard = states
    now = time.monotonic()
    controller.hold(0.0, np.array([0.3, -0.4]))
    handover.guard(now)
    return guard


def run(guard: Guard, until: Callable[[], bool]) -> None:
    guard.loop.begin("sentinel", RealTime(RealTimeSettings()))
    try:
        wait_for(until, lambda: time.sleep(0.01))
    finally:
        guard.stop()
    assert not guard.loop.failure


def test_states_with_the_same_stamp_are_as_none() -> None:
    commands = Commands()
    guard = guard_that_commands(Repeated(state(7 * 10**9)), commands)
    run(guard, lambda: guard.holds and guard.controller.time > 3.0 * GAP)
    # The model brakes it: the torque is not the one for the state that is told again and again.
    assert not np.allclose(commands.sent[-2], commands.sent[0], rtol=1e-3)
    # However often a message wakes the thread; one that leaves late brings the next one nearer.
    assert np.diff(commands.sent_at[1:-1]).mean() > 0.99 * PREDICTION_PERIOD
    # What the hardware applies once the sentinel has ended.
    np.testing.assert_allclose(commands.sent[-1], gravity_torque([0.3, -0.4]), rtol=1e-12)


def test_states_that_were_held_up_change_no_torque_by_what_has_not_passed() -> None:
    commands = Commands()
    guard = guard_that_commands(Hurried(), commands, torque_rate_limit=np.full(MODEL.nv, RATE))
    run(guard, lambda: len(commands.sent) > 30)
    change = np.abs(np.diff(commands.sent[:-1], axis=0)).max(axis=1)
    passed = commands.sent_at[-2] - commands.sent_at[0] + 0.01  # the first may be noted late
    assert change.max() > 0.0
    assert change.sum() <= RATE * (passed + LATENESS)


@pytest.mark.parametrize(
    ("speed", "torque", "words"),
    [(16.0, 0.0, "shoulder moves at 16"), (0.0, 1e6, "a command has 1e+06 for shoulder")],
)
def test_wrong_command_or_too_fast_an_arm_is_taken_over(speed, torque, words: str) -> None:
    commands = Commands()
    rate = np.full(MODEL.nv, RATE)
    guard = guard_of(Commanded(speed, torque), commands, torque_rate_limit=rate)
    guard.handover.times = replace(guard.handover.times, arming=0.3, timeout=0.05)
    run(guard, lambda: guard.holds)
    assert guard.takeovers == 1 and commands.reasons[2].startswith(words), commands.reasons
    assert np.isfinite(commands.sent).all()
    # It begins with the torque that the hardware applies: the last one, or the effort limit.
    assert commands.sent[0][0] == pytest.approx(100.0 if torque else 0.5, abs=1.0)


PERIOD = 10**6  # of the stamps [ns]
STATES = 600
CHANGED = 150  # state from which on the clock is another
DUE = [PERIOD * k for k in range(STATES)]
# Stamps that are late from some state on, as the bridge of /clock is; and stamps of a clock that is
# set while the arm moves.
CLOCKS = {
    "late": [min(due, CHANGED * PERIOD) for due in DUE],
    "an hour back": [due - 3600 * 10**9 * (due > CHANGED * PERIOD) for due in DUE],
    "an hour ahead": [due + 3600 * 10**9 * (due > CHANGED * PERIOD) for due in DUE],
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_silent_controller_is_replaced_whatever_the_clock_of_the_stamps_does(clock: str) -> None:
    simulated = SimulatedClock() if clock == "late" else None
    states, commands = Stamped(CLOCKS[clock]), Commands()
    guard = guard_of(states, commands, simulated, torque_rate_limit=np.full(MODEL.nv, RATE))
    guard.handover.times = replace(guard.handover.times, arming=0.2, timeout=0.05)
    run(guard, lambda: guard.holds or states.all_given)
    assert guard.takeovers == 1 and states.given > STATES // 2
    # Its time goes on with the states, however late these are on a busy computer.
    assert guard.loop.states.time == pytest.approx(1e-3 * states.given, abs=0.02)
    assert np.abs(np.diff(commands.sent[:-1], axis=0)).max(initial=0.0) < RATE


def test_arm_that_the_sentinel_lost_by_a_pause_gets_its_own_last_torque_again() -> None:
    """Not that of the controller, which was in force before."""
    commands = Commands()
    states, rate = Paused(commands), np.full(MODEL.nv, RATE)
    guard = guard_of(states, commands, torque_rate_limit=rate)
    times = replace(guard.handover.times, arming=0.2, timeout=0.05, lease=0.1, recovery=0.06)
    guard.handover.times = times
    run(guard, lambda: guard.takeovers == 2 and len(commands.sent) > states.paused_after)
    before, after = commands.sent[states.paused_after - 1], commands.sent[states.paused_after]
    np.testing.assert_allclose(before, gravity_torque([0.3, -0.4]), rtol=0.01)
    np.testing.assert_allclose(after, before, rtol=0.01)


@pytest.mark.parametrize("speed", [1.0, 0.0])
def test_arm_is_given_back_and_left_at_rest_only(speed: float) -> None:
    guard = guard_that_commands(Repeated(state(7 * 10**9, speed)), Commands())
    refused: list[str] = []

    def asked() -> bool:
        for ask in (guard.release, guard.stand_down) if guard.loop.states.begun else ():
            try:
                ask()
            except ControllerError as error:
                refused.append(str(error))
        return guard.loop.states.begun

    run(guard, asked)
    expected = "the arm still moves at 1 rad/s or m/s; it is being braked"
    assert refused == [expected] * (2 if speed else 0)


def test_it_looks_closely_only_when_commands_are_late() -> None:
    guard = guard_of(Repeated(state(7 * 10**9)), Commands())
    guard.handover.times = HandoverTimes.of_sentinel()
    at_4_kHz, at_250_Hz, late, stopped = (guard._look_after(s) for s in (0.00025, 0.004, 0.01, 1.0))
    assert at_4_kHz == at_250_Hz == stopped < guard.handover.times.awake
    assert late < 0.001 < at_250_Hz
    guard.handover.stop("")
    assert guard._look_after(0.01) > at_250_Hz


def test_what_came_while_it_guarded_is_not_counted_when_it_takes_the_arm() -> None:
    with ros(62):
        node = rclpy.create_node("states")
        publisher = node.create_publisher(JointState, "joint_states", 1)
        beside = Float64MultiArray, "commands", NEWEST
        heard = RawSubscription(node, JointState, "joint_states", NEWEST, beside)
        guard = guard_of(heard, Commands())
        wait_for(publisher.get_subscription_count)
        sent = 0

        def send() -> bool:
            nonlocal sent
            for _ in range(10):
                publisher.publish(state(7 * 10**9 + sent))
                sent += 1
            return sent > 500

        run(guard, send)
        value = ctypes.c_int()
        where = ctypes.c_void_p(int(heard.table.array[SEMAPHORE]))
        ctypes.CDLL(None).sem_getvalue(where, ctypes.byref(value))
        heard.destroy()
    assert value.value < 50


def test_empty_robot_description_is_ignored_in_these_words() -> None:
    """It stood for the parameter's, of which the message then spoke."""
    with ros(62):
        node, executor = SentinelNode(), SingleThreadedExecutor()
        executor.add_node(node)
        publisher = node.create_publisher(String, "robot_description", LATCHED)
        publisher.publish(String())
        try:
            wait_for(lambda: node.failures, lambda: executor.spin_once(timeout_sec=0.02))
            ((_, words),) = node.new_failures()
            assert words == "an empty message on the topic robot_description is ignored"
            assert node.guard is None and node.fault == WAITING
        finally:
            executor.shutdown()
            node.destroy_node()


# Commands.

LIMIT = np.array([10.0, 20.0])
TIMEOUT = 0.015


def message(*torques: float) -> bytes:
    encoder = Float64MultiArrayEncoder(len(torques))
    encoder.values[:] = torques
    return encoder.encode()


@pytest.fixture
def watch() -> CommandWatch:
    return CommandWatch(("a", "b"), LIMIT)


def test_own_command_comes_back_once(watch: CommandWatch) -> None:
    watch.sent(message(1.0, 2.0), 0.0)
    watch.sent(message(1.0, 2.0), 0.001)
    assert watch.is_own(message(1.0, 2.0), None, 0.01)
    assert watch.is_own(message(1.0, 2.0), None, 0.01)
    assert not watch.is_own(message(1.0, 2.0), None, 0.01)
    watch.sent(message(1.0, 2.0), 0.02)
    assert not watch.is_own(message(1.0, 2.0), None, 0.13)


@pytest.mark.parametrize(
    ("torques", "words"),
    [
        ((20.2, 0.0), "a command has 20.2 for a, whose effort limit is 10"),
        ((10.2, 0.0), ""),
        ((0.0, math.inf), "number 1 is inf"),
        ((1.0,), "has 1 numbers; it must have 2"),
        ((1.0, 2.0, 3.0), "has 3 numbers; it must have 2"),
    ],
)
def test_absurd_commands(watch: CommandWatch, torques: tuple[float, ...], words: str) -> None:
    found = watch.fault(message(*torques), 0.0, 0.0, 9, 0.0, TIMEOUT)
    assert words in found and bool(words) == bool(found)


def test_command_just_beyond_the_limit_is_wrong_when_it_lasts(watch: CommandWatch) -> None:
    """The limit may just have been lowered, or raised and the sentinel not told yet."""
    assert watch.fault(message(5.0, 0.0), 0.0, 0.0, 9, 0.0, TIMEOUT) == ""
    assert watch.fault(message(10.2, 0.0), 0.4, 0.4, 9, 0.0, TIMEOUT) == ""
    assert watch.fault(message(10.05, -20.15), 0.5, 0.5, 9, 0.0, TIMEOUT) == ""  # rounding
    assert watch.fault(message(10.2, 0.0), 0.9, 0.9, 9, 0.0, TIMEOUT) == ""
    assert "a command has 10.2 for a" in watch.fault(message(10.2, 0.0), 1.1, 1.1, 9, 0.0, TIMEOUT)
    watch.effort_limit = np.array([11.0, 20.0])
    assert watch.fault(message(10.2, 0.0), 1.2, 1.2, 9, 0.0, TIMEOUT) == ""


@pytest.mark.parametrize(
    ("speed", "rate", "torques", "found"),
    [
        (0.06, 1.0, (1.0, 2.0), 15),
        (0.04, 1.0, (1.0, 2.0), -1),
        (1.0, 0.0, (1.0, 2.0), -1),
        (1.0, 1.0, (10.0, -20.0), -1),
    ],
    ids=["moving", "at rest", "paused", "saturated"],
)
def test_frozen_command(watch: CommandWatch, speed, rate, torques, found: int) -> None:
    times = ((1e-3 * i, 1e-3 * rate * i, i) for i in range(100))
    faults = (watch.fault(message(*torques), *t, speed, TIMEOUT) for t in times)
    first = next((i for i, fault in enumerate(faults) if fault), -1)
    assert first == pytest.approx(found, abs=1 if found > 0 else 0)


@pytest.mark.parametrize("silent", [0.0, 0.5], ids=["repeated", "silent"])
def test_what_was_the_same_while_no_states_came_is_not_frozen(watch: CommandWatch, silent) -> None:
    """A controller brakes by its model, repeats the last torque, and then keeps silent; one more
    such command may come when states are back, and the arm still moves."""
    for i in range(200):
        now = 1e-3 * i
        assert watch.fault(message(1.0, 2.0), now, 0.0, 5, 1.0, TIMEOUT) == ""
    now += silent
    for i in range(1, 5):
        assert watch.fault(message(1.0, 2.0), now + 1e-3 * i, now, 5 + i, 1.0, TIMEOUT) == ""
    # But if it goes on, it is.
    times = ((now + 1e-3 * i, now + 1e-3 * i, 5 + i) for i in range(5, 40))
    assert any(watch.fault(message(1.0, 2.0), *t, 1.0, TIMEOUT) for t in times)
