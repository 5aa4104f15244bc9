"""Calls of rcl by address, for machine code and for what rclpy does not hand on.

No other file knows how.

rclpy gives a message's bytes and its publisher's count of it, not who that was. rcl has both in the
message's information. Two layouts are assumed, the same from Humble on: that of
rcl_serialized_message_t, and that an rmw_message_info_t has the count at byte 16 and the GID of the
publisher from byte 40 on. Who waits for messages waits for a semaphore, which the middleware raises
as they come: rcl's own wait gathers all subscriptions anew each time, and has to look at each of
them afterwards. `takes_like_rclpy` proves all this in the process that uses it: where it finds a
difference, or rclpy has no addresses, an executor takes messages, which tell no publisher.

With Cyclone DDS a message counts nothing, and its GID is another than the graph has for that
publisher (`Proof.APART`).
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from contextlib import ExitStack
from enum import IntEnum
from functools import cache, partial
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from rclpy.context import Context
from rclpy.guard_condition import GuardCondition
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from rclpy.subscription import Subscription
from std_msgs.msg import UInt64

from rnea_control.array_types import ByteArray, IntArray
from rnea_control.jit.inlining import inlined
from rnea_control.jit.kernel import kernel
from rnea_control.jit.linking import c_address, call_c, copy_bytes
from rnea_control.ros.conventions import HELPER
from rnea_control.ros.rclpy_internals import LIBRARY, RCLError, publisher_count

# Words of an rcl_serialized_message_t, and of an rmw_message_info_t.
_BUFFER, _LENGTH, _CAPACITY, _MESSAGE_WORDS = 0, 1, 2, 8
_COUNT, _GID, _INFO_WORDS = 2, 5, 64  # it has 9 to 12
GID_SIZE = 16  # bytes that tell publishers apart; some distributions have more, which are zero
PARTICIPANT_SIZE = 12  # of these, bytes that all publishers of one participant have
_GID_WORDS = 8  # room for an rmw_gid_t: an address, then the GID
# Room for a message at first; rcl makes more where it is needed.
_ROOM = 4096
# How long the proof waits for its own message, [s].
_LONGEST_PROOF = 1.0

# The entries of the array of a `RclTable`: addresses of functions, of their arguments, and of the
# array itself; how many subscriptions there are; then what functions read and write: a timespec,
# the command, the messages that were taken, and what tells of the last one.
WAIT, TRY, TAKE, PUBLISH, TRIGGER, CLOCK = range(6)
SEMAPHORE, PUBLISHER, GUARD, HERE, COUNT, SUBSCRIPTIONS = range(6, 12)
MOST_SUBSCRIPTIONS = 6
TIME = SUBSCRIPTIONS + MOST_SUBSCRIPTIONS
COMMAND = TIME + 2
MESSAGES = COMMAND + _MESSAGE_WORDS
# Machine code takes states into the first two messages in turn; all else goes to the last one.
BESIDE, _MESSAGES = 2, 3
INFO = MESSAGES + _MESSAGES * _MESSAGE_WORDS
TABLE = INFO + _INFO_WORDS
# What rcl answers.
OK, TAKE_FAILED = 0, 401
_MONOTONIC, _REALTIME = 1, 0
_SECOND = 1_000_000_000  # [ns]
_SEMAPHORE_WORDS = 4  # of a sem_t
_KEPT: list[IntArray] = []  # semaphores: the middleware may raise one that nobody has ended


class RclUnavailable(Exception):
    """Calls of rcl by address are not proven to do here what rclpy does."""


class Taken(NamedTuple):
    """A message as it came.

    Attributes:
        data: its bytes.
        count: its publisher's count of it; None where the middleware has none.
        publisher: the GID of that; None where it is not known.
    """

    data: bytes
    count: int | None = None
    publisher: bytes | None = None


class Proof(IntEnum):
    """What rcl does by address in this process: nothing that is proven; it takes messages as rclpy
    does, and tells their publishers apart; and tells them by the GIDs that the graph has, of which
    those of one participant begin alike."""

    NOTHING, APART, BY_GID = range(3)


class _ErrorText(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 1024)]


class _Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("a", "d", "r", "z", "s")]


@cache
def _libraries() -> tuple[ctypes.CDLL, ctypes.CDLL, list[int]]:
    """rcl and what it is linked to; the C library; the addresses of the functions in the array of a
    `RclTable`.

    Raises:
        RclUnavailable: not all functions are there.
    """
    try:
        rcl, libc = ctypes.CDLL(LIBRARY), ctypes.CDLL(None)
        called = (
            libc.sem_clockwait,
            libc.sem_trywait,
            rcl.rcl_take_serialized_message,
            rcl.rcl_publish_serialized_message,
            rcl.rcl_trigger_guard_condition,
            libc.clock_gettime,
        )
        for function, arguments in (
            (rcl.rcl_subscription_set_on_new_message_callback, 3),
            (rcl.rcutils_uint8_array_init, 3),
            (rcl.rcutils_uint8_array_fini, 1),
            (libc.sem_init, 3),
            (rcl.rcl_publisher_get_rmw_handle, 1),
            (rcl.rmw_get_gid_for_publisher, 2),
        ):
            function.argtypes = [ctypes.c_void_p] * arguments
        rcl.rcl_publisher_get_rmw_handle.restype = ctypes.c_void_p
        rcl.rcutils_get_default_allocator.restype = _Allocator
        rcl.rcutils_get_error_string.restype = _ErrorText
        rcl.rcutils_reset_error.restype = None
    except (TypeError, OSError, AttributeError) as error:
        raise RclUnavailable(str(error)) from error
    return rcl, libc, [c_address(each) for each in called]


def _pinned(pins: ExitStack, used: Sequence[Any]) -> list[int]:
    """The addresses of what rclpy then keeps, whoever destroys it, until `pins` is closed."""
    try:
        pointers = [int(each.handle.pointer) for each in used]
    except (AttributeError, TypeError, ValueError) as error:
        raise RclUnavailable(str(error)) from error
    for each in used:
        pins.enter_context(each.handle)
    return pointers


def own_gid(publisher: Publisher) -> bytes | None:
    """The GID that the messages of a publisher of this process have; None where rmw does not tell
    it."""
    try:
        rcl, _, _ = _libraries()
        with ExitStack() as pins:
            (pointer,) = _pinned(pins, (publisher,))
            found: IntArray = np.zeros(_GID_WORDS, dtype=np.int64)
            handle = rcl.rcl_publisher_get_rmw_handle(pointer)
            if rcl.rmw_get_gid_for_publisher(handle, found.ctypes.data) != OK:
                return None
    except RclUnavailable:
        return None
    return found[1:].tobytes()[:GID_SIZE]


def last_error(status: int) -> RCLError:
    """The error of the last call of rcl in this thread, which rcl forgets then.

    Args:
        status: what the call has answered.
    """
    rcl, _, _ = _libraries()
    text = rcl.rcutils_get_error_string().text.decode(errors="replace")
    rcl.rcutils_reset_error()
    return RCLError(f"rcl answers {status}: {text}")


class RclTable:
    """What is needed to wait for messages of some subscriptions, to take them and to publish. One
    thread uses it.

    Args:
        subscriptions: those; until `destroy` no one else may take their messages, or be told of
            them.
        wake: a guard condition that the middleware triggers at each message, in place of the
            semaphore that `wait` waits for.

    Attributes:
        array: for machine code.

    Raises:
        RclUnavailable: this rclpy has no addresses, its middleware does not tell of messages, or
            rcl allocates none.
    """

    def __init__(
        self, subscriptions: Sequence[Subscription], wake: GuardCondition | None = None
    ) -> None:
        rcl, libc, functions = _libraries()
        self.array: IntArray = np.zeros(TABLE, dtype=np.int64)
        _KEPT.append(np.zeros(_SEMAPHORE_WORDS, dtype=np.int64))
        semaphore = _KEPT[-1].ctypes.data
        libc.sem_init(semaphore, 0, 0)
        allocator = rcl.rcutils_get_default_allocator()
        tell_of = rcl.rcl_subscription_set_on_new_message_callback
        call, argument = c_address(libc.sem_post), semaphore
        with ExitStack() as undo:
            if wake is not None:
                call = c_address(rcl.rcl_trigger_guard_condition)
                (argument,) = _pinned(undo, (wake,))
            pointers = _pinned(undo, subscriptions)
            for start in range(MESSAGES, INFO, _MESSAGE_WORDS):
                message = self.array[start:].ctypes.data
                if rcl.rcutils_uint8_array_init(message, _ROOM, ctypes.byref(allocator)) != OK:
                    raise RclUnavailable("rcl allocates no message")
                undo.callback(rcl.rcutils_uint8_array_fini, message)
            for each in pointers:
                if tell_of(each, call, argument) != OK:
                    raise RclUnavailable("the middleware has no callback for new messages")
                undo.callback(tell_of, each, None, None)
            self._undo = undo.pop_all()
        self.array[: CLOCK + 1] = functions
        self.array[SEMAPHORE], self.array[HERE] = semaphore, self.array.ctypes.data
        self.array[COUNT] = len(pointers)
        self.array[SUBSCRIPTIONS : SUBSCRIPTIONS + len(pointers)] = pointers

    def publish_by(self, publisher: Publisher, command: memoryview, guard: GuardCondition) -> None:
        """Gives machine code what it publishes.

        Args:
            publisher: of the commands.
            command: the serialized message that is published, as it is then.
            guard: a guard condition that machine code may trigger.

        Raises:
            RclUnavailable: as above.
        """
        self._command = np.frombuffer(command, np.uint8)
        self.array[COMMAND + _BUFFER] = self._command.ctypes.data
        self.array[[COMMAND + _LENGTH, COMMAND + _CAPACITY]] = self._command.size
        self.array[PUBLISHER], self.array[GUARD] = _pinned(self._undo, (publisher, guard))

    def wait(self, timeout: float) -> bool:
        """Whether a message has come since the last wait, or comes within `timeout`, [s]. Other
        Python threads may run meanwhile."""
        return bool(_arrived(self.array, int(1e9 * timeout)))

    def take(self, subscription: int) -> Taken | None:
        """The next message of a subscription; None if none waits. Other Python threads may run
        meanwhile.

        Raises:
            RCLError: rcl does not take it.
        """
        status = _take(self.array, subscription, BESIDE)
        if status == TAKE_FAILED:
            return None
        if status != OK:
            raise last_error(status)
        return self.taken(BESIDE)

    def taken(self, which: int) -> Taken:
        """The message that was taken last."""
        message = self.array[MESSAGES + which * _MESSAGE_WORDS :]
        data = ctypes.string_at(int(message[_BUFFER]), int(message[_LENGTH]))
        info = self.array[INFO:]
        count, gid = int(info[_COUNT]), info[_GID : _GID + 2].tobytes()
        return Taken(data, None if count < 0 else count, gid)

    def destroy(self) -> None:
        """Gives the memory back; nothing uses the addresses any more."""
        self._undo.close()


@inlined
def _at(calls: IntArray, entry: int) -> int:
    """The address of an entry."""
    return calls[HERE] + 8 * entry


@inlined
def _time_of(calls: IntArray, clock: int) -> int:
    """The time of a clock, [ns]."""
    call_c(calls[CLOCK], (clock, _at(calls, TIME)))
    return calls[TIME] * _SECOND + calls[TIME + 1]


@inlined
def monotonic(calls: IntArray) -> float:
    """The steady clock, as Python's `time.monotonic`, [s]."""
    return _time_of(calls, _MONOTONIC) / 1e9


@inlined
def nanoseconds(calls: IntArray) -> int:
    """The system's clock, [ns]."""
    return _time_of(calls, _REALTIME)


@inlined
def arrived(calls: IntArray, timeout: int) -> int:
    """How many messages have come since the last call, of all subscriptions together, at times one
    more that was taken already. Waits for the first one, but no longer than `timeout`, [ns]."""
    if call_c(calls[TRY], (calls[SEMAPHORE],)) != 0:
        if timeout <= 0:
            return 0
        deadline = _time_of(calls, _MONOTONIC) + timeout
        calls[TIME], calls[TIME + 1] = deadline // _SECOND, deadline % _SECOND
        if call_c(calls[WAIT], (calls[SEMAPHORE], _MONOTONIC, _at(calls, TIME))) != 0:
            return 0
    count = 1
    while count < 1000 and call_c(calls[TRY], (calls[SEMAPHORE],)) == 0:
        count += 1  # the rest, where nobody has waited for hours, next time
    return count


@inlined
def take(calls: IntArray, subscription: int, message: int) -> int:
    """Takes into a message what waits for a subscription; what rcl answers."""
    of_subscription, into = calls[SUBSCRIPTIONS + subscription], MESSAGES + message * _MESSAGE_WORDS
    return call_c(calls[TAKE], (of_subscription, _at(calls, into), _at(calls, INFO), 0))


@inlined
def count_of(calls: IntArray) -> int:
    """Its publisher's count of the message that was taken last; -1 without one."""
    return calls[INFO + _COUNT]


@inlined
def gid_of(calls: IntArray) -> tuple[int, int]:
    """The GID of the publisher of the message that was taken last, in two words."""
    return calls[INFO + _GID], calls[INFO + _GID + 1]


@inlined
def read(calls: IntArray, message: int, into: ByteArray) -> int:
    """Copies a message that was taken; returns its size, and copies nothing if that is more than
    there is room for."""
    start = MESSAGES + message * _MESSAGE_WORDS
    size = calls[start + _LENGTH]
    if size <= into.shape[0]:
        copy_bytes(calls[start + _BUFFER], size, into)
    return size


@inlined
def publish(calls: IntArray) -> int:
    """Publishes the command as it is now; what rcl answers."""
    return call_c(calls[PUBLISH], (calls[PUBLISHER], _at(calls, COMMAND), 0))


@inlined
def trigger(calls: IntArray) -> None:
    """Triggers the guard condition."""
    call_c(calls[TRIGGER], (calls[GUARD],))


_arrived = kernel("i8(i8[::1], i8)", nogil=True)(arrived)
_take = kernel("i8(i8[::1], i8, i8)", nogil=True)(take)


@kernel("i8(i8[::1], i8, u1[::1], i8[::1])", nogil=True)
def _echo(calls: IntArray, timeout: int, data: ByteArray, found: IntArray) -> int:
    """Publishes, waits and takes; the size of what came, -1 if rcl does not do as expected."""
    arrived(calls, 0)  # of what was taken before
    answer = take(calls, 0, 0)
    if answer != TAKE_FAILED or publish(calls) != OK:
        return -1
    while answer == TAKE_FAILED and arrived(calls, timeout) > 0:
        answer = take(calls, 0, 0)
    if answer != OK:
        return -1
    trigger(calls)
    found[0] = count_of(calls)
    found[1], found[2] = gid_of(calls)
    return read(calls, 0, data)


@cache
def takes_like_rclpy(domain: int) -> Proof:
    """Whether a message to oneself comes as rclpy takes it, from the publisher that sent it.

    Args:
        domain: in which it is tried.
    """
    context = Context()
    context.init(domain_id=domain)
    node = Node("_proof", context=context, **HELPER)
    try:
        return _proven(node)
    except RclUnavailable:
        return Proof.NOTHING
    finally:
        node.destroy_node()
        context.try_shutdown()


def _proven(node: Node) -> Proof:
    qos, topic = QoSProfile(depth=1), f"_proof_{uuid4().hex}"
    publisher, other = (node.create_publisher(UInt64, topic, qos) for _ in range(2))
    by_rclpy, ours = (
        node.create_subscription(UInt64, topic, print, qos, raw=True) for _ in range(2)
    )
    message = bytearray(serialize_message(UInt64(data=3)))
    guard = node.create_guard_condition(print)
    table = RclTable([ours])
    table.publish_by(publisher, memoryview(message), guard)
    matched = [each.get_subscription_count for each in (publisher, other)]
    matched += [partial(publisher_count, node, each) for each in (ours, by_rclpy)]
    try:
        deadline = time.monotonic() + _LONGEST_PROOF
        while any(count() < 2 for count in matched) and time.monotonic() < deadline:
            time.sleep(0.001)
        publishers = []
        for number, sender in enumerate((other, publisher, publisher)):  # the last counts 2
            sender.publish(UInt64(data=number))
            deadline, expected, taken = time.monotonic() + _LONGEST_PROOF, None, None
            while expected is None or taken is None:
                if time.monotonic() > deadline:
                    return Proof.NOTHING
                time.sleep(0.001)
                expected = expected or by_rclpy.handle.take_message(UInt64, True)
                taken = taken or table.take(0)
            data, info = expected
            count = info.get("publication_sequence_number", taken.count)  # Humble's tells none
            sent = serialize_message(UInt64(data=number))
            if not data == taken.data == sent or count != taken.count:
                return Proof.NOTHING
            publishers.append(taken.publisher)
        strangers, *own = publishers
        # What machine code publishes comes to rclpy and to machine code, as the next message.
        read_data, found = np.zeros(_ROOM, dtype=np.uint8), np.zeros(3, dtype=np.int64)
        size = _echo(table.array, round(1e9 * _LONGEST_PROOF), read_data, found)
        echoed = by_rclpy.handle.take_message(UInt64, True)
        if echoed is None or not read_data[:size].tobytes() == message == echoed[0]:
            return Proof.NOTHING
        next_count = -1 if count is None else count + 1
        if found[0] != next_count or {found[1:].tobytes(), *own} != {own[0]} or own[0] == strangers:
            return Proof.NOTHING
        gids = {
            bytes(info.endpoint_gid[:GID_SIZE]) for info in node.get_publishers_info_by_topic(topic)
        }
        shared = own[0][:PARTICIPANT_SIZE] == strangers[:PARTICIPANT_SIZE]
        as_told = gids == {own[0], strangers} and own_gid(publisher) == own[0]
        return Proof.BY_GID if shared and as_told else Proof.APART
    finally:
        table.destroy()
