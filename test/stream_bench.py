"""A node that gets streams of targets over DDS, for the tests of both kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
from dds import JOINTS, ros, trajectory, wait_for
from node_bench import GOOD, Bench
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from rnea_control.control.stream_intake import StreamIntake
from rnea_control.ros import raw_subscription
from rnea_control.ros.conventions import NEWEST
from rnea_control.ros.rcl_calls import Proof

STATES = 20  # states from one target to the next, 1 ms apart
TIMEOUT = 0.1  # stream.target_timeout [s]
# What becomes of a message.
TAKEN, IGNORED, FOREIGN = (1, 0, 0), (0, 1, 0), (0, 0, 1)


class StreamBench(Bench):
    """A node in simulated time, so that a slow machine makes no target late; the arm measures what
    is desired."""

    def __init__(self, **parameters: object) -> None:
        super().__init__(start=False, use_sim_time=True, **(parameters or GOOD))
        clock = self.peer.create_publisher(Clock, "/clock", 1)
        self.node.autostart()
        assert self.node.active, self.node.fault
        self.await_matches()
        wait_for(clock.get_subscription_count, self.spin)
        message = Clock()
        message.clock.sec = 1

        def begun() -> bool:
            clock.publish(message)
            self.state()
            self.spin()
            return self.node.loop.now is not None and bool(self.commands)

        wait_for(begun)
        self.drain()
        self.targets = self.sender(JointState, "target_joint")

    def sender(
        self, kind: type, topic: str, node: object = None, qos: QoSProfile = NEWEST
    ) -> Publisher:
        """A publisher that the controller receives."""
        publisher = (node or self.peer).create_publisher(kind, topic, qos)
        wait_for(publisher.get_subscription_count, self.spin)
        return publisher

    @property
    def intake(self) -> StreamIntake:
        return self.node.loop.arm_loop.others.stream

    @property
    def desired(self) -> np.ndarray:
        """Desired position."""
        return self.node.loop.controller.desired[0].copy()

    @property
    def mode(self) -> str:
        return self.node.loop.supervisor.mode.value

    def run(self, states: int = STATES) -> None:
        """Answers so many states."""
        for _ in range(states):
            self.answer(*self.node.loop.controller.desired[:2])

    def rest(self) -> None:
        """Lets a stream end, and the next one begin."""
        self.run(round(1e3 * TIMEOUT) + 5)
        wait_for(self.rests, self.spin)

    def rests(self) -> bool:
        self.run(5)
        self.spin()
        return self.mode in ("holding", "emergency_stop")

    def seen(self) -> tuple[int, int, int]:
        """Numbers of messages."""
        return self.intake.taken, self.intake.ignored, self.intake.foreign

    def send(self, message: object, publisher: Publisher | None = None) -> tuple[int, int, int]:
        """Sends a message until the loop has seen it; what has become of it: taken, ignored, of
        another publisher."""
        before = self.seen()
        (publisher or self.targets).publish(message)
        wait_for(lambda: self.seen() != before, self.spin)
        return tuple(new - old for new, old in zip(self.seen(), before, strict=True))

    def send_trajectory(self, points: Sequence[tuple]) -> bool:
        """See `Bench.send`."""
        return super().send(trajectory(JOINTS, points))

    @property
    def why(self) -> str:
        """Why the last message was ignored, and the mode."""
        reason = self.node.configured.stream_watch._reason(self.intake)
        return f"{reason}; {self.mode}: {self.node.loop.supervisor.reason}"

    def offer(self, message: object) -> str:
        """Sends a target and a state to a node that may take neither; the mode."""
        self.targets.publish(message)
        self.state(*self.node.loop.controller.desired[:2])
        self.spin()
        return self.mode

    def until_logged(self, capfd: pytest.CaptureFixture[str], words: str) -> None:
        """Waits until the node has logged these words."""
        output = ""

        def logged() -> bool:
            nonlocal output
            output += capfd.readouterr().err
            return words in output

        wait_for(logged, self.spin)

    def until_streaming(self) -> None:
        """Waits until the mode is streaming."""
        wait_for(lambda: self.spin() or self.mode == "streaming")

    def stream(
        self, message: Callable[[], object], publisher: Publisher | None = None, count: int = 5
    ) -> None:
        """Sends so many messages, which are taken, and answers the states between."""
        for _ in range(count):
            assert self.send(message(), publisher) == TAKEN, self.why
            self.run()


@contextmanager
def stream_bench(
    kind: type[StreamBench], domain: int, path: str, **parameters: object
) -> Iterator[StreamBench]:
    """A bench whose ticks are "machine code" or "python"."""
    with pytest.MonkeyPatch.context() as patch:
        if path == "python":
            patch.setattr(raw_subscription, "takes_like_rclpy", lambda domain: Proof.NOTHING)
        with ros(domain):
            bench = kind(**parameters)
            try:
                bench.run(60)  # the first fifty are Python's
                natively = bench.node.loop.arm_loop.shared.ticks > 0
                assert natively == (path == "machine code")
                yield bench
            finally:
                bench.destroy()


def tells_publishers(bench: StreamBench) -> bool:
    return bench.node.loop.arm_loop.heard.table is not None
