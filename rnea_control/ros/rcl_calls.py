"""Calls of rcl by address, for machine code and for data that rclpy does not hand on.

No other file knows how.

rclpy gives a message's bytes and its publisher's count of it, but not its publisher. rcl has both
in the message's information. Two layouts are assumed, unchanged since Humble:

- of rcl_serialized_message_t;
- of rmw_message_info_t: the time of receipt at byte 8, the count at byte 16, the GID of the
  publisher from byte 40 on.

A thread that waits for messages waits for a semaphore, which the middleware raises as they come.
rcl's own wait gathers all subscriptions anew each time, and has to look at each of them afterwards.
`takes_like_rclpy` proves all this in the process that uses it. If it finds a difference, or rclpy
has no addresses, an executor takes the messages, without their publishers.

With Cyclone DDS a message has no count, and its GID differs from the graph's GID of that publisher
(`Proof.APART`).
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

# Words of an rcl_serialized_message_t.
_BUFFER = 0  # address of the data
_LENGTH = 1  # size of the data [bytes]
_CAPACITY = 2  # size of the buffer [bytes]
_MESSAGE_WORDS = 8  # room for the structure
# Words of an rmw_message_info_t.
_RECEIVED = 1  # when the middleware has received the message [ns]
_COUNT = 2  # the publisher's count of the message
_GID = 5  # first word of the publisher's GID
_INFO_WORDS = 64  # room for the structure, which has 9 to 12 words
GID_SIZE = 16  # bytes that identify a publisher; some distributions have more, which are zero
PARTICIPANT_SIZE = 12  # leading bytes of a GID that all publishers of one participant share
_GID_WORDS = 8  # room for an rmw_gid_t: an address, then the GID
# Initial room for a message [bytes]; rcl makes more where it is needed.
_ROOM = 4096
# Longest wait of the proof for its own message [s].
_LONGEST_PROOF = 1.0

# Entries of the array of a `RclTable`. First the addresses of functions.
WAIT = 0  # sem_clockwait
TRY = 1  # sem_trywait
TAKE = 2  # rcl_take_serialized_message
PUBLISH = 3  # rcl_publish_serialized_message
TRIGGER = 4  # rcl_trigger_guard_condition
CLOCK = 5  # clock_gettime
# Addresses of the functions' arguments, and the number of subscriptions.
SEMAPHORE = 6
PUBLISHER = 7
GUARD = 8
HERE = 9  # address of the array itself
COUNT = 10  # number of subscriptions
SUBSCRIPTIONS = 11  # first subscription
MOST_SUBSCRIPTIONS = 17  # room for subscriptions
# Memory that the functions read and write.
TIME = SUBSCRIPTIONS + MOST_SUBSCRIPTIONS  # a timespec
COMMAND = TIME + 2  # the command
MESSAGES = COMMAND + _MESSAGE_WORDS  # the messages that were taken
BESIDE = 2  # message for all but states; machine code takes states into messages 0 and 1 in turn
_MESSAGES = 3  # number of messages
INFO = MESSAGES + _MESSAGES * _MESSAGE_WORDS  # information of the message taken last
TABLE = INFO + _INFO_WORDS  # size of the array
# Results of rcl's functions.
OK = 0
TAKE_FAILED = 401  # no message waits
# Clocks of clock_gettime.
_MONOTONIC = 1
_REALTIME = 0
_SECOND = 1_000_000_000  # [ns]
_SEMAPHORE_WORDS = 4  # room for a sem_t
_KEPT: list[IntArray] = []  # semaphores, never freed: the middleware may still raise them


class RclUnavailable(Exception):
    """Calls of rcl by address are not proven to do here what rclpy does."""


class Taken(NamedTuple):
    """A message as it came.

    Attributes:
        data: serialized message.
        count: the publisher's count of the message; None where the middleware has none.
        publisher: GID of the publisher; None where it is not known.
    """

    data: bytes
    count: int | None = None
    publisher: bytes | None = None


class Proof(IntEnum):
    """Proven results of calls of rcl by address in this process:

    - NOTHING: none.
    - APART: rcl takes messages as rclpy does, and distinguishes their publishers.
    - BY_GID: in addition, messages carry the GIDs of the graph, which begin alike for all
      publishers of one participant.
    """

    NOTHING = 0
    APART = 1
    BY_GID = 2


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
    """Addresses of objects that rclpy then keeps alive until `pins` is closed, even if they are
    destroyed."""
    try:
        pointers = [int(each.handle.pointer) for each in used]
    except (AttributeError, TypeError, ValueError) as error:
        raise RclUnavailable(str(error)) from error
    for each in used:
        pins.enter_context(each.handle)
    return pointers


def own_gid(publisher: Publisher) -> bytes | None:
    """The GID in the messages of a publisher of this process; None where rmw does not give it."""
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
    """The error of the last call of rcl in this thread; clears it in rcl.

    Args:
        status: result of the call.
    """
    rcl, _, _ = _libraries()
    text = rcl.rcutils_get_error_string().text.decode(errors="replace")
    rcl.rcutils_reset_error()
    return RCLError(f"rcl answers {status}: {text}")


class RclTable:
    """Addresses and memory for waiting for messages of some subscriptions, taking them and
    publishing. For use by one thread.

    Args:
        subscriptions: the subscriptions; until `destroy`, no other code may take their messages or
            set their callbacks for new messages.
        wake: guard condition that the middleware triggers at each message, in place of the
            semaphore that `wait` waits for.

    Attributes:
        array: entries for machine code.

    Raises:
        RclUnavailable: this rclpy has no addresses, its middleware has no callback for new
            messages, or rcl allocates no message.
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
        """Gives machine code the publisher, its command and a guard condition.

        Args:
            publisher: publisher of the commands.
            command: memory of the serialized message, published with its content at that time.
            guard: guard condition that machine code may trigger.

        Raises:
            RclUnavailable: this rclpy has no addresses.
        """
        self._command = np.frombuffer(command, np.uint8)
        self.array[COMMAND + _BUFFER] = self._command.ctypes.data
        self.array[[COMMAND + _LENGTH, COMMAND + _CAPACITY]] = self._command.size
        self.array[PUBLISHER], self.array[GUARD] = _pinned(self._undo, (publisher, guard))

    def wait(self, timeout: float) -> bool:
        """True if a message has come since the last wait, or comes within `timeout` [s]. Other
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

    @property
    def received(self) -> int:
        """When the middleware has received the message that was taken last, by the system clock,
        [ns]; 0 where it does not say."""
        return max(int(self.array[INFO + _RECEIVED]), 0)

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
    """Number of messages that have come since the last call, of all subscriptions together; at
    times one more, which was taken already. Waits up to `timeout` [ns] for the first message."""
    if call_c(calls[TRY], (calls[SEMAPHORE],)) != 0:
        if timeout <= 0:
            return 0
        deadline = _time_of(calls, _MONOTONIC) + timeout
        calls[TIME], calls[TIME + 1] = deadline // _SECOND, deadline % _SECOND
        if call_c(calls[WAIT], (calls[SEMAPHORE], _MONOTONIC, _at(calls, TIME))) != 0:
            return 0
    count = 1
    while count < 1000 and call_c(calls[TRY], (calls[SEMAPHORE],)) == 0:
        count += 1  # after hours without a wait, the next call counts the rest
    return count


@inlined
def take(calls: IntArray, subscription: int, message: int) -> int:
    """Takes a subscription's next message into a message of the array; returns rcl's result."""
    of_subscription, into = calls[SUBSCRIPTIONS + subscription], MESSAGES + message * _MESSAGE_WORDS
    return call_c(calls[TAKE], (of_subscription, _at(calls, into), _at(calls, INFO), 0))


@inlined
def count_of(calls: IntArray) -> int:
    """The publisher's count of the message that was taken last; -1 without one."""
    return calls[INFO + _COUNT]


@inlined
def gid_of(calls: IntArray) -> tuple[int, int]:
    """The GID of the publisher of the message that was taken last, in two words."""
    return calls[INFO + _GID], calls[INFO + _GID + 1]


@inlined
def read(calls: IntArray, message: int, into: ByteArray) -> int:
    """Copies a message that was taken, if it fits into the array; returns its size [bytes]."""
    start = MESSAGES + message * _MESSAGE_WORDS
    size = calls[start + _LENGTH]
    if size <= into.shape[0]:
        copy_bytes(calls[start + _BUFFER], size, into)
    return size


@inlined
def publish(calls: IntArray) -> int:
    """Publishes the command with its present content; returns rcl's result."""
    return call_c(calls[PUBLISH], (calls[PUBLISHER], _at(calls, COMMAND), 0))


@inlined
def trigger(calls: IntArray) -> None:
    """Triggers the guard condition."""
    call_c(calls[TRIGGER], (calls[GUARD],))


_arrived = kernel("i8(i8[::1], i8)", nogil=True)(arrived)
_take = kernel("i8(i8[::1], i8, i8)", nogil=True)(take)


@kernel("i8(i8[::1], i8, u1[::1], i8[::1])", nogil=True)
def _echo(calls: IntArray, timeout: int, data: ByteArray, found: IntArray) -> int:
    """Publishes, waits and takes; returns the message's size, -1 if rcl does not do as expected."""
    arrived(calls, 0)  # resets the count of messages that were taken before
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
    """Proves, by messages of the process to itself, that rcl by address takes messages as rclpy
    does, with their publishers.

    Args:
        domain: ROS domain of the trial.
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
        # The command of machine code arrives in rclpy and in machine code, as the next message.
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
