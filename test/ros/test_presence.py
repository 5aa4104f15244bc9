"""Starts beside one another where messages carry other GIDs than the graph, as with Cyclone DDS:
eight bytes of a handle that this process alone knows, then zeros. Fast DDS of Humble fills its 24
bytes with the 16 of a GUID and zeros."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace

import pytest
import rclpy
from dds import ros, wait_for
from node_bench import COMMANDS, GOOD, Bench
from rclpy.context import Context
from std_msgs.msg import Float64MultiArray

from rnea_control.ros import effort_command, presence, raw_subscription
from rnea_control.ros.guarded_node import GuardedNode
from rnea_control.ros.presence import Presence
from rnea_control.ros.publishers import gid_of, publisher_names
from rnea_control.ros.rcl_calls import Proof

DOMAIN = 57
GUID = bytes(range(1, 17))


def handle(first: int) -> bytes:
    """GID of a publisher as rmw_cyclonedds tells it."""
    return bytes([first, *range(1, 8), *bytes(8)])


@pytest.fixture
def cyclone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_subscription, "takes_like_rclpy", lambda domain: Proof.APART)
    monkeypatch.setattr(presence, "longest_discovery", lambda: 1.0)


class Starting:
    """A node of the name that another one may have, in a participant of its own."""

    def __init__(self, process: int, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._context = Context()
        self._context.init(domain_id=DOMAIN)
        monkeypatch.setattr(os, "getpid", lambda: process)
        monkeypatch.setattr(presence, "own_gid", lambda publisher: handle(first))
        self._node = GuardedNode("controller", context=self._context)
        self._presence = Presence(self._node)
        self.refusal = "still starting"

    def start(self) -> None:
        """As a process: it ends where it may not start."""
        self.refusal = self._presence.rival()
        if self.refusal:
            self.end()

    def end(self) -> None:
        if self._context.ok():
            self._node.destroy_node()
            self._context.try_shutdown()


@pytest.mark.parametrize("first", [0x00, 0xFF])
def test_process_is_no_rival_of_its_own(
    cyclone: None, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    with ros(DOMAIN):
        alone = Starting(1000, first, monkeypatch)
        alone.start()
        alone.end()
    assert alone.refusal == ""


@pytest.mark.explores
def test_of_two_starts_at_once_one_goes_on(cyclone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "longest_discovery", lambda: 3.0)  # also on a busy computer
    with ros(DOMAIN):
        both = [Starting(1000, 0x00, monkeypatch), Starting(1001, 0xFF, monkeypatch)]
        threads = [threading.Thread(target=each.start) for each in both]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        late = Starting(999, 0x70, monkeypatch)
        late.start()
        for one in (*both, late):
            one.end()
    assert both[0].refusal == ""
    lower = "'process 1000 on"
    assert both[1].refusal.startswith(f"another /controller starts at the same moment: {lower}")
    assert late.refusal.startswith(f"another /controller runs: {lower}")


def test_own_commands_are_not_those_of_a_rival(
    cyclone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort_command, "own_gid", lambda publisher: handle(0x70))
    with ros(DOMAIN):
        bench = Bench(**GOOD)
        sentinel = rclpy.create_node("rnea_sentinel")
        sentinel.create_publisher(Float64MultiArray, COMMANDS, 1)
        try:
            names = ["/rnea_controller", "/rnea_sentinel"]
            wait_for(lambda: sorted(publisher_names(bench.node, COMMANDS)) == names, bench.spin)
            assert bench.node.configured.rivals() == ""
        finally:
            sentinel.destroy_node()
            bench.destroy()


@pytest.mark.parametrize("size", [16, 24])
def test_gid_of_the_graph_is_that_of_the_messages(size: int) -> None:
    listed = SimpleNamespace(endpoint_gid=[*GUID, *bytes(size - len(GUID))])
    assert gid_of(listed) == GUID
