"""Calls of rcl by address, for what rclpy does not hand on; no other file knows how.

rclpy gives a message's bytes and its publisher's count of it, not who that was. rcl has both in the
message's information. Two layouts are assumed, the same from Humble on: that of
rcl_serialized_message_t, and that an rmw_message_info_t has the count at byte 16 and the GID of the
publisher from byte 40 on. `takes_like_rclpy` proves them in the process that uses them: where it
finds a difference, or rclpy has no addresses, messages are taken by rclpy, and tell no publisher.
"""

from __future__ import annotations

import ctypes
import time
from functools import cache
from typing import Any, NamedTuple
from uuid import uuid4

from rclpy.context import Context
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from rclpy.subscription import Subscription
from std_msgs.msg import UInt64

from rnea_control.ros.rclpy_internals import LIBRARY, RCLError

_OK, _TAKE_FAILED = 0, 401
_BUFFER, _LENGTH = 0, 1  # words of an rcl_serialized_message_t
_MESSAGE_WORDS = 8
_COUNT = 2  # word of an rmw_message_info_t
GID_SIZE = 16  # bytes that tell publishers apart; some distributions have more, which are zero
_GID = slice(40, 40 + GID_SIZE)
_INFO_WORDS = 64  # it has 9 to 12
_NOT_COUNTED = 2**64 - 1
# Room for a message at first; rcl makes more where it is needed.
_ROOM = 4096
# How long the proof waits for its own message, [s].
_LONGEST_PROOF = 1.0


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


class _Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("a", "d", "r", "z", "s")]


@cache
def _functions() -> tuple[Any, Any, Any]:
    """Take, and the end and the beginning of a serialised message.

    Raises:
        RclUnavailable: they are not among what this rclpy is linked to.
    """
    try:
        rcl = ctypes.CDLL(LIBRARY)
        take = rcl.rcl_take_serialized_message
        begin, end = rcl.rcutils_uint8_array_init, rcl.rcutils_uint8_array_fini
        allocator = rcl.rcutils_get_default_allocator
    except (TypeError, OSError, AttributeError) as error:
        raise RclUnavailable(str(error)) from error
    allocator.restype = _Allocator
    take.argtypes = [ctypes.c_void_p] * 4
    begin.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    end.argtypes = [ctypes.c_void_p]
    default = allocator()
    return take, end, lambda message: begin(message, _ROOM, ctypes.byref(default))


class RclSubscription:
    """Takes the messages of one of rclpy's subscriptions; one thread uses it.

    Other Python threads may run while a message is copied.

    Raises:
        RclUnavailable: this rclpy has no addresses.
    """

    def __init__(self, subscription: Subscription) -> None:
        self._take, self._end, begin = _functions()
        self._message = (ctypes.c_uint64 * _MESSAGE_WORDS)()
        self._info = (ctypes.c_uint64 * _INFO_WORDS)()
        self._bytes = memoryview(self._info).cast("B")
        self._handle = subscription.handle  # stays as long as its address is used
        try:
            self._address = int(self._handle.pointer)
        except (AttributeError, TypeError, ValueError) as error:
            raise RclUnavailable(str(error)) from error
        if begin(self._message) != _OK:
            raise RclUnavailable("rcl allocates no message")

    def take(self) -> Taken | None:
        """The next message; None if none waits.

        Raises:
            RCLError: rcl does not take it.
        """
        status = self._take(self._address, self._message, self._info, None)
        if status == _TAKE_FAILED:
            return None
        if status != _OK:
            raise RCLError(f"rcl_take_serialized_message answers {status}")
        message, count = self._message, self._info[_COUNT]
        return Taken(
            ctypes.string_at(message[_BUFFER], message[_LENGTH]),
            None if count == _NOT_COUNTED else count,
            bytes(self._bytes[_GID]),
        )

    def destroy(self) -> None:
        """Gives the memory back; it takes nothing any more."""
        self._end(self._message)


@cache
def takes_like_rclpy(domain: int) -> bool:
    """Whether a message to oneself comes as rclpy takes it, from the publisher that sent it.

    Args:
        domain: in which it is tried.
    """
    context = Context()
    context.init(domain_id=domain)
    node = Node(
        "_proof",
        context=context,
        use_global_arguments=False,
        enable_rosout=False,
        start_parameter_services=False,
    )
    try:
        return _proven(node)
    except RclUnavailable:
        return False
    finally:
        node.destroy_node()
        context.try_shutdown()


def _proven(node: Node) -> bool:
    qos, topic = QoSProfile(depth=1), f"_proof_{uuid4().hex}"
    publisher = node.create_publisher(UInt64, topic, qos)
    by_rclpy, ours = (
        node.create_subscription(UInt64, topic, print, qos, raw=True) for _ in range(2)
    )
    by_address = RclSubscription(ours)
    deadline = time.monotonic() + _LONGEST_PROOF
    expected: Any = None
    taken: Taken | None = None
    number = 0
    while (expected is None or taken is None) and time.monotonic() < deadline:
        if publisher.get_subscription_count() == 2 and number < 2:
            number += 1  # the second one, so that the count is not 0 or 1
            publisher.publish(UInt64(data=number))
            expected = taken = None
        time.sleep(0.001)
        if number == 2:
            expected = expected or by_rclpy.handle.take_message(UInt64, True)
            taken = taken or by_address.take()
    by_address.destroy()
    if expected is None or taken is None:
        return False
    (data, info), (own,) = expected, node.get_publishers_info_by_topic(topic)
    count = info.get("publication_sequence_number")
    right = data == taken.data == serialize_message(UInt64(data=number)) and count == taken.count
    return right and bytes(own.endpoint_gid[:GID_SIZE]) == taken.publisher
