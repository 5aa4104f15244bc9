"""Where the evidence comes from: joint_states, services of other nodes, and this computer.

States are recorded with the times at which they came, in a thread of its own. Nobody waits for
the answer of a service: it is looked at now and then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from sensor_msgs.msg import JointState

from rnea_control.commands.evidence import Machine, State
from rnea_control.ros.fast_dds import fast_dds
from rnea_control.ros.rclpy_internals import SubscriptionWaitSet, WaitSetUnavailable
from rnea_control.ros.real_time import is_real_time_kernel, largest_priority, may_lock_memory

# BEST_EFFORT takes from every publisher. None may be lost while Python is busy.
STATES = QoSProfile(depth=200, reliability=ReliabilityPolicy.BEST_EFFORT)
# How long the thread waits before it looks whether it shall end, [s].
LONGEST_WAIT = 0.1

CGROUPS, OWN_CGROUP, PROCESSES = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"), Path("/proc")
MANAGER = "ros2_control_node"


class StateRecorder:
    """Takes the states as bytes; reads them only at the end.

    Args:
        node: for the subscription alone; no executor may spin it, unless `needs_executor`.
        topic: of the states.
        simulated_time: gives the last time on /clock, [ns]; None without one.

    Attributes:
        needs_executor: whether this rclpy has no wait set, so that an executor must spin the node.
    """

    def __init__(self, node: Node, topic: str, simulated_time: Callable[[], int | None]) -> None:
        self._simulated_time = simulated_time
        self._arrivals: list[tuple[float, int, int | None, bytes]] = []
        self._stopping = threading.Event()
        subscription = node.create_subscription(JointState, topic, self._keep, STATES, raw=True)
        try:
            self._wait_set = SubscriptionWaitSet(node.context, subscription)
        except WaitSetUnavailable:
            self.needs_executor = True
            return
        self.needs_executor = False
        self._thread = threading.Thread(target=self._record, name="state recorder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the recording."""
        self._stopping.set()
        if not self.needs_executor:
            self._thread.join()

    def states(self) -> tuple[State, ...]:
        """What was recorded, in the order that it came; to be called after `stop`."""
        return tuple(_state(*arrival) for arrival in self._arrivals)

    def _record(self) -> None:
        while not self._stopping.is_set():
            self._wait_set.wait(LONGEST_WAIT)
            while (taken := self._wait_set.take(0)) is not None:
                self._keep(taken[0])

    def _keep(self, message: bytes) -> None:
        now = time.monotonic(), time.time_ns(), self._simulated_time()
        self._arrivals.append((*now, message))


def _state(received: float, clock: int, simulated: int | None, content: bytes) -> State:
    message = deserialize_message(content, JointState)
    values = (message.name, message.position, message.velocity, message.effort)
    stamp = message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec
    return State(received, clock, simulated, stamp, *map(tuple, values))


class Question:
    """One request, sent as soon as the service is there.

    Args:
        node: that asks; its executor takes the answer.
        service_type: of the service.
        service: its name.
        request: what is asked.
    """

    def __init__(self, node: Node, service_type: Any, service: str, request: Any) -> None:
        self._client = node.create_client(service_type, service)
        self._request = request
        self._future: Future | None = None

    def answer(self) -> Any:
        """The response; None while there is none."""
        if self._future is None and self._client.service_is_ready():
            self._future = self._client.call_async(self._request)
        if self._future is None or not self._future.done():
            return None
        return self._future.result()


class ParameterQuestion:
    """Asks a node for all of its parameters.

    Args:
        node: that asks.
        other: full name of the node that is asked.
    """

    def __init__(self, node: Node, other: str) -> None:
        self._node = node
        self._other = other
        self._names = Question(
            node, ListParameters, f"{other}/list_parameters", ListParameters.Request()
        )
        self._values: Question | None = None
        self._asked: list[str] = []

    def answer(self) -> dict[str, Any] | None:
        """The values by full name, None for those that are not set; None while there are none."""
        if self._values is None:
            names = self._names.answer()
            if names is None:
                return None
            self._asked = list(names.result.names)
            request = GetParameters.Request(names=self._asked)
            self._values = Question(
                self._node, GetParameters, f"{self._other}/get_parameters", request
            )
        values = self._values.answer()
        if values is None:
            return None
        plain = map(parameter_value_to_python, values.values)
        return dict(zip(self._asked, plain, strict=False))


def machine() -> Machine:
    """This computer as this process finds it."""
    return Machine(
        largest_priority(),
        may_lock_memory(),
        is_real_time_kernel(),
        cpu_quota(),
        priorities_of(MANAGER),
        fast_dds(),
    )


def priorities_of(executable: str, root: Path = PROCESSES) -> tuple[tuple[int, ...], ...]:
    """For each process that runs a program the real-time priorities of its threads.

    Args:
        executable: the program's file name.
        root: where the processes are listed.
    """
    found = []
    for process in root.glob("[0-9]*"):
        program = (_text(process / "cmdline") or "").partition("\0")[0]
        if program.rpartition("/")[2] == executable:
            texts = [_text(thread) for thread in process.glob("task/*/stat")]
            # The name, in parentheses, may have blanks; the 38th value after it.
            fields = [text.rpartition(")")[2].split() for text in texts if text]
            found.append(tuple(int(values[37]) for values in fields))
    return tuple(found)


def cpu_quota(own: Path = OWN_CGROUP, root: Path = CGROUPS) -> float | None:
    """How many CPUs this process's cgroup may use, and those that it is in; None without a bound.

    Args:
        own: the file that names the cgroup, of version 2.
        root: where the cgroups are mounted.
    """
    lines = [line for line in (_text(own) or "").splitlines() if line.startswith("0::")]
    group = root / (lines[0].removeprefix("0::").strip("/") if lines else "")
    quotas = []
    for folder in (group, *group.parents):
        if folder == root.parent:
            break
        quota, _, period = (_text(folder / "cpu.max") or "max").partition(" ")
        if quota.strip() != "max":
            quotas.append(float(quota) / float(period))
    return min(quotas, default=None)


def _text(path: Path) -> str | None:
    """The content of a file; None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
